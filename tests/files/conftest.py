"""A mirror on this machine that can misbehave, and a cache folder of its own for each test."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


@dataclass
class Page:
    """What the mirror holds under a path, and how it behaves."""

    body: bytes
    etag: str | None = '"1"'
    ranges: bool = True
    kind: str = "application/octet-stream"
    chunked: bool = False  # no Content-Length
    drops: list[int] = field(default_factory=list)  # bytes after which the next answers break off
    codes: list[int] = field(default_factory=list)  # status of the next answers, in place of the body
    begun: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event | None = None  # the answer stops in the middle until this is set
    moved: str = ""  # address that the answer sends the asker to
    shift: int = 0  # answers ranges this many bytes off
    resumes: bool = True  # else it answers ranges with 416
    bodies: list[bytes] = field(default_factory=list)  # what it holds from the next requests on, one after the other


@dataclass
class Mirror:
    """A web server; `asked` lists (path, Range header) of all requests."""

    url: str
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def add(self, path: str, body: bytes, **behaviour: object) -> str:
        self.pages["/" + path] = Page(body, **behaviour)  # type: ignore[arg-type]
        return f"{self.url}/{path}"

    def ranges(self, path: str) -> list[str | None]:
        return [asked for name, asked in self.asked if name == "/" + path]


def _handler(mirror: Mirror) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:  # the name is the server's
            self.close_connection = True
            asked = self.headers.get("Range")
            mirror.asked.append((self.path, asked))
            page = mirror.pages.get(self.path)
            code = 404 if page is None else page.codes.pop(0) if page.codes else 200
            if page is None or code != 200:
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if page.moved:
                self.send_response(302)
                self.send_header("Location", page.moved)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            page.body = page.bodies.pop(0) if page.bodies else page.body
            start = self.start(page, asked)
            if start is None:
                self.send_response(416)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.head(page, start)
            self.body(page, page.body[start:])

        def start(self, page: Page, asked: str | None) -> int | None:
            """First byte to send, 0 for the whole file, None for a range beyond it."""
            if not asked or not page.ranges or self.headers.get("If-Range", page.etag) != page.etag:
                return 0
            start = int(asked.removeprefix("bytes=").removesuffix("-")) - page.shift
            return start if page.resumes and start < len(page.body) else None

        def head(self, page: Page, start: int) -> None:
            size = len(page.body)
            self.send_response(206 if start else 200)
            self.send_header("Content-Type", page.kind)
            if not page.chunked:
                self.send_header("Content-Length", str(size - start))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            if page.etag:
                self.send_header("ETag", page.etag)
            self.end_headers()

        def body(self, page: Page, body: bytes) -> None:
            if page.drops:
                body = body[: page.drops.pop(0)]
            try:
                if page.go_on is not None:
                    self.wfile.write(body[: len(body) // 2])
                    self.wfile.flush()
                    page.begun.set()
                    page.go_on.wait(30)
                    body = body[len(body) // 2 :]
                self.wfile.write(body)
            except ConnectionError:  # the reader has gone
                pass

    return Handler


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("setsup.files.downloads.transfer._WAITS", (0.0, 0.0))
    mirror = Mirror("")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(mirror))
    server.daemon_threads = True
    mirror.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield mirror
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SETSUP_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def noise() -> Callable[[int], bytes]:
    """Bytes that do not compress and of which every piece is different."""
    import hashlib

    return lambda size: b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(size // 32 + 1))[:size]
