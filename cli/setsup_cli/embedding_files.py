"""Files that `setsup embed` writes."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

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
) -> tuple[dict[str, Path], Shapes]:
    """Embed rows, and write all files or none of them; their paths, and the shapes of embeddings by name.

    Embeddings are written as they are computed: maps of many rows need no memory. `on_size` gets the shape of each file
    of embeddings before it is written.
    """
    import numpy as np
    import pyarrow.parquet as pq
    from numpy.lib.format import open_memmap

    from setsup.experiments.embedding import embed_all
    from setsup.files import written

    files: dict[str, Path] = {}
    with ExitStack() as stack:

        def begin(file: str) -> Path:
            files[Path(file).stem] = folder / file
            return stack.enter_context(written(folder / file))

        def allocate(name: str | None, shape: tuple[int, ...]) -> "npt.NDArray[np.float32]":
            if on_size is not None:
                on_size(shape)
            file = "embeddings.npy" if name is None else f"embeddings-{name}.npy"
            return open_memmap(begin(file), "w+", np.float32, shape)

        found = embed_all(trained.method, dataset, rows, allocate, **trained.embedding(dataset))
        shapes = {name: array.shape for name, array in found.items()}
        for array in found.values():
            if isinstance(array, np.memmap):
                array.flush()
        factors = dataset.factors if rows is None else dataset.factors.select(rows)
        pq.write_table(factors.to_arrow(), begin("factors.parquet"))
        np.save(begin("rows.npy"), np.arange(len(dataset)) if rows is None else rows)
    return files, shapes
