"""Stores for tests: an S3 server, and a web server that fails in every way it is told to."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote

import pytest

from setsup.shards.stores import attempts

__all__ = ["Bucket", "Web", "bucket", "memory", "s3", "short_waits", "web", "web_server"]


@dataclass
class Web:
    """A web server on localhost, and what it is to do.

    Attributes
    ----------
    files : dict of str to bytes
        By their paths, without the first slash.
    failing : list of int
        Statuses with which the next requests are answered; −1 closes the connection amid the content, −2 before any
        answer, −3 gives fewer bytes than asked for as if that were all.
    delay : float, seconds
        Before each answer.
    pause : float, seconds
        Amid each content.
    ranges : bool
        Whether it knows ranges; without, the whole file comes.
    lists : bool
        Whether it lists folders.
    redirects : dict of str to str
        Where requests for paths are sent in place of an answer.
    seen : list of (str, str, str or None)
        Methods, paths and ranges of the requests so far.
    queries, headers : list of str, list of dict
        Of the same.
    most : int
        Requests that were under way at once.

    """

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    failing: list[int] = field(default_factory=list)
    delay: float = 0.0
    pause: float = 0.0
    ranges: bool = True
    lists: bool = True
    redirects: dict[str, str] = field(default_factory=dict)
    seen: list[tuple[str, str, str | None]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    most: int = 0
    current: int = 0
    lock: Any = field(default_factory=threading.Lock)


@contextmanager
def web_server() -> Iterator[Web]:
    """Serve until the body ends."""
    state = Web()

    class Handler(_Handler):
        web = state

    class Server(ThreadingHTTPServer):
        request_queue_size = 256  # more than ask at once: the system drops those beyond
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: Web

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        web, name = self.web, unquote(self.path.partition("?")[0].lstrip("/"))
        with web.lock:
            web.seen.append((self.command, name, self.headers.get("Range")))
            web.queries.append(self.path.partition("?")[2])
            web.headers.append(dict(self.headers))
            web.current += 1
            web.most = max(web.most, web.current)
            wrong = web.failing.pop(0) if web.failing else 0
        try:
            time.sleep(web.delay)
            self._answer(name, wrong)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with web.lock:
                web.current -= 1

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def _answer(self, name: str, wrong: int) -> None:
        web = self.web
        content = web.files.get(name)
        if wrong == -2:
            self.close_connection = True
            return
        if name in web.redirects:
            self._send(302, b"", {"Location": web.redirects[name]})
        elif wrong > 0:
            self._send(wrong, f"status {wrong}".encode())
        elif content is None and web.lists and (name == "" or name.endswith("/")):
            self._list(name)
        elif content is None:
            self._send(404, b"no such file")
        elif web.ranges and (asked := self.headers.get("Range")):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last) + 1 if last else len(content), len(content))
            if start >= len(content):
                self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
                return
            if wrong == -3:
                stop = max(start + 1, stop - 1)
            told = {"Content-Range": f"bytes {start}-{stop - 1}/{len(content)}"}
            self._send(206, content[start:stop], told, cut=wrong == -1)
        else:
            self._send(200, content, cut=wrong == -1)

    def _list(self, name: str) -> None:
        inside = [path.removeprefix(name) for path in self.web.files if path.startswith(name)]
        listed = sorted({one.partition("/")[0] + ("/" if "/" in one else "") for one in inside})
        if not listed:
            self._send(404, b"no such folder")
            return
        links = "".join(f'<li><a href="{quote(one)}">{one}</a></li>' for one in listed)
        page = f'<a href="../">up</a><a href="?C=N;O=D">Name</a><a href="https://other.org/x.tar">x</a><ul>{links}</ul>'
        self._send(200, page.encode(), {"Content-Type": "text/html; charset=utf-8"})

    def _send(self, status: int, content: bytes, headers: dict[str, str] | None = None, cut: bool = False) -> None:
        self.send_response(status)
        for key, value in {"Content-Type": "application/octet-stream", **(headers or {})}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "HEAD":
            return
        half = len(content) // 2
        self.wfile.write(content[:half])
        if self.web.pause:
            self.wfile.flush()
            time.sleep(self.web.pause)
        if cut:
            self.close_connection = True
            return
        self.wfile.write(content[half:])


@pytest.fixture
def web() -> Iterator[Web]:
    """A web server without files."""
    with web_server() as found:
        yield found


@dataclass
class Bucket:
    """An empty bucket of an S3 server.

    Attributes
    ----------
    url : str
        ``s3://…``.
    options : dict
        For ``open_store``: where the server is.
    endpoint : str
        The same, for other clients.

    """

    url: str
    options: dict[str, Any]
    endpoint: str


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """An S3 server on localhost (moto); its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A new bucket, with credentials in the environment."""
    import boto3

    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    name = f"shards-{time.monotonic_ns()}"
    boto3.client("s3", endpoint_url=s3, region_name="us-east-1").create_bucket(Bucket=name)
    return Bucket(f"s3://{name}/set", {"endpoint_url": s3}, s3)


@pytest.fixture
def memory() -> Iterator[str]:
    """Address of an empty store in this process's memory."""
    from fsspec.implementations.memory import MemoryFileSystem

    yield "memory://tests/set"
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow one another fast."""
    monkeypatch.setattr(attempts, "WAITS", (0.001, 0.002, 0.004))
