import errno
import logging
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import setsup.files.locks as locks
from setsup.errors import DataError
from setsup.files import locked

SPAWN = multiprocessing.get_context("spawn")


def hold(path: Path, held: Any) -> None:
    with locked(path):
        held.set()
        time.sleep(60)


def count(path: Path, times: int) -> None:
    """Add to a number in a file, which loses counts unless the lock excludes."""
    for _ in range(times):
        with locked(path):
            number = int(path.read_text())
            path.write_text(str(number + 1))


def test_processes_exclude_one_another(tmp_path: Path) -> None:
    path = tmp_path / "number"
    path.write_text("0")
    workers = [SPAWN.Process(target=count, args=(path, 20)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert path.read_text() == "40"


def test_threads_exclude_one_another(tmp_path: Path) -> None:
    path = tmp_path / "number"
    path.write_text("0")
    threads = [threading.Thread(target=count, args=(path, 20)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "60"


def test_a_killed_holder_blocks_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "thing"
    held = SPAWN.Event()
    holder = SPAWN.Process(target=hold, args=(path, held))
    holder.start()
    assert held.wait(60)
    entered = threading.Event()

    def wait() -> None:
        with locked(path):
            entered.set()

    with caplog.at_level(logging.INFO, "setsup"):
        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not entered.wait(0.3)
        os.kill(holder.pid or 0, signal.SIGKILL)
        waiter.join(30)
    assert entered.is_set()
    holder.join()
    said = [record.getMessage() for record in caplog.records if "is waiting for" in record.getMessage()]
    assert len(said) == 1
    assert f"process {os.getpid()} is waiting for another process to write {path}" in said[0]


def test_the_lock_is_released_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), locked(tmp_path / "thing"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path / "thing"):
        assert [path.name for path in tmp_path.iterdir()] == ["thing.lock"]


def test_the_lock_that_a_kill_left_is_removed_unless_it_is_held(tmp_path: Path) -> None:
    (tmp_path / "thing.lock").touch()
    locks.clear_lock(tmp_path / "thing")
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path / "thing"):
        locks.clear_lock(tmp_path / "thing")
        assert (tmp_path / "thing.lock").exists()


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_read_only_folder_is_locked_from_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    wait = locks._wait

    def refuse(file: Path, path: Path) -> Any:
        if file.parent == folder:
            raise OSError(code, os.strerror(code), str(file))
        return wait(file, path)

    monkeypatch.setattr(locks, "_wait", refuse)
    with locked(folder / "thing"), locked(folder / "other"):
        assert list(folder.iterdir()) == []
        assert len(list((cache / "locks").iterdir())) == 2


def test_nowhere_to_put_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataError, match="is a file, not a folder"), locked(tmp_path / "file" / "x" / "y"):
        pass

    def refuse(file: Path, path: Path) -> Any:
        raise OSError(errno.EROFS, "Read-only file system", str(file))

    monkeypatch.setattr(locks, "_wait", refuse)
    with pytest.raises(DataError, match=r"read-only; .*SETSUP_CACHE"), locked(tmp_path / "thing"):
        pass


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_folder_that_can_hold_no_file_is_an_error_at_once() -> None:
    with (
        pytest.raises(DataError, match=r"cannot write /proc/x: No such file or directory; choose a writable folder"),
        locked("/proc/x"),
    ):
        pass
    with pytest.raises(DataError, match=r"cannot write /proc/x/y: "), locked("/proc/x/y"):
        pass


def test_a_lock_file_that_is_a_folder_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "set.lock").mkdir()
    with pytest.raises(DataError, match="set: a folder of this name exists"), locked(tmp_path / "set"):
        pass
