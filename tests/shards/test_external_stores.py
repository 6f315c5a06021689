"""Tars of others in stores and on the web, and the addresses that name them."""

import tarfile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from setsup.errors import DataError
from setsup.shards import tar_scan
from setsup.shards.external.indexing import index_shards
from setsup.shards.stores.addresses import split_address
from setsup.shards.stores.opening import open_store
from setsup.shards.writing.writer import write_shards
from tests.sharded import Varied
from tests.shards.external_tars import pack, picture

# -- stores --------------------------------------------------------------------------------------------------------


class Counted:
    """A folder as a store that is far away."""

    folder = None

    def __init__(self, folder):
        self._store, self.url, self.asked = open_store(folder), "far://set", []

    def size(self, name):
        return self._store.size(name)

    def ranges(self, wanted):
        self.asked.append([(one.start, one.stop) for one in wanted])
        return self._store.ranges(wanted)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_scan_from_afar_is_the_scan_here(tmp_path, form):
    dice = np.random.default_rng(0)
    members = [
        (f"{'x/' * (60 if row % 7 == 0 else 1)}{row:04}.{name}", dice.bytes(int(size)))
        for row in range(300)
        for name, size in (("png", dice.integers(0, 60_000)), ("json", dice.integers(0, 900)))
    ]
    pack(tmp_path / "a.tar", members, form)
    with tar_scan.scan_tar(open_store(tmp_path), "a.tar") as here:
        there = Counted(tmp_path)
        with tar_scan.scan_tar(there, "a.tar", (b".json",)) as far:
            assert tar_scan.listing_digest(far.listing) == tar_scan.listing_digest(here.listing)
            assert far.listing.names.equals(here.listing.names)
            before = len(there.asked)
            assert (
                far.contents(range(1, 600, 2))
                == here.contents(range(1, 600, 2))
                == [content for _, content in members[1::2]]
            )
            assert len(there.asked) == before  # they were kept while the scan passed them
            assert far.contents([0, 4]) == [members[0][1], members[4][1]]
    size = (tmp_path / "a.tar").stat().st_size
    read = sum(stop - start for asked in there.asked[:before] for start, stop in asked)
    assert before < 20
    assert read < 1.3 * size


def test_large_contents_are_passed_over(tmp_path):
    members = [
        (f"{row}.{name}", content) for row in range(12) for name, content in (("npy", bytes(3 << 20)), ("json", b"{}"))
    ]
    pack(tmp_path / "a.tar", members)
    there = Counted(tmp_path)
    with tar_scan.scan_tar(there, "a.tar", (b".json",)) as far:
        assert len(far.listing.names) == 24
    read = sum(stop - start for asked in there.asked for start, stop in asked)
    assert read < 12 * 3 * tar_scan.SMALL


@pytest.mark.long("stores")
def test_an_index_in_a_bucket(written, bucket, short_waits):
    url = f"{bucket.url}/photos"
    here = index_shards(written)
    store = open_store(url, bucket.options)
    for path in sorted(written.glob("*.tar")):
        store.put_bytes(path.name, path.read_bytes())
    far = index_shards(url, storage_options=bucket.options)
    assert store.names() == sorted(path.name for path in written.iterdir())
    for name in ("index.parquet", "shards.json"):
        assert store.read(name, 1 << 20) == (written / name).read_bytes()
    rows = [29, 3, 11]
    np.testing.assert_array_equal(far.fetch(rows)["image"], here.fetch(rows)["image"])


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("kind", ["memory", "bucket"])
def test_an_index_of_ours_in_a_store_is_restored_where_it_is_damaged(request, kind):
    place = request.getfixturevalue(kind)
    url, options = (place, {}) if kind == "memory" else (place.url, place.options)
    ours = write_shards(Varied(20), url, per_shard=8, storage_options=options)
    expected = ours.fetch(np.arange(20), ["depth"])["depth"]
    store = open_store(url, options)
    sound = store.read("index.parquet", 1 << 20)
    index_shards(url, storage_options=options)  # nothing to do
    assert store.read("index.parquet", 1 << 20) == sound
    store.put_bytes("index.parquet", sound[:-9] + bytes(9))  # damaged, of the same size
    again = index_shards(url, storage_options=options)
    assert again.catalogue == ours.catalogue
    assert store.read("index.parquet", 1 << 20) == sound
    assert again.factors.fingerprint == ours.factors.fingerprint
    np.testing.assert_array_equal(again.fetch(np.arange(20), ["depth"])["depth"], expected)


def test_tars_of_the_web(written, web, tmp_path, short_waits):
    for path in written.glob("*.tar"):
        web.files[f"set/{path.name}"] = path.read_bytes()
    with pytest.raises(DataError, match="out="):
        index_shards(f"{web.url}/set/data-{{000..002}}.tar")
    far = index_shards(f"{web.url}/set/data-{{000..002}}.tar", tmp_path / "index")
    assert far.keys([29]) == ["sample0029"]
    np.testing.assert_array_equal(far.fetch([29])["image"][0], np.asarray(picture(29)))
    with pytest.raises(DataError, match=r"data-003\.tar"):
        index_shards(f"{web.url}/set/data-{{000..003}}.tar", tmp_path / "other")


# -- addresses -----------------------------------------------------------------------------------------------------


@example(0, 10, 1, False)
@given(st.integers(0, 300), st.integers(0, 20), st.integers(1, 6), st.booleans())
def test_patterns_are_those_of_braceexpand(first, more, width, padded):
    import braceexpand

    low, high = (f"{number:0{width}}" if padded else str(number) for number in (first, first + more))
    pattern = f"s3://bucket/a/data-{{{low}..{high}}}-x.tar"
    folder, names = split_address(pattern)
    assert [f"{folder}/{name}" for name in names] == list(braceexpand.braceexpand(pattern))


@pytest.mark.parametrize(
    "address", ["a-{0..1,3}.tar", "a-{x,y}.tar", "a-{0..3.tar", "a-0..3}.tar", "a-{3..0}.tar", "a-{0..9999999}.tar"]
)
def test_bad_patterns(address):
    with pytest.raises(DataError):
        split_address(f"https://example.org/{address}")
