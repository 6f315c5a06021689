import pickle
import shutil
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.io
from PIL import Image

import setsup
from setsup.datasets.benchmarks import pascal3d
from setsup.datasets.images import decode
from setsup.errors import DataError, RowError
from tests.true_files import pascal3d as true
from tests.true_files.toys import toy_mesh


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A small release, and what was annotated in it."""
    folder = tmp_path_factory.mktemp("pascal3d")
    rows = true.write(folder)
    return folder, sorted(rows, key=lambda row: (row["category"], row["source"], row["image"], row["object"]))


@pytest.fixture(scope="module")
def dataset(release):
    return pascal3d.open(release[0])


@pytest.fixture
def mine(release, tmp_path):
    """A copy of the release that a test may change."""
    return shutil.copytree(release[0], tmp_path / "copy")


def _picture(folder, row):
    (path,) = (folder / "Images" / f"{row['category']}_{row['source']}").glob(f"{row['image']}.*")
    return Image.open(path).convert("RGB")


@pytest.mark.long("large or genuine files")
def test_images_are_the_boxes(release, dataset):
    folder, rows = release
    assert len(dataset) == len(rows)
    found = dataset.fetch(np.arange(len(rows)))
    for turn, row in enumerate(rows):
        left, top, right, bottom = row["box"]
        assert found["box"][turn].tolist() == row["box"]
        if row["source"] == "pascal":  # whole numbers: cut first, then resized
            cut = _picture(folder, row).crop((left - 1, top - 1, right, bottom))
            wanted = np.asarray(cut.resize((128, 128), Image.Resampling.BILINEAR)).astype(int)
            # Pillow's own JPEG decoder and another differ by little
            assert np.abs(found["image"][turn].astype(int) - wanted).max() <= 12
            assert np.abs(found["image"][turn].astype(int) - wanted).mean() < 1
    assert found["image"].dtype == np.uint8
    assert found["rotation"].dtype == np.float32


def test_photo_and_box(release, dataset):
    folder, rows = release
    photo = dataset.photo(7)
    assert photo.shape == (*true.PICTURE, 3)
    assert np.abs(photo.astype(int) - np.asarray(_picture(folder, rows[7])).astype(int)).mean() < 1


def test_the_cad_model_lies_on_the_drawn_object(dataset):
    """Projected as published, the model fills the box in which the toy was drawn by other code."""
    known = np.flatnonzero(~np.isnan(dataset.factors.column("azimuth")))
    cameras = dataset.cameras(known)
    boxes = dataset.fetch(known, ["box"])["box"]
    apart: dict[int, list[float]] = {1: [], -1: []}
    for turn, row in enumerate(known):
        # pictures show every model in the size of the first
        model = dataset.cad_model(dataset.factors.values("category", row).item(), 1)
        view = {name: values[turn] for name, values in cameras.items()}
        for sign, found in apart.items():
            flat = pascal3d.project(model.vertices, **{**view, "theta": sign * view["theta"]})
            found.append(np.abs(np.concatenate([flat.min(axis=0), flat.max(axis=0)]) - boxes[turn]).max())
    # toys have outlines, and were turned as pixels
    assert max(apart[1]) < 3.5
    much = np.abs(cameras["theta"]) > 6
    assert np.array(apart[-1])[much].mean() > 2 * np.array(apart[1])[much].mean(), "the other sign does not fit"


def test_rotations(dataset):
    from scipy.spatial.transform import Rotation

    found = dataset.fetch(np.arange(len(dataset)), ["rotation"])["rotation"]
    a, e, t = (dataset.factors.column(name) for name in ("azimuth", "elevation", "theta"))
    known = ~np.isnan(a)
    assert np.isnan(found[~known]).all()
    angles = np.stack([-a, e - 90, -t], axis=1)[known]
    assert np.allclose(found[known], Rotation.from_euler("zxz", angles, degrees=True).as_matrix(), atol=1e-5)
    assert (~known).sum() == 6, "coarse poses are unknown"
    assert (dataset.factors.column("azimuth_coarse")[~known] == 45).all()


def test_cad_models(release, dataset):
    vertices, triangles = toy_mesh(0)
    model = dataset.cad_model("car", 2)
    assert np.allclose(model.vertices, 1.1 * vertices)
    assert np.array_equal(model.faces, triangles)
    reference = scipy.io.loadmat(release[0] / "CAD" / "car.mat")["car"][0, 1]
    assert np.array_equal(model.vertices, reference["vertices"])
    assert sorted(model.anchors) == sorted(true.ANCHORS)
    assert all(np.array_equal(model.anchors[name], reference[name][0]) for name in true.ANCHORS)
    for category, index, sentence in [
        ("cat", 1, "no class 'cat'"),
        ("car", 0, "CAD model of 'car' must be from 1 to 10"),
        ("car", 11, "CAD model of 'car' must be from 1 to 10"),
        ("car", 4, "has 3 models, but no model 4"),
        ("bus", 1, r"neither CAD/bus\.mat nor CAD/bus/01\.off"),
    ]:
        with pytest.raises(DataError, match=sentence):
            dataset.cad_model(category, index)


def test_cad_models_from_off_files(mine):
    (mine / "CAD" / "car.mat").unlink()
    model = pascal3d.open(mine).cad_model("car", 3)
    assert np.allclose(model.vertices, 1.2 * toy_mesh(0)[0])
    assert not model.anchors


def test_cad_models_go_to_other_processes(mine):
    both = [pascal3d.open(mine).cad_model("car", 3)]
    (mine / "CAD" / "car.mat").unlink()
    both.append(pascal3d.open(mine).cad_model("car", 3))
    for model in both:
        carried = pickle.loads(pickle.dumps(model))
        assert np.array_equal(carried.vertices, model.vertices)
        assert np.array_equal(carried.faces, model.faces)
        assert list(carried.anchors) == list(model.anchors)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("faces", np.array([[1.0, 2.0, 99.0]]), "'faces' refers to the vertices 1 to 99"),
        ("faces", np.array([[0.0, 1.0, 2.0]]), "'faces' refers to the vertices 0 to 2"),
        ("faces", np.array([[1.0, 2.0, 2.5]]), "not integers"),
        ("vertices", np.array([[1.0, np.nan, 3.0]]), r"finite numbers of shape \(n, 3\)"),
        ("vertices", "many", r"finite numbers of shape \(n, 3\)"),
    ],
)
def test_damaged_cad_models(mine, field, value, sentence):
    fields = {"vertices": np.eye(3), "faces": np.array([[1.0, 2.0, 3.0]]), field: value}
    scipy.io.savemat(mine / "CAD" / "car.mat", {"car": true.struct(**fields)})
    with pytest.raises(DataError, match=sentence) as found:
        pascal3d.open(mine).cad_model("car", 1)
    assert "car.mat" in str(found.value)


# -- where the release lies --------------------------------------------------------------------------------------------


def _zipped(folder, path, kind):
    with zipfile.ZipFile(path, "w", kind) as file:
        for member in sorted(folder.rglob("*")):
            file.write(member, f"PASCAL3D+_release1.1/{member.relative_to(folder)}")


def _tarred(folder, path):
    with tarfile.open(path, "w") as file:
        file.add(folder, "PASCAL3D+_release1.1")


@pytest.mark.parametrize("form", ["wrapped", "stored", "deflated", "tar"])
@pytest.mark.parametrize("direct", [False, True])
def test_every_form_of_the_release(release, dataset, tmp_path, form, direct):
    folder, _ = release
    if form == "wrapped":
        place = shutil.copytree(folder, tmp_path / "PASCAL3D+_release1.1")
    elif form == "tar":
        place = tmp_path / "PASCAL3D+_release1.1.tar"
        _tarred(folder, place)
    else:
        place = tmp_path / "PASCAL3D+_release1.1.zip"
        _zipped(folder, place, zipfile.ZIP_STORED if form == "stored" else zipfile.ZIP_DEFLATED)
    found = pascal3d.open(place if direct else tmp_path)
    assert found.factors.fingerprint == dataset.factors.fingerprint
    rows = [[3, 50], [0, 3]]
    wanted = dataset.fetch(rows)
    for name, array in found.fetch(rows).items():
        assert np.array_equal(array, wanted[name], equal_nan=name != "image"), name
    assert np.array_equal(found.cad_model("car", 1).vertices, dataset.cad_model("car", 1).vertices)


def test_lists_beside_an_archive(release, tmp_path):
    folder, rows = release
    bare = shutil.copytree(folder, tmp_path / "bare", ignore=shutil.ignore_patterns("*_test.txt", "PASCAL"))
    _zipped(bare, tmp_path / "PASCAL3D+_release1.1.zip", zipfile.ZIP_STORED)
    shutil.rmtree(bare)
    (tmp_path / "abc_lists").mkdir()
    shutil.copy(folder / "car_test.txt", tmp_path / "abc_lists")
    (tmp_path / "image_sets").mkdir()
    val = sorted({row["image"] for row in rows if row["split"] == "val"})
    (tmp_path / "image_sets" / "val.txt").write_text("\n".join(val))
    found = pascal3d.open(tmp_path / "PASCAL3D+_release1.1.zip")
    assert found.factors.values("split").tolist() == [row["split"] for row in rows]
    assert found.factors.counts("abc").tolist() == [len(true.abc_rows(rows, "car")), 0]


def test_what_is_missing(tmp_path):
    with pytest.raises(DataError, match="setsup fetch pascal3d"):
        pascal3d.open(tmp_path)


# -- splits and lists --------------------------------------------------------------------------------------------------


def test_the_split(release, dataset):
    rows = release[1]
    assert dataset.factors.values("split").tolist() == [row["split"] for row in rows]
    assert dataset.factors["split"].role == dataset.factors["abc"].role == "split"
    easy = setsup.load("pascal3d", release[0], split="val-easy")
    wanted = [row["split"] == "val" and not row["truncated"] and row["azimuth"] is not None for row in rows]
    assert len(easy) == sum(wanted) > 0


def test_the_split_by_the_whole_list_of_voc(mine, release):
    main = mine / "PASCAL" / "VOCdevkit" / "VOC2012" / "ImageSets" / "Main"
    ids = [line.split()[0] for line in (main / "car_val.txt").read_text().splitlines()]
    for path in main.iterdir():
        path.unlink()
    (main / "val.txt").write_text("\r\n".join(ids) + "\r\n")
    assert pascal3d.open(mine).factors.values("split").tolist() == [row["split"] for row in release[1]]


def test_no_list_no_split(mine, caplog):
    shutil.rmtree(mine / "PASCAL")
    found = pascal3d.open(mine).factors
    assert set(found.values("split", found.rows("source == 'pascal'")).tolist()) == {None}
    assert set(found.values("split", found.rows("source == 'imagenet'")).tolist()) == {"train"}
    assert "no list of validation images" in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        b"<html><body>quota</body></html>",
        b"../../etc/passwd\n",
        b"2008 1 2\n",
        b"\xff\xfe\n",
        b"\n",
        b"ILSVRC2012_val_00000001 65\n",
    ],
)
def test_damaged_lists_of_images(mine, content):
    # a list of another data set would make training images of all
    path = mine / "PASCAL" / "VOCdevkit" / "VOC2012" / "ImageSets" / "Main" / "car_val.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"car_val\.txt"):
        pascal3d.open(mine)


def test_abc_lists(release, dataset):
    rows = release[1]
    for category in ("car", "chair"):
        wanted = [row in true.abc_rows(rows, category) for row in rows]
        assert (dataset.factors.values("abc") == category).tolist() == wanted
        assert len(setsup.load("pascal3d", release[0], split=f"abc-{category}")) == sum(wanted) > 0


def test_objects_of_a_list_that_are_not_annotated(mine, release, caplog):
    lines = (mine / "car_test.txt").read_text().splitlines()
    (mine / "car_test.txt").write_text(
        "\n".join([lines[0], "2012_999999.jpg 1 1 9 9 10 0 0", lines[1].replace(lines[1].split()[5], "1.5")])
    )
    found = pascal3d.open(mine)
    assert found.factors.counts("abc")[0] == 1
    assert "2 of its 3 objects match no annotated object: line 2 (2012_999999), line 3" in caplog.text


def test_azimuths_near_the_whole_turn_agree(mine, release):
    row = next(row for row in release[1] if row["category"] == "car" and row["azimuth"] == 0 and row["split"] == "val")
    (mine / "car_test.txt").write_text(true.abc_line({**row, "azimuth": 359.9999}))
    assert pascal3d.open(mine).factors.counts("abc")[0] == 1


def test_a_genuine_list(genuine, dataset):
    path = genuine / "pascal3d" / "abc_lists" / "car_test.txt"
    found = pascal3d.read_abc_list(path)
    assert len(found) == 168
    lines = path.read_text().splitlines()
    assert len(lines) == 168
    for turn, line in enumerate(lines):
        words = line.split()
        assert f"{found.images[turn]}.jpg" == words[0]
        numbers = [*found.boxes[turn], found.azimuth[turn], found.elevation[turn], found.theta[turn]]
        assert numbers == [float(word) for word in words[1:]]
    val = set((genuine / "pascal3d" / "image_sets" / "val.txt").read_text().split())
    assert set(found.images) <= val


def test_the_genuine_split(genuine, mine, release):
    """With the published list of validation images; and it is beside the release, under its published name."""
    shutil.rmtree(mine / "PASCAL")
    shutil.copytree(genuine / "pascal3d" / "image_sets", mine / "image_sets")
    listed = set((genuine / "pascal3d" / "image_sets" / "val.txt").read_text().split())
    assert len(listed) == 3033
    assert not listed & set((genuine / "pascal3d" / "image_sets" / "train.txt").read_text().split())
    found = pascal3d.open(mine).factors
    wanted = ["val" if row["source"] == "pascal" and row["image"] in listed else "train" for row in release[1]]
    assert found.values("split").tolist() == wanted


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("2008_000203.jpg 81 108 246 258 0.0 2.98", "line 1 is '2008_000203.jpg 81"),
        ("2008_000203.jpg 81 108 246 258 0.0 2.98 one", "line 1 is"),
        ("2008_000203.jpg 81 108 246 258 0.0 2.98 nan", "line 1 is"),
        ("2008_000203.png 81 108 246 258 0.0 2.98 1", "line 1 is"),
        ("../2008_000203.jpg 81 108 246 258 0.0 2.98 1", "line 1 is"),
        ("/a.jpg 81 108 246 258 0.0 2.98 1", "line 1 is"),
        ("a.jpg 81 108 80 258 0.0 2.98 1", "line 1 has the box"),
        ("a.jpg 0 108 80 258 0.0 2.98 1", "line 1 has the box"),
        ("a.jpg 1 1 80 258 361 2.98 1", "line 1 has the angles"),
        ("a.jpg 1 1 80 258 36 92 1", "line 1 has the angles"),
        ("\n\n", "is empty"),
    ],
)
def test_bad_lines_of_a_list(tmp_path, line, sentence):
    (tmp_path / "car_test.txt").write_text(line)
    with pytest.raises(DataError, match=sentence):
        pascal3d.read_abc_list(tmp_path / "car_test.txt")


def test_an_abc_list_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt"):
        pascal3d.read_abc_list(tmp_path / "none.txt")


# -- fetching ----------------------------------------------------------------------------------------------------------


def test_jitter_is_a_function_of_the_row(release, dataset):
    folder, _ = release
    still, one, same, other = (
        pascal3d.open(folder, size=(32, 48), jitter=jitter, seed=seed)
        for jitter, seed in [(0.0, 0), (0.2, 1), (0.2, 1), (0.2, 2)]
    )
    rows = np.arange(20)
    first = one.fetch(rows, ["image"])["image"]
    assert first.shape == (20, 32, 48, 3)
    assert np.array_equal(same.fetch(rows[::-1], ["image"])["image"][::-1], first)
    assert not np.array_equal(other.fetch(rows, ["image"])["image"], first)
    assert not np.array_equal(still.fetch(rows, ["image"])["image"], first)
    assert np.array_equal(still.fetch(rows, ["box"])["box"], one.fetch(rows, ["box"])["box"])


def test_a_margin_shows_more(release, dataset):
    wide = pascal3d.open(release[0], margin=0.5).fetch(10, ["image"])["image"]
    x1, y1, x2, y2 = dataset.fetch(10, ["box"])["box"].astype(float) - [1, 1, 0, 0]
    w, h = x2 - x1, y2 - y1
    sides = np.clip([x1 - w / 2, y1 - h / 2, x2 + w / 2, y2 + h / 2], 0, [260, 180, 260, 180]).tolist()
    photo = Image.fromarray(dataset.photo(10))
    wanted = photo.resize((128, 128), Image.Resampling.BILINEAR, sides)
    assert np.abs(wide.astype(int) - np.asarray(wanted).astype(int)).mean() < 2


@pytest.mark.parametrize(
    "options", [{"size": (0, 5)}, {"size": (5,)}, {"size": (5.5, 5)}, {"jitter": 0.5}, {"jitter": -1}, {"margin": -0.1}]
)
def test_options_out_of_range(release, options):
    with pytest.raises(DataError, match=next(iter(options))):
        pascal3d.open(release[0], **options)


@pytest.mark.parametrize("rows", [[], 5, [[1, 1], [53, 0]], np.empty((2, 0), int)])
def test_any_rows(dataset, rows):
    found = dataset.fetch(rows)
    shape = np.shape(rows)
    assert {name: array.shape for name, array in found.items()} == {
        "image": (*shape, 128, 128, 3),
        "box": (*shape, 4),
        "rotation": (*shape, 3, 3),
    }
    assert dataset.fetch(rows, ["box"]).keys() == {"box"}
    with pytest.raises(RowError):
        dataset.fetch([len(dataset)])


def test_threads_and_pickles(dataset):
    rows = np.arange(len(dataset))
    wanted = dataset.fetch(rows, ["image"])["image"]
    carried = pickle.dumps(dataset)
    assert np.array_equal(pickle.loads(carried).fetch(rows, ["image"])["image"], wanted)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda row: dataset.fetch(row, ["image"])["image"], rows))
    assert np.array_equal(np.stack(found), wanted)


def test_missing_and_damaged_pictures(mine, caplog):
    folder = mine / "Images" / "car_pascal"
    first, second = sorted(folder.iterdir())[:2]
    second.write_bytes(second.read_bytes()[:400])
    whole = pascal3d.open(mine)
    first.unlink()
    found = pascal3d.open(mine)
    said = f"1 of the 54 listed images are missing (Images/car_pascal/{first.stem}); they are left out"
    assert said in caplog.text
    kept = np.flatnonzero(whole.factors.values("photo") != first.stem)
    assert len(found) == len(kept) == 53
    for name in found.factors.names:
        assert np.array_equal(found.factors.column(name), whole.factors.column(name)[kept], equal_nan=True)
    here = np.flatnonzero(~np.isin(kept, np.flatnonzero(whole.factors.values("photo") == second.stem)))
    for name, array in found.fetch(here).items():
        assert np.array_equal(array, whole.fetch(kept[here], [name])[name], equal_nan=True)
    hurt = found.factors.values("photo").tolist().index(second.stem)
    with pytest.raises(DataError, match=second.name):
        found.fetch(hurt)


def test_odd_names_and_extensions(mine):
    """The extension is the folder's, whatever the record says; ids may hold spaces, dots, # and letters of any kind."""
    for turn, (name, extension) in enumerate(
        [("ü #1", "JPG"), ("a.b c", "jpeg"), ("n01_1.JPEG", "JPEG"), ("c", "png")]
    ):
        view = true.viewpoint(10.0 * turn, 5.0, 1.0, 20.0, 20.0)
        true.save(mine, "car", "imagenet", name, [true.annotated("car", [1, 1, 20, 20], view)])
        picture = Image.new("RGB", (30, 30), (0, 50 * turn, 200))
        path = mine / "Images" / "car_imagenet" / f"{name}.{extension}"
        picture.save(path, format="PNG" if extension == "png" else "JPEG")
    (mine / "Annotations" / "car_imagenet" / "._junk.mat").write_bytes(b"of another system")
    found = pascal3d.open(mine)
    images = found.factors.values("photo").tolist()
    for turn, name in enumerate(["ü #1", "a.b c", "n01_1.JPEG", "c"]):
        pixels = found.fetch(images.index(name), ["image"])["image"]
        assert np.abs(pixels.astype(int) - [0, 50 * turn, 200]).max() < 6


@pytest.mark.parametrize("kind", ["exif", "xmp"])
def test_boxes_count_stored_pixels_whatever_a_camera_noted(mine, kind):
    view = true.viewpoint(10.0, 5.0, 1.0, 20.0, 20.0)
    true.save(mine, "car", "imagenet", "turned", [true.annotated("car", [21, 1, 60, 20], view)], size=(20, 60))
    pixels = np.zeros((20, 60, 3), np.uint8)
    pixels[:, 20:] = [250, 100, 0]
    path = mine / "Images" / "car_imagenet" / "turned.JPEG"
    exif = Image.Exif()
    exif[0x0112] = 6
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    Image.fromarray(pixels).save(path, quality=95, **({"exif": exif} if kind == "exif" else {"xmp": xmp}))
    assert decode(path, "as a viewer shows it", 3).shape == (60, 20, 3)
    found = pascal3d.open(mine)
    row = found.factors.values("photo").tolist().index("turned")
    assert found.photo(row).shape == (20, 60, 3)
    assert found.fetch(row, ["box"])["box"].tolist() == [21, 1, 60, 20]
    assert np.abs(found.fetch(row, ["image"])["image"][:, 4:].astype(int) - [250, 100, 0]).max() < 12
