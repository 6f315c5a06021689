"""The images of ABC's pose experiment as one dataset, of small releases in their true formats, and their substitute."""

import json
import shutil

import numpy as np
import pytest

import setsup
from setsup.datasets.benchmarks.pascal3d.pose import geodesic, rotation
from setsup.datasets.benchmarks.shapenet_renderings import crop_to_alpha
from setsup.errors import DataError
from setsup.experiments import Data
from setsup.files import load_manifest
from setsup_papers.abc.pose.datasets import abc_pose_procedural
from setsup_papers.abc.pose.datasets.abc_pose.cropping import crop_photo, crop_rendering, crop_with_margin
from setsup_papers.abc.pose.datasets.abc_pose_procedural import models, views, writing
from setsup_papers.abc.pose.datasets.abc_pose_procedural.symmetry import asymmetries, views_around
from tests.true_files import abc_pose as true_files

COUNTS = {"models": 2, "codebook": 1, "views": 3, "real": 4, "tests": 2, "size": 24}


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("releases")
    true_files.write(folder)
    return folder


@pytest.fixture(scope="module")
def published(releases):
    return setsup.load("abc-pose", releases, size=(32, 32))


@pytest.fixture(scope="module")
def substitute(tmp_path_factory):
    pytest.importorskip("embreex")
    pytest.importorskip("skimage")
    folder = tmp_path_factory.mktemp("substitute")
    assert abc_pose_procedural.prepare(folder, **COUNTS) == [folder]
    return folder


def fetched(dataset, name):
    return dataset.fetch(range(len(dataset)), [name])[name]


# The published releases


def test_parts_are_those_of_the_experiment(published, releases):
    renderings = setsup.load("shapenet-renderings", releases / "shapenet-renderings")
    pascal = setsup.load("pascal3d", releases / "pascal3d")
    cars = published.where("category == 'car'")
    low = renderings.factors.rows("category == 'car' and elevation < 28.64788975654116")
    records = renderings.factors.values("record", low)
    codebook = np.isin(records, ["0182", "0183"])
    for split, expected in (("train", low[~codebook]), ("codebook", low[codebook])):
        found = cars.where(f"split == '{split}' and source == 'rendering'")
        assert len(found) == len(expected) > 0
        np.testing.assert_array_equal(
            found.factors.values("azimuth", range(len(found))), renderings.factors.values("azimuth", expected)
        )
        np.testing.assert_allclose(
            found.fetch(range(len(found)), ["rotation"])["rotation"],
            renderings.fetch(expected, ["rotation"])["rotation"],
            atol=2e-3,  # published matrices are moved a little after they were turned
        )
    real = cars.where("split == 'train' and source == 'real'")
    whole = len(setsup.load("compcars", releases / "compcars")) + len(setsup.load("cars196", releases / "cars196"))
    assert len(real) == whole
    assert np.isnan(real.factors.values("azimuth", range(len(real)))).all()
    chairs = published.where("category == 'chair' and split == 'train' and source == 'real'")
    known = "truncated == False and occluded == False and difficult == False"
    assert len(chairs) == len(pascal.factors.rows(f"category == 'chair' and split == 'train' and {known}"))
    test = published.where("category == 'chair' and split == 'test'")
    listed = pascal.where("abc == 'chair'")
    np.testing.assert_allclose(test.fetch(range(len(test)))["rotation"], listed.fetch(range(len(listed)))["rotation"])


def test_no_object_of_the_codebook_is_trained_on(published):
    groups = [set(published.where(f"split == '{split}'").factors.values("object")) for split in ("train", "codebook")]
    assert groups[0] & groups[1] <= {None}


def test_without_a_margin_boxes_are_cut_as_in_the_published_evaluation(releases):
    dataset = setsup.load("abc-pose", releases, size=(32, 48), margin=0.0, split="codebook")
    renderings = setsup.load("shapenet-renderings", releases / "shapenet-renderings")
    pascal = setsup.load("pascal3d", releases / "pascal3d")
    first = renderings.factors.rows("category == 'car' and record == '0182' and elevation < 28.64788975654116")[0]
    expected = crop_to_alpha(renderings.fetch(first, ["image"])["image"], (32, 48))
    np.testing.assert_array_equal(dataset.fetch(0, ["image"])["image"], expected)
    test = setsup.load("abc-pose", releases, size=(32, 48), margin=0.0, split="test")
    photo = test.fetch(0, ["image"])["image"]
    row = pascal.factors.rows("abc == 'car'")[0]
    expected = crop_and_resize(pascal.photo(row), pascal.fetch(row, ["box"])["box"], (32, 48))
    assert np.abs(photo[..., :3] - expected).max() <= 0.5 + 1e-3
    assert (photo[..., 3] == 255).all()


def crop_and_resize(photo, box, size):
    """tf.image.crop_and_resize of a box within the image by its definition, pixel by pixel; box of PASCAL VOC."""
    limit = np.array([photo.shape[1] - 1, photo.shape[0] - 1] * 2)
    x1, y1, x2, y2 = np.clip((box.astype(np.float64) - 1) / limit, 0, 1)
    found = np.empty((*size, 3))
    for i in range(size[0]):
        y = y1 * limit[1] + i * (y2 - y1) * limit[1] / (size[0] - 1)
        for j in range(size[1]):
            x = x1 * limit[0] + j * (x2 - x1) * limit[0] / (size[1] - 1)
            (top, low), (left, right) = ((int(np.floor(one)), int(np.ceil(one))) for one in (y, x))
            above, below = (
                photo[at, left] + (photo[at, right] - photo[at, left].astype(float)) * (x - left) for at in (top, low)
            )
            found[i, j] = above + (below - above) * (y - top)
    return found


@pytest.mark.parametrize("box", [(1, 1, 70, 50), (3.5, 2.25, 40, 49.75), (20, 10, 22, 12), (60, 40, 70, 50)])
@pytest.mark.parametrize("size", [(16, 16), (64, 48)])
def test_photographs_are_sampled_as_by_crop_and_resize(box, size):
    photo = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    found = crop_photo(photo, np.array(box, float), size, (0, 0))
    assert np.abs(found[..., :3] - crop_and_resize(photo, np.array(box), size)).max() <= 0.5 + 1e-3
    scipy = pytest.importorskip("scipy.ndimage")
    rows, columns = np.linspace(box[1] - 1, box[3] - 1, size[0]), np.linspace(box[0] - 1, box[2] - 1, size[1])
    grid = np.meshgrid(rows, columns, indexing="ij")
    red = scipy.map_coordinates(photo[..., 0].astype(float), grid, order=1, mode="nearest")
    assert np.abs(found[..., 0] - red).max() <= 0.5 + 1e-3


def test_a_box_beyond_the_photograph_is_refused():
    for margin in ((0, 0), (1, 1)):
        with pytest.raises(DataError, match="has no area inside the image"):
            crop_photo(np.zeros((9, 9, 3), np.uint8), np.array([12.0, 2.0, 14.0, 5.0]), (8, 8), margin)


def test_a_margin_lies_around_the_same_box():
    y, x = np.mgrid[0:60, 0:80]
    photo = np.stack([3 * x, 4 * y, x + y], axis=-1).astype(np.uint8)  # linear, so that resizing keeps it
    box = np.array([21.0, 11.0, 60.0, 40.0])
    found = crop_photo(photo, box, (30, 40), (3, 4))
    assert found.shape == (36, 48, 4)
    np.testing.assert_array_equal(found[..., :3], photo[7:43, 16:64])
    # beyond the image it is transparent
    edge = crop_photo(photo, np.array([1.0, 1.0, 40.0, 30.0]), (30, 40), (3, 4))
    assert not edge[:3].any()
    assert not edge[:, :4].any()
    np.testing.assert_array_equal(edge[3:, 4:, :3], photo[:33, :44])
    clear = np.zeros((20, 20, 4), np.uint8)
    clear[5:15, 2:18] = 200
    np.testing.assert_array_equal(
        crop_rendering(clear, (10, 16), (1, 2)), np.pad(clear[5:15, 2:18], ((1, 1), (2, 2), (0, 0)))
    )
    with pytest.raises(DataError, match="has no area inside the image"):
        crop_with_margin(clear, np.array([3.0, 3.0, 3.0, 9.0]), (8, 8), (1, 1))


def test_what_is_missing_is_named(releases, tmp_path, caplog):
    for name in ("shapenet-renderings", "pascal3d", "cars196"):
        shutil.copytree(releases / name, tmp_path / name)
    few = setsup.load("abc-pose", tmp_path, category="car")
    assert "omits compcars" in caplog.text
    assert set(few.factors.values("category")) == {"car"}
    shutil.rmtree(tmp_path / "cars196")
    with pytest.raises(DataError, match="photographs of cars"):
        setsup.load("abc-pose", tmp_path)
    (tmp_path / "pascal3d" / "chair_test.txt").unlink()
    with pytest.raises(DataError, match=r"chair_test\.txt"):
        setsup.load("abc-pose", tmp_path, category="chair")
    with pytest.raises(DataError, match="shapenet-renderings"):
        setsup.load("abc-pose", tmp_path / "cars196")


def test_backgrounds_are_those_of_imagenet_a(published, releases):
    found = published.backgrounds(6, 40)
    assert found.shape == (6, 64, 64, 3)
    pool = fetched(setsup.load("imagenet-a", releases / "imagenet-a", size=(64, 64)), "image")
    assert all((pool == image).all(axis=(1, 2, 3)).any() for image in found)
    assert published.where("category == 'car'").backgrounds(1, 100).shape == (1, 100, 100, 3)


# The substitute


def test_the_substitute_has_the_same_factors_and_modalities(substitute, published):
    found = setsup.load("abc-pose-procedural", substitute)
    assert found.factors.names == published.factors.names
    for name in ("category", "source", "split"):
        assert found.factors[name] == published.factors[name]
    assert list(found.modalities) == list(published.modalities)
    assert found.modalities["image"].shape == (30, 30, 4)
    ours, theirs = (load_manifest(name) for name in ("abc-pose-procedural", "abc-pose"))
    assert [one.name for one in ours.factors] == [one.name for one in theirs.factors]
    sizes = {"train": 2 * (2 * 3 + 4), "codebook": 2 * 3, "test": 2 * 2}
    assert {split: len(setsup.load("abc-pose-procedural", substitute, split=split)) for split in sizes} == sizes
    assert found.backgrounds(3, 10).shape == (3, 48, 48, 3)
    assert len(found.backgrounds(1_000, 10)) == len(found)  # a small one has as many as images
    assert found.backgrounds(2, 60).shape == (2, 60, 60, 3)


def test_training_sees_no_annotation_of_real_images(substitute):
    found = setsup.load("abc-pose-procedural", substitute, split="train")
    real = found.where("source == 'real'")
    assert len(real) == 8
    assert set(real.factors.values("object")) == {None}
    assert np.isnan(fetched(real, "rotation")).all()
    assert (fetched(real, "image")[..., 3] == 255).all()
    test = setsup.load("abc-pose-procedural", substitute, split="test")
    assert np.isfinite(fetched(test, "rotation")).all()
    # nor is a model in two parts
    blocks = [writing.Block(**each) for each in json.loads((substitute / "blocks.json").read_text())]
    numbered = [(block.category, block.number) for block in blocks]
    assert len(set(numbered)) == len(numbered)


def test_renderings_are_cut_to_their_object(substitute):
    found = setsup.load("abc-pose-procedural", substitute).where("source == 'rendering'")
    images = fetched(found, "image")
    for image in images:
        rows, columns = np.flatnonzero(image[..., 3].any(axis=1)), np.flatnonzero(image[..., 3].any(axis=0))
        # a corner may cover less of a pixel than the samples see
        assert 3 <= rows[0] <= 4
        assert 25 <= rows[-1] <= 26
        assert 3 <= columns[0] <= 4
        assert 25 <= columns[-1] <= 26
        assert not image[image[..., 3] == 0].any()


@pytest.mark.parametrize("category", ["car", "chair"])
def test_rotations_are_those_of_the_cameras(category):
    model = models.draw_model(0, category, 0)
    for azimuth, elevation, theta in ((0, 0, 0), (90, 10, 0), (200, 25, 8)):
        camera = views.fit_camera(model, (azimuth, elevation, theta, 8.0), 64, 7)
        turn = rotation(azimuth, elevation, theta)
        # x right, y up, z to the viewer, where the camera's frame has y down and z forward
        np.testing.assert_allclose(np.diag([1, -1, -1]) @ camera.rotation, turn @ models.TO_PASCAL3D, atol=1e-12)
        pixels, _ = camera.project(model.vertices)
        np.testing.assert_allclose([pixels.min(axis=0), pixels.max(axis=0)], [[6.5, 6.5], [70.5, 70.5]], atol=1e-9)
    # at azimuth 0 the camera stands before the front, +x; at 90 on the left, +y
    ahead = views.fit_camera(model, (0, 0, 0, 8.0), 64, 0).centre
    left = views.fit_camera(model, (90, 0, 0, 8.0), 64, 0).centre
    assert ahead[0] > 5 * abs(ahead[1])
    assert left[1] > 5 * abs(left[0])
    assert geodesic(rotation(0, 0), rotation(90, 0)) == pytest.approx(90)


def test_views_are_uniform_below_the_filter():
    for category, highest in (("car", np.degrees(0.5)), ("chair", np.degrees(1.3))):
        poses = views.rendered_poses(0, category, 3, 4000)
        assert poses.elevation.min() >= 0
        assert poses.elevation.max() < highest
        height = np.sin(np.radians(poses.elevation)) / np.sin(np.radians(highest))
        for share in (height, poses.azimuth / 360):  # uniform numbers, by Kolmogorov and Smirnov
            assert np.abs(np.sort(share) - (np.arange(4000) + 0.5) / 4000).max() < 1.95 / np.sqrt(4000)
        real = views.real_poses(0, category, 3, 4000)
        assert abs(real.elevation.mean() - {"car": 7, "chair": 16}[category]) < 1
        assert np.abs(real.theta).max() <= 4


@pytest.mark.long("renderings")
@pytest.mark.parametrize("category", ["car", "chair"])
def test_models_have_one_mirror_plane_and_no_other_symmetry(category):
    for number in (0, 1, 7, 10_000):
        mirror, other = asymmetries(views_around(models.draw_model(0, category, number)))
        assert mirror < 0.005, number
        assert other > 0.15, number


@pytest.mark.long("renderings")
def test_killed_renderings_resume_to_the_same_files(substitute, tmp_path, monkeypatch):
    write, rendered = writing._write_block, []

    def killed(folder, seed, size, work):
        if len(rendered) == 4:
            raise KeyboardInterrupt
        rendered.append(work[1])
        return write(folder, seed, size, work)

    monkeypatch.setattr(writing, "_write_block", killed)
    with pytest.raises(KeyboardInterrupt):
        abc_pose_procedural.prepare(tmp_path, **COUNTS)
    with pytest.raises(DataError, match="not been rendered yet"):
        setsup.load("abc-pose-procedural", tmp_path)
    monkeypatch.setattr(writing, "_write_block", lambda *given: (rendered.append(given[-1][1]), write(*given)))
    abc_pose_procedural.prepare(tmp_path, **COUNTS)
    assert len(rendered) == len(set(rendered))
    for path in substitute.iterdir():
        if not path.name.endswith(".lock"):
            assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.long("renderings")
def test_meshes_of_ones_own_are_further_models(tmp_path):
    pytest.importorskip("embreex")
    pytest.importorskip("trimesh")
    # a wedge whose high end is the rear: y up, front towards -z
    corners = "v -1 0 -2\nv 1 0 -2\nv -1 0 2\nv 1 0 2\nv -1 1 2\nv 1 1 2\n"
    faces = "f 1 2 4 3\nf 3 4 6 5\nf 1 2 6 5\nf 1 3 5\nf 2 4 6\n"
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "wedge.obj").write_text(corners + faces)
    model = models.mesh_model(tmp_path / "meshes" / "wedge.obj")
    np.testing.assert_allclose(model.scene.bounds, [[-0.5, -0.25, 0], [0.5, 0.25, 0.25]], atol=1e-9)
    high = model.vertices[model.vertices[:, 2] > 0.2]
    assert (high[:, 0] < 0).all()  # at the rear
    counts = {**COUNTS, "models": 1, "views": 3, "real": 1, "tests": 1, "size": 16}
    abc_pose_procedural.prepare(tmp_path / "made", chairs=tmp_path / "meshes", **counts)
    found = setsup.load("abc-pose-procedural", tmp_path / "made")
    assert len(found.where("object == 'chair wedge (1)'")) == 3
    with pytest.raises(DataError, match=r"created with meshes=\S+wedge\.obj instead of none; "):
        abc_pose_procedural.prepare(tmp_path / "made", **counts)
    with pytest.raises(DataError, match="contains no meshes"):
        abc_pose_procedural.prepare(tmp_path / "other", cars=tmp_path / "made", **counts)
    with pytest.raises(DataError, match="1 meshes of chairs and 9,999 models, but at most 9,999"):
        abc_pose_procedural.prepare(tmp_path / "other", chairs=tmp_path / "meshes", **{**counts, "models": 9_999})


@pytest.mark.long("renderings")
def test_a_broken_mesh_is_found_before_the_folder_is_labelled(tmp_path):
    pytest.importorskip("embreex")
    pytest.importorskip("trimesh")
    (tmp_path / "meshes").mkdir()
    mesh = tmp_path / "meshes" / "triangle.obj"
    mesh.write_text("v 0 0 0\nv 1 0 0\n")
    counts = {**COUNTS, "models": 1, "views": 1, "real": 1, "tests": 1, "size": 16}
    with pytest.raises(DataError, match=r"triangle\.obj"):
        abc_pose_procedural.prepare(tmp_path / "made", chairs=tmp_path / "meshes", **counts)
    mesh.write_text("v 0 0 0\nv 1 0 0\nv 0 1 1\nf 1 2 3\n")
    abc_pose_procedural.prepare(tmp_path / "made", chairs=tmp_path / "meshes", **counts)
    assert len(setsup.load("abc-pose-procedural", tmp_path / "made"))


def test_the_folder_says_that_it_is_a_substitute(substitute):
    assert json.loads((substitute / "SUBSTITUTE.json").read_text())["what"].startswith("Substitute for")
    assert "substitute" in load_manifest("abc-pose-procedural").title
    with pytest.raises(DataError, match=r"created with size=24 instead of 32; "):
        abc_pose_procedural.prepare(substitute, **{**COUNTS, "size": 32})
    with pytest.raises(DataError, match="models"):
        abc_pose_procedural.prepare(substitute, models=0)


def test_meshes_are_those_of_a_folder(tmp_path):
    (tmp_path / "cow.obj").touch()
    with pytest.raises(DataError, match=r"cow\.obj is a file; set cars to the folder of your meshes"):
        abc_pose_procedural.prepare(tmp_path / "made", cars=tmp_path / "cow.obj")
    with pytest.raises(DataError, match="nowhere is not there; set chairs to the folder"):
        abc_pose_procedural.prepare(tmp_path / "made", chairs=tmp_path / "nowhere")
    assert not (tmp_path / "made").exists()


def test_experiments_find_the_substitute_where_it_was_rendered(substitute, tmp_path):
    where, size = "category == 'car'", (("size", (24, 24)),)
    data = Data("abc-pose", "train", "abc-pose-procedural", where=where, options=size)
    found = data.open(substitute, substitute=True)
    assert found.name == "abc-pose-procedural"
    assert len(found) == len(setsup.load("abc-pose-procedural", substitute, "train", where)) > 0
    with pytest.raises(DataError) as error:
        data.open(tmp_path, substitute=True)
    assert f"looked in {tmp_path}, " in str(error.value)
    assert f"run `setsup prepare abc-pose-procedural --root {tmp_path}`" in str(error.value)


def test_domains_differ(substitute):
    found = setsup.load("abc-pose-procedural", substitute)
    real = fetched(found.where("source == 'real'"), "image")[..., :3].astype(float)
    # noise and JPEG: neighbouring pixels of real images are hardly ever equal, on renderings flat areas are
    still = (np.abs(np.diff(real, axis=2)).max(axis=-1) == 0).mean()
    rendered = fetched(found.where("source == 'rendering'"), "image").astype(float)
    assert still < 0.1 < (np.abs(np.diff(rendered[..., 3], axis=2)) == 0).mean()
