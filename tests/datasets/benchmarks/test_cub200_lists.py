"""Lists of CUB-200-2011 that were damaged, cut off or mixed up."""

import random

import pytest

import setsup
from setsup.errors import DataError
from tests.true_files import cub200

LISTS = ("images.txt", "image_class_labels.txt", "train_test_split.txt")


@pytest.fixture
def release(tmp_path):
    cub200.write(tmp_path)
    return tmp_path / "CUB_200_2011"


def changed(path, change):
    path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))


CASES = {
    "empty": (lambda lines: [], "is empty", LISTS),
    "half": (lambda lines: lines[: len(lines) // 2], "has no entry for image 13", LISTS),
    "twice": (lambda lines: [*lines, lines[3]], "repeats the image 4", LISTS),
    "numbers are words": (lambda lines: ["x" + line for line in lines], "line 1 is 'x1 .*; expected ", LISTS),
    "without what they say": (lambda lines: [line.split()[0] for line in lines], "line 1 is '1'; expected ", LISTS),
    "class 999": (lambda lines: [*lines[:-1], "24 999"], "line 24 is '24 999'; expected ", LISTS[1:2]),
    "class 0": (lambda lines: ["1 0", *lines[1:]], "line 1 is '1 0'; expected ", LISTS[1:2]),
    "another class": (lambda lines: ["1 2", *lines[1:]], "class of image 1 is 2; expected", LISTS[1:2]),
    "split by words": (lambda lines: ["1 train", *lines[1:]], "line 1 is '1 train'; expected ", LISTS[2:]),
    "split by another number": (lambda lines: ["1 2", *lines[1:]], "line 1 is '1 2'; expected ", LISTS[2:]),
    "no image": (lambda lines: ["1 photo.jpg", *lines[1:]], "line 1 is '1 photo.jpg'; expected ", LISTS[:1]),
    "one image twice": (lambda lines: [lines[0], "2 " + lines[0][2:], *lines[2:]], "_0000_795.jpg 2 times", LISTS[:1]),
}


@pytest.mark.parametrize(("case", "name"), [(case, name) for case, (*_, names) in CASES.items() for name in names])
def test_a_list_that_cannot_be_right_is_refused(release, case, name):
    change, message, _ = CASES[case]
    changed(release / name, change)
    with pytest.raises(DataError, match=message):
        setsup.load("cub200", release)


def test_images_that_no_list_names(release, caplog):
    """Lists that were cut off alike."""
    for name in LISTS:
        changed(release / name, lambda lines: lines[:12])
    assert len(setsup.load("cub200", release)) == 12
    assert "images.txt does not list 12 images" in caplog.text


def said(release):
    """What the lists say, read in another way: species and part of each image."""
    columns = [dict(line.split() for line in (release / name).read_text().splitlines() if line) for name in LISTS]
    images, classes, parts = columns
    assert set(images) == set(classes) == set(parts)
    return [(images[key].split("/")[0], "train" if parts[key] == "1" else "test") for key in images]


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("seed", range(40))
def test_mutants(release, seed):
    """The rows are what the lists say, or the lists are refused."""
    chance = random.Random(seed)
    path = release / chance.choice(LISTS)
    text = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(text))
        what = chance.randrange(4)
        if what == 0:
            text[at] = chance.choice(b"0123456789 \n./a\xff")
        elif what == 1:
            del text[at : at + chance.choice((1, 1, 30, 200))]
        elif what == 2:
            text[at:at] = text[chance.randrange(len(text)) :][: chance.choice((1, 8, 80))]
        else:
            lines = text.split(b"\n")
            chance.shuffle(lines)
            text = bytearray(b"\n".join(lines))
    path.write_bytes(text)
    try:
        dataset = setsup.load("cub200", release)
    except DataError:
        return
    factors = dataset.factors
    found = list(zip(factors.values("species").tolist(), factors.values("split").tolist(), strict=True))
    assert len(found) <= 24
    expected = said(release)
    # an image that is not there under the name that a mutant gives is left out with a warning
    assert found == expected or all(each in expected for each in found)
