"""An OpenID provider on loopback: the code flow with PKCE, identity tokens signed with RS256.

It lets in ``person`` without asking. ``twist`` changes what it says or how it signs, as a broken or
hostile provider would.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT, SECRET = "evalsite", "a-secret-of-this-client-32-bytes"
Claims = dict[str, Any]


@dataclass
class Provider:
    issuer: str = ""
    person: Claims = field(default_factory=dict)
    twist: Callable[[Claims], None] = lambda claims: None
    signed_by: str = "RS256"
    says_it_is: str = ""
    keys: dict[str, RSAKey] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def settings(self) -> dict[str, str]:
        """What a site must be told of it."""
        return {
            "OIDC_ISSUER": self.issuer,
            "OIDC_CLIENT_ID": CLIENT,
            "OIDC_CLIENT_SECRET": SECRET,
            "OIDC_NAME": "The House",
        }

    def metadata(self) -> Claims:
        return {
            "issuer": self.says_it_is or self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "id_token_signing_alg_values_supported": ["RS256", "HS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent."""
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, given: dict[str, str], authorization: str) -> Claims | None:
        """For a code, once, to the client that shows what it hid in the first step."""
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        asked = self.codes.pop(given.get("code", ""), None)
        hidden = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        shown = base64.urlsafe_b64encode(hidden).decode().rstrip("=")
        if asked is None or authorization != f"Basic {basic}" or shown != asked["code_challenge"]:
            return None
        now = int(time.time())
        claims: Claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **self.person,
        }
        self.twist(claims)
        return {"access_token": "x", "token_type": "Bearer", "id_token": self.signed(claims)}

    def signed(self, claims: Claims) -> str:
        if self.signed_by == "HS256":  # with what both know, as if it were a key
            header = {"alg": "HS256", "kid": "house"}
            return jwt.encode(header, claims, OctKey.import_key(SECRET), algorithms=["HS256"])
        key = self.keys["other" if self.signed_by == "other" else "house"]
        return jwt.encode({"alg": "RS256", "kid": "house"}, claims, key)


@contextmanager
def serving() -> Iterator[Provider]:
    made = Provider()
    for name in ("house", "other"):
        made.keys[name] = RSAKey.generate_key(2048, {"kid": "house", "use": "sig"})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = urlsplit(self.path)
            made.asked.append(place.path)
            if place.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", made.authorize(dict(parse_qsl(place.query))))
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif place.path == "/keys":
                self.answer({"keys": [made.keys["house"].as_dict(private=False)]})
            else:
                self.answer(made.metadata())

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            given = dict(parse_qsl(self.rfile.read(length).decode()))
            told = made.token(given, self.headers.get("Authorization", ""))
            self.answer(told or {"error": "invalid_grant"}, 200 if told else 400)

        def answer(self, body: Claims, status: int = 200) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.issuer = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield made
        finally:
            server.shutdown()
