"""Which data set a verb works on: a name, a folder of pictures or of shards, or a table of the user's own."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.errors import DataError, FactorError, near
from setsup.files.expand_user import expanded
from setsup.shards.stores.places import is_shards, open_place
from setsup_cli.parsing.arguments import DEFAULT, Named

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.factors import FactorTable

__all__ = [
    "assignments",
    "check_factors",
    "check_root",
    "is_place",
    "is_table",
    "numbers",
    "open_named",
    "open_source",
    "options_given",
]

_ARCHIVES = (".zip", ".tar", ".gz", ".tgz")

_OPENED = ("dataset", "root", "split", "index", "option", "table", "image", "kinds")


def open_source(
    dataset: str | None = None,
    root: Path | str | None = None,
    *,
    table: Path | None = None,
    image: str | None = None,
    kinds: Sequence[str] = (),
    split: str | None = None,
    index: str | None = None,
    option: Sequence[str] = (),
) -> "Dataset":
    """Open the data set that options name."""
    if dataset is not None and is_table(dataset):
        raise DataError(f"{dataset!r} is a table of your own, not the name of a data set; give it as --table {dataset}")
    if dataset is not None and dataset.lower().endswith(".tar") and not Path(dataset).is_dir():
        raise _one_tar(dataset, index)
    check_root(root)
    if index is not None and (dataset is None or not is_shards(dataset)):
        named = "" if dataset is None else f", which {dataset!r} does not"
        raise DataError(
            "--index tells where the index of shards lies; name the shards, too, by the folder or address that holds "
            f"them{named}, before --index {index}"
        )
    if table is None:
        if image is not None or kinds:
            raise DataError("--image and --kinds describe a table of your own; give it with --table FILE")
        if dataset is not None and is_shards(dataset):
            options_given(dataset, option)
            return open_place(dataset, root, split, index=index)
        from setsup.datasets import load

        name = dataset or DEFAULT
        return load(name, root, split, **options_given(name, option))
    if dataset is not None:
        raise DataError(f"give a data set or --table, not both: {dataset!r} and {str(table)!r}")
    if split is not None:
        raise DataError("--split is for named data sets; choose rows of a --table with --where")
    if option:
        raise DataError("--option is for named data sets; a --table takes --image and --kinds")
    if root is not None:
        raise DataError("--root is for published files; paths in a --table stand relative to its own folder")
    from setsup.datasets import open_table

    return open_table(table, image, kinds=assignments(kinds, "--kinds", "kind"))


def open_named(options: Named) -> "Dataset":
    """Open the data set that the options of a verb name, as :func:`open_source` does."""
    return open_source(**{name: value for name in _OPENED if (value := getattr(options, name, None)) is not None})


def options_given(name: str, words: Sequence[str]) -> dict[str, Any]:
    """Options of a data set that words such as ``size=64,64`` give, by its name."""
    if not words:
        return {}
    if is_shards(name):
        raise DataError(f"--option is for published data sets; {name} holds shards, which take none")
    from setsup.datasets.registry import options_of
    from setsup_cli.parsing.dataset_options import read_options

    return read_options(words, options_of(name), name)


def _one_tar(word: str, index: str | None) -> DataError:
    folder = word[: word.rfind("/")] if "/" in word.strip("/") else "."
    first = (
        ""
        if index is not None or (Path(folder) / "shards.json").is_file()
        else f", once `setsup index {folder}` has indexed it"
    )
    given = folder if index is None else f"{folder} --index {index}"
    return DataError(f"{word} is one tar, not a data set; give the folder that holds it: {given}{first}")


def is_table(word: str) -> bool:
    """Whether a word is the name of a file such as ``--table`` takes."""
    return Path(word).suffix.lower() in (".csv", ".parquet", ".pq")


def is_place(word: str) -> bool:
    """Whether a word says where data lie, and not what they are called: a folder of ``setsup render``, or shards."""
    return (expanded(word) / "rendered.json").is_file() or is_shards(word)


def check_root(root: Path | str | None) -> None:
    """Refuse a file where a folder, or an archive of one, is asked for."""
    if root is not None and Path(root).is_file() and Path(root).suffix.lower() not in _ARCHIVES:
        raise DataError(
            "--root takes the folder that holds the files or an archive of it (.zip, .tar, .tar.gz), and "
            f"{root} is a file: --root {Path(root).parent}"
        )


def assignments(words: Iterable[str], option: str, what: str) -> dict[str, str]:
    """Read words such as ``name=value``."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise DataError(f"{option} takes FACTOR={what.upper()}, such as `{option} name={what}`, not {word!r}")
        if name in found:
            raise DataError(f"{option} names {name!r} twice")
        found[name] = value
    return found


def check_factors(names: Iterable[str], table: "FactorTable", card: str) -> None:
    """Refuse names that are no factors, and say which command lists those."""
    for name in names:
        if name in table:
            continue
        parts = [part for part in name.split(",") if part]
        if len(parts) > 1 and all(part in table for part in parts):
            raise FactorError(f"{name!r} is no factor; put spaces between factors: {' '.join(parts)}")
        raise FactorError(f"unknown factor {name!r}{near(name, table.names)} ({card} lists the factors)")


def numbers(words: Mapping[str, str], option: str) -> dict[str, float]:
    """Turn the values of :func:`assignments` into numbers."""
    found = {}
    for name, word in words.items():
        try:
            found[name] = float(word)
        except ValueError:
            raise DataError(f"{option} {name}={word}: expected a number after the =, as in {name}=0.05") from None
    return found
