"""A user's own manifest of folders: spellings, lists, parts in archives, and images of other datasets beside them."""

import logging
import zipfile
from pathlib import Path

import pytest
from PIL import Image

import setsup
from setsup.datasets import Dataset
from setsup.errors import DataError

PETS = r"""layout:
  images: '(?P<domain>[A-Za-z -]+)/(?P<category>cat|dog)/(?P<file>[0-9]+\.png)'
  parts: '[a-z]+\.zip'
  spellings: {domain: {Art: '(?i)art|paintings', Photo: '(?i)photos?'}}
  order: {domain: [Photo, Art], category: null, file: null}
  unique: true
  others: '(?P<domain>[a-z]+_[a-z]+)/(?P<category>[a-z]+)/[0-9]+\.png'
  lists:
    gone: {listed: duplicates.txt}
    part: {train: '{domain}_train.txt', test: ['{domain}_test.txt', more.txt]}
  without: gone == 'listed'
factors:
  - {name: domain, kind: nominal}
  - {name: category, kind: nominal}
  - {name: split, kind: nominal, levels: [train, test], codes: [train, test], from: part, role: split}
"""
COLORS = {"PHOTO/cat/1.png": 1, "PHOTO/dog/10.png": 2, "photos/cat/2.png": 3, "photos/cat/1.png": 4, "art/dog/3.png": 5}


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """A manifest with its images beside it."""
    folder = tmp_path / "pets"
    for name, color in COLORS.items():
        image(folder / name, color)
    (folder / "pets.yaml").write_text(PETS)
    return folder / "pets.yaml"


def image(path: Path, color: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (16, 12), (color, 0, 0)).save(path)


def colors(found: Dataset) -> list[int]:
    values: list[int] = found.fetch(range(len(found.factors)))["image"][:, 0, 0, 0].tolist()
    return values


def test_spellings_are_one_value_in_order_and_equal_images_count_once(pets: Path) -> None:
    found = setsup.open(pets)
    assert found.factors["domain"].levels == ("Art", "Photo")
    assert found.factors.values("domain").tolist() == ["Photo"] * 3 + ["Art"]
    assert found.factors.values("category").tolist() == ["cat", "cat", "dog", "dog"]
    assert colors(found) == [1, 3, 2, 5]
    assert "split" not in found.factors


def test_lists_are_a_column(pets: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "setsup")
    lists = pets.parent / "some" / "lists"
    lists.mkdir(parents=True)
    (lists / "Photo_train.txt").write_text("PHOTO/cat/1.png 0\r\n\r\n./x/y/photos/cat/2.png\r\nnone/cat/2.png 3\r\n")
    found = setsup.open(pets)
    assert found.factors.values("split").tolist() == ["train", "train", None, None]
    assert "pets: the lists lack 1 of 3 images, such as dog/10.png; these have no part" in caplog.messages
    (lists / "more.txt").write_text("dog\\10.png 4\n10.png\n")
    (pets.parent / "more.txt").write_text("dog/3.png\n")
    assert setsup.open(pets).factors.values("split").tolist() == ["train", "train", None, "test"]
    (lists / "more.txt").rename(lists / "Art_test.txt")
    assert setsup.open(pets).factors.values("split").tolist() == ["train", "train", None, "test"]
    (pets.parent / "more.txt").write_text("cat/1.png\n")
    with pytest.raises(DataError, match=r"more\.txt contains an image that is also in the list of another part"):
        setsup.open(pets)
    (pets.parent / "more.txt").write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"more\.txt is not UTF-8 text .*; correct the data or the manifest"):
        setsup.open(pets)


def test_images_of_a_list_are_left_out(pets: Path, caplog: pytest.LogCaptureFixture) -> None:
    (pets.parent / "duplicates.txt").write_text("PHOTO/cat/1.png\nart/dog/4.png\n")
    assert colors(setsup.open(pets)) == [3, 2, 5]
    assert "duplicates.txt: 1 of its images are left out" in caplog.text
    (pets.parent / "duplicates.txt").write_text("".join(f"{name}\n" for name in COLORS))
    with pytest.raises(
        DataError, match=r"duplicates\.txt: the condition .* of layout\.without excludes every row; correct"
    ):
        setsup.open(pets)


def test_lists_outside_the_root_are_not_read(pets: Path) -> None:
    (pets.parent.parent / "lists").mkdir()
    for folder in (pets.parent.parent, pets.parent.parent / "lists"):
        (folder / "more.txt").write_text("PHOTO/cat/1.png\n")
    assert "split" not in setsup.open(pets).factors


def test_lists_of_each_image_are_refused(pets: Path) -> None:
    for number in range(1001):
        (pets.parent / "art" / "dog" / f"1{number:04}.png").touch()
    pets.write_text(PETS.replace("['{domain}_test.txt', more.txt]", "'{file}.txt'"))
    with pytest.raises(
        DataError, match=r"pets: \{file\}\.txt in layout\.lists expands to 1,00. files, more than the limit of 1,000"
    ):
        setsup.open(pets)


def test_archives_are_joined(pets: Path) -> None:
    whole = setsup.open(pets).factors.fingerprint
    for domain in ("PHOTO", "art"):
        with zipfile.ZipFile(pets.parent / f"{domain.lower()}.zip", "w") as archive:
            for path in sorted((pets.parent / domain).rglob("*.png")):
                archive.write(path, path.relative_to(pets.parent))
                path.unlink()
    found = setsup.open(pets)
    assert found.factors.fingerprint == whole
    assert colors(found) == [1, 3, 2, 5]


def test_images_of_another_dataset_are_refused(pets: Path) -> None:
    image(pets.parent / "clip_art" / "horse" / "1.png", 9)
    assert len(setsup.open(pets).factors) == 4
    image(pets.parent / "clip_art" / "dog" / "1.png", 9)
    said = r"pets: .* contains images of another domain, with the same category: clip_art; expected Photo, Art;"
    with pytest.raises(DataError, match=said):
        setsup.open(pets)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "{domain: {Art",
            "{domian: {Art",
            r"line 4: layout\.spellings must be a mapping of named groups of images \(domain, cat",
        ),
        ("(?i)art", "(?i)[art", r"line 4: layout\.spellings must be a valid RE2 regular expression"),
        (
            "{Art: '(?i)art|paintings', Photo: '(?i)photos?'}",
            "Art",
            r"line 4: layout\.spellings must be a mapping of named groups",
        ),
        (r"'[a-z]+\.zip'", "3", r"line 3: layout\.parts must be a regular expression"),
        ("(?P<domain>[a-z]+_", "(?P<style>[a-z]+_", r"line 7: layout\.others must be .* \(domain, category, file\)"),
        ("{listed: dup", "{listed: ../dup", r"line 8: layout\.lists must be a path inside"),
        ("'{domain}_train", "'{domian}_train", r"line 8: layout\.lists must be .*; did you mean 'domain'"),
        ("gone: {", "file: {", r"line 8: layout\.lists must be a mapping of new column names \(not names of groups"),
        ("{listed: duplicates.txt}", "duplicates.txt", r"line 8: layout\.lists must be a mapping of new column names"),
        (
            "unique: true",
            "checks: part == 'train'",
            r"layout\.checks\[0\] must be a valid condition on columns \(unknown",
        ),
        ("from: part", "from: parts", r"factors\[2\]\.from must be the name of a column, .*; did you mean 'part'"),
    ],
)
def test_errors_name_the_key(pets: Path, old: str, new: str, said: str) -> None:
    assert old in PETS
    pets.write_text(PETS.replace(old, new, 1))
    with pytest.raises(DataError, match=said):
        setsup.open(pets)


@pytest.mark.parametrize("key", ["others: '(?P<a>x)'", "spellings: {a: {b: c}}", "lists: {c: {b: c.txt}}"])
def test_keys_of_images_are_refused_beside_tables(key: str, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(
        "layout:\n  tables: [{file: a.csv, columns: [x]}]\n  path: '{x}'\n  images: '(?P<a>.)'\n"
        f"  {key}\nfactors:\n  - {{name: x, kind: nominal}}\n"
    )
    with pytest.raises(DataError, match=rf"line 5: layout\.{key.partition(':')[0]} cannot be combined with"):
        setsup.open(tmp_path / "own.yaml")
