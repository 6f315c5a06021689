import os
from pathlib import Path
from typing import Any

import pytest

from setsup.errors import DataError
from setsup.files import cache_folder, data_places, find_root

WANTED = [["a.gz", "a"], "b"]


def fill(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")
    return folder


def test_the_root_holds_the_files_or_a_folder_of_that_name(tmp_path: Path) -> None:
    inner = fill(tmp_path / "mnist", "a", "b")
    assert find_root("mnist", tmp_path, WANTED) == inner
    fill(tmp_path, "a.gz", "b")
    assert find_root("mnist", tmp_path, WANTED) == tmp_path
    assert find_root("mnist", str(tmp_path), WANTED) == tmp_path


def test_without_a_root(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = fill(cache / "mnist", "a", "b")
    assert find_root("mnist", None, WANTED) == cached
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path / "shared"))
    assert find_root("mnist", None, WANTED) == cached
    shared = fill(tmp_path / "shared" / "mnist", "a", "b")
    assert find_root("mnist", None, WANTED) == shared


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("SETSUP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder().name == "setsup"
    assert cache_folder().is_relative_to(tmp_path)


def test_what_is_missing_is_said_with_the_command(tmp_path: Path) -> None:
    root = fill(tmp_path / "my data", "a")
    with pytest.raises(DataError) as caught:
        find_root("mnist", root, WANTED)
    assert str(caught.value) == (
        f"mnist: b not found; looked in {root}, {root / 'mnist'} (does not exist); "
        f"run `setsup fetch mnist --root '{root}'`, or pass the folder that contains the files (root=)"
    )


def test_without_a_root_the_command_is_short(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path / "shared"))
    with pytest.raises(DataError) as caught:
        find_root("mnist", None, WANTED)
    assert "mnist: a.gz, b not found" in str(caught.value)
    assert f"looked in {tmp_path / 'shared' / 'mnist'} (does not exist), {cache / 'mnist'}" in str(caught.value)
    assert "`setsup fetch mnist`" in str(caught.value)
    assert list(tmp_path.iterdir()) == []  # looking makes nothing


def test_many_missing_files_are_counted(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x: f0, f1, f2 and 17 more not found"):
        find_root("x", tmp_path, [f"f{i}" for i in range(20)])


@pytest.mark.long("large or genuine files")
def test_odd_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    for root in (file, tmp_path / "none", "x" * 5000, "nul\0byte"):
        with pytest.raises(DataError, match=r"setsup fetch mnist|must be the path of a file or folder"):
            find_root("mnist", root, WANTED)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_places("mnist", "~/data")[0] == tmp_path / "data"


def test_a_folder_that_may_not_be_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.stat

    def refused(path: Any, *given: Any, **named: Any) -> os.stat_result:
        if str(path).startswith(f"{tmp_path}/closed/"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *given, **named)

    fill(tmp_path / "closed", "a", "b")
    monkeypatch.setattr(os, "stat", refused)
    with pytest.raises(
        DataError, match=r"looked in .*closed \(permission denied\), .*closed/mnist \(permission denied\);"
    ):
        find_root("mnist", tmp_path / "closed", WANTED)
    with pytest.raises(DataError, match=r"open, .*open/mnist \(does not exist\);"):
        find_root("mnist", fill(tmp_path / "open"), WANTED)


def test_a_file_as_root(tmp_path: Path) -> None:
    (tmp_path / "all.zip").write_bytes(b"")
    with pytest.raises(
        DataError, match=r"looked in .*all\.zip \(not a folder\), .*; run `setsup fetch mnist`, or pass"
    ):
        find_root("mnist", tmp_path / "all.zip", WANTED)


def test_a_data_set_that_is_made_of_another_ones_files(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError) as caught:
        find_root("affine-mnist", tmp_path, WANTED)
    for place in ("affine-mnist", "mnist"):
        assert f"{tmp_path / place} (does not exist)" in str(caught.value)
    assert f"run `setsup fetch affine-mnist --root {tmp_path}`" in str(caught.value)
    theirs = fill(tmp_path / "mnist", "a", "b")
    assert find_root("affine-mnist", tmp_path, WANTED) == theirs
    own = fill(tmp_path / "affine-mnist", "a", "b")
    assert find_root("affine-mnist", tmp_path, WANTED) == own
    assert find_root("mnist", tmp_path, WANTED) == theirs

    monkeypatch.setenv("SETSUP_DATA", str(tmp_path))
    names = ("affine-mnist", "mnist")
    assert data_places("affine-mnist") == [folder / name for name in names for folder in (tmp_path, cache)]
    assert data_places("mnist") == [tmp_path / "mnist", cache / "mnist"]


def test_nothing_wanted(tmp_path: Path) -> None:
    assert find_root("table", tmp_path, []) == tmp_path
