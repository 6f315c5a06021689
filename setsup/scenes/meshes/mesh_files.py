"""Mesh files through trimesh: nothing is read outside the model's folder, damage is found, what is missing is noted."""

import io
import logging
import os
import posixpath
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from setsup.errors import DamagedFile, DataError, advice, imported
from setsup.files.archives.names import shown
from setsup.files.archives.plain_files import read_file
from setsup.scenes.meshes.formats.mtl import map_options

__all__ = [
    "LARGEST_MESH",
    "MOST_PIXELS",
    "Assets",
    "FileAssets",
    "Read",
    "inside",
    "read_mesh",
    "unread",
    "why",
]

LARGEST_MESH = 1 << 32
"""Bytes that a mesh file may have."""

MOST_PIXELS = 80_000_000
"""Pixels that a texture may have."""

Read = Callable[[str, int], bytes | None]
"""``read(path, most)`` gives the content of a file, None where there is none; a DataError where it is longer."""

_LARGEST_ASSET = 1 << 30
_OBJECT = re.compile(r"<[\w.]+ object at 0x[0-9a-fA-F]+>")
_IMAGES = (".png", ".jpg", ".jpeg", ".webp")
_LONGEST_HEAD = 1 << 14
_TOP = "model"  # what the folder that no name may leave is called here


class Assets:
    """What trimesh asks for materials and textures: reads them, and notes what it cannot give.

    Attributes
    ----------
    missing : list of str
        A sentence for each file that could not be had.

    """

    def __init__(
        self,
        read: Read,
        folder: str,
        top: str,
        check: Callable[[bytes, str], object] | None = None,
        hint: str = "",
    ) -> None:
        self._read, self._folder, self._top, self._hint = read, folder, top, hint
        self._check = check or _check_image
        self.missing: list[str] = []

    def __getitem__(self, name: str) -> bytes:
        """Give a list of materials, or the numbers or an image of a glTF file."""
        return self.get(name) if name.lower().endswith(_IMAGES) else self._content(name)

    def get(self, name: str) -> bytes:
        """Give a texture, which must be an image."""
        content = self._content(name)
        try:
            self._check(content, f"the texture {name!r}")
        except DataError as error:
            raise self._miss(str(error)) from error
        return content

    def libraries(self, line: str) -> list[bytes]:
        """Give the lists of materials that a line names: one, whose name may have spaces, or several."""
        names = line.split()
        if self._try_read(line) is not None or all(self._try_read(name) is None for name in names):
            names = [line]
        contents = []
        for name in names:
            with suppress(FileNotFoundError):  # noted
                contents.append(self._content(name))
        return contents

    def _try_read(self, name: str) -> bytes | None:
        try:
            return next(filter(None, (self._read(path, _LARGEST_ASSET) for path in self._paths(name))), None)
        except DataError:
            return None

    def _content(self, name: str) -> bytes:
        paths = self._paths(name)
        if not paths:
            hint = self._hint if name.replace("\\", "/").startswith("../") else ""
            raise self._miss(f"the path {name!r} points outside the folder of the model, so it was not followed{hint}")
        for path in paths:
            try:
                content = self._read(path, _LARGEST_ASSET)
            except DataError as error:
                raise self._miss(str(error)) from error
            if content is not None:
                return content
        raise self._miss(f"{name!r} does not exist")

    def _paths(self, name: str) -> list[str]:
        """Where a file of this name may lie; nowhere when the name leads out."""
        if inside(self._folder, name, self._top) is None:
            return []
        # glTF writes a space as %20
        both = (inside(self._folder, path, self._top) for path in (name, unquote(name)))
        return list(dict.fromkeys(path for path in both if path is not None))

    def _miss(self, what: str) -> FileNotFoundError:
        if what not in self.missing:
            self.missing.append(what)
        return FileNotFoundError(what)


def inside(folder: str, name: str, top: str) -> str | None:
    r"""Find the file that a material names, without leaving the folder of the model."""
    path = map_options(name).name.replace("\\", "/")
    if not path or path.startswith(("/", "~")) or re.match("[A-Za-z]:", path) or "\0" in path:
        return None
    target = posixpath.normpath(posixpath.join(folder, path))
    return target if target.startswith(top.rstrip("/") + "/") else None


class FileAssets(Assets):
    """Materials and textures of a mesh file that lies in a folder.

    Links are followed where they end below ``top``, or beside the file that the mesh file itself is a link to, as in
    stores of models; others are not.
    """

    def __init__(self, path: Path, top: Path | str | None = None) -> None:
        # not resolved: where a file is a link into a store, its textures lie beside the link
        path = Path(os.path.abspath(path))
        self._root = path.parent if top is None else Path(os.path.abspath(top))
        if not path.is_relative_to(self._root):
            raise DataError(
                f"{path} is not in {self._root}, the folder that is searched for its textures; pass a folder that "
                "contains both"
            )
        self._ends = {Path(os.path.realpath(self._root)), Path(os.path.realpath(path)).parent}
        folder = posixpath.join(_TOP, path.parent.relative_to(self._root).as_posix())
        hint = f"; pass {advice('top=', '--top')}, a folder that contains both the mesh and that file"
        super().__init__(self._file_content, folder, _TOP, hint=hint)

    def find(self, name: str) -> Path | None:
        """Find the file that is read under a name; None where none is, and nothing is noted."""
        try:
            file = next(filter(None, map(self._located, self._paths(name))), None)
            return file if file is None or file.stat().st_size <= _LARGEST_ASSET else None
        except (DataError, OSError):
            return None

    def _file_content(self, path: str, most: int) -> bytes | None:
        file = self._located(path)
        return None if file is None else read_file(os.fsencode(file), most)

    def _located(self, path: str) -> Path | None:
        """File that a path of :func:`inside` stands for, without links; None where there is none."""
        file = self._root / path.removeprefix(f"{_TOP}/")
        try:
            if not file.is_file():
                return None
        except OSError:  # a name that is too long
            return None
        target = Path(os.path.realpath(file))
        if not any(target.is_relative_to(end) for end in self._ends):
            raise DataError(
                f"the link {shown(str(file))} points outside the folder of the model, so it was not followed; "
                f"pass {advice('top=', '--top')}, a folder that contains both"
            )
        return target


def read_mesh(content: bytes, kind: str, label: str, assets: Assets) -> Any:
    """Read a mesh file by trimesh, nothing merged and nothing moved."""
    trimesh = imported("trimesh", "meshes")
    known = trimesh.exchange.load.mesh_formats()
    if kind not in known:
        raise DataError(
            f"{label} has an unsupported format (supported: {', '.join(sorted(known))}); convert it, or unpack it"
        )
    least = _faces_told(content, kind)
    log = logging.getLogger("trimesh")
    if not log.handlers:  # else what it logs of damaged files, tracebacks and all, lands on the terminal
        log.addHandler(logging.NullHandler())
    try:
        scene = trimesh.load_scene(io.BytesIO(content), file_type=kind, resolver=assets, process=False)
        count = sum(len(getattr(geometry, "faces", ())) for geometry in scene.geometry.values())
    except Exception as error:
        # the library raises whatever it stumbles over
        raise unread(label, error) from error
    if count < least:
        raise DamagedFile(f"{label} is damaged: it has at least {least:,} triangles, but {count:,} were read")
    return scene


def unread(label: str, error: Exception) -> DataError:
    """What to raise where a library stumbles over a mesh file, be it one's own or fetched."""
    return DamagedFile(f"{label} cannot be read as a mesh ({why(error)})")


def why(error: Exception) -> str:
    """What a library says of a file, in a line; without what it calls bytes in memory."""
    return " ".join(_OBJECT.sub("", str(error)).split())[:200] or type(error).__name__


def _faces_told(content: bytes, kind: str) -> int:
    """Faces that the head of a PLY or OFF file tells of, each a triangle or more; 0 where nothing is told.

    trimesh takes what there is of a text that was cut off.
    """
    if kind == "ply":
        match = re.search(rb"^element[ \t]+face[ \t]+(\d{1,18})[ \t]*\r?$", content[:_LONGEST_HEAD], re.MULTILINE)
        return int(match[1]) if match else 0
    if kind == "off":
        words = re.sub(rb"#[^\n]*", b"", content[:_LONGEST_HEAD]).split(None, 3)
        return int(words[2]) if len(words) > 2 and re.fullmatch(rb"\d{1,18}", words[2]) else 0
    return 0


def _check_image(content: bytes, label: str) -> None:
    """Have Pillow decode an image."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as image:
            # looked at before anything is decoded: a small file may unpack to very much
            if image.width * image.height > MOST_PIXELS:
                raise DataError(
                    f"{label} has {image.width} × {image.height} pixels, more than the limit of {MOST_PIXELS:,}"
                )
            image.load()
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{label} is not a readable image ({why(error)})") from error
