"""Multi-dSprites: images, masks and sprites equal to the records of its release."""

import gzip

import numpy as np
import pytest

import setsup
from setsup.datasets.benchmarks.multi_object import dataset as module
from setsup.datasets.benchmarks.multi_object.multi_dsprites import prepare
from setsup.errors import DataError
from tests.true_files import multi_dsprites as true


def check(found, version):
    """Compare all rows with the records."""
    rows = range(len(true.COUNTS))
    told = [true.factors(version, number) for number in rows]
    counts = [int(each["visibility"].sum()) - 1 for each in told]
    assert found.factors.values("objects").tolist() == counts
    levels = found.objects["shape"].levels
    for level in levels:
        expected = [int((each["shape"] == level).sum()) for each in told]
        assert found.factors.values(f"shape_{level}").tolist() == expected
    whole = found.fetch(rows)
    for number, each in enumerate(told):
        image, masks = true.drawn(version, number)
        assert np.array_equal(whole["image"][number], image)
        assert np.array_equal(whole["instances"][number], masks[..., 0].argmax(axis=-1) - 1)
        own, count = slice(1, counts[number] + 1), counts[number]
        assert [levels[code] for code in whole["shape"][number, :count]] == each["shape"][own].tolist()
        assert (whole["shape"][number, count:] == -1).all()
        for name in ("x", "y", "orientation", "scale"):
            assert np.array_equal(whole[name][number, :count], each[name][own])
            assert np.isnan(whole[name][number, count:]).all()
        assert np.array_equal(whole["color"][number, :count], np.broadcast_to(each["color"][own], (count, 3)))
    assert len(found.objects) == sum(counts)


@pytest.mark.parametrize("version", ["colored_on_grayscale", "binarized"])
def test_rows(tmp_path, version):
    true.write(tmp_path, version)
    found = setsup.load("multi-dsprites", tmp_path, version=version)
    check(found, version)
    with pytest.raises(DataError, match="setsup fetch multi-dsprites"):
        setsup.load("multi-dsprites", tmp_path, version="colored_on_colored")
    with pytest.raises(DataError, match="version"):
        setsup.load("multi-dsprites", tmp_path, version="coloured")


def test_a_large_file_is_prepared_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "_SMALL", 1)
    monkeypatch.setattr(module, "_BLOCK", 5 * 64 * 64)
    folder = tmp_path / "release"
    folder.mkdir()
    true.write(folder)
    with pytest.raises(DataError, match="can only be read sequentially; run `setsup prepare multi-dsprites"):
        setsup.load("multi-dsprites", folder)
    (made,) = prepare(folder)
    assert made == folder / "multi_dsprites_colored_on_grayscale.images.npy"
    monkeypatch.setattr(module, "read_images", None)  # not needed any more
    monkeypatch.setattr(module, "read_objects", None)
    check(setsup.load("multi-dsprites", folder), "colored_on_grayscale")


def test_damaged_files(tmp_path):
    true.write(tmp_path)
    place = tmp_path / "multi_dsprites_colored_on_grayscale.tfrecords"
    packed = place.read_bytes()
    records = gzip.decompress(packed)
    damaged = bytearray(records)
    damaged[40_000] ^= 1
    for content, words in (
        (packed[:-200], "multi_dsprites_colored_on_grayscale"),
        (gzip.compress(records[:-9], 1), "ends inside record 11"),
        (gzip.compress(records[:4], 1), "ends inside record 0"),
        (gzip.compress(bytes(damaged), 1), "the checksum of record 0 does not match"),
        (gzip.compress(b"\1" + records[1:], 1), "the checksum of the length of record 0 does not match"),
        (gzip.compress(b"", 1), "contains no records"),
        (
            true.content("binarized"),
            "'visibility' contains 4 values of type float; expected 6 values of type float",
        ),
    ):
        place.write_bytes(content)
        with pytest.raises(DataError, match=words) as found:
            setsup.load("multi-dsprites", tmp_path)
        assert "\n" not in str(found.value)
    place.write_bytes(records)  # unpacked
    check(setsup.load("multi-dsprites", tmp_path), "colored_on_grayscale")
