"""UT Zappos50K: 50,025 images of shoes, each with its entry in a shop's catalogue."""

import logging
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.benchmarks.ut_zap50k.files import COLUMNS, Shoes, find_shoes, first_values, read_shoes, several
from setsup.datasets.dataset import fetch_request, of_row
from setsup.datasets.images import check_size
from setsup.errors import DataError, did_you_mean
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["UtZap50k", "open"]


_log = logging.getLogger("setsup")


class UtZap50k(ImageFilesDataset):
    """Images of shoes on a white background, as returned by :func:`open`.

    Factors are the columns of the catalogue, ``category``, ``subcategory``, ``heel_height``, ``insole``, ``closure``,
    ``gender``, ``material`` and ``toe_style``, then ``brand``, the folder of the image, and the key ``cid``. A cell of
    the catalogue may contain several values, such as ``Leather;Suede``: the first one is the level, as in DCoDR, and
    :meth:`listed` returns all. The value of an empty cell is unknown.

    The only modality is ``image``, uint8 sRGB. Rows are in the order of the catalogue's lines. Lines with a missing
    image are left out; their number is logged.

    Parameters
    ----------
    shoes : Shoes
        Result of :func:`~setsup.datasets.benchmarks.ut_zap50k.files.read_shoes`.
    size : (height, width), optional
        Size that images are resized to.

    Raises
    ------
    DataError
        When the sampled images are damaged.

    """

    def __init__(self, shoes: Shoes, size: tuple[int, int] | None = None) -> None:
        super().__init__("ut-zap50k", _table(shoes), MemberImages(shoes.images, shoes.places), size)
        self._cells = {
            name: tuple(np.unique(shoes.cells[name], return_inverse=True)) for name in COLUMNS
        }  # few cells differ: as numbers they are small to send to worker processes

    @of_row
    def listed(self, indices: npt.ArrayLike, factor: str) -> list[tuple[str, ...]]:
        """Return all values of the catalogue for some rows; the factor has the first of them.

        Parameters
        ----------
        indices : integer array of any shape
            Row numbers.
        factor : str
            Column of the catalogue, such as ``"material"``.

        Returns
        -------
        list of tuple of str
            An empty tuple for an empty cell.

        Raises
        ------
        DataError
            When the catalogue has no such column.

        """
        rows, _ = fetch_request(self, indices, ())
        if factor not in self._cells:
            raise DataError(
                f"the catalogue of {self.name} has no column for {factor!r}{did_you_mean(factor, self._cells)}"
            )
        texts, codes = self._cells[factor]
        parts = [tuple(part.strip() for part in text.split(";") if part.strip()) for text in texts.tolist()]
        return [parts[code] for code in codes[rows.reshape(-1)].tolist()]


def open(root: Path | str | None = None, size: tuple[int, int] | None = None, square: bool = False) -> UtZap50k:
    """Open UT Zappos50K.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``ut-zap50k-data`` and ``ut-zap50k-images`` (or ``ut-zap50k-images-square``), or with their zips as
        published; None for the default folders.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre.
    square : bool
        Take the square images, which are padded with white, if the others exist as well.

    Raises
    ------
    DataError
        When the files are missing (the message shows how to get them), or are damaged.

    """
    size = check_size(size)
    shoes = read_shoes(*find_shoes(root, square))
    warn_left_out(shoes.images.source, "images", shoes.lost, len(shoes.lost) + len(shoes.cids))
    _say_several(shoes)
    return UtZap50k(shoes, size)


def _say_several(shoes: Shoes) -> None:
    """Warn of the values that are no levels: those behind the first of a cell."""
    counts = {name: several(cells) for name, cells in shoes.cells.items()}
    told = ", ".join(f"{name} in {count:,} rows" for name, count in counts.items() if count)
    if told:
        _log.warning(
            "%s: the catalogue has several values joined by ';' for %s; the level is the first, and listed(rows, "
            "factor) returns all",
            *(shoes.images.source, told),
        )


def _table(shoes: Shoes) -> FactorTable:
    columns: dict[Factor, Array] = {}
    for name, cells in [*shoes.cells.items(), ("brand", np.array(shoes.brands))]:
        levels, codes = first_values(cells)
        # a column without a value anywhere is no factor
        if levels:
            within = "category" if name == "subcategory" and columns else None
            columns[Factor(name, Kind.NOMINAL, levels, within=within)] = codes
    columns[Factor("cid", Kind.NOMINAL, tuple(shoes.cids), role="key")] = np.arange(len(shoes.cids))
    return table_of(columns)
