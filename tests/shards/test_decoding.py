"""Members into arrays, beside numpy's own reader and Pillow."""

import io
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image, ImageOps

from setsup.datasets import images
from setsup.datasets.dataset import Modality
from setsup.errors import DataError
from setsup.shards.decoding import (
    check_members,
    copy_plain,
    npy_array,
    plain_head,
    put_pngs,
    resize_image,
    resized_modalities,
)
from setsup.shards.layout import Member
from tests.fuzzing import survives
from tests.shards.handmade import npy, picture

DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(endianness="?"),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))


def read(content: bytes) -> np.ndarray:
    return npy_array(memoryview(content), "it")


@pytest.mark.long("large or genuine files")
@settings(max_examples=200)
@given(ARRAYS, st.sampled_from([(1, 0), (2, 0), (3, 0)]), st.booleans())
def test_what_numpy_writes_is_read(array: np.ndarray, version: tuple[int, int], fortran: bool) -> None:
    content = npy(np.asfortranarray(array) if fortran else array, version)
    found = read(content)
    expected = np.load(io.BytesIO(content))
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert not found.flags.writeable
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",  # cnpy, ndarray-npy
        "{'descr':'<f4','fortran_order':False,'shape':(3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}" + " " * 5000,
    ],
)
def test_headers_of_other_programs(header: str) -> None:
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + np.float32([1, 2, 3]).tobytes()
    assert read(content).tolist() == np.load(io.BytesIO(content)).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("descr", "shape", "size"),
    [
        ("'|O'", "(1,)", 8),
        ("'<U1'", "(1,)", 4),
        ("'<M8[s]'", "(1,)", 8),
        ("[('a', '<f4')]", "(1,)", 4),
        ("'<f3'", "(1,)", 3),
        ("'<f4'", "(-1,)", 4),
        ("'<f4'", "(3)", 12),
        ("'<f4'", "(1e3,)", 4),
        ("'<f4'", "(99999999999,)", 4),
        ("'<f4'", "(1, 99999999999999999, 99999999999999999, 0)", 0),
        ("'<f4'", "(" + "1, " * 40 + ")", 4),
        ("__import__('os').system('true')", "(1,)", 4),
        ("'<f4'", "(" * 3000 + "1,", 4),
    ],
)
def test_headers_that_are_refused(descr: str, shape: str, size: int) -> None:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    with pytest.raises(DataError, match=r"^it "):
        read(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(size))


def test_a_header_of_blanks_is_refused_at_once() -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1," + b" " * 9900
    with pytest.raises(DataError, match="header"):
        read(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)


def test_pickles_are_not_opened() -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return pytest.fail, ("it was unpickled",)

    for content in (pickle.dumps(Bomb()), npy(np.zeros(1, object)) + pickle.dumps(Bomb()), b"", b"\x93NUMPY"):
        with pytest.raises(DataError, match=r"it is not a numeric \.npy file"):
            read(content)


@pytest.mark.parametrize("size", [-1, 1])
def test_numbers_that_do_not_fill_the_shape(size: int) -> None:
    content = npy(np.arange(6, dtype=np.int16).reshape(2, 3))
    with pytest.raises(DataError, match=r"damaged: int16 of shape \(2, 3\) requires 12 bytes, but the file has 1[13]"):
        read(content[:size] if size < 0 else content + bytes(size))


def test_damage_is_read_as_numpy_reads_it_or_refused() -> None:
    content = npy(np.arange(60, dtype="<f4").reshape(3, 4, 5))

    def compared(damaged: bytes) -> None:
        found = read(damaged)
        assert found.tobytes() == np.load(io.BytesIO(damaged), allow_pickle=False).tobytes()

    assert survives(content, compared, 750, head=128) > 500


# -- plain ones --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (64, 64, 3), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64", "bool"])
def test_the_usual_header_is_that_of_numpy(shape: tuple[int, ...], dtype: str) -> None:
    saved = io.BytesIO()
    array = np.ones(shape, dtype)
    np.save(saved, array)
    head = plain_head(Modality(shape, dtype))
    assert saved.getvalue() == head + array.tobytes()


def test_a_modality_of_many_shapes_has_no_usual_header() -> None:
    assert plain_head(Modality((None, 3), "float32")) == b""


@given(st.integers(0, 5), st.integers(0, 20))
def test_numbers_are_copied_behind_headers(rows: int, skip: int) -> None:
    arrays = np.random.default_rng(0).random((rows, 3, 2))
    out = np.empty_like(arrays)
    copy_plain([memoryview(bytes(skip) + array.tobytes()) for array in arrays], skip, out)
    assert (out == arrays).all()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_usual_pngs_are_those_of_pillow(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "threads", 2)
    pictures = np.random.default_rng(0).integers(0, 256, (5, 7, 6, channels), np.uint8)
    contents = [picture(one, compress_level=level) for level, one in enumerate(pictures)]
    out = np.zeros_like(pictures)
    assert put_pngs([memoryview(one) for one in contents], out)
    expected = [np.asarray(Image.open(io.BytesIO(one))).reshape(7, 6, channels) for one in contents]
    assert (out == np.stack(expected)).all()
    assert (out == pictures).all()
    monkeypatch.setattr(images, "threads", 4)
    assert not put_pngs([memoryview(one) for one in contents], out)


def test_unusual_pngs_are_left_to_the_general_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "threads", 1)
    usual = picture(np.zeros((7, 6, 3), np.uint8))
    palette, deep, noted = io.BytesIO(), io.BytesIO(), io.BytesIO()
    Image.new("P", (6, 7)).save(palette, "PNG")
    Image.new("I;16", (6, 7)).save(deep, "PNG")
    Image.new("RGB", (6, 7)).save(noted, "PNG", transparency=(0, 0, 0))
    others = [palette.getvalue(), deep.getvalue(), noted.getvalue(), picture(np.zeros((6, 7, 3), np.uint8))]
    out = np.zeros((2, 7, 6, 3), np.uint8)
    for other in (*others, usual[:-20], usual[:50], b"", picture(np.zeros((7, 6, 3), np.uint8), "WEBP")):
        assert not put_pngs([memoryview(usual), memoryview(other)], out)
    assert put_pngs([memoryview(usual)] * 2, out)


# -- what can be decoded -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extension", "modality", "words"),
    [
        ("pyd", Modality((), "uint8"), "extension .pyd"),
        ("depth.pth", Modality((), "uint8"), "extension .depth.pth"),
        ("json", Modality((), "uint8"), "extension .json"),
        ("npy", Modality((3,), "object"), "numeric dtype, not object"),
        ("npy", Modality((3,), "datetime64"), "numeric dtype, not datetime64"),
        ("npy", Modality((3,), "i4,i4"), "numeric dtype, not void64"),
        ("png", Modality((3, 4, 3), "i4,i4"), "cannot be stored"),
        ("png", Modality((9000, 9000, 3), "uint8", color="srgb"), "at most 80,000,000 pixels"),
        ("png", Modality((4, 4, 3), "float32", color="srgb"), "cannot be stored"),
        ("png", Modality((4, 4), "uint8"), "cannot be stored"),
        ("webp", Modality((4, 4, 2), "uint8"), "cannot be stored"),
        ("jpg", Modality((None, None, None), "uint8"), "cannot be stored"),
        ("png", Modality((1 << 30, 1 << 30, 3), "uint8", color="srgb"), "cannot be stored"),
    ],
)
def test_members_that_are_not_decoded(extension: str, modality: Modality, words: str) -> None:
    with pytest.raises(DataError, match=f"^there/shards.json: .*{words}"):
        check_members({"it": Member(modality, extension)}, "there/shards.json")


def test_images_are_resized_and_other_modalities_stay() -> None:
    members = {
        "image": Member(Modality((None, None, 3), "uint8", color="srgb"), "jpg"),
        "raw": Member(Modality((9, 9, 1), "uint8", color="grey"), "raw.npy"),
        "depth": Member(Modality((9, 9), "float32", "m"), "depth.npy"),
    }
    found = resized_modalities(members, (4, 5))
    assert [one.shape for one in found.values()] == [(4, 5, 3), (4, 5, 1), (9, 9)]
    assert resized_modalities(members, None) == {name: member.modality for name, member in members.items()}
    with pytest.raises(DataError, match="size= requires images, but the shards have only depth"):
        resized_modalities({"depth": members["depth"]}, (4, 5))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_resizing_is_that_of_pillow(channels: int) -> None:
    image = np.random.default_rng(1).integers(0, 256, (20, 30, channels), np.uint8)
    found = resize_image(image, (8, 9))
    assert found.shape == (8, 9, channels)
    planes = [image[..., place] for place in range(channels)] if channels < 3 else [image]
    expected = [ImageOps.fit(Image.fromarray(plane), (9, 8), Image.Resampling.BICUBIC) for plane in planes]
    assert (found.reshape(8, 9, -1) == np.dstack([np.asarray(one) for one in expected])).all()
