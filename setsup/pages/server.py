"""A page live, on this machine alone: one route for answers, and a guard before all of them."""

import asyncio
import logging
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from setsup.checks import check_integer
from setsup.errors import SetsupError
from setsup.pages.answers import error_answer
from setsup.pages.guard import Guard, Limit
from setsup.pages.page import Page
from setsup.pages.shell import FILES, POLICY, document, static

__all__ = ["application", "serve"]

_AT_ONCE = 4  # answers computed at a time; more wait
_WAITING = 64  # and so many at most
_MEDIA = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_POLICY = POLICY.format(scripts="'self'", styles="'self'", images="'self' data:", connect="'self'")


def serve(page: Page, *, port: int = 0, ready: Callable[[str], None] | None = None) -> None:
    """Serve a page on 127.0.0.1 until Ctrl-C.

    Only who has the address that `ready` gets, with its token, sees anything. To look from another machine, forward
    the port: ``ssh -L 8000:127.0.0.1:PORT``.

    Parameters
    ----------
    page : Page
        What is shown.
    port : int
        0 for a free one.
    ready : callable, optional
        Called with the address, token included, once the server listens.

    Raises
    ------
    SetsupError
        When the port is taken, or starlette or uvicorn is not installed.

    Examples
    --------
    >>> serve(page, ready=print)  # doctest: +SKIP
    http://127.0.0.1:41123/?token=…

    """
    port = check_integer(port, "port", SetsupError, 0, 65_535)
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise SetsupError(f"port {port} of 127.0.0.1 cannot be used: {error.strerror}; choose another --port") from None
    port, token = listening.getsockname()[1], secrets.token_urlsafe(24)
    app = application(page, token, port)
    config = uvicorn.Config(
        app,
        log_level="error",  # its warnings are about what others send, such as upgrades, and advise to install something
        lifespan="off",
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        timeout_graceful_shutdown=0,
    )
    server = _Server(config)
    if ready is not None:
        ready(f"http://127.0.0.1:{port}/?token={token}")
    with listening:
        server.run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that ends at once and in silence, whoever waits for an answer."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def application(page: Page, token: str, port: int) -> Any:
    """The ASGI application of a page, behind its guard."""
    limit = Limit(_AT_ONCE, _WAITING)

    async def shell(request: Request) -> Response:
        return Response(document(page.title, "live", "/static/", None), media_type="text/html")

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in FILES:
            return Response("file not found", 404, media_type="text/plain")
        return Response(static(name), media_type=_MEDIA[name[name.rindex(".") :]])

    async def get(request: Request) -> Response:
        key = request.scope["query_string"].decode("ascii", "replace")
        response = await limit.run(lambda: _in_thread(lambda: _answered(page, key)))
        return response or Response("too many requests at once", 503, media_type="text/plain")

    served = Starlette(routes=[Route("/", shell), Route("/get", get), Route("/static/{name}", file)])
    served.router.redirect_slashes = False
    return Guard(served, token, port, _POLICY)


async def _in_thread(call: Callable[[], Response]) -> Response:
    """Result of a call in a thread of its own, which no exit of the process waits for: Python's pools are joined."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Response] = loop.create_future()

    def settle(result: Response | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if result is None:
            done.set_exception(error or RuntimeError("no answer"))
        else:
            done.set_result(result)

    def work() -> None:
        result: Response | None = None
        failure: BaseException | None = None
        try:
            result = call()
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, daemon=True).start()
    return await done


def _answered(page: Page, key: str) -> Response:
    try:
        answer = page.get(key)
    except SetsupError as error:  # an answer like others: what a user typed is no failure of the page
        answer = error_answer(error)
    return Response(answer.content, media_type=answer.media)
