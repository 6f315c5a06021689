"""``setsup embed``: computes embeddings of a dataset with a trained method, or with any encoder."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from setsup.checks import check_integer
from setsup.errors import DataError, SetsupError, require_modules
from setsup.files import readable_size
from setsup.files.disk import need_regular, need_writable
from setsup.files.expand_user import expanded
from setsup_cli.embedding_files import FILES, write_embeddings
from setsup_cli.encoders.options import (
    MODE,
    EncoderOptions,
    describe_encoder,
    names_encoder,
    open_data,
    opened_encoder,
    results_folder,
)
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import (
    SOURCES,
    Checkpoint,
    Common,
    DatasetOptions,
    Device,
    Named,
    OwnPreset,
    Root,
    Split,
    names_and_paths,
)
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.source import check_root, open_source, read_source_options, rows_where
from setsup_cli.parsing.values import write_literal
from setsup_cli.runs import check_device, describe_run, opened
from setsup_cli.stopping import sigterm_as_interrupt
from setsup_cli.suggestions import advise, python_command

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from setsup.datasets import Dataset
    from setsup.experiments import Data, TrainedRun

__all__ = ["HELP", "Options", "resolve_options", "run"]

_FILES = """\
Embeddings are written to embeddings.npy, float32 of shape (rows, dimensions), or (rows, height, width, dimensions) for
maps; if there are several embeddings per row, each is written to embeddings-NAME.npy. factors.parquet contains the
factors of the embedded rows; read it with setsup.FactorTable.from_parquet. rows.npy contains their row numbers in the
dataset, int64 of shape (rows). --neighbours K adds neighbours.npy, int64 of shape (rows of the dataset, K), a table for
setsup.NeighbourSampler. The last lines printed are the paths of the written files."""

HELP = f"""\
`setsup embed RUN` computes embeddings with the method of a run, `setsup embed --encoder ENCODER DATASET` with any
frozen encoder. {_FILES}"""

_log = logging.getLogger("setsup")

_LARGE = 1_000_000_000  # bytes
_BY_ENCODER = "compute embeddings of a dataset with a frozen encoder, and save them with the factors"

Where = Annotated[
    str | None,
    declared("EXPRESSION", "Embed only rows that satisfy an expression, such as \"scale >= 1.0 and shape != 'cube'\"."),
]

Neighbours = Annotated[
    int | None,
    declared(
        "K",
        "Also write neighbours.npy, the K rows nearest to each row by Euclidean distance, for `setsup sample "
        "--neighbours`.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    run: Annotated[Path, declared("RUN", "Folder of a run of `setsup train`.")] = field(kw_only=False)
    dataset: Annotated[
        str | None,
        declared("[DATASET]", SOURCES, "the dataset of the training", completer=names_and_paths),
    ] = field(default=None, kw_only=False)
    root: Root = None
    split: Split = None
    where: Where = None
    rows: Annotated[
        int | None, declared("N", "Embed N random rows, drawn with the seed of the run.", "all", alias="-n")
    ] = None
    out: Annotated[
        Path | None,
        declared(
            "FOLDER",
            "Output folder; must not contain embeddings of other rows; those of the same rows are replaced.",
            "RUN/embeddings-DATASET or RUN/embeddings-DATASET-SPLIT, with a suffix such as -best for a checkpoint "
            "other than the last, and -part if rows are left out",
            alias="-o",
        ),
    ] = None
    neighbours: Neighbours = None
    checkpoint: Checkpoint = "last"
    preset: OwnPreset = None
    device: Device = None
    option: DatasetOptions = None
    encoder: MODE = None


@dataclass(frozen=True, kw_only=True)
class ByEncoder(EncoderOptions):
    """Options of the subcommand with ``--encoder``."""

    where: Where = None
    rows: Annotated[int | None, declared("N", "Embed N random rows, drawn with the seed.", "all", alias="-n")] = None
    seed: Annotated[int, declared("N", "Random seed for drawing rows and for random weights.")] = 0
    out: Annotated[
        Path | None,
        declared(
            "FOLDER",
            "Output folder; must not contain embeddings of other rows; those of the same rows are replaced.",
            "encoders/ENCODER/embeddings-DATASET or encoders/ENCODER/embeddings-DATASET-SPLIT, with -part if "
            "rows are left out",
            alias="-o",
        ),
    ] = None
    neighbours: Neighbours = None


class _Job(NamedTuple):
    """What embeds which dataset, and how the result is called."""

    trained: "TrainedRun"
    dataset: "Dataset"
    split: str | None
    folder: Path
    who: str
    lines: tuple[str, ...]
    about: Mapping[str, Any]


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """Options of an encoder in place of those of a run."""
    return Subcommand("embed", ByEncoder, _FILES, summary=_BY_ENCODER) if names_encoder(words) else subcommand


def run(options: "Options | ByEncoder") -> int:
    """Embed, write, print."""
    require_modules("embed needs", "torch", "lightning")
    import numpy as np

    check_root(options.root)
    check_device(options.device)
    job = _of_encoder(options) if isinstance(options, ByEncoder) else _of_run(options)
    trained, dataset, split = job.trained, job.dataset, job.split
    rows = _rows(options, trained, dataset)
    # a part is kept apart from the embeddings of all rows
    folder = job.folder if rows is None else job.folder.with_name(f"{job.folder.name}-part")
    numbers = np.arange(len(dataset)) if rows is None else rows
    if options.out is not None:
        folder = expanded(options.out)
    for file in FILES:
        need_writable(folder / file)
    if _holds_others(folder, numbers):
        raise SetsupError(
            f"{folder} contains embeddings of other rows; choose another folder with --out FOLDER, or remove this one"
        )
    if options.neighbours is not None:
        check_integer(options.neighbours, "--neighbours", SetsupError, 1)
    if not options.json:
        for line in job.lines:
            say(line)
        many = f"{len(dataset):,}" if rows is None else f"{len(rows):,} of {len(dataset):,}"
        say(f"embedding {_named(dataset, split)}: {many} rows, on {trained.device}")
    try:
        with sigterm_as_interrupt():
            files, shapes = write_embeddings(folder, trained, dataset, rows, _say_size(options), options.neighbours)
    except (RuntimeError, ValueError, LookupError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SetsupError(f"{job.who} cannot embed {_named(dataset, split)}: {reason}") from error
    _tell_missing_views(trained, dataset, shapes)
    sizes = {name: shape[1] if len(shape) == 2 else list(shape[1:]) for name, shape in shapes.items()}
    if options.json:
        about = {**job.about, "dataset": dataset.name, "split": split}
        about |= {"rows": len(numbers), "dimensions": sizes.get(None, sizes)}
        show_json({**about, "files": {key: str(path) for key, path in files.items()}})
        return 0
    for title, shape in shapes.items():
        dimensions = f"{' × '.join(map(str, shape[1:]))} dimensions{f' of {title}' if title else ''}"
        say(f"{_named(dataset, split)}: {len(numbers):,} rows, {dimensions}")
    for path in files.values():
        say(str(path))
    array = next(path for path in files.values() if path.suffix == ".npy")
    factors = f"factors = setsup.FactorTable.from_parquet({write_literal(str(files['factors']))})"
    loaded = f'embeddings = numpy.load({write_literal(str(array))}, mmap_mode="r")'
    advise(options, python_command("import numpy, setsup", loaded, factors))
    return 0


def _tell_missing_views(trained: "TrainedRun", dataset: "Dataset", arrays: Mapping[str | None, Any]) -> None:
    """Warn of views of the training that the data do not have: what joins all views is smaller, too."""
    views = getattr(trained.method, "views", ())
    missing = [view for view in views if view not in arrays]
    if missing and len(missing) < len(views):
        _log.warning(
            "%s has no %s, which the run was trained on; embeddings are computed from %s only",
            dataset.name,
            " or ".join(missing),
            " and ".join(view for view in views if view in arrays),
        )


def _say_size(options: "Options | ByEncoder") -> Callable[[tuple[int, ...]], None]:
    """Print what is to be written where that is much, before it is computed."""

    def say_size(shape: tuple[int, ...]) -> None:
        size = 4 * prod(shape)
        if size > _LARGE and not options.json:
            say(f"writing {readable_size(size)}: float32 {' × '.join(f'{length:,}' for length in shape)}")

    return say_size


def _of_run(options: Options) -> _Job:
    from setsup.experiments import load_trained

    opened_run = opened(options.run, options.preset, options.checkpoint)
    data = opened_run.preset.data
    if data is None:
        raise SetsupError(
            f"{opened_run.preset.name} does not train a method, so its runs have no embeddings; choose another run"
        )
    if options.dataset is None and options.option:
        raise SetsupError("--option requires the argument DATASET")
    trained = load_trained(opened_run, root=options.root, device=options.device)
    dataset = _dataset(options, trained, data)
    split = options.split or (data.split if options.dataset is None else None)
    name = dataset.name.replace("/", "-")  # shards have names of any form
    folder = opened_run.folder / f"embeddings-{name}{f'-{split}' if split else ''}{opened_run.suffix}"
    about = {
        "run": str(opened_run.folder),
        "substitute": opened_run.substitute,
        "file_changed": opened_run.file_changed,
    }
    about["checkpoint"] = opened_run.chosen or "last"
    who = f"the method of {opened_run.folder}"
    return _Job(trained, dataset, split, folder, who, tuple(describe_run(opened_run)), about)


def _of_encoder(options: ByEncoder) -> _Job:
    dataset, data = open_data(options)
    trained = opened_encoder(options.encoder, options, dataset, data)
    encoder: Any = trained.method
    folder = results_folder(options.encoder, dataset, options.split, "embeddings-")
    return _Job(trained, dataset, options.split, folder, trained.name, (describe_encoder(trained),), encoder.about)


def _dataset(options: Options, trained: "TrainedRun", data: "Data") -> "Dataset":
    from setsup.opening import find_kind

    if options.dataset is None:
        return trained.open(split=options.split)
    if options.dataset != data.name or find_kind(data.name) != "benchmark":
        # the folder of the training has other files
        return open_source(Named(options.dataset, root=options.root, split=options.split, option=options.option))
    asked = dict(data.options) | read_source_options(options.option or (), data.name)
    return replace(data, split=None, where=None, options=tuple(asked.items())).open(trained.root, split=options.split)


def _holds_others(folder: Path, rows: "npt.NDArray[np.int64]") -> bool:
    """Whether the embeddings in a folder are of other rows, or of unknown ones."""
    import numpy as np

    from setsup.datasets.formats.npy import read_npy

    if not os.path.lexists(folder / "rows.npy"):
        return False
    try:
        need_regular(folder / "rows.npy")
        kept = read_npy(folder / "rows.npy")
    except DataError:
        return True
    return kept.dtype.kind not in "iu" or not np.array_equal(kept, rows)


def _named(dataset: "Dataset", split: str | None) -> str:
    return f"{dataset.name}, split {split}" if split else dataset.name


def _rows(options: "Options | ByEncoder", trained: "TrainedRun", dataset: "Dataset") -> "npt.NDArray[np.int64] | None":
    """The selected rows, in order; None for all."""
    import numpy as np

    if options.rows is not None and options.rows < 1:
        raise SetsupError(f"--rows must be 1 or more, not {options.rows}")
    if options.where is None and options.rows is None:
        return None
    kept = np.arange(len(dataset)) if options.where is None else rows_where(dataset.factors, options.where)
    if options.rows is not None:
        kept = kept[np.sort(trained.sample(options.rows, dataset.factors.select(kept)))]
    return kept
