import string

import numpy as np
import pytest

import setsup
from setsup.errors import DataError
from tests.true_files import emnist, mnist

FASHION = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
KUZUSHIJI = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


@pytest.mark.parametrize(
    ("name", "factor", "levels"), [("fashion-mnist", "category", FASHION), ("kmnist", "character", KUZUSHIJI)]
)
def test_relatives_of_mnist_have_its_rows_and_labels_of_their_own(tmp_path, name, factor, levels):
    pictures = mnist.write(tmp_path, per_split=30)
    found, digits = setsup.load(name, tmp_path), setsup.load("mnist", tmp_path)
    assert found.name == name
    assert np.array_equal(found.fetch(np.arange(60))["image"][..., 0], pictures)
    assert found.factors.values(factor).tolist() == [levels[digit] for digit in digits.factors.values("digit")]
    assert np.array_equal(found.factors.codes("split"), digits.factors.codes("split"))


@pytest.mark.parametrize(
    ("part", "characters", "first"),
    [
        ("byclass", string.digits + string.ascii_uppercase + string.ascii_lowercase, 0),
        ("bymerge", string.digits + string.ascii_uppercase + "abdefghnqrt", 0),
        ("balanced", string.digits + string.ascii_uppercase + "abdefghnqrt", 0),
        ("letters", string.ascii_lowercase, 1),
        ("digits", string.digits, 0),
        ("mnist", string.digits, 0),
    ],
)
def test_parts_of_emnist_stand_upright(tmp_path, part, characters, first):
    rows = 2 * len(characters)
    pictures = emnist.write(tmp_path, part=part, classes=len(characters), first=first, rows=rows)
    found = setsup.load("emnist", tmp_path, part=part)
    assert found.factors.values("character").tolist() == [*characters] * 4
    everything = np.random.default_rng(0).permutation(2 * rows)  # of both files, in any order
    assert np.array_equal(found.fetch(everything)["image"][..., 0], pictures[everything])
    assert np.array_equal(found.fetch(3)["image"][..., 0], pictures[3])
    into = np.empty((5, 28, 28, 1), np.uint8)
    found.fetch_into(np.arange(5), {"image": into})
    assert np.array_equal(into[..., 0], pictures[:5])


def test_labels_beyond_the_characters_are_refused(tmp_path):
    emnist.write(tmp_path, part="letters", classes=26, first=0, rows=52)  # counted from 0
    with pytest.raises(DataError, match="the label of row 0 is 0; expected a character from 1 to 26"):
        setsup.load("emnist", tmp_path, part="letters")
    with pytest.raises(DataError, match=r"part must be .*letters.* not 'letter'|did you mean"):
        setsup.load("emnist", tmp_path, part="letter")
    with pytest.raises(DataError, match="emnist-digits-train-images"):
        setsup.load("emnist", tmp_path, part="digits")
