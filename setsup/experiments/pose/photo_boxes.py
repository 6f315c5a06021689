"""Boxes of objects in photographs, as a table lists them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError
from setsup.factors import FactorTable, Kind
from setsup.files.expand_user import expanded

__all__ = ["PhotoBox", "read_boxes"]

_COLUMNS = ("file", "left", "top", "right", "bottom")


@dataclass(frozen=True, slots=True)
class PhotoBox:
    """A box in a photograph.

    Attributes
    ----------
    file : str
        Name of the photograph.
    edges : (left, top, right, bottom)
        Distances in pixels from the upper left corner of the photograph as it is seen: (0, 0, width, height) is all.
    where : str
        Where it was read, for messages.

    """

    file: str
    edges: tuple[float, float, float, float]
    where: str


def read_boxes(path: Path | str) -> list[PhotoBox]:
    r"""Read a table of boxes, with columns ``file``, ``left``, ``top``, ``right`` and ``bottom``; others are ignored.

    Parameters
    ----------
    path : Path or str
        CSV, as :meth:`setsup.FactorTable.from_csv` reads it. A photograph may have several boxes.

    Returns
    -------
    list of PhotoBox
        In the order of the lines.

    Raises
    ------
    DataError
        When it cannot be read, lacks a column, or a box is none.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "boxes.csv"
    >>> _ = file.write_text("file,left,top,right,bottom\na.jpg,10,20,110,80\n")
    >>> read_boxes(file)[0].edges
    (10.0, 20.0, 110.0, 80.0)

    """
    path = expanded(path)
    table = FactorTable.from_csv(path, kinds={"file": Kind.NOMINAL})
    missing = [name for name in _COLUMNS if name not in table]
    if missing:
        raise DataError(
            f"{path} has no column {' and no column '.join(map(repr, missing))}: boxes have the columns "
            f"{', '.join(_COLUMNS)}, in pixels from the upper left corner (it has {', '.join(table.names)})"
        )
    files = table.values("file").tolist()
    sides = np.stack([_numbers(table, name, path) for name in _COLUMNS[1:]], axis=1)
    found = []
    for row, (file, edges) in enumerate(zip(files, sides.tolist(), strict=True)):
        where = f"{path}, line {row + 2}"
        left, top, right, bottom = edges
        if not file or not np.isfinite(edges).all() or not (left < right and top < bottom):
            raise DataError(f"{where}: {file!r} has the box {edges}, where left < right and top < bottom are expected")
        found.append(PhotoBox(str(file), (left, top, right, bottom), where))
    return found


def _numbers(table: FactorTable, name: str, path: Path) -> npt.NDArray[np.float64]:
    try:
        return np.array([np.nan if one is None else one for one in table.values(name).tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{path}: the column {name!r} holds what is no number of pixels") from None
