"""A small HTTP client: cookies, no redirects; any status is an answer."""

import http.client
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode, urlsplit

CSRF_FIELD = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
File = tuple[str, str, bytes]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Api:
    """A client with a key, or with the cookies of a session. No answer is an OSError.

    Every request has a connection of its own, so that none meets one the server has just closed.
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 30) -> None:
        self.host = urlsplit(url).netloc
        self.timeout = timeout
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.cookies: dict[str, str] = {}
        self.csrf = ""

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, data: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        return self._json("POST", path, data, headers)

    def put(self, path: str, data: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        return self._json("PUT", path, data, headers)

    def patch(
        self, path: str, data: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        return self._json("PATCH", path, data, headers)

    def delete(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.request("DELETE", path, headers=headers)

    def _json(self, method: str, path: str, data: Any, headers: Mapping[str, str] | None) -> Answer:
        kind = {"Content-Type": "application/json"}
        return self.request(
            method, path, json.dumps(data or {}).encode(), kind | dict(headers or {})
        )

    def upload(
        self, path: str, fields: Mapping[str, str], files: Iterable[File], **headers: str
    ) -> Answer:
        """POST of multipart/form-data; ``files`` are (field, file name, content)."""
        boundary = secrets.token_hex(16)
        head = f"--{boundary}\r\nContent-Disposition: form-data; "
        parts = [f'{head}name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields.items()]
        for name, filename, content in files:
            kind = "Content-Type: application/octet-stream"
            named = f'{head}name="{name}"; filename="{filename}"\r\n{kind}\r\n\r\n'
            parts.append(named.encode() + content + b"\r\n")
        body = b"".join([*parts, f"--{boundary}--\r\n".encode()])
        sent = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return self.request("POST", path, body, sent | headers)

    def sign_in(self, username: str, password: str) -> Answer:
        """A browser's session through the sign-in page; the answer is a redirect if it worked."""
        self.get("/sign-in/")
        return self.submit("/sign-in/", {"username": username, "password": password})

    def submit(self, path: str, fields: Mapping[str, str | Sequence[str]]) -> Answer:
        """Posts a form as the page that was read last would."""
        data = {"csrfmiddlewaretoken": self.csrf} | dict(fields)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.request("POST", path, urlencode(data, doseq=True).encode(), kind)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = self.headers | dict(headers or {})
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection = http.client.HTTPConnection(self.host, timeout=self.timeout)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        except http.client.HTTPException as error:
            raise OSError(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        self._remember(answer, response.headers.get_all("Set-Cookie") or [])
        return answer

    def _remember(self, answer: Answer, cookies: Iterable[str]) -> None:
        for line in cookies:
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        if field := CSRF_FIELD.search(answer.body.decode("utf-8", "replace")):
            self.csrf = field[1]
