import csv
import io
import logging
import pickle
import tarfile
import zipfile

import numpy as np
import pytest
import scipy.io
from PIL import Image

import setsup
from setsup.datasets.benchmarks import imagenet
from setsup.datasets.benchmarks.imagenet.labels import find_labels
from setsup.errors import DataError, RowError
from setsup.factors import Kind
from setsup.files import load_manifest, open_members
from tests.fuzzing import survives
from tests.true_files import imagenet as made
from tests.true_files.imagenet import kit_files, packed, train_files, val_files, write, write_tree


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imagenet")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imagenet-tree")
    write_tree(folder)
    return folder


@pytest.fixture(scope="module")
def pictures(release):
    return imagenet.open(release)


def _read(release):
    """Rows as (split, synset, file name, content), by tarfile and scipy, in the order that is promised."""
    rows = []
    with tarfile.open(release / "ILSVRC2012_img_train.tar") as outer:
        for each in outer:
            with tarfile.open(fileobj=outer.extractfile(each)) as inner:
                for file in inner:
                    rows.append(("train", each.name.removesuffix(".tar"), file.name, inner.extractfile(file).read()))
    with tarfile.open(release / "ILSVRC2012_devkit_t12.tar.gz") as kit:
        data = "ILSVRC2012_devkit_t12/data"
        synsets = scipy.io.loadmat(io.BytesIO(kit.extractfile(f"{data}/meta.mat").read()), squeeze_me=True)["synsets"]
        truth = kit.extractfile(f"{data}/ILSVRC2012_validation_ground_truth.txt").read().split()
    names = {int(each["ILSVRC2012_ID"]): str(each["WNID"]) for each in synsets}
    with tarfile.open(release / "ILSVRC2012_img_val.tar") as val:
        for file in val:
            number = int(file.name.split("_")[2].split(".")[0])
            rows.append(("val", names[int(truth[number - 1])], file.name, val.extractfile(file).read()))
    return sorted(rows)


def _rgb(content):
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def test_factors_and_order(release, pictures):
    rows = _read(release)
    table = pictures.factors
    assert len(pictures) == len(rows) == 5 * made.TRAIN + len(made.VALIDATION)
    assert table.values("split").tolist() == [split for split, *_ in rows]
    assert table.values("synset").tolist() == [synset for _, synset, *_ in rows]
    assert [name.rpartition("/")[2] for name in pictures.paths(range(len(rows)))] == [name for *_, name, _ in rows]
    assert table["synset"].levels == tuple(sorted(made.SYNSETS))
    assert table["synset"].kind is Kind.NOMINAL
    assert (table["category"].role, table["split"].role) == ("key", "split")


def test_categories_are_named_and_unique(pictures):
    table = pictures.factors
    named = dict(zip(table.values("synset").tolist(), table.values("category").tolist(), strict=True))
    assert named == {
        "n01443537": "goldfish, Carassius auratus",
        "n02012849": "crane (n02012849)",
        "n03126707": "crane (n03126707)",
        "n04146614": "school bus",
        "n07753592": "banana",
    }


def test_pictures_whatever_their_files_hold(release, pictures):
    rows = _read(release)
    kinds = {Image.open(io.BytesIO(content)).mode for *_, content in rows}
    assert kinds == {"RGB", "L", "CMYK"}
    assert any(content.startswith(b"\x89PNG") for *_, content in rows)
    assert pictures.modalities["image"].shape == (None, None, 3)
    assert pictures.cpu_bound
    for row, (*_, content) in enumerate(rows):
        assert np.array_equal(pictures.fetch([row])["image"][0], _rgb(content)), row
    with pytest.raises(DataError, match=r"size=\(height, width\)"):
        pictures.fetch(range(5))
    with pytest.raises(RowError):
        pictures.fetch(len(rows))


def test_resized_for_a_loader(release):
    small = imagenet.open(release, size=(32, 40))
    assert small.modalities["image"].shape == (32, 40, 3)
    found = small.fetch([[0, 30], [5, 0]])["image"]
    assert found.shape == (2, 2, 32, 40, 3)
    out = np.zeros((2, 32, 40, 3), np.uint8)
    small.fetch_into([0, 30], {"image": out})
    assert np.array_equal(out, found[0])


class TestStrayBytes:
    """A published JPEG makes libjpeg say: 1483 extraneous bytes before marker 0xd9."""

    _STRAY = b"\x01stray" * 200 + b"\xff\xd9"

    def _damaged(self, folder, ends):
        """The tree with other ends of the files of two images; where they lie, and what they were."""
        write_tree(folder)
        paths = [folder / f"train/n07753592/n07753592_{number}.JPEG" for number in (7, 14)]
        whole = [path.read_bytes() for path in paths]
        for path, content, end in zip(paths, whole, ends, strict=True):
            assert content.endswith(b"\xff\xd9")
            path.write_bytes(content[: -len(content) // 3 if end is None else -2] + (end or b""))
        return paths, whole

    def test_are_passed_over_with_one_warning_a_file(self, tmp_path, caplog):
        paths, whole = self._damaged(tmp_path, [self._STRAY, self._STRAY])
        found = imagenet.open(tmp_path)
        rows = [found.paths(range(len(found))).index(f"n07753592/{path.name}") for path in paths]
        with caplog.at_level(logging.WARNING, "setsup"):
            for row, content in zip(rows, whole, strict=True):
                for _ in range(3):
                    assert np.array_equal(found.fetch(row)["image"], _rgb(content))
        assert [record.getMessage().count("extraneous bytes before marker 0xd9") for record in caplog.records] == [1, 1]
        for path, record in zip(paths, caplog.records, strict=True):
            assert str(path) in record.getMessage()

    @pytest.mark.parametrize("end", [None, b"", b"stray bytes and no end"])
    def test_what_is_cut_off_is_refused(self, tmp_path, end):
        paths, _ = self._damaged(tmp_path, [end, b"\xff\xd9"])
        found = imagenet.open(tmp_path)
        row = found.paths(range(len(found))).index(f"n07753592/{paths[0].name}")
        with pytest.raises(DataError, match=r"n07753592_7\.JPEG .*truncated or corrupt"):
            found.fetch(row)

    def test_are_refused_elsewhere(self, tmp_path):
        paths, whole = self._damaged(tmp_path, [self._STRAY, self._STRAY])
        (tmp_path / "table.csv").write_text(f"image,digit\n{paths[0]},1\n")
        with pytest.raises(DataError, match="extraneous bytes before marker 0xd9"):
            setsup.load("table", tmp_path / "table.csv").fetch(0)
        paths[0].write_bytes(whole[0])
        assert setsup.load("table", tmp_path / "table.csv").fetch(0)["image"].shape == _rgb(whole[0]).shape


def _same(found, expected):
    count = len(expected)
    assert len(found) == count
    for factor in ("synset", "split"):
        assert found.factors[factor].levels == expected.factors[factor].levels
        assert found.factors.values(factor).tolist() == expected.factors.values(factor).tolist()
    last = [name.rpartition("/")[2] for name in found.paths(range(count))]
    assert last == [name.rpartition("/")[2] for name in expected.paths(range(count))]
    for row in range(0, count, 3):
        assert np.array_equal(found.fetch(row)["image"], expected.fetch(row)["image"])


def _solution(folder):
    with (folder / "LOC_val_solution.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["ImageId", "PredictionString"])
        for number, synset in reversed(list(enumerate(made.VALIDATION, 1))):
            lines.writerow([f"ILSVRC2012_val_{number:08}", f"{synset} 1 2 30 40 {synset} 5 6 70 80 "])


def _mapping(folder):
    lines = [f"{synset} {words}\n" for synset, (_, words) in made.SYNSETS.items()]
    (folder / "LOC_synset_mapping.txt").write_text("".join(lines))


@pytest.mark.parametrize(
    "form",
    [
        *(
            "tree",
            "flat val",
            "kit unpacked",
            "kaggle",
            "kaggle zip",
            "tar of the tree",
            "tree and tar",
            "folders above",
        ),
        *("own folder", "inside folders named as the tars"),
    ],
)
def test_the_same_rows_in_every_form(tmp_path, release, pictures, form):
    root = tmp_path
    if form == "tree":
        write_tree(tmp_path)
    elif form == "flat val":
        write_tree(tmp_path, sorted_val=False)
        (tmp_path / "ILSVRC2012_devkit_t12.tar.gz").write_bytes(packed(kit_files(), "w:gz"))
    elif form in ("kit unpacked", "folders above", "own folder"):
        below = tmp_path / {"folders above": "my data/2012", "own folder": "imagenet"}.get(form, "")
        below.mkdir(parents=True, exist_ok=True)
        for name in ("ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar"):
            (below / name).write_bytes((release / name).read_bytes())
        for name, content in kit_files().items():
            (below / name).parent.mkdir(parents=True, exist_ok=True)
            (below / name).write_bytes(content)
    elif form.startswith("kaggle"):
        write_tree(tmp_path / "ILSVRC" / "Data" / "CLS-LOC", sorted_val=False)
        notes = tmp_path / "ILSVRC" / "Annotations" / "CLS-LOC" / "train" / "n01443537" / "n01443537_0.xml"
        notes.parent.mkdir(parents=True)
        notes.write_text("<annotation/>")
        _solution(tmp_path)
        _mapping(tmp_path)
        if form == "kaggle zip":
            root = tmp_path / "imagenet-object-localization-challenge.zip"
            with zipfile.ZipFile(root, "w") as file:
                for path in [*tmp_path.glob("ILSVRC/**/*"), *tmp_path.glob("LOC*")]:
                    file.write(path, path.relative_to(tmp_path))
    elif form == "tar of the tree":
        write_tree(tmp_path / "x")
        root = tmp_path / "whole.tar"
        with tarfile.open(root, "w") as file:
            file.add(tmp_path / "x", "some folder")
    elif form == "tree and tar":
        for name in ("ILSVRC2012_img_val.tar", "ILSVRC2012_devkit_t12.tar.gz"):
            (tmp_path / name).write_bytes((release / name).read_bytes())
        (tmp_path / "ILSVRC2012_img_train.tar").write_bytes(b"still being fetched")
        write_tree(tmp_path / "y")
        (tmp_path / "y" / "train").rename(tmp_path / "train")
    else:
        write_tree(tmp_path)
        (tmp_path / "train").rename(tmp_path / "ILSVRC2012_img_train")
        (tmp_path / "val").rename(tmp_path / "ILSVRC2012_img_val")
    found = setsup.load("imagenet", root)
    _same(found, pictures)
    assert ("category" in found.factors) == (
        form in ("flat val", "kit unpacked", "kaggle", "kaggle zip", "tree and tar", "folders above", "own folder")
    )
    if "category" in found.factors:
        assert found.factors["category"].levels == pictures.factors["category"].levels
    assert len(pickle.dumps(found)) < 50_000
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.fetch(33)["image"], pictures.fetch(33)["image"])


@pytest.mark.parametrize("split", ["train", "val"])
def test_one_archive_as_root(release, pictures, split):
    found = imagenet.open(release / f"ILSVRC2012_img_{split}.tar")
    rows = pictures.factors.rows(f"split == '{split}'")
    assert found.factors.values("synset").tolist() == pictures.factors.values("synset", rows).tolist()
    assert found.factors.values("category").tolist() == pictures.factors.values("category", rows).tolist()
    assert found.factors["split"].levels == ("train", "val")
    assert np.array_equal(found.fetch(3)["image"], pictures.fetch(rows[3])["image"])


def test_ids_of_train_do_not_depend_on_val(tmp_path, release, pictures):
    (tmp_path / "ILSVRC2012_img_train.tar").symlink_to(release / "ILSVRC2012_img_train.tar")
    train = imagenet.open(tmp_path)
    assert train.paths(range(len(train))) == pictures.paths(range(5 * made.TRAIN))


def test_numbers_are_those_of_sorted_folders(tree):
    """As programs for ImageNet number them: the sorted files of the sorted folders."""
    files = [path for folder in sorted((tree / "train").iterdir()) for path in sorted(folder.iterdir())]
    names = imagenet.open(tree).paths(range(len(files)))
    assert names == [path.relative_to(tree / "train").as_posix() for path in files]


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("workers", [0, 2])
def test_ids_are_the_same_in_every_epoch_and_worker(release, tree, workers):
    """What a memory bank needs: row i is the same image at every step of every loader."""
    seen = {}
    for root in (release, tree):
        train = imagenet.open(root, size=(16, 16)).where("split == 'train'")
        sampler = setsup.EpochSampler(train.factors, size=5, epochs=2)
        for batch in setsup.loader(train, sampler, to="numpy", workers=workers):
            for row, image in zip(
                batch["indices"].reshape(-1).tolist(), batch["image"].reshape(-1, 16 * 16 * 3), strict=True
            ):
                assert seen.setdefault(row, image.tobytes()) == image.tobytes()
    assert sorted(seen) == list(range(5 * made.TRAIN))


def test_validation_pictures_without_labels(tmp_path, caplog):
    write_tree(tmp_path, sorted_val=False)
    with caplog.at_level(logging.WARNING, "setsup"):
        found = imagenet.open(tmp_path)
    assert "10 validation images are unknown" in caplog.text
    assert found.factors.values("synset").tolist()[25:] == [None] * 10
    assert "category" not in found.factors
    assert found.paths(range(25, 35)) == sorted(val_files())


def test_only_validation_pictures_without_labels(tmp_path):
    (tmp_path / "ILSVRC2012_img_val.tar").write_bytes(packed(val_files()))
    found = imagenet.open(tmp_path)
    assert found.factors.names == ("split",)
    assert len(found) == 10


def test_some_names_are_missing(tmp_path):
    write_tree(tmp_path)
    (tmp_path / "LOC_synset_mapping.txt").write_text("n01443537 goldfish\n")
    levels = imagenet.open(tmp_path).factors["category"].levels
    assert levels == ("goldfish", *sorted(made.SYNSETS)[1:])


class TestBad:
    @pytest.fixture
    def flat(self, tmp_path):
        write_tree(tmp_path, sorted_val=False)
        return tmp_path

    def _kit(self, folder, **changed):
        for name, content in kit_files().items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(changed.get(place.stem.replace("ILSVRC2012_validation_ground_truth", "truth"), content))

    @pytest.mark.parametrize(
        ("truth", "message"),
        [
            (b"113\n39\n", r"has 2 lines, but no entry for the validation image 00000003"),
            (b"113\n" * 9 + b"7\n", r"line 10 is '7', which is not the number of a synset"),
            (b"113\n" * 9 + b"1001\n", r"line 10 is '1001'"),
            (b"113\n" * 9 + b"banana\n", r"line 10 is 'banana'"),
            (b"\xff\xfe", "is not UTF-8 text"),
        ],
    )
    def test_ground_truth(self, flat, truth, message):
        self._kit(flat, truth=truth)
        with pytest.raises(DataError, match=message):
            imagenet.open(flat)

    def test_ground_truth_without_meta(self, flat):
        data = flat / "ILSVRC2012_devkit_t12" / "data"
        data.mkdir(parents=True)
        (data / "ILSVRC2012_validation_ground_truth.txt").write_text("1\n" * 10)
        assert imagenet.open(flat).factors.values("synset")[30] is None

    def test_meta(self, flat):
        self._kit(flat, meta=b"no MAT file")
        with pytest.raises(DataError, match=r"meta\.mat"):
            imagenet.open(flat)
        other = io.BytesIO()
        scipy.io.savemat(other, {"synsets": np.arange(5)})
        self._kit(flat, meta=other.getvalue())
        with pytest.raises(DataError, match="'synsets' lacks the fields ILSVRC2012_ID"):
            imagenet.open(flat)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "ImageId,PredictionString\nILSVRC2012_val_00000001,n01443537 1 2 3 4\n",
                "no entry for ILSVRC2012_val_00000002",
            ),
            ("a,b\n1,2\n", "not a table with the columns ImageId"),
            ("", "not a table with the columns ImageId"),
        ],
    )
    def test_solution(self, flat, text, message):
        (flat / "LOC_val_solution.csv").write_text(text)
        with pytest.raises(DataError, match=message):
            imagenet.open(flat)

    def test_solution_without_synsets(self, flat):
        _solution(flat)
        text = (flat / "LOC_val_solution.csv").read_text()
        (flat / "LOC_val_solution.csv").write_text(text.replace("n02012849 1 2", "crane 1 2"))
        with pytest.raises(DataError, match="'crane 1 2 30 40"):
            imagenet.open(flat)

    def test_mapping(self, flat):
        (flat / "LOC_synset_mapping.txt").write_text("goldfish\n")
        with pytest.raises(DataError, match="contains no line such as 'n01440764 tench"):
            imagenet.open(flat)

    def test_archives(self, tmp_path, release):
        whole = (release / "ILSVRC2012_img_train.tar").read_bytes()
        for cut in (len(whole) // 2, 700, 5):
            (tmp_path / "ILSVRC2012_img_train.tar").write_bytes(whole[:cut])
            with pytest.raises(DataError, match=r"ILSVRC2012_img_train\.tar"):
                imagenet.open(tmp_path)
        (tmp_path / "ILSVRC2012_img_train.tar").write_bytes(packed({"n01443537.tar": whole[:3000]}))
        with pytest.raises(DataError, match=r"n01443537\.tar is truncated"):
            imagenet.open(tmp_path)
        (tmp_path / "ILSVRC2012_img_train.tar").write_bytes(packed({"README": b""}))
        with pytest.raises(DataError, match="contains no image such as"):
            imagenet.open(tmp_path)

    def test_a_zip_around_the_tars(self, tmp_path, release):
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as file:
            file.write(release / "ILSVRC2012_img_train.tar", "ILSVRC2012_img_train.tar")
        with pytest.raises(DataError, match="is inside another archive"):
            imagenet.open(tmp_path)

    def test_a_damaged_picture_is_named(self, tmp_path):
        inner = train_files()
        inner["n04146614"]["n04146614_7.JPEG"] = inner["n04146614"]["n04146614_7.JPEG"][:400]
        (tmp_path / "ILSVRC2012_img_train.tar").write_bytes(
            packed({f"{synset}.tar": packed(files) for synset, files in inner.items()})
        )
        found = imagenet.open(tmp_path, size=(8, 8))
        with pytest.raises(
            DataError, match=r"img_train\.tar: n04146614\.tar/n04146614_7\.JPEG \(row 19\) could not be decoded"
        ):
            found.fetch(range(25))

    def test_nothing(self, tmp_path):
        (tmp_path / "photo.JPEG").write_bytes(b"")
        with pytest.raises(DataError, match="setsup fetch imagenet"):
            imagenet.open(tmp_path)


def _labels(folder):
    labels = find_labels(open_members(folder))
    return labels.categories(sorted(made.SYNSETS)), labels.of_validation(np.arange(1, 11))


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize(
    "name",
    [
        "meta.mat",
        "ILSVRC2012_validation_ground_truth.txt",
        "ILSVRC2012_devkit_t12.tar.gz",
        "LOC_val_solution.csv",
        "LOC_synset_mapping.txt",
    ],
)
def test_damaged_labels(tmp_path, name):
    healthy = {path.rpartition("/")[2]: content for path, content in kit_files().items()}
    if name.startswith("LOC"):
        _solution(tmp_path)
        _mapping(tmp_path)
    elif name in healthy:
        for each in healthy:
            (tmp_path / each).write_bytes(healthy[each])
    else:
        (tmp_path / name).write_bytes(packed(kit_files(), "w:gz"))
    path = tmp_path / name

    def read(content):
        path.write_bytes(content)
        _labels(tmp_path)

    assert survives(path.read_bytes(), read, 60, slack=16 << 20) > 0


def test_the_manifest(pictures):
    manifest = load_manifest("imagenet")
    assert manifest.samples == 1_281_167 + 50_000
    assert manifest.licence.sign
    assert not any(file.urls for file in manifest.files)
    assert tuple(factor.name for factor in manifest.factors) == pictures.factors.names
