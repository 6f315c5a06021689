"""Files that `setsup embed` writes."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from setsup.errors import SetsupError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from setsup.datasets import Dataset
    from setsup.experiments import TrainedRun

__all__ = ["FILES", "write_embeddings"]

FILES = ("embeddings.npy", "factors.parquet", "rows.npy")
"""Files of a method that gives one embedding."""

Shapes = dict[str | None, tuple[int, ...]]


def write_embeddings(
    folder: Path,
    trained: "TrainedRun",
    dataset: "Dataset",
    rows: "npt.NDArray[np.int64] | None",
    on_size: "Callable[[tuple[int, ...]], None] | None" = None,
    neighbours: int | None = None,
) -> tuple[dict[str, Path], Shapes]:
    """Embed rows, and write all files or none of them; their paths, and the shapes of embeddings by name.

    Embeddings are written as they are computed: maps of many rows need no memory. `on_size` gets the shape of each file
    of embeddings before it is written. With `neighbours`, so many nearest rows of each row are written, too.
    """
    import numpy as np
    import pyarrow.parquet as pq

    from setsup.experiments.embedding import embed_all
    from setsup.files import locked, written
    from setsup.files.atomic import clear
    from setsup.files.mapped import new_array

    files: dict[str, Path] = {}
    with ExitStack() as stack:

        def begin(file: str) -> Path:
            if not files:  # not before: what cannot be embedded leaves no folder
                stack.enter_context(locked(folder / "embeddings"))
            files[Path(file).stem] = folder / file
            clear(folder / file)  # what a killed process left
            return stack.enter_context(written(folder / file))

        def allocate(name: str | None, shape: tuple[int, ...]) -> "npt.NDArray[np.float32]":
            if on_size is not None:
                on_size(shape)
            file = "embeddings.npy" if name is None else f"embeddings-{name}.npy"
            return new_array(begin(file), np.float32, shape)

        arrays = embed_all(trained.method, dataset, rows, allocate, **trained.embedding(dataset))
        shapes = {name: array.shape for name, array in arrays.items()}
        for array in arrays.values():
            if isinstance(array, np.memmap):
                array.flush()
        factors = dataset.factors if rows is None else dataset.factors.select(rows)
        pq.write_table(factors.to_arrow(), begin("factors.parquet"))
        numbers = np.arange(len(dataset)) if rows is None else rows
        np.save(begin("rows.npy"), numbers)
        if neighbours is not None:
            for name, points in arrays.items():
                table = _neighbours(points, numbers, len(dataset), neighbours)
                np.save(begin("neighbours.npy" if name is None else f"neighbours-{name}.npy"), table)
    return files, shapes


def _neighbours(
    points: "npt.NDArray[np.float32]", rows: "npt.NDArray[np.int64]", count: int, most: int
) -> "npt.NDArray[np.int64]":
    """Rows of the dataset nearest to each one, (count, most); -1 for rows that are not embedded."""
    import numpy as np

    from setsup.evaluation import nearest

    if points.ndim > 2:
        raise SetsupError(
            "--neighbours requires one embedding per row, but this method returns maps; omit --neighbours"
        )
    neighbours, _ = nearest(points, points, most, own=np.arange(len(points)))
    table = np.full((count, most), -1, dtype=np.int64)
    table[rows] = np.where(neighbours < 0, -1, rows[neighbours])
    return table
