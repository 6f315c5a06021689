"""MNIST-M, Digits-DG and Office-31: rows equal to what a walk over the files, or their texts, gives."""

import io

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from tests.true_files import digits_dg, mnist_m, office31
from tests.true_files.pacs import put


def _decoded(content):
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def test_mnist_m(tmp_path):
    mnist_m.write(tmp_path)
    found = setsup.load("mnist-m", tmp_path)
    rows = [(part, number) for part, count in mnist_m.COUNTS.items() for number in range(count)]
    assert found.factors.values("digit").tolist() == mnist_m.digits("train") + mnist_m.digits("test")
    assert found.factors.values("split").tolist() == [part for part, _ in rows]
    expected = [_decoded((tmp_path / f"mnist_m/mnist_m_{part}/{row:08}.png").read_bytes()) for part, row in rows]
    assert np.array_equal(found.fetch(range(len(rows)))["image"], expected)
    for name, count in mnist_m.COUNTS.items():
        assert len(setsup.load("mnist-m", tmp_path, split=name)) == count


@pytest.mark.parametrize(
    ("line", "message"),
    [("00000000.png 10", "line 1 is '00000000.png 10'"), ("00000000.png", "line 1")],
)
def test_bad_lists_of_mnist_m(tmp_path, line, message):
    mnist_m.write(tmp_path)
    (tmp_path / "mnist_m" / "mnist_m_train_labels.txt").write_text(f"{line}\n")
    with pytest.raises(DataError, match=message) as found:
        setsup.load("mnist-m", tmp_path)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("form", ["zip", "unpacked"])
def test_digits_dg(tmp_path, form):
    files = digits_dg.files()
    if form == "zip":
        digits_dg.write(tmp_path)
    else:
        put(tmp_path, files)
    found = setsup.load("digits-dg", tmp_path)
    rows = sorted(path.split("/") for path in files)  # domains, parts and digits are in alphabetical order
    for column, name in enumerate(("domain", "split", "digit")):
        assert list(map(str, found.factors.values(name))) == [row[column] for row in rows]
    expected = [_decoded(files["/".join(row)]) for row in rows]
    assert np.array_equal(found.fetch(range(len(rows)))["image"], expected)
    left = setsup.load("digits-dg", tmp_path, split="leave-out-svhn")
    told = list(zip(left.factors.values("domain"), left.factors.values("split"), strict=True))
    each = len(digits_dg.DIGITS)
    counts = {("svhn", "test"): 5 * each} | {(name, "train"): 4 * each for name in ("mnist", "mnist_m", "syn")}
    assert {pair: told.count(pair) for pair in set(told)} == counts


@pytest.mark.parametrize("form", ["as published", "of Dassl"])
def test_office31(tmp_path, form):
    files = office31.files()
    if form == "as published":
        office31.write(tmp_path)
    else:
        put(tmp_path / "office31", files)
    found = setsup.load("office31", tmp_path)
    rows = sorted(path.split("/") for path in files)
    assert found.factors.values("domain").tolist() == [row[0] for row in rows]
    assert found.factors.values("category").tolist() == [row[1] for row in rows]
    for number in range(0, len(rows), 7):
        assert np.array_equal(found.fetch(number)["image"], _decoded(files["/".join(rows[number])]))
    assert set(setsup.load("office31", tmp_path, split="dslr").factors.values("domain")) == {"dslr"}


def test_domains_of_other_datasets_are_refused(tmp_path):
    office31.write(tmp_path)
    put(tmp_path, {"caltech/images/mug/1.jpg": b""})
    with pytest.raises(DataError, match=r"images of another domain, with the same category: caltech"):
        setsup.load("office31", tmp_path)
