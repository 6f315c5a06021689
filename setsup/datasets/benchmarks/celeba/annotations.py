"""Annotations of CelebA: the published text files, or Kaggle's CSV files with a column ``image_id``.

The first line of a text file is the number of images, the second the names of all columns except that of the image;
then there is one line per image. The files of identities and of the partition lack these two header lines. Columns are
separated by one or more spaces. Line numbers in messages count from 1.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.errors import DamagedFile, DataError, short
from setsup.files.archives.listing import as_numpy
from setsup.files.archives.members import MemberIndex
from setsup.files.texts import Place, comma_separated, find_beside

__all__ = ["MOST", "Annotation", "find_annotation", "read_annotation"]


MOST = 1 << 30
"""Bytes that a file may have."""

_FOLDERS = ("", "Anno/", "Eval/")
_ENDS = (".txt", ".csv")
_NAME = re.compile(rb"(\d{6})\.(?:jpg|png)")
_IMAGE = "image_id"
_SHOWN = 60


@dataclass(frozen=True, slots=True, eq=False)
class Annotation:
    """Annotations of images, one line each.

    `images` (n,) int64; `values` (n, columns) int32 or float32.
    """

    label: str
    images: npt.NDArray[np.int64]
    columns: tuple[str, ...]
    values: Array
    first: int

    def of(self, images: npt.NDArray[np.int64], where: str) -> Array:
        """Reorder the values to match the images.

        `images` (n,) int64; returns (n, columns) array.
        """
        if np.array_equal(self.images, images):
            return self.values
        order = np.argsort(self.images)
        missing = np.flatnonzero(~np.isin(images, self.images))
        if len(missing):
            raise DataError(
                f"{self.label} has {len(self.images):,} entries for the {len(images):,} images of {where}, but none "
                f"for {images[missing[0]]:06}.jpg (row {missing[0]}); fetch both again, or remove the annotation file "
                "to open the images without it"
            )
        return np.asarray(self.values[order[np.searchsorted(self.images, images, sorter=order)]])


def find_annotation(members: MemberIndex, folders: Sequence[Path], stem: str) -> Place | None:
    """Find an annotation file in the release or next to it; published text files take precedence over CSV files."""
    for end in _ENDS:
        annotation = find_beside(members, folders, [f"{folder}{stem}{end}" for folder in _FOLDERS])
        if annotation is not None:
            return annotation
    return None


def read_annotation(
    content: bytes, label: str, columns: int, dtype: type[np.int32] | type[np.float32] = np.int32, headed: bool = True
) -> Annotation:
    r"""Read an annotation file."""
    body = comma_separated(content) if label.endswith(".csv") else content
    body = body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").rstrip()
    comma = label.endswith(".csv")
    names: tuple[str, ...] = ()
    counted, first = None, 1
    if comma:
        head, _, body = body.partition(b"\n")
        names, first = _csv_names(head, label, columns), 2
    else:
        if headed:
            count, _, body = body.partition(b"\n")
            head, _, body = body.partition(b"\n")
            counted, names, first = _count(count, label), _names(head.split(), label, columns, 2), 3
        body = _single_blanks(body)
    images, values = _table(body, b"," if comma else b" ", columns, dtype, label, first)
    if counted is not None and counted != len(images):
        raise DamagedFile(f"{label}: line 1 specifies {counted:,} lines, but the file has {len(images):,}")
    order = np.argsort(images, kind="stable")
    twice = order[1:][images[order[1:]] == images[order[:-1]]]
    if len(twice):
        line = int(twice.min())
        raise DamagedFile(f"{label}: line {first + line} repeats the entry for {images[line]:06}.jpg")
    return Annotation(label, images, names, values, first)


# -- inside ------------------------------------------------------------------------------------------------------------


def _single_blanks(text: bytes) -> bytes:
    """Text with one blank where there are more, and none at the ends of lines; a regular expression takes 8 s."""
    text = text.replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b" \n", b"\n")


def _count(line: bytes, label: str) -> int:
    if re.fullmatch(rb"\s*\d{1,9}\s*", line) is None:
        raise DamagedFile(f"{label}: line 1 is {_shown(line)}; expected the number of lines")
    return int(line)


def _csv_names(head: bytes, label: str, columns: int) -> tuple[str, ...]:
    words = _cells(head, b",")
    if _NAME.fullmatch(words[0]):  # the column of images is called id, image or filename in other copies
        raise DataError(f"{label}: line 1 is {_shown(head)}; expected the names of columns, starting with {_IMAGE}")
    return _names(words[1:], label, columns, 1)


def _cells(line: bytes, comma: bytes) -> list[bytes]:
    """Cells of a line, of which each may stand between quotes, but has none in it."""
    cells = [cell.strip() for cell in line.split(comma)]
    return [cell[1:-1] if len(cell) > 1 and cell[:1] == cell[-1:] == b'"' else cell for cell in cells]


def _names(words: Sequence[bytes], label: str, columns: int, line: int) -> tuple[str, ...]:
    if len(words) != columns:
        raise DataError(f"{label}: line {line} has {len(words)} columns; expected {columns}")
    return tuple(word.decode("utf-8", "replace") for word in words)


def _table(
    body: bytes, comma: bytes, columns: int, dtype: type[Any], label: str, first: int
) -> tuple[npt.NDArray[np.int64], Array]:
    """Numbers of the images and what is told of them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    if not body:
        raise DamagedFile(f"{label} has no entries; expected one line per image")
    names = [str(number) for number in range(columns + 1)]
    number = pa.from_numpy_dtype(np.dtype(dtype))
    types = {name: number for name in names[1:]} | {"0": pa.string()}
    try:
        table = csv.read_csv(
            pa.BufferReader(body),
            csv.ReadOptions(use_threads=False, column_names=names),
            csv.ParseOptions(
                delimiter=comma.decode(), quote_char='"' if comma == b"," else False, ignore_empty_lines=False
            ),
            csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
        ids = table.column("0")
        named = pc.all(pc.match_substring_regex(ids, r"^\d{6}\.(jpg|png)$")).as_py()
    except (pa.ArrowException, ValueError) as error:
        raise _wrong_line(body, comma, columns, dtype, label, first, str(error)) from None
    if not named:
        raise _wrong_line(body, comma, columns, dtype, label, first, "a name")
    images = as_numpy(pa.concat_arrays(pc.utf8_slice_codeunits(ids, 0, 6).cast(pa.int64()).chunks))
    values = np.empty((len(images), columns), dtype)
    for column, name in enumerate(names[1:]):
        values[:, column] = as_numpy(pa.concat_arrays(table.column(name).chunks))
    return images, values


def _wrong_line(
    body: bytes, comma: bytes, columns: int, dtype: type[Any], label: str, first: int, why: str
) -> DataError:
    """Make the sentence about the first line that is not as it should be."""
    number = r"-?\d{1,18}" if np.dtype(dtype).kind == "i" else r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan"
    value = re.compile(number.encode())
    for line, text in enumerate(body.split(b"\n"), first):
        words = _cells(text, comma) if comma == b"," else text.split(comma)
        right = _NAME.fullmatch(words[0]) and all(map(value.fullmatch, words[1:]))
        if not right or len(words) != columns + 1:
            return DamagedFile(
                f"{label}: line {line} is {_shown(text)}; expected a name such as 000001.jpg and {columns} "
                f"number{'s' if columns > 1 else ''}"
            )
    return DamagedFile(f"{label} could not be parsed as a table: {' '.join(why.split())[:200]}")


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return repr(short(text, _SHOWN))
