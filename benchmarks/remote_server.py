"""A small server of files as an S3 store has them, which answers every request late and keeps a list of them.

It reads only: ``GET`` with and without ``Range``, ``HEAD``, and ``ListObjectsV2``, by paths ``/bucket/key``; signatures
are not looked at. ``GET /-/log`` gives the requests since the last time, at once. One process and one thread of asyncio
serve some thousand requests a second, so it runs on a core of its own, and the client is what is measured.
"""

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

__all__ = ["BUCKET", "Request", "Served", "serve", "served"]

BUCKET = "bench"
_DATE = "Sat, 01 Jan 2022 00:00:00 GMT"


class Request(NamedTuple):
    """One request, as the server saw it; ``stop`` is −1 where no range was asked for."""

    method: str
    path: str
    start: int
    stop: int


class Served:
    """The server, seen from the client's process."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"

    def log(self) -> list[Request]:
        """Requests since the last time."""
        with urllib.request.urlopen(f"{self.endpoint}/-/log") as answer:
            return [Request(*line) for line in json.load(answer)]


@contextmanager
def served(folder: Path, latency: float) -> Iterator[Served]:
    """Serve the files below a folder in a process of its own, every answer so many seconds late."""
    command = f"from benchmarks.remote_server import serve; serve({str(folder)!r}, {latency})"
    with subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield Served(int(process.stdout.readline()))
        finally:
            process.terminate()


def serve(folder: str, latency: float) -> None:
    """Serve until killed, or until whoever started this is gone; prints the port."""
    if hasattr(os, "sched_setaffinity"):  # the benchmarks take the last core
        os.sched_setaffinity(0, set(range(os.cpu_count() or 1)) - {(os.cpu_count() or 1) - 1} or {0})
    asyncio.run(_serve(Path(folder), latency))


async def _serve(folder: Path, latency: float) -> None:
    loop, log = asyncio.get_running_loop(), list[Request]()
    server = await loop.create_server(lambda: _Connection(folder, latency, log), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


class _Connection(asyncio.Protocol):
    """A connection that is kept: one request after the other."""

    def __init__(self, folder: Path, latency: float, log: list[Request]) -> None:
        self._folder, self._latency, self._log = folder, latency, log
        self._received = b""

    def connection_made(self, transport: Any) -> None:
        """Keep the connection."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer what has arrived in full; nobody sends a body here, nor a second request ahead of an answer."""
        self._received += data
        head, end, self._received = self._received.partition(b"\r\n\r\n")
        if not end:
            self._received = head
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        late = 0.0 if target.startswith("/-/") else self._latency
        loop = asyncio.get_running_loop()
        loop.call_later(late, lambda: loop.create_task(self._answer(method, target, fields)))

    async def _answer(self, method: str, target: str, fields: dict[str, str]) -> None:
        parts = urlsplit(target)
        path = unquote(parts.path)
        if path == "/-/log":
            self._text(json.dumps(self._log), "application/json")
            self._log.clear()
            return
        start, stop = _range(fields.get("range"))
        self._log.append(Request(method, path, start, stop))
        query = parse_qs(parts.query)
        if path.strip("/") == BUCKET:
            self._text(_listing(self._folder, query.get("prefix", [""])[0]), "application/xml")
            return
        file = self._folder / path.removeprefix(f"/{BUCKET}/")
        if ".." in file.parts or not file.is_file():
            self._text("<Error><Code>NoSuchKey</Code></Error>", "application/xml", "404 Not Found")
            return
        size = file.stat().st_size
        start, stop = (0, size) if stop < 0 else (start, min(stop, size))
        ranged = "range" in fields
        head = [
            f"HTTP/1.1 {'206 Partial Content' if ranged else '200 OK'}",
            f"Content-Length: {stop - start}",
            f'ETag: "{size:032x}"',
            f"Last-Modified: {_DATE}",
            "Accept-Ranges: bytes",
            "Content-Type: application/octet-stream",
            *([f"Content-Range: bytes {start}-{stop - 1}/{size}"] if ranged else []),
        ]
        self._transport.write("\r\n".join([*head, "", ""]).encode())
        if method == "GET":
            with file.open("rb") as opened:
                await asyncio.get_running_loop().sendfile(self._transport, opened, start, stop - start)

    def _text(self, body: str, kind: str, status: str = "200 OK") -> None:
        content = body.encode()
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nContent-Type: {kind}\r\n\r\n"
        self._transport.write(head.encode() + content)


def _range(field: str | None) -> tuple[int, int]:
    """First byte and the one behind the last; −1 behind where all is wanted."""
    if field is None:
        return 0, -1
    first, _, last = field.removeprefix("bytes=").partition("-")
    return int(first), int(last) + 1 if last else 1 << 62


def _listing(folder: Path, prefix: str) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]
    entries = "".join(
        f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size><ETag>&quot;{size:032x}&quot;</ETag>"
        "<LastModified>2022-01-01T00:00:00.000Z</LastModified><StorageClass>STANDARD</StorageClass></Contents>"
        for name, size in names
        if name.startswith(prefix)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{entries.count('<Key>')}</KeyCount>"
        f"<MaxKeys>100000</MaxKeys><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
    )
