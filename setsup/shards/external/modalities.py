"""Modalities of tars that others wrote, from the extensions of their members and the headers of a few."""

import io
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from setsup.datasets.dataset import Modality
from setsup.datasets.formats.depth_images import deep_size
from setsup.datasets.images import header
from setsup.errors import DataError
from setsup.shards.decoding import IMAGES
from setsup.shards.layout import Member

__all__ = ["HEAD", "LOOKED_AT", "is_fetched", "modality_names", "stored_member"]

LOOKED_AT = 16
"""Members of a modality whose headers are read, evenly spread over the samples."""

HEAD = {"npy": 16 << 10}
"""Bytes in which a header ends, by the last part of the extension; of images all is read."""

_NUMBERS, _AXES = "biufc", 8  # kinds of dtypes, and the most axes, that a modality may have
_COLORS: dict[int, str] = {1: "grey", 3: "srgb", 4: "srgb"}


def is_fetched(extension: str) -> bool:
    """Whether members of an extension are images or arrays, rather than texts, films, pickles or what else there is.

    Examples
    --------
    >>> [one for one in ("png", "depth.npy", "txt", "pth", "x.jpeg") if is_fetched(one)]
    ['png', 'depth.npy', 'x.jpeg']

    """
    last = extension.rpartition(".")[2]
    return last in IMAGES or last == "npy"


def modality_names(extensions: Sequence[str], together: Collection[frozenset[str]] = ()) -> dict[str, tuple[str, ...]]:
    """Name the modalities: ``image`` for bare images and arrays, all else by what stands before the last dot.

    Bare images of several kinds (``0.jpg``, ``1.png``) are one modality, unless a sample has two of them.

    Examples
    --------
    >>> modality_names(["jpg", "png", "depth.npy"])
    {'image': ('jpg', 'png'), 'depth': ('depth.npy',)}
    >>> modality_names(["jpg", "png", "image.npy"], [frozenset(("jpg", "png"))])
    {'image': ('jpg',), 'png': ('png',), 'image.npy': ('image.npy',)}

    """
    names: dict[str, tuple[str, ...]] = {}
    for extension in extensions:
        stem, _, last = extension.rpartition(".")
        name = stem or "image"
        known = names.get(name, ())
        joins = not stem and known and not any("." in other for other in known) and {last, *known} <= IMAGES
        if joins and not any(frozenset((other, last)) in together for other in known):
            names[name] = (*known, extension)
        else:
            names[name if not known else extension] = (extension,)
    return names


def stored_member(name: str, extension: str, heads: Mapping[str, bytes]) -> Member:
    """Describe a modality by the headers of some members.

    Those that cannot be read are passed over, as long as one can: whoever fetches such a row is told.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((48, 64), np.float32))
    >>> stored_member("depth", "depth.npy", {"0.depth.npy": file.getvalue()}).modality
    Modality(shape=(48, 64), dtype='float32', unit='', color='')

    """
    read = _array if extension.rpartition(".")[2] == "npy" else _image
    seen: list[Modality] = []
    failed: list[DataError] = []
    for label, content in heads.items():
        try:
            seen.append(read(content, label))
        except DataError as error:
            failed.append(error)
    if not seen:
        raise failed[0]
    kinds = {(modality.dtype, len(modality.shape)) for modality in seen}
    if len(kinds) > 1:
        said = " and ".join(sorted(f"{dtype} of {axes} axes" for dtype, axes in kinds))
        raise DataError(
            f"{next(iter(heads))} and other members with this extension are {said}, but all members of a modality "
            "must have the same dtype and number of axes"
        )
    lengths = [set(axis) for axis in zip(*(modality.shape for modality in seen), strict=True)]
    shape = [axis.pop() if len(axis) == 1 else None for axis in lengths]
    dtype, color = seen[0].dtype, ""
    if read is _image and dtype == "uint8":
        # as images are decoded together: in colour where one is
        counts = {modality.shape[2] for modality in seen}
        shape[2] = counts.pop() if len(counts) == 1 else 3
        color = _COLORS[shape[2] or 3]
    elif name == "image" and dtype == "uint8" and len(shape) == 3:
        color = _COLORS.get(shape[2] or 0, "")
    return Member(Modality(tuple(shape), dtype, color=color), extension)


def _image(content: bytes, label: str) -> Modality:
    deep = deep_size(content)
    if deep is not None:  # depth, as nearly all who store it in images do
        return Modality(deep, "uint16")
    image = header(content, label)
    return Modality((image.height, image.width, image.channels), "uint8")


def _array(content: bytes, label: str) -> Modality:
    """What the header of a npy tells; nothing in it is evaluated but plain literals, by numpy."""
    head = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(head)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(head)
    except Exception as error:  # numpy lets what ast and struct raise through
        why = " ".join(str(error).split())[:100]
        raise DataError(f"{label} could not be parsed as .npy: {why}") from None
    if dtype.kind not in _NUMBERS or len(shape) > _AXES:
        raise DataError(f"{label} must be a numeric array, not {str(dtype)[:40]} of {len(shape)} axes")
    return Modality(tuple(size or None for size in shape), dtype.name)
