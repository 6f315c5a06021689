import logging

import numpy as np
import pytest

import setsup
from setsup.datasets.benchmarks.imagenet import subset
from setsup.errors import DataError
from setsup.files import load_manifest
from tests.true_files import imagenet as whole
from tests.true_files.imagenet_100 import LIST, OTHER, TRAIN, write


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imagenet-100")
    write(folder)
    return folder


def test_the_list_of_cmc():
    assert len(subset.CMC) == len(set(subset.CMC)) == 100
    assert list(subset.CMC) == LIST
    assert (subset.CMC[0], subset.CMC[20], subset.CMC[-1]) == ("n02869837", "n02086910", "n02090622")


@pytest.mark.long("large or genuine files")
def test_rows(release):
    found = setsup.load("imagenet-100", release)
    files = [
        path.relative_to(release / split).as_posix()
        for split in ("train", "val")
        for folder in sorted((release / split).iterdir())
        for path in sorted(folder.iterdir())
        if folder.name in LIST
    ]
    assert found.paths(range(len(found))) == files
    assert found.factors.values("synset").tolist() == [name.partition("/")[0] for name in files]
    assert found.factors["synset"].levels == tuple(sorted(LIST))
    assert found.factors.counts("synset").tolist() == [TRAIN + 1] * 100
    assert found.name == "imagenet-100"
    assert len(setsup.load("imagenet", release)) == len(found) + TRAIN + 1


def test_rows_are_those_of_imagenet_without_the_others(release):
    of_all = setsup.load("imagenet", release, where=f"synset != '{OTHER}'")
    found = setsup.load("imagenet-100", release)
    assert found.paths(range(len(found))) == of_all.paths(range(len(of_all)))
    for row in (0, 250, 499):
        assert np.array_equal(found.fetch(row)["image"], of_all.fetch(row)["image"])


@pytest.mark.parametrize("form", ["file", "list", "text"])
def test_another_list(tmp_path, release, form):
    three = ["n02116738", "n01440764", "n01558993"]
    (tmp_path / "three.txt").write_text("\ufeff" + "".join(f"{synset} what it is called\r\n\n" for synset in three))
    given = {"file": tmp_path / "three.txt", "list": three, "text": str(tmp_path / "three.txt")}[form]
    found = setsup.load("imagenet-100", release, synsets=given)
    assert found.factors["synset"].levels == tuple(sorted(three))
    assert len(found) == 3 * (TRAIN + 1)


def test_categories_follow_the_synsets(tmp_path):
    whole.write(tmp_path)
    found = setsup.load("imagenet-100", tmp_path, synsets=["n04146614", "n02012849"])
    named = dict(zip(*(found.factors.values(name).tolist() for name in ("synset", "category")), strict=True))
    assert named == {"n02012849": "crane (n02012849)", "n04146614": "school bus"}
    assert len(found) == 2 * (whole.TRAIN + whole.VAL)


@pytest.mark.long("large or genuine files")
def test_imagenet_in_its_own_place_is_found(tmp_path, monkeypatch):
    (tmp_path / "imagenet").mkdir()
    write(tmp_path / "imagenet")
    assert len(setsup.load("imagenet-100", tmp_path)) == 500
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path))
    assert len(setsup.load("imagenet-100")) == 500


def test_pictures_without_labels_are_left_out(tmp_path, caplog):
    whole.write_tree(tmp_path, sorted_val=False)
    with caplog.at_level(logging.WARNING, "setsup"):
        found = setsup.load("imagenet-100", tmp_path, synsets=["n04146614", "n02012849"])
    assert "10 images with an unknown synset are left out" in caplog.text
    assert set(found.factors.values("split")) == {"train"}


@pytest.mark.parametrize(
    ("synsets", "message"),
    [
        (["n01558993", "n99999999"], r"no images for 1 of the 2 synsets of synsets=: n99999999"),
        (["n01558993", "n01558993"], "lists n01558993 twice"),
        (["robin"], "'robin', which is not a synset"),
        ([7], "'7', which is not a synset"),
        ([], "lists no synsets"),
        ("/nowhere/list.txt", "does not exist; expected a list of synsets"),
    ],
)
def test_bad_lists(release, synsets, message):
    with pytest.raises(DataError, match=message):
        setsup.load("imagenet-100", release, synsets=synsets)


def test_bad_files(tmp_path, release):
    for content, message in (
        (b"", "lists no synsets"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"dog\n", "'dog', which is not"),
    ):
        (tmp_path / "list.txt").write_bytes(content)
        with pytest.raises(DataError, match=message):
            setsup.load("imagenet-100", release, synsets=tmp_path / "list.txt")


def test_too_few_synsets(tmp_path):
    whole.write(tmp_path)
    with pytest.raises(DataError, match=r"no images for 100 of the 100 synsets of CMC's list: n02869837, n01749939"):
        setsup.load("imagenet-100", tmp_path)


def test_the_manifest(release):
    manifest = load_manifest("imagenet-100")
    assert manifest.licence.sign == load_manifest("imagenet").licence.sign
    told = [factor.name for factor in manifest.factors]
    assert [name for name in told if name != "category"] == list(setsup.load("imagenet-100", release).factors.names)
