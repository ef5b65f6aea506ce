"""Signing in with a password, and how often one may try.

Tries are counted per account and origin, per origin over all accounts, and per account over all
origins. A success forgets the account's tries from there and uses up none of the other two.
"""

from django.contrib.auth import authenticate as check_credentials
from django.db.models import F

from judging import names
from judging.errors import UserError
from judging.models import SignInTries, User
from judging.services import tries

TRIES_PER_ACCOUNT = 10
TRIES_PER_ADDRESS = 100
TRIES_PER_NAME = 50
EVERYWHERE = "everywhere"


def authenticate(*, username: str, password: str, address: str) -> User:
    """The active account with this name and password.

    Raises UserError ``sign_in_refused`` (401; it does not tell whether there is such an account)
    or ``too_many_tries`` (429, with ``retry_after`` seconds in its data).
    """
    name, origin = names.skeleton(username), tries.origin(address)
    here, everybody = tries.key(name, origin), tries.key("", origin)
    everywhere = tries.key(name, EVERYWHERE)
    tries.spend(here, TRIES_PER_ACCOUNT)
    tries.spend(everybody, TRIES_PER_ADDRESS)
    tries.spend(everywhere, TRIES_PER_NAME)
    user = check_credentials(username=username, password=password)
    if not isinstance(user, User):
        message = "User name and password do not fit together."
        raise UserError("sign_in_refused", message, status=401)
    SignInTries.objects.filter(key=here).delete()
    for key in (everybody, everywhere):
        SignInTries.objects.filter(key=key, tries__gt=0).update(tries=F("tries") - 1)
    return user


def confirm(*, user: User, password: str, address: str) -> None:
    """That who has the session knows the password. Raises as ``authenticate`` does (403)."""
    try:
        authenticate(username=user.username, password=password, address=address)
    except UserError as error:
        if error.status != 401:
            raise
        message = "This is not your password."
        raise UserError("password_wrong", message, status=403, field="password") from None
