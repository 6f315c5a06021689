import logging
import os
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from setsup.errors import DataError
from setsup.files import open_members
from setsup.files.archives.member_index import KEPT_FROM, About
from tests.files.archives.release_files import FILES, KINDS, SORTED, cached, settle
from tests.fuzzing import survives


def of(kind, files, path):
    return open_members(KINDS[kind](files, path))


def replaced(index, content):
    index.unlink()  # it may be mapped: what is mapped is never cut off in place
    index.write_bytes(content)


def no_time_of_every_change(monkeypatch):
    """As on some network disks, which have the time of changes of content alone."""
    real = About.of
    monkeypatch.setattr(About, "of", lambda *given: replace(real(*given), ctime_ns=0))


class TestKept:
    @pytest.fixture
    def own_cache(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
        return tmp_path / "cache"

    @pytest.fixture
    def listings(self, monkeypatch):
        """What was listed, and not read from a kept index."""
        import setsup.files.archives.member_index as module

        found = []
        for name in ("list_zip", "list_tar", "list_folder"):
            real = getattr(module, name)
            monkeypatch.setattr(module, name, lambda *given, real=real: (found.append(real), real(*given))[1])
        return found

    @pytest.mark.parametrize("kind", KINDS)
    def test_listed_once(self, tmp_path, own_cache, listings, kind, monkeypatch):
        monkeypatch.setattr("setsup.files.archives.member_index.KEPT_FROM", 1)
        first = of(kind, FILES, tmp_path / "x")
        assert len(cached(own_cache)) == 1
        again = open_members(tmp_path / "x")
        assert len(listings) == 1
        assert again.names == first.names
        assert [again.read(place) for place in range(len(again))] == [FILES[name] for name in SORTED]
        # by another way to the same archive, too
        (tmp_path / "link").symlink_to(tmp_path / "x")
        assert open_members(tmp_path / "link").names == first.names
        assert len(listings) == 1
        assert not list((own_cache / "members").glob("*.lock"))

    @pytest.mark.parametrize("kind", KINDS)
    def test_listed_again_on_request(self, tmp_path, own_cache, listings, kind, monkeypatch):
        no_time_of_every_change(monkeypatch)
        monkeypatch.setattr("setsup.files.archives.member_index.KEPT_FROM", 3)
        files = {"a/1": b"1", "a/2": b"2", "b": b"3"}
        of(kind, files, tmp_path / "x")
        size = (tmp_path / "x").stat().st_size
        KINDS[kind]({**files, "b": b"4"} if kind != "folder" else {**files, "a/3": b""}, tmp_path / "x")
        # a change that neither times nor the size of an archive show
        assert kind == "folder" or (tmp_path / "x").stat().st_size == size
        assert "a/3" not in open_members(tmp_path / "x")
        assert len(listings) == 1
        again = open_members(tmp_path / "x", relist=True)
        assert len(listings) == 2
        assert len(again) == (4 if kind == "folder" else 3)
        assert again.read(again.place("b")) == (b"3" if kind == "folder" else b"4")
        # what was kept is replaced
        assert open_members(tmp_path / "x").names == again.names
        assert len(listings) == 2
        assert len(cached(own_cache)) == 1

    def test_what_is_too_small_to_be_kept_is_kept_no_more(self, tmp_path, own_cache, monkeypatch):
        monkeypatch.setattr("setsup.files.archives.member_index.KEPT_FROM", 2)
        of("folder", {"a": b"1", "b": b"2"}, tmp_path / "x")
        (tmp_path / "x" / "b").unlink()
        settle(tmp_path / "x")
        assert open_members(tmp_path / "x").names.to_pylist() == ["a", "b"]
        assert open_members(tmp_path / "x", relist=True).names.to_pylist() == ["a"]
        assert open_members(tmp_path / "x").names.to_pylist() == ["a"]
        assert not cached(own_cache)

    @pytest.mark.parametrize("kind", ["zip", "tar"])
    def test_another_archive_is_listed_anew(self, tmp_path, own_cache, listings, kind):
        of(kind, {"a": b"1"}, tmp_path / "x")
        KINDS[kind]({"b": b"1"}, tmp_path / "x")
        settle(tmp_path / "x", 1_600_000_001)
        assert open_members(tmp_path / "x").names.to_pylist() == ["b"]
        assert len(listings) == 2
        assert len(cached(own_cache)) == 1

    def test_a_changed_folder_is_listed_anew(self, tmp_path, own_cache, listings, monkeypatch):
        monkeypatch.setattr("setsup.files.archives.member_index.KEPT_FROM", 1)
        of("folder", FILES, tmp_path / "x")
        (tmp_path / "x" / "cars" / "1" / "new").write_bytes(b"n")
        assert "cars/1/new" in open_members(tmp_path / "x")
        settle(tmp_path / "x", 1_600_000_001)
        open_members(tmp_path / "x")
        open_members(tmp_path / "x")
        assert len(listings) == 3
        shutil.rmtree(tmp_path / "x" / "cars" / "1")
        assert "cars/1/new" not in open_members(tmp_path / "x")

    def test_small_folders_are_always_listed(self, tmp_path, own_cache, listings):
        found = of("folder", {"a": b"1"}, tmp_path / "x")
        (tmp_path / "x" / "a").write_bytes(b"longer")  # which does not change the time of the folder
        assert open_members(tmp_path / "x").sizes.tolist() == [6]
        assert found.read(0) == b"longer"
        assert (len(listings), cached(own_cache)) == (2, [])
        assert KEPT_FROM > 1000

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_was_just_written_is_not_trusted_to_be_whole(self, tmp_path, own_cache, kind, monkeypatch):
        monkeypatch.setattr("setsup.files.archives.member_index.KEPT_FROM", 1)
        KINDS[kind](FILES, tmp_path / "x")
        os.utime(tmp_path / "x")
        assert open_members(tmp_path / "x").names.to_pylist() == SORTED
        assert cached(own_cache) == []

    @pytest.mark.parametrize("times", ["of every change", "of content alone"])
    @pytest.mark.parametrize("kind", ["zip", "tar"])
    def test_an_archive_in_place_of_one_of_the_same_size_and_time(self, tmp_path, own_cache, kind, times, monkeypatch):
        if times == "of content alone":
            no_time_of_every_change(monkeypatch)
        files = {"a/1": b"1" * 600, "a/2": b"2" * 600, "b": b"3" * 600}
        of(kind, files, tmp_path / "x")
        assert len(cached(own_cache)) == 1
        before = os.stat(tmp_path / "x")
        KINDS[kind](dict(reversed(files.items())), tmp_path / "y")
        os.utime(tmp_path / "y", ns=(before.st_mtime_ns, before.st_mtime_ns))
        os.replace(tmp_path / "y", tmp_path / "x")
        after = os.stat(tmp_path / "x")
        assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        found = open_members(tmp_path / "x")
        if times == "of content alone":
            with pytest.raises(DataError, match="has changed; open it again"):
                [found.read(place) for place in range(3)]
            found = open_members(tmp_path / "x")
        assert [found.read(found.place(name)) for name in files] == list(files.values())

    def test_a_new_link_to_an_archive_that_is_open(self, tmp_path, own_cache):
        found = of("tar", FILES, tmp_path / "x")
        os.link(tmp_path / "x", tmp_path / "link")
        assert [found.read(place) for place in range(len(found))] == [FILES[name] for name in SORTED]
        assert len(pickle.loads(pickle.dumps(found))) == len(found)

    def test_a_damaged_index_is_made_anew(self, tmp_path, own_cache, caplog):
        expected = of("zip", FILES, tmp_path / "x")
        (index,) = cached(own_cache)
        healthy = index.read_bytes()
        inside = healthy.index("".join(sorted(FILES)).encode()[:8])  # the column of names
        for content in (b"", b"ARROW1", b"x" * 3000, healthy[:-20], healthy[:inside] + b"\xff" + healthy[inside + 1 :]):
            replaced(index, content)
            caplog.clear()
            assert open_members(tmp_path / "x").names == expected.names
            assert "rebuilding the damaged index" in caplog.text
            assert index.read_bytes() == healthy

    def test_the_index_of_another_archive_is_not_trusted(self, tmp_path, own_cache):
        of("zip", {"a": b"1"}, tmp_path / "a.zip")
        (mine,) = cached(own_cache)
        of("zip", {"b": b"1"}, tmp_path / "b.zip")
        (other,) = set(cached(own_cache)) - {mine}
        shutil.copy(other, mine)
        assert open_members(tmp_path / "a.zip").names.to_pylist() == ["a"]

    @pytest.mark.long("fuzzing")
    def test_damage_of_any_kind(self, tmp_path, own_cache):
        expected = of("tar", FILES, tmp_path / "x")
        (index,) = cached(own_cache)
        logging.getLogger("setsup").setLevel(logging.ERROR)

        def read(content):
            replaced(index, content)
            found = open_members(tmp_path / "x")
            assert found.names == expected.names
            assert [found.read(place) for place in range(len(found))] == [FILES[name] for name in SORTED]

        try:
            survives(index.read_bytes(), read, rounds=75, head=2000)
        finally:
            logging.getLogger("setsup").setLevel(logging.NOTSET)

    def test_a_cache_that_cannot_be(self, tmp_path, monkeypatch):
        (tmp_path / "file").write_bytes(b"")
        monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "file" / "cache"))
        for kind in KINDS:
            found = of(kind, FILES, tmp_path / kind)
            assert found.names.to_pylist() == SORTED
            assert pickle.loads(pickle.dumps(found)).read(0) == found.read(0)

    def test_a_full_disk(self, tmp_path, own_cache, monkeypatch):
        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("pyarrow.OSFile", full)
        assert of("zip", FILES, tmp_path / "x").names.to_pylist() == SORTED
        assert cached(own_cache) == []

    def test_two_at_once_list_once(self, tmp_path, own_cache, listings):
        KINDS["tar"](FILES, tmp_path / "x")
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(open_members, [tmp_path / "x"] * 4))
        assert all(members.names.to_pylist() == SORTED for members in found)
        assert len(listings) == 1
