"""Members of shards into arrays: images by the decoders of image files, all else from ``.npy``.

Notes
-----
A ``.npy`` is the header that ``numpy.save`` writes (its `format
<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>`_) and the plain numbers. Most members of a
modality have the very same header, so that their numbers are copied without a look at it. Headers of other programs
are matched by one strict expression; nothing in them is evaluated, and no objects are unpickled.
"""

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets import images
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.depth_images import decode_depth, deep_size
from setsup.datasets.formats.png import PngHead, png_head
from setsup.datasets.images import resize
from setsup.errors import DataError, advice
from setsup.shards.layout import CAMERA, VIEW, Member

__all__ = [
    "IMAGES",
    "check_members",
    "copy_plain",
    "deep_array",
    "is_deep",
    "npy_array",
    "plain_head",
    "put_pngs",
    "resize_image",
    "resized_modalities",
    "sideways_members",
]


IMAGES = frozenset(("png", "jpg", "jpeg", "webp", "bmp", "gif", "tif", "tiff", "ppm", "pgm", "pbm", "pnm", "jp2"))
"""Last parts of extensions whose members are decoded as images."""

# dtypes of plain numbers, no objects, texts or times
_NUMBERS = frozenset(np.dtype(code).name for code in ("?", *np.typecodes["AllInteger"], *np.typecodes["AllFloat"]))
_MOST_PIXELS = 80_000_000  # as many as the decoders of images take
_FEW = 3  # threads, up to which PNG is not decoded in several: see setsup.datasets.images
_MAGIC = b"\x93NUMPY"
_LONGEST = 10_000  # bytes of a header, as numpy itself has it
_HEAD = re.compile(
    rb"\{\s*'descr':\s*'([<>|=]?)([biufc])(\d{1,2})',\s*'fortran_order':\s*(True|False),\s*"
    rb"'shape':\s*\(\s*((?:\d{1,18}\s*,\s*)+(?:\d{1,18}\s*)?)?\),?\s*\}\s*"
)


def check_members(members: Mapping[str, Member], source: str) -> None:
    """Refuse a catalogue with members that cannot be decoded, before anything is made room for."""
    for name, member in members.items():
        shape, dtype = member.modality.shape, member.modality.dtype
        if (name, member) == (CAMERA, VIEW):
            continue
        if is_deep(member):
            if math.prod(size or 1 for size in shape) > _MOST_PIXELS:
                raise DataError(
                    f"{source}: {name!r} has shape {shape}, more than the supported {_MOST_PIXELS:,} pixels"
                )
        elif member.format in IMAGES:
            good = dtype == "uint8" and len(shape) == 3 and shape[2] in (1, 3, 4)
            if not good or math.prod(size or 1 for size in shape[:2]) > _MOST_PIXELS:
                raise DataError(
                    f"{source}: the modality {name!r}, {dtype} {shape}, cannot be stored as .{member.format}; images "
                    f"must be uint8 of shape (height, width, 1, 3 or 4) with at most {_MOST_PIXELS:,} pixels"
                )
        elif member.format != "npy":
            raise DataError(
                f"{source}: members with the extension .{member.extension} ({name!r}) are not supported; only images "
                "and .npy are supported; index the shards without these members"
            )
        elif dtype not in _NUMBERS:
            raise DataError(f"{source}: the modality {name!r} must have a numeric dtype, not {dtype}")


def is_deep(member: Member) -> bool:
    """Whether members are PNGs of one channel of 16 bits, such as depth."""
    return member.format == "png" and member.modality.dtype == "uint16" and len(member.modality.shape) == 2


def deep_array(content: memoryview, label: str) -> Array:
    """Decode a PNG of one channel of 16 bits.

    Returns (height, width) uint16.
    """
    whole = bytes(content)
    return decode_depth(whole, label, deep_size(whole) or (0, 0))


def sideways_members(members: Mapping[str, Member]) -> dict[str, Member]:
    """Members whose JPEG are not turned upright: the sides in the catalogue are those of upright ones."""
    return {
        name: replace(member, modality=replace(member.modality, shape=(None, None, member.modality.shape[2])))
        if member.format in ("jpg", "jpeg") and member.modality.shape[0] != member.modality.shape[1]
        else member
        for name, member in members.items()
    }


def resized_modalities(members: Mapping[str, Member], size: tuple[int, int] | None) -> dict[str, Modality]:
    """Modalities when all images are resized.

    `size` (height, width) or None, pixels.
    """
    modalities = {name: member.modality for name, member in members.items()}
    if size is None:
        return modalities
    names = [
        name
        for name, modality in modalities.items()
        if modality.color and modality.dtype == "uint8" and len(modality.shape) == 3
    ]
    if not names:
        raise DataError(
            f"{advice('size=', '--option size=')} requires images, but the shards have only "
            f"{', '.join(modalities) or 'factors'}; leave out the size"
        )
    for name in names:
        modality = modalities[name]
        modalities[name] = Modality((*size, modality.shape[2]), modality.dtype, modality.unit, modality.color)
    return modalities


def resize_image(image: Array, size: tuple[int, int]) -> Array:
    """Resize an image of any number of channels as :func:`setsup.datasets.images.resize` does.

    `image` (height, width, channels) uint8; `size` (height, width).
    """
    if image.shape[2] != 2:
        return resize(image, size)
    return np.concatenate([resize(np.ascontiguousarray(image[..., [channel]]), size) for channel in (0, 1)], axis=2)


def plain_head(modality: Modality) -> bytes:
    r"""Bytes with which ``numpy.save`` begins an array of a modality; none where its shape is not one."""
    if None in modality.shape:
        return b""
    described = {"descr": np.dtype(modality.dtype).str, "fortran_order": False, "shape": modality.shape}
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, described)
    return head.getvalue()


def copy_plain(contents: Sequence[memoryview], skip: int, out: Array) -> None:
    """Copy the numbers behind headers.

    `out` (n, …) array in C order.
    """
    if not out.size:
        return
    room = out.reshape(-1).view(np.uint8).data
    step, at = len(room) // len(contents), 0
    for content in contents:
        room[at : at + step] = content[skip:]
        at += step


def put_pngs(contents: Sequence[memoryview], out: npt.NDArray[np.uint8]) -> bool:
    """Decode PNGs whose bytes have been compared with a checksum already, if they are as the usual ones are.

    For small images the general decoder spends a third of its time on what is known here: their size, and that
    they are whole.

    `out` (n, height, width, 1, 3 or 4) uint8, in C order.
    """
    if images.threads > _FEW:
        return False
    from kornia_rs.io import decode_image_png_u8

    head = PngHead(*out.shape[1:])
    size, mode, usual = (head.height, head.width), {1: "mono", 3: "rgb", 4: "rgba"}[head.channels], b"none yet"
    # by the buffers, which takes half as long as for numpy to work out what is copied where
    room, step, at = out.reshape(-1).data, head.height * head.width * head.channels, 0
    try:
        for content in contents:
            file = bytes(content)
            # the chunk that tells all, and the pixels right behind it; without slices, which take 1 % of an image
            if not (file.startswith(usual) and file.startswith(b"IDAT", 37)):
                if png_head(file) != head:
                    return False
                usual = file[:33]
            end = at + step
            room[at:end] = decode_image_png_u8(file, size, mode).reshape(-1)
            at = end
    except Exception:  # the general decoder says what is wrong
        return False
    return True


def npy_array(content: memoryview, label: str) -> Array:
    """Read a ``.npy`` that holds plain numbers.

    Returns array of the shape, the order and the byte order that it was written in, read-only; a view of `content`.
    """
    start = _start(content)
    header = _described(bytes(content[:start])) if 0 < start <= len(content) else None
    if header is None:
        raise DataError(
            f"{label} is not a numeric .npy file, or its header is damaged; save the array again with numpy.save"
        )
    dtype, fortran, shape = header
    size = math.prod(shape) * dtype.itemsize
    if len(content) != start + size:
        raise DataError(
            f"{label} is damaged: {dtype} of shape {shape} requires {size:,} bytes, but the file has "
            f"{len(content) - start:,}; write the file again"
        )
    try:
        # an empty array may have absurd lengths beside the one that is 0
        numbers = np.frombuffer(content, dtype, size // dtype.itemsize, start)
        return numbers.reshape(shape, order="F" if fortran else "C")
    except ValueError as error:
        raise DataError(f"{label} is damaged: {error}; write it again") from None


def _start(content: memoryview) -> int:
    """Byte at which the numbers begin, 0 where the format is unknown."""
    head = bytes(content[:12])
    if not head.startswith(_MAGIC) or len(head) < 12 or head[7] != 0 or head[6] not in (1, 2, 3):
        return 0
    fixed = 10 if head[6] == 1 else 12
    length = int.from_bytes(head[8:fixed], "little")
    return fixed + length if length <= _LONGEST else 0


@lru_cache(maxsize=4096)  # members of a dataset share few headers
def _described(head: bytes) -> tuple[np.dtype[Any], bool, tuple[int, ...]] | None:
    """Type, whether in Fortran's order, and shape."""
    match = _HEAD.fullmatch(head, 10 if head[6] == 1 else 12)
    if match is None:
        return None
    order, kind, size, fortran, sizes = (part.decode("ascii") for part in match.groups(b""))
    try:
        dtype = np.dtype(f"{order}{kind}{size}")
    except TypeError:  # no such number of bytes
        return None
    shape = tuple(int(length) for length in sizes.split(",") if length.strip())
    return (dtype, fortran == "True", shape) if len(shape) <= 32 else None
