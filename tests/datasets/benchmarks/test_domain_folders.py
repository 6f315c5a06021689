"""PACS, VLCS, Office-Home, DomainNet, TerraIncognita and NICO++: rows equal to what a walk over the files gives."""

import io
import json
import shutil
import zipfile

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.registry import find_opener
from setsup.errors import DataError
from tests.true_files import domainnet, nicopp, office_home, pacs, terra_incognita, vlcs


def _as_image_folders(files, domains):
    """Rows as DomainBed has them: sorted domains, each read as a folder of sorted classes with sorted files."""
    rows = [path.split("/") for path in files if path.split("/")[0] in domains and path.count("/") == 2]
    return sorted(rows, key=lambda row: [part.encode() for part in row])


def _check(found, files, domains):
    rows = _as_image_folders(files, domains)
    assert len(found) == len(rows)
    assert found.factors.values("domain").tolist() == [row[0] for row in rows]
    assert found.factors.values("category").tolist() == [row[1] for row in rows]
    assert [path.split("/")[-3:] for path in found.paths(range(len(rows)))] == rows
    for number in range(0, len(rows), 5):
        expected = Image.open(io.BytesIO(files["/".join(rows[number])])).convert("RGB")
        assert np.array_equal(found.fetch(number)["image"], np.asarray(expected))


@pytest.mark.parametrize("form", ["as published", "zip", "inner folder", "tar beside"])
def test_pacs(tmp_path, form):
    pacs.write(tmp_path)
    files = pacs.tree(pacs.DOMAINS, pacs.CATEGORIES)
    root = tmp_path
    if form in ("zip", "tar beside"):
        shutil.make_archive(str(tmp_path / "PACS"), "zip" if form == "zip" else "tar", tmp_path, "kfold")
        shutil.rmtree(tmp_path / "kfold")
    elif form == "inner folder":
        root = tmp_path / "kfold"
    found = setsup.load("pacs", root)
    _check(found, files, pacs.DOMAINS)
    lists = pacs.lists(files)
    for row, path in enumerate(found.paths(range(len(found)))):
        path = "/".join(path.split("/")[-3:])
        [part] = [name.split("_")[-2] for name, text in lists.items() if f"{path} " in text.decode()]
        assert found.factors.values("split")[row] == {"train": "train", "crossval": "validation"}[part]


def test_pacs_without_lists_and_with_contradicting_ones(tmp_path):
    pacs.write(tmp_path, listed=False)
    assert setsup.load("pacs", tmp_path).factors.names == ("domain", "category")
    line = b"photo/dog/pic_001.jpg 1\r\n"
    for part in ("train", "crossval"):
        (tmp_path / "kfold" / f"photo_{part}_kfold.txt").write_bytes(line)
    with pytest.raises(
        DataError, match=r"photo_crossval_kfold\.txt contains an image that is also in the list of another part"
    ):
        setsup.load("pacs", tmp_path)
    (tmp_path / "kfold" / "photo_crossval_kfold.txt").write_bytes(b"\n photo/cat \n\nnothing\n")
    split = setsup.load("pacs", tmp_path).factors.codes("split")
    assert (np.count_nonzero(split == 0), np.count_nonzero(split == 1)) == (1, 0)


def test_one_domain_is_left_out(tmp_path):
    pacs.write(tmp_path)
    whole = setsup.load("pacs", tmp_path)
    split = setsup.load("pacs", tmp_path, split="leave-out-sketch")
    assert len(split) == len(whole)
    domain, part = split.factors.values("domain"), split.factors.values("split")
    assert set(part[domain == "sketch"]) == {"test"}
    for other in ("art_painting", "cartoon", "photo"):
        assert {name: int((part[domain == other] == name).sum()) for name in ("train", "validation")} == {
            "train": 14,
            "validation": 4,
        }
    test = setsup.load("pacs", tmp_path, split="leave-out-sketch-test")
    assert set(test.factors.values("domain")) == {"sketch"}
    train = setsup.load("pacs", tmp_path, split="leave-out-sketch-train")
    assert train.paths(range(len(train))) == [whole.paths([row])[0] for row in np.flatnonzero(part == "train")]
    with pytest.raises(DataError, match="did you mean 'leave-out-photo'"):
        setsup.load("pacs", tmp_path, split="leave-out-foto")


def test_a_domain_that_is_not_there_cannot_be_left_out(tmp_path):
    pacs.write(tmp_path, listed=False)
    shutil.rmtree(tmp_path / "kfold" / "sketch")
    assert set(setsup.load("pacs", tmp_path).factors.values("domain")) == {"art_painting", "cartoon", "photo"}
    with pytest.raises(
        DataError, match=r"'leave-out-sketch' of pacs cannot be created from the available files: no row satisfies"
    ):
        setsup.load("pacs", tmp_path, split="leave-out-sketch")


def test_vlcs(tmp_path):
    vlcs.write(tmp_path)
    files = vlcs.tree(vlcs.DOMAINS, vlcs.CATEGORIES, "img_{:04}.jpg", each=4)
    _check(setsup.load("vlcs", tmp_path), files, vlcs.DOMAINS)


@pytest.mark.parametrize("form", ["zip", "folder", "other spelling"])
def test_office_home(tmp_path, form):
    office_home.write(tmp_path)
    files = office_home.tree(office_home.DOMAINS, office_home.CATEGORIES, "{:05}.jpg", each=4)
    if form == "zip":
        _check(setsup.load("office-home", tmp_path), files, office_home.DOMAINS)
        return
    archive = tmp_path / f"{office_home.TOP}.zip"
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path)
    archive.unlink()
    if form == "folder":
        _check(setsup.load("office-home", tmp_path), files, office_home.DOMAINS)
        return
    (tmp_path / office_home.TOP / "Real World").rename(tmp_path / office_home.TOP / "real_world")
    found = setsup.load("office-home", tmp_path / office_home.TOP)
    assert set(found.factors.values("domain")) == set(office_home.DOMAINS)
    assert len(found) == len(files)


@pytest.mark.parametrize("form", ["zips", "folders", "mixed"])
def test_domainnet(tmp_path, form):
    domainnet.write(tmp_path)
    for domain in domainnet.DOMAINS[: {"zips": 0, "folders": 6, "mixed": 3}[form]]:
        archive = tmp_path / f"{domain}.zip"
        with zipfile.ZipFile(archive) as file:
            file.extractall(tmp_path)
        if form == "folders" or domain == "clipart":  # of the others both are there: rows must not come twice
            archive.unlink()
    found = setsup.load("domainnet", tmp_path)
    files = domainnet.files()
    _check(found, files, domainnet.DOMAINS)
    lists = domainnet.lists()
    for row in range(len(found)):
        path = "/".join(found.paths([row])[0].split("/")[-3:])
        part = found.factors.values("split")[row]
        assert f"{path} ".encode() in lists[f"{path.split('/')[0]}_{part}.txt"]
    assert len(setsup.load("domainnet", tmp_path, split="test")) == 18


def test_domainnet_without_the_duplicates_that_domainbed_lists(tmp_path, caplog):
    domainnet.write(tmp_path)
    gone = ["clipart/airplane/clipart_002_000001.jpg", "real/The_Eiffel_Tower/real_003_000004.jpg"]
    (tmp_path / "domain_net_duplicates.txt").write_text("\n".join([*gone, "real/none/real_009_000001.jpg"]))
    found = setsup.load("domainnet", tmp_path)
    assert "domain_net_duplicates.txt: 2 of its images are left out" in caplog.text
    _check(found, {path: content for path, content in domainnet.files().items() if path not in gone}, domainnet.DOMAINS)


def test_some_domains_of_domainnet(tmp_path):
    domainnet.write(tmp_path)
    for domain in ("infograph", "painting", "quickdraw", "real"):
        (tmp_path / f"{domain}.zip").unlink()
    assert set(setsup.load("domainnet", tmp_path).factors.values("domain")) == {"clipart", "sketch"}


@pytest.mark.parametrize("form", ["as published", "zip", "as downloaded", "the challenge", "the tree alone"])
def test_nicopp(tmp_path, form):
    nicopp.write(tmp_path)
    if form == "as downloaded":
        (tmp_path / "DG_Benchmark").mkdir()
        shutil.make_archive(str(tmp_path / "DG_Benchmark" / "NICO_DG_Benchmark"), "zip", tmp_path, "NICO_DG")
        shutil.rmtree(tmp_path / "NICO_DG")
        (tmp_path / "NICO_DG_official").rename(tmp_path / "DG_Benchmark" / "NICO_DG_Benchmark_annotation")
    elif form == "the challenge":
        (tmp_path / "public_dg_0416").mkdir()
        (tmp_path / "NICO_DG").rename(tmp_path / "public_dg_0416" / "train")
    if form == "zip":
        shutil.make_archive(str(tmp_path / "NICO_DG_Benchmark"), "zip", tmp_path, "NICO_DG")
        shutil.rmtree(tmp_path / "NICO_DG")
    found = setsup.load("nicopp", tmp_path / "NICO_DG" if form == "the tree alone" else tmp_path)
    _check(found, nicopp.files(), nicopp.DOMAINS)
    if form in ("the tree alone", "the challenge"):
        assert "split" not in found.factors
        return
    lists = nicopp.lists()
    for row, path in enumerate(found.paths(range(len(found)))):
        [part] = [name for name, text in lists.items() if "/".join(path.split("/")[-3:]) in text.decode()]
        assert part == f"{found.factors.values('domain')[row]}_{found.factors.values('split')[row]}.txt"
    both = setsup.load("nicopp", tmp_path, split="dim-grass").factors
    tested = both.values("split") == "test"
    assert set(both.values("domain")[tested]) == {"dim", "grass"}
    assert np.count_nonzero(tested) == sum(lists[f"{name}_test.txt"].count(b"\n") for name in ("dim", "grass"))
    assert set(both.values("domain")[~tested]) == {"autumn", "outdoor", "rock", "water"}
    others = ("autumn", "outdoor", "rock", "water")
    assert np.count_nonzero(~tested) == sum(lists[f"{name}_train.txt"].count(b"\n") for name in others)


def _as_domainbed_copies():
    """Rows as its script copies them: of four locations and ten categories, an image into the folder of each animal."""
    said = terra_incognita.annotations()
    names = {each["id"]: each["name"] for each in said["categories"]}
    found = set()
    for image in said["images"]:
        for each in said["annotations"]:
            category = names[each["category_id"]]
            wanted = category in ("bird", "bobcat", "cat", "coyote", "dog", "empty", "opossum", "rabbit", "raccoon")
            if each["image_id"] == image["id"] and str(image["location"]) in ("38", "46", "100", "43") and wanted:
                found.add((f"location_{image['location']}", category, image["file_name"]))
    return sorted(found)


@pytest.mark.parametrize("form", ["all", "five parts", "copied"])
def test_terra_incognita(tmp_path, form):
    terra_incognita.write(tmp_path)
    rows, content = _as_domainbed_copies(), terra_incognita.images()
    if form == "five parts":
        said = terra_incognita.annotations()
        (tmp_path / "caltech_images_20210113.json").unlink()
        (tmp_path / "eccv_18_annotation_files").mkdir()
        for number, part in enumerate(("train", "cis_val", "cis_test", "trans_val", "trans_test")):
            images = said["images"][number::5]
            keys = {image["id"] for image in images}
            some = [each for each in said["annotations"] if each["image_id"] in keys]
            text = json.dumps({**said, "images": images, "annotations": some})
            (tmp_path / "eccv_18_annotation_files" / f"{part}_annotations.json").write_text(text)
    elif form == "copied":
        for location, category, name in rows:
            place = tmp_path / "terra_incognita" / location / category
            place.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content[f"eccv_18_all_images_sm/{name}"])
        shutil.rmtree(tmp_path / "eccv_18_all_images_sm")
    found = setsup.load("terra-incognita", tmp_path)
    table = found.factors
    assert list(zip(table.values("domain").tolist(), table.values("category").tolist(), strict=True)) == [
        row[:2] for row in rows
    ]
    assert [path.split("/")[-1] for path in found.paths(range(len(found)))] == [row[2] for row in rows]
    for number in range(0, len(rows), 7):
        expected = Image.open(io.BytesIO(content[f"eccv_18_all_images_sm/{rows[number][2]}"])).convert("RGB")
        assert np.array_equal(found.fetch(number)["image"], np.asarray(expected))
    if form == "copied":
        assert "sequence" not in table
    else:
        sequence = {each["file_name"]: each["seq_id"] for each in terra_incognita.annotations()["images"]}
        assert table.values("sequence").tolist() == [sequence[row[2]] for row in rows]
    assert set(setsup.load("terra-incognita", tmp_path, split="leave-out-38-test").factors.values("domain")) == {
        "location_38"
    }


def _break(said, what):
    if what == "no categories":
        del said["categories"]
    elif what == "a category that is not declared":
        said["annotations"][0]["category_id"] = 99
    elif what == "other locations":
        for image in said["images"]:
            image["location"] = "7"
    elif what == "an image without a name":
        image = next(one for one in said["images"] if one["id"] == said["annotations"][0]["image_id"])
        del image["file_name"]
    elif what == "annotations that are no list":
        said["annotations"] = 3
    return said


@pytest.mark.parametrize(
    "what",
    [
        "no categories",
        "a category that is not declared",
        "other locations",
        "an image without a name",
        "annotations that are no list",
    ],
)
def test_damaged_annotations(tmp_path, what):
    terra_incognita.write(tmp_path)
    said = _break(terra_incognita.annotations(), what)
    (tmp_path / "caltech_images_20210113.json").write_text(json.dumps(said))
    with pytest.raises(DataError, match=r"annotation"):
        setsup.load("terra-incognita", tmp_path)


def test_images_without_annotations_and_annotations_without_images(tmp_path):
    terra_incognita.write(tmp_path)
    lost = next((tmp_path / "eccv_18_all_images_sm").glob(f"{_as_domainbed_copies()[0][2]}"))
    lost.unlink()
    with pytest.raises(DataError, match=rf"1 of .* annotated images are missing, such as .*{lost.name}"):
        setsup.load("terra-incognita", tmp_path)
    (tmp_path / "caltech_images_20210113.json").unlink()
    with pytest.raises(DataError, match=r"no annotations next to that folder; use caltech_images_20210113\.json"):
        setsup.load("terra-incognita", tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(DataError, match=r"art_painting/<category>/\*\.jpg not found.*setsup fetch pacs"):
        setsup.load("pacs", tmp_path)
    (tmp_path / "photo").mkdir()
    with pytest.raises(DataError, match="not found"):
        setsup.load("pacs", tmp_path)


@pytest.mark.parametrize("name", ["pacs", "vlcs", "office-home", "domainnet", "terra-incognita", "nicopp"])
def test_the_cards_name_every_domain(name, tmp_path):
    from setsup.files import load_manifest

    manifest = load_manifest(name)
    levels = next(factor.levels for factor in manifest.factors if factor.name == "domain")
    left = [split.test for split in manifest.splits if split.name.startswith("leave-out-")]
    assert sorted(left) == sorted(f'domain == "{level}"' for level in levels)
    assert callable(find_opener(name))


def test_images_that_the_lists_lack_are_told(tmp_path, caplog):
    pacs.write(tmp_path)
    caplog.set_level("INFO", "setsup")
    setsup.load("pacs", tmp_path)
    assert "in no split" not in caplog.text
    path = tmp_path / "kfold" / "cartoon_train_kfold.txt"
    first, *others = path.read_text().splitlines(keepends=True)
    path.write_text("".join(others))
    name = first.split()[0].partition("/")[2]
    assert setsup.load("pacs", tmp_path).factors.codes("split").tolist().count(-1) == 1
    assert f"pacs: the lists lack 1 of 72 images, such as {name}; these have no split" in caplog.messages
