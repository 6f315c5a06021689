"""Overlap by the tracks of COLMAP models, beside sets of numbers of points."""

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

import setsup
from setsup.correspondence import overlap
from setsup.errors import DataError, SetsupError
from setsup.factors import FactorTable
from setsup.samplers.partners.overlap_table import OverlapTable

SIZE = (48, 64)
FOCAL = (70.0, 60.0)


class Model:
    """Cameras that look at a cloud and observe random parts of it, some points twice."""

    def __init__(self, folder, views=9, points=150, seed=0, blind=()):
        rng = np.random.default_rng(seed)
        self.xyz = {int(number): rng.normal(size=3) for number in rng.permutation(10 * points)[:points]}
        self.turns = Rotation.from_rotvec(rng.normal(size=(views, 3)) * 0.15)
        self.shifts = rng.normal(size=(views, 3)) * 0.3 + (0, 0, 6)
        self.pixels = []
        for view in range(views):
            share = rng.uniform(0.1, 0.9)
            numbers = [number for number in self.xyz if abs(number % 7 - view % 7) < 3 and rng.random() < share]
            numbers = numbers[: 10 if view in blind else None]
            numbers = [*numbers, *numbers[:2], -1, -1]  # the first two twice, and keypoints of no point
            self.pixels.append([(*rng.uniform(1, (SIZE[1] - 1, SIZE[0] - 1)).tolist(), number) for number in numbers])
        self.write(folder)

    def write(self, folder):
        (folder / "images").mkdir(parents=True)
        (folder / "sparse" / "0").mkdir(parents=True)
        lines = []
        for view, (turn, shift) in enumerate(zip(self.turns.as_quat(), self.shifts, strict=True)):
            Image.new("RGB", SIZE[::-1]).save(folder / "images" / f"{view:02}.png")
            pose = " ".join(map(repr, [*np.roll(turn, 1).tolist(), *shift.tolist()]))
            lines.append(f"{view + 1} {pose} 1 {view:02}.png")
            lines.append(" ".join(f"{x!r} {y!r} {number}" for x, y, number in self.pixels[view]))
        model = folder / "sparse" / "0"
        (model / "cameras.txt").write_text(f"1 PINHOLE {SIZE[1]} {SIZE[0]} {FOCAL[0]} {FOCAL[1]} 32 24\n")
        (model / "images.txt").write_text("\n".join(lines) + "\n")
        rows = (f"{number} {x!r} {y!r} {z!r} 9 99 9 0.1" for number, (x, y, z) in self.cloud())
        (model / "points3D.txt").write_text("\n".join(rows) + "\n")

    def cloud(self):
        return [(number, xyz.tolist()) for number, xyz in self.xyz.items()]

    def seen(self, view, inside=lambda x, y: True):
        return {number for x, y, number in self.pixels[view] if number >= 0 and inside(x, y)}

    def measures(self, first, second, inside=lambda x, y: True):
        """Overlap, angle and scale of two views by sets, and loops over common points."""
        one, two = self.seen(first, inside), self.seen(second, inside)
        angles, scales = [], []
        for number in one & two:
            point = self.xyz[number]
            ways, depths = [], []
            for view in (first, second):
                turn, shift = self.turns[view].as_matrix(), self.shifts[view]
                ways.append(-turn.T @ shift - point)
                depths.append((turn @ point + shift)[2])
            cosine = ways[0] @ ways[1] / np.linalg.norm(ways[0]) / np.linalg.norm(ways[1])
            angles.append(np.degrees(np.arccos(cosine)))
            scales.append(depths[1] / depths[0])
        share = len(one & two) / len(one) if len(one) >= 16 else np.nan
        return share, *(np.median(values) if values else np.nan for values in (angles, scales)), len(one)


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
    monkeypatch.setattr("setsup.correspondence.overlap_tracks._VIEWS", 3)
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


def test_missing_points(tmp_path):
    Model(tmp_path / "cloud")
    (tmp_path / "cloud" / "sparse" / "0" / "points3D.txt").unlink()
    with pytest.raises(DataError, match=r"has no points3D.bin or points3D.txt"):
        overlap(setsup.open(tmp_path / "cloud"))


def test_what_has_no_tracks():
    with pytest.raises(SetsupError, match="has no tracks of feature points"):
        overlap(setsup.load("shapes3d-procedural"), scene="shape", source="tracks")
