"""DIV2K: a thousand photographs 2,000 pixels wide, and what super-resolution challenges made of them.

The published zips open as they are, and so do the folders they hold. For pairs of patches as in figure 5 of
"Contrastive Multiview Coding" (Tian, Krishnan, Isola, ECCV 2020), whose pictures must have one size in a batch::

    photographs = setsup.load("div2k", root="DIV2K", crop=(640, 640), where="scale == 1")
    pairs = PatchPairs(size=64, offset=128)
"""

import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setsup.datasets.adapters.image_files import PictureFiles
from setsup.datasets.adapters.image_sources import PartedImages
from setsup.datasets.images import checked_size
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex, open_members
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded

__all__ = ["Div2k", "open"]

_SPLITS = ("train", "valid", "test")
_SCALES = (1, 2, 3, 4, 8)
_DEGRADATIONS = ("none", "bicubic", "unknown", "mild", "difficult", "wild")
_VARIANTS = (1, 2, 3, 4)
_NAME = r"DIV2K_(?:train|valid|test)_(?:HR|LR_(?:bicubic|unknown|mild|difficult|wild|x8))"
_HOLDS = {rf"{_NAME}(?:_X[234])?(?:/|\.zip$)": "DIV2K_train_HR, DIV2K_train_HR.zip or the like"}
_ZIP = rf"{_NAME}(?:_X[234])?\.zip"
_FILE = (
    r"DIV2K_(?P<split>train|valid|test)_(?:HR/(?P<high>[0-9]{4})|"
    r"LR_(?P<track>bicubic|unknown|mild|difficult|wild|x8)(?:_X[234])?/(?:[Xx][234]/)?"
    r"(?P<low>[0-9]{4})x(?P<scale>[2348])(?P<kind>m|d|w[1-4]?)?)\.png"
)
# for each folder the degradation, its scales, and the letter behind the scale
_TRACKS = {
    "bicubic": ("bicubic", "234", ""),
    "unknown": ("unknown", "234", ""),
    "x8": ("bicubic", "8", ""),
    "mild": ("mild", "4", "m"),
    "difficult": ("difficult", "4", "d"),
    "wild": ("wild", "4", "w"),
}

_log = logging.getLogger("setsup")


class _Picture(NamedTuple):
    """Codes in the order in which rows are sorted; the part and the place of the file."""

    degradation: int
    scale: int
    image: str
    variant: int
    split: int
    part: int
    place: int


class Div2k(PictureFiles):
    """Photographs in high resolution, and smaller ones made of them.

    Rows are pictures: those in high resolution by id, then the others by degradation, scale, id and variant, so that
    numbers of the first do not depend on what else is there. Factors: ``scene`` (id of the photograph,
    four digits), ``scale`` (1 for high resolution, else how many times smaller), ``degradation`` (none, bicubic,
    unknown, mild, difficult, wild), ``variant`` (key; 1 to 4 of the four wild pictures of an image, unknown for others)
    and ``split``. A set that holds ``scene`` has one photograph at several scales.

    The one modality is ``image``, (None, None, 3) uint8 sRGB: sizes differ, and only pictures of one size can be
    fetched together; `crop` or `size` gives all one size.

    `size, crop` (height, width), optional.
    """

    def __init__(
        self, members: list[MemberIndex], size: tuple[int, int] | None = None, crop: tuple[int, int] | None = None
    ) -> None:
        found = _pictures(members)
        part, places = (np.array(numbers, np.int64) for numbers in zip(*(each[-2:] for each in found), strict=True))
        super().__init__("div2k", _table(found), PartedImages(members, part, places), size, crop)


def open(
    root: Path | str | None = None, size: tuple[int, int] | None = None, crop: tuple[int, int] | None = None
) -> Div2k:
    """Open DIV2K: whichever of its parts are there, zips and folders mixed.

    `size` (height, width), optional; `crop` (height, width), optional.
    """
    size, crop = checked_size(size), checked_size(crop, "crop")
    release = find_members("div2k", None if root is None else expanded(root), _HOLDS)
    zips = [release.path(place) for place in release.matching(_ZIP)[0].tolist()]
    return Div2k([release, *(open_members(path) for path in zips if path is not None)], size, crop)


def _pictures(members: list[MemberIndex]) -> list[_Picture]:
    """Pictures of all parts in the order of the rows."""
    found: dict[tuple[Any, ...], _Picture] = {}
    wrong: list[str] = []
    for part, each in enumerate(members):
        # zips may have been packed with folders around
        places, groups = each.matching(rf"(?:.*/)?{_FILE}")
        columns = [groups[name].to_pylist() for name in ("split", "high", "track", "low", "scale", "kind")]
        for place, (split, high, track, low, scale, kind) in zip(
            places.tolist(), zip(*columns, strict=True), strict=True
        ):
            degradation, scales, letter = _TRACKS.get(track, ("none", "", ""))
            if (scale and scale not in scales) or kind[:1] != letter:
                wrong.append(each.label(place))
                continue
            picture = _Picture(
                _DEGRADATIONS.index(degradation),
                _SCALES.index(int(scale or 1)),
                high or low,
                int(kind[1:] or 0) - 1,
                _SPLITS.index(split),
                part,
                place,
            )
            found.setdefault(picture[:5], picture)
    if wrong:
        _log.warning("%d files, such as %s, contradict their folders; they are left out", len(wrong), wrong[0])
    if not found:
        raise DataError(
            f"{members[0].source} holds no picture such as DIV2K_train_HR/0001.png; unpack or fetch the release as it "
            "was published"
        )
    return sorted(found.values())


def _table(pictures: list[_Picture]) -> FactorTable:
    ids = sorted({picture.image for picture in pictures})
    codes = {image: code for code, image in enumerate(ids)}
    factors = {
        Factor("scene", Kind.NOMINAL, tuple(ids)): [codes[picture.image] for picture in pictures],
        Factor("scale", Kind.ORDINAL, _SCALES): [picture.scale for picture in pictures],
        Factor("degradation", Kind.NOMINAL, _DEGRADATIONS): [picture.degradation for picture in pictures],
        Factor("variant", Kind.NOMINAL, _VARIANTS, role="key"): [picture.variant for picture in pictures],
        Factor("split", Kind.NOMINAL, _SPLITS, role="split"): [picture.split for picture in pictures],
    }
    codes_of = {factor.name: np.array(column, np.int64) for factor, column in factors.items()}
    return FactorTable(list(factors), codes_of)
