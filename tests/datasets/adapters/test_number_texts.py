"""Texts of numbers: the values of lines and matrices, or the first line that is wrong."""

import numpy as np
import pytest

from setsup.datasets.adapters.number_texts import Column, read_columns, read_matrix
from setsup.errors import DataError
from tests.fuzzing import survives

COLUMNS = {"image": Column(np.int32, 1, 1000), "x": Column(np.float64, -9, 9)}


def read(content: bytes, further: int = 1) -> dict[str, np.ndarray]:
    return read_columns(content, "a.txt", COLUMNS, "an image, x and a time", unread=("time",), further=further)


def test_lines_are_read_with_any_blanks_and_ends() -> None:
    for text in (b"3 1.5 t\n7 -2 u\n", b"\xef\xbb\xbf3\t1.5   t \r\n\r\n 7 -2 u", b"3 1.5 t\n7 -2 u extra\n"):
        found = read(text)
        assert found["image"].tolist() == [3, 7]
        assert found["x"].tolist() == [1.5, -2]
        assert (found["image"].dtype, found["x"].dtype) == (np.int32, np.float64)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is empty; expected an image, x and a time in each line"),
        (b"3 1 t\n7 1\n", "line 2 is '7 1'; expected an image"),
        (b"3 1 t\n7 1 t u v\n", "line 2 is '7 1 t u v'"),
        (b"3 1 t\n0 1 t\n", "line 2 is '0 1 t'"),
        (b"3 1 t\n1001 1 t\n", "line 2 is '1001 1 t'"),
        (b"3 1 t\n4 nan t\n", "line 2 is '4 nan t'"),
        (b"3 1 t\n4 inf t\n", "line 2 is '4 inf t'"),
        (b"3 1 t\n4 9.5 t u\n", "line 2 is '4 9.5 t u'"),
        (b"3 1 t\n99999999999999999999 1 t\n", "line 2 is '99999999999999999999 1 t'"),
        (b"3 1 t\n99999999999999999999 1 t u\n", "line 2 is '99999999999999999999 1 t u'"),
        (b"3 1 t\n4.5 1 t\n", "line 2 is '4.5 1 t'"),
        (b"3 1 t\n4 \xff t\n", "line 2 is '4 � t'"),
    ],
)
def test_the_first_wrong_line_is_named(text: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words) as error:
        read(text)
    assert "a.txt" in str(error.value)


def test_matrices() -> None:
    assert read_matrix(b"  1.5   2\n\n-1 0\r\n", "m.txt", 2, -1, 2).tolist() == [[1.5, 2], [-1, 0]]
    for text, words in (
        (b"1 2\n1\n", "line 2 has 1 columns; expected 2"),
        (b"1 2\n\n1 2.5\n", "line 3 has '2.5'; expected numbers from -1 to 2"),
        (b"1 nan\n", "line 1 has 'nan'"),
        (b"1 x\n", "line 1 has 'x'"),
        (b"\xff", "is not UTF-8 text"),
    ):
        with pytest.raises(DataError, match=words):
            read_matrix(text, "m.txt", 2, -1, 2)


@pytest.mark.long("fuzzing")
def test_damaged_texts() -> None:
    lines = b"".join(b"%d %d.5 0.%d\n" % (row % 999 + 1, row % 9, row) for row in range(200))
    assert survives(lines, read, 300) > 50
    matrix = b"0.5 1 -1 2\n" * 40
    assert survives(matrix, lambda content: read_matrix(content, "m.txt", 4, -1, 2), 300) > 50
