"""The rendered substitutes for Cars3D and SmallNORB: files, labels, the mirror plane, light, and that they resume."""

import json

import numpy as np
import pytest
import scipy.io

import setsup
from setsup.errors import DataError
from setsup.files import load_manifest
from setsup.scenes import Camera, Frame, Scene
from setsup.scenes.cars.meshes import car_scene
from setsup.scenes.cars.traits import KINDS, make_car
from setsup.scenes.renderers import renderer
from setsup_papers.dcodr.datasets import cars3d_procedural, smallnorb_procedural
from setsup_papers.dcodr.datasets.cars3d_procedural.writing import camera, write_cars
from setsup_papers.dcodr.datasets.smallnorb_procedural import toys, writing
from setsup_papers.dcodr.datasets.smallnorb_procedural.lighting import LIGHTINGS, lit

pytest.importorskip("embreex")


@pytest.fixture(scope="module")
def cars(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cars")
    cars3d_procedural.prepare(folder, objects=2)
    return folder


@pytest.fixture(scope="module")
def small_toys(tmp_path_factory):
    """Two toys of each category under one elevation and three azimuths."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "ELEVATIONS", (30,))
        patch.setattr(writing, "AZIMUTHS", (0, 20, 40))
        patch.setattr(writing, "_VIEWS", 18)
        folder = tmp_path_factory.mktemp("toys")
        assert smallnorb_procedural.prepare(folder, toys=2) == [folder]
        yield folder


# Cars


@pytest.mark.long("renderings")
def test_cars_have_one_mirror_plane_and_no_other_symmetry(cars):
    dataset = setsup.load("cars3d-procedural", cars)
    images = dataset.fetch(range(len(dataset)))["image"].reshape(4, 24, 2, 128, 128, 3).astype(np.int16)
    azimuths = np.arange(24)
    flipped = images[:, (-azimuths) % 24, :, :, ::-1]
    np.testing.assert_array_equal(flipped, images)
    for turn in range(1, 24):  # neither a turn nor a turned mirror image is the same
        for other in (images[:, (azimuths + turn) % 24], images[:, (turn - azimuths) % 24, :, :, ::-1]):
            changed = (np.abs(other - images)[..., 1] > 8).sum((-1, -2))
            assert (changed.max(axis=1) > 150).all(), turn
    assert (np.abs(images[..., 0, :, :, :] - images[..., 1, :, :, :]).max(-1) > 8).sum((-1, -2)).min() > 200


@pytest.mark.long("renderings")
def test_cars_are_read_as_published(cars):
    dataset = setsup.load("cars3d-procedural", cars)
    assert len(dataset) == 2 * 96
    assert dataset.name == "cars3d-procedural"
    row = (2 * 24 + 5) * 2 + 1  # elevation 2, azimuth 75, object 1
    assert [dataset.factors.values(name, row) for name in ("elevation", "azimuth", "object")] == [2, 75, 1]
    drawn = renderer("embree")
    drawn.load(car_scene(make_car(0, 1)))
    frame = drawn.render(camera(75, 40))
    found = dataset.fetch(row)
    np.testing.assert_array_equal(found["image"], frame.rgb)
    np.testing.assert_array_equal(found["object_mask"], frame.triangle >= 0)
    genuine, ours = load_manifest("cars3d"), load_manifest("cars3d-procedural")
    assert [one.name for one in genuine.factors] == [one.name for one in ours.factors] == list(dataset.factors.names)
    split = setsup.load("cars3d-procedural", cars, split="dcodr")
    assert split.factors.counts("split").tolist() == [173, 19]


def test_all_files_say_that_they_are_substitutes(cars, small_toys):
    for folder, name in ((cars, "Cars3D"), (small_toys, "SmallNORB")):
        assert json.loads((folder / "SUBSTITUTE.json").read_text())["what"].startswith(f"Substitute for {name}")
    for name in ("cars3d", "smallnorb"):
        assert "substitute" in load_manifest(f"{name}-procedural").title
    files = sorted(cars.glob("*.mat"))
    assert [file.stem for file in files] == ["car_procedural_001_mesh", "car_procedural_002_mesh"]
    for file in files:
        assert b"Substitute for Cars3D" in file.read_bytes()[:116]
        assert scipy.io.loadmat(file)["im"].shape == (128, 128, 3, 24, 4)


@pytest.mark.long("renderings")
def test_a_missing_car_is_rendered_again_and_alike(cars, tmp_path):
    before = {path.name: path.read_bytes() for path in cars.glob("*.mat")}
    (cars / "car_procedural_001_mesh.mat").unlink()
    stamp = (cars / "car_procedural_002_mesh.mat").stat().st_mtime_ns
    write_cars(cars, 1)  # a smaller number keeps the others
    assert {path.name: path.read_bytes() for path in cars.glob("*.mat")} == before
    assert (cars / "car_procedural_002_mesh.mat").stat().st_mtime_ns == stamp
    assert (cars / "list.txt").read_text().split() == sorted(name.removesuffix(".mat") for name in before)
    with pytest.raises(DataError, match=r"SUBSTITUTE\.json: .*created with seed=0 instead of 1; .*choose another"):
        write_cars(cars, 2, seed=1)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError, match=r"contains notes\.txt, but not SUBSTITUTE\.json"):
        write_cars(tmp_path, 1)
    with pytest.raises(DataError, match="objects"):
        write_cars(cars, 1000)


def test_cars_are_unlike():
    many = [make_car(0, number) for number in range(183)]
    assert {car.kind for car in many} == set(KINDS)
    looks = np.array([[*car.paint, 100 * car.length, 300 * car.roof, 300 * car.hood] for car in many], float)
    apart = np.linalg.norm(looks[:, None] - looks, axis=-1) + 1e9 * np.eye(183)
    assert apart.min() > 5
    assert make_car(0, 7) == many[7] != make_car(1, 7)


def test_what_is_not_rendered_says_how(tmp_path):
    for name in ("cars3d-procedural", "smallnorb-procedural"):
        with pytest.raises(DataError, match=rf"not been rendered yet .*setsup prepare {name} --root"):
            setsup.load(name, tmp_path)


# Toys


def test_toys_are_read_as_published(small_toys):
    dataset = setsup.load("smallnorb-procedural", small_toys)
    assert len(dataset) == 2 * 10 * 18
    assert set(dataset.factors.values("instance").tolist()) == {0, 4}
    row = 2 * (18 + 6 + 4) + 1  # human 4: elevation 30, azimuth 20, lighting 4, the right camera
    values = [dataset.factors.values(factor.name, row) for factor in dataset.factors.factors]
    assert values == ["human", 4, 30, 20, 4, "right", "train"]
    drawn = renderer("embree")
    drawn.load(toys.toy_scene(0, 1, 4))
    seen = writing.camera(22.5, 30)
    np.testing.assert_array_equal(dataset.fetch(row)["image"][..., 0], lit(drawn.render(seen), seen, 20)[4])
    left = setsup.load("smallnorb-procedural", small_toys, split="dcodr")
    assert set(left.factors.values("camera").tolist()) == {"left"}
    assert left.factors.counts("split").tolist() == [162, 18]
    test = left.factors.rows("split == 'test'")
    toy = left.factors.group_by(["category", "instance"]).of_rows()
    assert set(np.bincount(toy[test], minlength=10).tolist()) <= {1, 2}


def test_toys_of_a_category_and_categories_are_unlike(small_toys):
    dataset = setsup.load(
        "smallnorb-procedural", small_toys, where="azimuth == 20 and lighting == 1 and camera == 'left'"
    )
    images = dataset.fetch(range(len(dataset)))["image"].astype(int)
    assert len(images) == 10
    apart = (np.abs(images[:, None] - images).squeeze(-1) > 12).sum((-1, -2)) + 10_000 * np.eye(10)
    assert apart.min() > 200


def test_light_on_toys_is_that_of_lambert():
    seen = Camera.look_at((2, 0, 0), (0, 0, 0), height=1, width=2, focal_length=10)  # at azimuth 0
    normal = np.array([[[0.6, 0.0, -0.8], [0, 0, 0]]], np.float32)
    rgb = np.array([[[188, 188, 188, 255], [0, 0, 0, 0]]], np.uint8)
    index = np.array([[0, -1]], np.int32)
    images = lit(Frame(rgb, np.ones((1, 2), np.float32), normal, index, index), seen, 0.0)
    albedo = ((188 / 255 + 0.055) / 1.055) ** 2.4
    # the image's right is +y of the world here, and towards the camera is +x
    for image, (side, rise, strength) in zip(images, LIGHTINGS, strict=True):
        turn, height = np.radians([side, rise])
        way = (np.cos(turn) * np.cos(height), np.sin(turn) * np.cos(height), np.sin(height))
        light = 0.22 + strength * max(0.0, float(np.dot(way, (0.8, 0.6, 0))))
        expected = 255 * (1.055 * (albedo * light) ** (1 / 2.4) - 0.055)
        assert abs(image[0, 0] - expected) <= 0.51
        assert image[0, 1] == round(190 * (0.75 + 0.25 * strength))


@pytest.mark.long("renderings")
def test_killed_toys_resume_to_the_same_files(small_toys, tmp_path, monkeypatch):
    rendered = []

    def killed(folder, seed, which):
        if len(rendered) == 6:
            raise KeyboardInterrupt
        rendered.append(which)
        return write(folder, seed, which)

    write = writing._write_toy
    monkeypatch.setattr(writing, "_write_toy", killed)
    with pytest.raises(KeyboardInterrupt):
        writing.write_toys(tmp_path, 2)
    with pytest.raises(DataError, match="not been rendered yet"):
        setsup.load("smallnorb-procedural", tmp_path)
    monkeypatch.setattr(writing, "_write_toy", lambda *given: (rendered.append(given[-1]), write(*given)))
    writing.write_toys(tmp_path, 2)
    assert len(rendered) == len(set(rendered)) == 10
    names = sorted(path.name for path in small_toys.iterdir() if not path.name.endswith(".lock"))
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")) == names
    for name in names:
        assert (tmp_path / name).read_bytes() == (small_toys / name).read_bytes()


def test_refused_toys(tmp_path):
    for wrong in (3, 0, 12):
        with pytest.raises(DataError, match="toys"):
            writing.write_toys(tmp_path, wrong)


def test_scenes_of_toys_are_evenly_lit():
    for category in range(5):
        scene = toys.toy_scene(0, category, 0)
        assert isinstance(scene, Scene)
        assert scene.background is None
        low, high = scene.bounds
        assert -0.03 < low[2] < 0.08
        assert (high - low).max() < 1.5
