"""Files under an address: the same promises on a disk, in a bucket and in memory; and what addresses are."""

import errno
import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.files.atomic import is_temporary
from setsup.shards.stores import remote
from setsup.shards.stores.errors import classify
from setsup.shards.stores.opening import intended_address, open_store
from setsup.shards.stores.store import Range, join_address
from tests.shards.sets import content, local

KINDS = ("folder", "s3", "memory", "file://")


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    if request.param == "s3":
        bucket = request.getfixturevalue("bucket")
        return open_store(bucket.url, bucket.options)
    if request.param == "memory":
        return open_store(request.getfixturevalue("memory"))
    folder = tmp_path / "a set"
    return open_store(folder if request.param == "folder" else f"file://{tmp_path}/a%20set")


# -- what every store that can be written does ---------------------------------------------------------------------


@pytest.mark.long("stores")
def test_what_was_put_is_listed_and_can_be_had(store, tmp_path):
    assert store.names() == []
    assert store.size("data-00000.tar") is None
    data = {
        "data-00001.tar": content(1, 70_000),
        "data-00000.tar": content(0, 3000),
        "in/side.tar": b"",
        "é [1].txt": b"x",
    }
    for name, one in data.items():
        path = local(tmp_path, one)
        store.put(name, path)
        assert not path.exists()
    assert store.put_bytes(".setsup/parts/00000.parquet", b"part") is True
    assert store.names() == sorted(data)
    assert {name: store.size(name) for name in data} == {name: len(one) for name, one in data.items()}
    assert {name: store.read(name, 100_000) for name in data} == data
    assert store.read(".setsup/parts/00000.parquet", 4) == b"part"
    assert store.size("in") is None


@pytest.mark.long("stores")
def test_ranges_come_in_the_order_asked_for(store, tmp_path):
    data = {f"{number}.tar": content(number, 5000) for number in range(3)}
    for name, one in data.items():
        store.put(name, local(tmp_path, one))
    rng = np.random.default_rng(5)
    wanted = []
    for _ in range(150):
        start, stop = sorted(rng.integers(0, 5001, 2).tolist())
        wanted.append(Range(f"{rng.integers(3)}.tar", start, stop))
    assert store.ranges(wanted) == [data[one.name][one.start : one.stop] for one in wanted]
    assert store.ranges([]) == []


@pytest.mark.long("stores")
def test_a_copy_on_the_disk_is_whole(store, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "_PIECE", 10_000)
    for number, size in enumerate((0, 1, 10_000, 123_456)):
        data = content(number, size)
        store.put("x.bin", local(tmp_path, data))
        store.get("x.bin", tmp_path / "copies" / "x.bin")
        assert (tmp_path / "copies" / "x.bin").read_bytes() == data
    with pytest.raises(DataError, match=r"missing\.bin does not exist"):
        store.get("missing.bin", tmp_path / "copies" / "y.bin")
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["x.bin"]


@pytest.mark.long("stores")
def test_a_small_file_is_written_over_or_only_where_there_is_none(store):
    assert store.put_bytes(".setsup/plan.json", b"mine", fresh=True) is True
    assert store.put_bytes(".setsup/plan.json", b"theirs", fresh=True) is False
    assert store.read(".setsup/plan.json", 100) == b"mine"
    assert store.put_bytes(".setsup/plan.json", b"new") is True
    assert store.read(".setsup/plan.json", 100) == b"new"
    store.remove([".setsup/plan.json"])
    assert store.put_bytes(".setsup/plan.json", b"theirs", fresh=True) is True


@pytest.mark.long("stores")
def test_of_many_who_write_a_fresh_file_one_does(store):
    with ThreadPoolExecutor(8) as pool:
        wrote = list(pool.map(lambda one: store.put_bytes("plan.json", b"%d" % one, fresh=True), range(16)))
    if not store.url.startswith("memory"):  # which is one process's, and knows no such condition among threads
        assert sum(wrote) == 1
        assert store.read("plan.json", 10) == b"%d" % wrote.index(True)


@pytest.mark.long("stores")
def test_what_is_removed_is_gone_and_what_was_not_there_does_not_matter(store):
    for name in ("a.tar", ".setsup/parts/0", ".setsup/parts/1"):
        store.put_bytes(name, b"x")
    store.remove([".setsup/parts/0", ".setsup/parts/1", "never/there.tar"])
    store.remove([])
    assert store.names() == ["a.tar"]
    assert store.size(".setsup/parts/0") is None
    if store.folder is not None:
        assert sorted(path.name for path in store.folder.iterdir()) == ["a.tar"]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "", ".", "a//b", "a\\b", "~/x", "a/./b", "x\n"])
def test_no_name_leads_out(store, name, tmp_path):
    path = local(tmp_path, b"mine")
    calls = (
        lambda: store.read(name, 10),
        lambda: store.ranges([Range(name, 0, 1)]),
        lambda: store.size(name),
        lambda: store.get(name, tmp_path / "copy"),
        lambda: store.put(name, path),
        lambda: store.put_bytes(name, b""),
        lambda: store.put_bytes(name, b"", fresh=True),
        lambda: store.remove([name]),
    )
    for call in calls:
        with pytest.raises(DataError, match=r"invalid name .* of a file in"):
            call()
    assert path.read_bytes() == b"mine"


def test_what_is_missing_too_long_or_cut_off_is_named(store, short_waits):
    store.put_bytes("a.tar", b"x" * 100)
    where = store.url
    for call, said in (
        (lambda: store.read("b.tar", 10), "b.tar does not exist"),
        (lambda: store.ranges([Range("b.tar", 0, 1)]), "b.tar does not exist"),
        (lambda: store.read("a.tar", 99), "a.tar (is larger|has .*more) than"),
        (lambda: store.ranges([Range("a.tar", 90, 101)]), "a.tar .*ends before"),
        (lambda: store.ranges([Range("a.tar", 200, 210)]), "a.tar .*ends before"),
    ):
        with pytest.raises(DataError, match=said) as caught:
            call()
        assert str(caught.value).startswith(where)


@pytest.mark.long("worker processes")
def test_a_store_travels_and_survives_forks_and_threads(store):
    store.put_bytes("a.tar", b"0123456789")
    there = pickle.loads(pickle.dumps(store))
    assert (there.url, there.folder) == (store.url, store.folder)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: there.ranges([Range("a.tar", k % 10, k % 10 + 1)])[0], range(64)))
    assert found == [b"%d" % (k % 10) for k in range(64)]
    process = os.fork()
    if not process:
        code = 1
        try:
            code = 0 if store.ranges([Range("a.tar", 3, 5)]) == [b"34"] else 2
            if store.folder is None:
                there._opened = None
                gc.collect()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    # nothing that the child did closed a connection here
    assert there.ranges([Range("a.tar", 3, 5)] * 20) == [b"34"] * 20


# -- folders -------------------------------------------------------------------------------------------------------


def test_a_full_or_read_only_disk_leaves_nothing(tmp_path, monkeypatch):
    store = open_store(tmp_path / "set")
    store.put_bytes("a.tar", b"old")
    path = local(tmp_path, b"new")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for call in (
        lambda: store.put("a.tar", path),
        lambda: store.put_bytes("a.tar", b"new"),
        lambda: store.put_bytes("b.tar", b"new", fresh=True),
    ):
        with pytest.raises(DataError, match="the disk is full"):
            call()
    monkeypatch.undo()
    assert path.read_bytes() == b"new"
    assert {one.name: one.read_bytes() for one in (tmp_path / "set").iterdir()} == {"a.tar": b"old"}


def test_a_file_is_moved_from_another_disk(tmp_path, monkeypatch):
    store = open_store(tmp_path / "set")
    path = local(tmp_path, b"new")
    true = type(path).replace

    def elsewhere(self, target):
        if self == path:
            raise OSError(errno.EXDEV, "Invalid cross-device link", str(self))
        return true(self, target)

    monkeypatch.setattr(type(path), "replace", elsewhere)
    store.put("a.tar", path)
    assert not path.exists()
    assert {one.name: one.read_bytes() for one in (tmp_path / "set").iterdir()} == {"a.tar": b"new"}


def test_what_a_kill_leaves_of_a_fresh_file_is_known_as_temporary(tmp_path, monkeypatch):
    left = []
    monkeypatch.setattr(os, "link", lambda part, target: left.append(part.name))
    open_store(tmp_path).put_bytes("plan.json", b"mine", fresh=True)
    assert [is_temporary(name) for name in left] == [True]


def test_a_disk_without_second_names_knows_fresh_files_too(tmp_path, monkeypatch):
    def never(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", never)
    store = open_store(tmp_path)
    assert [store.put_bytes("plan.json", b"%d" % k, fresh=True) for k in range(3)] == [True, False, False]
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == {"plan.json": b"0"}


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path):
    path = local(tmp_path, b"")
    with pytest.raises(DataError, match="is a file"):
        open_store(path).names()
    with pytest.raises(DataError, match="made"):
        open_store(path).put_bytes("x", b"")


def test_the_home_folder_is_known(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_store("~/set").folder == tmp_path / "set"


# -- addresses -----------------------------------------------------------------------------------------------------


def test_unknown_addresses_and_missing_libraries_are_told():
    with pytest.raises(DataError, match=r"foo://bar/x cannot be opened .*Protocol not known"):
        open_store("foo://bar/x")
    with pytest.raises(DataError, match=r"http://\[bad is not a valid address"):
        open_store("http://[bad")
    with pytest.raises(DataError, match=r"^\[bad is not a valid address") as error:
        open_store("https://me:word@[bad?sig=secret")
    assert "word" not in str(error.value)
    assert "secret" not in str(error.value)
    with pytest.raises(DataError, match="paramiko"):
        open_store("sftp://host/x")


@pytest.mark.parametrize(
    ("address", "right"),
    [
        ("s3:/b/x", "s3://b/x"),
        ("s3:b/x", "s3://b/x"),
        ("S3:/b", "s3://b"),
        ("gs:b", "gs://b"),
        ("https:/host.org/set", "https://host.org/set"),
        ("memory:/set", "memory://set"),
        ("file:/tmp/set", "file:///tmp/set"),
    ],
)
def test_an_address_that_lacks_a_slash_is_no_folder(address, right, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=f"{address} is neither an address.* did you mean {right}\\?"):
        open_store(address)
    assert list(tmp_path.iterdir()) == []
    if not address.startswith("file:"):
        (tmp_path / address).mkdir(parents=True)
        assert open_store(address).folder == tmp_path / address
    assert open_store(f"./{address}").folder == tmp_path / address


def test_folders_may_have_colons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("my:set", "a b:c", "12:30", "x/s3:/y", "C:set"):
        assert open_store(name).folder == tmp_path / name


@pytest.mark.long("stores")
@pytest.mark.parametrize("address", ["s3://", "s3:///set", "gs://", "https:///set", "simplecache::s3://"])
def test_an_address_without_a_bucket_is_told_as_given(address):
    if "::" in address:
        assert open_store(address).url == address
        return
    with pytest.raises(DataError, match=f"^{address} contains no (bucket|server); expected an address such as"):
        open_store(address)


def test_addresses_are_said_as_given():
    store = open_store("memory://")
    assert store.url == "memory://"
    with pytest.raises(DataError, match=r"^memory://gone\.tar does not exist"):
        store.read("gone.tar", 10)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://me:word@host.org/set?sig=secret#part", "https://host.org/set"),
        ("s3://bucket/set", "s3://bucket/set"),
        ("simplecache::https://me:word@host.org/set", "simplecache::https://host.org/set"),
    ],
)
def test_credentials_are_never_said(address, said):
    store = open_store(address)
    assert store.url == said
    assert "word" not in repr(store)
    assert "secret" not in repr(store)


def test_addresses_of_files_in_messages():
    assert join_address("s3://bucket/set/", "data-00000.tar") == "s3://bucket/set/data-00000.tar"
    assert join_address("memory://", "data-00000.tar") == "memory://data-00000.tar"


def test_other_text_is_no_mistyped_address():
    assert intended_address("my:notes") is None


def test_what_an_error_is_may_stand_at_any_of_its_causes():
    """Libraries wrap errors of those that they use, some of them twice; what is hidden on purpose does not count."""

    def wrapped(*, hidden):
        try:
            try:
                raise FileNotFoundError("gone")
            except FileNotFoundError as error:
                raise ValueError("no answer") from (None if hidden else error)
        except ValueError as error:
            try:
                raise RuntimeError("the request failed") from error
            except RuntimeError as outer:
                return outer

    assert classify(wrapped(hidden=False), "s3").missing
    assert not classify(wrapped(hidden=True), "s3").missing
