from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from setsup.errors import DataError
from setsup.files import load_manifest
from setsup.files.manifests import packages
from setsup.files.manifests.packages import find_manifest

CARD = "title: Rooms\ndescription: Two of them.\nlicence: {name: MIT}\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose modules may not be imported, and a module that is a file."""
    (tmp_path / "houses_of_mine" / "inner").mkdir(parents=True)
    for name in ("houses_of_mine/__init__.py", "houses_of_mine/inner/__init__.py", "hut_of_mine.py"):
        (tmp_path / name).write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    entries = {
        "whole": "houses_of_mine",
        "module": "houses_of_mine.rooms",
        "function": "houses_of_mine.inner.rooms:open_rooms",
        "inner": "houses_of_mine.inner",
        "hut": "hut_of_mine:open",
        "gone": "no_such_package_anywhere.rooms",
        "bare": "houses_of_mine.bare",
        "mnist": "houses_of_mine",
    }
    found = EntryPoints(EntryPoint(name, value, "setsup.datasets") for name, value in entries.items())
    monkeypatch.setattr(packages, "entry_points", lambda group: found.select(group=group))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "file", "module"),
    [
        ("whole", "houses_of_mine/whole.yaml", "houses_of_mine"),
        ("module", "houses_of_mine/module.yaml", "houses_of_mine.rooms"),
        ("function", "houses_of_mine/inner/function.yaml", "houses_of_mine.inner.rooms"),
        ("inner", "houses_of_mine/inner/inner.yaml", "houses_of_mine.inner"),
        ("hut", "hut.yaml", "hut_of_mine"),
    ],
)
def test_a_manifest_lies_beside_the_module(package: Path, name: str, file: str, module: str) -> None:
    assert find_manifest(name) is None
    (package / file).write_text(f"name: {name}\n{CARD}")
    found = find_manifest(name)
    assert found is not None
    assert (found.name, found.licence.name, found.adapter) == (name, "MIT", module)


def test_where_there_is_none(package: Path) -> None:
    for name in ("gone", "bare", "nowhere", "../whole", ""):
        assert find_manifest(name) is None


def test_setsups_own_cannot_be_taken_over(package: Path) -> None:
    (package / "houses_of_mine" / "mnist.yaml").write_text(f"name: mnist\n{CARD}")
    assert find_manifest("mnist") == load_manifest("mnist")
    assert "mnist" not in packages.foreign_entries()


def test_a_wrong_manifest_is_named(package: Path) -> None:
    (package / "houses_of_mine" / "whole.yaml").write_text(f"name: other\n{CARD}")
    with pytest.raises(DataError, match=r"whole\.yaml.*'whole', the name of the file without its extension"):
        find_manifest("whole")
