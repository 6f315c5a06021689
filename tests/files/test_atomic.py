import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from setsup.errors import DataError
from setsup.files import written, written_folder
from setsup.files.atomic import clear, is_temporary


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_and_raise(writer: Callable[..., Any], path: Path, error: BaseException) -> None:
    with writer(path) as part:
        (part / "half" if part.is_dir() else part).write_bytes(b"half")
        raise error


def test_a_file_is_there_after_the_body_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.npy"
    with written(path) as part:
        part.write_bytes(b"abc")
        assert not path.exists()
        assert part.parent == path.parent
        assert part.suffix == ".npy"
    assert path.read_bytes() == b"abc"
    assert names(path.parent) == ["file.npy"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file_and_no_temporary(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(error):
        write_and_raise(written, path, error())
    assert names(tmp_path) == ["file"]
    assert path.read_bytes() == b"old"


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with written(path) as one, written(path) as two:
        assert one != two
        one.write_bytes(b"1")
        two.write_bytes(b"2")
    assert path.read_bytes() == b"1"  # the outer one ended last
    assert names(tmp_path) == ["file"]


def test_long_names_and_long_suffixes(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 120 + ".npy")
    with written(path) as part:
        part.write_bytes(b"")
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("code", "reason", "mend"),
    [
        (errno.ENOSPC, "the disk is full", "free some space"),
        (errno.EDQUOT, "your quota on this disk is exceeded", "free some space"),
        (errno.EROFS, "the disk is read-only", "choose a writable folder"),
        (errno.EACCES, "permission denied", "choose a writable folder"),
    ],
)
def test_what_a_disk_refuses_is_one_sentence(tmp_path: Path, code: int, reason: str, mend: str) -> None:
    path = tmp_path / "file.bin"
    with pytest.raises(DataError) as caught:
        write_and_raise(written, path, OSError(code, os.strerror(code)))
    assert str(caught.value) == f"cannot write {path}: {reason}; " + str(caught.value).split("; ")[1]
    assert mend in str(caught.value)
    assert names(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:

    def fill() -> None:
        with written(tmp_path / "file.bin") as part:
            part.symlink_to("/dev/full")
            part.write_bytes(b"does not fit")

    with pytest.raises(DataError, match="the disk is full"):
        fill()
    assert names(tmp_path) == []


def test_the_cache_can_be_moved(cache: Path) -> None:
    with pytest.raises(DataError, match="SETSUP_CACHE"), written(cache / "index"):
        raise OSError(errno.ENOSPC, "full")


def test_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), written(tmp_path / "file"):
        (tmp_path / "source").read_bytes()
    with pytest.raises(PermissionError) as caught, written(tmp_path / "a" / "file"):
        raise PermissionError(errno.EACCES, "Permission denied", "/elsewhere/source")
    assert caught.value.filename == "/elsewhere/source"


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="is a file, not a folder"), written(tmp_path / "file" / "sub" / "x"):
        pass


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    with pytest.raises(DataError, match="a folder of this name exists"), written(tmp_path / "x") as part:
        part.write_bytes(b"")
    assert names(tmp_path) == ["x"]


@pytest.fixture
def locked_folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(locked_folder: Path) -> None:
    with pytest.raises(DataError, match="permission denied"), written(locked_folder / "x") as part:
        part.write_bytes(b"")


def test_a_folder_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with written_folder(path) as part:
        (part / "deep").mkdir()
        (part / "deep" / "a").write_bytes(b"1")
        assert not path.exists()
    assert (path / "deep" / "a").read_bytes() == b"1"
    with pytest.raises(KeyboardInterrupt):
        write_and_raise(written_folder, path, KeyboardInterrupt())
    assert names(tmp_path) == ["index"]
    assert names(path) == ["deep"]


def test_a_folder_replaces_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "index"
    for name in ("a", "b"):
        with written_folder(path) as part:
            (part / name).write_bytes(b"")
    assert names(path) == ["b"]
    assert names(tmp_path) == ["index"]


def test_an_older_folder_comes_back_where_the_renaming_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    path.mkdir()
    (path / "old").write_bytes(b"")
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if target == path and (self / "new").exists():
            raise OSError(errno.EIO, "bad disk")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(DataError, match="input/output error"), written_folder(path) as part:
        (part / "new").write_bytes(b"")
    assert names(path) == ["old"]
    assert names(tmp_path) == ["index"]


def temporary(writer: Callable[..., Any], path: Path) -> Path:
    """Name under which something was written."""
    with suppress(KeyboardInterrupt), writer(path) as part:
        raise KeyboardInterrupt
    return part


def test_what_a_kill_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    """Names of which the ends are cut to the same are told apart."""
    path, other = tmp_path / ("x" * 40 + ".npy"), tmp_path / ("x" * 41 + ".npy")
    (temporary(written_folder, path) / "inner").mkdir(parents=True)
    for file in (temporary(written, path), temporary(written, path)):
        file.write_bytes(b"half")
    kept = [temporary(written, other), path, tmp_path / ".notes.tmp", tmp_path / ".x-0123456789ab.tmp.npy"]
    for file in kept:
        file.write_bytes(b"")
    assert [is_temporary(file.name) for file in kept] == [True, False, False, False]
    assert sum(map(is_temporary, names(tmp_path))) == 4
    clear(path)
    assert names(tmp_path) == sorted(file.name for file in kept)
    clear(tmp_path / "nowhere" / "x.npy")
