"""Options of subcommands with ``--encoder``, and what they open."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from setsup.errors import SetsupError
from setsup.experiments.data import Data
from setsup_cli.parsing.arguments import SOURCES, Device, Source, names_and_paths, option
from setsup_cli.parsing.source import (
    card_command,
    check_factors,
    check_root,
    find_source,
    given_words,
    open_source,
)
from setsup_cli.runs import check_device

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.experiments import TrainedRun

__all__ = [
    "MODE",
    "Batch",
    "DatasetName",
    "Embedding",
    "EncoderOptions",
    "Encoders",
    "check_named",
    "chosen_embedding",
    "describe_encoder",
    "explained",
    "names_encoder",
    "open_data",
    "open_reported",
    "opened_encoder",
    "results_folder",
]

_FORMS = (
    "hf:NAME (in the cache of the Hugging Face hub) or hf:./FOLDER; FILE.pt (weights of a torchvision or MoCo "
    "ResNet); timm:NAME; FILE.py:FUNCTION (which returns a module); random:resnet50; pixels (the pixels of the image) "
    "or pixels:16 (those of the image resized to 16 × 16). Nothing is downloaded."
)
MODE = Annotated[
    str | None,
    option(
        "ENCODER",
        f"Frozen encoder to use instead of RUN: {_FORMS} With --encoder pixels, --help lists the options of encoders.",
    ),
]
"""The option where a run may be named instead."""
Batch = Annotated[int, option("N", "Images per forward pass of the encoder, 1 to 256.")]

DatasetName = Annotated[str, option("DATASET", SOURCES, completer=names_and_paths)]
Encoders = Annotated[
    tuple[str, ...] | None,
    option(
        "ENCODER",
        "Frozen encoder, as described by `setsup embed --encoder pixels --help`; may be repeated.",
        consume_multiple=False,
        allow_repeating=True,
    ),
]
Embedding = Annotated[
    str | None,
    option("NAME", "Name of the embedding, if the method of the runs has several, such as a view.", "all of them"),
]


@dataclass(frozen=True, kw_only=True)
class EncoderOptions(Source):
    """Options of a subcommand that uses an encoder."""

    dataset: Annotated[
        str | None, option("[DATASET]", f"{SOURCES} Required unless --table is given.", completer=names_and_paths)
    ] = field(default=None, kw_only=False)
    encoder: Annotated[str, option("ENCODER", f"Frozen encoder: {_FORMS}")]
    device: Device = None
    batch: Batch = 64


def names_encoder(words: Sequence[str]) -> bool:
    """Whether words of the command line have ``--encoder``."""
    return any(word.partition("=")[0] == "--encoder" for word in words)


def open_data(options: Source) -> "tuple[Dataset, Data]":
    """The dataset that options name, and its name and options, by which another split of it is opened."""
    check_root(options.root)
    if options.dataset is None and options.table is None:
        raise SetsupError("--encoder requires the argument DATASET, as in `--encoder pixels shapes3d-procedural`")
    dataset = open_source(options)
    source, kind = find_source(options)
    given = given_words(options, source, kind)
    given.pop("relist", None)
    return dataset, Data(str(source), options.split, options=tuple(given.items()))


def open_reported(options: Any) -> "tuple[Dataset, Data, Source]":
    """The dataset of a report on encoders and runs, as :func:`open_data` returns it, and its options."""
    if not (options.encoder or options.runs):
        raise SetsupError(
            f"`setsup report {options.report}` requires runs or an encoder; pass folders of runs, or --encoder ENCODER"
        )
    columns = {name: getattr(options, name) for name in ("image", "kinds") if hasattr(options, name)}
    source = Source(options.dataset, root=options.root, split=options.split, option=options.option, **columns)
    check_device(options.device)
    return *open_data(source), source


@contextmanager
def explained(label: str, dataset: "Dataset") -> Iterator[None]:
    """Convert errors of a network into a SetsupError of one sentence."""
    try:
        yield
    except SetsupError:
        raise
    except (RuntimeError, ValueError, LookupError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SetsupError(f"{label} cannot embed {dataset.name}: {reason}") from error


def opened_encoder(
    name: str, options: Any, dataset: "Dataset", data: Data | None = None, folder: Path = Path()
) -> "TrainedRun":
    """The encoder of a name, with a dataset."""
    from setsup.experiments.encoders import encoder_run, open_encoder

    check_device(options.device)
    encoder = open_encoder(name, options.device, batch=options.batch, seed=options.seed)
    return encoder_run(encoder, dataset, data=data, root=options.root, folder=folder, seed=options.seed)


def check_named(factors: Sequence[str] | None, dataset: "Dataset", options: Source) -> None:
    """Refuse names that are no factors of a dataset."""
    check_factors(factors or (), dataset.factors, card_command(options))


def chosen_embedding(options: Any, trained: "TrainedRun") -> str | None:
    """The embedding that --embedding names; frozen encoders have one, without a name."""
    from setsup.experiments.encoders import Encoder

    return None if isinstance(trained.method, Encoder) else options.embedding


def results_folder(name: str, dataset: "Dataset", split: str | None, before: str = "") -> Path:
    """Default folder of the results of an encoder, below ``encoders``."""
    where = f"{before}{dataset.name}{f'-{split}' if split else ''}"
    return Path("encoders", _slug(name), _slug(where))


def _slug(text: str) -> str:
    slug = re.sub(r"[^\w.+-]+", "-", text).strip("-.")
    if not slug:
        raise SetsupError(f"{text!r} cannot be used as the name of a folder; pass --out FOLDER")
    return slug


def describe_encoder(trained: "TrainedRun") -> str:
    """A line that describes an encoder."""
    encoder: Any = trained.method
    return f"{trained.name}, weights: {encoder.weights}"
