"""A user's own data: a pandas frame with a column of images and one column per factor."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_arguments
from setsup.datasets.adapters.image_sources import ImageFiles
from setsup.datasets.formats.source import Source
from setsup.datasets.images import check_size
from setsup.datasets.own.factor_sources import Kinds
from setsup.datasets.own.table import ImageTable
from setsup.datasets.own.torch.dataset import ItemDataset, find_modalities, sample_items
from setsup.errors import DataError, did_you_mean, imported
from setsup.factors import Factor, FactorTable
from setsup.files.expand_user import expanded

__all__ = ["from_pandas"]


def from_pandas(
    frame: Any,
    image: str = "path",
    root: Path | str | None = None,
    factors: Sequence[Factor] = (),
    kinds: Kinds = None,
    size: tuple[int, int] | None = None,
    *,
    name: str = "frame",
) -> ImageTable | ItemDataset:
    """Make a dataset from a ``pandas.DataFrame``: one column contains the images, the others are factors.

    The index is ignored, and so are columns of binary or nested values; categories keep their order. Rows are numbered
    from 0, in the order of the frame.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row per image.
    image : str
        The column of images: paths; encoded images, as bytes or as mappings of ``bytes`` and ``path``, which Hugging
        Face writes to Parquet; Pillow images; or arrays of uint8 (height, width) or (height, width, channels).
    root : Path or str, optional
        Folder that paths are relative to; by default the current directory.
    factors : sequence of Factor
        Factors that are known, with their levels; others are inferred from the values.
    kinds : mapping of str to Kind, optional
        Kinds that are known while levels are not: ``{"age": "continuous"}``.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre.
    name : str
        Name in messages and reports.

    Returns
    -------
    ImageTable or ItemDataset
        The latter if the column contains Pillow images or arrays.

    Raises
    ------
    DataError
        When the frame has no such column, or no other column; when rows have no image, or files are missing or damaged.
    FactorError
        When a column mixes types, or contains a value that is not a level of its factor.

    Examples
    --------
    >>> import pandas
    >>> images = [np.full((4, 3), 30 * k, np.uint8) for k in range(4)]
    >>> frame = pandas.DataFrame({"image": images, "subject": ["ann", "ann", "bob", "bob"], "age": [41.5, 42, 8, 9]})
    >>> photos = from_pandas(frame, image="image")
    >>> photos.factors, photos.fetch([3, 0])["image"].shape
    (FactorTable(4 rows: subject 2, age ~), (2, 4, 3, 1))

    """
    check_arguments(from_pandas, locals(), DataError)
    size = check_size(size)
    pandas = imported("pandas", "pandas")
    if not isinstance(frame, pandas.DataFrame):
        raise DataError(f"from_pandas expects a pandas.DataFrame, not {type(frame).__name__}")
    columns = [str(column) for column in frame.columns]
    if image not in columns:
        raise DataError(
            f"the frame has no column {image!r}{did_you_mean(image, columns)}; name the column of images with image="
        )
    if len(columns) == 1:
        raise DataError(f"the frame has no columns besides the image column {image!r}; add one column per factor")
    if not len(frame):
        raise DataError("the frame has no rows; expected one row per image")
    index = columns.index(image)
    values = [_plain(value) for value in frame.iloc[:, index].tolist()]
    _refuse_empty(values, image)
    rest = frame.iloc[:, [other for other in range(len(columns)) if other != index]]
    table = FactorTable.from_pandas(rest, factors, kinds=kinds)
    folder = Path.cwd() if root is None else expanded(root)
    if all(isinstance(value, str | Path) for value in values):
        files = ImageFiles(folder / f"{name}, column {image!r}", [str(value) for value in values])
        return ImageTable(name, table, files, size)
    if all(isinstance(value, bytes) for value in values):
        return ImageTable(name, table, EncodedColumn(values, f"{image} of {name}"), size)
    return _of_objects(name, table, values, image, size)


class EncodedColumn:
    """Encoded images in memory, as one flat array, which forked processes share."""

    def __init__(self, content: Sequence[bytes], label: str) -> None:
        import pyarrow as pa

        self._content = pa.array(content, pa.large_binary())
        self._label = label

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._content)

    def take(self, rows: npt.NDArray[np.int64]) -> list[tuple[Source, str]]:
        """Content and label of each row."""
        contents = self._content.take(rows).to_pylist()
        return [(content, f"{self._label}, row {row}") for content, row in zip(contents, rows.tolist(), strict=True)]


def _plain(value: Any) -> Any:
    """Content or path of a value in a Hugging Face column; other values unchanged."""
    if isinstance(value, Mapping) and ("bytes" in value or "path" in value):
        content = value.get("bytes")
        return value.get("path") if content is None else bytes(content)
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _refuse_empty(values: Sequence[Any], image: str) -> None:
    empty = [row for row, value in enumerate(values) if value is None or value is ... or _is_missing(value)]
    if empty:
        raise DataError(
            f"{len(empty):,} of {len(values):,} rows of the frame have no value in {image!r}, such as row {empty[0]} "
            "(counting from 0); remove them with frame.dropna"
        )
    kinds = sorted({type(value).__name__ for value in values})
    encoded = {isinstance(value, bytes) for value in values}
    paths = {isinstance(value, str | Path) for value in values}
    if len(encoded) > 1 or len(paths) > 1:
        raise DataError(f"the column {image!r} mixes {' and '.join(kinds)}; convert all values to the same type")


def _is_missing(value: Any) -> bool:
    """Whether this is NaN, NaT or the like, or an empty path."""
    if isinstance(value, str | bytes):
        return not value
    return not hasattr(value, "shape") and not hasattr(value, "getbands") and bool(np.asarray(value != value).any())


def _of_objects(
    name: str, table: FactorTable, values: list[Any], image: str, size: tuple[int, int] | None
) -> ItemDataset:
    modalities, _ = find_modalities({"image": None}, sample_items(values, name), name, size)
    if "image" not in modalities or not modalities["image"].color:
        kind = type(values[0]).__name__
        raise DataError(
            f"the column {image!r} contains {kind}; expected images: paths, encoded images as bytes, Pillow images, "
            "or arrays of uint8"
        )
    return ItemDataset(name, values, table, {"image": None}, modalities, size)
