"""Boxes of objects in photographs, as a table lists them."""

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from setsup.errors import DataError
from setsup.factors.io.csv_file import CsvFile
from setsup.factors.io.encoding import Commas
from setsup.factors.io.text_file import explain_errors
from setsup.files.expand_user import expanded

__all__ = ["PhotoBox", "read_boxes"]

_COLUMNS = ("file", "left", "top", "right", "bottom")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")


@dataclass(frozen=True, slots=True)
class PhotoBox:
    """A box in a photograph.

    Attributes
    ----------
    file : str
        Name of the photograph.
    edges : (left, top, right, bottom)
        Distances in pixels from the upper left corner of the displayed photograph: (0, 0, width, height) covers all of
        it.
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
        CSV, with the separators, decimal commas, encodings and compression of :meth:`setsup.FactorTable.from_csv`.
        Names are taken as they are written, numbers as float64. A photograph may have several boxes.

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
    table = CsvFile.of(expanded(path))
    missing = [name for name in _COLUMNS if name not in table.header]
    if missing:
        raise DataError(
            f"{table.path} must have the columns {', '.join(_COLUMNS)} (pixels from the upper left corner), but "
            f"has no column {' and no column '.join(map(repr, missing))} (columns: {', '.join(table.names)})"
        )
    places = [table.header.index(name) for name in _COLUMNS]
    boxes = []
    for line, record in _records(table):
        where = f"{table.path}, line {line}"
        if len(record) != len(table.header):
            raise DataError(
                f"{where}: a line must have {len(table.header)} fields, like the header, not {len(record)}; correct "
                "that line"
            )
        file, *written = (record[column] for column in places)
        edges = [_number(text, name, where, table.commas) for name, text in zip(_COLUMNS[1:], written, strict=True)]
        left, top, right, bottom = edges
        if not file or not all(map(math.isfinite, edges)) or not (left < right and top < bottom):
            raise DataError(
                f"{where}: the box of {file!r} must have a file name, and finite edges with left < right and top < "
                f"bottom, not {edges}"
            )
        boxes.append(PhotoBox(file, (left, top, right, bottom), where))
    if not boxes:
        raise DataError(f"{table.path} has a header but no rows; add one line per box")
    return boxes


def _records(table: CsvFile) -> Iterator[tuple[int, list[str]]]:
    """Fields of each record below the header, and the line at which it begins, from 1 on."""
    with explain_errors(table.path), io.TextIOWrapper(table.text.open(), encoding="utf-8-sig", newline="") as lines:
        for _ in range(table.lines):
            next(lines)
        reader = csv.reader(lines, delimiter=table.delimiter, strict=True)
        line = table.lines + 1
        try:
            for record in reader:
                if record:
                    yield line, record
                line = table.lines + reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{table.path}, line {line}: {error}; check for unclosed quotes") from None


def _number(text: str, name: str, where: str, commas: Commas) -> float:
    """Pixels as they are written, exact to float64; NaN where nothing is."""
    text = text.strip()
    if not text:
        return math.nan
    decimal = commas == "decimal" or (commas == "unsure" and not _THOUSANDS.fullmatch(text))
    written = text.replace(",", ".") if decimal else text
    if not _NUMBER.fullmatch(written):
        raise DataError(f"{where}: column {name!r} must be a number of pixels, not {text!r}")
    return float(written)
