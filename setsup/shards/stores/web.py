"""Files of a web server: their ranges, their sizes, and which of them its pages list.

Requests use the connections of fsspec's file system, but not its functions, which accept any answer: a server without
ranges sends the whole file for each range, and one that requires a log-in sends a page.

Source: RFC 9110, sections 14 (ranges) and 15 (status codes).
"""

import re
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from setsup.errors import DataError
from setsup.files import readable_size
from setsup.shards.stores.errors import CutShort, NoRanges, ShortRead
from setsup.shards.stores.store import Range

__all__ = ["web_links", "web_range", "web_size"]

_PAGE = 16 << 20  # bytes of a list
_COPY = "copy the files to a local folder and open that folder"


async def web_range(system: Any, url: str, wanted: Range, label: str) -> bytes:
    """Bytes of a file."""
    start, stop = wanted.start, wanted.stop
    async with await _get(system, url, {"Range": f"bytes={start}-{stop - 1}"}) as response:
        if response.status == 206:
            match = re.fullmatch(
                r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", response.headers.get("Content-Range", "")
            )
            if match is None or int(match[1]) != start or int(match[2]) >= stop:
                raise NoRanges(
                    f"{label} cannot be read in parts: its server returned other bytes than requested; {_COPY}"
                )
            if match[3] != "*":
                _need_size(label, int(match[3]), wanted)
        elif response.status == 200:
            size = response.content_length
            if start or size != stop:  # else the range is the whole file
                if wanted.whole is not None and size is not None:
                    _need_size(label, size, wanted)
                raise NoRanges(f"{label} cannot be read in parts: its server does not support byte ranges; {_COPY}")
        elif response.status == 416 and wanted.whole is not None:
            total = re.fullmatch(r"bytes \*/(\d{1,18})", response.headers.get("Content-Range", ""))
            if total:
                _need_size(label, int(total[1]), wanted)
        response.raise_for_status()
        if response.status not in (200, 206):
            raise NoRanges(f"{label} cannot be read: its server returned HTTP {response.status}; check the address")
        pieces, left = [], stop - start
        async for piece in response.content.iter_any():
            pieces.append(piece)
            left -= len(piece)
            if left < 0:  # and who knows how many more will come
                raise NoRanges(
                    f"{label} cannot be read in parts: its server returned more bytes than requested; {_COPY}"
                )
    if left:
        raise ShortRead
    return b"".join(pieces)


async def web_size(system: Any, url: str, label: str) -> int | None:
    """Bytes of a file, None where there is none: by asking for its first byte, which no server forbids."""
    async with await _get(system, url, {"Range": "bytes=0-0"}) as response:
        if response.status in (404, 410):
            return None
        if response.status in (206, 416):
            match = re.fullmatch(r"bytes (?:\d+-\d+|\*)/(\d{1,18})", response.headers.get("Content-Range", ""))
            if match:
                return int(match[1])
            if response.status == 416:
                return 0
        response.raise_for_status()
        if response.status == 200 and response.content_length is not None:
            return int(response.content_length)
    raise DataError(f"{label} cannot be read: its server does not return its size; {_COPY}")


async def web_links(system: Any, url: str, label: str) -> list[str]:
    """Names that a page links to and that lie directly or further below it, with ``/`` behind those of folders.

    A server's list of a folder has them, and much else: ways to sort it, the folder above, other places.
    """
    async with await _get(system, url, {}) as response:
        response.raise_for_status()
        if not response.headers.get("Content-Type", "").startswith(("text/html", "application/xhtml")):
            return []
        page = bytearray()
        async for piece in response.content.iter_any():
            page += piece
            if len(page) > _PAGE:
                raise DataError(f"{label} is not a list of files: it has more than {readable_size(_PAGE)}")
        base = str(response.url)
    parser = _Links()
    parser.feed(page.decode("utf-8", "replace"))
    here = urlsplit(base)
    names = []
    for link in parser.links:
        with suppress(ValueError):
            target = urlsplit(urljoin(base, link))
            below = target.path.removeprefix(here.path)
            if target.netloc == here.netloc and target.query in ("", here.query) and below not in ("", target.path):
                names.append(unquote(below))
    return list(dict.fromkeys(names))


class _Links(HTMLParser):
    """What a page links to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link."""
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]


def _need_size(label: str, size: int, wanted: Range) -> None:
    if wanted.whole is not None and size != wanted.whole:
        raise CutShort(f"{label} has {size:,} bytes, not the expected {wanted.whole:,}")


async def _get(system: Any, url: str, headers: dict[str, str]) -> Any:
    session = await system.set_session()
    options = dict(system.kwargs)
    # identity: bytes packed for the way could not be counted
    options["headers"] = {**options.get("headers", {}), "Accept-Encoding": "identity", **headers}
    return session.get(system.encode_url(url), **options)
