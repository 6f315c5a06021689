import os
import pickle

import pytest

from setsup.errors import DataError
from setsup.files import open_members, written, written_folder
from tests.files.archives.release_files import folder_of, settle, tar_of, zip_of


@pytest.fixture(autouse=True)
def cache_elsewhere(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path_factory.mktemp("cache")))


def names(path, **options):
    return open_members(path, **options).names.to_pylist()


def test_links_are_followed_and_loops_are_told_apart(tmp_path):
    top = folder_of({"a/1": b"1", "b/2": b"22"}, tmp_path / "top")
    folder_of({"deep/3": b"333"}, tmp_path / "elsewhere")
    (top / "a" / "up").symlink_to("..")
    (top / "a" / "self").symlink_to(".")
    (top / "a" / "other").symlink_to("../b")
    (top / "b" / "far").symlink_to(tmp_path / "elsewhere")
    (top / "file").symlink_to(tmp_path / "elsewhere" / "deep" / "3")
    (top / "broken").symlink_to("nothing")
    (top / "circle").symlink_to("circle")
    found = open_members(top)
    # from a by way of up one would come to the top again
    assert found.names.to_pylist() == ["a/1", "a/other/2", "a/other/far/deep/3", "b/2", "b/far/deep/3", "file"]
    assert found.sizes.tolist() == [1, 2, 3, 2, 3, 3]
    assert found.read(found.place("file")) == found.read(2) == b"333"


def test_what_is_being_written_is_left_out(tmp_path):
    """A kill may leave it for ever, cut off as it is."""
    top = folder_of({"a/1": b"1", ".hidden/2": b"2"}, tmp_path / "top")
    with written_folder(top / "a" / "release") as part, written(top / "file.bin") as file:
        (part / "1").write_bytes(b"half")
        file.write_bytes(b"half")
        assert names(top, hidden=True) == [".hidden/2", "a/1"]
    assert names(top, hidden=True) == [".hidden/2", "a/1", "a/release/1", "file.bin"]


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
def test_hidden_files_and_what_systems_leave_behind(tmp_path, kind):
    """None of them is a file of a release; a user's own hidden files are listed for whoever asks for them."""
    files = {name: b"1" for name in ("a/1.jpg", "a/.b.jpg", ".ipynb_checkpoints/1.jpg", "a/.git/x/1.jpg", "c.d/1.jpg")}
    left = ("__MACOSX/a/1.jpg", "a/._1.jpg", ".DS_Store", "a/Thumbs.db", "a/@eaDir/1.jpg/thumb.jpg", "a/desktop.ini")
    place = {"folder": folder_of, "zip": zip_of, "tar": tar_of}[kind](files | dict.fromkeys(left, b"2"), tmp_path / "x")
    assert names(place) == ["a/1.jpg", "c.d/1.jpg"]
    assert names(place, hidden=True) == sorted(files)
    again = pickle.loads(pickle.dumps(open_members(place, hidden=True)))
    assert again.names.to_pylist() == sorted(files)


def test_two_folders_that_link_to_each_other(tmp_path):
    top = folder_of({"a/1": b"", "b/2": b""}, tmp_path / "top")
    (top / "a" / "b").symlink_to("../b")
    (top / "b" / "a").symlink_to("../a")
    assert names(top) == ["a/1", "a/b/2", "b/2", "b/a/1"]


def test_only_files(tmp_path):
    top = folder_of({"a": b"", "empty/x": b""}, tmp_path / "top")
    (top / "empty" / "x").unlink()
    os.mkfifo(top / "pipe")
    assert names(top) == ["a"]


def test_bytes_that_are_no_utf8_and_backslashes(tmp_path):
    top = os.fsencode(tmp_path)
    for name in (b"caf\xe9", b"caf\xc3\xa9", b"back\\slash", b"\\xe9", b"\xe9\\x"):
        try:
            os.mkdir(os.path.join(top, name))
        except OSError:
            pytest.skip("this disk takes only UTF-8")
        with open(os.path.join(top, name, b"1"), "wb") as file:
            file.write(name)
    found = open_members(tmp_path)
    assert found.names.to_pylist() == [r"\x5cxe9/1", r"\xe9\x5cx/1", r"back\x5cslash/1", r"caf\xe9/1", "café/1"]
    for place, name in enumerate((b"\\xe9", b"\xe9\\x", b"back\\slash", b"caf\xe9", b"caf\xc3\xa9")):
        assert found.read(place) == name
        assert os.fsencode(found.path(place)) == os.path.join(top, name, b"1")
    assert found.label(3).endswith(r"caf\xe9/1")


def test_a_kept_index_of_such_folders(tmp_path, monkeypatch):
    monkeypatch.setattr("setsup.files.archives.member_index.KEPT_FROM", 1)
    top = tmp_path / "top"
    (top / os.fsdecode(b"caf\xe9")).mkdir(parents=True)
    (top / os.fsdecode(b"caf\xe9") / "back\\slash").write_bytes(b"1")
    settle(top)
    assert open_members(top).names == open_members(top).names
    assert open_members(top).read(0) == b"1"


def test_names_on_several_lines_stay_on_one_line_of_a_message(tmp_path):
    found = open_members(folder_of({"a\nb": b"12"}, tmp_path / "top"))
    assert found.label(0) == f"{tmp_path}/top/a\\nb"
    with pytest.raises(DataError, match=r"a\\nb has 2 bytes, more than"):
        found.read(0, 1)


def test_a_file_that_changes_after_it_was_listed(tmp_path):
    top = folder_of({"a": b"1", "b": b"1", "c": b"1"}, tmp_path / "top")
    found = open_members(top)
    (top / "a").write_bytes(b"longer by now")
    assert found.read(0) == b"longer by now"
    with pytest.raises(DataError, match="has 13 bytes, more than the 5 expected"):
        found.read(0, 5)
    (top / "a").unlink()
    with pytest.raises(DataError, match="top/a does not exist"):
        found.read(0)
    (top / "b").unlink()
    os.mkfifo(top / "b")
    with pytest.raises(DataError, match="top/b is no longer a file"):
        found.read(1)
    (top / "c").unlink()
    (top / "c").mkdir()
    with pytest.raises(DataError, match="top/c is no longer a file"):
        found.read(2)


def test_a_cache_inside_of_it(tmp_path, monkeypatch):
    top = folder_of({"a/1": b"", "b/2": b""}, tmp_path / "top")
    monkeypatch.setenv("SETSUP_CACHE", str(top / "cache"))
    monkeypatch.setattr("setsup.files.archives.member_index.KEPT_FROM", 1)
    assert names(top) == ["a/1", "b/2"]
    settle(top)
    assert names(top) == names(top) == ["a/1", "b/2"]
    assert len(list((top / "cache" / "members").glob("*.arrow"))) == 1


def test_a_folder_that_may_not_be_read(tmp_path, monkeypatch, caplog):
    top = folder_of({"a/1": b"", "b/2": b""}, tmp_path / "top")
    monkeypatch.setattr("setsup.files.archives.member_index.KEPT_FROM", 1)
    real = os.scandir

    def refused(path):
        if os.fsencode(path).endswith(b"/b"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr("os.scandir", refused)
    assert names(top) == ["a/1"]
    assert f"{top}/b is left out: Permission denied" in caplog.text
    # and that is not kept for later
    monkeypatch.setattr("os.scandir", real)
    assert names(top) == ["a/1", "b/2"]
    monkeypatch.setattr("os.scandir", refused)
    with pytest.raises(DataError, match="top/b cannot be read: Permission denied"):
        open_members(top / "b")
