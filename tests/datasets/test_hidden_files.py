"""Hidden files, and what systems leave in folders, are no rows of any benchmark."""

import importlib
import os
import shutil

import pytest

import setsup
from tests.datasets.test_benchmarks import NAMES

LARGEST = 1 << 24
"""Bytes of a file that is copied: a sparse one would fill the disk."""
LEFT = ("Thumbs.db", "desktop.ini", ".DS_Store")


def copy_small(source, target):
    """Copy a folder without its large files."""

    def large(place, names):
        return [name for name in names if os.path.getsize(os.path.join(place, name)) >= LARGEST]

    shutil.copytree(source, target, ignore=large, dirs_exist_ok=True)


def strew(folder):
    """Copy files of each folder of a release to hidden places there, and to those of other systems."""
    for place, folders, names in list(os.walk(folder)):
        files = [name for name in names if os.path.getsize(os.path.join(place, name)) < LARGEST]
        for name in LEFT:
            with open(os.path.join(place, name), "wb") as file:
                file.write(b"left behind")
        for inner in (".ipynb_checkpoints", "__MACOSX", "@eaDir"):
            os.mkdir(os.path.join(place, inner))
            for name in sorted(files)[:2]:
                shutil.copy(os.path.join(place, name), os.path.join(place, inner, name))
            for name in folders[:1]:  # as a category, a scene or a session
                copy_small(os.path.join(place, name), os.path.join(place, inner, name))
        for name in sorted(files)[:2]:
            shutil.copy(os.path.join(place, name), os.path.join(place, f".{name}"))
            shutil.copy(os.path.join(place, name), os.path.join(place, f"._{name}"))
        for name in folders[:1]:
            copy_small(os.path.join(place, name), os.path.join(place, f".{name}"))


QUICK = ("pacs", "co3d")
CASES = [pytest.param(name, marks=() if name in QUICK else pytest.mark.long("layouts")) for name in NAMES]


@pytest.mark.parametrize("name", CASES)
def test_they_are_no_rows(name, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    importlib.import_module(f"tests.true_files.{name.replace('-', '_')}").write(folder)
    clean = setsup.load(name, folder)
    expected, levels = len(clean), {factor.name: factor.levels for factor in clean.factors.factors}
    strew(folder)
    found = setsup.load(name, folder)
    assert len(found) == expected
    assert {factor.name: factor.levels for factor in found.factors.factors} == levels
    assert found.factors.fingerprint == clean.factors.fingerprint
