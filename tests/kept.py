"""Releases that tests write are written once for each content of their writer, and copied from there afterwards.

They lie in the user's cache, or where ``SETSUP_TESTS_CACHE`` says. A cold cache costs time and changes no test.
"""

import ast
import hashlib
import inspect
import os
import pickle
import platform
import shutil
import tempfile
from collections.abc import Callable
from functools import cache, wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import platformdirs

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("av", "h5py", "numpy", "Pillow", "scipy")  # the bytes of what they write may differ between versions
PLAIN = str | int | float | bool | bytes | None

P = ParamSpec("P")
T = TypeVar("T")
Write = Callable[Concatenate[Path, P], T]


def kept(write: Write[P, T]) -> Write[P, T]:
    """Keep what a writer of ``tests/true_files`` writes into a folder, for each of its options, and what it returns."""
    signature = inspect.signature(write)

    @wraps(write)
    def writes(folder: Path, *args: P.args, **kwargs: P.kwargs) -> T:
        bound = signature.bind(folder, *args, **kwargs)
        bound.apply_defaults()
        options = list(bound.arguments.items())[1:]
        if not all(_is_plain(value) for _, value in options):
            return write(folder, *args, **kwargs)
        sources = _cache() / write.__module__ / source_digest(Path(inspect.getfile(write)))
        release = sources / hashlib.sha256(f"{write.__name__} {options}".encode()).hexdigest()[:16]
        if not release.exists():
            for former in sources.parent.glob("[0-9a-f]" * 16):  # not what another process writes beside its place
                if former != sources:
                    shutil.rmtree(former, ignore_errors=True)
            _keep(release, lambda files: write(files, *args, **kwargs))
        try:
            shutil.copytree(release / "files", folder, copy_function=shutil.copyfile, dirs_exist_ok=True, symlinks=True)
            return cast(T, pickle.loads((release / "returned").read_bytes()))
        except FileNotFoundError:  # another checkout, whose writer differs, has taken it away
            return write(folder, *args, **kwargs)

    return writes


def _keep(release: Path, write: Callable[[Path], Any]) -> None:
    """Write a release beside its place and move it there whole: of two processes, the first one's stays."""
    release.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=release.parent.parent) as made:
        files = Path(made, "whole", "files")
        files.mkdir(parents=True)
        returned = write(files)
        Path(made, "whole", "returned").write_bytes(pickle.dumps(returned))
        try:
            os.rename(Path(made, "whole"), release)
        except OSError:
            if not release.exists():
                raise


def _is_plain(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, tuple | list) else isinstance(value, PLAIN)


def _cache() -> Path:
    return Path(os.environ.get("SETSUP_TESTS_CACHE") or platformdirs.user_cache_path("setsup-tests"))


@cache
def source_digest(file: Path) -> str:
    """Digest of a module, of all that it imports from the tests, and of the libraries that write files for them."""
    found: dict[Path, bytes] = {}
    left = [file, Path(__file__)]
    while left:
        path = left.pop()
        if path not in found and path.is_file():
            found[path] = path.read_bytes()
            left += _imported(found[path])
    digest = hashlib.sha256(platform.python_version().encode())
    for library in LIBRARIES:
        digest.update(f"{library} {version(library)}\n".encode())
    for path in sorted(found):
        digest.update(f"{path.relative_to(ROOT)} {hashlib.sha256(found[path]).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def _imported(source: bytes) -> list[Path]:
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [ROOT / f"{name.replace('.', '/')}.py" for name in names if name.split(".")[0] == "tests"]
