"""Accounts, their keys, and tries to sign in: the models of who somebody is.

The rest of the application finds them in ``judging.models``.
"""

import hashlib
import secrets
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, UserManager
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Lower, Now
from django.utils.crypto import salted_hmac

from judging import names

SESSIONS = "judging.accounts.User.session_epoch"
QRELS = "qrels"
"""The account that imported grades are recorded under; nobody signs in to it."""


class Accounts(UserManager["User"]):
    def named(self, username: str) -> "User | None":
        """The account of this name, however it is written: the only place that finds it.

        One whose name is exactly this goes first: accounts from before names were compared may
        differ in case alone. A name that merely looks the same is another name.
        """
        exact = names.plain(username)
        written = models.Q(username=exact) | models.Q(name_key=names.skeleton(username))
        same = names.same(exact)
        found = [user for user in self.filter(written) if names.same(user.username) == same]
        return min(found, key=lambda user: user.username != exact, default=None)

    def get_by_natural_key(self, username: str | None) -> "User":
        """What signing in and commands ask for an account."""
        if user := self.named(username or ""):
            return user
        raise self.model.DoesNotExist(f"There is no account {username}.")

    def create_superuser(self, username: str, *args: Any, **kwargs: Any) -> "User":
        """Asked for on the command line, which shows this error in a sentence."""
        if problem := name_problem(username):
            raise ValidationError(problem)
        return super().create_superuser(username, *args, **kwargs)


def name_problem(username: str, *, of: int | None = None) -> str | None:
    """Why an account, that with the row id ``of`` or a new one, cannot be named like this."""
    if problem := names.problem(username):
        return problem
    alike = User.objects.filter(name_key=names.skeleton(username)).first()
    if alike is None or alike.pk == of:
        return None
    return f"This name looks like “{alike.username}”, which is another account. Choose another one."


class User(AbstractUser):
    """An account. Admins are superusers; ``is_organizer`` allows creating campaigns.

    ``name_key`` is equal for names that look alike; null: one of several from before it was.

    ``invited_by`` made the account; only that organizer (or an admin) may hand out its invitation.
    ``key_epoch`` is another one after every change of password, and after blocking: keys of an
    earlier one are void, as are sessions of an earlier ``session_epoch`` (empty: never blocked).
    ``is_guest``: made by a crowd link, for one campaign; it has no password and never gets one.
    ``address_confirmed``: they have shown that letters to ``email`` reach them; one account at most
    for an address. ``has_second_factor`` says whether there are rows of `SecondFactor`.
    """

    is_organizer = models.BooleanField("may create campaigns", default=False)
    is_guest = models.BooleanField(default=False, db_default=False, editable=False)
    address_confirmed = models.BooleanField(default=False, db_default=False, editable=False)
    has_second_factor = models.BooleanField(default=False, db_default=False, editable=False)
    invited_by = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="+")
    key_epoch = models.CharField(max_length=16, default="", blank=True, editable=False)
    session_epoch = models.CharField(
        max_length=16, default="", db_default="", blank=True, editable=False
    )
    name_key = models.CharField(max_length=600, unique=True, null=True, editable=False)

    objects: ClassVar[Accounts] = Accounts()

    class Meta(AbstractUser.Meta):
        constraints = [
            models.UniqueConstraint(
                Lower("email"),
                condition=models.Q(address_confirmed=True),
                name="confirmed_address_once",
            )
        ]

    def clean(self) -> None:
        super().clean()
        if not self.username:  # a form has refused it already
            return
        renamed = not User.objects.filter(pk=self.pk, username=self.username).exists()
        if renamed and (problem := name_problem(self.username, of=self.pk)):
            raise ValidationError({"username": problem})

    def save(self, *args: Any, **kwargs: Any) -> None:
        """``key_epoch`` in one UPDATE with the password; one merely hashed anew is no change."""
        if self._state.adding or self.name_key is not None:
            self.name_key = names.skeleton(self.username)
        fields = kwargs.get("update_fields")
        saves_password = fields is None or "password" in fields
        set_anew = self._password is not None  # type: ignore[attr-defined]
        changed = set_anew or not self.has_usable_password()
        if saves_password and changed:
            self.key_epoch = secrets.token_hex(8)
            if fields is not None:
                kwargs["update_fields"] = {*fields, "key_epoch"}
        super().save(*args, **kwargs)

    def end_access(self) -> None:
        """Makes all sessions and keys void for good; the caller saves both epochs."""
        self.key_epoch, self.session_epoch = secrets.token_hex(8), secrets.token_hex(8)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        of_password = super()._get_session_auth_hash(secret=secret)  # type: ignore[misc]
        if not self.session_epoch:
            return str(of_password)
        told = f"{of_password}{self.session_epoch}"
        return salted_hmac(SESSIONS, told, secret=secret, algorithm="sha256").hexdigest()


class ApiToken(models.Model):
    """A key for the REST interface; only its SHA-256 is kept.

    It works while ``epoch`` is that of its account, until ``expires`` (null: keys from before keys
    had an end). ``last_used`` is exact to some minutes.
    """

    class Scope(models.TextChoices):
        FULL = "full", "All that you may do"
        READ = "read", "Read only"

    user = models.ForeignKey(User, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.FULL)
    epoch = models.CharField(max_length=16, default="", blank=True)
    created = models.DateTimeField(db_default=Now())
    expires = models.DateTimeField(null=True, blank=True)
    last_used = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def digest_of(token: str) -> str:
        return hashlib.sha256(token.encode()).hexdigest()


class SignInTries(models.Model):
    """How often a sign-in was tried lately; ``key`` is a digest of account and origin."""

    key = models.CharField(max_length=64, unique=True)
    tries = models.PositiveIntegerField()
    since = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "sign-in tries"

    def __str__(self) -> str:
        return f"{self.key[:12]}: {self.tries}"
