"""``setsup embed``: computes embeddings of a dataset with a trained method."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from setsup.errors import FactorError, SetsupError, need
from setsup.files.disk import need_writable
from setsup.files.expand_user import expanded
from setsup_cli.embedding_files import FILES, write_embeddings
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import Common, DatasetOptions, Device, Named, Root, Split
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.source import check_root, open_source, read_source_options
from setsup_cli.runs import check_device, describe_run, opened

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from setsup.datasets import Dataset
    from setsup.experiments import Data, TrainedRun

__all__ = ["HELP", "Options", "run"]

HELP = """\
Writes embeddings.npy, float32 (rows, dimensions), or (rows, height, width, dimensions) of maps, and for a method with
several embeddings embeddings-NAME.npy of each; factors.parquet, the factors of the same rows, which
setsup.FactorTable.from_parquet reads; and rows.npy, int64 (rows), their row numbers in the dataset. The last lines
printed are the paths."""


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    run: Annotated[Path, declared("RUN", "Folder of a run of `setsup train`.")] = field(kw_only=False)
    dataset: Annotated[
        str | None,
        declared(
            "[DATASET]",
            "A name of `setsup datasets`, a folder of `setsup render`, or a folder or address of shards.",
            "the dataset of the training",
        ),
    ] = field(default=None, kw_only=False)
    root: Root = None
    split: Split = None
    where: Annotated[str | None, declared("EXPRESSION", "Only rows such as \"scale >= 1.0 and shape != 'cube'\".")] = (
        None
    )
    rows: Annotated[int | None, declared("N", "Embed N random rows, drawn with the seed of the run.", "all")] = None
    out: Annotated[
        Path | None,
        declared(
            "FOLDER",
            "Output folder.",
            "RUN/embeddings-DATASET or -DATASET-SPLIT, with the suffix -part if rows are left out; an error if the "
            "folder has other rows",
        ),
    ] = None
    preset: Annotated[str | None, declared("FILE", "File of the run's preset, if it is your own.")] = None
    device: Device = None
    option: DatasetOptions = None


def run(options: Options) -> int:
    """Embed, write, print."""
    need("embed needs", "torch", "lightning")
    import numpy as np

    from setsup.experiments import load_trained

    check_root(options.root)
    check_device(options.device)
    found = opened(options.run, options.preset)
    data = found.preset.data
    if data is None:
        raise SetsupError(f"{found.preset.name} trains nothing, so that it has no embeddings")
    if options.dataset is None and options.option:
        raise SetsupError("--option requires the argument DATASET")
    trained = load_trained(found, root=options.root, device=options.device)
    dataset = _dataset(options, trained, data)
    split = options.split or (data.split if options.dataset is None else None)
    name = dataset.name.replace("/", "-")  # shards have names of any form
    rows = _rows(options, trained, dataset)
    part = "" if rows is None else "-part"  # kept apart from the embeddings of all rows
    folder = found.folder / f"embeddings-{name}{f'-{split}' if split else ''}{part}"
    numbers = np.arange(len(dataset)) if rows is None else rows
    if options.out is not None:
        folder = expanded(options.out)
    elif _holds_others(folder, numbers):
        raise SetsupError(f"{folder} contains embeddings of other rows; use --out FOLDER, or remove it")
    for file in FILES:
        need_writable(folder / file)
    if not options.json:
        for line in describe_run(found):
            say(line)
        many = f"{len(dataset):,}" if rows is None else f"{len(rows):,} of {len(dataset):,}"
        say(f"embedding {_named(dataset, split)}: {many} rows, on {trained.device}")
    try:
        files, shapes = write_embeddings(folder, trained, dataset, rows)
    except (RuntimeError, ValueError, LookupError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SetsupError(f"the method of {found.folder} cannot embed {_named(dataset, split)}: {reason}") from error
    sizes = {name: shape[1] if len(shape) == 2 else list(shape[1:]) for name, shape in shapes.items()}
    if options.json:
        about = {"run": str(found.folder), "substitute": found.substitute, "file_changed": found.file_changed}
        about |= {"dataset": dataset.name, "split": split, "rows": len(numbers), "dimensions": sizes.get(None, sizes)}
        show_json({**about, "files": {key: str(path) for key, path in files.items()}})
        return 0
    for title, shape in shapes.items():
        dimensions = f"{' × '.join(map(str, shape[1:]))} dimensions{f' of {title}' if title else ''}"
        say(f"{_named(dataset, split)}: {len(numbers):,} rows, {dimensions}")
    for path in files.values():
        say(str(path))
    return 0


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

    try:
        return not np.array_equal(np.load(folder / "rows.npy", allow_pickle=False), rows)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, EOFError):
        return True


def _named(dataset: "Dataset", split: str | None) -> str:
    return f"{dataset.name}, split {split}" if split else dataset.name


def _rows(options: Options, trained: "TrainedRun", dataset: "Dataset") -> "npt.NDArray[np.int64] | None":
    """The selected rows, in order; None for all."""
    import numpy as np

    if options.rows is not None and options.rows < 1:
        raise SetsupError(f"--rows must be 1 or more, not {options.rows}")
    if options.where is None and options.rows is None:
        return None
    kept = np.arange(len(dataset)) if options.where is None else dataset.factors.rows(options.where)
    if not len(kept):
        raise FactorError(f"--where {options.where!r} leaves no row")
    if options.rows is not None:
        kept = kept[np.sort(trained.sample(options.rows, dataset.factors.select(kept)))]
    return kept
