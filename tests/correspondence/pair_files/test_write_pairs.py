"""Files of pairs beside readers written from the published field names, and traced truth."""

import pickletools
from itertools import chain

import cv2
import numpy as np
import pytest

import setsup
from setsup.correspondence import overlap, spatial, write_pairs
from setsup.errors import SetsupError
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render
from setsup.samplers.overlap.table import OverlapTable
from setsup.scenes.recipes import Room
from tests.capture_files import write_colmap
from tests.correspondence.pair_files import readers
from tests.correspondence.pair_files.recorded import Recorded
from tests.track_models import Model

SIZE = (36, 48)
LAYOUTS = ("d2-net", "loftr", "dust3r", "superglue", "hloc")
BAND = (0.1, 0.9)


@pytest.fixture(scope="module")
def rooms():
    return RenderedDataset(Room(rooms=2, pairs=4, size=SIZE))


@pytest.fixture(scope="module")
def recorded(rooms):
    return Recorded(rooms)


@pytest.fixture(scope="module")
def traced(rooms):
    return overlap(rooms, scene="room", pixels=64)


@pytest.fixture(scope="module")
def compared(recorded):
    return overlap(recorded, scene="scene", pixels=64)


def read(layout, folder, dataset):
    """Pairs of a layout that has cameras."""
    if layout == "superglue":
        return list(readers.superglue(folder, lambda name: dataset.fetch(int(name))["depth"]))
    found = {"d2-net": readers.d2net, "loftr": readers.loftr, "dust3r": readers.dust3r}[layout](folder)
    return [one[0] if layout == "loftr" else one for one in found]


def in_band(table, band):
    """Overlaps of ordered pairs in a band, by their rows."""
    pairs = zip(table.first.tolist(), table.second.tolist(), table.overlap.tolist(), strict=True)
    return {(one, two): share for one, two, share in pairs if np.float32(band[0]) <= share <= np.float32(band[1])}


def each_once(directed):
    """Of two directions the larger overlap, of equal ones the smaller first row."""
    found = {}
    for (one, two), share in sorted(directed.items()):
        if share > directed.get((two, one), -1) or (share == directed.get((two, one)) and one < two):
            found[one, two] = share
    return found


@pytest.mark.parametrize("layout", LAYOUTS[:4])
@pytest.mark.parametrize("source", ["traced", "compared"])
def test_pixels_move_to_where_they_are(layout, source, rooms, request, tmp_path):
    """Pixels that the second view shows are, by the files, within 0.002 pixels of where tracing finds them."""
    dataset = rooms if source == "traced" else request.getfixturevalue("recorded")
    table = request.getfixturevalue(source)
    written = write_pairs(dataset, table, tmp_path / "out", layout, overlap=BAND)
    directed = in_band(table, BAND)
    expected = directed if layout == "d2-net" else each_once(directed)
    pairs = read(layout, tmp_path / "out", dataset)
    rows = [tuple(map(int, pair.names)) for pair in pairs]
    assert sorted(rows) == sorted(expected)
    assert written.pairs == len(rows) > 10
    assert written.views == len(set(chain(*rows)))
    assert written.scenes == 2
    shifted = []
    for (one, two), pair in zip(rows, pairs, strict=True):
        if layout != "superglue":
            assert pair.overlap == pytest.approx(expected[one, two], abs=1e-7)
        truth = spatial(rooms.scene(one), rooms.camera(one), rooms.camera(two))
        seen = truth.select(truth.visible)
        pixels = seen.points1.astype(int)
        assert np.abs(pair.move(pixels) - seen.points2).max() < 0.002
        shifted.append(np.abs(pair.move(pixels) + 0.5 - seen.points2).min())
    assert min(shifted) > 0.4  # a convention that is off by half a pixel would show


def test_d2net(rooms, traced, tmp_path):
    """Matrices are those of the table, and points are where both views show them."""
    write_pairs(rooms, traced, tmp_path / "out", "d2-net", overlap=(0, 1))
    shared = 0
    for scene in (tmp_path / "out" / "scenes.txt").read_text().split():
        info = np.load(tmp_path / "out" / "scene_info" / f"{scene}.npz", allow_pickle=True)
        rows = [int(path[-10:-4]) for path in info["image_paths"]]
        places, coarse, k, poses = (
            info[name] for name in ("points3D_id_to_2D", "points3D_id_to_ndepth", "intrinsics", "poses")
        )
        assert list(info["n_points3D"]) == [len(own) for own in places]
        assert (info["fact_x"] == 1).all()
        assert (info["fact_y"] == 1).all()
        for one, row in enumerate(rows):
            camera = rooms.camera(row)
            assert np.allclose(k[one][:2, 2], camera.k[:2, 2] + 0.5)
            assert np.allclose(poses[one][:3], np.column_stack([camera.rotation, camera.translation]))
            for two, other in enumerate(rows):
                at = traced.find(row, other)
                share = -1 if one == two or np.isnan(traced.overlap[at]) else traced.overlap[at]
                assert info["overlap_matrix"][one, two] == pytest.approx(share, abs=1e-7)
                cosine = (rooms.camera(row).rotation[2] * rooms.camera(other).rotation[2]).sum()
                assert info["angles"][one, two] == pytest.approx(np.degrees(np.arccos(min(cosine, 1))), abs=1e-5)
                both = places[one].keys() & places[two].keys()
                if one == two or not both:
                    assert info["scale_ratio_matrix"][one, two] == -1
                    continue
                ids = sorted(both)
                pixels1, pixels2 = (np.array([places[view][point] for point in ids]) for view in (one, two))
                size1, size2 = (np.array([coarse[view][point] for point in ids]) for view in (one, two))
                xyz = readers.pinhole(k[one], poses[one], pixels1, size1 * (k[one][0, 0] + k[one][1, 1]) / 2)
                assert np.abs(readers.projected(k[two], poses[two], xyz) - pixels2).max() < 1e-6
                ratio = np.maximum(size1 / size2, size2 / size1).min()
                assert info["scale_ratio_matrix"][one, two] == pytest.approx(ratio)
                shared += len(ids)
    assert shared > 1000


def test_loftr_matches(rooms, traced, tmp_path):
    write_pairs(rooms, traced, tmp_path / "out", "loftr", overlap=(0, 1))
    found = list(readers.loftr(tmp_path / "out"))
    assert [name for name in (tmp_path / "out" / "scenes.txt").read_text().split()] == ["0000_0_1", "0001_0_1"]
    assert {pair.overlap for pair, _ in found} == set(each_once({
        pair: share for pair, share in in_band(traced, (0, 1)).items() if share > 0
    }).values())  # fmt: skip
    for pair, match in found:
        assert np.abs(pair.move(match[:2].astype(int)[None])[0] - match[2:]).max() < 0.002


def test_arrays_are_pickled_by_a_name_that_all_numpy_have(rooms, traced, tmp_path):
    write_pairs(rooms, traced, tmp_path / "out", "loftr", overlap=BAND)
    file = tmp_path / "out" / "scene_info" / "0000_0.1_0.9.npz"
    words = [arg for operation, arg, _ in pickletools.genops(file.read_bytes()) if "UNICODE" in operation.name]
    assert [word for word in words if "numpy" in word or "core" in word] == ["numpy"]


def test_images_and_depth_are_those_of_the_dataset(rooms, traced, tmp_path):
    shown = rooms.fetch(range(len(rooms)))
    for layout in LAYOUTS[:3]:
        write_pairs(rooms, traced, tmp_path / layout, layout, overlap=BAND)
        images = sorted((tmp_path / layout).rglob("*.jpg"))
        assert len(images) == len(rooms)
        for file in images:
            row = int(file.stem)
            color = cv2.imread(str(file))[..., ::-1].astype(int)
            assert np.abs(color - shown["image"][row]).mean() < 5
            if layout == "dust3r":
                depth = cv2.imread(str(file.with_suffix(".exr")), cv2.IMREAD_ANYDEPTH)
            else:
                depth = readers.depth_h5(tmp_path / layout / "depths" / file.parent.name / f"{file.stem}.h5")
            assert depth.dtype == np.float32
            assert np.array_equal(depth, shown["depth"][row])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_equal_arguments_write_equal_bytes(layout, recorded, compared, tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        write_pairs(recorded, compared, folder, layout, overlap=BAND)
    contents = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    ]
    assert contents[0] == contents[1]


def test_hloc_of_a_rendering_has_images(rooms, traced, tmp_path):
    write_pairs(rooms, traced, tmp_path / "out", "hloc", overlap=BAND)
    found = readers.hloc(tmp_path / "out" / "pairs.txt")
    names = {(one, two) for one, others in found.items() for two in others}
    assert {tuple(int(name[-10:-4]) for name in pair) for pair in names} == set(each_once(in_band(traced, BAND)))
    assert all((tmp_path / "out" / "images" / name).is_file() for pair in names for name in pair)


def test_both_directions(rooms, traced, tmp_path):
    write_pairs(rooms, traced, tmp_path / "out", "hloc", overlap=(0.3, 0.8), direction="both")
    directed = in_band(traced, (0.3, 0.8))
    expected = each_once({(one, two): share for (one, two), share in directed.items() if (two, one) in directed})
    found = readers.hloc(tmp_path / "out" / "pairs.txt")
    assert {(int(one[-10:-4]), int(two[-10:-4])) for one, others in found.items() for two in others} == set(expected)
    assert 0 < len(expected) < len(each_once(directed))


def test_bands_of_angle_and_scale(rooms, traced, tmp_path):
    bands = {"angle": (5.0, 40.0), "scale": (0.7, 1.3)}
    written = write_pairs(rooms, traced, tmp_path / "out", "d2-net", overlap=(0, 1), **bands)
    fits = np.isfinite(traced.overlap)
    for name, (low, high) in bands.items():
        with np.errstate(invalid="ignore"):
            fits &= (getattr(traced, name) >= low) & (getattr(traced, name) <= high)
    assert 0 < written.pairs == fits.sum() < len(traced)


def test_some_scenes(recorded, compared, tmp_path):
    """Scenes are called as their levels, and others than those asked for are left out."""
    written = write_pairs(recorded, compared, tmp_path / "out", "dust3r", overlap=BAND, where="scene == 'cellar'")
    with np.load(tmp_path / "out" / "all_metadata.npz") as data:
        assert data["scenes"].tolist() == ["cellar 0"]
        assert set(data["images"]) <= {f"{row:06}" for row in recorded.factors.rows("scene == 'cellar'")}
        assert written.views == len(data["images"])


def test_excluded_pairs_overlap_by_0(recorded, compared, tmp_path):
    """A pair that certainly does not overlap is 0, one that was not tried is −1."""
    gone = [int(np.flatnonzero((compared.first == one) & (compared.second == two))[0]) for one, two in ((0, 1), (1, 0))]
    left = np.delete(np.arange(len(compared)), gone)
    sizes = np.diff(compared.starts)
    excluded = np.zeros((sizes[0], sizes[0]), bool)
    excluded[0, 1] = True
    counts = compared.counts.copy()
    counts[0] += [0, 1, -2, 1]
    columns = {
        name: getattr(compared, name)[left]
        for name in ("first", "second", "overlap", "angle", "scale", "unknown", "decided")
    }
    bits = np.packbits(excluded.reshape(-1))
    table = OverlapTable(
        **columns, views=compared.views, sampled=compared.sampled, starts=compared.starts, counts=counts,
        excluded=bits, excluded_starts=np.array([0, len(bits), len(bits)]), about=compared.about,
    )  # fmt: skip
    for band, share in (((0, 1), 0), ((0.01, 1), -1)):
        folder = tmp_path / str(band[0])
        write_pairs(recorded, table, folder, "d2-net", overlap=band)
        matrix = np.load(folder / "scene_info" / "attic.0.npz")["overlap_matrix"]
        assert matrix[0, 1] == share
        assert matrix[1, 0] == -1


def test_rendered_folders(rooms, traced, tmp_path):
    folder = render(rooms, tmp_path / "rooms")
    table = overlap(folder, scene="room", pixels=64)
    assert table.source == "depth"
    written = write_pairs(folder, table, tmp_path / "out", "loftr", overlap=BAND)
    assert written.pairs == len(list(readers.loftr(tmp_path / "out")))


def test_captures(tmp_path):
    """Lists of a COLMAP model name its images; depth, which it has not, is asked for by the other layouts."""
    write_colmap(tmp_path / "box", "OPENCV")
    capture = setsup.open(tmp_path / "box")
    table = overlap(capture)
    write_pairs(capture, table, tmp_path / "hloc", "hloc", overlap=(0.9, 1), where="frame != 3")
    names = [f"frame_{frame:02}.png" for frame in (0, 1, 2, 4, 5)]
    assert readers.hloc(tmp_path / "hloc" / "pairs.txt") == {name: names[at + 1 :] for at, name in enumerate(names[:4])}
    assert [path.name for path in (tmp_path / "hloc").iterdir()] == ["pairs.txt"]
    with pytest.raises(SetsupError, match="lacks the modalities depth, which this layout contains"):
        write_pairs(capture, table, tmp_path / "loftr", "loftr", overlap=(0, 1))
    write_pairs(capture, table, tmp_path / "superglue", "superglue", overlap=(0, 1))
    for pair in readers.superglue(tmp_path / "superglue", lambda name: None):
        one, two = map(int, pair.names)
        (pixels1, ids1), (pixels2, ids2) = (capture.observations(row) for row in (one, two))
        ids, at1, at2 = np.intersect1d(ids1, ids2, return_indices=True)
        cloud = capture.points(one)
        xyz = cloud.xyz[[cloud.ids.tolist().index(point) for point in ids]]
        pose = np.linalg.inv(capture.fetch(one)["pose"].astype(float))
        depth = xyz @ pose[2, :3] + pose[2, 3]
        line = next(line for line in (tmp_path / "superglue" / "pairs.txt").read_text().splitlines()
                    if f"{one:06}" in line.split()[0] and f"{two:06}" in line.split()[1])  # fmt: skip
        numbers = np.array(line.split()[4:]).astype(float)
        k0, k1, motion = numbers[:9].reshape(3, 3), numbers[9:18].reshape(3, 3), numbers[18:].reshape(4, 4)
        there = readers.projected(k1, motion, readers.pinhole(k0, np.eye(4), pixels1[at1], depth))
        assert np.abs(there - pixels2[at2]).max() < 0.01


def test_distorted_images_are_refused(tmp_path):
    write_colmap(tmp_path / "box", "OPENCV")
    capture = setsup.open(tmp_path / "box", undistort=False)
    with pytest.raises(SetsupError, match=r"have lens distortion, .* open the dataset without undistort=False"):
        write_pairs(capture, overlap(capture), tmp_path / "out", "superglue", overlap=(0, 1))
    assert not (tmp_path / "out").exists()


class WithDepth:
    """A COLMAP model to which depth was added, which shows nothing."""

    def __init__(self, capture):
        self._capture = capture
        self.name, self.factors = capture.name, capture.factors
        self.size = capture.modalities["image"].shape[:2]
        self.modalities = {**capture.modalities, "depth": capture.modalities["image"].__class__(self.size, "float32")}

    def __getattr__(self, name):
        return getattr(self._capture, name)

    def __len__(self):
        return len(self._capture)

    def fetch(self, indices, modalities=None):
        names = [name for name in modalities if name != "depth"]
        found = self._capture.fetch(indices, names)
        return {**found, "depth": np.zeros((*np.shape(indices), *self.size), np.float32)}


def test_points_of_tracks(tmp_path):
    """From a COLMAP model, D2-Net's points are its own, where its images observe them, in its coordinates."""
    write_colmap(tmp_path / "box")
    capture = WithDepth(setsup.open(tmp_path / "box"))
    write_pairs(capture, overlap(capture, source="tracks"), tmp_path / "out", "d2-net", overlap=(0, 1))
    info = np.load(tmp_path / "out" / "scene_info" / "box.0.npz", allow_pickle=True)
    seen = [capture.observations(row) for row in range(len(capture))]
    for (pixels, ids), own, k, pose in zip(
        seen, info["points3D_id_to_2D"], info["intrinsics"], info["poses"], strict=True
    ):
        assert set(own) == set(ids)
        cloud = capture.points(0)
        for point, place in own.items():
            assert np.allclose(place, pixels[ids == point][0] + 0.5)
            xyz = cloud.xyz[cloud.ids == point]
            assert np.abs(readers.projected(k, pose, xyz)[0] - place).max() < 0.001
    for one, two in np.argwhere(info["overlap_matrix"] >= 0):
        own, other = (info["points3D_id_to_2D"][view].keys() for view in (one, two))
        assert info["overlap_matrix"][one, two] == pytest.approx(len(own & other) / len(own))


def test_points_of_tracks_that_a_crop_shows(tmp_path):
    """Of two keypoints of a point, one outside the crop, the other one is written."""
    model = Model(tmp_path / "cloud", views=6, points=400, seed=4)
    capture = WithDepth(setsup.open(tmp_path / "cloud", size=(48, 20)))
    write_pairs(capture, overlap(capture, source="tracks"), tmp_path / "out", "d2-net", overlap=(0, 1))
    info = np.load(tmp_path / "out" / "scene_info" / "cloud.0.npz", allow_pickle=True)
    twice = 0
    for view, own in enumerate(info["points3D_id_to_2D"]):
        shown = {}
        for x, y, number in model.pixels[view]:
            if number >= 0 and 0 <= x - 22 < 20:
                shown.setdefault(number, []).append((x - 22, y))
        hidden = {number for x, _, number in model.pixels[view] if not 0 <= x - 22 < 20}
        twice += len(hidden & set(own))
        for point, place in own.items():
            assert min(np.abs(np.subtract(place, other)).max() for other in shown[point]) < 1e-3
    assert twice
