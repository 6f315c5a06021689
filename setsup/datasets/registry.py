"""Benchmarks by name: those with a manifest in setsup, and those that other packages register.

Another package offers datasets through the entry-point group ``setsup.datasets``, in its ``pyproject.toml``::

    [project.entry-points."setsup.datasets"]
    my-rooms = "my_package.rooms"

where ``my_package.rooms`` is a module with a function ``open(root: Path | None) -> Dataset``, or that function itself
(``"my_package.rooms:open_rooms"``). A manifest ``my-rooms.yaml`` in the folder of that module, like those of setsup's
own benchmarks, gives the dataset a card with licence and citation, and named splits.

A dataset that a manifest describes needs no module: the group ``setsup.manifests`` names a package with a folder
``manifests``.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint
from inspect import Parameter, signature, unwrap
from pathlib import Path
from types import GenericAlias, SimpleNamespace
from typing import Any, get_type_hints

from setsup.checks import check_arguments
from setsup.datasets.adapters.missing_files import counting_left_out
from setsup.datasets.adapters.splits import open_split
from setsup.datasets.dataset import Dataset
from setsup.datasets.described import DescribedImages, open_described
from setsup.datasets.published import check_published
from setsup.errors import DataError, LibraryError, did_you_mean
from setsup.files import Manifest, read_manifest
from setsup.files.expand_user import expanded
from setsup.files.manifests.packages import (
    find_manifest,
    foreign_entries,
    foreign_manifests,
    load_manifest,
    manifest_names,
)
from setsup.optional import extra_command

__all__ = [
    "check_options",
    "find_opener",
    "is_name",
    "load",
    "manifest_opener",
    "names",
    "open_manifest",
    "opener_options",
]

Opener = Callable[..., object]


def names() -> list[str]:
    """List all datasets that :func:`load` knows, sorted.

    Returns
    -------
    list of str

    Examples
    --------
    >>> "mnist" in names()
    True

    """
    return sorted({*manifest_names(), *foreign_entries(), *foreign_manifests()})


def is_name(name: str) -> bool:
    """Whether :func:`load` knows a dataset; other packages are looked through only where setsup has none."""
    return name in manifest_names() or name in foreign_entries() or name in foreign_manifests()


def load(
    name: str,
    root: Path | str | None = None,
    split: str | None = None,
    where: str | None = None,
    **options: Any,
) -> Dataset:
    """Open a benchmark by its name; nothing is ever downloaded.

    Data of your own, rendered datasets and shards are opened by :func:`setsup.open`.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    root : Path or str, optional
        Folder that holds the published files, or a folder ``name`` with them. By default ``$SETSUP_DATA/<name>``, then
        ``<user cache>/setsup/<name>``. A dataset made from the files of another one is also looked for under the name
        of that one.
    split : str, optional
        A split or subset that `setsup info NAME` lists, or one part of it, such as ``"train"``, ``"dcodr"`` or
        ``"dcodr-train"``; only its rows are kept, and renumbered.
    where : str, optional
        Expression over the factors, such as ``"digit != 9"``; only the rows for which it holds are kept, and
        renumbered.
    **options
        Options of the benchmark's own ``open``: ``load("pascal3d", size=(64, 64), margin=0.1)``.

    Returns
    -------
    Dataset

    Notes
    -----
    If fewer samples exist than were published, one warning of the logger ``setsup`` tells both numbers; parts
    that are downloads of their own, such as one domain of DomainNet, are whole.

    Raises
    ------
    DataError
        When there is no such dataset, split or option, files are missing (with the ``setsup fetch`` command), damaged
        or of another dataset, or an optional dependency is not installed.
    FactorError
        When ``where`` is not an expression over the dataset's factors.

    """
    check_arguments(load, locals(), DataError)
    opener = find_opener(name)
    check_options(name, opener, options)
    with _needed(name), counting_left_out() as left_out:
        dataset = opener(None if root is None else expanded(root), **options)
    if not isinstance(dataset, Dataset):
        raise DataError(f"the open function of {name!r} returned a {type(dataset).__name__}, not a setsup Dataset")
    manifest = find_manifest(name)
    if manifest is not None:
        check_published(dataset, manifest, options, sum(left_out))
    return _selected(dataset, manifest, split, where)


def open_manifest(
    file: Path | str,
    root: Path | str | None = None,
    split: str | None = None,
    where: str | None = None,
    **options: Any,
) -> Dataset:
    """Open a dataset by a manifest of the user's own; parameters are those of :func:`load`, but for the path."""
    opener = manifest_opener(file)
    check_options(str(file), opener, options)
    with counting_left_out() as left_out:
        dataset: DescribedImages = opener(None if root is None else expanded(root), **options)
    check_published(dataset, dataset.manifest, options, sum(left_out))
    return _selected(dataset, dataset.manifest, split, where)


def _selected(dataset: Dataset, manifest: Manifest | None, split: str | None, where: str | None) -> Dataset:
    """Rows of a split, and of them those for which an expression holds."""
    if split is not None:
        dataset = open_split(dataset, split, () if manifest is None else manifest.splits)
    return dataset if where is None else dataset.where(where)


def manifest_opener(file: Path | str) -> Callable[..., DescribedImages]:
    """Make the function that opens the dataset of a user's own manifest, which is not read before."""
    return partial(_open_own, expanded(file))


def _open_own(file: Path, root: Path | str | None = None, size: tuple[int, int] | None = None) -> DescribedImages:
    """Open the dataset of a user's own manifest, whose files lie next to it unless it or the user names a root."""
    manifest = read_manifest(file, own=True)
    if root is None:
        root = file.parent if manifest.root is None else file.parent / expanded(manifest.root)
    return open_described(manifest, root, size, own=True)


def _open_described(
    manifest: Manifest, root: Path | str | None = None, size: tuple[int, int] | None = None
) -> DescribedImages:
    return open_described(manifest, root, size)


def _open_foreign(file: Path, root: Path | str | None = None, size: tuple[int, int] | None = None) -> DescribedImages:
    """Open the dataset that another package describes."""
    manifest = read_manifest(file)
    if manifest.layout is None:
        raise DataError(
            f"{file}: the key layout, which a manifest without code requires, is missing; add it to describe the "
            "images and tables"
        )
    if manifest.adapter is not None:
        raise DataError(
            f"{file}: the key adapter is not allowed in a manifest without code; remove it, or register the module "
            "under setsup.datasets"
        )
    return open_described(manifest, root, size)


def find_opener(name: str) -> Opener:
    """Find the function that opens a benchmark; its files are not looked for."""
    if name in manifest_names():
        return _own(name)
    if (entry := foreign_entries().get(name)) is not None:
        return _foreign(entry)
    if (file := foreign_manifests().get(name)) is not None:
        return partial(_open_foreign, file)
    if "/" in name or os.path.exists(expanded(name)):
        raise DataError(f"{name} is a path or URL, not the name of a benchmark; open it with setsup.open({name!r})")
    raise DataError(f"unknown dataset {name!r}{did_you_mean(name, names())} (`setsup datasets` lists them)")


def opener_options(opener: Opener) -> dict[str, Parameter]:
    """Parameters of an ``open`` or ``prepare`` but the first, the root, with the types that can be resolved."""
    among = _namespace(opener)
    return {
        name: parameter.replace(annotation=_type(parameter, among))
        for name, parameter in list(signature(opener).parameters.items())[1:]
        if parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    }


def check_options(source: str, opener: Opener, options: Iterable[str]) -> None:
    """Refuse options that the opener of a source does not take."""
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in signature(opener).parameters.values()):
        return
    known = list(opener_options(opener))
    for option in options:
        if option not in known:
            hint = did_you_mean(option, known) if known else "; it takes no options"
            raise DataError(f"{source} has no option {option!r}{hint}")


def _namespace(opener: Opener) -> dict[str, Any]:
    """Names by which an opener's annotations are resolved."""
    made = unwrap(opener)
    while isinstance(made, partial):
        made = unwrap(made.func)
    module = sys.modules.get(getattr(made, "__module__", None) or "")
    return getattr(made, "__globals__", {} if module is None else vars(module))


def _type(parameter: Parameter, among: dict[str, Any]) -> Any:
    """The declared type, or that of a default tuple; empty where there is neither."""
    if parameter.annotation is not Parameter.empty:
        declared = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
        with suppress(Exception):  # such as NameError: imported for type checkers only
            return get_type_hints(declared, among)[parameter.name]
    if isinstance(parameter.default, tuple) and parameter.default:
        return GenericAlias(tuple, tuple(map(type, parameter.default)))
    return Parameter.empty


def _own(name: str) -> Opener:
    manifest = load_manifest(name)
    adapter = manifest.adapter
    if adapter is None and manifest.layout is not None:
        return partial(_open_described, manifest)
    if adapter is None:
        raise DataError(f"setsup cannot open {name!r} yet; `setsup info {name}` shows its card")
    with _needed(name):
        opener: Opener = import_module(adapter).open
    return opener


def _foreign(entry: EntryPoint) -> Opener:
    package = entry.dist.name if entry.dist else entry.module
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise DataError(f"the dataset {entry.name!r} of the package {package} cannot be loaded: {error}") from error
    opener = getattr(loaded, "open", loaded)
    if not callable(opener):
        raise DataError(
            f"the dataset {entry.name!r} of the package {package} must be a function, or a module with a function "
            f"open(root), not {entry.value}"
        )
    checked: Opener = opener
    return checked


@contextmanager
def _needed(name: str) -> Iterator[None]:
    """Name the library that a dataset needs and that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        manifest = load_manifest(name) if name in manifest_names() else None
        if manifest is None or (error.name or "setsup").partition(".")[0] == "setsup":
            raise
        raise LibraryError(
            f"{name} requires {error.name}, which is not installed: "
            f"{extra_command(manifest.extra) if manifest.extra else f'pip install {error.name}'}"
        ) from error
