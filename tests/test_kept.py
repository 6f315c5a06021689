"""Releases of tests come from the cache as their writer writes them, and anew when the writer changes."""

import importlib
import os
from pathlib import Path

import numpy as np
import pytest

from tests import kept

WRITERS = ("hmdb51", "smallnorb")
"""Of those whose files hold no time."""


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SETSUP_TESTS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def module_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str):
    """A writer in a module of the tests, which writes a text."""
    monkeypatch.setattr(kept, "ROOT", tmp_path)
    monkeypatch.setattr(kept, "__file__", str(tmp_path / "tests" / "kept.py"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tests").mkdir(exist_ok=True)
    (tmp_path / "tests" / "words.py").write_text(f"TEXT = {text!r}\n")
    (tmp_path / "writer.py").write_text(
        "from tests.kept import kept\nif not kept:\n    from tests import words\ncalls = []\n"
        "@kept\ndef write(folder, times=1, what=None):\n    calls.append(times)\n"
        "    (folder / 'a.txt').write_text('x' * times)\n    return times\n"
    )
    kept.source_digest.cache_clear()
    return importlib.reload(importlib.import_module("writer"))


def test_it_is_written_once_for_each_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: Path) -> None:
    writer = module_of(tmp_path, monkeypatch, "first")
    for number, (times, calls) in enumerate([(1, [1]), (1, [1]), (2, [1, 2]), (1, [1, 2])]):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "there.txt").write_text("stays")
        assert writer.write(tmp_path / f"{number}", times=times) == times
        assert content(tmp_path / f"{number}") == {"a.txt": b"x" * times, "there.txt": b"stays"}
        assert writer.calls == calls
    (tmp_path / "0" / "a.txt").write_text("changed by a test")
    assert writer.write(tmp_path / "1") == 1
    assert content(tmp_path / "1")["a.txt"] == b"x"
    writer.write(tmp_path / "2", what=object())  # an option that has no text of its own
    assert writer.calls == [1, 2, 1]


def test_what_another_process_writes_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: Path
) -> None:
    writer = module_of(tmp_path, monkeypatch, "first")
    (cold / "writer" / "tmpabcdef").mkdir(parents=True)
    (cold / "writer" / "0123456789abcdef").mkdir()
    (tmp_path / "0").mkdir()
    writer.write(tmp_path / "0")
    assert (cold / "writer" / "tmpabcdef").exists()
    assert not (cold / "writer" / "0123456789abcdef").exists(), "of a writer before a change"


def test_a_change_of_what_the_writer_imports_writes_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: Path
) -> None:
    for text in ("first", "second"):
        writer = module_of(tmp_path, monkeypatch, text)
        (tmp_path / text).mkdir()
        writer.write(tmp_path / text)
        assert writer.calls == [1]
        assert len(list((cold / "writer").iterdir())) == 1  # what is out of date is gone


@pytest.mark.long("releases written twice")
@pytest.mark.parametrize("name", WRITERS)
def test_a_kept_release_is_that_of_the_writer(name: str, tmp_path: Path) -> None:
    write = importlib.import_module(f"tests.true_files.{name}").write
    folders = [tmp_path / "direct", tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    returned = [write.__wrapped__(folders[0]), write(folders[1]), write(folders[2])]
    direct, first, second = map(content, folders)
    assert direct == first == second
    np.testing.assert_equal(returned[1], returned[0])
    np.testing.assert_equal(returned[2], returned[0])


def test_two_processes_may_write_at_once(tmp_path: Path) -> None:
    release = tmp_path / "writer" / "digest" / "options"

    def write(folder: Path) -> int:
        if not release.exists():  # the other one, in between
            kept._keep(release, lambda files: os.fspath(files) and 1)
        return 2

    kept._keep(release, write)
    assert (release / "returned").is_file()
    assert [path.name for path in release.parent.parent.iterdir()] == ["digest"]
