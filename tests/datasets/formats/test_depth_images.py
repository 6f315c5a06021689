import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from setsup.datasets.formats.depth_images import decode_channels, decode_depth
from setsup.errors import DataError
from tests.fuzzing import survives

DEPTH = np.random.default_rng(1).integers(0, 65536, (24, 32)).astype(np.uint16)
LABELS = np.random.default_rng(2).integers(0, 256, (24, 32, 4)).astype(np.uint8)


def png(array, **options):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG", **options)
    return file.getvalue()


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def by_hand(width, height, bits, color, rows, interlaced=0):
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlaced)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize("options", [{}, {"compress_level": 0}, {"optimize": True}])
def test_depth(options, tmp_path):
    content = png(DEPTH, **options)
    path = tmp_path / "depth.png"
    path.write_bytes(content)
    for source in (content, path, lambda: content):
        found = decode_depth(source, "depth.png", (24, 32))
        assert found.dtype == np.uint16
        assert np.array_equal(found, DEPTH)


def test_depth_written_by_hand():
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in DEPTH)
    assert np.array_equal(decode_depth(by_hand(32, 24, 16, 0, rows), "depth.png", (24, 32)), DEPTH)


def test_channels_in_their_order():
    found = decode_channels(png(LABELS), "mask.png", (24, 32))
    assert found.dtype == np.uint8
    assert np.array_equal(found, LABELS)
    assert np.array_equal(decode_channels(png(LABELS[..., :3]), "mask.png", (24, 32)), LABELS[..., :3])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (png(DEPTH)[:-20], "damaged.*truncated"),
        (png(DEPTH)[:20], "not a PNG"),
        (b"", "not a PNG"),
        (b"GIF89a" + bytes(100), "not a PNG: it begins with b'GIF89a"),
        (png(DEPTH).replace(b"IDAT", b"IDAU"), "checksum"),
        (png(DEPTH.astype(np.uint8)), "8 bits, color type 0"),
        (png(LABELS), "8 bits, color type 6"),
        (png(DEPTH[:, :30]), r"24 × 30 pixels \(height × width\); expected 24 × 32"),
        (by_hand(32, 24, 16, 0, b"", interlaced=1), "interlaced"),
        (by_hand(32, 24, 16, 0, b""), "truncated or corrupt"),
        (by_hand(32, 24, 16, 0, b"\0" * (65 * 23)), "truncated or corrupt"),
    ],
)
def test_damaged_depth(content, sentence):
    with pytest.raises(DataError, match=f"^depth.png.*{sentence}") as found:
        decode_depth(content, "depth.png", (24, 32))
    assert "\n" not in str(found.value)


def test_a_small_file_cannot_claim_a_large_picture():
    with pytest.raises(DataError, match="cannot contain"):
        decode_depth(by_hand(30_000, 30_000, 16, 0, b""), "depth.png", (30_000, 30_000))


@pytest.mark.parametrize("content", [png(LABELS[..., 0]), png(DEPTH), png(LABELS)[:-20]])
def test_damaged_channels(content):
    with pytest.raises(DataError, match=r"^mask\.png"):
        decode_channels(content, "mask.png", (24, 32))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        decode_depth(tmp_path / "depth.png", "depth.png", (24, 32))


def test_damage():
    """A damaged file is refused, or what was damaged does not bear on the pixels."""

    def depth(content):
        assert np.array_equal(decode_depth(content, "depth.png", (24, 32)), DEPTH)

    def channels(content):
        assert np.array_equal(decode_channels(content, "mask.png", (24, 32)), LABELS)

    assert survives(png(DEPTH), depth, rounds=150) > 100
    assert survives(png(LABELS), channels, rounds=150) > 100
