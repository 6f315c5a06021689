import json
import pickle
import shutil
import tarfile
import zipfile

import numpy as np
import pytest

from setsup.datasets.benchmarks import keypointnet
from setsup.errors import DataError, RowError
from setsup.scenes.meshes.formats.ply import read_ply
from tests.fuzzing import survives
from tests.true_files.keypointnet import POINTS, write


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "KeypointNet"
    write(folder)
    return folder


@pytest.fixture
def copy(release, tmp_path):
    """A release that a test may change."""
    return shutil.copytree(release, tmp_path / "copy")


def _published(release):
    """Models as the JSON files hold them, categories by name."""
    files = sorted((release / "annotations").glob("*.json"))
    return [model for file in files for model in json.loads(file.read_text())]


def _cloud(release, model):
    rows = np.loadtxt(release / "pcds" / model["class_id"] / f"{model['model_id']}.pcd", skiprows=11)
    words = rows[:, 3].astype(int)
    return rows[:, :3].astype(np.float32), np.stack([words >> 16, words >> 8 & 255, words & 255], axis=1)


@pytest.mark.long("large or genuine files")
def test_values_are_those_of_the_files(release):
    points = keypointnet.open(release)
    published = _published(release)
    assert len(points) == len(published) == 15
    assert points.factors.names == ("category", "model", "split")
    assert points.factors["model"].within == "category"
    assert [points.factors[name].role for name in points.factors.names] == ["variation", "key", "split"]
    most = max(len(model["keypoints"]) for model in published)
    for row, model in enumerate(published):
        found = points.fetch(row)
        keypoints = model["keypoints"]
        assert points.factors.row(row)["model"] == model["model_id"]
        category = {"02691156": "airplane", "02958343": "car", "03001627": "chair"}[model["class_id"]]
        assert points.factors.row(row)["category"] == category
        assert found["keypoints"].shape == (most, 3)
        assert found["keypoints"].dtype == np.float32
        assert np.array_equal(found["keypoints"][: len(keypoints)], np.float32([point["xyz"] for point in keypoints]))
        assert np.isnan(found["keypoints"][len(keypoints) :]).all()
        ids = [point["semantic_id"] for point in keypoints] + [-1] * (most - len(keypoints))
        assert found["keypoint_ids"].tolist() == ids
        cloud, colors = _cloud(release, model)
        assert np.array_equal(found["points"], cloud)
        assert np.array_equal(found["colors"], colors)
        for point in keypoints:
            assert np.allclose(cloud[point["pcd_info"]["point_index"]], point["xyz"], atol=1e-6)
        assert found["preview"].shape == (128, 128, 3)
        assert points.annotation(row) == model


def test_splits(release):
    points = keypointnet.open(release)
    for split in ("train", "val", "test"):
        listed = (release / "splits" / f"{split}.txt").read_text().split()
        rows = points.factors.rows(f"split == '{split}'")
        assert [line.split("-", 1)[1] for line in listed] == points.factors.values("model", rows).tolist()
    assert points.factors.values("split", [4, 9, 14]).tolist() == [None] * 3


@pytest.mark.long("large or genuine files")
def test_rows_of_any_shape_and_modalities_on_demand(release):
    points = keypointnet.open(release)
    all_points = points.fetch(range(15), ["points"])["points"]
    for rows in ([[14, 0], [0, 3]], [7], 7, [], [[]], range(14, -1, -1)):
        found = points.fetch(rows, ["keypoint_ids", "points", "preview"])
        assert list(found) == ["keypoint_ids", "points", "preview"]
        assert np.array_equal(found["points"], all_points[np.asarray(rows, int)])
        assert found["preview"].shape == (*np.shape(rows), 128, 128, 3)
        assert found["keypoint_ids"].shape == (*np.shape(rows), 7)
    with pytest.raises(RowError, match="15 rows"):
        points.fetch(15)
    with pytest.raises(RowError, match="15 rows"):
        points.annotation(15)
    again = pickle.loads(pickle.dumps(points))
    assert np.array_equal(again.fetch([3])["preview"], points.fetch([3])["preview"])
    assert again.annotation(2) == points.annotation(2)


def test_clouds_and_meshes_may_be_missing_until_they_are_asked_for(copy):
    shutil.rmtree(copy / "pcds")
    points = keypointnet.open(copy)
    assert points.fetch([0, 1], ["keypoints"])["keypoints"].shape == (2, 7, 3)
    assert points.fetch(0, ["preview"])["preview"].min() < 200  # of the mesh
    with pytest.raises(DataError, match=r"no pcds/02691156/0odd-name\.pcd \(row 0\)"):
        points.fetch([0], ["preview", "points"])
    shutil.rmtree(copy / "ShapeNetCore.v2.ply")
    points = keypointnet.open(copy)
    with pytest.raises(DataError, match=r"no pcds/02691156/0odd-name\.pcd"):
        points.fetch([0], ["preview"])
    with pytest.raises(DataError, match=r"no ShapeNetCore\.v2\.ply/02691156/0odd-name\.ply"):
        points.mesh(0)


def test_meshes_keep_the_order_to_which_annotations_refer(release):
    pytest.importorskip("trimesh")
    points = keypointnet.open(release)
    for row, model in enumerate(_published(release)):
        mesh = points.mesh(row)
        for point in model["keypoints"]:
            corners = mesh.vertices[mesh.faces[point["mesh_info"]["face_index"]]]
            assert np.allclose(point["mesh_info"]["face_uv"] @ corners, point["xyz"], atol=2e-6)
            color = mesh.visual.vertex_colors[mesh.faces[point["mesh_info"]["face_index"]][0], :3]
            assert color.tolist() == point["rgb"]


def _zipped(folder, path, top=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, f"{top}{file.relative_to(folder).as_posix()}")
    return path


@pytest.mark.parametrize("form", ["zip", "tar", "wrapped", "root", "beside", "beside-bare"])
def test_forms_in_which_copies_lie(release, tmp_path, form):
    root = tmp_path
    if form == "zip":
        root = _zipped(release, tmp_path / "any name #1.zip", "KeypointNet/")
    elif form == "tar":
        with tarfile.open(tmp_path / "KeypointNet.tar", "w") as archive:
            archive.add(release, ".")
    elif form == "wrapped":
        shutil.copytree(release, tmp_path / "a" / "b ü #")
    elif form == "root":
        shutil.copytree(release, tmp_path / "keypointnet")
    else:
        shutil.copytree(release / "annotations", tmp_path / "annotations")
        for name in ("pcds", "ShapeNetCore.v2.ply"):
            _zipped(release / name, tmp_path / f"{name}.zip", "" if form == "beside-bare" else f"{name}/")
    points, expected = keypointnet.open(root), keypointnet.open(release)
    for name in points.modalities:
        assert np.array_equal(points.fetch([0, 7, 14], [name])[name], expected.fetch([0, 7, 14], [name])[name], True)
    assert points.annotation(8) == expected.annotation(8)
    assert ("split" in points.factors) == (not form.startswith("beside"))
    if pytest.importorskip("trimesh"):
        assert np.array_equal(points.mesh(9).vertices, expected.mesh(9).vertices)


def test_all_json_says_nothing_new(copy):
    everything = _published(copy)
    (copy / "annotations" / "all.json").write_text(json.dumps(everything))
    assert len(keypointnet.open(copy)) == 15
    for name in ("airplane", "car", "chair"):
        (copy / "annotations" / f"{name}.json").unlink()
    alone = keypointnet.open(copy)
    assert len(alone) == 15
    assert alone.factors["category"].levels == ("airplane", "car", "chair")
    assert alone.annotation(14) == everything[14]


def test_misaligned_knives(copy):
    chairs = json.loads((copy / "annotations" / "chair.json").read_text())
    for model in chairs:
        model["class_id"] = "03624134"
    (copy / "annotations" / "knife.json").write_text(json.dumps(chairs))
    (copy / "knife_misaligned.txt").write_text(f"{chairs[1]['model_id']}\n03624134-{chairs[2]['model_id']}\n")
    points = keypointnet.open(copy)
    assert points.factors["misaligned"].role == "key"
    assert points.factors.rows("misaligned == True").tolist() == [16, 17]


@pytest.mark.long("large or genuine files")
def test_a_cached_index_is_used_and_made_anew(copy, own_cache, monkeypatch):
    monkeypatch.setattr("setsup.datasets.benchmarks.keypointnet.annotations._QUICK", 0)
    before = sorted(path.name for path in copy.rglob("*"))
    expected = keypointnet.open(copy)
    (kept,) = (own_cache / "keypointnet").glob("*.npz")
    with monkeypatch.context() as without:
        without.setattr("setsup.datasets.benchmarks.keypointnet.annotations.read_category", None)
        cached = keypointnet.open(copy)
    for name in ("keypoints", "keypoint_ids"):
        assert np.array_equal(cached.fetch(range(15))[name], expected.fetch(range(15))[name], equal_nan=True)
    assert cached.factors.fingerprint == expected.factors.fingerprint
    kept.write_bytes(kept.read_bytes()[:-99])
    assert len(keypointnet.open(copy)) == 15
    (copy / "annotations" / "car.json").unlink()
    assert len(keypointnet.open(copy)) == 10
    assert sorted(path.name for path in copy.rglob("*")) == [name for name in before if name != "car.json"]


def test_a_cached_index_stands_when_files_come_that_shift_the_others(copy, own_cache, monkeypatch):
    monkeypatch.setattr("setsup.datasets.benchmarks.keypointnet.annotations._QUICK", 0)
    ids = keypointnet.open(copy).factors.values("model").tolist()
    (copy / "README.md").write_text("sorts before annotations")
    later = keypointnet.open(copy)
    assert [later.annotation(row)["model_id"] for row in range(15)] == ids


def _chairs(copy, change):
    path = copy / "annotations" / "chair.json"
    models = json.loads(path.read_text())
    changed = change(models)
    path.write_text(json.dumps(models if changed is None else changed))


BAD = {
    "is not a list of annotated models": lambda models: {"models": models},
    "contains no annotated models": lambda models: [],
    "model 1 does not match the published format: .*'keypoints'": lambda models: models[1].pop("keypoints") and None,
    "model 0 does not match the published format": lambda models: models[0].update(keypoints=[{"xyz": [1, 2]}]),
    "model 0 does not match the published format: invalid name '../../x'": lambda models: models[0].update(
        model_id="../../x"
    ),
    "model 0 does not match the published format: invalid name '/etc'": lambda models: models[0].update(
        model_id="/etc"
    ),
    "model 0 does not match the published format: invalid name '..'": lambda models: models[0].update(model_id=".."),
    "model 2 does not match the published format: invalid name 'chair'": lambda models: models[2].update(
        class_id="chair"
    ),
    "model 3 does not match the published format": lambda models: models[3].update(model_id=7),
    "invalid semantic id -1": lambda models: models[0]["keypoints"][0].update(semantic_id=-1),
    "5,000 keypoints": lambda models: models[0].update(keypoints=models[0]["keypoints"][:1] * 5000),
    "invalid semantic id 99999": lambda models: models[0]["keypoints"][0].update(semantic_id=99999),
    "refers to keypoint 99, but": lambda models: models[0]["symmetries"]["reflection"][0].update(kp_indexes=[0, 99]),
    "refers to keypoint -1, but": lambda models: models[0]["symmetries"]["reflection"][0].update(kp_indexes=[-1]),
    "refers to keypoint 'a', but": lambda models: models[0]["symmetries"]["reflection"][0].update(kp_indexes=["a"]),
    "model 0 does not match the published format: .*kp_indexes": lambda models: models[0]["symmetries"]["reflection"][
        0
    ].clear(),
    "it contains NaN": lambda models: models[0]["keypoints"][0].update(xyz=[float("nan"), 0, 0]),
    "a keypoint whose position is not finite": lambda models: models[0]["keypoints"][0].update(xyz=[1e300, 0, 0]),
    "repeats the annotation of 03001627-0+c9": lambda models: [*models, models[1]],
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_with_an_annotation_is_said(copy, message):
    _chairs(copy, BAD[message])
    with pytest.raises(DataError, match=rf"chair\.json.*{message}") as error:
        keypointnet.open(copy)
    assert "\n" not in str(error.value)


def test_json_that_is_none(copy):
    path = copy / "annotations" / "chair.json"
    for content in (b"", b"[{", b"\xff\xfe", b"[" * 200_000):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"chair\.json could not be parsed as JSON"):
            keypointnet.open(copy)


def test_lists_that_are_none(copy):
    path = copy / "splits" / "val.txt"
    for line in ("03001627-../../x", "/etc/passwd", "<html>", "03001627-a\\b"):
        path.write_text(line)
        with pytest.raises(DataError, match=r"val\.txt: entry 0 is .*expected <class_id>-<model_id>"):
            keypointnet.open(copy)
    path.write_bytes(b"\xff\xfe0")
    with pytest.raises(DataError, match=r"val\.txt is not UTF-8 text"):
        keypointnet.open(copy)
    path.write_text((copy / "splits" / "test.txt").read_text())
    with pytest.raises(DataError, match=r"is in both splits/val\.txt and splits/test\.txt"):
        keypointnet.open(copy)


def test_a_cloud_of_another_size_is_refused(copy):
    path = copy / "pcds" / "03001627" / "2odd-name.pcd"
    path.write_bytes(path.read_bytes().replace(b"2048", b"2047").rsplit(b"\n", 2)[0] + b"\n")
    with pytest.raises(DataError, match=r"2odd-name\.pcd has 2,047 points; expected 2,048"):
        keypointnet.open(copy).fetch([10])


def test_a_folder_without_annotations(tmp_path):
    with pytest.raises(DataError, match="keypointnet"):
        keypointnet.open(tmp_path)


@pytest.mark.long("fuzzing")
def test_fuzzing(copy):
    path = copy / "annotations" / "chair.json"

    def read(content):
        path.write_bytes(content)
        points = keypointnet.open(copy)
        points.fetch(range(len(points)), ["keypoints", "keypoint_ids"])

    healthy = path.read_bytes()
    assert survives(healthy, read, 75, head=3000, times=20) > 25


@pytest.mark.long("large or genuine files")
def test_the_genuine_chair(genuine):
    points = keypointnet.open(genuine / "keypointnet")
    published = json.loads((genuine / "keypointnet" / "annotations" / "chair.json").read_bytes())
    assert len(points) == 999
    assert points.factors["category"].levels == ("chair",)
    found = points.fetch(range(999), ["keypoints", "keypoint_ids"])
    there = found["keypoint_ids"] >= 0
    assert there.sum() == np.isfinite(found["keypoints"]).all(axis=-1).sum() == 12_060
    assert np.unique(found["keypoint_ids"][there]).tolist() == list(range(21))
    flat = [point for model in published for point in model["keypoints"]]
    assert np.array_equal(found["keypoints"][there], np.float32([point["xyz"] for point in flat]))
    assert found["keypoint_ids"][there].tolist() == [point["semantic_id"] for point in flat]
    lines = {
        split: (genuine / "keypointnet" / "splits" / f"{split}.txt").read_text().split()
        for split in ("train", "val", "test")
    }
    assert {split: len(listed) for split, listed in lines.items()} == {"train": 5757, "val": 824, "test": 1653}
    chairs = {split: sum(line.startswith("03001627-") for line in listed) for split, listed in lines.items()}
    assert points.factors.counts("split").tolist() == list(chairs.values()) == [699, 100, 200]
    (row,) = points.factors.rows("model == '88382b877be91b2a572f8e1c1caad99e'").tolist()
    cloud = points.fetch(row, ["points"])["points"]
    assert cloud.shape == (POINTS, 3)
    path = next((genuine / "keypointnet" / "models").rglob("*.ply"))
    ply = read_ply(path, str(path))
    for point in points.annotation(row)["keypoints"]:
        info = point["mesh_info"]
        assert np.allclose(info["face_uv"] @ ply.points[ply.faces[info["face_index"]]], point["xyz"], atol=1e-4)
        assert np.allclose(cloud[point["pcd_info"]["point_index"]], point["xyz"], atol=1e-4)
    picture = points.fetch(row, ["preview"])["preview"]
    assert 0.1 < (picture.min(axis=-1) < 250).mean() < 0.5
    if pytest.importorskip("trimesh"):
        assert np.array_equal(points.mesh(row).faces, ply.faces)
