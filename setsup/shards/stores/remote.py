"""Files under an address of a store, through fsspec: S3, Google Cloud Storage, the web, the Hugging Face Hub, memory ….

What a store refuses or fails to do becomes one sentence (:mod:`setsup.shards.stores.errors`); what may pass is tried
again, after waits that grow.
"""

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

from setsup.errors import DataError, need
from setsup.files import readable_size, written
from setsup.progress import progress
from setsup.shards.stores.errors import CutShort, Failure, NoRanges, NotThere, ShortRead, failure, traced
from setsup.shards.stores.file_system import S3, SECONDS, WEB, FileSystem, file_system, web_timeout
from setsup.shards.stores.local import below
from setsup.shards.stores.ranges import AT_ONCE
from setsup.shards.stores.store import Range, join_address
from setsup.shards.stores.web import web_links, web_range, web_size

__all__ = ["WAITS", "RemoteStore", "without_secrets"]

Result = TypeVar("Result")

WAITS = (0.5, 2.0, 6.0)
"""Seconds before the second, third and fourth attempt; there are but two at a store that has never answered."""

SILENCE = 10.0
"""Seconds without an answer after which the log says so."""

_PIECE = 8 << 20  # bytes that are copied at a time
_PIECES = 4  # of them under way
_RATE = 50_000.0  # bytes a second: a request may take so much longer for what it brings
_DEPTH, _LINKS = 8, 1_000_000  # of a web server's lists: folders within folders, and files
_UNLISTED = "index a copy on a disk with `setsup index FOLDER --out INDEX`, and open the address with that index"
_WHOLE = (
    "s3",
    "s3a",
    "gs",
    "gcs",
    "az",
    "abfs",
    "abfss",
    "oci",
    "oss",
    "hf",
    "memory",
)  # written: a file is there as a whole or not at all
_ONCE = ("gs", "gcs", "hf", "memory")  # asked once: their libraries try again by themselves, or nothing can pass
_THREADS = 16
_LIBRARIES = {"gcs": ("gcsfs",), "gs": ("gcsfs",), "hf": ("huggingface_hub",)}
_LIBRARIES |= dict.fromkeys(S3, ("s3fs",)) | dict.fromkeys(WEB, ("aiohttp",))
_log = logging.getLogger("setsup")


class RemoteStore:
    """Files under an address that fsspec knows."""

    folder: Path | None = None

    def __init__(self, address: str, options: Mapping[str, Any] | None = None) -> None:
        self._address, self._options = address, dict(options or {})
        self._scheme = address.partition("::")[0].partition("://")[0].lower()
        self._opened: FileSystem | None = None
        self._answered = 0  # requests so far
        self.url = without_secrets(address)
        need(f"{self.url} needs", "fsspec", *_LIBRARIES.get(self._scheme, ()))
        import fsspec

        try:
            fsspec.get_filesystem_class(self._scheme)
        except ValueError as error:
            raise DataError(
                f"{self.url} is no address that can be opened ({error}): a folder, s3://…, gs://…, https://… or hf://… "
                "was expected"
            ) from None
        except ImportError as error:
            raise DataError(f"{self.url} needs a library that cannot be imported: {error}") from None
        if self._scheme in (*S3, *WEB, "gs", "gcs") and re.search(r"(^|:)[^:/]+://(/|$)", self.url):
            what = "server" if self._scheme in WEB else "bucket"
            raise DataError(
                f"{self.url} names no {what}; an address such as {self._scheme}://{what}/folder was expected"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._address, self._options)

    def __repr__(self) -> str:
        return f"RemoteStore({self.url!r})"

    # -- reading -------------------------------------------------------------------------------------------------------

    def read(self, name: str, limit: int) -> bytes:
        """Content of a file of at most so many bytes."""
        size = self._need_size(name)
        if size > limit:
            raise DataError(
                f"{self._said(name)} has {readable_size(size)}, more than the {readable_size(limit)} that such a file "
                "may have: it is another file, or damaged"
            )
        return self.ranges([Range(name, 0, size)])[0]

    def ranges(self, wanted: Sequence[Range]) -> list[bytes]:
        """Bytes of files, in the order asked for, several at once."""
        asked = [one for one in wanted if one.stop > one.start]
        opened = self._open()
        if opened.system.async_impl:
            paths = {name: self._path(opened, name) for name in {one.name for one in asked}}
            requests = [partial(self._part, opened, paths[one.name], one) for one in asked]
            found = self._at_once(
                [(one.name, one.stop - one.start, request) for one, request in zip(asked, requests, strict=True)]
            )
        elif opened.turn is None and len(asked) > 1:
            with ThreadPoolExecutor(min(_THREADS, len(asked))) as pool:
                found = list(pool.map(self._part_by_itself, asked))
        else:
            found = [self._part_by_itself(one) for one in asked]
        contents = iter(found)
        return [next(contents) if one.stop > one.start else b"" for one in wanted]

    def size(self, name: str) -> int | None:
        """Bytes of a file, None where there is none."""
        opened = self._open()
        path = self._path(opened, name)
        if self._scheme in WEB:
            found: int | None = self._at_once([(name, 0, partial(web_size, opened.system, path, self._said(name)))])[0]
            return found
        about = self._tried(name, lambda: self._anew(opened, path).info(path), missing=True)
        return None if about is None or about["type"] != "file" else int(about["size"])

    def names(self) -> list[str]:
        """Names of all files under the address, in order; folders within are entered, hidden ones left out."""
        found = self._linked() if self._scheme in WEB else self._listed()
        return sorted(name for name in found if not any(part.startswith(".") for part in name.split("/")))

    def get(self, name: str, path: Path) -> None:
        """Copy a file to the disk, whole or not at all."""
        size = self._need_size(name)
        pieces = [Range(name, start, min(start + _PIECE, size), size) for start in range(0, size, _PIECE)]
        with written(path) as fresh, progress(size, name, "B") as advance:
            try:
                with fresh.open("wb") as file:
                    for first in range(0, len(pieces), _PIECES):
                        for content in self.ranges(pieces[first : first + _PIECES]):
                            file.write(content)
                            advance(len(content))
            except NoRanges:
                opened = self._open()
                how = {"timeout": web_timeout()} if self._scheme in WEB else {}
                self._tried(name, lambda: opened.system.get_file(self._path(opened, name), str(fresh), **how))
                if fresh.stat().st_size != size:
                    raise CutShort(f"{self._said(name)} came with fewer bytes than it has; fetch it again") from None

    # -- writing -------------------------------------------------------------------------------------------------------

    def put(self, name: str, path: Path) -> None:
        """Move a finished local file there: under the name lies the whole of it or nothing."""
        opened = self._open()
        target = self._writable(opened, name)
        if self._scheme == "memory":  # which shows a file that grows
            opened.system.pipe_file(target, path.read_bytes())
        else:
            self._tried(name, lambda: opened.system.put_file(str(path), target))
        path.unlink()

    def put_bytes(self, name: str, content: bytes, *, fresh: bool = False) -> bool:
        """Write a small file at once; with `fresh` only where there is none. Whether it was written."""
        opened = self._open()
        target = self._writable(opened, name)
        if not fresh:
            self._tried(name, lambda: opened.system.pipe_file(target, content))
            return True
        # asked first too, since there are stores that know no such condition, and write
        if self.size(name) is not None:
            return False
        return self._tried(name, lambda: _created(opened.system, target, content), taken=True) is not None

    def remove(self, names: Sequence[str]) -> None:
        """Remove files; those that are not there do not matter."""
        opened = self._open()
        paths = {name: self._writable(opened, name) for name in names}
        if opened.system.async_impl:
            self._at_once([(name, 0, partial(_removed, opened.system, path)) for name, path in paths.items()])
        else:
            for name, path in paths.items():
                self._tried(name, partial(opened.system.rm_file, path), missing=True)

    # -- one request ---------------------------------------------------------------------------------------------------

    async def _part(self, opened: FileSystem, path: str, one: Range) -> bytes:
        """Bytes of a file, asked for once."""
        if self._scheme in WEB:
            return await web_range(opened.system, path, one, self._said(one.name))
        if opened.signed is not None:
            content: bytes = await opened.signed.read(path, one, self._said(one.name))
        else:
            content = await opened.system._cat_file(path, start=one.start, end=one.stop)
        return self._whole(content, one)

    def _part_by_itself(self, one: Range) -> bytes:
        """Bytes of a file from a library without an event loop."""
        opened = self._open()
        path = self._path(opened, one.name)
        # the Hub's files would read ahead
        how = {"cache_type": "none"} if self._scheme == "hf" else {}
        request = partial(opened.system.cat_file, path, start=one.start, end=one.stop, **how)
        return self._tried(one.name, lambda: self._whole(request(), one)) or b""

    def _whole(self, content: bytes, one: Range) -> bytes:
        expected = one.stop - one.start
        if len(content) < expected:
            raise ShortRead
        if len(content) > expected:
            raise NoRanges(f"{self._said(one.name)} cannot be read in parts: the store sends more than it is asked for")
        return content

    # -- many requests, and again --------------------------------------------------------------------------------------

    def _at_once(self, requests: Sequence[tuple[str, int, Callable[[], Awaitable[Any]]]]) -> list[Any]:
        """Outcomes of requests, in order: the name of the file, the bytes to come, and what asks for them.

        No more than :data:`AT_ONCE` are under way. The first that fails for good ends all.
        """
        found: list[Any] = [None] * len(requests)
        waiting = iter(range(len(requests)))

        async def work() -> None:
            for place in waiting:
                name, size, request = requests[place]
                found[place] = await self._tried_async(name, size, request)

        async def all_of_them() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(AT_ONCE, len(requests))):
                    group.create_task(work())

        running = asyncio.run_coroutine_threadsafe(all_of_them(), self._open().system.loop)
        try:
            self._wait(running)
        except BaseExceptionGroup as errors:  # of which the first is as good as any
            raise errors.exceptions[0] from errors.exceptions[0].__cause__
        except BaseException:
            running.cancel()
            raise
        return found

    def _wait(self, running: Future[None]) -> None:
        """Wait for requests; where none is answered for a while, say so."""
        said = False
        while True:
            before = self._answered
            try:
                return running.result(None if said else SILENCE)
            except TimeoutError:
                if running.done():
                    raise
            if self._answered == before:
                said = True
                _log.warning(
                    "%s has not answered for %.0f s; it is given up after about %.0f s",
                    *(self.url, SILENCE, (len(WAITS) + 1 if before else 2) * SECONDS),
                )

    async def _tried_async(self, name: str, size: int, request: Callable[[], Awaitable[Result]]) -> Result:
        for wait in self._waits():
            try:
                async with asyncio.timeout(SECONDS + size / _RATE):
                    found = await request()
                self._answered += 1
                return found
            except Exception as error:
                seconds = self._again(name, failure(error, self._scheme), wait, error)
            await asyncio.sleep(seconds)
        raise AssertionError  # pragma: no cover - the last wait is None

    def _tried(
        self, name: str, request: Callable[[], Result], missing: bool = False, taken: bool = False
    ) -> Result | None:
        """Outcome of a request to the library; None where a file is missing, or there, and that is an answer."""
        turn = self._open().turn
        for wait in self._waits():
            try:
                with turn or nullcontext():
                    done = request()
                self._answered += 1
                return done
            except Exception as error:
                found = failure(error, self._scheme)
                if (missing and found.missing) or (taken and found.taken):
                    return None
                seconds = self._again(name, found, wait, error)
            time.sleep(seconds)
        raise AssertionError  # pragma: no cover - the last wait is None

    def _again(self, name: str, found: Failure, wait: float | None, error: Exception) -> float:
        """Seconds after which a request is tried again; or the error, where that is of no use."""
        once = found.once or (found.silent and not self._answered)
        if wait is None or not found.again or (once and wait != WAITS[0]):
            raise self._refused(name, found, error) from (error if found.unknown else None)
        _log.info("%s %s; trying again in %.1f s", self._said(name), found.said, wait)
        return wait

    def _waits(self) -> Iterator[float | None]:
        yield from () if self._scheme in _ONCE else WAITS
        yield None

    def _refused(self, name: str, found: Failure, error: Exception) -> DataError:
        if _log.isEnabledFor(logging.DEBUG):  # the sentence says it all, but not to who looks for a fault in a library
            _log.debug("%s: %s", self._said(name), traced(error))
        kind = CutShort if found.short else NotThere if found.missing else DataError
        return kind(f"{self._said(name)} {found.said}")

    # -- names ---------------------------------------------------------------------------------------------------------

    def _listed(self) -> list[str]:
        opened = self._open()
        listed = self._tried("", lambda: self._anew(opened, opened.root).find(opened.root), missing=True) or []
        top = opened.root.rstrip("/") + "/"
        return [path.removeprefix(top) for path in listed if path.startswith(top) and not path.endswith("/")]

    def _anew(self, opened: FileSystem, path: str) -> Any:
        """The library, having forgotten what it knew of a folder: others may have changed it."""
        if self._scheme == "hf":  # all others were told to remember nothing
            opened.system.invalidate_cache(path)
        return opened.system

    def _linked(self) -> list[str]:
        """Files that a web server's lists of its folders link to."""
        opened = self._open()
        waiting, seen, files = [""], {""}, []
        while waiting:
            folder = waiting.pop()
            page = self._join(opened.root, folder)
            for name in self._at_once([(folder, 0, partial(web_links, opened.system, page, self._said(folder)))])[0]:
                found = folder + name
                if found in seen:
                    continue
                seen.add(found)
                if not name.endswith("/"):
                    files.append(found)
                elif found.count("/") <= _DEPTH:
                    waiting.append(found)
                if len(seen) > _LINKS:
                    raise DataError(f"{self.url} links to more than {_LINKS:,} files; {_UNLISTED}")
        if not files:
            raise DataError(f"{self.url} has no list of its files; {_UNLISTED}")
        return files

    # -- addresses -----------------------------------------------------------------------------------------------------

    def _open(self) -> FileSystem:
        """Give the file system of this process."""
        opened = self._opened
        if opened is None or opened.process != os.getpid():
            try:
                opened = file_system(self._address, self._scheme, self._options)
            except Exception as error:
                found = failure(error, self._scheme)
                raise self._refused("", found, error) from (error if found.unknown else None)
            self._opened = opened
        return opened

    def _path(self, opened: FileSystem, name: str) -> str:
        return self._join(opened.root, below(name, self.url))

    def _join(self, root: str, name: str) -> str:
        """Address of a file for the library; of the web's, a query stays at the end."""
        if self._scheme not in WEB:
            return f"{root.rstrip('/')}/{name}"
        parts = urlsplit(root)
        return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{quote(name)}"))

    def _writable(self, opened: FileSystem, name: str) -> str:
        if self._scheme not in _WHOLE:
            raise DataError(
                f"{self._said(name)} cannot be written: {self._scheme} is for reading; write to a folder or a bucket"
            )
        return self._path(opened, name)

    def _need_size(self, name: str) -> int:
        size = self.size(name)
        if size is None:
            raise NotThere(f"{self._said(name)} is not there; check the address, or write it anew")
        return size

    def _said(self, name: str) -> str:
        return join_address(self.url, name) if name else self.url


def without_secrets(address: str) -> str:
    """Address without a user's name and password, and without what follows a question mark, as signatures do.

    Examples
    --------
    >>> without_secrets("https://me:word@host/shards?sig=1234")
    'https://host/shards'

    """
    return "::".join(_bare(part) for part in address.split("::"))


def _bare(address: str) -> str:
    try:
        urlsplit(address)
    except ValueError as error:
        raise DataError(f"{address.partition('?')[0].rpartition('@')[2]} is no address: {error}") from None
    # by hand: put together again from its parts, an address without a server would be another one
    scheme, marks, rest = re.sub(r"[?#].*|[\t\r\n]", "", address, flags=re.DOTALL).rpartition("://")
    server, slash, path = rest.partition("/")
    return f"{scheme}{marks}{server.rpartition('@')[2]}{slash}{path}"


def _created(system: Any, path: str, content: bytes) -> bool:
    """Write a file where there is none; FileExistsError where there is."""
    try:
        system.pipe_file(path, content, mode="create")
    except (NotImplementedError, TypeError):  # a library that knows no such condition
        system.pipe_file(path, content)
    return True


async def _removed(system: Any, path: str) -> None:
    with suppress(FileNotFoundError):
        await system._rm_file(path)
