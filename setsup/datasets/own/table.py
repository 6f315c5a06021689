"""A user's own data: a CSV, Parquet or JSON lines file with a column of images and one column per factor."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setsup.checks import check_array
from setsup.datasets.adapters.deep_images import Measured, deep_dtype
from setsup.datasets.adapters.fetching import Images, common_size, fetch_images, sample_headers
from setsup.datasets.adapters.image_sources import ImageFiles, PackedImages
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Modality, of_row
from setsup.datasets.images import check_size, common_channels
from setsup.datasets.originals import Original, originals_of, refuse_changed
from setsup.errors import DataError, FactorError, advice, did_you_mean, listed, short
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.io.nested import flat_schema
from setsup.factors.io.text_file import PARQUET, arrow_source
from setsup.files import need_readable
from setsup.files.expand_user import expanded

__all__ = ["ImageTable", "open", "open_table"]

_COLUMNS = (
    *("image", "image_path", "path", "file", "filename", "file_name", "filepath", "file_path"),
    *("image_file", "image_name", "img", "img_path"),
)
_LOOKED_AT = 256


class ImageTable(BaseDataset):
    """Images and factors from a table; made by :func:`open_table`.

    `size` (height, width), optional. Where the first image has one channel of 16 bits, 32 bits or float32, all must,
    and are arrays (height, width) of numbers, as depth is.
    """

    cpu_bound = True

    def __init__(self, name: str, factors: FactorTable, images: Images, size: tuple[int, int] | None) -> None:
        if not len(factors) == len(images) > 0:
            raise DataError(
                f"{name} has {len(factors):,} rows of factors and {len(images):,} images; expected at least one image, "
                "and one row per image"
            )
        self.name = name
        self.factors = factors
        self._images = images
        self._size = size
        self._deep: Measured | None = None
        first, label = images.take(np.zeros(1, np.int64))[0]
        if (deep := deep_dtype(first, label)) is not None:
            if size is not None:
                raise DataError(f"{label} has {deep} pixels, which setsup cannot resize; leave out size=")
            self._deep = Measured(images, deep, name)
            self.modalities = {"image": self._deep.modality}
            return
        headers = sample_headers(images, _LOOKED_AT)
        channels = common_channels(headers)
        color = "grey" if channels == 1 else "srgb"
        self.modalities = {"image": Modality((*(size or common_size(headers)), channels), "uint8", color=color)}

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of (n,) rows; None where they have more than 8 bits, and for other modalities."""
        if self._deep is not None or name != "image":
            return None
        refuse_changed(self.name, size=self._size)
        return originals_of(self._images.take(rows), self.modalities[name].shape[2])

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        if self._deep is not None:
            return self._deep.fetch(rows, out)
        return fetch_images(self._images, rows, self.modalities[name].shape, self._size, out)


def open_table(
    path: Path | str,
    image: str | None = None,
    factors: Sequence[Factor] = (),
    kinds: Mapping[str, Kind | str] | None = None,
    size: tuple[int, int] | None = None,
) -> ImageTable:
    r"""Open a table in a file as a dataset: one column contains the images, the others are factors.

    The file is CSV (fields separated by commas, semicolons, tabs or bars), JSON lines (``.jsonl``, ``.ndjson``) or
    Parquet (``.parquet``, ``.pq``). Text is UTF-8, or UTF-16 as Excel writes it, and may be compressed by gzip. Between
    semicolons, tabs or bars the comma of a number is decimal.

    The image column holds paths, absolute or relative to the folder of the table, with ``/`` or with ``\\`` between
    folders; in a Parquet file it may hold the encoded images themselves (binary, or a struct of ``bytes`` and
    ``path``). Images are grayscale (1 channel) if all are, sRGB with alpha (4) if all have alpha, otherwise sRGB
    (3). This and their size are read from the headers of at most 256 files, evenly spread over the rows. PNG and TIFF
    files with one channel of 16 bits or more, such as depth, are arrays (height, width) of numbers.

    Parameters
    ----------
    path : Path or str
        The file; CSV starts with a header line.
    image : str, optional
        The image column; by default the first of ``image``, ``image_path``, ``path``, ``file``, ``filename`` and
        similar names that exists, or the only column with bytes.
    factors : sequence of Factor
        Factors that are known, with their levels; others are inferred from the values.
    kinds : mapping of str to Kind, optional
        Kinds that are known while levels are not: ``{"age": "continuous"}``.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre. Without it, images of
        different sizes have the shape (None, None, channels), and only images of one size can be fetched together.

    Returns
    -------
    ImageTable

    Raises
    ------
    DataError
        When the table cannot be read or has no image column; when image files are missing (all are counted) or damaged.
    FactorError
        When a column mixes types, or contains a value that is not a level of its factor.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, grey in [("a.png", 10), ("b.png", 200)]:
    ...     Image.new("L", (4, 3), grey).save(folder / name)
    >>> _ = (folder / "photos.csv").write_text("image,subject,age\na.png,ann,41.5\nb.png,bob,38.0\n")
    >>> photos = open_table(folder / "photos.csv", kinds={"age": "continuous"})
    >>> photos.factors
    FactorTable(2 rows: subject 2, age ~)
    >>> photos.fetch([1, 0])["image"].shape
    (2, 3, 4, 1)

    """
    path = expanded(path)
    check_array(size, "size", DataError)
    size = check_size(size)
    need_readable(path, "a CSV, Parquet or JSON lines file")
    parquet = path.suffix.lower() in PARQUET
    table, images = (_from_parquet if parquet else _from_text)(path, image, factors, kinds or {})
    return ImageTable(path.stem, table, images, size)


def open(root: Path | None) -> ImageTable:
    """Open the table at a path with default options, for ``setsup.load("table", root=…)``."""
    if root is None:
        raise DataError(
            'a table has no default path; pass its path, as in `--table photos.csv` or load("table", root="photos.csv")'
        )
    return open_table(root)


def _from_text(
    path: Path, image: str | None, factors: Sequence[Factor], kinds: Mapping[str, Kind | str]
) -> tuple[FactorTable, ImageFiles]:
    table = FactorTable.from_csv(path, factors, kinds=kinds)
    column = _image_column(path, image, table.names)
    return _without(path, table, column), ImageFiles(path, *_texts(table, column))


def _from_parquet(
    path: Path, image: str | None, factors: Sequence[Factor], kinds: Mapping[str, Kind | str]
) -> tuple[FactorTable, ImageFiles | PackedImages]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with arrow_source(path) as source:
            schema = pq.read_schema(source)
        flat = flat_schema(schema)
    except FactorError as error:
        raise DataError(f"{path}: {error}") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path} could not be read as Parquet: {error}; check that it is complete") from error
    packed = [field.name for field in schema if _holds_images(field.type)]
    inner = [name for name in flat.names if name not in schema.names]
    column = _image_column(path, image, [*schema.names, *inner], packed)
    others = [name for name in schema.names if name != column] if column in packed else None
    table = FactorTable.from_parquet(path, factors, kinds=kinds, columns=others)
    if column in packed:
        return table, PackedImages(path, column)
    if column not in table:
        kind = short(str((schema if column in schema.names else flat).field(column).type))
        raise DataError(f"{path}: the column {column!r} contains {kind}; expected paths or images")
    return _without(path, table, column), ImageFiles(path, *_texts(table, column))


def _holds_images(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        index = kind.get_field_index("bytes")
        return index >= 0 and _holds_images(kind.field(index).type)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _image_column(path: Path, image: str | None, columns: Sequence[str], packed: Sequence[str] = ()) -> str:
    if image is not None:
        if image not in columns:
            raise DataError(f"{path} has no column {image!r}{did_you_mean(image, columns)}")
        return image
    lower = {column.lower(): column for column in reversed(columns)}
    for name in _COLUMNS:
        if name in lower:
            return lower[name]
    if len(packed) == 1:
        return packed[0]
    raise DataError(
        f"{path} has no column named {', '.join(_COLUMNS[:5])} or similar; its columns are {listed(columns)}; specify "
        f"the column of images ({advice('image=', '--image')})"
    )


def _texts(table: FactorTable, column: str) -> tuple[list[str | None], Array]:
    """Distinct strings of a column, and the (rows,) unsigned codes of all rows."""
    stored = table.column(column)
    levels = table[column].levels
    if levels is not None:
        return [*map(str, levels)], np.array(stored)  # in memory, as the file that the table is in may be replaced
    # numbers, or no text at all: NaN throughout
    numbers = np.unique(stored)
    codes = np.searchsorted(numbers, stored).astype(np.uint32)
    return [None if number != number else str(number) for number in numbers.tolist()], codes


def _without(path: Path, table: FactorTable, column: str) -> FactorTable:
    if len(table.names) == 1:
        raise DataError(f"{path} has no columns besides the image column {column!r}; add one column per factor")
    return table.without([column])
