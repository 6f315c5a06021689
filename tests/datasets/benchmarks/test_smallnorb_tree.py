import io
import pickle
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.benchmarks.smallnorb import dataset as smallnorb
from setsup.errors import DataError
from tests.true_files import smallnorb as true

CATEGORIES = ("animal", "human", "airplane", "truck", "car")


def jpeg(*factors: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(true.picture(*factors)).save(file, "JPEG", quality=95)
    return file.getvalue()


def write(
    folder: Path, azimuths: tuple[int, ...] = tuple(range(0, 36, 2)), named: bool = True
) -> list[tuple[int, ...]]:
    """Write a tree as LORD reads it, its azimuths written as given; gives the factors of its files as stored."""
    rows = list(product((0, 3), (4, 5), (0, 8), range(len(azimuths)), (5,), (0, 1)))
    for category, instance, elevation, place, lighting, camera in rows:
        top = folder / (CATEGORIES[category] if named else str(category)) / str(instance)
        top.mkdir(parents=True, exist_ok=True)
        name = f"azimuth{azimuths[place]}_elevation{elevation}_lighting{lighting}_{('lt', 'rt')[camera]}.jpg"
        (top / name).write_bytes(jpeg(category, instance, elevation, 2 * place, lighting, camera))
    # the training instances first, then the testing ones
    return sorted(rows, key=lambda row: (row[1] == 5, *row))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, ...]]]:
    folder = tmp_path_factory.mktemp("lord") / "small_norb_jpg"
    return folder, write(folder)


def test_the_tree_that_lord_reads(tree: tuple[Path, list[tuple[int, ...]]]) -> None:
    folder, rows = tree
    found = setsup.load("smallnorb", folder.parent)
    names = ("category", "instance", "elevation", "azimuth", "lighting", "camera")
    assert [tuple(row) for row in zip(*(found.factors.codes(name).tolist() for name in names), strict=True)] == rows
    assert found.factors.values("split").tolist() == ["test" if row[1] == 5 else "train" for row in rows]
    # the same factors as those of the published files
    assert [factor.to_dict() for factor in found.factors.factors] == [one.to_dict() for one in smallnorb._factors()]
    for row in (0, 17, len(rows) - 1):
        category, instance, elevation, place, lighting, camera = rows[row]
        content = jpeg(category, instance, elevation, 2 * place, lighting, camera)
        assert np.array_equal(found.fetch(row)["image"][..., 0], np.asarray(Image.open(io.BytesIO(content))))
        assert found.paths([row])[0].endswith(f"_{('lt', 'rt')[camera]}.jpg")
    assert np.array_equal(pickle.loads(pickle.dumps(found)).fetch([3, 3])["image"], found.fetch([3, 3])["image"])
    assert smallnorb.prepare(folder) == []


@pytest.mark.parametrize("azimuths", [range(18), range(0, 360, 20)], ids=["places", "degrees"])
def test_azimuths_may_be_written_in_other_ways(tmp_path: Path, azimuths: range, caplog) -> None:
    rows = write(tmp_path, tuple(azimuths), named=False)
    found = smallnorb.open(shutil.make_archive(str(tmp_path / "tree"), "zip", tmp_path))
    assert found.factors.codes("azimuth").tolist() == [row[3] for row in rows]
    assert found.factors.codes("category").tolist() == [row[0] for row in rows]
    assert "ambiguous" not in caplog.text


def test_a_part_whose_angles_are_not_sure_is_said(tmp_path: Path, caplog) -> None:
    (tmp_path / "car" / "4").mkdir(parents=True)
    for azimuth in (0, 4):
        (tmp_path / "car" / "4" / f"azimuth{azimuth}_elevation2_lighting0_lt.jpg").write_bytes(jpeg(4, 4, 2, 0, 0, 0))
    assert smallnorb.open(tmp_path).factors.values("azimuth").tolist() == [0, 40]
    assert "the azimuths in this part of the folder tree are ambiguous; they are read as 0, 2 … 34" in caplog.text


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("boat/4/azimuth0_elevation2_lighting0_lt.jpg", "the folder 'boat' is not a category"),
        ("car/10/azimuth0_elevation2_lighting0_lt.jpg", "instances must be from 0 to 9, not 10"),
        ("car/4/azimuth7_elevation31_lighting0_lt.jpg", "the elevations 31 … do not match a known numbering"),
        ("car/4/azimuth0_elevation2_lighting9_lt.jpg", "not found"),
    ],
)
def test_trees_that_are_none(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_bytes(jpeg(4, 4, 2, 0, 0, 0))
    with pytest.raises(DataError, match=sentence) as found:
        smallnorb.open(tmp_path)
    assert "\n" not in str(found.value)
