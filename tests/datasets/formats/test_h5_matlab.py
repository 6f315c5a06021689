from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from setsup.datasets.formats.matlab.h5 import MatlabStack
from setsup.errors import DataError


@pytest.mark.long("layouts")
@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"chunks": (1, 3, 640, 480)},
        {"chunks": (3, 1, 100, 77), "compression": "gzip", "shuffle": True},
        {"chunks": (20, 3, 64, 48), "compression": "gzip", "fletcher32": True},
        {"chunks": (7, 2, 640, 16), "compression": "lzf"},
    ],
)
def test_any_layout(tmp_path: Path, layout: dict[str, Any]) -> None:
    stored = np.zeros((20, 3, 640, 480), np.uint8)
    stored[:, :, ::10] = np.random.default_rng(0).integers(0, 256, (20, 3, 64, 480))
    with h5py.File(tmp_path / "x.mat", "w") as file:
        file.create_dataset("images", data=stored, **layout)
        # as written by a machine of the other byte order
        file["depths"] = stored[:4, 0].astype(">f4")
    expected = stored.transpose(0, 3, 2, 1)
    with h5py.File(tmp_path / "x.mat") as file:
        stack = MatlabStack(tmp_path / "x.mat", file, "images", (480, 640, 3), "uint8")
        for rows in ([[5, 0, 5], [19, 4, 3]], 11, range(20), []):
            index = np.asarray(rows, int)
            np.testing.assert_array_equal(stack.take(index), expected[index])
        out = np.empty((13, 480, 640, 3), np.uint8)
        stack.fill(5, 18, out)
        np.testing.assert_array_equal(out, expected[5:18])
        stack.check(5, 18, out)
        out[-1, 0, 0, 0] ^= 1
        with pytest.raises(DataError, match=r"row 17 of 'images'.*differs after the conversion"):
            stack.check(5, 18, out)
        depths = MatlabStack(tmp_path / "x.mat", file, "depths", (480, 640), "float32")
        found = depths.take(np.array([3, 1]))
        assert found.dtype == np.float32
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, expected[[3, 1], ..., 0])
