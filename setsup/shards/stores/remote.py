"""Files under an address of a store, through fsspec: S3, Google Cloud Storage, the web, the Hugging Face Hub, memory ….

Failures become one sentence (:mod:`setsup.shards.stores.errors`); temporary ones are retried
(:mod:`setsup.shards.stores.attempts`).
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

from setsup.errors import DataError, require_modules
from setsup.files import readable_size, written
from setsup.progress import progress
from setsup.shards.stores.attempts import Attempts, Request
from setsup.shards.stores.errors import CutShort, NoRanges, NotThere, ShortRead
from setsup.shards.stores.file_system import S3, WEB, FileSystem, open_file_system, web_timeout
from setsup.shards.stores.local import below
from setsup.shards.stores.store import Range, join_address
from setsup.shards.stores.web import web_links, web_range, web_size

__all__ = ["RemoteStore", "without_secrets"]

Result = TypeVar("Result")

_PIECE = 8 << 20  # bytes that are copied at a time
_PIECES = 4  # of them under way
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
_THREADS = 16
_LIBRARIES = {"gcs": ("gcsfs",), "gs": ("gcsfs",), "hf": ("huggingface_hub",)}
_LIBRARIES |= dict.fromkeys(S3, ("s3fs",)) | dict.fromkeys(WEB, ("aiohttp",))


class RemoteStore:
    """Files under an address that fsspec knows."""

    folder: Path | None = None

    def __init__(self, address: str, options: Mapping[str, Any] | None = None) -> None:
        self._address, self._options = address, dict(options or {})
        self._scheme = address.partition("::")[0].partition("://")[0].lower()
        self._opened: FileSystem | None = None
        self.url = without_secrets(address)
        self._attempts = Attempts(self.url, self._scheme)
        require_modules(f"{self.url} needs", "fsspec", *_LIBRARIES.get(self._scheme, ()))
        import fsspec

        try:
            fsspec.get_filesystem_class(self._scheme)
        except ValueError as error:
            raise DataError(
                f"{self.url} cannot be opened ({error}): expected a folder, s3://…, gs://…, https://… or hf://…"
            ) from None
        except ImportError as error:
            raise DataError(f"{self.url} requires a library that cannot be imported: {error}") from None
        if self._scheme in (*S3, *WEB, "gs", "gcs") and re.search(r"(^|:)[^:/]+://(/|$)", self.url):
            what = "server" if self._scheme in WEB else "bucket"
            raise DataError(
                f"{self.url} contains no {what}; expected an address such as {self._scheme}://{what}/folder"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._address, self._options)

    def __repr__(self) -> str:
        return f"RemoteStore({self.url!r})"

    # -- reading -------------------------------------------------------------------------------------------------------

    def read(self, name: str, limit: int) -> bytes:
        """Content of a file of at most `limit` bytes."""
        size = self._need_size(name)
        if size > limit:
            raise DataError(
                f"{self._at(name)} has {readable_size(size)}, more than {readable_size(limit)}, the maximum for this "
                "file, so it is a different file or is damaged; write it again"
            )
        return self.ranges([Range(name, 0, size)])[0]

    def ranges(self, wanted: Sequence[Range]) -> list[bytes]:
        """Bytes of files, in the order asked for, several at once."""
        nonempty = [part for part in wanted if part.stop > part.start]
        opened = self._open()
        if opened.system.async_impl:
            paths = {name: self._path(opened, name) for name in {part.name for part in nonempty}}
            parts = [(part, partial(self._part, opened, paths[part.name], part)) for part in nonempty]
            read = self._gather([Request(part.name, part.stop - part.start, start) for part, start in parts])
        elif opened.turn is None and len(nonempty) > 1:
            with ThreadPoolExecutor(min(_THREADS, len(nonempty))) as pool:
                read = list(pool.map(self._part_by_itself, nonempty))
        else:
            read = [self._part_by_itself(part) for part in nonempty]
        contents = iter(read)
        return [next(contents) if part.stop > part.start else b"" for part in wanted]

    def size(self, name: str) -> int | None:
        """Size of a file in bytes; None if it does not exist."""
        opened = self._open()
        path = self._path(opened, name)
        if self._scheme in WEB:
            length: int | None = self._gather(
                [Request(name, 0, partial(web_size, opened.system, path, self._at(name)))]
            )[0]
            return length
        about = self._call(name, lambda: self._refreshed(opened, path).info(path), missing=True)
        return None if about is None or about["type"] != "file" else int(about["size"])

    def names(self) -> list[str]:
        """Names of all files under the address, in order; folders within are entered, hidden ones left out."""
        paths = self._linked() if self._scheme in WEB else self._listed()
        return sorted(path for path in paths if not any(part.startswith(".") for part in path.split("/")))

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
                self._call(name, lambda: opened.system.get_file(self._path(opened, name), str(fresh), **how))
                if (received := fresh.stat().st_size) != size:
                    raise CutShort(
                        f"{self._at(name)} was not received correctly: got {received:,} of {size:,} bytes; fetch it "
                        "again"
                    ) from None

    # -- writing -------------------------------------------------------------------------------------------------------

    def put(self, name: str, path: Path) -> None:
        """Move a finished local file there: under the name lies the whole of it or nothing."""
        opened = self._open()
        target = self._writable(opened, name)
        if self._scheme == "memory":  # which shows a file that grows
            opened.system.pipe_file(target, path.read_bytes())
        else:
            self._call(name, lambda: opened.system.put_file(str(path), target))
        path.unlink()

    def put_bytes(self, name: str, content: bytes, *, fresh: bool = False) -> bool:
        """Write a small file; with `fresh` only if there is none. Returns whether it was written."""
        opened = self._open()
        target = self._writable(opened, name)
        if not fresh:
            self._call(name, lambda: opened.system.pipe_file(target, content))
            return True
        # asked first too, since there are stores that know no such condition, and write
        if self.size(name) is not None:
            return False
        return self._call(name, lambda: _create(opened.system, target, content), exists=True) is not None

    def remove(self, names: Sequence[str]) -> None:
        """Remove files; those that are not there do not matter."""
        opened = self._open()
        paths = {name: self._writable(opened, name) for name in names}
        if opened.system.async_impl:
            self._gather([Request(name, 0, partial(_remove, opened.system, path)) for name, path in paths.items()])
        else:
            for name, path in paths.items():
                self._call(name, partial(opened.system.rm_file, path), missing=True)

    # -- one request ---------------------------------------------------------------------------------------------------

    async def _part(self, opened: FileSystem, path: str, part: Range) -> bytes:
        """Bytes of a file, asked for once."""
        if self._scheme in WEB:
            return await web_range(opened.system, path, part, self._at(part.name))
        if opened.signed is not None:
            content: bytes = await opened.signed.read(path, part, self._at(part.name))
        else:
            content = await opened.system._cat_file(path, start=part.start, end=part.stop)
        return self._whole(content, part)

    def _part_by_itself(self, part: Range) -> bytes:
        """Bytes of a file from a library without an event loop."""
        opened = self._open()
        path = self._path(opened, part.name)
        # the Hub's files would read ahead
        how = {"cache_type": "none"} if self._scheme == "hf" else {}
        request = partial(opened.system.cat_file, path, start=part.start, end=part.stop, **how)
        return self._call(part.name, lambda: self._whole(request(), part)) or b""

    def _whole(self, content: bytes, part: Range) -> bytes:
        expected = part.stop - part.start
        if len(content) < expected:
            raise ShortRead
        if len(content) > expected:
            raise NoRanges(
                f"{self._at(part.name)} cannot be read in parts: the store returned more bytes than requested; copy "
                "the files to a local folder and open that folder"
            )
        return content

    # -- names ---------------------------------------------------------------------------------------------------------

    def _listed(self) -> list[str]:
        opened = self._open()
        listed = self._call("", lambda: self._refreshed(opened, opened.root).find(opened.root), missing=True) or []
        top = opened.root.rstrip("/") + "/"
        return [path.removeprefix(top) for path in listed if path.startswith(top) and not path.endswith("/")]

    def _refreshed(self, opened: FileSystem, path: str) -> Any:
        """The library's file system without its cache of a folder, which others may have changed."""
        if self._scheme == "hf":  # all others cache nothing
            opened.system.invalidate_cache(path)
        return opened.system

    def _linked(self) -> list[str]:
        """Files that a web server's lists of its folders link to."""
        opened = self._open()
        waiting, seen, files = [""], {""}, []
        while waiting:
            folder = waiting.pop()
            page = self._join(opened.root, folder)
            request = Request(folder, 0, partial(web_links, opened.system, page, self._at(folder)))
            for name in self._gather([request])[0]:
                path = folder + name
                if path in seen:
                    continue
                seen.add(path)
                if not name.endswith("/"):
                    files.append(path)
                elif path.count("/") <= _DEPTH:
                    waiting.append(path)
                if len(seen) > _LINKS:
                    raise DataError(f"{self.url} links to more than {_LINKS:,} files; {_UNLISTED}")
        if not files:
            raise DataError(f"{self.url} does not list its files; {_UNLISTED}")
        return files

    # -- requests ------------------------------------------------------------------------------------------------------

    def _call(self, name: str, request: Callable[[], Result], **answers: bool) -> Result | None:
        return self._attempts.call(name, request, self._open().turn, **answers)

    def _gather(self, requests: Sequence[Request]) -> list[Any]:
        return self._attempts.gather(requests, self._open().system.loop)

    # -- addresses -----------------------------------------------------------------------------------------------------

    def _open(self) -> FileSystem:
        """Give the file system of this process."""
        opened = self._opened
        if opened is None or opened.process != os.getpid():
            try:
                opened = open_file_system(self._address, self._scheme, self._options)
            except Exception as error:
                self._attempts.refuse("", error)
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
                f"cannot write {self._at(name)}: {self._scheme} is read-only; write to a folder or a bucket"
            )
        return self._path(opened, name)

    def _need_size(self, name: str) -> int:
        size = self.size(name)
        if size is None:
            raise NotThere(f"{self._at(name)} does not exist; check the address, or write it again")
        return size

    def _at(self, name: str) -> str:
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
        raise DataError(f"{address.partition('?')[0].rpartition('@')[2]} is not a valid address: {error}") from None
    # by hand: put together again from its parts, an address without a server would be another one
    scheme, marks, rest = re.sub(r"[?#].*|[\t\r\n]", "", address, flags=re.DOTALL).rpartition("://")
    server, slash, path = rest.partition("/")
    return f"{scheme}{marks}{server.rpartition('@')[2]}{slash}{path}"


def _create(system: Any, path: str, content: bytes) -> bool:
    """Write a file where there is none; FileExistsError where there is."""
    try:
        system.pipe_file(path, content, mode="create")
    except (NotImplementedError, TypeError):  # a library that knows no such condition
        system.pipe_file(path, content)
    return True


async def _remove(system: Any, path: str) -> None:
    with suppress(FileNotFoundError):
        await system._rm_file(path)
