"""Files under an address: the same promises on a disk, in a bucket, in memory, and what a web server can do wrong."""

import errno
import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import numpy as np
import pytest

from setsup.errors import DataError
from setsup.files.atomic import is_temporary
from setsup.shards.stores import remote as remote_store
from setsup.shards.stores.ranges import AT_ONCE
from setsup.shards.stores.store import Range, open_store

KINDS = ("folder", "s3", "memory", "file://")


def content(number, size):
    return np.random.default_rng(number).integers(0, 256, size, np.uint8).tobytes()


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    if request.param == "s3":
        bucket = request.getfixturevalue("bucket")
        return open_store(bucket.url, bucket.options)
    if request.param == "memory":
        return open_store(request.getfixturevalue("memory"))
    folder = tmp_path / "a set"
    return open_store(folder if request.param == "folder" else f"file://{tmp_path}/a%20set")


def local(tmp_path, data):
    path = tmp_path / "made"
    path.write_bytes(data)
    return path


# -- what every store that can be written does -------------------------------------------------------------------------


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


def test_a_copy_on_the_disk_is_whole(store, tmp_path, monkeypatch):
    monkeypatch.setattr(remote_store, "_PIECE", 10_000)
    for number, size in enumerate((0, 1, 10_000, 123_456)):
        data = content(number, size)
        store.put("x.bin", local(tmp_path, data))
        store.get("x.bin", tmp_path / "copies" / "x.bin")
        assert (tmp_path / "copies" / "x.bin").read_bytes() == data
    with pytest.raises(DataError, match=r"missing\.bin is not there"):
        store.get("missing.bin", tmp_path / "copies" / "y.bin")
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["x.bin"]


def test_a_small_file_is_written_over_or_only_where_there_is_none(store):
    assert store.put_bytes(".setsup/plan.json", b"mine", fresh=True) is True
    assert store.put_bytes(".setsup/plan.json", b"theirs", fresh=True) is False
    assert store.read(".setsup/plan.json", 100) == b"mine"
    assert store.put_bytes(".setsup/plan.json", b"new") is True
    assert store.read(".setsup/plan.json", 100) == b"new"
    store.remove([".setsup/plan.json"])
    assert store.put_bytes(".setsup/plan.json", b"theirs", fresh=True) is True


def test_of_many_who_write_a_fresh_file_one_does(store):
    with ThreadPoolExecutor(8) as pool:
        wrote = list(pool.map(lambda one: store.put_bytes("plan.json", b"%d" % one, fresh=True), range(16)))
    if not store.url.startswith("memory"):  # which is one process's, and knows no such condition among threads
        assert sum(wrote) == 1
        assert store.read("plan.json", 10) == b"%d" % wrote.index(True)


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
        with pytest.raises(DataError, match="cannot be the name of a file in"):
            call()
    assert path.read_bytes() == b"mine"


def test_what_is_missing_too_long_or_cut_off_is_named(store, short_waits):
    store.put_bytes("a.tar", b"x" * 100)
    where = store.url
    for call, said in (
        (lambda: store.read("b.tar", 10), "b.tar is not there"),
        (lambda: store.ranges([Range("b.tar", 0, 1)]), "b.tar is not there"),
        (lambda: store.read("a.tar", 99), "a.tar has .*more than"),
        (lambda: store.ranges([Range("a.tar", 90, 101)]), "a.tar ends before"),
        (lambda: store.ranges([Range("a.tar", 200, 210)]), "a.tar ends before"),
    ):
        with pytest.raises(DataError, match=said) as caught:
            call()
        assert str(caught.value).startswith(where)


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


# -- folders -----------------------------------------------------------------------------------------------------------


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


# -- addresses ---------------------------------------------------------------------------------------------------------


def test_unknown_addresses_and_missing_libraries_are_told():
    with pytest.raises(DataError, match=r"foo://bar/x is no address .*Protocol not known"):
        open_store("foo://bar/x")
    with pytest.raises(DataError, match=r"http://\[bad is no address"):
        open_store("http://[bad")
    with pytest.raises(DataError, match=r"^\[bad is no address") as error:
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
    with pytest.raises(DataError, match=f"{address} is no address.* did you mean {right}\\?"):
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


@pytest.mark.parametrize("address", ["s3://", "s3:///set", "gs://", "https:///set", "simplecache::s3://"])
def test_an_address_without_a_bucket_is_told_as_given(address):
    if "::" in address:
        assert open_store(address).url == address
        return
    with pytest.raises(DataError, match=f"^{address} names no (bucket|server); an address such as"):
        open_store(address)


def test_addresses_are_said_as_given():
    store = open_store("memory://")
    assert store.url == "memory://"
    with pytest.raises(DataError, match=r"^memory://gone\.tar is not there"):
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


# -- S3 ----------------------------------------------------------------------------------------------------------------


def test_another_client_sees_what_was_put_and_we_what_it_put(bucket, tmp_path):
    client = boto3.client("s3", endpoint_url=bucket.endpoint, region_name="us-east-1")
    name = bucket.url.split("/")[2]
    store = open_store(bucket.url, bucket.options)
    data = content(1, 200_000)
    store.put("data-00000.tar", local(tmp_path, data))
    assert client.get_object(Bucket=name, Key="set/data-00000.tar")["Body"].read() == data
    assert store.names() == ["data-00000.tar"]
    client.put_object(Bucket=name, Key="set/data-00001.tar", Body=b"theirs")
    client.put_object(Bucket=name, Key="set-of-others/data-00002.tar", Body=b"theirs")
    client.put_object(Bucket=name, Key="set/.hidden/data-00003.tar", Body=b"theirs")
    client.put_object(Bucket=name, Key="set/empty-folder/", Body=b"")
    assert store.names() == ["data-00000.tar", "data-00001.tar"]  # no list is remembered
    client.put_object(Bucket=name, Key="set/data-00001.tar", Body=b"theirs, longer")
    assert store.size("data-00001.tar") == 14


def test_a_large_file_goes_in_parts_and_one_that_fails_leaves_nothing(bucket, tmp_path, monkeypatch, short_waits):
    from s3fs import S3FileSystem

    store = open_store(bucket.url, bucket.options)
    data = content(2, 12 << 20)
    true_put, true_call = S3FileSystem._put_file, S3FileSystem._call_s3
    parts = []

    async def in_parts(self, lpath, rpath, **how):
        return await true_put(self, lpath, rpath, chunksize=5 << 20, **how)

    async def failing(self, method, *more, **how):
        if method == "upload_part":
            parts.append(how["PartNumber"])
            if how["PartNumber"] == 3 and len(parts) <= 12:
                raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        return await true_call(self, method, *more, **how)

    monkeypatch.setattr(S3FileSystem, "_put_file", in_parts)
    monkeypatch.setattr(S3FileSystem, "_call_s3", failing)
    path = local(tmp_path, data)
    with pytest.raises(DataError, match=r"data-00000\.tar cannot be had now: the connection dropped"):
        store.put("data-00000.tar", path)
    assert store.names() == []
    assert path.exists()
    store.put("data-00000.tar", path)
    assert store.size("data-00000.tar") == len(data)
    assert store.ranges([Range("data-00000.tar", (5 << 20) - 9, (10 << 20) + 9)]) == [
        data[(5 << 20) - 9 : (10 << 20) + 9]
    ]


def test_a_bucket_that_is_not_there_is_told(bucket):
    store = open_store("s3://no-such-bucket-at-all/set", bucket.options)
    for call in (
        store.names,
        lambda: store.size("a"),
        lambda: store.ranges([Range("a", 0, 1)]),
        lambda: store.put_bytes("a", b""),
    ):
        with pytest.raises(DataError, match="there is no such bucket"):
            call()


def test_missing_credentials_are_told_with_what_to_do(bucket, monkeypatch, tmp_path):
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(key)
    monkeypatch.setenv("HOME", str(tmp_path))
    store = open_store(bucket.url, bucket.options)
    for call in (
        store.names,
        lambda: store.size("a"),
        lambda: store.ranges([Range("a", 0, 1)]),
        lambda: store.put_bytes("a", b""),
    ):
        with pytest.raises(DataError, match=r"without credentials.*AWS_PROFILE.*FSSPEC_S3_ANON=true"):
            call()


def test_ranges_in_s3_are_read_by_addresses_signed_once_a_file(bucket, web, tmp_path, monkeypatch):
    store = open_store("s3://bucket/set", {"endpoint_url": web.url})
    web.files |= {"bucket/set/a é#%.tar": content(1, 5000), "bucket/set/b.tar": content(2, 5000)}
    wanted = [Range(name, start, start + 9) for name in ("a é#%.tar", "b.tar") for start in range(0, 4000, 100)]
    assert store.ranges(wanted) == [web.files[f"bucket/set/{one.name}"][one.start : one.stop] for one in wanted]
    assert len(web.seen) == len(wanted)
    assert len({query for query in web.queries if "X-Amz-Signature=" in query}) == 2
    assert all("X-Amz-Algorithm=AWS4-HMAC-SHA256" in query for query in web.queries)
    assert not any("Authorization" in headers for headers in web.headers)


@pytest.mark.parametrize("wrong", [400, 403, 301])
def test_what_s3_refuses_by_a_signed_address_is_asked_for_by_the_library(bucket, web, wrong):
    store = open_store("s3://bucket/set", {"endpoint_url": web.url})
    web.files["bucket/set/a.tar"] = content(1, 5000)
    for turn in range(6):
        web.failing = [wrong] if turn < 4 else []
        assert store.ranges([Range("a.tar", 5, 50)]) == [content(1, 5000)[5:50]]
    signed = ["X-Amz-Signature=" in query for query in web.queries]
    assert signed == [True, False] * 4 + [False] * 2


def test_a_public_bucket_needs_no_credentials(bucket, monkeypatch, tmp_path):
    open_store(bucket.url, bucket.options).put_bytes("a.tar", b"0123456789")
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(key)
    monkeypatch.setenv("HOME", str(tmp_path))
    boto3.client("s3", endpoint_url=bucket.endpoint, aws_access_key_id="a", aws_secret_access_key="b").put_object_acl(
        Bucket=bucket.url.split("/")[2], Key="set/a.tar", ACL="public-read"
    )
    store = open_store(bucket.url, {**bucket.options, "anon": True})
    assert store.ranges([Range("a.tar", 2, 4)]) == [b"23"]
    assert store.size("a.tar") == 10


def test_users_own_keys_go_with_each_request(bucket, web):
    store = open_store(
        "s3://bucket/set", {"endpoint_url": web.url, "s3_additional_kwargs": {"RequestPayer": "requester"}}
    )
    web.files["bucket/set/a.tar"] = content(1, 5000)
    assert store.ranges([Range("a.tar", 5, 50)]) == [content(1, 5000)[5:50]]
    assert {key.lower(): value for key, value in web.headers[-1].items()}["x-amz-request-payer"] == "requester"
    assert not any("X-Amz-Signature=" in query for query in web.queries)


def test_an_s3_server_that_cannot_be_reached_or_refuses_is_told(bucket, web, short_waits):
    quick = {"config_kwargs": {"retries": {"max_attempts": 0}}}
    store = open_store("s3://bucket/set", {"endpoint_url": "http://127.0.0.1:9", **quick})
    with pytest.raises(DataError, match=r"s3://bucket/set/a cannot be reached"):
        store.ranges([Range("a", 0, 1)])
    store = open_store("s3://bucket/set", {"endpoint_url": web.url, **quick})
    web.files["bucket/set/a"] = b"0123456789"
    web.failing = [403, 403]
    with pytest.raises(DataError, match=r"a is refused by the store \(HTTP 403\).*AWS_PROFILE"):
        store.ranges([Range("a", 2, 4)])
    web.failing = [-3, 500, -1]
    assert store.ranges([Range("a", 2, 9)]) == [b"2345678"]
    web.failing = [503] * 99
    with pytest.raises(DataError, match="a cannot be had now: the store answers HTTP 503"):
        store.ranges([Range("a", 2, 4)])
    assert len(web.seen) < 40


# -- the Hub and Google's, as far as a web server can play them --------------------------------------------------------


@pytest.fixture
def hub(web):
    def write(**files):
        here = "api/datasets/me/shapes"
        about = {
            "id": "me/shapes",
            "sha": "a" * 40,
            "siblings": [],
            "private": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
        }
        web.files |= {here: json.dumps(about).encode(), f"{here}/revision/main": json.dumps(about).encode()}
        tree = [
            {"type": "file", "oid": "b" * 40, "size": len(one), "path": f"set/{name}.tar"}
            for name, one in files.items()
        ]
        web.files[f"{here}/tree/main/set"] = json.dumps(tree).encode()
        web.files |= {f"datasets/me/shapes/resolve/main/set/{name}.tar": one for name, one in files.items()}

    write(a=content(1, 5000), b=content(2, 300))
    return web, write


def test_files_of_the_hub_are_read(hub, monkeypatch, tmp_path):
    web, write = hub
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    store = open_store("hf://datasets/me/shapes/set", {"endpoint": web.url, "token": False})
    assert store.names() == ["a.tar", "b.tar"]
    assert [store.size(name) for name in ("a.tar", "b.tar", "c.tar")] == [5000, 300, None]
    web.seen.clear()
    web.delay = 0.05
    wanted = [Range("a.tar", start, start + 70) for start in range(0, 4800, 150)]
    assert store.ranges(wanted) == [content(1, 5000)[one.start : one.stop] for one in wanted]
    assert len(web.seen) == len(wanted)  # and nothing is read ahead
    assert web.most > 4
    web.delay = 0
    write(a=content(1, 5000), c=b"1234")
    assert store.names() == ["a.tar", "c.tar"]
    assert store.size("c.tar") == 4


@pytest.mark.parametrize(
    ("wrong", "said"), [(401, "HF_TOKEN"), (403, "HF_TOKEN"), (404, "is not there"), (500, "HTTP 500")]
)
def test_what_the_hub_refuses_is_told(hub, wrong, said):
    web, _ = hub
    store = open_store("hf://datasets/me/shapes/set", {"endpoint": web.url, "token": False})
    web.failing = [wrong] * 99
    with pytest.raises(DataError, match=f"^hf://datasets/me/shapes/set/a.tar .*{said}"):
        store.ranges([Range("a.tar", 5, 10)])
    if wrong == 404:
        assert (store.size("a.tar"), store.names()) == (None, [])
    else:
        for call in (store.names, lambda: store.size("a.tar")):
            with pytest.raises(DataError, match=f"^hf://datasets/me/shapes/set.*{said}"):
                call()


def test_files_of_googles_are_read_and_refusals_told(web, tmp_path):
    for name, one in {"a.tar": content(1, 5000), "b.tar": content(2, 300)}.items():
        about = {"name": f"set/{name}", "bucket": "bucket", "size": str(len(one)), "kind": "storage#object"}
        web.files[f"storage/v1/b/bucket/o/set/{name}"] = json.dumps(about).encode()
        web.files[f"download/storage/v1/b/bucket/o/set/{name}"] = one
        listed = json.loads(web.files.get("storage/v1/b/bucket/o", b'{"items": []}'))
        web.files["storage/v1/b/bucket/o"] = json.dumps({"items": [*listed["items"], about]}).encode()
    script = f"""
import sys
from setsup.errors import DataError
from setsup.shards.stores.store import Range, open_store
store = open_store("gs://bucket/set", {{"endpoint_url": {web.url!r}, "token": "anon"}})
print(store.names(), store.size("a.tar"), store.size("c.tar"))
sys.stdout.flush()
sys.stdout.buffer.write(b"".join(store.ranges([Range("a.tar", start, start + 70) for start in range(0, 4800, 150)])))
for wanted in (Range("c.tar", 0, 1), Range("b.tar", 290, 301)):
    try:
        store.ranges([wanted])
    except DataError as error:
        print(error, file=sys.stderr)
"""
    # in a process of its own, since the library has to be told at its import that no bucket is of the newest kind
    quiet = {**os.environ, "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=quiet, timeout=60)
    head, _, data = done.stdout.partition(b"\n")
    assert head == b"['a.tar', 'b.tar'] 5000 None"
    assert data == b"".join(content(1, 5000)[start : start + 70] for start in range(0, 4800, 150))
    assert done.stderr.decode().splitlines() == [
        "gs://bucket/set/c.tar is not there; check the address, or write it anew",
        "gs://bucket/set/b.tar ends before the bytes that were asked for",
    ]


# -- the web -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def site(web):
    web.files |= {"set/data-00000.tar": content(1, 60_000), "set/in/a b#1%.tar": b"0123456789", "set/.git/x": b"x"}
    return open_store(f"{web.url}/set")


def test_files_of_a_web_server_are_read(web, site, tmp_path):
    assert site.names() == ["data-00000.tar", "in/a b#1%.tar"]
    assert (site.size("in/a b#1%.tar"), site.size("none.tar")) == (10, None)
    assert site.read("in/a b#1%.tar", 10) == b"0123456789"
    data = web.files["set/data-00000.tar"]
    wanted = [Range("data-00000.tar", start, start + 100) for start in range(0, 60_000, 600)]
    assert site.ranges(wanted) == [data[one.start : one.stop] for one in wanted]
    site.get("data-00000.tar", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == data


def test_requests_are_under_way_at_once_but_not_more_than_the_bound(web, site):
    web.delay = 0.05
    site.ranges([Range("data-00000.tar", start, start + 1) for start in range(200)])
    assert len(web.seen) == 200
    assert 8 < web.most <= AT_ONCE


def test_what_the_web_cannot_do_is_told(web, site, tmp_path):
    for call in (
        lambda: site.put("x", local(tmp_path, b"")),
        lambda: site.put_bytes("x", b""),
        lambda: site.remove(["x"]),
    ):
        with pytest.raises(DataError, match=r"x cannot be written: http is for reading"):
            call()
    web.lists = False
    with pytest.raises(DataError, match=r"is not there|no list of its files"):
        site.names()


def test_files_are_written_only_where_they_are_whole_or_not_there(tmp_path):
    store = open_store(f"simplecache::file://{tmp_path}/set")  # which shows a file as it grows
    for call in (lambda: store.put("x", local(tmp_path, b"x")), lambda: store.put_bytes("x", b"x")):
        with pytest.raises(DataError, match=r"x cannot be written: simplecache is for reading; write to a folder"):
            call()
    assert not (tmp_path / "set").exists()


def test_a_server_that_sends_without_end_is_left(short_waits):
    """As one that promises ten bytes in its headers may."""
    sent = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            nonlocal sent
            self.send_response(206)
            self.send_header("Content-Range", "bytes 0-9/10")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                while sent < 1 << 30:
                    self.wfile.write(b"%x\r\n%s\r\n" % (1 << 20, bytes(1 << 20)))
                    sent += 1 << 20
            except OSError:
                self.close_connection = True

        def log_message(self, *said):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        store = open_store(f"http://127.0.0.1:{server.server_address[1]}/set")
        with pytest.raises(
            DataError, match=r"data\.tar cannot be read in parts: its server sends more than it is asked"
        ):
            store.ranges([Range("data.tar", 0, 10)])
        server.shutdown()
    assert sent < 64 << 20


def test_a_page_without_files_says_how_to_index(web):
    web.files["set/page.txt"] = b""
    web.lists = True
    store = open_store(f"{web.url}/empty")
    web.files["empty/"] = b"<html>nothing</html>"
    with pytest.raises(DataError, match="no list of its files; index a copy on a disk with `setsup index"):
        store.names()


@pytest.mark.parametrize("wrong", [500, 502, 503, 504, 429, 408, -1, -2, -3])
def test_what_passes_is_tried_again(web, site, short_waits, wrong):
    data = web.files["set/data-00000.tar"]
    passing = 1 if wrong == -3 else 2
    web.failing = [wrong] * passing
    assert site.ranges([Range("data-00000.tar", 5, 5000)]) == [data[5:5000]]
    assert len(web.seen) == passing + 1
    web.seen.clear()
    web.failing = [wrong] * 99
    with pytest.raises(DataError, match=r"/set/data-00000\.tar (cannot be|ends before)"):
        site.ranges([Range("data-00000.tar", 5, 5000)])
    # a file that ends early is asked for once more; aiohttp itself asks again where a kept connection is closed
    assert len(web.seen) in ({2} if wrong == -3 else range(4, 9) if wrong == -2 else {4})


@pytest.mark.parametrize("wrong", [400, 401, 403, 404, 405, 410, 451, 501])
def test_what_does_not_pass_is_told_at_once(web, site, wrong):
    web.failing = [wrong]
    with pytest.raises(DataError, match=r"/set/data-00000\.tar ") as caught:
        site.ranges([Range("data-00000.tar", 5, 5000)])
    assert len(web.seen) == 1
    expected = {401: "refused", 403: "refused", 404: "is not there", 410: "is not there"}.get(wrong, str(wrong))
    assert expected in str(caught.value)


def test_one_bad_range_among_many_ends_them(web, site):
    web.failing = [0] * 10 + [403]
    with pytest.raises(DataError, match="403"):
        site.ranges([Range("data-00000.tar", start, start + 1) for start in range(1000)])
    assert len(web.seen) < 200


def test_waits_grow_and_are_few():
    waits = remote_store.WAITS
    assert len(waits) == 3
    assert list(waits) == sorted(waits)
    assert sum(waits) < 10


def test_a_server_that_stays_silent_is_given_up(web, site, short_waits, monkeypatch):
    monkeypatch.setattr(remote_store, "SECONDS", 0.05)
    web.delay = 1.0
    began = time.monotonic()
    with pytest.raises(DataError, match="does not answer in time"):
        site.ranges([Range("data-00000.tar", 5, 10)])
    assert time.monotonic() - began < 30


def test_a_slow_server_is_waited_for(web, site):
    web.pause = 0.3
    assert site.ranges([Range("data-00000.tar", 5, 10)]) == [web.files["set/data-00000.tar"][5:10]]


def test_a_server_without_ranges_is_told_but_whole_files_come(web, site, tmp_path):
    web.ranges = False
    with pytest.raises(DataError, match="has no ranges of bytes; copy the files to a disk"):
        site.ranges([Range("data-00000.tar", 5, 10)])
    assert site.read("in/a b#1%.tar", 100) == b"0123456789"
    assert site.size("data-00000.tar") == 60_000
    site.get("data-00000.tar", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == web.files["set/data-00000.tar"]


def test_a_file_of_another_size_is_told_along_with_the_bytes(web, site):
    with pytest.raises(DataError, match="has 60,000 bytes, not the 59,000 expected"):
        site.ranges([Range("data-00000.tar", 5, 10, 59_000)])
    assert len(web.seen) == 1
    assert site.ranges([Range("data-00000.tar", 5, 10, 60_000)]) == [web.files["set/data-00000.tar"][5:10]]


def test_a_query_stays_at_the_end_and_is_never_said(web, site, short_waits):
    store = open_store(f"{web.url.replace('http://', 'http://me:word@')}/set?sig=secret")
    assert store.names() == ["data-00000.tar", "in/a b#1%.tar"]
    assert store.size("data-00000.tar") == 60_000
    assert web.headers[-1]["Authorization"].startswith("Basic ")
    for wrong in (401, 403, 404, 500, 400):
        web.failing = [wrong] * 4
        with pytest.raises(DataError) as caught:
            open_store(store._address, {"client_kwargs": {}}).ranges([Range("x.tar", 0, 1)])
        web.failing = []
        assert "secret" not in str(caught.value)
        assert "word@" not in str(caught.value)


def test_an_address_that_cannot_be_reached_is_told(short_waits):
    for address in ("http://127.0.0.1:9/set", "https://no-such-host.invalid/set"):
        with pytest.raises(DataError, match=f"{address}/a.tar cannot be reached"):
            open_store(address).ranges([Range("a.tar", 0, 1)])


@pytest.mark.parametrize("kind", ["http", "http by name", "s3"])
def test_where_nobody_answers_is_tried_twice(kind, bucket, short_waits, caplog):
    address = {"http": "http://127.0.0.1:9/set", "http by name": "https://no-such-host.invalid/set", "s3": bucket.url}
    store = open_store(address[kind], {"endpoint_url": "http://127.0.0.1:9"} if kind == "s3" else None)
    with caplog.at_level("INFO", "setsup"), pytest.raises(DataError, match="cannot be reached"):
        store.size("a.tar")
    assert sum("trying again" in record.message for record in caplog.records) == 1


def test_libraries_say_where_a_failure_comes_from_in_the_log_only(web, site, caplog):
    address = f"{web.url.replace('http://', 'http://me:word@')}/set?sig=secret"
    web.failing = [403, 403]
    with pytest.raises(DataError) as caught:
        open_store(address).size("a.tar")
    assert "aiohttp" not in "".join(traceback.format_exception(caught.value))
    with caplog.at_level("DEBUG", "setsup"), pytest.raises(DataError):
        open_store(address).size("a.tar")
    assert "ClientResponseError" in caplog.text
    assert "Traceback" in caplog.text
    assert "secret" not in caplog.text
    assert "word@" not in caplog.text
    web.failing = [418]  # of which nobody knows what it means
    with pytest.raises(DataError) as caught:
        open_store(address).size("a.tar")
    assert "aiohttp" in "".join(traceback.format_exception(caught.value))


def test_ctrl_c_ends_the_requests(web, site):
    main = threading.get_ident()
    web.delay = 0.3

    def interrupt():
        while len(web.seen) < 32:  # it waits for answers by now
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            site.ranges([Range("data-00000.tar", start, start + 1) for start in range(2000)])
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    time.sleep(1.0)
    assert len(web.seen) <= 4 * AT_ONCE
