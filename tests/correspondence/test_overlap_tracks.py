"""Overlap by the tracks of COLMAP models, beside sets of numbers of points."""

import re

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.correspondence import overlap
from setsup.errors import DataError, SetsupError
from setsup.factors import FactorTable
from setsup.samplers.overlap.table import OverlapTable
from tests import capture_files
from tests.track_models import Model


def check(table, model, inside=lambda x, y: True, start=0):
    """Every pair of the model beside the table, where its rows begin at a number."""
    count = len(model.pixels)
    listed = 0
    for first in range(count):
        for second in range(count):
            if first == second:
                assert not table.is_disjoint(start + first, start + second)
                continue
            share, angle, scale, size = model.measures(first, second, inside)
            at = int(table.find(start + first, start + second))
            common = model.seen(first, inside) & model.seen(second, inside)
            assert (at >= 0) == bool(common)
            assert bool(table.is_disjoint(start + first, start + second)) == (not common and size >= 16)
            if at >= 0:
                listed += 1
                assert table.overlap[at] == np.float32(share) or np.isnan([table.overlap[at], share]).all()
                np.testing.assert_allclose([table.angle[at], table.scale[at]], [angle, scale], rtol=1e-4, atol=1e-3)
                assert table.decided[at] == size
                assert table.unknown[at] == 0
    return listed


def test_beside_sets_of_numbers(tmp_path):
    model = Model(tmp_path / "cloud", blind=(3,))
    table = overlap(setsup.open(tmp_path / "cloud"))
    assert table.source == "tracks"
    assert table.about["settings"] == {"scene": ["scene"]}
    assert check(table, model) == len(table)
    assert 20 < len(table) < 72
    assert table.counts.tolist() == [[72, 0, 72, 0]]
    assert table.sampled.tolist() == [len(model.seen(view)) for view in range(9)]
    assert np.isnan(table.overlap[table.first == 3]).all()
    assert not table.is_excluded(table.first, table.second).any()
    table.save(tmp_path / "cloud.overlap")
    opened = OverlapTable.open(tmp_path / "cloud.overlap")
    assert check(opened, model) == len(table)
    assert "pairs with common points" in repr(opened)


def test_several_models_and_rows(tmp_path, monkeypatch):
    """Numbers of points of two models have nothing in common; units of work of a few views find the same."""
    models = [Model(tmp_path / "both" / name, views, seed=views) for name, views in (("a", 8), ("b", 5))]
    captures = setsup.open(tmp_path / "both")
    table = overlap(captures)
    assert sum(check(table, model, start=start) for model, start in zip(models, (0, 8), strict=True)) == len(table)
    assert not table.is_disjoint([0, 9], [9, 0]).any()
    monkeypatch.setattr("setsup.correspondence.overlaps.tracks._VIEWS", 3)
    assert overlap(captures).digest == table.digest
    some = overlap(captures, rows=[1, 2, 5, 9, 12])
    assert some.counts[:, 0].tolist() == [6, 2]
    at = table.find(some.first, some.second)
    assert np.array_equal(table.overlap[at], some.overlap, equal_nan=True)
    assert np.array_equal(table.angle[at], some.angle)
    selected = overlap(captures.select([9, 2, 1, 12]))
    assert np.array_equal(selected.overlap[selected.find([0, 2], [3, 1])], table.overlap[table.find([9, 1], [12, 2])])
    captures.factors = FactorTable.from_values({"day": ["one"] * 13})
    with pytest.raises(SetsupError, match=r"of the models .*a/sparse/0/ and .*b/sparse/0/, whose points have nothing"):
        overlap(captures, scene="day")


def test_points_that_are_cropped_away_do_not_count(tmp_path):
    model = Model(tmp_path / "cloud")
    table = overlap(setsup.open(tmp_path / "cloud", size=(48, 40)))  # 12 pixels less on either side
    assert check(table, model, inside=lambda x, y: 12 <= x <= 52) == len(table)
    assert (table.sampled < [len(model.seen(view)) for view in range(9)]).all()


def lacking(model):
    del model.xyz[min(model.seen(2))]


def nowhere(model):
    model.shifts[2, 0] = np.nan


def no_points(model):
    model.cloud = list


@pytest.mark.parametrize(("modify", "words"), [
    (lacking, "row 2 of .* observes the point .* write the files of the model again"),
    (no_points, "row 0 of .* observes the point .* among its 0 points"), (nowhere, "image '02.png' has the pose"),
])  # fmt: skip
def test_models_that_do_not_fit_together(tmp_path, modify, words):
    model = Model(tmp_path / "first")
    modify(model)
    model.write(tmp_path / "cloud")
    with pytest.raises(DataError, match=words) as raised:
        overlap(setsup.open(tmp_path / "cloud"))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("file", ["images", "points3D", "cameras"])
def test_models_cut_short(tmp_path, file):
    """Cut off anywhere, a model gives one sentence, or what is left of it."""
    Model(tmp_path / "cloud", views=3, points=30)
    path = tmp_path / "cloud" / "sparse" / "0" / f"{file}.txt"
    whole = path.read_bytes()
    refused = 0
    for cut in np.random.default_rng(0).integers(0, len(whole) - 1, 25).tolist():
        path.write_bytes(whole[:cut])
        refused += len(refusal(tmp_path / "cloud")) > 0
    assert refused > 5


def refusal(folder):
    """What is said of a capture, nothing if it is measured; always one sentence."""
    try:
        overlap(setsup.open(folder))
    except SetsupError as error:
        return str(error) if "\n" not in str(error) else pytest.fail(str(error))
    return ""


def twice(name):
    """A list with its first entry twice."""

    def change(folder):
        path = folder / "sparse" / "0" / f"{name}.txt"
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines, *lines[: 2 if name == "images" else 1]]) + "\n")

    return change


def cropped(folder):
    Image.new("RGB", (50, 48)).save(folder / "images" / "02.png")


def turned_over(folder):
    path = folder / "sparse" / "0" / "images.txt"
    lines = path.read_text().splitlines()
    lines[4] = "3 0.1 0.1 0.1 0.1 0 0 0 1 02.png"  # no unit quaternion, so no rotation
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("change", "words"), [
    (twice("cameras"), "lists the camera 1 twice"), (twice("images"), "lists the image '00.png' twice"),
    (twice("points3D"), "lists the point [0-9]+ twice; expected each number once"),
    (cropped, "is 48 × 50 pixels .* but its camera was calibrated for 48 × 64"), (turned_over, "a unit quaternion"),
])  # fmt: skip
def test_hostile_models(tmp_path, change, words):
    Model(tmp_path / "cloud")
    change(tmp_path / "cloud")
    assert re.search(words, refusal(tmp_path / "cloud"))


def test_smaller_images_have_the_same_overlap(tmp_path):
    Model(tmp_path / "cloud")
    whole = overlap(setsup.open(tmp_path / "cloud"))
    for image in (tmp_path / "cloud" / "images").iterdir():
        Image.new("RGB", (32, 24)).save(image)
    half = overlap(setsup.open(tmp_path / "cloud"))
    assert np.array_equal(half.overlap, whole.overlap, equal_nan=True)
    np.testing.assert_allclose(half.angle, whole.angle, atol=1e-3)
    np.testing.assert_allclose(half.scale, whole.scale, rtol=1e-4)


def test_binary_models(tmp_path):
    """The same as text, beside sets, and cut off anywhere."""
    binary = tmp_path / "binary"
    capture_files.write_colmap(binary)
    capture_files.write_colmap(tmp_path / "text", text=True)
    table, text = (overlap(setsup.open(folder)) for folder in (binary, tmp_path / "text"))
    assert np.array_equal(table.overlap, text.overlap)
    height, width = capture_files.SIZE
    seen = [
        {number for x, y, number in capture_files.observations(pose, frame)
         if number >= 0 and 0 <= x <= width and 0 <= y <= height}
        for frame, pose in enumerate(capture_files.poses())
    ]  # fmt: skip
    assert table.sampled.tolist() == list(map(len, seen))
    shares = [len(seen[a] & seen[b]) / len(seen[a]) for a in range(6) for b in range(6) if a != b]
    assert np.array_equal(table.overlap, np.array(shares, np.float32))
    for name, content in capture_files.binary_model().items():
        for cut in np.random.default_rng(0).integers(1, len(content), 12).tolist():
            (binary / "sparse" / "0" / name).write_bytes(content[:-cut])
            assert refusal(binary)
        (binary / "sparse" / "0" / name).write_bytes(content)


def test_missing_points(tmp_path):
    Model(tmp_path / "cloud")
    (tmp_path / "cloud" / "sparse" / "0" / "points3D.txt").unlink()
    with pytest.raises(DataError, match=r"has no points3D.bin or points3D.txt"):
        overlap(setsup.open(tmp_path / "cloud"))


def test_what_has_no_tracks():
    with pytest.raises(SetsupError, match="has no tracks of feature points"):
        overlap(setsup.load("shapes3d-procedural"), scene="shape", source="tracks")
