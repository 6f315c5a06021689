"""``setsup embed``: embeddings of a data set by a trained method, and the factors of its rows."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional

from setsup.errors import FactorError, SetsupError
from setsup.files.disk import need_writable
from setsup_cli.arguments import Device, Json, MaybeNumber, MaybePath, MaybeText, Opening, Root, Split, option
from setsup_cli.output import say, show_json
from setsup_cli.runs import check_device, opened, words_about
from setsup_cli.source import check_root, open_source

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from setsup.datasets import Dataset
    from setsup.experiments import Trained
    from setsup.factors import FactorTable

__all__ = ["HELP", "Options", "run"]

HELP = """\
It writes embeddings.npy, float32 (rows, dimensions), and factors.parquet, whose rows are the same in the same order;
setsup.FactorTable.from_parquet reads these. With --where or --rows it writes rows.npy, too, int64 (rows): their
numbers in the data set, in order. The last lines printed are the paths."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb."""

    run: Annotated[Positional[Path], option("RUN", "Folder of a run of `setsup train`.")]
    dataset: Annotated[
        Positional[MaybeText],
        option(
            "[DATASET]",
            "A name of `setsup datasets`, a folder of `setsup render`, or a folder or address of shards.",
            "(default: what the run was trained on)",
        ),
    ] = None
    root: Root = None
    split: Split = None
    where: Annotated[MaybeText, option("EXPRESSION", "Only rows such as \"scale >= 1.0 and shape != 'cube'\".")] = None
    rows: Annotated[MaybeNumber, option("N", "Only so many rows, chosen by the seed of the run.", "(default: all)")] = (
        None
    )
    out: Annotated[
        MaybePath,
        option(
            "FOLDER",
            "Folder for the files.",
            "(default: RUN/embeddings-DATASET, or -DATASET-SPLIT, with -part behind it where rows are left out)",
        ),
    ] = None
    preset: Annotated[MaybeText, option("FILE", "The file of the run's preset, where it is one of your own.")] = None
    device: Device = None
    option: Opening = None
    json: Json = False


def run(options: Options) -> int:
    """Embed, write, print."""
    from setsup.experiments import embed, load_trained

    check_root(options.root)
    check_device(options.device)
    found = opened(options.run, options.preset)
    trained = load_trained(found, root=options.root, device=options.device)
    data = found.preset.data
    if data is None:
        raise SetsupError(f"{found.preset.name} trains nothing, so there is nothing to embed with")
    if options.dataset is None and options.option:
        raise SetsupError("--option opens the data set that is named before it; without a name the run's own is opened")
    if options.dataset is None:
        dataset, split = trained.open(options.split), options.split or data.split
    else:
        # the folder that the run was trained from holds other files
        root = trained.root if options.dataset == data.name else options.root
        dataset = open_source(options.dataset, root, split=options.split, option=options.option or ())
        split = options.split
    name = dataset.name.replace("/", "-")  # which shards tell of themselves
    rows = _rows(options, trained, dataset)
    part = "" if rows is None else "-part"  # which does not take the place of all
    folder = options.out or found.folder / f"embeddings-{name}{f'-{split}' if split else ''}{part}"
    need_writable(folder / "embeddings.npy")
    if not options.json:
        for line in words_about(found):
            say(line)
        many = f"{len(dataset):,}" if rows is None else f"{len(rows):,} of {len(dataset):,}"
        say(f"embedding {_named(dataset, split)}: {many} rows, on {trained.device}")
    try:
        embedded = embed(trained.method, dataset, rows, device=trained.device, precision=trained.precision)
    except (RuntimeError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SetsupError(f"the method of {found.folder} cannot embed {_named(dataset, split)}: {reason}") from error
    files = _write(folder, embedded, dataset.factors if rows is None else dataset.factors.select(rows), rows)
    if options.json:
        many, width = embedded.shape
        about = {"run": str(found.folder), "stand_in": found.stand_in, "file_changed": found.file_changed}
        about |= {"dataset": dataset.name, "split": split}
        show_json(
            {**about, "rows": many, "dimensions": width, "files": {key: str(path) for key, path in files.items()}}
        )
        return 0
    say(f"{_named(dataset, split)}: {len(embedded):,} rows, {embedded.shape[1]} dimensions")
    for path in files.values():
        say(str(path))
    return 0


def _named(dataset: "Dataset", split: str | None) -> str:
    return f"{dataset.name}, split {split}" if split else dataset.name


def _rows(options: Options, trained: "Trained", dataset: "Dataset") -> "npt.NDArray[np.int64] | None":
    """Rows that are asked for, in their order; None for all."""
    import numpy as np

    if options.rows is not None and options.rows < 1:
        raise SetsupError(f"--rows takes a number from 1 on, not {options.rows}")
    if options.where is None and options.rows is None:
        return None
    kept = np.arange(len(dataset)) if options.where is None else dataset.factors.rows(options.where)
    if not len(kept):
        raise FactorError(f"--where {options.where!r} leaves no row")
    if options.rows is not None:
        kept = kept[np.sort(trained.sample(options.rows, dataset.select(kept)))]
    return kept


def _write(
    folder: Path,
    embedded: "npt.NDArray[np.float32]",
    factors: "FactorTable",
    rows: "npt.NDArray[np.int64] | None",
) -> dict[str, Path]:
    """Write the files; none gets its name before all are whole, and none of an earlier embedding stays beside them."""
    import numpy as np
    import pyarrow.parquet as pq

    from setsup.files import written

    files = {"embeddings": folder / "embeddings.npy", "factors": folder / "factors.parquet"}
    numbers = folder / "rows.npy"
    if rows is not None:
        files["rows"] = numbers
    with ExitStack() as stack:
        parts = {name: stack.enter_context(written(path)) for name, path in files.items()}
        np.save(parts["embeddings"], embedded)
        pq.write_table(factors.to_arrow(), parts["factors"])
        if rows is not None:
            np.save(parts["rows"], rows)
    if rows is None:
        numbers.unlink(missing_ok=True)  # in a folder that was named
    return files
