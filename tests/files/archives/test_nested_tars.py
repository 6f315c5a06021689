import io
import pickle
import tarfile

import pytest

from setsup.errors import DataError
from setsup.files import open_members, unpack
from tests.files.archives.release_files import settle
from tests.fuzzing import survives

FORMS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
LONG = "/".join(["a folder with a long name"] * 9)
INNER = {
    "cars.tar": {"1.mat": b"one" * 400, "2.mat": bytes(range(256)), "empty": b""},
    "a/toys.TAR": {"b/1.txt": b"blocks", "b/._1.txt": b"left by a Mac"},
    f"{LONG}/far.tar": {f"{LONG}/é.png": b"far down" * 100},
    "none.tar": {},
}
OTHERS = {"list.txt": b"a car", "zebra": b"last" * 200}


def packed(files, form="pax"):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=FORMS[form]) as file:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            file.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def outer(form="pax"):
    return packed({**OTHERS, **{name: packed(files, form) for name, files in INNER.items()}}, form)


def expected(path):
    """What tarfile finds in the tar and in the tars in it."""
    found = {}
    with tarfile.open(path) as file:
        for info in file:
            content = file.extractfile(info).read()
            if not info.name.lower().endswith(".tar"):
                found[info.name] = content
                continue
            with tarfile.open(fileobj=io.BytesIO(content)) as inner:
                found |= {f"{info.name}/{each.name}": inner.extractfile(each).read() for each in inner}
    return {name: content for name, content in found.items() if "._" not in name}


def read_all(members):
    return {members.names[place].as_py(): members.read(place) for place in range(len(members))}


@pytest.fixture
def archive(tmp_path):
    (tmp_path / "x").write_bytes(outer())
    return settle(tmp_path / "x")


@pytest.mark.parametrize("form", [form for form in FORMS if form != "ustar"])
def test_files_of_inner_tars_are_read_where_they_lie(tmp_path, form):
    (tmp_path / "x").write_bytes(outer(form))
    settle(tmp_path / "x")
    there = expected(tmp_path / "x")
    for _ in range(2):  # listed, and from the kept index
        members = open_members(tmp_path / "x", nested=True)
        assert members.names.to_pylist() == sorted(there, key=str.encode)
        assert read_all(members) == there
    place = members.place("cars.tar/1.mat")
    assert members.label(place) == f"{tmp_path / 'x'}: cars.tar/1.mat"
    assert members.stretch(place, 1, 4) == b"neon"
    assert members.under("cars.tar").names.to_pylist() == ["1.mat", "2.mat", "empty"]


def test_both_ways_of_listing_are_kept_apart(archive):
    for _ in range(2):
        plain, nested = open_members(archive), open_members(archive, nested=True)
        assert "cars.tar" in plain
        assert "cars.tar" not in nested
        assert "cars.tar/1.mat" not in plain
        for members in (plain, nested, nested.under("cars.tar")):
            again = pickle.loads(pickle.dumps(members))
            assert again.names == members.names
            assert read_all(again) == read_all(members)


def test_unpacking_leaves_inner_tars_whole(archive, tmp_path):
    open_members(archive, nested=True)
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "cars.tar").read_bytes() == packed(INNER["cars.tar"])


def test_folders_and_zips_are_listed_as_ever(tmp_path):
    (tmp_path / "cars.tar").write_bytes(packed(INNER["cars.tar"]))
    assert open_members(tmp_path, nested=True).names.to_pylist() == ["cars.tar"]


def test_what_is_named_like_a_tar_and_is_none_stays_a_file(tmp_path):
    others = {"none.tar": b"no tar at all" * 100, "short.tar": b"no", "empty.tar": b""}
    left = {"._cars.tar": bytes(range(256)) * 3, "a/._cars.tar": packed({"x": b"y"}), ".trash/old.tar": packed({})}
    (tmp_path / "x").write_bytes(packed({"cars.tar": packed(INNER["cars.tar"]), **others, **left}))
    found = read_all(open_members(tmp_path / "x", nested=True))
    assert {name: content for name, content in found.items() if "/" not in name} == others
    assert {name: found[f"cars.tar/{name}"] for name in INNER["cars.tar"]} == INNER["cars.tar"]
    assert not any("._cars.tar/" in name for name in found)


def test_a_cut_or_damaged_inner_tar_is_named(tmp_path):
    whole = packed(INNER["cars.tar"])
    second = whole.index(b"2.mat")
    for wrong in (whole[:1024], whole[:second] + b"?" + whole[second + 1 :]):
        (tmp_path / "x").write_bytes(packed({"list.txt": b"", "cars.tar": wrong}))
        with pytest.raises(DataError, match=r"x: cars\.tar is (truncated|damaged)"):
            open_members(tmp_path / "x", nested=True)


def test_names_that_lead_out_of_an_inner_tar_are_refused(tmp_path):
    (tmp_path / "x").write_bytes(packed({"cars.tar": packed({"../1.mat": b"x"})}))
    with pytest.raises(DataError, match=r"x: cars\.tar contains a file named '\.\./1\.mat'"):
        open_members(tmp_path / "x", nested=True)


def test_another_archive_in_its_place_is_noticed(tmp_path, archive):
    members = open_members(archive, nested=True)
    archive.write_bytes(packed({"a": b"b" * 20000}))
    with pytest.raises(DataError, match="changed"):
        members.read(members.place("cars.tar/1.mat"))


@pytest.mark.long("fuzzing")
def test_damage(tmp_path):
    path = tmp_path / "x"

    def read(content):
        path.write_bytes(content)
        read_all(open_members(path, nested=True))

    healthy = packed({name: packed(files, "gnu") for name, files in list(INNER.items())[:2]}, "gnu")
    assert survives(healthy, read, 150, head=4096) > 25
