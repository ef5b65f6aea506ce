"""Pages of accounts as people meet them: on the way in, with and without a second factor."""

import time
from collections.abc import Iterator

from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from judging.models import Campaign, Letter, SecondFactor, User
from judging.services import addresses, members, resets


def pages(users: dict[str, User]) -> Iterator[tuple[str, str]]:
    """Who looks, and at what."""
    User.objects.filter(pk=users["assessor"].pk).update(
        email="assessor@example.org", address_confirmed=True
    )
    users["assessor"].refresh_from_db()
    uid, token = resets.link(users["assessor"])
    confirming = addresses.token_for(users["organizer"], "organizer@example.org")
    yield from (("anonymous", address) for address in ("/forgot/", f"/reset/{uid}/{token}/"))
    yield "halfway", "/sign-in/second/"
    for place in (
        "address/",
        f"address/{confirming}/",
        "confirm/",
        "factors/",
        "factors/codes/",
        "factors/passkeys/",
    ):
        yield "organizer", f"/account/{place}"
    for place in ("", "factors/"):
        yield "admin", f"/account/{place}"
    yield "guest", "/account/"


def halfway(user: User) -> str:
    """A session of who has given a password, and is asked for the second factor."""
    SecondFactor.objects.create(user=user, kind="codes", name="Authenticator app", secret="")
    SecondFactor.objects.create(user=user, kind="passkey", name="The blue key", credential="x")
    User.objects.filter(pk=user.pk).update(has_second_factor=True)
    session = SessionStore()
    session["second_step"] = {
        "user": user.pk,
        "epoch": user.get_session_auth_hash(),
        "since": time.time() + 86400,
        "onwards": "/",
    }
    session.save()
    return str(session.session_key)


def invite(made: Campaign) -> None:
    """People who wait, with what became of their letters."""
    for state, error in (("sent", ""), ("refused", "550 5.1.1 no such user here")):
        row, _ = members.add(
            campaign=made,
            by=made.created_by,
            username=f"invited-{state}",
            role="assessor",
            address=f"{state}@example.org",
        )
        letters = Letter.objects.filter(user=row.user)
        letters.update(state=state, error=error, sent=timezone.now())
