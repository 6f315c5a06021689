"""Pictures of others that need a second look: depth in 16 bits, notes of cameras, tars without an end."""

import io
import tarfile

import numpy as np
import pytest
import webdataset
from PIL import Image

import setsup
from setsup.errors import DataError
from setsup.shards.external.indexing import index_shards, write_external_index
from setsup.shards.opening import open_shards
from tests.shards.external_tars import pack, png


def deep(row, size=(5, 7)):
    return np.random.default_rng(row).integers(0, 65_536, size, np.uint16)


def file_of(image, format="PNG", **options):
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def deep_png(row, size=(5, 7)):
    return file_of(Image.fromarray(deep(row, size)))


# -- 16 bits -----------------------------------------------------------------------------------------------------------


def test_depth_in_16_bits_is_a_modality(tmp_path):
    members = [(f"{row}.{end}", make(row)) for row in range(6) for end, make in (("png", png), ("depth.png", deep_png))]
    pack(tmp_path / "a.tar", members)
    found = index_shards(tmp_path)
    assert found.modalities["depth"] == setsup.datasets.Modality((5, 7), "uint16")
    assert found.modalities["image"].dtype == "uint8"
    rows = np.array([[5, 0], [3, 5]])
    expected = np.stack([[deep(row) for row in pair] for pair in rows.tolist()])
    np.testing.assert_array_equal(found.fetch(rows)["depth"], expected)
    out = {"depth": np.empty((2, 2, 5, 7), np.uint16)}
    found.fetch_into(rows, out)
    np.testing.assert_array_equal(out["depth"], expected)
    assert open_shards(tmp_path, size=(4, 4)).modalities["depth"].shape == (5, 7)  # only pictures are resized


def test_depth_of_several_sizes(tmp_path):
    pack(tmp_path / "a.tar", [(f"{row}.depth.png", deep_png(row, (4 + row, 6))) for row in range(3)])
    found = index_shards(tmp_path)
    assert found.modalities["depth"].shape == (None, 6)
    for row in range(3):
        np.testing.assert_array_equal(found.fetch([row])["depth"][0], deep(row, (4 + row, 6)))


def test_depth_and_images_under_one_name_are_left_out_with_a_word(tmp_path):
    pack(tmp_path / "a.tar", [("0.a.png", png(0)), ("1.a.png", deep_png(1)), ("0.b.png", png(0)), ("1.b.png", png(1))])
    with pytest.raises(DataError):
        index_shards(tmp_path)  # keys do not lie together
    pack(tmp_path / "a.tar", [("0.a.png", png(0)), ("0.b.png", png(0)), ("1.a.png", deep_png(1)), ("1.b.png", png(1))])
    found = write_external_index(tmp_path)
    assert "uint16 of 2 axes and uint8 of 3 axes" in found.left_out[".a.png"]
    assert list(found.catalogue.modalities) == ["b"]


def test_damaged_depth_is_refused(tmp_path):
    content = bytearray(deep_png(1))
    content[-20] ^= 1
    pack(tmp_path / "a.tar", [("0.depth.png", deep_png(0)), ("1.depth.png", bytes(content)), ("2.depth.png", png(2))])
    (tmp_path / "b").mkdir()
    pack(tmp_path / "b" / "a.tar", [("0.depth.png", deep_png(0)), ("1.depth.png", bytes(content))])
    found = index_shards(tmp_path / "b")
    np.testing.assert_array_equal(found.fetch([0])["depth"][0], deep(0))
    with pytest.raises(DataError, match=r"the 'depth' of row 1 .* damaged"):
        found.fetch([1])


# -- what a camera noted -----------------------------------------------------------------------------------------------


def noted(row, orientation, size=(24, 40)):
    smooth = np.linspace(0, 200, size[0] * size[1]).reshape(size).astype(np.uint8)
    note = Image.Exif()
    note[0x0112] = orientation
    return file_of(Image.fromarray(np.stack([smooth, smooth[::-1], smooth + row], -1)), "JPEG", exif=note)


@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_notes_of_cameras_are_applied_or_not(tmp_path, orientation):
    contents = [noted(row, orientation) for row in range(3)]
    pack(tmp_path / "a.tar", [(f"{row}.jpg", content) for row, content in enumerate(contents)])
    index_shards(tmp_path)
    upright, stored = open_shards(tmp_path), open_shards(tmp_path, upright=False)
    decoder = webdataset.autodecode.imagehandler("rgb8")
    for row, content in enumerate(contents):
        theirs = decoder(".jpg", content)
        np.testing.assert_array_equal(stored.fetch(row)["image"], theirs)
        turns = {1: 0, 3: 2, 6: 3}[orientation]
        np.testing.assert_array_equal(upright.fetch(row)["image"], np.rot90(theirs, turns))
    assert stored.fetch([0, 2])["image"].shape == (2, 24, 40, 3)


# -- tars that do not end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zeros", [0, 1])
def test_tars_without_their_end_are_indexed(tmp_path, zeros, caplog):
    path = pack(tmp_path / "a.tar", [(f"{row}.png", png(row)) for row in range(4)])
    with tarfile.open(path) as tar:
        last = tar.getmembers()[-1]
    content = path.read_bytes()[: last.offset_data + (last.size + 511) // 512 * 512]
    path.write_bytes(content + bytes(512 * zeros))
    with tarfile.open(path) as tar:
        assert len(tar.getnames()) == 4
    found = index_shards(tmp_path)
    assert any("ends without the blocks of zeros" in message for message in caplog.messages) == (zeros == 0)
    np.testing.assert_array_equal(found.fetch([3])["image"][0], np.asarray(Image.open(io.BytesIO(png(3)))))
    for cut in (1, 100, 512, last.size, len(content) - last.offset_data, len(content) - last.offset + 512 - 513):
        path.write_bytes(content[: len(content) - cut])
        with pytest.raises(DataError, match="truncated or damaged"):
            index_shards(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(DataError):
        index_shards(tmp_path)
