"""Open any source of data; decides what a source is, and which options it takes.

A string is an address, else the name of a benchmark, else a path; a :class:`~pathlib.Path` is always a path.
"""

import os
import re
import zipfile
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from inspect import Parameter
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from setsup.checks import check_arguments
from setsup.datasets import (
    Dataset,
    from_huggingface,
    load,
    names,
    open_arrays,
    open_bop,
    open_capture,
    open_croissant,
    open_images,
    open_table,
)
from setsup.datasets.adapters.splits import open_split
from setsup.datasets.formats.image_formats import KNOWN_ENDINGS
from setsup.datasets.own.bop.finding import BOP_MARKS
from setsup.datasets.own.captures.finding import CAPTURE_MARKS, MODEL_FILES
from setsup.datasets.own.huggingface.hub import HUB_ADDRESS, may_be_on_hub
from setsup.datasets.own.image_archive import ARCHIVE_ENDINGS, one_tar
from setsup.datasets.own.image_metadata.tables import NAMES
from setsup.datasets.registry import (
    check_options,
    find_opener,
    is_name,
    manifest_opener,
    open_manifest,
    opener_options,
)
from setsup.datasets.signatures import MARKS
from setsup.errors import DataError, about_file, advice, close_matches, listed, suggest
from setsup.factors.io.text_file import PARQUET, SHEETS, TABLES
from setsup.files.expand_user import expanded
from setsup.files.lfs import refuse_pointer

__all__ = ["KINDS", "SourceKind", "find_kind", "is_table", "open", "options_of", "path_options"]

SourceKind = Literal[
    "benchmark",
    "rendered",
    "shards",
    "table",
    "images",
    "photographs",
    "capture",
    "bop",
    "arrays",
    "huggingface",
    "hub",
    "manifest",
    "croissant",
]

KINDS: dict[SourceKind, str] = {
    "benchmark": "a benchmark",
    "rendered": "a rendered dataset",
    "shards": "a set of shards",
    "table": "a table",
    "images": "a folder or archive of images",
    "photographs": "a folder of photographs with homographies",
    "capture": "a folder of images with cameras",
    "bop": "a dataset in the BOP format",
    "arrays": "a file of arrays",
    "huggingface": "a saved Hugging Face dataset",
    "hub": "a dataset of the Hugging Face Hub",
    "manifest": "a manifest",
    "croissant": "a Croissant description",
}
"""What each kind of source is called in messages."""

_ARRAYS = (".npz", ".npy")
_MANIFESTS = (".yaml", ".yml")
_DESCRIPTIONS = (".json", ".jsonld")
_UNPACKED = (".zip", ".tar")
_HOMOGRAPHIES = ("H_1_[0-9]*", "*/H_1_[0-9]*")
_LOOKED_AT = 1000  # entries of a folder among which images, or a name like that of the source, are sought
_ALIKE = 0.7  # similarity of names that are suggested: mnits and kmnist, but not pets and tests
_SEARCHED = 20_000  # entries of all folders among which images are sought


def open(
    source: Path | str,
    root: Path | str | None = None,
    split: str | None = None,
    where: str | None = None,
    *,
    kind: SourceKind | None = None,
    **options: Any,
) -> Dataset:
    r"""Open a dataset from any source; nothing is downloaded except ``hf:owner/name``.

    Parameters
    ----------
    source : Path or str
        One of:

        - the address of shards: ``"s3://bucket/shapes"``;
        - the name of a benchmark, one of :func:`setsup.names`;
        - a folder that ``setsup render`` or ``setsup shard`` wrote, or of tars that ``setsup index`` indexed;
        - a table in a CSV, Parquet or JSON lines file, as for :func:`setsup.open_table`;
        - a manifest that describes images and their factors, such as ``"birds.yaml"``; see docs/datasets/described.md;
        - a folder of images, or a zip or tar of one, as for :func:`setsup.datasets.open_images`;
        - a folder of images with cameras, in a COLMAP model or ``transforms.json``, as for
          :func:`setsup.datasets.open_capture`;
        - a dataset in the BOP format, such as T-LESS or YCB-V, one of its splits or scenes, as for
          :func:`setsup.datasets.open_bop`;
        - a folder of photographs with homographies, as for :func:`setsup.correspondence.open_photographs`;
        - an ``.npz`` file, or a ``.npy`` with ``factors=``, as for :func:`setsup.datasets.open_arrays`;
        - a folder that ``save_to_disk`` of Hugging Face ``datasets`` wrote;
        - ``"hf:owner/name"``, ``"hf:owner/name@revision"`` or ``"hf:owner/name/config"``: a dataset of the Hugging
          Face Hub, as for :func:`setsup.datasets.open_hub`;
        - a Croissant description, ``"croissant.json"`` or its address, as for :func:`setsup.datasets.open_croissant`.

        A string that is both a name and a path is the name: write ``"./mnist"`` or ``Path("mnist")`` for the path.
    root : Path or str, optional
        Folder of a benchmark's published files, as for :func:`setsup.load`, or of the files of a manifest or of a
        Croissant description.
    split : str, optional
        A split or one part of it, such as ``"train"``; only its rows are kept, and they are renumbered.
    where : str, optional
        Expression over the factors, such as ``"digit != 9"``; only rows that satisfy it are kept, and they are
        renumbered.
    kind : str, optional
        Kind of the source; by default it is detected: ``"benchmark"``, ``"rendered"``, ``"shards"``,
        ``"table"``, ``"images"``, ``"photographs"``, ``"capture"``, ``"bop"``, ``"arrays"``, ``"huggingface"``,
        ``"hub"``, ``"manifest"`` or ``"croissant"``.
    **options
        Options of the source: those of a benchmark, of :func:`setsup.open_shards`,
        :func:`setsup.open_table`, :func:`setsup.datasets.open_images`, :func:`setsup.datasets.open_capture`,
        :func:`setsup.datasets.open_bop`, :func:`setsup.datasets.open_arrays`, :func:`setsup.datasets.open_hub`,
        :func:`setsup.from_huggingface` or :func:`setsup.datasets.open_croissant`.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        When the source does not exist, could be of two kinds, or does not have an option; when its files are missing or
        damaged.
    FactorError
        When ``where`` is not an expression over the dataset's factors.

    Examples
    --------
    >>> import setsup, tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, grey in [("a.png", 10), ("b.png", 200)]:
    ...     Image.new("L", (4, 3), grey).save(folder / name)
    >>> _ = (folder / "photos.csv").write_text("image,subject\na.png,ann\nb.png,bob\n")
    >>> setsup.open(folder / "photos.csv", where="subject == 'bob'", size=(2, 2)).fetch(0)["image"].shape
    (2, 2, 1)
    >>> len(setsup.open("shapes3d-procedural"))
    480000

    """
    check_arguments(open, locals(), DataError)
    kind = kind or find_kind(source)
    if kind in ("table", "arrays", "manifest") and not os.path.lexists(expanded(source)):
        if close := _similar(source):
            raise DataError(f"{source} does not exist{suggest(close)}", file=source)
    if kind == "benchmark":
        return load(str(source), root, split, where, **options)
    if kind == "manifest":
        with about_file(source):
            return open_manifest(source, root, split, where, **options)
    if root is not None and kind == "croissant":
        options["root"] = root
    elif root is not None:
        given = advice(f"root={str(root)!r}", f"--root {root}")
        raise DataError(f"{source} is {KINDS[kind]}, which has no root; omit {given}")
    opener = _find_opener(source, kind)
    check_options(str(source), opener, options)
    with about_file(source):
        dataset: Dataset = opener(source, **options)
    if split is not None:
        dataset = open_split(dataset, split)
    return dataset if where is None else dataset.where(where)


def find_kind(source: Path | str) -> SourceKind:
    """Decide what a source is, by its form and the names of files, those in zips included; none of them is read."""
    from setsup.shards.stores.opening import intended_address

    path = expanded(source)
    if isinstance(source, str):
        if HUB_ADDRESS.match(source):
            return "hub"
        if "://" in source or intended_address(source) is not None:
            if path.suffix.lower() == ".tar":
                raise one_tar(source)
            web = source.lower().startswith(("http://", "https://"))
            # publishers give descriptions by a query, as croissant.json?download=1, or without an ending
            place = PurePosixPath(re.split("[?#]", source, maxsplit=1)[0].lower())
            described = place.suffix in _DESCRIPTIONS or place.name == "croissant"
            return "croissant" if web and described else "shards"
        if is_name(source):
            return "benchmark"
    if is_table(path):
        return "table"
    if path.suffix.lower() in _ARRAYS and not path.is_dir():
        return "arrays"
    if path.suffix.lower() in _MANIFESTS and not path.is_dir():
        return "manifest"
    if path.is_file() and path.name.lower().endswith(ARCHIVE_ENDINGS):
        return "images"
    if path.is_file() and path.suffix.lower() in _DESCRIPTIONS and not _is_mark(path):
        return "croissant"
    # a catalogue of shards that is no file is reported by what reads it
    found = {
        kind: mark
        for mark, kind in MARKS.items()
        if (path / mark).is_file() or (kind == "shards" and (path / mark).exists())
    }
    if len(found) > 1:
        content = " and ".join(f"{KINDS[kind]} ({mark})" for kind, mark in found.items())
        choices = " or ".join(advice(f"kind={kind!r}", f"--option kind={kind}") for kind in found)
        raise DataError(f"{source} contains {content}; choose one with {choices}")
    # BOP datasets may have a dataset_info.json of their own
    if not (set(found) - {"huggingface"}) and _holds_scenes(path):
        return "bop"
    if found:
        return next(iter(found))
    tars = any(path.glob("*.tar"))
    inner = {tar.parent for tar in path.glob("*/*.tar")}
    of_sets = {
        folder for folder in inner if any((folder / mark).exists() for mark, kind in MARKS.items() if kind == "shards")
    }
    if tars or inner - of_sets:
        return "shards"  # not indexed yet
    if _holds_cameras(path):
        return "capture"
    if any(any(path.glob(pattern)) for pattern in _HOMOGRAPHIES):
        return "photographs"
    if _holds_images(path) or _holds_metadata(path):
        return "images"
    if of_sets:
        return "shards"  # whose error names the sets
    raise _unknown(source)


def is_table(path: Path | str) -> bool:
    """Whether a path has the ending of a table, or of a spreadsheet, and is no folder."""
    path = Path(path)
    name = path.name.lower()
    known = name.endswith(PARQUET) or name.removesuffix(".gz").endswith((*TABLES, *SHEETS))
    return known and not os.path.isdir(path)


def options_of(source: Path | str, kind: SourceKind | None = None) -> dict[str, Parameter]:
    """Options that :func:`open` takes for a source; no file of the dataset is read."""
    return opener_options(_find_opener(source, kind or find_kind(source)))


def path_options(source: Path | str, kind: SourceKind | None = None) -> set[str]:
    """Options of a source that may be paths, which differ between machines."""
    known = options_of(source, kind).items()
    return {name for name, one in known if Path in (one.annotation, *get_args(one.annotation))}


def _find_opener(source: Path | str, kind: SourceKind) -> Callable[..., Any]:
    # what loads much more than the others is imported where it is opened
    if kind == "benchmark":
        return find_opener(str(source))
    if kind == "manifest":
        return manifest_opener(source)
    if kind == "rendered":
        from setsup.rendered.folder import open_rendered

        return open_rendered
    if kind == "shards":
        from setsup.shards import open_shards

        return open_shards
    if kind == "photographs":
        from setsup.correspondence import open_photographs

        return open_photographs
    if kind == "capture":
        return open_capture
    if kind == "bop":
        return open_bop
    if kind == "table":
        return open_table
    if kind == "images":
        return open_images
    if kind == "arrays":
        return open_arrays
    if kind == "croissant":
        return open_croissant
    if kind == "hub":
        from setsup.shards.hub import open_from_hub

        return open_from_hub
    return from_huggingface


def _is_mark(file: Path) -> bool:
    """Whether a file is one of those by which a folder is recognized, which is opened instead."""
    return file.name in MARKS or any(file.match(pattern) for pattern in (*CAPTURE_MARKS, *BOP_MARKS))


def _holds_cameras(folder: Path) -> bool:
    """Whether a folder is a capture, or has one among its folders."""
    for file in (file for pattern in CAPTURE_MARKS for file in folder.glob(pattern)):
        others = (file.with_name(name) for name in MODEL_FILES if not name.startswith(file.stem))
        if file.suffix == ".json" or "sparse" in file.parts[-3:-1] or any(other.is_file() for other in others):
            return True
    return False


def _holds_scenes(folder: Path) -> bool:
    """Whether a folder is a dataset in the BOP format, or one of its splits or scenes."""
    return any(file.is_file() for pattern in BOP_MARKS for file in folder.glob(pattern))


def _holds_images(folder: Path) -> bool:
    """Whether there is an image among the first files of a folder and of the folders within it, those above first."""
    waiting, left = deque([folder]), _SEARCHED
    while waiting and left > 0:
        with suppress(OSError), os.scandir(waiting.popleft()) as entries:
            for entry in islice(entries, _LOOKED_AT):
                left -= 1
                if entry.name.lower().endswith(KNOWN_ENDINGS):
                    return True
                if entry.is_dir():
                    waiting.append(Path(entry.path))
    return False


def _holds_metadata(folder: Path) -> bool:
    """Whether a folder, or a zip in it, has a table of metadata; only lists of zips are read."""
    if any(any(folder.glob(pattern)) for name in NAMES for pattern in (name, f"*/{name}")):
        return True
    paths = (path for pattern in ("*.zip", "*/*.zip") for path in folder.glob(pattern))
    for path in islice(paths, _LOOKED_AT):
        with suppress(OSError, ValueError, zipfile.BadZipFile, NotImplementedError), zipfile.ZipFile(path) as packed:
            if any(one.rpartition("/")[2] in NAMES for one in packed.namelist()):
                return True
    return False


# -- errors ------------------------------------------------------------------------------------------------------------


def _unknown(source: Path | str) -> DataError:
    """Make the error for a source that is not a dataset, with similar names."""
    path = expanded(source)
    if os.path.isdir(path):
        _refuse_pointers(path)
        return DataError(
            f"no dataset found in the folder {source}: expected a rendered dataset (rendered.json), shards "
            "(shards.json), a Hugging Face dataset (dataset_info.json) or images; to open a benchmark, pass its name, "
            f"and this folder as {advice('root=', '--root')}{_files_in(path)}"
        )
    close = _similar(source)
    others = (
        "; pass a folder of images, a table such as photos.csv, or the name of a dataset (`setsup datasets` lists them)"
    )
    if isinstance(source, Path) or "/" in source or os.path.exists(path) or path.name.lower().endswith(ARCHIVE_ENDINGS):
        if isinstance(source, str) and may_be_on_hub(source) and not os.path.exists(path) and not close:
            others += f", or hf:{source} for a dataset of the Hugging Face Hub"
        if os.path.exists(path):
            refuse_pointer(path)
            if _is_list(path):
                others = "; if it is a list of images, save it as .csv, with commas and a header such as image,label"
            return DataError(f"{source} is a file, but not a table{others}")
        return DataError(f"{source} does not exist{suggest(close) if close else others}")
    if close := [*close, *close_matches(source, names(), _ALIKE)]:
        others = f"{suggest(close[:3])} (`setsup datasets` lists all datasets)"
    return DataError(
        f"{source!r} does not exist: the working directory has no such file or folder, and no dataset has that name"
        f"{others}"
    )


def _is_list(path: Path) -> bool:
    """Whether the first line of a file has a path of an image, or a word and a number."""
    with suppress(OSError), path.open("rb") as file:
        words = file.readline(4096).decode("utf-8", "replace").replace(",", " ").split()
        return any(word.lower().endswith(KNOWN_ENDINGS) for word in words) or (len(words) == 2 and words[1].isdecimal())
    return False


def _refuse_pointers(folder: Path) -> None:
    """Raise where a file in a folder, or below it, is a Git LFS pointer; the first files are looked at."""
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in sorted(names))
    for file in islice(files, _LOOKED_AT):
        refuse_pointer(file)


def _files_in(folder: Path) -> str:
    """Name what in a folder could be opened by itself; nothing where there is no such file."""
    with suppress(OSError), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in islice(entries, _LOOKED_AT) if not entry.name.startswith("."))
        found = [name for name in names if is_table(folder / name) or name.lower().endswith((*_ARRAYS, *_UNPACKED))]
        if found:
            return f". It contains {listed(found)}; pass one of them, and unpack archives of images listed in a table"
    return ""


def _similar(source: Path | str) -> list[str]:
    """What in the same folder has a similar name and holds images or tables, written as the source is."""
    place, slash, name = str(source).rstrip("/").rpartition("/")
    folder = expanded(place + slash)
    ends = (*TABLES, *PARQUET, *_ARRAYS, *_MANIFESTS, *ARCHIVE_ENDINGS)
    with suppress(OSError), os.scandir(folder) as entries:
        first = [entry for entry in islice(entries, _LOOKED_AT) if not entry.name.startswith(".")]
        known = [entry.name for entry in first if entry.is_dir() or entry.name.lower().endswith(ends)]
        called = {**{one.partition(".")[0]: one for one in known}, **{one: one for one in known}}
        close = dict.fromkeys(called[one] for one in close_matches(name, list(called), _ALIKE))
        return [place + slash + one for one in close if _is_source(folder / one)]
    return []


def _is_source(path: Path) -> bool:
    """Whether something that exists is of a known kind."""
    try:
        return bool(find_kind(path))
    except DataError:
        return False
