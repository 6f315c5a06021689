"""What every benchmark promises, tried on the small releases in their true formats that ``tests/true_files`` writes."""

import contextlib
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import setsup
from setsup.datasets import Dataset
from setsup.datasets.images import check_size
from setsup.datasets.registry import find_opener
from setsup.errors import DataError, SetsupError
from setsup.files import load_manifest
from setsup.loading.batch import check_names
from setsup_cli.main import main
from tests.datasets.elsewhere import FORKS, check_elsewhere, fetch_stacked, same_arrays, spawned

__all__ = ["spawned"]

FILES = Path(__file__).resolve().parents[1] / "true_files"
NAMES = sorted(file.stem.replace("_", "-") for file in FILES.glob("*.py") if file.stem not in ("rings", "toys"))


@pytest.fixture(scope="module", params=NAMES)
def release(request, tmp_path_factory):
    """Name of a benchmark, and a folder with a small release of it."""
    folder = tmp_path_factory.mktemp(request.param)
    importlib.import_module(f"tests.true_files.{request.param.replace('-', '_')}").write(folder)
    return request.param, folder


@pytest.fixture(scope="module")
def dataset(release):
    name, folder = release
    return setsup.load(name, folder)


def held(name):
    return importlib.import_module(f"tests.true_files.{name.replace('-', '_')}").HELD


def test_it_is_a_dataset(release, dataset):
    assert isinstance(dataset, Dataset)
    assert dataset.name == release[0]
    assert len(dataset) == len(dataset.factors) > 0


def test_the_manifest_tells_its_factors(release, dataset):
    # what files that one can do without would tell is not there in every release
    told = [factor for factor in load_manifest(release[0]).factors if factor.name in dataset.factors]
    assert [factor.name for factor in told] == list(dataset.factors.names)
    for words, factor in zip(told, dataset.factors.factors, strict=True):
        assert (words.kind, words.unit, words.period, words.within, words.role) == (
            *(str(factor.kind), factor.unit, factor.period, factor.within, factor.role),
        ), factor.name
        if isinstance(words.levels, tuple):
            places = [words.levels.index(level) for level in factor.levels]
            assert places == sorted(places), factor.name


def test_the_manifest_tells_its_modalities(release, dataset):
    told = {modality.name: modality for modality in load_manifest(release[0]).modalities}
    assert list(told) == list(dataset.modalities)
    for name, modality in dataset.modalities.items():
        words = told[name]
        assert (words.dtype, words.unit, words.color) == (modality.dtype, modality.unit, modality.color), name
        assert len(words.shape) == len(modality.shape), name
        assert all(said in (None, length) for said, length in zip(words.shape, modality.shape, strict=True)), name


def test_no_factor_is_named_like_a_modality(dataset):
    # they are columns of one table elsewhere, and keys of one batch
    assert not set(dataset.factors.names) & set(dataset.modalities)


def test_a_batch_has_room_for_all_its_modalities(dataset):
    check_names(dataset.name, list(dataset.modalities))


KINDS = ("cars196", "cars3d", "celeba", "clevr", "clevr-objects", "keypointnet", "multi-dsprites")
KINDS += ("nyu", "objectron", "scenenn-frames", "shapenet", "ucf101")
"""Benchmarks whose modalities are of all kinds there are, by type, number of axes, unit and colour."""


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("release", KINDS, indirect=True)
def test_hugging_face_takes_it(dataset):
    few = dataset.select(range(min(2, len(dataset))))
    found = setsup.to_huggingface(few)
    assert set(found.column_names) == {*few.factors.names, *few.modalities}
    assert len(found) == len(few)
    for row, came in enumerate(found):
        for name, modality in few.modalities.items():
            expected = few.fetch(row, [name])[name]
            same = np.array_equal(
                np.asarray(came[name]).reshape(expected.shape), expected, equal_nan=modality.dtype.startswith("float")
            )
            assert same, name


def test_a_size_that_is_none_is_refused(release):
    opened = find_opener(release[0])
    for option in {"size", "crop"} & set(inspect.signature(opened).parameters):
        with pytest.raises(SetsupError, match=rf"^{option} must be \(height, width\)") as found:
            setsup.load(*release, **{option: (1.5, 2)})
        assert "\n" not in str(found.value)


@pytest.mark.parametrize("wrong", [64, (64,), (0, 5), (True, 5), (1.5, 2), "64", (1, 2, 3)], ids=str)
def test_sizes_that_are_none_are_refused(wrong):
    with pytest.raises(SetsupError, match=r"^size must be \(height, width\)") as found:
        check_size(wrong)
    assert "\n" not in str(found.value)


def test_its_folder_may_be_a_text(release, dataset):
    found = find_opener(release[0])(str(release[1]))
    assert found.factors.names == dataset.factors.names
    assert len(found) == len(dataset)


@pytest.mark.long("large or genuine files")
def test_its_splits_open_or_say_what_is_lacking(release, dataset):
    opened = []
    for split in load_manifest(release[0]).splits:
        with contextlib.suppress(DataError):
            opened.append(setsup.load(release[0], release[1], split=split.name))
    assert opened or not load_manifest(release[0]).splits
    assert all(len(part) <= len(dataset) for part in opened)


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
def test_fetching_any_shape(dataset, shape):
    rows = np.arange(int(np.prod(shape))).reshape(shape) % len(dataset)
    for name, modality in dataset.modalities.items():
        if None in modality.shape and rows.size != 1:
            continue  # lengths that differ between rows cannot be stacked
        found = dataset.fetch(rows, [name])
        assert list(found) == [name]
        assert found[name].dtype == modality.dtype
        assert found[name].shape[: len(shape)] == shape
        assert len(found[name].shape) == len(shape) + len(modality.shape)
        declared = zip(found[name].shape[len(shape) :], modality.shape, strict=True)
        assert all(length in (None, came) for came, length in declared)


def test_rows_come_as_asked(dataset):
    last = len(dataset) - 1
    once = fetch_stacked(dataset, [0, last])
    again = fetch_stacked(dataset, [last, 0, last])
    assert same_arrays({name: array[[1, 0, 1]] for name, array in once.items()}, again)


@FORKS
@pytest.mark.long("worker processes")
def test_it_travels_to_other_processes(dataset, spawned):
    check_elsewhere(dataset, spawned)


@pytest.mark.long("large or genuine files")
def test_the_command_draws_from_it(release, capsys, tmp_path):
    name, folder = release
    words = [name, "--root", str(folder)]
    assert main(["info", *words]) == 0, capsys.readouterr().err
    capsys.readouterr()
    out = tmp_path / "out"
    assert main(["sample", *words, "--inactive", held(name), "--size", "4", "--out", str(out)]) == 0, (
        capsys.readouterr().err
    )
    assert (out / "sheet.png").stat().st_size > 2000


def test_nothing_is_written_into_its_folder(release, dataset):
    _, folder = release
    before = sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))
    again = setsup.load(*release)
    fetch_stacked(again, [0])
    assert sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*")) == before


@pytest.mark.parametrize("name", [name for name in setsup.names() if load_manifest(name).files])
def test_an_empty_folder_is_told_what_to_do(name, tmp_path):
    with pytest.raises(DataError, match=f"setsup fetch {name}") as found:
        setsup.load(name, tmp_path)
    assert str(tmp_path) in str(found.value)
    assert "\n" not in str(found.value)


def test_listing_imports_no_adapter():
    code = (
        "import sys; from setsup_cli.main import main; main(['datasets']); "
        "print([name for name in sys.modules if name.startswith('setsup.datasets.') or name == 'numpy'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"
