"""Keys of the REST interface: ``Authorization: Bearer evs_...`` (or ``Token evs_...``)."""

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from judging.models import ApiToken, User


class TokenAuthentication(BaseAuthentication):
    keywords = (b"bearer", b"token")

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() not in self.keywords:
            return None
        if len(parts) != 2:
            raise AuthenticationFailed("Expected 'Authorization: Bearer <key>'.")
        digest = ApiToken.digest_of(parts[1].decode("latin-1"))
        token = ApiToken.objects.select_related("user").filter(digest=digest).first()
        if token is None or not token.user.is_active:
            raise AuthenticationFailed("This key is not valid.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "judging.api.authentication.TokenAuthentication"
    name = "key"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
