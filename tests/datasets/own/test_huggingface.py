import io
import json
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.own.huggingface.dataset import from_huggingface
from setsup.errors import DataError, FactorError, RowError
from setsup.factors import Factor, Kind
from tests.fuzzing import survives

hf = pytest.importorskip("datasets")

ROWS = 20


@pytest.fixture(autouse=True)
def quiet():
    hf.disable_progress_bars()


def _pixels(row, height=6, width=8, channels=3):
    return np.random.default_rng(row).integers(0, 256, (height, width, channels)).astype(np.uint8)


def _file(pixels, kind="PNG", **options):
    stream = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(stream, kind, **options)
    return stream.getvalue()


PIXELS = np.stack([_pixels(row) for row in range(ROWS)])


def _photos(**more):
    """Twenty images with a class, a number, a struct and what is asked for beside."""
    features = hf.Features(
        {
            "image": hf.Image(),
            "subject": hf.ClassLabel(names=["joe", "bob", "ann"]),
            "age": hf.Value("int32"),
            "label": {"wall": {"hue": hf.Value("float64")}, "shape": hf.ClassLabel(names=["cube", "ball"])},
            **{name: feature for name, (feature, _) in more.items()},
        }
    )
    columns = {
        "image": [{"bytes": _file(pixels), "path": None} for pixels in PIXELS],
        "subject": [row % 3 for row in range(ROWS)],
        "age": [20 + row % 5 for row in range(ROWS)],
        "label": [{"wall": {"hue": row / 8 + 0.1}, "shape": row // 10} for row in range(ROWS)],
        **{name: column for name, (_, column) in more.items()},
    }
    return hf.Dataset.from_dict(columns, features=features)


def test_factors_and_pictures():
    data = from_huggingface(_photos())
    assert data.factors.names == ("subject", "age", "label.wall.hue", "label.shape")
    assert data.factors["subject"] == Factor("subject", Kind.NOMINAL, ("joe", "bob", "ann"))
    assert data.factors["age"] == Factor("age", Kind.ORDINAL, (20, 21, 22, 23, 24))
    assert data.factors["label.wall.hue"].continuous
    assert data.factors.values("label.shape").tolist() == ["cube"] * 10 + ["ball"] * 10
    assert np.allclose(data.factors.values("label.wall.hue"), np.arange(ROWS) / 8 + 0.1)
    kind = data.modalities["image"]
    assert (kind.shape, kind.dtype, kind.color) == ((6, 8, 3), "uint8", "srgb")
    assert data.cpu_bound
    assert data.skipped == {}
    for rows in ([[3, 19], [3, 0]], [], 7, list(range(ROWS)) * 3, [[]]):
        assert np.array_equal(data.fetch(rows)["image"], PIXELS[np.asarray(rows, int)])
    out = np.zeros((2, 6, 8, 3), np.uint8)
    data.fetch_into([5, 1], {"image": out})
    assert np.array_equal(out, PIXELS[[5, 1]])
    with pytest.raises(RowError, match="row 20 is out of range"):
        data.fetch([20])


def test_class_labels_that_are_not_known_or_no_name():
    photos = _photos(extra=(hf.ClassLabel(names=["x"]), [0, -1, None] + [0] * 17))
    assert from_huggingface(photos).factors.codes("extra")[:3].tolist() == [0, -1, -1]
    table = photos.data.table
    place = table.column_names.index("extra")
    wrong = table.set_column(place, table.schema.field("extra"), [[0] * 19 + [1]])
    with pytest.raises(FactorError, match="class label 1 has no name, because its feature has only 1"):
        from_huggingface(hf.Dataset(wrong))


@pytest.mark.parametrize("kept", ["memory", "disk"])
def test_rows_are_those_that_the_data_set_shows(tmp_path, kept):
    photos = _photos()
    if kept == "disk":
        photos.save_to_disk(tmp_path / "photos")
        photos = hf.load_from_disk(tmp_path / "photos")
    for shown in (
        photos.shuffle(seed=3),
        photos.select([7, 7, 2]),
        photos.filter(lambda age: age > 22, input_columns="age"),
        photos.shuffle(seed=1).select(range(4, 12)),
        hf.concatenate_datasets([photos.select([19, 3]), photos]),
    ):
        data = from_huggingface(shown)
        expected = [shown[row] for row in range(len(shown))]
        assert data.factors.values("age").tolist() == [row["age"] for row in expected]
        assert data.factors.codes("subject").tolist() == [row["subject"] for row in expected]
        images = np.stack([np.asarray(row["image"]) for row in expected])
        assert np.array_equal(data.fetch(range(len(data)))["image"], images)


def test_a_folder_that_save_to_disk_wrote(tmp_path):
    _photos().save_to_disk(tmp_path / "photos", num_shards=3)
    data = from_huggingface(tmp_path / "photos")
    assert data.name == "photos"
    assert np.array_equal(data.fetch(range(ROWS))["image"], PIXELS)
    assert np.array_equal(from_huggingface(str(tmp_path / "photos")).fetch([4])["image"], PIXELS[[4]])
    small = data.where("subject == 'bob'")
    assert np.array_equal(small.fetch([0, 2])["image"], PIXELS[[1, 7]])


def test_splits_of_a_dictionary_are_a_factor(tmp_path):
    photos = _photos()
    both = hf.DatasetDict({"train": photos.select([5, 3, 1]), "test": photos.select(range(8, 12))})
    both.save_to_disk(tmp_path / "both")
    for given in (both, tmp_path / "both"):
        data = from_huggingface(given)
        assert data.factors["split"] == Factor("split", Kind.NOMINAL, ("train", "test"), role="split")
        assert data.factors.codes("split").tolist() == [0, 0, 0, 1, 1, 1, 1]
        assert np.array_equal(data.where("split == 'test'").fetch([0, 3])["image"], PIXELS[[8, 11]])
        assert np.array_equal(data.where("split == 'train'").fetch([0, 2])["image"], PIXELS[[5, 1]])
    assert len(from_huggingface(tmp_path / "both" / "test")) == 4
    with pytest.raises(DataError, match=r"cannot be concatenated.*choose one, as in dataset\['train'\]"):
        from_huggingface(hf.DatasetDict(a=photos, b=photos.cast_column("age", hf.Value("string"))))
    with pytest.raises(DataError, match="both splits and a column 'split'"):
        from_huggingface(hf.DatasetDict(a=photos.add_column("split", ["x"] * ROWS)))


# -- encodings ---------------------------------------------------------------------------------------------------------


def test_every_way_to_hold_a_picture(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = []
    for row, pixels in enumerate(PIXELS):
        (tmp_path / f"{row}.png").write_bytes(_file(pixels))
        files.append(str(tmp_path / f"{row}.png"))
    packed = [{"bytes": _file(pixels), "path": "gone.png"} for pixels in PIXELS]
    struct = {"bytes": hf.Value("binary"), "path": hf.Value("string")}
    data = from_huggingface(
        _photos(
            named=(hf.Image(), files),
            raw=(hf.Image(decode=False), packed),
            plain=(struct, packed),
            views=(
                {"left": hf.Image(), "right": hf.Image()},
                [{"left": p, "right": f} for p, f in zip(packed, files, strict=True)],
            ),
            array=(hf.Array3D((6, 8, 3), "uint8"), list(PIXELS)),
        )
    )
    assert list(data.modalities) == ["image", "named", "raw", "plain", "views.left", "views.right", "array"]
    monkeypatch.chdir("/")
    for name, found in data.fetch([[3, 1]]).items():
        assert np.array_equal(found, PIXELS[[[3, 1]]]), name
        assert data.modalities[name].color == "srgb"
    assert "plain_path" not in data.factors


def test_columns_that_do_not_say_that_they_hold_pictures_can_be_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for row, pixels in enumerate(PIXELS):
        (tmp_path / f"{row}.png").write_bytes(_file(pixels))
    photos = _photos(
        file=(hf.Value("string"), [f"{row}.png" for row in range(ROWS)]),
        blob=(hf.Value("binary"), [_file(pixels) for pixels in PIXELS]),
        flat=(hf.Array2D((6, 8), "uint8"), list(PIXELS[..., 0])),
    )
    data = from_huggingface(photos)
    assert set(data.modalities) == {"image", "flat"}
    assert data.skipped.keys() == {"blob"}
    assert "specify it with image=" in data.skipped["blob"]
    assert data.modalities["flat"].shape == (6, 8)
    named = from_huggingface(photos, image=["file", "blob", "flat"])
    assert set(named.modalities) == {"file", "blob", "flat"}
    assert "file" not in named.factors
    assert named.modalities["flat"].color == "grey"
    found = named.fetch([2, 9])
    assert np.array_equal(found["file"], PIXELS[[2, 9]])
    assert np.array_equal(found["blob"], PIXELS[[2, 9]])
    assert np.array_equal(found["flat"], PIXELS[[2, 9]][..., :1])
    with pytest.raises(DataError, match="no column 'fiel'; did you mean 'file'"):
        from_huggingface(photos, image="fiel")
    with pytest.raises(DataError, match=r"'age' contains .*; expected images or paths"):
        from_huggingface(photos, image="age")


def test_grey_alpha_and_modes():
    grey = hf.Dataset.from_dict(
        {"image": [_file(_pixels(row, channels=1)) for row in range(4)], "k": [0, 1, 0, 1]},
        features=hf.Features({"image": hf.Image(), "k": hf.Value("int8")}),
    )
    assert from_huggingface(grey).modalities["image"].shape == (6, 8, 1)
    color = from_huggingface(grey.cast_column("image", hf.Image(mode="RGB")))
    assert np.array_equal(color.fetch(1)["image"], np.asarray(grey[1]["image"].convert("RGB")))
    alpha = grey.map(lambda row: {"image": Image.fromarray(_pixels(row["k"], channels=4))}, features=grey.features)
    assert np.array_equal(from_huggingface(alpha).fetch(1)["image"], _pixels(1, channels=4))
    with pytest.raises(DataError, match="specifies the mode L, which setsup does not support"):
        from_huggingface(_photos().cast_column("image", hf.Image(mode="L")))


def test_pictures_of_different_sizes_are_fetched_alone_or_resized():
    sizes = hf.Dataset.from_dict(
        {"image": [_file(_pixels(row, 6 + row, 8)) for row in range(3)], "k": [0, 1, 2]},
        features=hf.Features({"image": hf.Image(), "k": hf.Value("int8")}),
    )
    data = from_huggingface(sizes)
    assert data.modalities["image"].shape == (None, None, 3)
    assert np.array_equal(data.fetch([2, 2])["image"][1], _pixels(2, 8, 8))
    with pytest.raises(DataError, match=r"image of the dataset, row 1 is 7 × 8 pixels.*size="):
        data.fetch([0, 1])
    assert from_huggingface(sizes, size=(4, 5)).fetch([0, 1, 2])["image"].shape == (3, 4, 5, 3)
    with pytest.raises(DataError, match="size must be"):
        from_huggingface(sizes, size=(4, 0))


def test_depth_is_read_to_the_bit():
    deep = np.random.default_rng(0).integers(0, 2**16, (ROWS, 5, 7))
    metres = np.random.default_rng(1).random((ROWS, 5, 7)).astype(np.float32)
    data = from_huggingface(_photos(deep=(hf.Image(), list(deep.astype(np.uint16))), metres=(hf.Image(), list(metres))))
    assert data.modalities["deep"] == setsup.datasets.Modality((5, 7), "uint16")
    found = data.fetch([[4, 4, 0]])
    assert np.array_equal(found["deep"], deep[[[4, 4, 0]]])
    assert found["metres"].dtype == np.float32
    assert np.array_equal(found["metres"], metres[[[4, 4, 0]]])


def test_arrays_and_lists(caplog):
    arrays = np.random.default_rng(0).random((ROWS, 2, 3, 4))
    data = from_huggingface(
        _photos(
            cube=(hf.Array3D((2, 3, 4), "float64"), list(arrays)),
            first=(hf.Array3D((4, 5, 3), "uint8"), [np.full((4, 5, 3), row) for row in range(ROWS)]),
            box=(hf.Sequence(hf.Value("float32"), length=4), list(arrays[:, 0, 0])),
            table=(
                hf.Sequence(hf.Sequence(hf.Value("int16"), length=2), length=3),
                [[[row, 1]] * 3 for row in range(ROWS)],
            ),
            ragged=(hf.Sequence(hf.Value("int64")), [[1] * (row % 3) for row in range(ROWS)]),
            words=(hf.Sequence(hf.Value("string"), length=1), [["a"]] * ROWS),
        )
    )
    found = data.fetch([[7, 0], [7, 3]])
    assert found["cube"].dtype == np.float64
    assert np.array_equal(found["cube"], arrays[[[7, 0], [7, 3]]])
    assert found["box"].dtype == np.float32
    assert np.array_equal(found["box"], arrays[:, 0, 0].astype(np.float32)[[[7, 0], [7, 3]]])
    assert found["table"][0, 0].tolist() == [[7, 1]] * 3
    assert found["first"][1, 1].tolist() == [[[3] * 3] * 5] * 4
    assert data.fetch([], ["cube"])["cube"].shape == (0, 2, 3, 4)
    assert data.skipped.keys() == {"ragged", "words"}
    assert "ragged (arrays whose shape (None,) differs between rows)" in caplog.text
    assert data.factors.names == ("subject", "age", "label.wall.hue", "label.shape")


def test_missing_values_of_arrays():
    lists = [[1.0, None]] + [[0.5, 2.0]] * 19
    numbers = [[1, None]] + [[1, 2]] * 19
    data = from_huggingface(
        _photos(
            some=(hf.Sequence(hf.Value("float32"), length=2), lists),
            whole=(hf.Sequence(hf.Value("int32"), length=2), numbers),
            absent=(hf.Sequence(hf.Value("int32"), length=2), [None] + [[1, 2]] * 19),
        )
    )
    assert np.isnan(data.fetch(0, ["some"])["some"]).tolist() == [False, True]
    with pytest.raises(DataError, match="whole of the dataset has missing values"):
        data.fetch(0, ["whole"])
    with pytest.raises(DataError, match="absent of the dataset has rows without a value"):
        data.fetch(0, ["absent"])
    assert data.fetch(1, ["absent"])["absent"].tolist() == [1, 2]


def test_kinds_and_factors_can_be_given():
    subject = Factor("subject", Kind.ORDINAL, ("ann", "bob", "joe"))
    data = from_huggingface(_photos(), factors=[subject], kinds={"age": "continuous"})
    assert data.factors["subject"] == subject
    assert data.factors["age"].continuous
    with pytest.raises(FactorError, match=r"'agee'.*did you mean 'age'"):
        from_huggingface(_photos(), kinds={"agee": "continuous"})


# -- what it is not ----------------------------------------------------------------------------------------------------


def test_what_is_no_data_set(tmp_path):
    photos = _photos()
    with pytest.raises(DataError, match="not IterableDataset; load it without streaming=True"):
        from_huggingface(photos.to_iterable_dataset())
    with pytest.raises(DataError, match="not list"):
        from_huggingface([1, 2])
    with pytest.raises(
        DataError,
        match=r"the folder .*mnist does not exist; to open a dataset of the Hub, pass the result of",
    ):
        from_huggingface("ylecun/mnist")
    with pytest.raises(DataError, match="was not written by save_to_disk"):
        from_huggingface(tmp_path)
    with pytest.raises(DataError, match="has no rows"):
        from_huggingface(photos.select([]))
    with pytest.raises(DataError, match=r"contains neither images nor arrays \(columns: subject, age"):
        from_huggingface(photos.select_columns(["subject", "age"]))
    with pytest.raises(DataError, match=r"no column that can be used as a factor \(columns: image\)"):
        from_huggingface(photos.select_columns(["image"]))
    with pytest.raises(FactorError, match=r"label.shape and label.shape would both be called 'label.shape'"):
        from_huggingface(photos.add_column("label.shape", [0] * ROWS))


def test_rows_without_a_picture_and_missing_files_are_counted(tmp_path):
    cells = [{"bytes": _file(PIXELS[0]), "path": None}, None, None] + [
        {"bytes": None, "path": str(tmp_path / f"{row}.png")} for row in range(17)
    ]
    photos = _photos(more=(hf.Image(), cells))
    with pytest.raises(DataError, match=r"more of the dataset: 2 of 20 rows have no image, such as row 1"):
        from_huggingface(photos)
    with pytest.raises(DataError, match=r"17 image files are missing: .*0\.png, .*2\.png and 14 more; "):
        from_huggingface(photos.select([0, *range(3, 20)]))
    assert set(from_huggingface(photos, image="image").modalities) == {"image"}
    assert set(from_huggingface(photos.select([0, 0])).modalities) == {"image", "more"}


def test_a_damaged_picture_is_named():
    cells = [_file(pixels) for pixels in PIXELS]
    cells[3] = cells[3][:60]
    photos = _photos(more=(hf.Image(), cells))
    data = from_huggingface(photos)
    assert np.array_equal(data.fetch([2])["more"], PIXELS[[2]])
    with pytest.raises(DataError, match=r"more of the dataset, row 3 could not be decoded"):
        data.fetch([2, 3])


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("name", ["data-00000-of-00001.arrow", "dataset_info.json", "state.json"])
def test_damaged_folders_are_refused_or_read(tmp_path, name):
    arrays = np.arange(ROWS * 4).reshape(ROWS, 2, 2)
    photos = _photos(
        flat=(hf.Array2D((2, 2), "int32"), list(arrays)),
        list=(hf.Sequence(hf.Value("int16"), length=2), [[1, 2]] * ROWS),
    )
    photos.save_to_disk(tmp_path / "photos")
    turn = iter(range(10**6))

    def read(content):
        # mapped files may not be written over while they are mapped
        folder = tmp_path / str(next(turn))
        shutil.copytree(tmp_path / "photos", folder)
        (folder / name).write_bytes(content)
        try:
            data = from_huggingface(folder)
            data.fetch(range(len(data)))
        finally:
            shutil.rmtree(folder)

    healthy = (tmp_path / "photos" / name).read_bytes()
    assert survives(healthy, read, rounds=60, head=4096, times=50, slack=64 << 20) > 20


# -- processes ---------------------------------------------------------------------------------------------------------


def test_a_mapped_data_set_is_pickled_by_its_files(tmp_path):
    large = hf.concatenate_datasets([_photos()] * 50)
    large.save_to_disk(tmp_path / "photos")
    size = len(pickle.dumps(from_huggingface(tmp_path / "photos")))
    assert size < (tmp_path / "photos" / "data-00000-of-00001.arrow").stat().st_size / 4
    again = pickle.loads(pickle.dumps(from_huggingface(large)))
    assert np.array_equal(again.fetch([23])["image"], PIXELS[[3]])


@pytest.mark.long("large or genuine files")
def test_loaders_take_it():
    data = from_huggingface(_photos())
    sampler = setsup.SetSampler(data.factors, inactive=["subject"], size=4)
    batch = next(iter(setsup.loader(data, sampler)))
    assert np.array_equal(np.moveaxis(np.asarray(batch["image"]), -3, -1), PIXELS[sampler[0].indices])


def test_without_the_library_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"datasets is required .*pip install '\.\[hf\]'"):
        from_huggingface("somewhere")


@pytest.mark.long("large or genuine files")
def test_nothing_is_written_anywhere_and_nothing_asked_of_the_network(tmp_path):
    _photos().save_to_disk(tmp_path / "photos")
    before = sorted(tmp_path.rglob("*"))
    code = (
        "import sys, socket; from setsup.datasets.own.huggingface.dataset import from_huggingface\n"
        "assert 'datasets' not in sys.modules and 'pyarrow' not in sys.modules\n"
        "def no(*a, **k): raise OSError('network')\n"
        "socket.socket.connect = no; socket.getaddrinfo = no\n"
        "from_huggingface('photos').fetch([0, 1]); print('done')"
    )
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "PYTHONPATH": os.getcwd()}
    environment.pop("HF_HUB_OFFLINE", None)
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert found.stdout == "done\n", found.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_notes_that_are_none():
    photos = _photos(extra=(hf.Value("int32", id="setsup {"), [1] * ROWS))
    with pytest.raises(FactorError, match="id of the feature 'extra' was not written by setsup"):
        from_huggingface(photos)
    for note in ({"kind": "ordinal", "levels": 3}, {"kind": "nominally"}, {"levels": [1]}):
        photos = _photos(extra=(hf.Value("int32", id=f"setsup {json.dumps(note)}"), [1] * ROWS))
        with pytest.raises(FactorError, match="id of the feature 'extra' does not describe a factor"):
            from_huggingface(photos)
    photos = _photos(extra=(hf.Array2D((1, 1), "int8", id='setsup {"modality": {"colour": 1}}'), [[[1]]] * ROWS))
    with pytest.raises(DataError, match="id of the feature 'extra' does not describe a modality"):
        from_huggingface(photos)
