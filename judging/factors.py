"""What belongs to an account beside its password: second factors, identities elsewhere, letters.

The rest of the application finds them in ``judging.models``.
"""

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from judging.accounts import User


class SecondFactor(models.Model):
    """What somebody shows beside their password: codes of an app, or a passkey.

    ``secret`` is the encrypted secret of the codes, or the public key of a passkey, whose id is
    found by its digest, ``credential``. ``counter`` only grows: the time step of the last code that
    was taken, or the signature counter of the passkey, so that nothing is taken twice.
    """

    class Kind(models.TextChoices):
        CODES = "codes", "Codes of an app"
        PASSKEY = "passkey", "Passkey"

    user = models.ForeignKey(User, models.CASCADE, related_name="factors")
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=100)
    secret = models.TextField()
    credential = models.CharField(max_length=64, unique=True, null=True, blank=True)
    counter = models.BigIntegerField(default=0)
    created = models.DateTimeField(db_default=Now())
    last_used = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["user"], condition=Q(kind="codes"), name="factor_codes_once"),
            CheckConstraint(
                condition=Q(kind="codes") | Q(credential__isnull=False), name="factor_has_id"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RecoveryCode(models.Model):
    """A code that opens an account once, where its second factors are lost; kept as its digest."""

    user = models.ForeignKey(User, models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64, unique=True)
    used = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.user}: {'used' if self.used else 'unused'}"


class Identity(models.Model):
    """Who somebody is to an OpenID provider: its address and the word it has for them."""

    user = models.ForeignKey(User, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    address = models.CharField(max_length=254, blank=True)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            UniqueConstraint(fields=["issuer", "subject"], name="identity_once"),
            UniqueConstraint(fields=["issuer", "user"], name="identity_one_each"),
        ]
        verbose_name_plural = "identities"

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class Letter(models.Model):
    """An e-mail that a worker sends. Links in it are made when it is sent, and kept nowhere.

    ``address`` is where it goes; of the letter of a reset it is what somebody wrote who may be
    nobody here, and the row goes when the worker has looked. ``refused``: the mail server says no.
    """

    class Kind(models.TextChoices):
        INVITATION = "invitation"
        RESET = "reset"
        CONFIRM = "confirm"
        NOTICE = "notice"

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        REFUSED = "refused"

    kind = models.CharField(max_length=12, choices=Kind)
    address = models.CharField(max_length=254)
    user = models.ForeignKey(User, models.CASCADE, null=True, related_name="letters")
    by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    campaign = models.ForeignKey(
        "judging.Campaign", models.CASCADE, null=True, related_name="letters"
    )
    text = models.CharField(max_length=500, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    error = models.CharField(max_length=300, blank=True)
    created = models.DateTimeField(db_default=Now())
    sent = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.kind} to {self.address}: {self.state}"
