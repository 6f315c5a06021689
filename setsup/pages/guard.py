"""What stands before every route of a live page: no one without its token gets an answer.

A page on the loopback interface can be asked by any program of this machine, by any site that a browser here has open,
and, through DNS rebinding, under any host name. So the host must be this machine, the origin this page, and the token
of the process is asked for, first in the address, then in a cookie that no script and no other site can send.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar
from urllib.parse import parse_qs

__all__ = ["Guard", "Limit"]

T = TypeVar("T")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """ASGI application around another one: refuses what is not a GET of this page by who has its token."""

    def __init__(
        self, app: Callable[[Scope, Receive, Send], Awaitable[None]], token: str, port: int, policy: str
    ) -> None:
        self._app, self._token, self._cookie = app, token, f"setsup-{port}"
        self._headers = [
            (b"content-security-policy", f"{policy}; frame-ancestors 'none'".encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        if refused is not None:
            await self._refuse(send, *refused)
            return
        more = list(self._headers)
        if not self._has_cookie(scope):
            value = f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            more.append((b"set-cookie", value.encode()))

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *more]}
            await send(message)

        await self._app(scope, receive, guarded)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """Status and sentence, None for a request that may be answered."""
        if scope["method"] != "GET":
            return 405, "this page is read-only"
        hosts, origins, sites = (_values(scope, name) for name in (b"host", b"origin", b"sec-fetch-site"))
        if len(hosts) != 1 or not _is_here(hosts[0]):
            return 403, "this page is only served to 127.0.0.1 and localhost"
        if any(header.lower() != f"http://{hosts[0]}".lower() for header in origins):
            return 403, "another site requested this page"
        if any(header not in ("same-origin", "none") for header in sites):
            return 403, "another site requested this page"
        if not (self._has_cookie(scope) or self._has_token(scope)):
            return 403, "open the address that setsup explore printed, with its token"
        return None

    def _has_token(self, scope: Scope) -> bool:
        if scope["path"] != "/":
            return False
        given = parse_qs(scope["query_string"].decode("ascii", "replace")).get("token", [])
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), self._token.encode())

    def _has_cookie(self, scope: Scope) -> bool:
        # other programs of this machine set cookies too, whose values http.cookies refuses together with this one
        for text in _values(scope, b"cookie"):
            for pair in text.split(";"):
                name, _, value = pair.strip(" ").partition("=")
                if name == self._cookie and hmac.compare_digest(value.encode(), self._token.encode()):
                    return True
        return False

    async def _refuse(self, send: Send, status: int, sentence: str) -> None:
        content = sentence.encode()
        length = (b"content-length", str(len(content)).encode())
        headers = [(b"content-type", b"text/plain; charset=utf-8"), length, *self._headers]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _is_here(host: str) -> bool:
    """Whether a Host header names this machine; any port, since ``ssh -L`` changes it."""
    name, _, port = (host, "", "0") if host.endswith("]") or ":" not in host else host.rpartition(":")
    return name.lower() in _HOSTS and port.isascii() and port.isdigit()


class Limit:
    """So many at a time, and so many waiting."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._free, self._room = asyncio.Semaphore(at_once), at_once + waiting

    async def run(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """Result of a call when its turn comes; None where too many wait."""
        if self._room <= 0:
            return None
        self._room -= 1
        try:
            async with self._free:
                return await call()
        finally:
            self._room += 1
