"""3D Chairs: rows equal to a walk over the files of the release."""

import io
import tarfile

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from tests.true_files import chairs3d


def test_rows(tmp_path):
    chairs3d.write(tmp_path)
    found = setsup.load("chairs3d", tmp_path)
    rows = [(number, *view) for number in range(len(chairs3d.CHAIRS)) for view in chairs3d.views()]
    table = found.factors
    assert table.is_grid
    assert table.values("chair").tolist() == [chairs3d.CHAIRS[number] for number, *_ in rows]
    assert table.values("elevation").tolist() == [row[2] for row in rows]
    assert table.values("azimuth").tolist() == [row[3] for row in rows]
    assert [path.rpartition("/")[2] for path in found.paths(range(len(found)))] == [row[1] for row in rows]
    small = setsup.load("chairs3d", tmp_path, crop=(400, 400))
    for row in range(0, len(rows), 41):
        number, _, elevation, azimuth = rows[row]
        expected = np.asarray(Image.open(io.BytesIO(chairs3d.image(number, elevation, azimuth))).convert("RGB"))
        assert np.array_equal(found.fetch(row)["image"], expected)
        assert np.array_equal(small.fetch(row)["image"], expected[100:500, 100:500])


def test_a_view_that_is_not_there(tmp_path):
    name, *view = chairs3d.views()[40]
    with tarfile.open(tmp_path / "rendered_chairs.tar", "w") as file:
        for number, chair in enumerate(chairs3d.CHAIRS):
            for each, *of in chairs3d.views()[38 : 42 + number]:
                if number or each != name:
                    chairs3d.put(file, f"rendered_chairs/{chair}/renders/{each}", chairs3d.image(0, *of))
    found = setsup.load("chairs3d", tmp_path)
    assert not found.factors.is_grid
    assert len(found) == 8
    assert len(found.factors.rows(f"azimuth == {view[1]}")) == 1


def test_another_azimuth(tmp_path):
    with tarfile.open(tmp_path / "rendered_chairs.tar", "w") as file:
        chairs3d.put(file, "rendered_chairs/a/renders/image_000_p020_t012_r096.png", b"")
    with pytest.raises(DataError, match="has images with the azimuth 012, which does not exist in 3D Chairs"):
        setsup.load("chairs3d", tmp_path)
