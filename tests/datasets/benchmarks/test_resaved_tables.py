"""Tables of releases that were opened in a spreadsheet or by pandas, and saved again: the datasets stay the same."""

import csv
import importlib
import io

import pytest

import setsup
from setsup.errors import DataError


def resaved(content: bytes, delimiter: str, quoting: int, start: str = "", newline: str = "\n") -> bytes:
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=newline).writerows(rows)
    return (start + text.getvalue()).encode()


WAYS = {
    "quoted": (",", csv.QUOTE_ALL),
    "semicolons": (";", csv.QUOTE_MINIMAL),
    "quoted semicolons": (";", csv.QUOTE_ALL, "\ufeff", "\r\n"),
    "tabs": ("\t", csv.QUOTE_MINIMAL),
}
TABLES = ["camelyon17", "celeba", "fmow", "iwildcam", "shapenet", "ut-zap50k", "video-orbits", "waterbirds"]


@pytest.fixture(scope="module", params=TABLES)
def release(request, tmp_path_factory):
    root = tmp_path_factory.mktemp(request.param)
    importlib.import_module(f"tests.true_files.{request.param.replace('-', '_')}").write(root)
    return request.param, root, setsup.load(request.param, root)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("way", WAYS)
def test_it_is_the_same_dataset(release, way):
    name, root, before = release
    tables = {path: path.read_bytes() for path in root.rglob("*.csv")}
    assert tables
    try:
        for path, content in tables.items():
            path.write_bytes(resaved(content, *WAYS[way]))
        after = setsup.load(name, root)
    finally:
        for path, content in tables.items():
            path.write_bytes(content)
    assert after.factors.fingerprint == before.factors.fingerprint


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("head", ["image_id", "id", "filename", '"id"'])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_celeba_as_csv_by_any_name_of_its_first_column(tmp_path, head, delimiter):
    importlib.import_module("tests.true_files.celeba").write(tmp_path)
    before = setsup.load("celeba", tmp_path)
    for stem, names in (("Anno/identity_CelebA", "identity"), ("Eval/list_eval_partition", "partition")):
        found = tmp_path / f"{stem}.txt"
        lines = [delimiter.join(line.split()) for line in found.read_text().splitlines()]
        found.with_suffix(".csv").write_text("\n".join([delimiter.join([head, names]), *lines]))
        found.unlink()
    assert setsup.load("celeba", tmp_path).factors.fingerprint == before.factors.fingerprint


def test_celeba_as_csv_without_a_header_says_so(tmp_path):
    importlib.import_module("tests.true_files.celeba").write(tmp_path)
    found = tmp_path / "Anno" / "identity_CelebA.txt"
    found.with_suffix(".csv").write_text(found.read_text().replace(" ", ","))
    found.unlink()
    with pytest.raises(DataError, match=r"line 1 is .*expected the names of columns"):
        setsup.load("celeba", tmp_path)


@pytest.mark.parametrize("name", ["fmow", "iwildcam"])
def test_lines_that_end_with_carriage_returns_alone(tmp_path, name):
    importlib.import_module(f"tests.true_files.{name}").write(tmp_path)
    before = setsup.load(name, tmp_path).factors.fingerprint
    for path in tmp_path.rglob("*.csv"):
        path.write_bytes(resaved(path.read_bytes(), ",", csv.QUOTE_MINIMAL, newline="\r"))
    assert setsup.load(name, tmp_path).factors.fingerprint == before


def test_categories_without_their_columns_are_refused(tmp_path):
    importlib.import_module("tests.true_files.iwildcam").write(tmp_path)
    (table,) = tmp_path.rglob("categories.csv")
    table.write_text(table.read_text().replace("name", "Name", 1))
    with pytest.raises(DataError, match=r"categories\.csv has no column 'name'; did you mean 'Name'"):
        setsup.load("iwildcam", tmp_path)
