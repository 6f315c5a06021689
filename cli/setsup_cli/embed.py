"""``setsup embed``: embeddings of a data set by a trained method, and the factors of its rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional

from setsup.errors import SetsupError
from setsup_cli.arguments import Device, Json, MaybePath, MaybeText, Root, Split, option
from setsup_cli.output import say, show_json
from setsup_cli.runs import check_device, opened, words_about
from setsup_cli.source import check_root, open_source

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from setsup.datasets import Dataset
    from setsup.factors import FactorTable

__all__ = ["HELP", "Options", "run"]

HELP = """\
It writes embeddings.npy, float32 (rows, dimensions), and factors.parquet, whose rows are the same in the same order;
setsup.FactorTable.from_parquet reads these. The last lines printed are their paths."""


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
    out: Annotated[
        MaybePath,
        option("FOLDER", "Folder for the two files.", "(default: RUN/embeddings-DATASET, or -DATASET-SPLIT)"),
    ] = None
    preset: Annotated[MaybeText, option("FILE", "The file of the run's preset, where it is one of your own.")] = None
    device: Device = None
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
    if options.dataset is None:
        dataset, split = trained.open(options.split), options.split or data.split
    else:
        # the folder that the run was trained from holds other files
        root = trained.root if options.dataset == data.name else options.root
        dataset, split = open_source(options.dataset, root, split=options.split), options.split
    try:
        embedded = embed(trained.method, dataset, device=trained.device, precision=trained.precision)
    except (RuntimeError, ValueError, KeyError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SetsupError(f"the method of {found.folder} cannot embed {_named(dataset, split)}: {reason}") from error
    name = dataset.name.replace("/", "-")  # which shards tell of themselves
    folder = options.out or found.folder / f"embeddings-{name}{f'-{split}' if split else ''}"
    files = _write(folder, embedded, dataset.factors)
    if options.json:
        rows, width = embedded.shape
        about = {"run": str(found.folder), "stand_in": found.stand_in, "dataset": dataset.name, "split": split}
        show_json(
            {**about, "rows": rows, "dimensions": width, "files": {key: str(path) for key, path in files.items()}}
        )
        return 0
    for line in words_about(found):
        say(line)
    say(f"{_named(dataset, split)}: {len(embedded):,} rows, {embedded.shape[1]} dimensions")
    for path in files.values():
        say(str(path))
    return 0


def _named(dataset: "Dataset", split: str | None) -> str:
    return f"{dataset.name}, split {split}" if split else dataset.name


def _write(folder: Path, embedded: "npt.NDArray[np.float32]", factors: "FactorTable") -> dict[str, Path]:
    """Write both files; neither gets its name before both are whole."""
    import numpy as np
    import pyarrow.parquet as pq

    from setsup.files import written

    files = {"embeddings": folder / "embeddings.npy", "factors": folder / "factors.parquet"}
    with written(files["embeddings"]) as first, written(files["factors"]) as second:
        np.save(first, embedded)
        pq.write_table(factors.to_arrow(), second)
    return files
