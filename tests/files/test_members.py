import logging
import multiprocessing
import os
import pickle
import re
import shutil
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.errors import DataError, RowError
from setsup.files import MemberIndex, find_members, open_members
from setsup.files.archives.member_index import KEPT_FROM
from setsup.files.archives.release_root import readable
from tests.files.archives import KINDS, cached, folder_of, gz_of, settle, tar_of, zip_of
from tests.fuzzing import survives

FILES = {
    "list.txt": b"a\nb\n",
    "cars/1/mesh.mat": bytes(range(256)) * 9,
    "cars/1/mesh#2 é.mat": b"",
    "cars/10/mesh.mat": b"ten",
    "cars.txt": b"cars",
    "cars0": b"after the slash",
    "many/深/x.png": os.urandom(70_000),
}
SORTED = sorted(FILES, key=str.encode)
PARTS = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda part: part not in (".", "..", "__MACOSX", ".DS_Store") and not part.startswith("._") and part[1:2] != ":"
)
NAMES = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


@pytest.fixture(params=KINDS)
def members(request, tmp_path) -> MemberIndex:
    return open_members(KINDS[request.param](FILES, tmp_path / "release"))


def of(kind, files, path):
    return open_members(KINDS[kind](files, path))


def replaced(index, content):
    index.unlink()  # it may be mapped: what is mapped is never cut off in place
    index.write_bytes(content)


class TestFiles:
    def test_names_sizes_and_content_are_those_of_the_files(self, members):
        assert members.names.to_pylist() == SORTED
        assert members.names.type == pa.large_string()
        assert members.sizes.tolist() == [len(FILES[name]) for name in SORTED]
        assert len(members) == len(FILES)
        assert [members.read(place) for place in range(len(members))] == [FILES[name] for name in SORTED]

    def test_sizes_may_not_be_written(self, members):
        with pytest.raises(ValueError, match="read-only"):
            members.sizes[0] = 1

    @pytest.mark.long("large or genuine files")
    @settings(max_examples=40)
    @given(st.dictionaries(NAMES, st.binary(max_size=300), max_size=8), st.sampled_from(["zip", "tar"]))
    def test_any_names_and_contents(self, tmp_path_factory, files, kind):
        found = of(kind, files, tmp_path_factory.mktemp("any") / "release")
        assert found.names.to_pylist() == sorted(files, key=str.encode)
        assert {name: found.read(found.place(name)) for name in files} == files

    def test_limit(self, members):
        place = members.place("cars/1/mesh.mat")
        assert len(members.read(place, 2304)) == 2304
        with pytest.raises(DataError, match=r"mesh\.mat has 2,304 bytes, more than the 2,303 expected"):
            members.read(place, 2303)

    @pytest.mark.parametrize("place", [-1, len(FILES)])
    def test_places_out_of_range(self, members, place):
        for what in (members.read, members.label, members.path):
            with pytest.raises(RowError, match="out of range"):
                what(place)

    def test_numpy_places(self, members):
        assert members.read(np.int64(0)) == FILES[SORTED[0]]

    def test_labels_and_paths(self, members):
        place = members.place("cars/1/mesh#2 é.mat")
        between = "/" if members.path(0) else ": "
        assert members.label(place) == f"{members.source}{between}cars/1/mesh#2 é.mat"
        path = members.path(place)
        assert path is None or path.read_bytes() == b""
        assert (path is None) == members.source.is_file()

    def test_what_systems_leave_is_left_out(self, tmp_path):
        junk = {"__MACOSX/cars/x.png": b"", "a/.DS_Store": b"", "a/._x.png": b"", "__MACOSX": b"", "._a/x": b""}
        kept = {"x.DS_Store": b"", "a._b": b"", "my__MACOSX/x": b""}
        junk.pop("__MACOSX")
        for kind in KINDS:
            assert of(kind, junk | kept, tmp_path / kind).names.to_pylist() == sorted(kept)

    def test_nothing_inside(self, tmp_path):
        for kind in KINDS:
            found = of(kind, {}, tmp_path / kind)
            assert (len(found), found.names.to_pylist(), found.places(["x"]).tolist()) == (0, [], [-1])
            assert found.under("x").names.to_pylist() == []
            assert found.matching("(?P<a>x)")[1]["a"].to_pylist() == []


class TestStretch:
    LONG = bytes(range(256)) * 300

    def stored(self, kind, path):
        files = {"a": b"first", "b/long.bin": self.LONG, "z": b""}
        return open_members(zip_of(files, path, zipfile.ZIP_STORED) if kind == "zip" else KINDS[kind](files, path))

    @pytest.mark.parametrize("kind", KINDS)
    def test_values_and_short_reads(self, tmp_path, kind):
        found = self.stored(kind, tmp_path / "x")
        for offset, length in [(0, 10), (7, 300), (70_000, 6800), (76_799, 1), (0, len(self.LONG)), (5, 0)]:
            assert found.stretch(1, offset, length) == self.LONG[offset : offset + length]
            assert found.under("b").stretch(0, offset, length) == self.LONG[offset : offset + length]
        # nothing of what follows in the archive
        assert found.stretch(1, 76_790, 10**12) == self.LONG[-10:]
        assert found.stretch(1, 76_800, 5) == found.stretch(1, 10**15, 5) == found.stretch(2, 0, 5) == b""
        for place in (-1, 3):
            with pytest.raises(RowError, match="out of range"):
                found.stretch(place, 0, 1)
        for offset, length in [(-1, 5), (0, -1)]:
            with pytest.raises(RowError, match="both are 0 or more"):
                found.stretch(1, offset, length)

    def test_deflated_files_can_only_be_read_whole(self, tmp_path):
        found = open_members(zip_of({"a": b"text" * 100}, tmp_path / "x.zip"))
        assert found.stretch(0, 0, 4) is None
        assert found.read(0) == b"text" * 100

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_not_there_any_more(self, tmp_path, kind):
        found = self.stored(kind, tmp_path / "x")
        path = tmp_path / "x" if kind != "folder" else tmp_path / "x" / "b" / "long.bin"
        if kind != "folder":
            other = self.stored("zip" if kind == "tar" else "tar", tmp_path / "other").source.read_bytes()
            path.write_bytes(other)
            with pytest.raises(DataError, match="has changed since it was listed; open it again"):
                found.stretch(1, 0, 5)
        path.unlink()
        with pytest.raises(DataError, match=r"is not there|cannot be read"):
            found.stretch(1, 0, 5)

    @pytest.mark.parametrize("kind", ["zip", "tar"])
    def test_an_archive_that_is_swapped_while_it_is_open(self, tmp_path, kind):
        found = self.stored(kind, tmp_path / "x")
        assert found.stretch(1, 0, 5) == self.LONG[:5]
        with (tmp_path / "x").open("r+b") as file:
            file.write(b"\xaa" * 4000)
        with pytest.raises(
            DataError, match=r"b/long\.bin is no longer where it was listed; .* has changed: open it again"
        ):
            found.stretch(1, 0, 5)
        with (tmp_path / "x").open("r+b") as file:
            file.truncate(100)
        with pytest.raises(DataError, match=r"no longer where it was listed|the archive ends inside it"):
            found.stretch(1, 0, 5)

    def test_an_archive_cut_off_while_it_is_open(self, tmp_path):
        found = self.stored("tar", tmp_path / "x")
        found.stretch(1, 0, 5)
        os.truncate(tmp_path / "x", 3000)
        assert found.stretch(1, 0, 5) == self.LONG[:5]
        with pytest.raises(DataError, match=r"b/long\.bin is damaged: the archive ends inside it"):
            found.stretch(1, 70_000, 5)

    @pytest.mark.long("fuzzing")
    def test_damage_of_any_kind(self, tmp_path):
        healthy = self.stored("zip", tmp_path / "x").source.read_bytes()

        def read(content):
            (tmp_path / "x").write_bytes(content)
            found = open_members(tmp_path / "x")
            for place in range(len(found)):
                found.stretch(place, 3, 100)

        assert survives(healthy, read, rounds=100) > 20


class TestLookup:
    def test_place(self, members):
        assert [members.place(name) for name in SORTED] == list(range(len(SORTED)))

    def test_a_missing_file_is_named_with_close_ones(self, members):
        said = r"release has no cars/1/mesch\.mat; did you mean 'cars/1/mesh\.mat'"
        with pytest.raises(DataError, match=said):
            members.place("cars/1/mesch.mat")
        with pytest.raises(DataError, match=r"has no cars/1/mesch\.mat; did you mean 'mesh\.mat'"):
            members.under("cars/1").place("mesch.mat")

    @pytest.mark.parametrize("many", [False, True])
    def test_places(self, members, many, monkeypatch):
        monkeypatch.setattr("setsup.files.archives.members._HASHED_FROM", 0 if many else 10)
        names = ["cars0", "", "nothing", *SORTED, "cars0", "cars/1"]
        expected = [SORTED.index(name) if name in SORTED else -1 for name in names]
        for given_names in (names, pa.array(names), pa.chunked_array([names[:3], names[3:]])):
            found = members.places(given_names)
            assert found.tolist() == expected
            assert found.dtype == np.int64
        assert members.places([]).tolist() == []
        below = members.under("cars/1")
        assert below.places(["mesh.mat", "cars/1/mesh.mat"]).tolist() == [1, -1]

    def test_contains(self, members):
        assert "cars/1/mesh.mat" in members
        assert "cars/1" not in members
        assert 3 not in members
        assert "\ud800" not in members

    def test_under_a_folder(self, members):
        cars = members.under("cars")
        assert cars.names.to_pylist() == ["1/mesh#2 é.mat", "1/mesh.mat", "10/mesh.mat"]
        assert cars.prefix == "cars/"
        one = cars.under("1/")
        assert one.names.to_pylist() == ["mesh#2 é.mat", "mesh.mat"]
        assert one.sizes.tolist() == [0, 2304]
        assert one.read(1) == FILES["cars/1/mesh.mat"]
        assert one.label(1).endswith("cars/1/mesh.mat")
        deep = members.under("many/深")
        assert deep.names.to_pylist() == ["x.png"]
        assert members.under("").names.to_pylist() == SORTED
        assert len(members.under("car")) == 0
        with pytest.raises(RowError):
            one.read(2)

    def test_matching(self, members):
        places, groups = members.matching(r"cars/(?P<car>\d+)/(?P<rest>mesh.*)\.mat")
        assert [SORTED[place] for place in places] == ["cars/1/mesh#2 é.mat", "cars/1/mesh.mat", "cars/10/mesh.mat"]
        assert groups["car"].to_pylist() == ["1", "1", "10"]
        assert groups["rest"].to_pylist() == ["mesh#2 é", "mesh", "mesh"]
        places, groups = members.under("cars").matching(r"(?P<car>\d+)/mesh\.mat|nothing")
        assert (places.tolist(), groups["car"].to_pylist()) == ([1, 2], ["1", "10"])
        assert members.matching(r"cars")[0].tolist() == []
        places, groups = members.matching(r".*\.txt")
        assert ([SORTED[place] for place in places], groups) == (["cars.txt", "list.txt"], {})

    def test_special_letters_of_a_prefix_are_letters(self, tmp_path):
        found = of("zip", {"a+(b).[x]/1.png": b"", "aab/1.png": b""}, tmp_path / "x.zip").under("a+(b).[x]")
        assert found.matching(r"(?P<n>\d)\.png")[1]["n"].to_pylist() == ["1"]


class TestProcesses:
    def test_a_pickle_is_a_path(self, members):
        below = members.under("cars/1")
        packed = pickle.dumps(below)
        assert len(packed) < 400
        again = pickle.loads(packed)
        assert again.names == below.names
        assert again.read(1) == below.read(1)
        assert pickle.loads(pickle.dumps(again)).label(0) == below.label(0)

    def test_a_pickle_of_what_has_changed_is_refused(self, members, tmp_path):
        packed = pickle.dumps(members)
        source = members.source
        shutil.rmtree(source) if source.is_dir() else source.unlink()
        kind = zip_of if zipfile.is_zipfile(source) else folder_of if members.path(0) else tar_of
        settle(kind({**FILES, "aaa": b"new"}, source), 1_600_000_001)
        with pytest.raises(DataError, match="has changed since the data set was opened"):
            pickle.loads(packed)

    @pytest.mark.long("worker processes")
    @pytest.mark.parametrize("how", ["fork", "spawn"])
    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    def test_other_processes_read(self, members, how):
        members.read(1)  # the archive is open by now
        context = multiprocessing.get_context(how)
        with context.Pool(2) as pool:
            found = pool.map(members.read, range(len(members)))
        assert found == [FILES[name] for name in SORTED]
        assert members.read(1) == FILES[SORTED[1]]

    def test_threads(self, members):
        started = threading.Barrier(8)

        def read(_):
            started.wait()
            return [members.read(place) for place in range(len(members))]

        with ThreadPoolExecutor(8) as pool:
            assert all(found == [FILES[name] for name in SORTED] for found in pool.map(read, range(8)))

    @pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
    def test_the_archive_is_closed_with_the_last_that_uses_it(self, tmp_path):
        found = of("tar", FILES, tmp_path / "x.tar")
        target = str(tmp_path / "x.tar")

        def opened():
            return sum(os.path.realpath(f"/proc/self/fd/{n}") == target for n in os.listdir("/proc/self/fd"))

        assert opened() == 0  # not before it is read
        below = found.under("cars")
        below.read(0)
        del found
        assert opened() == 1
        del below
        assert opened() == 0

    def test_a_folder_may_be_left(self, tmp_path, monkeypatch):
        for kind in KINDS:
            KINDS[kind](FILES, tmp_path / kind)
        monkeypatch.chdir(tmp_path)
        found = [open_members(kind) for kind in KINDS]
        monkeypatch.chdir("/")
        assert [members.read(members.place("cars.txt")) for members in found] == [b"cars"] * 3
        assert all(pickle.loads(pickle.dumps(members)).read(0) == members.read(0) for members in found)


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

    def test_a_damaged_index_is_made_anew(self, tmp_path, own_cache, caplog):
        expected = of("zip", FILES, tmp_path / "x")
        (index,) = cached(own_cache)
        healthy = index.read_bytes()
        for content in (b"", b"ARROW1", b"x" * 3000, healthy[:-20], healthy[:900] + b"\xff" + healthy[901:]):
            replaced(index, content)
            caplog.clear()
            assert open_members(tmp_path / "x").names == expected.names
            assert "is damaged and made anew" in caplog.text
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
            survives(index.read_bytes(), read, rounds=150, head=2000)
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


class TestFind:
    HOLDS = (r"list\.txt", r"cars/\d+/mesh\.mat")

    def test_in_a_folder_an_archive_in_it_or_an_archive(self, tmp_path):
        folder_of(FILES, tmp_path / "data")
        zip_of(FILES, tmp_path / "cars.zip")
        (tmp_path / "with").mkdir()
        tar_of(FILES, tmp_path / "with" / "cars.tar")
        for root in (tmp_path / "data", str(tmp_path / "cars.zip"), tmp_path / "with"):
            found = find_members("cars3d", root, self.HOLDS, ["cars.zip", "cars.tar"])
            assert found.names.to_pylist() == SORTED

    def test_in_the_folder_of_its_name_and_in_the_default_places(self, tmp_path, monkeypatch):
        folder_of({"x/y": b""}, tmp_path)
        folder_of(FILES, tmp_path / "cars3d")
        assert find_members("cars3d", tmp_path, self.HOLDS).source == tmp_path / "cars3d"
        monkeypatch.setenv("SETSUP_DATA", str(tmp_path))
        assert find_members("cars3d", None, self.HOLDS).source == tmp_path / "cars3d"

    def test_wrapping_folders_are_stripped(self, tmp_path):
        wrapped = {f"a/b c/{name}": content for name, content in FILES.items()}
        for kind in KINDS:
            KINDS[kind](wrapped, tmp_path / kind)
            found = find_members("cars3d", tmp_path / kind, self.HOLDS)
            assert (found.prefix, found.names.to_pylist()) == ("a/b c/", SORTED)

    def test_the_shallowest_folder_with_all_is_the_top(self, tmp_path):
        names = [
            "x/images/1.png",
            "x/list.txt",
            "images/list.txt",
            "b/c/images/1.png",
            "b/c/list.txt",
            "a/q/images/2.png",
        ]
        zip_of(dict.fromkeys(names, b""), tmp_path / "x.zip")
        assert find_members("y", tmp_path / "x.zip", [r"images/\d", r"list\.txt"]).prefix == "x/"
        assert find_members("y", tmp_path / "x.zip", [r"list\.txt"]).prefix == "images/"
        assert find_members("y", tmp_path / "x.zip", [r".*1\.png", r".*list"]).prefix == ""
        assert find_members("y", tmp_path / "x.zip", [r"images/2"]).prefix == "a/q/"

    def test_among_many_folders(self, tmp_path):
        names = [f"{i:03d}/{j}.png" for i in range(200) for j in range(3)]
        zip_of(dict.fromkeys([*names, "150/list.txt"], b""), tmp_path / "x.zip")
        assert find_members("y", tmp_path / "x.zip", [r"\d\.png", "list"]).prefix == "150/"

    def test_what_is_missing_is_said(self, tmp_path):
        folder_of({"list.txt": b""}, tmp_path / "x y")
        said = (
            f"cars3d: cars/*/mesh.mat not found; looked in {tmp_path}/x y, {tmp_path}/x y/cars3d (no such folder); "
            f"run `setsup fetch cars3d --root '{tmp_path}/x y'`, or name the folder that holds the files "
            "(--root or root=)"
        )
        with pytest.raises(DataError, match=f"^{re.escape(said)}$"):
            find_members("cars3d", tmp_path / "x y", self.HOLDS)
        with pytest.raises(DataError, match=r"looked in .*\(no such folder\); run `setsup fetch cars3d`, or name"):
            find_members("cars3d", None, self.HOLDS)
        folder_of({"a/list.txt": b"", "b/cars/1/mesh.mat": b""}, tmp_path / "apart")
        with pytest.raises(DataError, match=r"list\.txt, cars/\*/mesh\.mat not found|not found in one folder"):
            find_members("cars3d", tmp_path / "apart", self.HOLDS)

    def test_a_broken_archive_does_not_hide_what_was_unpacked(self, tmp_path):
        folder_of(FILES, tmp_path / "d")
        (tmp_path / "d" / "cars.zip").write_bytes(b"PK\x03\x04 not whole")
        assert len(find_members("cars3d", tmp_path / "d", self.HOLDS, ["cars.zip"])) == len(FILES) + 1
        (tmp_path / "d" / "list.txt").unlink()
        with pytest.raises(DataError, match=r"cars\.zip is cut off"):
            find_members("cars3d", tmp_path / "d", self.HOLDS, ["cars.zip"])

    def test_a_packed_archive_says_what_to_do(self, tmp_path):
        gz_of(FILES, tmp_path / "cars.tar.gz")
        said = r"packed with gzip as a whole, .*; unpack it \(tar -xf cars\.tar\.gz\) and name the folder"
        with pytest.raises(DataError, match=said):
            open_members(tmp_path / "cars.tar.gz")
        with pytest.raises(DataError, match=said):
            find_members("cars3d", tmp_path, self.HOLDS, ["cars.tar.gz"])

    @pytest.mark.parametrize(
        ("name", "write"), [("my cars.zip", zip_of), ("release.TAR", tar_of), ("download", zip_of), ("a.zip.1", tar_of)]
    )
    def test_an_archive_of_any_name_in_the_folder(self, tmp_path, name, write):
        write({f"wrap/{each}": content for each, content in FILES.items()}, tmp_path / name)
        zip_of({"other": b""}, tmp_path / "another.zip")
        (tmp_path / "broken.zip").write_bytes(b"<html>")
        found = find_members("cars3d", tmp_path, self.HOLDS, ["cars.zip"])
        assert (found.source, found.names.to_pylist()) == (tmp_path / name, SORTED)

    def test_archives_that_lie_there_are_a_last_resort(self, tmp_path):
        zip_of(FILES, tmp_path / "any.zip")
        zip_of(FILES, tmp_path / "cars.zip")
        folder_of(FILES, tmp_path / "cars3d")
        assert find_members("cars3d", tmp_path, self.HOLDS).source == tmp_path / "cars3d"
        assert find_members("cars", tmp_path, self.HOLDS, ["cars.zip"]).source == tmp_path / "cars.zip"
        (tmp_path / "cars3d" / "list.txt").unlink()
        assert find_members("cars3d", tmp_path, self.HOLDS).source == tmp_path / "any.zip"
        zip_of(FILES, tmp_path / "z-Cars3D.zip")  # the name of the data set first
        assert find_members("cars3d", tmp_path, self.HOLDS).source == tmp_path / "z-Cars3D.zip"

    def test_archives_without_the_release_are_named(self, tmp_path):
        zip_of({"x": b""}, tmp_path / "scenenn.zip")

        def said():
            with pytest.raises(DataError) as caught:
                find_members("cars3d", tmp_path, self.HOLDS)
            assert "\n" not in str(caught.value)
            return str(caught.value)

        assert f"{tmp_path}/cars3d (no such folder); scenenn.zip there holds nothing of it; run `setsup" in said()
        for number in range(4):
            tar_of({"x": b""}, tmp_path / f"{number}.tar")
        assert "; 0.tar, 1.tar, 2.tar and 2 more there hold nothing of it; run" in said()
        zip_of({"list.txt": b""}, tmp_path / "part.zip")
        zip_of({"a/list.txt": b"", "b/cars/1/mesh.mat": b""}, tmp_path / "two.zip")
        (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04 cut")
        gz_of(FILES, tmp_path / "my cars.tar.gz")
        text = said()
        assert "; part.zip there lacks cars/*/mesh.mat;" in text
        assert "; two.zip there has them in two folders;" in text
        assert "; cut.zip is cut off" in text
        assert "; my cars.tar.gz there is packed as a whole: unpack it (tar -xf 'my cars.tar.gz'); run `setsup" in text

    def test_only_so_many_archives_are_looked_into(self, tmp_path):
        for number in range(32):
            zip_of({"x": b""}, tmp_path / f"{number:02d}.zip")
        zip_of(FILES, tmp_path / "last.zip")
        with pytest.raises(DataError, match="and 29 more there hold nothing of it"):
            find_members("y", tmp_path, self.HOLDS)

    def test_an_archive_as_root_says_what_it_lacks(self, tmp_path):
        path = zip_of({"list.txt": b""}, tmp_path / "x.zip")
        said = f"cars3d: {path} holds no cars/*/mesh.mat; name another archive, or the folder that holds the files "
        with pytest.raises(DataError, match=f"^{re.escape(said)}.*or run `setsup fetch cars3d`$"):
            find_members("cars3d", path, self.HOLDS)
        zip_of({"a/list.txt": b"", "b/cars/1/mesh.mat": b""}, path)
        settle(path, 1_600_000_001)
        with pytest.raises(DataError, match=r"x\.zip holds list\.txt, cars/\*/mesh\.mat, but not in one folder; name"):
            find_members("cars3d", path, self.HOLDS)

    def test_words_for_what_is_missing(self, tmp_path):
        holds = {r"list\.txt": "the list", r"cars/(?P<n>\d+)": "cars/<number>"}
        with pytest.raises(DataError, match=r"^y: the list, cars/<number> not found; looked in"):
            find_members("y", tmp_path, holds)
        folder_of(FILES, tmp_path)
        assert find_members("y", tmp_path, holds).names.to_pylist() == SORTED

    def test_a_folder_that_may_not_be_entered(self, tmp_path, monkeypatch):
        real = os.stat

        def refused(path, *given, **named):
            if str(path).startswith(f"{tmp_path}/"):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *given, **named)

        monkeypatch.setattr(os, "stat", refused)
        with pytest.raises(DataError, match=rf"{tmp_path} \(may not be entered\), .*run `setsup fetch y"):
            find_members("y", tmp_path, self.HOLDS)


class TestReadable:
    @pytest.mark.parametrize(
        ("pattern", "words"),
        [
            (r"(?P<record>\w[\w.-]*)\.tfrecord", "*.tfrecord"),
            (r"[0-9]{8}(\.zip|/[^/]+/(models/model_normalized|model)\.obj)", "*"),
            (r"(train|val)/[^/]+/[0-9]{5}\.h5|((train|val|test)/)?([^/]+/)?rgb_[0-9]{5}\.jpg", "*/*/*.h5 or rgb_*.jpg"),
            (r"Annotations/[a-z]+_(pascal|imagenet)/[^/]+\.mat", "Annotations/*_*/*.mat"),
            (r"session0[1-4]/multiview/", "session0*/multiview/"),
            (r"^a\+\(b\)\[1\]\|c\\d$", "a+(b)[1]|c\\d"),
            (r"(?:ab){2}(?i:c)(\d+-)*x", "*cx"),
        ],
    )
    def test_no_expression_is_left(self, pattern, words):
        assert readable(pattern) == words


class TestKinds:
    def test_told_by_content(self, tmp_path):
        tar_of(FILES, tmp_path / "x.zip")
        zip_of(FILES, tmp_path / "x.tar")
        assert len(open_members(tmp_path / "x.zip")) == len(open_members(tmp_path / "x.tar")) == len(FILES)
        inner = tar_of({"inner.zip": (tmp_path / "x.tar").read_bytes()}, tmp_path / "outer")
        assert open_members(inner).names.to_pylist() == ["inner.zip"]

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "neither a folder nor a zip or tar"),
            (b"<!DOCTYPE html><html>quota exceeded</html>" * 20, "neither a folder nor a zip or tar: it begins with"),
            (b"PK\x03\x04" + bytes(100), "cut off"),
            (b"7z\xbc\xaf'\x1c" + bytes(600), "is a 7z archive; unpack it"),
            (b"Rar!\x1a\x07\x01\x00" + bytes(600), "is a RAR archive; unpack it"),
            (b"\xfd7zXZ\0" + bytes(600), "packed with xz as a whole"),
            (b"BZh9" + bytes(600), "packed with bzip2 as a whole"),
        ],
    )
    def test_what_it_is_not(self, tmp_path, content, said):
        (tmp_path / "x.zip").write_bytes(content)
        with pytest.raises(DataError, match=said):
            open_members(tmp_path / "x.zip")

    def test_no_file_at_all(self, tmp_path):
        with pytest.raises(DataError, match="is not there"):
            open_members(tmp_path / "nothing")
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(DataError, match="neither a folder nor a file"):
            open_members(tmp_path / "pipe")
