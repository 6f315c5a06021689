import io
import json
import pickle
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from setsup.datasets.benchmarks import shapenet
from setsup.datasets.benchmarks.shapenet.files import find_models
from setsup.errors import DataError, RowError
from tests.fuzzing import survives
from tests.true_files.keypointnet import CATEGORIES, painted_toy
from tests.true_files.shapenet import SIDE, shell, voxels, write

trimesh = pytest.importorskip("trimesh")


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "ShapeNetCore.v2"
    write(folder)
    return folder


@pytest.fixture
def copy(release, tmp_path):
    """A release that a test may change."""
    return shutil.copytree(release, tmp_path / "copy")


def _rows(folder):
    """Synset, model and what they were made of, in the order of the rows."""
    made = []
    for place, (category, synset, kind) in enumerate(CATEGORIES):
        for number in range(4):
            model = f"{place * 100 + number + 7:032x}" if number else f"{place:x}odd-näme"
            made.append((synset, model, category, kind, number))
    return sorted(made)


@pytest.mark.long("large or genuine files")
def test_values_are_those_of_the_files(release):
    models = shapenet.open(release)
    rows = _rows(release)
    assert models.version == "v2"
    assert models.factors.names == ("category", "synset", "model", "split")
    assert [models.factors[name].role for name in models.factors.names] == ["variation", "key", "key", "split"]
    assert models.factors["model"].within == "category"
    assert models.factors["category"].levels == ("airplane", "car", "chair")
    found = models.fetch(range(12))
    assert found["voxels_solid"].dtype == np.bool_
    for row, (synset, model, category, kind, number) in enumerate(rows):
        split = {1: "train", 2: "val", 3: "test"}.get(number)
        expected = {"category": category, "synset": synset, "model": model, "split": split}
        assert models.factors.row(row) == expected
        vertices, triangles, _ = painted_toy(kind, number)
        solid, low, scale = voxels(vertices)
        assert np.array_equal(found["voxels_solid"][row], solid)
        assert np.array_equal(found["voxels_surface"][row], shell(solid))
        grid = models.voxels(row)
        assert np.allclose(grid.translate, low)
        assert grid.scale == pytest.approx(scale)
        scene = models.mesh(row)
        assert scene.area == pytest.approx(trimesh.Trimesh(vertices, triangles).area, rel=1e-4)
        assert scene.metadata["missing"] == []
        path = release / synset / model / "images" / "texture0.jpg"
        with Image.open(path) as texture:
            assert np.array_equal(np.asarray(scene.geometry["body"].visual.material.image), np.asarray(texture))
        # voxels lie where the mesh is
        assert (grid.centres() >= scene.bounds[0] - 1e-5).all()
        assert (grid.centres() <= scene.bounds[1] + 1e-5).all()


def test_rows_of_any_shape_and_modalities_on_demand(release):
    models = shapenet.open(release)
    solid = models.fetch(range(12), ["voxels_solid"])["voxels_solid"]
    for rows in ([[11, 0], [0, 3]], [7], 7, [], [[]], range(11, -1, -1)):
        found = models.fetch(rows, ["voxels_solid"])
        assert list(found) == ["voxels_solid"]
        assert np.array_equal(found["voxels_solid"], solid[np.asarray(rows, int)])
    pictures = models.fetch([[5, 5], [1, 5]], ["preview"])["preview"]
    assert pictures.shape == (2, 2, 128, 128, 3)
    assert np.array_equal(pictures[0, 0], pictures[1, 1])
    assert not np.array_equal(pictures[0, 0], pictures[1, 0])
    for ask in (models.fetch, models.mesh, models.voxels):
        with pytest.raises(RowError, match="12 rows"):
            ask(12)
    with pytest.raises(DataError, match="'solid' or 'surface'"):
        models.voxels(0, "hollow")
    again = pickle.loads(pickle.dumps(models))
    assert np.array_equal(again.fetch([3])["preview"], models.fetch([3])["preview"])


def test_version_1(tmp_path):
    write(tmp_path, "v1")
    models = shapenet.open(tmp_path)
    assert models.version == "v1"
    assert list(models.modalities) == ["preview"]
    assert len(models) == 12
    scene = models.mesh(0)
    assert scene.metadata["missing"] == []
    assert scene.geometry["body"].visual.material.image.size == (32, 32)
    shutil.copytree(tmp_path / "03001627", tmp_path / "04379243")
    (tmp_path / "04379243" / "2odd-näme" / "models").mkdir()
    (tmp_path / "04379243" / "2odd-näme" / "models" / "model_normalized.obj").write_text("v 0 0 0\n")
    with pytest.raises(DataError, match="models of both versions"):
        shapenet.open(tmp_path)


def _zipped(folder, path, top=""):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, f"{top}{file.relative_to(folder).as_posix()}")
    return path


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("form", ["zip", "tar", "named", "wrapped", "root", "zips", "mixed", "deep"])
def test_forms_in_which_copies_lie(release, tmp_path, form):
    root = tmp_path
    if form == "zip":
        root = _zipped(release, tmp_path / "any name #1.zip", "ShapeNetCore.v2/")
    elif form == "tar":
        with tarfile.open(tmp_path / "ShapeNetCore.v2.tar", "w") as archive:
            archive.add(release, "ShapeNetCore.v2")
    elif form == "named":
        _zipped(release, tmp_path / "ShapeNetCore.v2.zip")
    elif form == "wrapped":
        shutil.copytree(release, tmp_path / "a" / "b ü #")
    elif form == "root":
        shutil.copytree(release, tmp_path / "shapenet")
    else:
        for name in ("all.csv", "taxonomy.json"):
            shutil.copy(release / name, tmp_path)
        for folder in release.glob("0*"):
            if form == "mixed" and folder.name.startswith("03"):
                shutil.copytree(folder, tmp_path / folder.name)
                (tmp_path / f"{folder.name}.zip").write_bytes(b"a download that was left lying")
            else:
                top = f"ShapeNetCore.v2/{folder.name}/" if form == "deep" else f"{folder.name}/"
                _zipped(folder, tmp_path / f"{folder.name}.zip", top)
    models, expected = shapenet.open(root), shapenet.open(release)
    assert models.factors.fingerprint == expected.factors.fingerprint
    for name in models.modalities:
        assert np.array_equal(models.fetch([0, 5, 11], [name])[name], expected.fetch([0, 5, 11], [name])[name])
    assert models.mesh(4).metadata["missing"] == []


def test_one_category_alone(release, tmp_path):
    models = shapenet.open(_zipped(release / "03001627", tmp_path / "03001627.zip", "03001627/"))
    assert models.factors["category"].levels == ("chair",)
    assert "split" not in models.factors
    assert models.fetch([0, 3], ["preview"])["preview"].min() < 200


def test_names_of_categories(copy):
    (copy / "taxonomy.json").unlink()
    (copy / "02958343").rename(copy / "99999999")
    assert shapenet.open(copy).factors["category"].levels == ("airplane", "chair", "99999999")
    nodes = [{"synsetId": "99999999", "name": "chair,seat"}, {"synsetId": "02691156", "name": "Flugzeug ü"}]
    (copy / "taxonomy.json").write_text(json.dumps(nodes))
    assert shapenet.open(copy).factors["category"].levels == ("Flugzeug ü", "chair 03001627", "chair 99999999")
    for content in (b"[1]", b'{"synsetId": 1}', b'[{"name": 2, "synsetId": "a"}]'):
        (copy / "taxonomy.json").write_bytes(content)
        with pytest.raises(DataError, match=r"taxonomy\.json is not a list of synsets"):
            shapenet.open(copy)


def test_the_list_of_splits(copy):
    path = copy / "all.csv"
    path.write_text("id,synsetId,subSynsetId,modelId,split\n1,03001627,x,../../etc,train\n")
    assert (shapenet.open(copy).factors.column("split") == 255).all()
    path.write_text("id,synsetId,modelId,split\n1,03001627,x,tran\n")
    with pytest.raises(DataError, match=r"all\.csv has the split 'tran'; expected one of train, val, test"):
        shapenet.open(copy)
    for content in (b"", b"a,b\n1,2\n", b"\xff\xfe\0"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"all\.csv is not a table"):
            shapenet.open(copy)


def test_models_without_some_files(copy):
    model = copy / "02691156" / f"{8:032x}"
    (model / "models" / "model_normalized.solid.binvox").unlink()
    (model / "images" / "texture0.jpg").unlink()
    models = shapenet.open(copy)
    with pytest.raises(DataError, match=r"02691156/0+8 \(row 0\) has no solid voxels"):
        models.fetch([0, 1], ["voxels_solid"])
    assert models.fetch([1, 2], ["voxels_solid"])["voxels_solid"].shape == (2, SIDE, SIDE, SIDE)
    assert models.mesh(0).metadata["missing"] == ["'../images/texture0.jpg' does not exist"]
    assert models.fetch([0], ["preview"])["preview"].min() < 200
    path = model.with_name(f"{10:032x}") / "models" / "model_normalized.solid.binvox"
    path.write_bytes(b"#binvox 1\ndim 2 2 2\ntranslate 0 0 0\nscale 1\ndata\n\1\10")
    models = shapenet.open(copy)
    with pytest.raises(
        DataError,
        match=r"solid\.binvox has voxels of shape \(2, 2, 2\); expected \(32, 32, 32\), as in the other files",
    ):
        models.fetch([1, 2], ["voxels_solid"])


def test_a_header_that_announces_too_much_is_noticed_on_opening(copy):
    path = min(copy.rglob("*.solid.binvox"))
    path.write_bytes(b"#binvox 1\ndim 16384 16384 16384\ndata\n\1\10")
    with pytest.raises(DataError, match=r"solid\.binvox contains 8 voxels, but its header specifies 16384"):
        shapenet.open(copy)


def test_an_archive_of_any_name(release, tmp_path):
    with tarfile.open(tmp_path / "my-shapenet.tar", "w") as archive:
        archive.add(release, "data/shapenet")
    expected, found = shapenet.open(release), shapenet.open(tmp_path)
    assert found.factors.fingerprint == expected.factors.fingerprint
    assert shapenet.open(tmp_path / "my-shapenet.tar").factors.fingerprint == expected.factors.fingerprint


def test_folders_without_models(tmp_path):
    names = r"<synset>/<model>/models/model_normalized\.obj, <synset>/<model>/model\.obj or <synset>\.zip"
    with pytest.raises(DataError, match=rf"^shapenet: {names} not found; looked in"):
        shapenet.open(tmp_path)
    _zipped(tmp_path, tmp_path / "03001627.zip")
    with pytest.raises(DataError, match=r"03001627\.zip there does not contain any files of the dataset"):
        shapenet.open(tmp_path)


def test_opening_looks_at_names_only(tmp_path, monkeypatch):
    """Models by the thousand are found without a Python step for each, in one look at the index."""
    with zipfile.ZipFile(tmp_path / "03001627.zip", "w") as archive:
        for number in range(3000):
            archive.writestr(f"03001627/{number:032x}/models/model_normalized.obj", b"")
            if number % 3 == 0:
                archive.writestr(f"03001627/{number:032x}/models/model_normalized.surface.binvox", b"")
    models = find_models(tmp_path / "03001627.zip")
    assert len(models.ids) == 3000
    assert models.ids.to_pylist() == [f"{number:032x}" for number in range(3000)]
    assert np.flatnonzero(models.surface >= 0).tolist() == list(range(0, 3000, 3))
    assert (models.solid == -1).all()
    for row in (0, 3, 2997):
        assert str(models.release.names[models.surface[row]]).endswith(
            f"{row:032x}/models/model_normalized.surface.binvox"
        )


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("name", ["all.csv", "taxonomy.json"])
def test_fuzzing_the_lists(copy, name):
    path = copy / name

    def read(content):
        path.write_bytes(content)
        shapenet.open(copy)

    assert survives(path.read_bytes(), read, 30, slack=1 << 23) > 2


def test_the_genuine_chair(genuine, tmp_path):
    source = genuine / "keypointnet" / "models"
    models = shapenet.open(source)
    assert len(models) == 1
    assert models.factors.row(0) == {
        "category": "chair",
        "synset": "03001627",
        "model": "88382b877be91b2a572f8e1c1caad99e",
    }
    scene = models.mesh(0)
    assert len(scene.geometry) == 4
    assert scene.metadata["missing"] == []
    assert np.linalg.norm(scene.extents) == pytest.approx(1, abs=1e-4)
    picture = models.fetch(0)["preview"]
    zipped = shapenet.open(_zipped(source, tmp_path / "v2.zip"))
    assert np.array_equal(zipped.fetch(0)["preview"], picture)
    sheet = io.BytesIO()
    Image.fromarray(picture).save(sheet, "PNG")
    assert len(sheet.getvalue()) > 4000
