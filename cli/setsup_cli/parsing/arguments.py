"""Arguments and options that several subcommands have, and how one is declared.

A class of options is a dataclass: its positional fields are arguments of the subcommand, its keyword-only fields
options.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from setsup_cli.parsing.values import convert_words

__all__ = [
    "DEFAULT",
    "OUTPUT",
    "RAI",
    "SOURCE",
    "SOURCES",
    "Checkpoint",
    "Common",
    "Dataset",
    "DatasetOptions",
    "Device",
    "Image",
    "Kinds",
    "MaybeDataset",
    "Named",
    "OwnPreset",
    "Rai",
    "Root",
    "Source",
    "Split",
    "flag",
    "names_and_paths",
    "option",
]

DEFAULT = "shapes3d-procedural"
"""The dataset of subcommands without a dataset: rendered on demand, no download."""

SOURCES = (
    "Name listed by `setsup datasets`; CSV, Parquet or JSON lines file; folder, zip or tar of images; folder written "
    "by `setsup render`; saved Hugging Face dataset; Croissant description; or folder or address of shards."
)
"""What help says of the argument DATASET."""

RAI = (
    "YAML file of responsible-AI (RAI) fields, which cannot be derived from the data: dataLimitations, dataBiases, "
    "personalSensitiveInformation, dataUseCases, dataSocialImpact, creator, datePublished and others; each a string or "
    "a list of strings."
)
"""What help says of the file of ``--rai``."""

SOURCE = Group("Source", sort_key=1)
"""Options that say which data are opened."""

OUTPUT = Group("Output", sort_key=2)
"""Options of the output, last in the help."""


def option(metavar: str, text: str, default: str = "", **more: Any) -> Parameter:
    """Declare an option or argument with a value; a metavar in brackets lets the values be omitted."""
    least = 0 if metavar.startswith("[") else 1
    more = {"converter": convert_words, "consume_multiple": (least, None), **more}
    return Parameter(metavar=metavar, help=text, show_default=default or None, **more)


def flag(text: str, **more: Any) -> Parameter:
    """Declare an option without a value."""
    return Parameter(help=text, show_default=False, **more)


def _names(context: object) -> Iterable[str]:
    from setsup.files import manifest_names

    return manifest_names()


def names_and_paths(context: Any) -> Iterable[str]:
    """Names of datasets, and files and folders that begin with the word."""
    from glob import escape, glob

    yield from _names(context)
    word = context.incomplete
    yield from glob(escape(word) + "*") if word else ()


Dataset = Annotated[str, option("DATASET", "Name listed by `setsup datasets`.", completer=_names)]
Rai = Annotated[Path | None, option("FILE.yaml", f"For croissant.json: {RAI}", group=OUTPUT)]
MaybeDataset = Annotated[str | None, option("[DATASET]", SOURCES, DEFAULT, completer=names_and_paths)]
Root = Annotated[Path | None, option("FOLDER", "Folder or archive of the published files.", group=SOURCE)]
Split = Annotated[
    str | None,
    option("NAME", "Split or subset listed by `setsup info`; its rows are numbered from 0.", group=SOURCE),
]
Index = Annotated[
    str | None,
    option("URL", "Index written by `setsup index --out`, if it is not in the folder of the shards.", group=SOURCE),
]
DatasetOptions = Annotated[
    tuple[str, ...] | None,
    option("NAME=VALUE ...", "Dataset options, such as size=64,64 margin=0.1; `setsup info` lists them.", group=SOURCE),
]
Image = Annotated[str | None, option("COLUMN", "The table's column of image paths or image bytes.", group=SOURCE)]
Kinds = Annotated[
    tuple[str, ...] | None,
    option(
        "NAME=KIND ...",
        "Override inferred kinds of factors: nominal, ordinal, cyclic or continuous; ordinal:low,mid,high gives the "
        "order of levels.",
        group=SOURCE,
    ),
]
Pattern = Annotated[
    str | None,
    option(
        "PATTERN",
        "Pattern of image paths; its fields become factors, as in '{class}/...' or '{subject}/{yaw:d}.jpg'.",
        group=SOURCE,
    ),
]
Relist = Annotated[
    bool,
    flag(
        "List a folder or archive of images again, to find changes that modification times do not reveal.", group=SOURCE
    ),
]
OwnPreset = Annotated[
    str | None,
    option("FILE.py", "New path of the file that defines the preset, if it is your own and you have moved the file."),
]
Device = Annotated[str | None, option("cpu|cuda|cuda:N", "Device of the networks.", "a GPU if available")]

Checkpoint = Annotated[
    str, option("last|best|step-N", "Checkpoint of the run: the last one, or one kept by `setsup train`.", "last")
]


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options of all subcommands."""

    json: Annotated[bool, flag("Output JSON.", group=OUTPUT)] = False
    quiet: Annotated[bool, flag("Hide progress and advice on standard error.", group=OUTPUT, alias="-q")] = False
    verbose: Annotated[bool, flag("Log details to standard error.", group=OUTPUT, alias="-v")] = False


@dataclass(frozen=True, kw_only=True)
class Named(Common):
    """Options of subcommands that open a dataset by its name or place."""

    dataset: MaybeDataset = field(default=None, kw_only=False)
    root: Root = None
    split: Split = None
    index: Index = None
    pattern: Pattern = None
    relist: Relist = False
    option: DatasetOptions = None


@dataclass(frozen=True, kw_only=True)
class Source(Named):
    """Options of subcommands that also open a table of the user's own."""

    table: Annotated[
        Path | None,
        option(
            "FILE",
            "CSV, Parquet or JSON lines file with a column of image paths, and columns of factors.",
            group=SOURCE,
        ),
    ] = None
    image: Image = None
    kinds: Kinds = None
