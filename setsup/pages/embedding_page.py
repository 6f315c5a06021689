"""Embeddings as a page asks for them: points of a plane, their colours, rows and images, and their neighbours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats, Rows
from setsup.checks import check_path
from setsup.datasets.dataset import Dataset
from setsup.datasets.formats.npy import read_npy
from setsup.errors import DataError
from setsup.factors import FactorTable
from setsup.files.disk import need_regular
from setsup.pages.answers import Answer, Query, json_answer, packed
from setsup.pages.dataset_page import value_texts
from setsup.pages.images import TILE, image_modality, sprite
from setsup.pages.projecting import MOST, drawing_order, neighbours, project
from setsup.pages.recent import Recent
from setsup.reports.colors import color_rows

__all__ = ["NEIGHBOURS", "EmbeddingSource", "has_embeddings", "open_embeddings"]

NEIGHBOURS = 8
"""Nearest neighbours of a point that are shown."""


@dataclass
class EmbeddingSource:
    """Embeddings of rows that answer.

    A question about one point is answered for all of a ``chunk`` of them: for a single one live, for more in files.

    Attributes
    ----------
    name : str
        What they are called.
    embeddings : (n, d) numbers
        One of each row; may be an ``np.memmap``.
    rows : (n,) int64
        Rows of the dataset that they are of.
    factors : FactorTable
        Of the same rows.
    dataset : Dataset, optional
        What was embedded, for its images.
    place : str
        The folder that holds them, as a command takes it; empty where that of a run, which is shown, has them.
    images : bool
        Whether images may be shown.
    most, chunk : int
        Points that are shown, and those of one answer.

    Examples
    --------
    >>> import numpy as np
    >>> import setsup
    >>> factors = setsup.FactorTable.from_values({"kind": ["a", "a", "b", "b"]})
    >>> source = EmbeddingSource("mine", np.eye(4, 3), np.arange(4), factors)
    >>> setsup.pages.page_of({}, embeddings=[source]).title
    'mine'

    """

    name: str
    embeddings: npt.NDArray[np.number]
    rows: Rows
    factors: FactorTable
    dataset: Dataset | None = None
    place: str = ""
    images: bool = True
    most: int = MOST
    chunk: int = 1
    _made: Recent[str, Any] = field(default_factory=lambda: Recent(2), init=False, repr=False)

    def about(self) -> Mapping[str, Any]:
        """Return the embedded dataset, the number of dimensions, and the factors that can color the points."""
        shown = self.dataset is not None and self.images
        varying = [factor.name for factor in self.factors.factors if factor.role == "variation"]
        return {
            "kind": "embedding",
            "name": self.name,
            "data": None if self.dataset is None else self.dataset.name,
            "rows": len(self.embeddings),
            "shown": min(self.most, len(self.embeddings)),
            "dimensions": self.embeddings.shape[1],
            "factors": [{"name": factor.name, "unit": factor.unit} for factor in self.factors.factors],
            "first": next(iter([*varying, *self.factors.names]), None),
            "thumbs": image_modality(self.dataset) if shown and self.dataset is not None else None,
            "chunk": self.chunk,
        }

    def answer(self, query: Query) -> Answer:
        """Answer a question about the embeddings."""
        answers = {
            "points": self._points,
            "colours": self._colors,
            "rows": self._rows,
            "near": self._near,
            "thumbs": self._thumbs,
        }
        return answers[query.choice("q", tuple(answers))](query)

    @property
    def _ordered(self) -> tuple[Rows, int]:
        order: tuple[Rows, int] = self._made.get("order", lambda: drawing_order(self.embeddings, self.most))
        return order

    @property
    def order(self) -> Rows:
        """Embeddings that are shown, in the order in which they are drawn: (k,) int64 places in all of them."""
        return self._ordered[0]

    @property
    def points(self) -> tuple[Floats, str]:
        """Points (k, 2) float32, and how they were made."""
        points: tuple[Floats, str] = self._made.get("points", lambda: project(self.embeddings, self.order))
        return points

    def _points(self, query: Query) -> Answer:
        points, method = self.points
        rows = self.rows[self.order]
        kind: type[np.number] = np.uint32 if rows.max(initial=0) < 2**32 else np.float64
        about = {"count": len(points), "of": len(self.embeddings), "left_out": self._ordered[1], "method": method}
        return json_answer({**about, "points": packed(points, np.float32), "rows": packed(rows, kind)})

    def _colors(self, query: Query) -> Answer:
        name = query.text("factor", 500)
        colored = color_rows(self.factors, name, self.order)
        legend = [{"name": label, "colour": color, "count": count} for label, color, count in colored.legend]
        codes = packed(colored.codes, np.uint8)
        light, dark = zip(*colored.colors, strict=True)
        colors = {"codes": codes, "colours": light, "dark": dark, "legend": legend, "scale": colored.scale}
        return json_answer(colors)

    def _rows(self, query: Query) -> Answer:
        places = self.order[self._asked(query)]
        return json_answer({"rows": self.rows[places], "values": value_texts(self.factors, places)})

    def _near(self, query: Query) -> Answer:
        places, distances = neighbours(self.embeddings, self.order, self._asked(query), NEIGHBOURS)
        shown = [[float(f"{distance:.6g}") for distance in line] for line in distances.tolist()]
        return json_answer({"places": places, "distances": shown})

    def _thumbs(self, query: Query) -> Answer:
        if self.dataset is None or not self.images:
            raise DataError("images of these embeddings are not included in this page")
        modality = image_modality(self.dataset)
        if modality is None:
            raise DataError(f"{self.dataset.name} has no images")
        rows = self.rows[self.order[self._asked(query)]].tolist()
        return sprite(self.dataset, rows, modality, TILE, partly=True)

    def _asked(self, query: Query) -> Rows:
        """Places in the drawing order of the points that are asked about."""
        start = query.integer("start", 0, len(self.order) - 1)
        if start % self.chunk:
            raise DataError(f"start must be a multiple of {self.chunk}")
        return np.arange(start, min(start + self.chunk, len(self.order)), dtype=np.int64)


def has_embeddings(folder: Path) -> bool:
    """Whether ``setsup embed`` wrote a folder."""
    return (folder / "rows.npy").is_file() and (folder / "factors.parquet").is_file() and bool(_files(folder))


def open_embeddings(folder: Path | str, datasets: Iterable[Dataset] = (), *, name: str = "") -> list[EmbeddingSource]:
    """Open embeddings that ``setsup embed`` wrote.

    Parameters
    ----------
    folder : Path or str
        With ``embeddings.npy`` or ``embeddings-NAME.npy``, ``rows.npy`` and ``factors.parquet``.
    datasets : iterable of Dataset
        What may have been embedded: images are of the first whose rows have the same factors.
    name : str, optional
        What they are called; the folder's name by default.

    Returns
    -------
    list of EmbeddingSource
        One for each embedding that the method gives.

    Raises
    ------
    DataError
        When a file is missing or damaged, or numbers of rows disagree.

    Examples
    --------
    >>> open_embeddings("runs/abc/shapes3d/seed-0/embeddings-shapes3d")  # doctest: +SKIP
    [EmbeddingSource(name='embeddings-shapes3d', …)]

    """
    folder = check_path(folder, "a folder of embeddings", DataError)
    if not has_embeddings(folder):
        raise DataError(
            f"{folder} contains no embeddings; `setsup embed RUN` writes embeddings.npy, rows.npy and factors"
        )
    need_regular(folder / "factors.parquet")
    factors = FactorTable.from_parquet(folder / "factors.parquet")
    rows = np.asarray(_loaded(folder / "rows.npy"))
    if rows.shape != (len(factors),) or rows.dtype.kind not in "iu" or rows.min(initial=0) < 0:
        raise DataError(
            f"{folder / 'rows.npy'} must contain a non-negative integer (a row number) for each of {len(factors):,} "
            f"rows, not {rows.dtype} of shape {rows.shape}; embed again"
        )
    dataset = next((candidate for candidate in datasets if _has_factors(factors, rows, candidate)), None)
    sources: list[EmbeddingSource] = []
    for file in _files(folder):
        values, part = _loaded(file), file.stem.removeprefix("embeddings").removeprefix("-")
        if values.dtype.kind not in "fiu" or values.shape[:1] != (len(factors),):
            raise DataError(
                f"{file} must be a numeric array with one embedding for each of {len(factors):,} rows, not "
                f"{values.dtype} of shape {values.shape}; embed again"
            )
        if values.ndim == 2 and values.shape[1]:  # maps have no one point of each row
            called = f"{name or folder.name}{f', {part}' if part else ''}"
            sources.append(EmbeddingSource(called, values, rows.astype(np.int64), factors, dataset, str(folder)))
    if not sources:
        raise DataError(
            f"{folder} contains maps with an embedding for each pixel, which cannot be shown as one point per row; "
            "embed again with an embedding of one vector per image"
        )
    return sources


def _files(folder: Path) -> list[Path]:
    return [*sorted(folder.glob("embeddings.npy")), *sorted(folder.glob("embeddings-*.npy"))]


def _loaded(file: Path) -> npt.NDArray[np.number]:
    need_regular(file)
    try:
        return read_npy(file)
    except DataError as error:
        reason = str(error).removeprefix(f"{file}").lstrip(": ")
        raise DataError(f"{file} cannot be read ({reason}); embed again", file=file) from None


def _has_factors(factors: FactorTable, rows: Rows, dataset: Dataset) -> bool:
    """Whether rows of a dataset have these factors."""
    table = dataset.factors
    if table.names != factors.names or rows.max(initial=0) >= len(table):
        return False
    return factors.has_fingerprint(table.select(rows).fingerprint)
