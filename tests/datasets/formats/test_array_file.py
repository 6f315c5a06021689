"""Files with one array: what happens to them between the check and the reading."""

import os

import numpy as np
import pytest

from setsup.datasets.formats.array_file import ArrayFile
from setsup.datasets.formats.npy import read_npy_head
from setsup.errors import DataError


def test_a_file_that_is_cut_off_while_its_rows_are_read(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(1000))
    with ArrayFile(path, read_npy_head).rows() as fill:
        rows = np.empty(10, np.int64)
        fill(0, 10, rows)
        assert rows.tolist() == list(range(10))
        os.truncate(path, 1000)
        with pytest.raises(DataError, match=r"x\.npy: .* shape \(1000,\) .* ends after [\d,]+ bytes;"):
            fill(10, 1000, np.empty(990, np.int64))
