import json
import os
from pathlib import Path

import pytest

from setsup.errors import DataError
from setsup.files.atomic import beside
from setsup.files.builds import Journal, build_once, checksum


def find(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def build(path: Path) -> None:
    path.write_text("built")


def test_it_is_built_once(tmp_path: Path) -> None:
    assert build_once(tmp_path / "index", find, build) == "built"
    assert build_once(tmp_path / "index", find, lambda path: path.write_text("again")) == "built"
    assert os.listdir(tmp_path) == ["index"]


@pytest.mark.parametrize("found", [True, False])
def test_what_an_interrupted_build_left_is_removed(tmp_path: Path, found: bool) -> None:
    path, part = tmp_path / "index", tmp_path / "index.part"
    if found:
        build(path)
    for left in (part, tmp_path / "index.lock", beside(path)):
        left.write_bytes(b"half")
    assert build_once(path, find, build, [part]) == "built"
    assert os.listdir(tmp_path) == ["index"]


def test_what_was_found_is_returned_though_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise DataError("cannot write it")

    monkeypatch.setattr("setsup.files.builds.locked", refuse)
    path = tmp_path / "index"
    with pytest.raises(DataError, match="cannot write it"):
        build_once(path, find, build)
    build(path)
    (tmp_path / "index.lock").touch()
    assert build_once(path, find, build) == "built"


def test_a_file_that_cannot_be_read_once_it_was_built(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"index cannot be read, although it was just written"):
        build_once(tmp_path / "index", lambda path: None, lambda path: path.write_bytes(b""))


def test_a_journal_has_the_blocks_that_were_written(tmp_path: Path) -> None:
    path = tmp_path / "array.journal"
    journal = Journal(path, json.dumps({"made": "of x"}))
    assert journal.read() == {}
    journal.start({})
    with (tmp_path / "array").open("w+b") as file:
        for block in (1, 0):
            journal.store(file.fileno(), block, memoryview(bytes([block]) * 10), 10 * block)
        expected = {block: checksum(file.fileno(), 10 * block, 10) for block in (1, 0)}
    assert (tmp_path / "array").read_bytes() == bytes(10) + b"\1" * 10
    assert journal.read() == expected
    assert Journal(path, "something else").read() == {}
    path.write_bytes(path.read_bytes()[:-3])
    assert journal.read() == {1: expected[1]}
