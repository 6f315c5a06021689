import multiprocessing
import os
import pickle
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.errors import DataError, RowError
from setsup.files import MemberIndex, open_members
from tests.files.archives.release_files import FILES, KINDS, SORTED, folder_of, settle, tar_of, zip_of
from tests.fuzzing import survives

LEFT_OUT = (
    *("__MACOSX", "@eaDir", "$RECYCLE.BIN", "System Volume Information", "lost+found"),
    *("Thumbs.db", "ehthumbs.db", "desktop.ini", "Icon\r"),
)
PARTS = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda part: part not in LEFT_OUT and not part.startswith(".") and part[1:2] != ":"
)
NAMES = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


# Hypothesis tries constants of the source, too: a pointer of Git LFS is refused
CONTENTS = st.binary(max_size=300).filter(lambda content: not content.startswith(b"version https://git-lfs"))


@pytest.fixture(params=KINDS)
def members(request, tmp_path) -> MemberIndex:
    return open_members(KINDS[request.param](FILES, tmp_path / "release"))


def of(kind, files, path):
    return open_members(KINDS[kind](files, path))


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
    @given(st.dictionaries(NAMES, CONTENTS, max_size=8), st.sampled_from(["zip", "tar"]))
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
            with pytest.raises(RowError, match="offset and length must be 0 or more"):
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
        with pytest.raises(DataError, match=r"does not exist|cannot be read"):
            found.stretch(1, 0, 5)

    @pytest.mark.parametrize("kind", ["zip", "tar"])
    def test_an_archive_that_is_swapped_while_it_is_open(self, tmp_path, kind):
        found = self.stored(kind, tmp_path / "x")
        assert found.stretch(1, 0, 5) == self.LONG[:5]
        with (tmp_path / "x").open("r+b") as file:
            file.write(b"\xaa" * 4000)
        with pytest.raises(
            DataError,
            match=r"b/long\.bin is not at the position where it was listed, because the archive has changed; open",
        ):
            found.stretch(1, 0, 5)
        with (tmp_path / "x").open("r+b") as file:
            file.truncate(100)
        with pytest.raises(DataError, match=r"is not at the position where it was listed|the archive ends within it"):
            found.stretch(1, 0, 5)

    def test_an_archive_cut_off_while_it_is_open(self, tmp_path):
        found = self.stored("tar", tmp_path / "x")
        found.stretch(1, 0, 5)
        os.truncate(tmp_path / "x", 3000)
        assert found.stretch(1, 0, 5) == self.LONG[:5]
        with pytest.raises(DataError, match=r"b/long\.bin is damaged: the archive ends within it"):
            found.stretch(1, 70_000, 5)

    @pytest.mark.long("fuzzing")
    def test_damage_of_any_kind(self, tmp_path):
        healthy = self.stored("zip", tmp_path / "x").source.read_bytes()

        def read(content):
            (tmp_path / "x").write_bytes(content)
            found = open_members(tmp_path / "x")
            for place in range(len(found)):
                found.stretch(place, 3, 100)

        assert survives(healthy, read, rounds=50) > 10


class TestLookup:
    def test_place(self, members):
        assert [members.place(name) for name in SORTED] == list(range(len(SORTED)))

    def test_a_missing_file_is_named_with_close_ones(self, members):
        said = r"cars/1/mesch\.mat not found in .*release; did you mean 'cars/1/mesh\.mat'"
        with pytest.raises(DataError, match=said):
            members.place("cars/1/mesch.mat")
        with pytest.raises(DataError, match=r"cars/1/mesch\.mat not found in .*; did you mean 'mesh\.mat'"):
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
        assert len(packed) < (2000 if members.path(0) else 400)  # the list of a small folder is kept nowhere else
        again = pickle.loads(packed)
        assert again.names == below.names
        assert again.read(1) == below.read(1)
        assert pickle.loads(pickle.dumps(again)).label(0) == below.label(0)

    @pytest.mark.parametrize(("kind", "write"), [("zip", zip_of), ("tar", tar_of)])
    def test_a_pickle_of_what_has_changed_is_refused(self, tmp_path, kind, write):
        members = of(kind, FILES, tmp_path / "release")
        packed = pickle.dumps(members)
        members.source.unlink()
        settle(write({**FILES, "aaa": b"new"}, members.source), 1_600_000_001)
        with pytest.raises(DataError, match="has changed since the dataset was opened"):
            pickle.loads(packed)

    @pytest.mark.parametrize("kept_from", [1, 10_000])
    def test_a_folder_into_which_a_run_writes_is_read_in_other_processes(self, tmp_path, monkeypatch, kept_from):
        for module in ("member_index", "members"):
            monkeypatch.setattr(f"setsup.files.archives.{module}.KEPT_FROM", kept_from)
        members = open_members(settle(folder_of(FILES, tmp_path / "x"), 1_600_000_001))
        packed = pickle.dumps(members)
        (members.source / "aaa").mkdir()
        (members.source / "aaa" / "first-batch.png").write_bytes(b"new")
        again = pickle.loads(packed)
        assert again.names == members.names
        assert [again.read(place) for place in range(len(again))] == [FILES[name] for name in SORTED]
        (members.source / SORTED[0]).unlink()
        with pytest.raises(DataError, match=r"cars\.txt does not exist"):
            pickle.loads(packed).read(0)

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
            (b"", "not a folder, zip or tar"),
            (b"<!DOCTYPE html><html>quota exceeded</html>" * 20, "not a folder, zip or tar: it begins with"),
            (b"PK\x03\x04" + bytes(100), "truncated"),
            (b"7z\xbc\xaf'\x1c" + bytes(600), "is a 7z archive, which is not supported; unpack it"),
            (b"Rar!\x1a\x07\x01\x00" + bytes(600), "is a RAR archive, which is not supported; unpack it"),
            (b"\xfd7zXZ\0" + bytes(600), "compressed with xz as a whole"),
            (b"BZh9" + bytes(600), "compressed with bzip2 as a whole"),
        ],
    )
    def test_what_it_is_not(self, tmp_path, content, said):
        (tmp_path / "x.zip").write_bytes(content)
        with pytest.raises(DataError, match=said):
            open_members(tmp_path / "x.zip")

    def test_no_file_at_all(self, tmp_path):
        with pytest.raises(DataError, match="does not exist"):
            open_members(tmp_path / "nothing")
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(DataError, match="neither a folder nor a file"):
            open_members(tmp_path / "pipe")
