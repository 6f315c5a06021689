"""Spawrious: rows equal to a walk over the files, and the challenges to what the published code takes."""

import io
import os
from collections import Counter

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.benchmarks import spawrious as module
from setsup.errors import DataError
from setsup.files import load_manifest
from tests.true_files import spawrious

EACH = 10  # of which 97 and 87 % are 9 and 8


def _rows(found):
    table = found.factors
    return list(zip(*(table.values(name).tolist() for name in ("copy", "location", "breed")), strict=True))


def test_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_EACH", spawrious.EACH)
    spawrious.write_few(tmp_path)
    found, files = setsup.load("spawrious", tmp_path), spawrious.images()
    paths = found.paths(range(len(found)))
    assert sorted(paths) == sorted(files)
    for path, (copy, location, breed) in zip(paths, _rows(found), strict=True):
        assert path.split("/")[:3] == [str(copy), location, breed]
    for row in range(0, len(found), 19):
        expected = Image.open(io.BytesIO(files[paths[row]]))
        assert np.array_equal(found.fetch(row)["image"], np.asarray(expected))
    assert len(setsup.load("spawrious", tmp_path, split="m2m-hard-test")) == 8 * spawrious.EACH


@pytest.fixture
def many(tmp_path, monkeypatch):
    """Ten images a cell, which differ in their names only."""
    monkeypatch.setattr(module, "_EACH", EACH)
    monkeypatch.setattr(module, "_MAIN", (9, 8))
    first = tmp_path / "1.png"
    Image.new("RGB", (8, 8)).save(first)
    for copy in (0, 1):
        for place in spawrious.PLACES:
            for breed in spawrious.BREEDS:
                (tmp_path / "spawrious224" / str(copy) / place / breed).mkdir(parents=True)
                for number in range(EACH):
                    os.link(first, tmp_path / "spawrious224" / spawrious.name(copy, place, breed, 7 + number))
    return tmp_path


def _numbers(found):
    return [int(path.rpartition("_")[2].removesuffix(".png")) - 7 for path in found.paths(range(len(found)))]


def test_one_to_one(many):
    train = setsup.load("spawrious", many, split="o2o-medium-train")
    places = {"bulldog": "mountain", "dachshund": "beach", "labrador": "dirt", "corgi": "jungle"}
    expected = Counter()
    for copy, main in ((0, 9), (1, 8)):
        for breed, place in places.items():
            expected |= {(copy, place, breed, number): 1 for number in range(main)}
            expected |= {(copy, "desert", breed, number): 1 for number in range(10 - main)}
    assert Counter((*row, number) for row, number in zip(_rows(train), _numbers(train), strict=True)) == expected
    environments = train.factors.values("o2o_medium")
    assert environments.tolist() == [f"train-{copy + 1}" for copy, *_ in _rows(train)]
    test = setsup.load("spawrious", many, split="o2o-medium-test")
    places = {"bulldog": "jungle", "dachshund": "dirt", "labrador": "beach", "corgi": "snow"}
    assert Counter(_rows(test)) == {(copy, place, breed): EACH for copy in (0, 1) for breed, place in places.items()}


def test_many_to_many(many):
    both = setsup.load("spawrious", many, split="m2m-easy")
    found = Counter(zip(both.factors.values("split").tolist(), _rows(both), strict=True))
    cells = {
        "train-1": {"bulldog": "desert", "dachshund": "mountain", "labrador": "dirt", "corgi": "jungle"},
        "train-2": {"bulldog": "mountain", "dachshund": "desert", "labrador": "jungle", "corgi": "dirt"},
    }
    expected = {(part, (0, place, breed)): EACH for part, where in cells.items() for breed, place in where.items()}
    for breeds, places in (
        (("bulldog", "dachshund"), ("dirt", "jungle")),
        (("labrador", "corgi"), ("mountain", "desert")),
    ):
        expected |= {("test", (0, place, breed)): EACH for breed in breeds for place in places}
    assert found == expected


def test_no_image_is_in_two_parts_and_all_challenges_are_as_large():
    for name, challenge in module._CHALLENGES.items():
        copies, at, of, rank = (
            grid.reshape(-1) for grid in np.meshgrid(range(2), range(6), range(4), range(3168), indexing="ij")
        )
        counts = np.bincount(module._parts(challenge, copies, at, of, rank) + 1, minlength=4)
        assert counts[1:].tolist() == [12_672, 12_672, 25_344], name
        assert counts.sum() == load_manifest("spawrious").samples


def test_a_folder_with_other_images_is_refused(many):
    folder = (many / "spawrious224" / spawrious.name(1, "snow", "corgi", 9)).parent
    extra = folder / "copy_of_8.png"
    extra.write_bytes((folder / "snow_corgi_8.png").read_bytes())
    with pytest.raises(
        DataError, match=r"more than 10 images: 1/snow/corgi \(11\); the challenge environments depend on the order"
    ):
        setsup.load("spawrious", many)
    (folder / "snow_corgi_9.png").unlink()
    with pytest.raises(
        DataError,
        match=r"that have the same number: 1/snow/corgi \(10\); the challenge environments depend on the order",
    ):
        setsup.load("spawrious", many)


@pytest.mark.parametrize("other", ["0/desert/husky", "1/city/corgi", "2/snow/corgi"])
def test_folders_that_spawrious_does_not_have_are_refused(many, other):
    folder = many / "spawrious224" / other
    folder.mkdir(parents=True)
    os.link(many / "1.png", folder / "0.png")
    with pytest.raises(
        DataError,
        match=f"contains folders that are not part of Spawrious: {other}; expected the places beach",
    ):
        setsup.load("spawrious", many)


def test_folders_that_were_renamed_are_refused(many):
    copy = many / "spawrious224" / "1"
    for old, new in (("snow", "moved"), ("beach", "snow"), ("moved", "beach")):
        (copy / old).rename(copy / new)
    with pytest.raises(
        DataError, match=r"other folders: 1/beach/bulldog \(snow_bulldog_…\), .*they may have been renamed"
    ):
        setsup.load("spawrious", many)


def test_a_folder_that_lacks_images_is_refused(many):
    lost = many / "spawrious224" / spawrious.name(1, "snow", "corgi", 9)
    lost.unlink()
    with pytest.raises(
        DataError, match=r"fewer than 10 images: 1/snow/corgi \(9\); the challenge environments depend on the order"
    ):
        setsup.load("spawrious", many)
    for file in lost.parent.iterdir():
        file.unlink()
    found = setsup.load("spawrious", many)  # a whole folder may be missing, with the challenges that need it
    assert len(found) == 47 * EACH
    assert [name for name in module._CHALLENGES if name in found.factors] == [
        "o2o_hard",
        "m2m_easy",
        "m2m_medium",
        "m2m_hard",
    ]
    with pytest.raises(DataError, match="no split 'o2o-easy'"):
        setsup.load("spawrious", many, split="o2o-easy")


def test_a_third_of_the_images_removed_is_refused(many):
    for file in sorted((many / "spawrious224").rglob("*.png"))[::3]:
        file.unlink()
    with pytest.raises(DataError, match=r"fewer than 10 images: .* and 45 more"):
        setsup.load("spawrious", many)


@pytest.mark.long("large or genuine files")
def test_what_one_challenge_needs_is_whole(tmp_path, caplog, parts_are_told):
    spawrious.write(tmp_path)
    found = setsup.load("spawrious", tmp_path)
    assert len(found) == 16 * 3168
    assert [name for name in module._CHALLENGES if name in found.factors] == ["m2m_easy"]
    assert found.factors.counts("m2m_easy").tolist() == [12_672, 12_672, 25_344]
    assert caplog.messages == []


def test_nothing_there(tmp_path):
    (tmp_path / "spawrious224").mkdir()
    with pytest.raises(DataError, match=r"0/desert/bulldog/desert_bulldog_0\.png not found.*setsup fetch spawrious"):
        setsup.load("spawrious", tmp_path)
