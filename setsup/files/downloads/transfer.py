"""Download one address into a file, and resume an earlier attempt."""

import json
import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from setsup.files.atomic import clear, written
from setsup.files.disk import disk_errors, readable_size
from setsup.files.downloads.addresses import AddressCheck, check_addresses
from setsup.progress import progress

if TYPE_CHECKING:
    import requests

__all__ = ["MirrorError", "drop_part", "part_address", "part_size", "transfer"]

_log = logging.getLogger("setsup")
_CHUNK = 1 << 16
_TIMEOUTS = (10.0, 60.0)  # seconds to connect, and between two pieces
_WAITS = (0.5, 2.0)  # seconds before the second and third attempt that bring nothing
_WHOLE = 3  # times that a mirror may begin with the first byte before another one is asked
_PASSING = (408, 425, 429, 500, 502, 503, 504)  # answers that may be another one in a moment
# possessive: without it a page of nothing but comments takes exponential time
_PAGE = re.compile(rb"(?i)\s*+(?:<!--.*?-->\s*+)*+<(?:!doctype\s+html|html|head|body|script)\b", re.DOTALL)


class MirrorError(Exception):
    """What went wrong with one mirror, in a few words; `again` where a new attempt may help."""

    def __init__(self, reason: str, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again


@dataclass(frozen=True, slots=True)
class _Source:
    """What a part was received from; `version` is the ETag or date by which a server knows it again."""

    url: str
    version: str | None = None
    total: int | None = None


def transfer(
    url: str,
    part: Path,
    *,
    size: int | None = None,
    exact: bool = True,
    check: AddressCheck | None = None,
    limit: int | None = None,
) -> bool:
    """Receive `url` into `part`; returns whether it was put together from several answers.

    Dropped connections are retried: without limit where the rest is sent each time, else a few times. An earlier part
    of the same version is continued (HTTP ranges); where the server cannot, or holds another version by now, the part
    starts again, but not before the server has begun to send something that fits. `check` is called with each address
    that the server redirects to, and may raise. More than `limit` bytes are refused.
    """
    import requests

    most, fruitless, whole = part_size(part), 0, 0
    with requests.Session() as session:
        session.headers.update({"Accept-Encoding": "identity", "User-Agent": "setsup"})
        if check is not None:
            check_addresses(session, check)
        while not _complete(part, url):
            try:
                with _answer(session, url, part) as (response, start):
                    whole += not start
                    _store(response, url, part, start, size, exact, limit)
                return start > 0
            except MirrorError as error:
                got = part_size(part)
                # what is dropped and received once more is no gain
                fruitless = 0 if got > most else fruitless + 1
                most = max(most, got)
                if not error.again or fruitless > len(_WAITS) or whole == _WHOLE:
                    raise
                _log.info("%s: %s; trying again", url, error)
            time.sleep(_WAITS[max(fruitless - 1, 0)])
    return True


def part_address(part: Path) -> str | None:
    """Tell from which address a part was received, None where there is no part."""
    return _read_note(part).url or None if part_size(part) else None


def part_size(part: Path) -> int:
    """Count the bytes that were received, 0 where there is no part."""
    return part.stat().st_size if os.path.isfile(part) else 0


def drop_part(part: Path) -> None:
    """Remove a part and its note, under the lock of the release."""
    with disk_errors(part):
        part.unlink(missing_ok=True)
        _note(part).unlink(missing_ok=True)
        clear(_note(part))


def _complete(part: Path, url: str) -> bool:
    """Whether an earlier call has received all of `url`."""
    return 0 < _received(part, url) == (_read_note(part).total or 0)


def _received(part: Path, url: str) -> int:
    """Count the bytes behind which `url` can be continued."""
    source = _read_note(part)
    return part_size(part) if source.url == url and source.version else 0


@contextmanager
def _answer(session: "requests.Session", url: str, part: Path) -> Iterator[tuple["requests.Response", int]]:
    """Make one request; yields the answer, and the byte at which its body begins."""
    source, start = _read_note(part), _received(part, url)
    asked = {"Range": f"bytes={start}-", "If-Range": source.version or ""} if start else {}
    with _web_errors(), session.get(url, headers=asked, stream=True, timeout=_TIMEOUTS) as response:
        if response.status_code == 206 and start:
            _check_range(response, part, source, start)
        elif response.status_code == 416:
            drop_part(part)
            raise MirrorError("now returns a smaller file than was received before", again=True)
        elif response.status_code == 200:
            start = 0
        else:
            reason = f"HTTP {response.status_code} {response.reason or ''}".strip()
            raise MirrorError(f"returned {reason}", again=response.status_code in _PASSING)
        yield response, start


def _store(
    response: "requests.Response",
    url: str,
    part: Path,
    start: int,
    size: int | None,
    exact: bool,
    limit: int | None,
) -> None:
    """Write the body of an answer, which begins at byte `start`, behind the part."""
    announced = response.headers.get("Content-Length", "")
    total = start + int(announced) if re.fullmatch(r"\d{1,18}", announced) else None
    # raw, not iter_content: that would unpack what a server labels as packed in transit
    pieces = response.raw.stream(_CHUNK, decode_content=False)
    first = next(pieces, b"")
    if not start:
        _refuse_page(response, first, part)
    if exact and size is not None and total not in (None, size):
        raise MirrorError(f"has {total:,} bytes, not the expected {size:,}")
    if limit is not None and total is not None and total > limit:
        raise MirrorError(f"has {total:,} bytes, more than the limit of {limit:,}")
    expected = total if total is not None else size if exact or size is None else 2 * size
    limit = expected if expected is not None else limit
    got = start
    with _opened(part, start) as out, progress(total or size, part.stem, "B") as advance:
        if not start:
            _write_note(part, _Source(url, _version(response), total))
        advance(start)
        while first:
            got += len(first)
            if limit is not None and got > limit:
                raise MirrorError(f"sent more than the expected {limit:,} bytes")
            out.write(first)
            advance(len(first))
            first = next(pieces, b"")
    if total is not None and got < total:
        raise MirrorError(f"the connection dropped after {readable_size(got)} of {readable_size(total)}", again=True)


@contextmanager
def _opened(part: Path, start: int) -> Iterator[BinaryIO]:
    """Open a part to write behind its first `start` bytes; what was received is kept when the body is left."""
    with disk_errors(part), part.open("ab" if start else "wb") as out:
        yield out


def _check_range(response: "requests.Response", part: Path, source: _Source, start: int) -> None:
    """Make sure that the rest which a server sends belongs to the bytes that are there."""
    match = re.fullmatch(r"bytes (\d{1,18})-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip())
    fits = (
        match is not None
        and int(match[1]) == start
        and (source.total is None or match[2] in ("*", str(source.total)))
        and _version(response) in (None, source.version)
    )
    if not fits:
        drop_part(part)
        raise MirrorError("sent a different part of the file than requested", again=True)


def _refuse_page(response: "requests.Response", first: bytes, part: Path) -> None:
    """Recognise a web page (a quota, a log-in, a consent form) that comes in place of a file."""
    if part.stem.lower().endswith((".html", ".htm")):
        return
    kind = response.headers.get("Content-Type", "").lower()
    named = kind.startswith(("text/html", "application/xhtml")) and b"\0" not in first
    if named or _PAGE.match(first.removeprefix(b"\xef\xbb\xbf")):
        match = re.search(rb"(?is)<title[^>]*>(.*?)</title>", first)
        title = " ".join(match[1].decode("utf-8", "replace").split())[:80] if match else ""
        raise MirrorError(
            "returned a web page" + (f' ("{title}")' if title.isprintable() and title else "") + ", not the file"
        )


@contextmanager
def _web_errors() -> Iterator[None]:
    """Say in a few words what the layers of the network report."""
    import requests
    import urllib3

    try:
        yield
    except requests.ConnectTimeout as error:
        raise MirrorError(f"did not respond within {_TIMEOUTS[0]:.0f} s") from error
    except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
        raise MirrorError(f"sent nothing for {_TIMEOUTS[1]:.0f} s", again=True) from error
    except requests.exceptions.SSLError as error:
        raise MirrorError("has a certificate that cannot be trusted") from error
    except requests.ConnectionError as error:
        match = re.search(r"\[Errno -?\d+\] ([\w ]+)", str(error))
        raise MirrorError(f"cannot be reached ({match[1] if match else 'connection lost'})", again=True) from error
    except urllib3.exceptions.ProtocolError as error:
        raise MirrorError("the connection dropped", again=True) from error
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise MirrorError(f"failed ({type(error).__name__}: {error})") from error


def _version(response: "requests.Response") -> str | None:
    """Give what tells one version from another: a strong ETag, else the date of the last change."""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified")


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _write_note(part: Path, source: _Source) -> None:
    with written(_note(part)) as file:
        file.write_text(json.dumps(asdict(source)), encoding="utf-8")


def _read_note(part: Path) -> _Source:
    """Read what a part was received from; an empty source where that is not known."""
    try:
        noted = json.loads(_note(part).read_text(encoding="utf-8"))
        source = _Source(str(noted["url"]), noted["version"], noted["total"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return _Source("")
    known = isinstance(source.version, str | None) and isinstance(source.total, int | None)
    return source if known else _Source("")
