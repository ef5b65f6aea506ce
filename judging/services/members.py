"""Members of a campaign, invitations, and keys of the REST interface."""

import secrets
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Case, F, Q, QuerySet, When
from django.db.models.functions import Now
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode

from judging import names
from judging.accounts import QRELS, name_problem
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.formats.problems import line_problem
from judging.models import ApiToken, Assignment, Campaign, Membership, User
from judging.services import addresses, audit, campaigns, letters, norming, present, training
from judging.statements import Slot, columns_of, reads, row_of

TOKEN_PREFIX = "evs_"  # noqa: S105  (what keys begin with, to be found by secret scanners)
KEY_DAYS, MAX_KEY_DAYS = 90, 366
SECONDS_PER_DAY = 86_400
LAST_USE_SECONDS = 5 * 60


def add(
    *, campaign: Campaign, by: User, username: str, role: str, address: str = ""
) -> tuple[Membership, bool]:
    """Makes somebody a member; an account that is not there yet is made, without a password.

    To its ``address`` the invitation is sent, on a site that sends e-mail. That of an account
    with a password is its owner's: what is given here is passed over.

    Returns the membership and whether it is new. Raises UserError ``role_unknown``,
    ``address_invalid``,
    ``username_invalid``, ``username_taken`` (409: by an account whose name looks the same),
    ``is_guest`` (409: guests of crowd links are members of one campaign, as assessors) or
    ``is_blocked`` (409: they could not sign in, and all would wait for them).
    """
    if role not in Membership.Role.values:
        expected = " or ".join(Membership.Role.values)
        raise UserError("role_unknown", f"No such role. Expected {expected}.", field="role")
    if names.skeleton(username) == QRELS:
        message = "This name stands for grades from uploaded qrels. Choose another one."
        raise UserError("username_invalid", message, field="username")
    if address and (problem := letters.address_problem(address)):
        raise UserError("address_invalid", problem, field="address")
    with transaction.atomic():
        user = _account(username, by)
        refuse_guest(user)
        _refuse_blocked(user)
        membership, created = join(campaign=campaign, by=by, user=user, role=role)
        if created and invitation(user, by=by) is not None:
            _note_address(user, address)
            letters.invite(user=user, by=by, campaign=campaign)
    return membership, created


def _note_address(user: User, address: str) -> None:
    if address and address != user.email:
        user.email = address
        user.save(update_fields=["email"])


def refuse_guest(user: User) -> None:
    """Whoever knows a link and a participant id has a guest's account: it never may do more."""
    if user.is_guest:
        message = f"{user} is a guest of a crowd link: such an account never may do more."
        raise UserError("is_guest", message, status=409, field="username")


def _refuse_blocked(user: User) -> None:
    if not user.is_active:
        message = (
            f"{user} is blocked and cannot sign in. An admin of the site can let them in again."
        )
        raise UserError("is_blocked", message, status=409, field="username")


def join(*, campaign: Campaign, by: User, user: User, role: str) -> tuple[Membership, bool]:
    """Makes an account a member, inside the caller's transaction."""
    membership, created = Membership.objects.get_or_create(campaign=campaign, user=user, role=role)
    if created:
        training.welcome(membership)
        audit.record(
            "add member",
            by=by,
            campaign=campaign,
            target=membership,
            user=user.username,
            role=role,
        )
    return membership, created


def _account(username: str, by: User) -> User:
    """The account of this name, however it is written; a new one if there is none."""
    if user := User.objects.named(username):
        return user
    if problem := names.problem(username):
        raise UserError("username_invalid", problem, field="username")
    try:
        with transaction.atomic():
            return _new_account(username, by)
    except IntegrityError:  # there is one that looks alike, or somebody else made it just now
        if user := User.objects.named(username):
            return user
    message = name_problem(username) or ""
    raise UserError("username_taken", message, status=409, field="username")


def _new_account(username: str, by: User) -> User:
    user = User(username=names.plain(username), invited_by=by)
    user.set_unusable_password()
    user.save()
    return user


def remove(*, membership: Membership, by: User) -> None:
    """Ends a membership; leased pairs go back, judgments stay.

    Raises UserError ``last_organizer`` (409) or ``not_a_member`` (409: it has ended already).
    """
    campaign = membership.campaign
    with transaction.atomic():
        campaigns.lock(campaign.pk)
        _refuse_last_organizer(membership)
        audit.record(
            "remove member",
            by=by,
            campaign=campaign,
            target=membership,
            user=membership.user.username,
            role=membership.role,
        )
        membership.delete()
        theirs = Assignment.objects.filter(
            assessor=membership.user, campaign=campaign, state=Assignment.State.LEASED
        )
        list(theirs.order_by("pk").select_for_update(of=("self",)).values_list("pk", flat=True))
        theirs.update(lease_until=campaign.created)
        norming.wait_no_more(campaign=campaign, by=by)


def _refuse_last_organizer(membership: Membership) -> None:
    """Under the campaign's lock, so that two organizers cannot remove each other at once."""
    here = Membership.objects.filter(campaign=membership.campaign_id)
    if not here.filter(pk=membership.pk).exists():
        message = f"{membership.user} is not {membership.role} of this campaign any more."
        raise UserError("not_a_member", message, status=409)
    organizers = here.filter(role=Membership.Role.ORGANIZER)
    if membership.role == Membership.Role.ORGANIZER and organizers.count() == 1:
        message = "A campaign keeps at least one organizer. Add another one first."
        raise UserError("last_organizer", message, status=409)


class InvitationTokens(PasswordResetTokenGenerator):
    """Void once a password is set, and once the account may do more than when it was invited, or
    was blocked since."""

    key_salt = "judging.services.members.InvitationTokens"

    def _make_hash_value(self, user: User, timestamp: int) -> str:
        rights = [getattr(user, name) for name in ("is_superuser", "is_staff", "is_organizer")]
        return f"{super()._make_hash_value(user, timestamp)}{rights}{user.session_epoch}"


tokens = InvitationTokens()


def invitation(user: User, *, by: User) -> tuple[str, str] | None:
    """(uid, token) of the link with which a new member sets a password.

    None if the account has a password, was made by another organizer than ``by``, or is an
    admin's or a guest's: no link opens those.
    """
    theirs = user.invited_by_id == by.pk or by.is_superuser
    barred = user.is_guest or not user.is_active or _is_admin(user)
    if user.has_usable_password() or barred or not theirs:
        return None
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return uid, tokens.make_token(user)


def _is_admin(user: User) -> bool:
    return user.is_superuser or user.is_staff


def invited(uid: str, token: str) -> User:
    """The member whom the link invites. Raises UserError ``invitation_invalid`` (404)."""
    return _invited(uid, token, User.objects.all())


def _locked(uid: str, token: str) -> User:
    """The same under the lock of the account: of those who accept at once, one finds it valid."""
    return _invited(uid, token, User.objects.select_for_update(no_key=True))


def _invited(uid: str, token: str, users: QuerySet[User]) -> User:
    try:
        user = users.get(pk=int(urlsafe_base64_decode(uid)), is_active=True)
    except (ValueError, OverflowError, User.DoesNotExist):
        user = None
    if user is None or _is_admin(user) or not tokens.check_token(user, token):
        message = "This invitation was used or is out of date. Ask the organizer for a new one."
        raise UserError("invitation_invalid", message, status=404)
    return user


def accept(*, uid: str, token: str, password: str, proof: str = "") -> User:
    """Sets the password of an invited member; the link is used up by it.

    ``proof`` came with the link in a letter: its address is confirmed by it.

    Raises UserError ``invitation_invalid`` (404) or ``password_weak``.
    """
    try:
        validate_password(password, invited(uid, token))
    except ValidationError as error:
        raise UserError("password_weak", " ".join(error.messages), field="password") from None
    with transaction.atomic():
        user = _locked(uid, token)
        user.set_password(password)
        user.save(update_fields=["password"])
        addresses.take_if_proven(user, proof)
        audit.record("accept invitation", by=user, target=user)
    return user


def create_token(
    *, user: User, name: str, scope: str = ApiToken.Scope.FULL, days: int = KEY_DAYS
) -> str:
    """A new key of the REST interface; shown this once, kept as its digest only.

    It works for ``days`` days, until the password is changed. Keys of an earlier password go.
    Raises UserError ``is_guest`` (409), ``key_name_invalid``, ``scope_unknown`` or
    ``key_days_invalid``.
    """
    refuse_guest(user)
    if problem := line_problem(name):
        message = f"The name cannot be kept: {problem}."
        raise UserError("key_name_invalid", message, field="name")
    if scope not in ApiToken.Scope.values:
        expected = " or ".join(ApiToken.Scope.values)
        raise UserError("scope_unknown", f"No such scope. Expected {expected}.", field="scope")
    if not 1 <= days <= MAX_KEY_DAYS:
        message = f"Expected 1 to {MAX_KEY_DAYS} days."
        raise UserError("key_days_invalid", message, field="expires_in_days")
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        ApiToken.objects.filter(user=user).exclude(epoch=F("user__key_epoch")).delete()
        row = ApiToken.objects.create(
            user=user,
            name=name[:100],
            digest=ApiToken.digest_of(token),
            scope=scope,
            epoch=user.key_epoch,
            expires=seconds_from_now(days * SECONDS_PER_DAY),
        )
        audit.record("create token", by=user, target=row, name=row.name, scope=scope, days=days)
    return token


def user_of_token(token: str) -> tuple[User, ApiToken] | None:
    """Whose key it is, if it works; notes the use, not more often than every few minutes."""
    row = _KEY.first(digest=ApiToken.digest_of(token))
    if row is None:
        return None
    noted, key, user = row[0], row_of(ApiToken, row[1:_USER]), row_of(User, row[_USER:])
    if not noted:
        ApiToken.objects.filter(pk=key.pk).update(last_used=Now())
    return user, key


def _key() -> QuerySet[ApiToken, Any]:
    works = Q(expires=None) | Q(expires__gt=Now())
    lately = Q(last_used__gte=seconds_from_now(-LAST_USE_SECONDS))
    working = ApiToken.objects.filter(works, digest=Slot("digest"), user__is_active=True)
    return (
        working.filter(epoch=F("user__key_epoch"), user__is_guest=False)
        .order_by()
        .annotate(noted=Case(When(lately, then=True), default=False))
        .values_list("noted", *columns_of(ApiToken), *columns_of(User, "user__"))
    )


_KEY = reads(_key)
_USER = 1 + len(columns_of(ApiToken))


def revoke_token(*, token: ApiToken, by: User) -> None:
    """Ends a key. Raises UserError ``gone`` (404) when it has been revoked already."""
    with transaction.atomic():
        revoked, _ = ApiToken.objects.filter(pk=token.pk).delete()
        if not revoked:
            raise present.gone(f"The key “{token.name}”")
        audit.record("revoke token", by=by, target=token, name=token.name)
