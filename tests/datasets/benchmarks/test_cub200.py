"""Attributes, parts and boxes of CUB-200-2011, from files in the published form."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import setsup
from setsup.correspondence import PixelPairSampler
from setsup.datasets.benchmarks.cub200.attributes import ATTRIBUTES, GROUPS, SINGLE, read_attributes
from setsup.datasets.benchmarks.cub200.dataset import PARTS, read_boxes, read_parts
from setsup.errors import DataError
from setsup.factors import FactorTable
from tests.fuzzing import survives
from tests.true_files import cub200 as true

NUMBERS = np.array([number for number, *_ in true.lines()])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cub200")
    true.write(folder)
    return folder


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A release of its own to damage, and without images that tests of lists do not need."""
    return Path(shutil.copytree(folder / "CUB_200_2011", tmp_path / "CUB_200_2011"))


@pytest.fixture(scope="module")
def birds(folder: Path):
    return setsup.load("cub200", folder)


def said(folder: Path, name: str) -> list[list[str]]:
    """Words of the lines of a list."""
    return [line.split() for line in (folder / "CUB_200_2011" / name).read_text().splitlines()]


def test_attributes_are_those_of_the_lines(folder: Path, birds) -> None:
    found = birds.fetch(range(len(birds)), ["attributes", "certainty"])
    lines = said(folder, "attributes/image_attribute_labels.txt")
    assert sorted({len(line) for line in lines}) == [5, 6, 7]
    for image, attribute, present, certainty, *_ in lines:
        row, column = int(image) - 1, int(attribute) - 1
        assert found["attributes"][row, column] == int(present)
        assert found["certainty"][row, column] == int(certainty)
    assert len(lines) == found["attributes"].size
    assert (found["attributes"].dtype, found["certainty"].dtype) == (np.uint8, np.uint8)


def test_groups_of_one_value_are_factors(birds) -> None:
    present, _ = true.labels()
    assert birds.attribute_names == ATTRIBUTES
    assert len(set(ATTRIBUTES)) == 312
    assert (ATTRIBUTES[0], ATTRIBUTES[54], ATTRIBUTES[311]) == (
        *("has_bill_shape::curved_(up_or_down)", "has_breast_pattern::solid"),
        "has_wing_pattern::multi-colored",
    )
    for group in SINGLE:
        for row, value in enumerate(birds.factors.values(group).tolist()):
            names = [name for name, is_present in zip(ATTRIBUTES, present[row], strict=True) if is_present]
            values = [name.split("::")[1] for name in names if name.startswith(f"has_{group}::")]
            assert value == (values[0] if len(values) == 1 else None)
    assert birds.factors["size"].levels[0].startswith("very_small")
    assert set(birds.factors["size"].levels) == set(GROUPS["size"])
    assert birds.factors.values("bill_shape").tolist()[:3] == [None, None, "hooked"]


def test_any_attribute_becomes_a_factor(birds) -> None:
    blue = birds.attribute_names.index("has_wing_color::blue")
    present = birds.fetch(range(len(birds)), ["attributes"])["attributes"][:, blue] == 1
    values = {"number": birds.factors.values("number"), "blue_wings": present}
    found = birds.with_factors(birds.factors.join(FactorTable.from_values(values), on="number"))
    assert found.where("blue_wings == True").rows.tolist() == true.labels()[0][:, blue].nonzero()[0].tolist()


def test_parts_and_boxes_are_those_of_the_lists(folder: Path, birds) -> None:
    for image, part, x, y, visible in said(folder, "parts/part_locs.txt"):
        found = birds.fetch(int(image) - 1, ["keypoints"])["keypoints"][int(part) - 1]
        assert found.tolist() == [float(x), float(y)] if visible == "1" else np.isnan(found).all()
    for image, *numbers in said(folder, "bounding_boxes.txt"):
        left, top, width, height = map(float, numbers)
        box = birds.fetch(int(image) - 1, ["box"])["box"]
        assert box.tolist() == [left, top, left + width, top + height]
    pairs = birds.keypoint_pairs([1, 20])
    both = [part for part in range(15) if true.parts()[[1, 20], part, 0].all()]
    assert list(pairs.names) == [PARTS[part] for part in both]
    assert pairs.points1.tolist() == true.parts()[1, both, 1:].tolist()
    assert pairs.points2.tolist() == true.parts()[20, both, 1:].tolist()
    rows = PixelPairSampler(birds, pairs=8, seed=1)[0].indices
    assert (birds.factors.codes("species", rows[:, 0]) == birds.factors.codes("species", rows[:, 1])).all()


def test_parts_and_boxes_follow_a_size(folder: Path, birds) -> None:
    small = setsup.load("cub200", folder, size=(45, 40))  # row 2 is 90 × 80 pixels: half of it
    whole, half = (found.fetch(2, ["keypoints", "box"]) for found in (birds, small))
    assert half["keypoints"] == pytest.approx((whole["keypoints"] + 0.5) / 2 - 0.5, nan_ok=True)
    assert half["box"] == pytest.approx((whole["box"] + 0.5) / 2 - 0.5)


def test_percentages_are_in_the_order_of_the_species(birds) -> None:
    rows = [int(str(level)[:3]) - 1 for level in birds.factors["species"].levels]
    assert rows == [0, 1, 100, 199]
    assert np.array_equal(birds.class_attributes, true.percentages()[rows].astype(np.float32))
    assert np.array_equal(birds.where("split == 'test'").class_attributes, birds.class_attributes)


def test_lists_are_matched_by_the_number_of_the_image(copy: Path, birds) -> None:
    for name in ("attributes/image_attribute_labels.txt", "parts/part_locs.txt", "bounding_boxes.txt", "images.txt"):
        lines = (copy / name).read_text().splitlines(keepends=True)
        np.random.default_rng(2).shuffle(lines)
        (copy / name).write_text("".join(lines))
    (copy / "images" / true.lines()[4][1]).unlink()
    mixed = setsup.load("cub200", copy)
    place = {number: row for row, number in enumerate(birds.factors.values("number").tolist())}
    rows = [place[number] for number in mixed.factors.values("number").tolist()]
    assert sorted(rows) == [row for row in range(24) if row != 4]
    names = ["attributes", "certainty", "keypoints", "box"]
    expected, found = birds.fetch(rows, names), mixed.fetch(range(23), names)
    assert all(np.array_equal(found[name], expected[name], equal_nan=name == "keypoints") for name in names)


def test_a_release_without_annotations(copy: Path) -> None:
    for name in ("attributes", "parts"):
        shutil.rmtree(copy / name)
    (copy / "bounding_boxes.txt").unlink()
    plain = setsup.load("cub200", copy)
    assert plain.factors.names == ("species", "number", "split", "retrieval")
    assert list(plain.modalities) == ["image"]
    with pytest.raises(DataError, match="has no file with keypoints; fetch or unpack"):
        plain.keypoint_pairs([0, 1])
    with pytest.raises(DataError, match=r"class_attribute_labels_continuous\.txt not found"):
        _ = plain.class_attributes


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("attributes/image_attribute_labels.txt", "3 7 ", "3 313 ", "line 631 is '3 313 .*; expected the numbers of"),
        ("attributes/image_attribute_labels.txt", "3 7 ", "3 8 ", "more than one line for attribute 8 of image 3"),
        ("attributes/image_attribute_labels.txt", "3 7 ", "77 7 ", "has no line for attribute 7 of image 3"),
        ("parts/part_locs.txt", "3 7 ", "3 16 ", "line 37 is '3 16 .*; expected the numbers of an image and a part"),
        ("parts/part_locs.txt", "3 7 ", "3 8 ", "repeats a line of image 3"),
        ("parts/part_locs.txt", "3 7 ", "77 7 ", "lacks a line of image 3"),
        ("parts/part_locs.txt", "3 7 ", "3 7 9999999 ", "line 37 is"),
        ("bounding_boxes.txt", "3 3.0", "3 -1e300", "line 3 is '3 -1e300 .*; expected the number of an image, x, y"),
        ("bounding_boxes.txt", "3 3.0 7.0 40.0", "3 3.0 7.0 -40.0", "line 3 is"),
        ("bounding_boxes.txt", "3 3.0", "2 3.0", "repeats a line of image 2"),
    ],
)
def test_damaged_lists_are_named(copy: Path, name: str, old: str, new: str, words: str) -> None:
    text = (copy / name).read_text()
    (copy / name).write_text(text.replace(f"\n{old}", f"\n{new}", 1))
    with pytest.raises(DataError, match=words) as error:
        setsup.load("cub200", copy)
    assert Path(name).name in str(error.value)


def test_percentages_of_other_species_are_refused(copy: Path) -> None:
    path = copy / "attributes" / "class_attribute_labels_continuous.txt"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(DataError, match="has 199 lines; expected 200"):
        _ = setsup.load("cub200", copy).class_attributes


@pytest.mark.long("fuzzing")
def test_damaged_lists() -> None:
    texts = {name: text.encode() for name, text in true.texts().items()}
    few = NUMBERS[:2]
    labels = b"".join(texts["attributes/image_attribute_labels.txt"].splitlines(keepends=True)[:624])
    assert survives(labels, lambda content: read_attributes(content, "a.txt", few), 200) > 50
    for name, read in (("parts/part_locs.txt", read_parts), ("bounding_boxes.txt", read_boxes)):
        assert survives(texts[name], lambda content, read=read: read(content, "a.txt", NUMBERS), 200) > 50
