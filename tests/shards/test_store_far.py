"""Buckets of S3, and the Hub's and Google's as far as a web server can play them."""

import errno
import json
import os
import subprocess
import sys

import boto3
import pytest

from setsup.errors import DataError
from setsup.shards.stores.opening import open_store
from setsup.shards.stores.store import Range
from tests.shards.sets import content, local

# -- S3 ------------------------------------------------------------------------------------------------------------


@pytest.mark.long("stores")
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


@pytest.mark.long("stores")
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
    with pytest.raises(DataError, match=r"data-00000\.tar cannot be accessed: the connection dropped"):
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
        with pytest.raises(DataError, match="the bucket does not exist"):
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


@pytest.mark.long("stores")
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


@pytest.mark.long("stores")
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


@pytest.mark.long("stores")
def test_an_s3_server_that_cannot_be_reached_or_refuses_is_told(bucket, web, short_waits):
    quick = {"config_kwargs": {"retries": {"max_attempts": 0}}}
    store = open_store("s3://bucket/set", {"endpoint_url": "http://127.0.0.1:9", **quick})
    with pytest.raises(DataError, match=r"s3://bucket/set/a cannot be reached"):
        store.ranges([Range("a", 0, 1)])
    store = open_store("s3://bucket/set", {"endpoint_url": web.url, **quick})
    web.files["bucket/set/a"] = b"0123456789"
    web.failing = [403, 403]
    with pytest.raises(DataError, match=r"a cannot be accessed: the store denied access \(HTTP 403\).*AWS_PROFILE"):
        store.ranges([Range("a", 2, 4)])
    web.failing = [-3, 500, -1]
    assert store.ranges([Range("a", 2, 9)]) == [b"2345678"]
    web.failing = [503] * 99
    with pytest.raises(DataError, match="a cannot be accessed: the store returned HTTP 503"):
        store.ranges([Range("a", 2, 4)])
    assert len(web.seen) < 40


# -- the Hub and Google's, as far as a web server can play them ----------------------------------------------------


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
    ("wrong", "said"), [(401, "HF_TOKEN"), (403, "HF_TOKEN"), (404, "does not exist"), (500, "HTTP 500")]
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


@pytest.mark.long("stores")
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
from setsup.shards.stores.opening import open_store
from setsup.shards.stores.store import Range
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
        "gs://bucket/set/c.tar does not exist; check the address, or write it again",
        "gs://bucket/set/b.tar ends before the requested bytes",
    ]
