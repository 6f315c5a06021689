"""Depth as OpenEXR beside OpenCV's reader."""

import numpy as np
import pytest

from setsup.correspondence.pair_files.exr import encode_exr
from tests.correspondence.pair_files.readers import cv2


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (16, 16), (17, 31), (60, 80)])
@pytest.mark.parametrize("kind", ["noise", "steps", "nothing"])
def test_beside_opencv(size, kind, tmp_path):
    rng = np.random.default_rng(size[1])
    values = {"noise": rng.random(size), "steps": rng.integers(0, 4, size), "nothing": np.zeros(size)}[kind]
    (tmp_path / "depth.exr").write_bytes(encode_exr(values))
    found = cv2.imread(str(tmp_path / "depth.exr"), cv2.IMREAD_ANYDEPTH)
    assert found.dtype == np.float32
    assert np.array_equal(found, values.astype(np.float32))
