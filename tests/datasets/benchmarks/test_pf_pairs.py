"""PF-PASCAL and PF-WILLOW, from files in the published form."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from PIL import Image

import setsup
from setsup.datasets.benchmarks.semantic_pairs import pf_pascal, pf_willow
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files import pf_pascal as pascal
from tests.true_files import pf_willow as willow


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, true in (("pf-pascal", pascal), ("pf-willow", willow)):
        found[name] = tmp_path_factory.mktemp(name)
        true.write(found[name])
    return found


def test_pascal_rows_are_the_annotations(folders: dict[str, Path]) -> None:
    dataset, top = setsup.load("pf-pascal", folders["pf-pascal"]), folders["pf-pascal"] / "PF-dataset-PASCAL"
    names = sorted(path.relative_to(top / "Annotations") for path in top.glob("Annotations/*/*.mat"))
    assert len(dataset) == len(names) == 18
    for row, name in enumerate(names):
        read = scipy.io.loadmat(top / "Annotations" / name)
        assert dataset.factors.row(row) == {"category": name.parent.name, "photo": name.stem}
        fetched = dataset.fetch(row)
        with Image.open(top / "JPEGImages" / f"{name.stem}.jpg") as image:
            assert np.array_equal(fetched["image"], np.asarray(image))
        known = fetched["keypoints"]
        assert known.shape == (16, 2)
        assert np.array_equal(known[: len(read["kps"])], read["kps"].astype(np.float32), equal_nan=True)
        assert np.isnan(known[len(read["kps"]) :]).all()
        assert fetched["box"].tolist() == read["bbox"][0].tolist()


def test_pascal_pairs_are_those_of_the_lists(folders: dict[str, Path]) -> None:
    """Keypoints of val and test are those that the lists write out, too."""
    dataset = setsup.load("pf-pascal", folders["pf-pascal"])
    pairs, at = dataset.published_pairs, 0
    for short, split in (("trn", "train"), ("val", "val"), ("test", "test")):
        for category, source, target, rest in pascal.lines(short):
            values, rows = pairs.factors.row(at), pairs.rows[at].tolist()
            assert (values["split"], values["category"]) == (split, category)
            assert values["flip"] is (short == "trn" and rest == "1")
            assert dataset.factors.values("photo", rows).tolist() == [
                pascal.name(category, source),
                pascal.name(category, target),
            ]
            if short != "trn":
                columns = [list(map(float, column.split(";"))) for column in rest.split(",")]
                known = dataset.keypoint_pairs(rows)
                assert known.points1.T.tolist() == columns[:2]
                assert known.points2.T.tolist() == columns[2:]
            at += 1
    assert at == len(pairs) == 3 * (2 * 6 + 2 + 6)


def test_pascal_needs_one_list_of_either_name_and_may_stay_packed(tmp_path: Path) -> None:
    pascal.write(tmp_path / "out", ("a", "b", "test_pairs_pf_pascal.csv"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted((tmp_path / "out").rglob("*.*")):
            if path.suffix in (".jpg", ".mat"):
                archive.write(path, path.relative_to(tmp_path / "out"))
        archive.writestr("__MACOSX/PF-dataset-PASCAL/JPEGImages/._2008_000001.jpg", b"no image")
    (tmp_path / "PF-dataset-PASCAL.zip").write_bytes(packed.getvalue())
    with pytest.raises(DataError, match=r"has no test_pairs.csv, val_pairs.csv or trn_pairs.csv"):
        setsup.load("pf-pascal", tmp_path)
    (tmp_path / "out" / "test_pairs_pf_pascal.csv").rename(tmp_path / "test_pairs_pf_pascal.csv")
    dataset = setsup.load("pf-pascal", tmp_path)
    assert (len(dataset), len(dataset.published_pairs)) == (18, 18)
    assert dataset.fetch(3, ["image"])["image"].ndim == 3


def test_willow_pairs_are_those_of_the_list(folders: dict[str, Path]) -> None:
    dataset = setsup.load("pf-willow", folders["pf-willow"])
    assert len(dataset) == 12
    pairs, at = dataset.published_pairs, 0
    for category in willow.KINDS:
        for source in range(willow.IMAGES):
            for target in range(willow.IMAGES):
                if source == target:
                    continue
                row1, row2 = pairs.rows[at].tolist()
                assert pairs.factors.row(at) == {"category": category}
                with Image.open(folders["pf-willow"] / willow.file(category, target)) as image:
                    assert np.array_equal(dataset.fetch(row2, ["image"])["image"], np.asarray(image.convert("RGB")))
                known = dataset.keypoint_pairs([row1, row2])
                assert known.points1.tolist() == willow.keypoints(category, source).tolist()
                assert known.points2.tolist() == willow.keypoints(category, target).tolist()
                assert np.array_equal(dataset.fetch(row1, ["keypoints"])["keypoints"], known.points1)
                at += 1
    assert at == len(pairs) == 36


def test_willow_keypoints_are_those_of_a_pair(tmp_path: Path) -> None:
    """Where a list has other keypoints of an image in another pair, each pair has its own; pairs go both ways."""
    willow.write(tmp_path)
    path = tmp_path / "PF-dataset" / "test_pairs.csv"
    lines = path.read_text().splitlines()
    first = lines[1].split(",")
    first[2] = "7.5"
    path.write_text("\n".join([lines[0], ",".join(first)]) + "\n")
    dataset = setsup.load("pf-willow", tmp_path)
    ((row1, row2),) = dataset.published_pairs.rows.tolist()
    assert dataset.keypoint_pairs([row1, row2]).points1[0, 0] == 7.5
    assert dataset.keypoint_pairs([row2, row1]).points2[0, 0] == 7.5
    with pytest.raises(DataError, match="are not a pair of its list"):
        dataset.keypoint_pairs([row1, row1])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a.jpg,b.jpg,21", "line 2 has the class '21'; expected 1 to 20"),
        ("a.jpg,b.jpg,1.5", "line 2 has the class '1.5'"),
        ("a.jpg,b.jpg,3,2", "line 2 has the flip '2'; expected 0 or 1"),
        ("a.jpg,b.jpg", "line 2 has 2 columns; expected 3"),
        ("a.txt,b.jpg,3", "expected the path of an image"),
        ("", "lists no pairs"),
    ],
)
def test_damaged_lists_of_pascal(line: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        pf_pascal.read_pairs(f"source_image,target_image,class,flip\n{line}\n".encode(), "trn_pairs.csv")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kps": np.zeros((2, 3))}, r"'kps' has the shape \(2, 3\)"),
        ({"kps": np.full((2, 2), np.inf)}, "'kps' contains infinity"),
        ({"kps": np.array([["a"]])}, "expected numbers"),
        ({"bbox": np.zeros((1, 3))}, r"'bbox' has the shape \(1, 3\)"),
        ({"bbox": np.array([[5.0, 0, 1, 1]])}, "right ≥ left"),
    ],
)
def test_damaged_annotations_of_pascal(change: dict[str, np.ndarray], words: str) -> None:
    file = io.BytesIO()
    scipy.io.savemat(file, {"kps": np.zeros((2, 2)), "bbox": np.zeros((1, 4)), **change})
    with pytest.raises(DataError, match=words):
        pf_pascal.read_annotation(file.getvalue(), "a.mat")


def test_damaged_lists_of_willow(folders: dict[str, Path]) -> None:
    lines = (folders["pf-willow"] / "PF-dataset" / "test_pairs.csv").read_text().splitlines()
    for change, words in (
        ({2: "x"}, "line 2 has 'x'; expected a number of pixels"),
        ({2: "inf"}, "line 2 has 'inf'"),
        ({0: "PF-dataset/duck(S)/a.png"}, "images of 2 folders; expected one category"),
    ):
        cells = lines[1].split(",")
        for column, text in change.items():
            cells[column] = text
        with pytest.raises(DataError, match=words):
            pf_willow.read_pairs("\n".join([lines[0], ",".join(cells)]).encode(), "test_pairs.csv")
    with pytest.raises(DataError, match="line 2 has 41 columns; expected 42"):
        pf_willow.read_pairs("\n".join([lines[0], lines[1].rpartition(",")[0]]).encode(), "test_pairs.csv")


def test_damaged_files(folders: dict[str, Path]) -> None:
    top = folders["pf-pascal"]
    annotation = next(top.glob("*/Annotations/car/*.mat")).read_bytes()
    assert survives(annotation, lambda content: pf_pascal.read_annotation(content, "a.mat"), 150) > 50
    lists = (top / "test_pairs.csv").read_bytes()
    assert survives(lists, lambda content: pf_pascal.read_pairs(content, "test_pairs.csv"), 100) > 20
    listed = (folders["pf-willow"] / "PF-dataset" / "test_pairs.csv").read_bytes()
    assert survives(listed, lambda content: pf_willow.read_pairs(content, "test_pairs.csv"), 60) > 10
