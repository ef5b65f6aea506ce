"""One's own e-mail address: it counts once its owner has shown that letters reach them.

The link of the letter must be opened, and its form sent, by who is signed in to the account: so
nobody confirms an address for another one's account, nor does a scanner of mail.
"""

from django.core import signing
from django.db import IntegrityError, transaction

from judging.errors import UserError
from judging.models import Letter, User
from judging.services import audit, letters, tries

CONFIRMING = "judging.services.addresses"
GOOD_FOR_SECONDS = 24 * 3600
ASKED_PER_ACCOUNT = 5


def ask(*, user: User, address: str) -> None:
    """A letter to a new address. Raises UserError ``no_mail``, ``address_invalid`` or others."""
    letters.refuse_without_mail()
    address = address.strip()
    if problem := letters.address_problem(address):
        raise UserError("address_invalid", problem, field="address")
    tries.spend(tries.key(str(user.pk), "addresses"), ASKED_PER_ACCOUNT)
    with transaction.atomic():
        letters.write(Letter.Kind.CONFIRM, address=address, user=user, by=user)
        audit.record("ask for address", by=user, target=user)


def token_for(user: User, address: str) -> str:
    return signing.dumps([user.pk, address, user.email], salt=CONFIRMING)


def told(*, user: User, token: str) -> str:
    """The address that the link confirms. Raises UserError ``confirmation_invalid`` (404)."""
    try:
        pk, address, before = signing.loads(token, salt=CONFIRMING, max_age=GOOD_FOR_SECONDS)
    except (signing.BadSignature, ValueError):
        pk, address, before = None, "", ""
    if pk != user.pk or before != user.email:
        message = "This link is of another account, was used, or is older than a day."
        raise UserError("confirmation_invalid", message, status=404)
    return str(address)


def confirm(*, user: User, token: str) -> str:
    """The address is theirs from now on. Raises as ``told``, or ``address_taken`` (409)."""
    address = told(user=user, token=token)
    with transaction.atomic():
        row = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        told(user=row, token=token)
        before = row.email if row.address_confirmed else ""
        take(row, address)
        audit.record("confirm address", by=user, target=user)
        if before and before.casefold() != address.casefold():
            letters.notice(user, "Your account has another e-mail address now.", before)
    return address


def take(user: User, address: str) -> None:
    """Inside a transaction: letters to the address are known to reach its owner."""
    try:
        with transaction.atomic():
            User.objects.filter(pk=user.pk).update(email=address, address_confirmed=True)
    except IntegrityError:
        message = "Another account has this address. Ask an admin whose it is."
        raise UserError("address_taken", message, status=409) from None


# ------------------------------------------------------------------------------ invitations

INVITED = "judging.services.addresses.invited"


def proof(user: User) -> str:
    """In the link of a letter alone: whoever has it reads the letters to this address."""
    return signing.dumps([user.pk, user.email], salt=INVITED)


def take_if_proven(user: User, given: str) -> None:
    """Inside the transaction in which an invitation is accepted."""
    try:
        proven = signing.loads(given, salt=INVITED) == [user.pk, user.email]
    except (signing.BadSignature, ValueError):
        proven = False
    taken = User.objects.filter(email__iexact=user.email, address_confirmed=True).exists()
    if proven and user.email and not taken:
        take(user, user.email)
