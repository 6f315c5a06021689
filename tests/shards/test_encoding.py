import io
import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from setsup.datasets import Modality
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.shards.writing import encoding
from setsup.shards.writing.encoding import Labels, encoded, stored

DICE = np.random.default_rng(3)


def pictures(channels: int, rows: int = 3) -> np.ndarray:
    return DICE.integers(0, 256, (rows, 6, 5, channels), np.uint8)


def opened(content: bytes, format: str) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as image:
        assert image.format == format
        pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


@pytest.mark.parametrize(
    ("channels", "format", "extension", "named"),
    [
        (1, "png", "png", "PNG"),
        (3, "png", "png", "PNG"),
        (4, "png", "png", "PNG"),
        (3, "webp", "webp", "WEBP"),
        (4, "webp", "webp", "WEBP"),
        (1, "webp", "png", "PNG"),  # WebP knows no grey
        (4, "jpeg", "png", "PNG"),  # and JPEG no alpha
    ],
)
def test_images_are_kept_to_the_bit(channels, format, extension, named):
    some = pictures(channels)
    if channels == 4:
        some[0, ..., 3] = 0  # colours under what is transparent are kept too
    member = stored("image", Modality((6, 5, channels), "uint8", color="srgb"), format)
    assert member.extension == extension
    for content, picture in zip(encoded(some, member), some, strict=True):
        np.testing.assert_array_equal(opened(content, named), picture)


def test_a_png_is_packed_as_zlib_itself_packs_it():
    """Pillow brings another zlib than Python's: where both give the same bytes, so do different machines."""
    smooth = DICE.normal(0, 9, (2, 200, 256, 3)).cumsum(1).clip(0, 255).astype(np.uint8)
    noise = DICE.integers(0, 256, (1, 200, 256, 3), np.uint8)
    member = stored("image", Modality(smooth.shape[1:], "uint8", color="srgb"), "png")
    for content in encoded(np.concatenate([smooth, noise]), member):
        packed, at = b"", 8
        while at < len(content):
            length = int.from_bytes(content[at : at + 4], "big")
            packed += content[at + 8 : at + 8 + length] if content[at + 4 : at + 8] == b"IDAT" else b""
            at += 12 + length
        zlibs = zlib.compressobj(1, zlib.DEFLATED, 15, 9, zlib.Z_RLE)
        assert packed == zlibs.compress(zlib.decompress(packed)) + zlibs.flush()


@pytest.mark.parametrize("channels", [1, 3])
def test_a_jpeg_is_close_and_keeps_the_colors_of_all_pixels(channels):
    ramp = np.linspace(0, 255, 40 * 48 * channels).reshape(1, 40, 48, channels).astype(np.uint8)
    ramp[0, :, ::2] //= 2  # stripes of one pixel, which sampling of the colours would smear
    member = stored("image", Modality((40, 48, channels), "uint8", color="srgb"), "jpeg")
    (content,) = encoded(ramp, member)
    found = opened(content, "JPEG")
    assert found.shape == ramp[0].shape
    assert np.abs(found.astype(int) - ramp[0]).mean() < 2
    with Image.open(io.BytesIO(content)) as image:
        first = np.array(image.quantization[0])
        if channels == 3:
            assert [part[1:3] for part in image.layer] == [(1, 1)] * 3
    standard = Image.new("RGB", (8, 8))
    stream = io.BytesIO()
    standard.save(stream, "JPEG", quality=95)
    with Image.open(stream) as image:
        np.testing.assert_array_equal(first, image.quantization[0])


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        np.arange(4, dtype=">i8").reshape(2, 2),
        np.array([3, 4], np.int16),
        np.array([[True, False]]),
        np.zeros((2, 3, 3, 2), np.uint8),
        np.asfortranarray(np.arange(12, dtype=np.float64).reshape(2, 3, 2)),
        np.array([[1 + 2j]], np.complex64),
        np.zeros((2, 0, 3), np.float16),
    ],
)
def test_arrays_are_npy_as_numpy_writes_it(array):
    little = array.astype(array.dtype.newbyteorder("<"), order="C")
    member = stored("thing", Modality((None,) * (array.ndim - 1), array.dtype.name), "png")
    assert member.extension == "thing.npy"
    expected = []
    for row in little:
        stream = io.BytesIO()
        np.save(stream, np.asarray(row), allow_pickle=False)
        expected.append(stream.getvalue())
    assert encoded(array.astype(array.dtype.name), member) == expected
    assert encoded(list(array.astype(array.dtype.name)), member) == expected


def test_what_is_no_image_is_npy():
    for modality in (
        Modality((6, 5, 3), "uint8"),
        Modality((6, 5, 2), "uint8", color="red-green"),
        Modality((6, 5, 3), "float32", color="srgb"),
        Modality((6, 5), "uint8", color="grey"),
    ):
        assert stored("image", modality, "png").extension == "npy"
    assert stored("image", Modality((6, 5, 3), "uint8", color="srgb"), "npy").extension == "npy"


def test_rows_of_other_shapes_are_stored_one_by_one():
    some = [pictures(3)[0][:height] for height in (2, 5, 3)]
    member = stored("thumb", Modality((None, 5, 3), "uint8", color="srgb"), "png")
    assert member.extension == "thumb.png"
    for content, picture in zip(encoded(some, member), some, strict=True):
        np.testing.assert_array_equal(opened(content, "PNG"), picture)


def test_what_cannot_be_stored_is_refused():
    image = Modality((6, 5, 3), "uint8", color="srgb")
    with pytest.raises(DataError, match="unknown image format 'pmg'; did you mean 'png'"):
        stored("image", image, "pmg")
    for name in ("Depth", "a.b", "../up", "a/b", "", "é", "a b"):
        with pytest.raises(DataError, match="because it names files in a tar"):
            stored(name, image, "png")
    with pytest.raises(DataError, match="must be numeric, not str128"):
        stored("words", Modality((), "<U4"), "png")
    with pytest.raises(DataError, match=r"returned float64 of shape \(6, 5, 3\), but its modality specifies uint8"):
        encoded(pictures(3).astype(float), stored("image", image, "png"))
    with pytest.raises(DataError, match=r"returned uint8 of shape \(6, 5, 4\)"):
        encoded([*pictures(3), pictures(4)[0]], stored("image", image, "png"))
    wide = Modality((1, 20_000, 3), "uint8", color="srgb")
    with pytest.raises(DataError, match="cannot be stored as webp"):
        encoded(np.zeros((1, 1, 20_000, 3), np.uint8), stored("image", wide, "webp"))


TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
LEVELS = st.one_of(
    st.lists(TEXT, min_size=1, max_size=5, unique=True),
    st.lists(st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False), min_size=1, unique=True),
    st.just([True, False]),
)


@pytest.mark.long("large or genuine files")
@given(st.data(), st.lists(TEXT.filter(bool), min_size=1, max_size=4, unique=True), st.sampled_from([1 << 16, 0]))
def test_labels_are_json_of_the_values(data, names, few):
    rows = 7
    factors, columns = [], {}
    for name in names:
        levels = data.draw(st.none() | LEVELS)
        factors.append(Factor(name, Kind.NOMINAL if levels else Kind.CONTINUOUS, levels and tuple(levels)))
        codes = st.integers(-1, len(levels) - 1) if levels else st.floats(width=32, allow_infinity=False)
        columns[name] = np.array(data.draw(st.lists(codes, min_size=rows, max_size=rows)))
    table = FactorTable(factors, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "_FEW", few)
        texts = Labels(factors).of(table, [5, 0, 5])
    for text, row in zip(texts, [5, 0, 5], strict=True):
        found = json.loads(text)
        assert list(found) == names
        assert text == json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode() or b"e" in text
        for name, value in table.row(row).items():
            if table[name].continuous and found[name] is not None:
                assert np.float32(found[name]) == np.float32(value)
            else:
                assert found[name] == value
                assert type(found[name]) is type(value)


def test_a_float32_is_its_shortest_text():
    table = FactorTable([Factor("x", Kind.CONTINUOUS)], {"x": np.array([0.1, 2, np.nan, 3e38, 1e-5], np.float32)})
    assert Labels(table.factors).of(table, range(5)) == [
        b'{"x":0.1}', b'{"x":2.0}', b'{"x":null}', b'{"x":3e+38}', b'{"x":1e-05}',
    ]  # fmt: skip
