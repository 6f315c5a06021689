"""Lists of other benchmarks that name nothing, or one image twice."""

import importlib
import shutil

import pytest

import setsup
from setsup.errors import DataError


def released(name, folder, lists):
    importlib.import_module(f"tests.true_files.{name.replace('-', '_')}").write(folder)
    for archive in list(folder.glob("*.zip")):
        shutil.unpack_archive(archive, folder)
        archive.unlink()
    return [path for each in lists for path in folder.rglob(each)]


@pytest.mark.parametrize(
    ("name", "lists", "heads"),
    [("online-products", ("Ebay_train.txt", "Ebay_test.txt"), 1), ("in-shop", ("list_eval_partition.txt",), 2)],
)
def test_nothing_listed(tmp_path, name, lists, heads):
    for path in released(name, tmp_path, lists):
        lines = path.read_text().splitlines()[:heads]
        path.write_text("\n".join(["0", *lines[1:]] if heads == 2 else lines) + "\n")
    with pytest.raises(DataError, match="contain no images"):
        setsup.load(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "lists"), [("online-products", ("Ebay_train.txt",)), ("in-shop", ("list_eval_partition.txt",))]
)
def test_an_image_twice(tmp_path, name, lists):
    (path,) = released(name, tmp_path, lists)
    lines = path.read_text().splitlines()
    if name == "in-shop":
        lines[0] = str(int(lines[0]) + 1)
    path.write_text("\n".join([*lines, lines[-1]]) + "\n")
    with pytest.raises(DataError, match="2 times"):
        setsup.load(name, tmp_path)
