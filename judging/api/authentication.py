"""Keys of the REST interface: ``Authorization: Bearer evs_...`` (or ``Token evs_...``)."""

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from judging.models import ApiToken, User
from judging.services import members


class ReadOnlyKey(PermissionDenied):
    default_detail = "This key may only read. Use a key with full scope to change something."
    default_code = "read_only_key"


class TokenAuthentication(BaseAuthentication):
    keywords = (b"bearer", b"token")

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() not in self.keywords:
            return None
        if len(parts) != 2:
            raise AuthenticationFailed("Expected 'Authorization: Bearer <key>'.")
        found = members.user_of_token(parts[1].decode("latin-1"))
        if found is None:
            raise AuthenticationFailed(
                "This key is not valid: it was revoked, has expired, or its owner has a new"
                " password or was blocked. Make another one on the account page."
            )
        if found[1].scope == ApiToken.Scope.READ and request.method not in SAFE_METHODS:
            raise ReadOnlyKey
        return found

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "judging.api.authentication.TokenAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
