"""How options are declared: metavar and help stand beside the type.

Two habits keep ``--help`` fast, for tyro imports heavy parsers otherwise: help is given here and not in docstrings, and
what may be absent has one of the types below, unions of the old kind with None first.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Union

from tyro.conf import Positional, arg

__all__ = [
    "DEFAULT",
    "Dataset",
    "Device",
    "Image",
    "Index",
    "Json",
    "Kinds",
    "MaybeDataset",
    "MaybeFolders",
    "MaybeNumber",
    "MaybePath",
    "MaybeSize",
    "MaybeText",
    "MaybeWords",
    "Named",
    "Opening",
    "Root",
    "Source",
    "Split",
    "Table",
    "option",
]

DEFAULT = "shapes3d-procedural"
"""What subcommands work on when no dataset is named: rendered on demand, no download."""

MaybeText = Union[None, str]  # noqa: UP007
MaybeNumber = Union[None, int]  # noqa: UP007
MaybePath = Union[None, Path]  # noqa: UP007
MaybeFolders = Union[None, tuple[Path, ...]]  # noqa: UP007
MaybeWords = Union[None, tuple[str, ...]]  # noqa: UP007
MaybeSize = Union[None, tuple[int, int]]  # noqa: UP007


def option(metavar: str | None, text: str, hint: str = "") -> Any:
    """Declare an option."""
    return arg(metavar=metavar, help=text, help_behavior_hint=hint)


Dataset = Annotated[Positional[str], option("DATASET", "A name of `setsup datasets`.")]
"""A data set that must be named."""

MaybeDataset = Annotated[
    Positional[MaybeText],
    option(
        "[DATASET]",
        "A name of `setsup datasets`, a folder of `setsup render`, or a folder or address of shards.",
        f"(default: {DEFAULT})",
    ),
]
"""A data set that may be named."""

Index = Annotated[
    MaybeText, option("URL", "Where `setsup index --out` put the index of the shards, if not beside them.")
]
"""The option ``--index``."""

Root = Annotated[MaybePath, option("FOLDER", "Folder that holds the published files, or an archive of it.")]
"""The option ``--root``."""

Split = Annotated[
    MaybeText, option("NAME", "A split or subset that `setsup info` lists; its rows are numbered from 0.")
]
"""The option ``--split``."""

Table = Annotated[
    MaybePath,
    option("FILE", "CSV or Parquet file in place of a name: a column of image paths, and columns of factors."),
]
"""The option ``--table``."""

Image = Annotated[MaybeText, option("COLUMN", "The table's column of image paths or image bytes.")]
"""The option ``--image``."""

Kinds = Annotated[
    MaybeWords,
    option(
        "NAME=KIND ...",
        "Kinds of the table's factors, where those inferred do not suit: nominal, ordinal, cyclic, continuous; "
        "ordinal:low,mid,high gives the order of texts.",
    ),
]
"""The option ``--kinds``."""

Opening = Annotated[
    MaybeWords,
    option("NAME=VALUE ...", "What opens the data set takes beside, as `setsup info` lists it: size=64,64 margin=0.1."),
]
"""The option ``--option``."""

Device = Annotated[MaybeText, option("cpu|cuda|cuda:N", "Where networks run.", "(default: a GPU if any)")]
"""The option ``--device``."""

Json = Annotated[bool, option(None, "Print one JSON value in place of words.")]
"""The option ``--json`` that all verbs have."""


@dataclass(frozen=True)
class Named:
    """Options of verbs that open a data set by its name, or where it lies."""

    dataset: MaybeDataset = None
    root: Root = None
    split: Split = None
    index: Index = None
    option: Opening = None


@dataclass(frozen=True)
class Source(Named):
    """Options of verbs that also open a table of the user's own."""

    table: Table = None
    image: Image = None
    kinds: Kinds = None
