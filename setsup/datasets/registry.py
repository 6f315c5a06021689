"""Find a dataset by its name: those that setsup has a manifest of, and those that other packages bring along.

Another package offers datasets through the entry-point group ``setsup.datasets``, in its ``pyproject.toml``::

    [project.entry-points."setsup.datasets"]
    my-rooms = "my_package.rooms"

where ``my_package.rooms`` is a module with a function ``open(root: Path | None) -> Dataset``, or that function itself
(``"my_package.rooms:open_rooms"``). A manifest ``my-rooms.yaml`` in the folder of that module, such as setsup has of
its own benchmarks, gives the dataset a card with licence and citation, and named splits.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint
from inspect import Parameter, signature, unwrap
from itertools import islice
from pathlib import Path
from types import GenericAlias, SimpleNamespace
from typing import Any, get_type_hints

from setsup.checks import check_arguments
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError, near
from setsup.files.expand_user import expanded

__all__ = ["load", "names", "options_in", "options_of"]

_BESIDE = 1000  # folders that are looked at for one that may have been meant


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
    from setsup.files import manifest_names
    from setsup.files.manifests.packages import foreign_entries

    return sorted({*manifest_names(), *foreign_entries()})


def load(
    name: str,
    root: Path | str | None = None,
    split: str | None = None,
    where: str | None = None,
    **options: Any,
) -> Dataset:
    """Open a dataset; nothing is ever downloaded.

    Parameters
    ----------
    name : str
        One of :func:`names`, or a folder that ``setsup render`` wrote.
    root : Path or str, optional
        Folder that holds the published files, or a folder ``name`` with them. By default ``$SETSUP_DATA/<name>``, then
        ``<user cache>/setsup/<name>``. A data set that is made of another one's files is looked for under the name of
        that one, too.
    split : str, optional
        A split or subset that `setsup info NAME` lists, or one part of it, such as ``"train"``, ``"dcodr"`` or
        ``"dcodr-train"``; only its rows are kept, and renumbered.
    where : str, optional
        Expression over the factors, such as ``"digit != 9"``; only the rows for which it holds are kept, and
        renumbered.

    **options
        What the benchmark's own ``open`` takes beside: ``load("pascal3d", size=(64, 64), margin=0.1)``.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        When there is no such dataset, split or option, files are missing (with the ``setsup fetch`` command) or
        damaged, or an optional dependency is not installed.
    FactorError
        When ``where`` is no expression over the dataset's factors.

    """
    check_arguments(load, locals(), DataError)
    folder = None if root is None else expanded(root)
    dataset = _open(name, folder, options)
    if not isinstance(dataset, Dataset):
        raise DataError(f"what opens {name!r} gave a {type(dataset).__name__}, which is no setsup dataset")
    if split is not None:
        dataset = _opened_split(dataset, name, split)
    return dataset if where is None else dataset.where(where)


def options_of(name: str) -> dict[str, Parameter]:
    """What the own ``open`` of a data set takes beside its root; no file of it is looked for."""
    from setsup.files import manifest_names
    from setsup.files.manifests.packages import foreign_entries

    foreign = foreign_entries()
    if name in manifest_names():
        return options_in(_own(name))
    if name in foreign:
        return options_in(_theirs(foreign[name]))
    from setsup.rendered.folder import is_rendered

    if is_rendered(name):
        return {}
    raise _unknown(name)


def options_in(opener: Callable[..., object]) -> dict[str, Parameter]:
    """What an ``open`` or ``prepare`` takes beside its root, as :func:`options_of` gives it."""
    among = _namespace(opener)
    return {
        name: one.replace(annotation=_type(one, among))
        for name, one in signature(opener).parameters.items()
        if name != "root" and one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    }


def _namespace(opener: Callable[..., object]) -> dict[str, Any]:
    """What the texts of an opener's annotations are looked up in."""
    made = unwrap(opener)
    while isinstance(made, partial):
        made = unwrap(made.func)
    module = sys.modules.get(getattr(made, "__module__", None) or "")
    return getattr(made, "__globals__", {} if module is None else vars(module))


def _type(one: Parameter, among: dict[str, Any]) -> Any:
    """The declared type, or that of a tuple by default; empty where there is neither."""
    if one.annotation is not Parameter.empty:
        declared = SimpleNamespace(__annotations__={one.name: one.annotation})
        with suppress(Exception):  # such as NameError: imported for type checkers only
            return get_type_hints(declared, among)[one.name]
    if isinstance(one.default, tuple) and one.default:
        return GenericAlias(tuple, tuple(map(type, one.default)))
    return Parameter.empty


def _open(name: str, root: Path | None, options: Mapping[str, Any]) -> object:
    from setsup.files import manifest_names
    from setsup.files.manifests.packages import foreign_entries

    if name in manifest_names():
        return _open_own(name, root, options)
    foreign = foreign_entries()
    if name in foreign:
        return _opened(name, _theirs(foreign[name]), root, options)
    from setsup.rendered.folder import is_rendered, open_rendered

    if is_rendered(name):
        if root is not None:
            raise DataError(f"{name} is a folder that `setsup render` wrote; leave out the root {root}")
        return _opened(name, lambda root: open_rendered(name), root, options)
    if "://" in name or (expanded(name) / "shards.json").is_file():
        raise DataError(f"{name} holds shards, which are opened by setsup.open_shards({name!r})")
    raise _unknown(name)


def _unknown(name: str) -> DataError:
    """Say what lies under a word that names no data set, or what else may have been meant."""
    folder = expanded(name)
    if os.path.isdir(folder):
        if os.path.isdir(folder / ".setsup"):
            return DataError(f"{name} is not finished: give the same `setsup shard` command again, and it goes on")
        lacks = f"{name} is a folder, but holds no set of shards"
        if any(any(folder.glob(pattern)) for pattern in ("*.tar", "*/*.tar")):
            return DataError(f"{lacks}, only tars; index them once with `setsup index {name}`")
        return DataError(
            f"{lacks} (shards.json) and no render (rendered.json); name another folder, or a data set (`setsup "
            f"datasets` lists them), whose files lie in --root {name}"
        )
    beside = _beside(name)
    if "/" in name or os.path.exists(folder):
        state = "is a file" if os.path.exists(folder) else "is not there"
        said = near(name, beside) if beside else "; name a folder, or a data set (`setsup datasets` lists them)"
        return DataError(f"{name} {state}{said}")
    return DataError(f"there is no dataset {name!r}{near(name, [*beside, *names()])} (`setsup datasets` lists them)")


def _beside(name: str) -> list[str]:
    """Folders in the same place that hold shards or a render, written as that place is."""
    place, slash, _ = name.rstrip("/").rpartition("/")
    found = []
    with suppress(OSError), os.scandir(expanded(place + slash)) as entries:
        for entry in islice(entries, _BESIDE):
            if any(os.path.isfile(Path(entry.path, mark)) for mark in ("shards.json", "rendered.json")):
                found.append(place + slash + entry.name)
    return sorted(found)


def _open_own(name: str, root: Path | None, options: Mapping[str, Any]) -> object:
    with _needed(name):
        return _opened(name, _own(name), root, options)


def _own(name: str) -> Callable[..., object]:
    from setsup.files import load_manifest

    adapter = load_manifest(name).adapter
    if adapter is None:
        raise DataError(f"setsup has a card of {name!r} but cannot open it yet; `setsup info {name}` shows the card")
    with _needed(name):
        found: Callable[..., object] = import_module(adapter).open
    return found


@contextmanager
def _needed(name: str) -> Iterator[None]:
    """Say which library one of setsup's own lacks."""
    from setsup.files import load_manifest

    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "setsup").partition(".")[0] == "setsup":
            raise
        extra = load_manifest(name).extra
        package = f"-e '.[{extra}]'" if extra else error.name
        raise DataError(f"{name} needs {error.name}, which is not installed; run `pip install {package}`") from error


def _opened(name: str, opener: Callable[..., object], root: Path | None, options: Mapping[str, Any]) -> object:
    known = list(options_in(opener))
    any_name = any(one.kind is Parameter.VAR_KEYWORD for one in signature(opener).parameters.values())
    for option in options:
        if option not in known and not any_name:
            hint = near(option, known) if known else "; it takes none"
            raise DataError(f"{name} has no option {option!r}{hint}")
    return opener(root, **options)


def _opened_split(dataset: Dataset, name: str, split: str) -> Dataset:
    from setsup.datasets.adapters.splits import open_split
    from setsup.files.manifests.packages import find_manifest

    manifest = find_manifest(name)
    return open_split(dataset, split, () if manifest is None else manifest.splits)


def _theirs(entry: EntryPoint) -> Callable[..., object]:
    package = entry.dist.name if entry.dist else entry.module
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise DataError(f"the dataset {entry.name!r} of the package {package} cannot be loaded: {error}") from error
    opener = getattr(loaded, "open", loaded)
    if not callable(opener):
        raise DataError(
            f"the dataset {entry.name!r} of the package {package} is {entry.value}, which is neither a module with a "
            "function open(root) nor such a function"
        )
    found: Callable[..., object] = opener
    return found
