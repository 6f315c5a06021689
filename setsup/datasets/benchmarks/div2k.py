"""DIV2K: a thousand photographs 2,000 pixels wide, and their degraded versions from super-resolution challenges.

Both the published zips and the unpacked folders can be opened. For pairs of patches as in figure 5 of "Contrastive
Multiview Coding" (Tian, Krishnan, Isola, ECCV 2020), whose images must have one size in a batch::

    photographs = setsup.load("div2k", root="DIV2K", crop=(640, 640), where="scale == 1")
    pairs = PatchPairs(size=64, offset=128)
"""

import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.images import check_size
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["Div2k", "open"]

_SPLITS = ("train", "valid", "test")
_SCALES = (1, 2, 3, 4, 8)
_DEGRADATIONS = ("none", "bicubic", "unknown", "mild", "difficult", "wild")
_VARIANTS = (1, 2, 3, 4)
_NAME = r"DIV2K_(?:train|valid|test)_(?:HR|LR_(?:bicubic|unknown|mild|difficult|wild|x8))"
_HOLDS = {rf"{_NAME}(?:_X[234])?/": "DIV2K_train_HR, DIV2K_train_HR.zip or the like"}
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


class _File(NamedTuple):
    """Codes in the order in which rows are sorted; the part and the number of the file among the members."""

    degradation: int
    scale: int
    image: str
    variant: int
    split: int

    member: int


class Div2k(ImageFilesDataset):
    """Photographs in high resolution, and their smaller versions.

    Rows are images: those in high resolution by id, then the others by degradation, scale, id and variant, so the
    numbers of the first do not depend on which other images exist. Factors: ``scene`` (id of the photograph, four
    digits), ``scale`` (1 for high resolution, else how many times smaller), ``degradation`` (none, bicubic, unknown,
    mild, difficult, wild), ``variant`` (key; 1 to 4 of the wild images of a photograph, else unknown) and ``split``. A
    set that fixes ``scene`` contains one photograph at several scales.

    The only modality is ``image``, (None, None, 3) uint8 sRGB: sizes differ, and only images of one size can be
    fetched together; `crop` or `size` makes all one size.

    `size, crop` (height, width), optional.
    """

    def __init__(
        self, members: MemberIndex, size: tuple[int, int] | None = None, crop: tuple[int, int] | None = None
    ) -> None:
        files = _find_files(members)
        places = np.array([file.member for file in files], np.int64)
        super().__init__("div2k", _table(files), MemberImages(members, places), size, crop)


def open(
    root: Path | str | None = None, size: tuple[int, int] | None = None, crop: tuple[int, int] | None = None
) -> Div2k:
    """Open DIV2K: the parts that are present, zips and folders mixed.

    `size` (height, width), optional; `crop` (height, width), optional.
    """
    size, crop = check_size(size), check_size(crop, "crop")
    return Div2k(find_members("div2k", root, _HOLDS, parts=_ZIP), size, crop)


def _find_files(members: MemberIndex) -> list[_File]:
    """Images of all parts in the order of the rows."""
    files: dict[tuple[Any, ...], _File] = {}
    wrong: list[str] = []
    # folders may lie in others
    places, groups = members.matching(rf"(?:.*/)?{_FILE}")
    columns = [groups[name].to_pylist() for name in ("split", "high", "track", "low", "scale", "kind")]
    for member, (split, high, track, low, scale, kind) in zip(places.tolist(), zip(*columns, strict=True), strict=True):
        degradation, scales, letter = _TRACKS.get(track, ("none", "", ""))
        if (scale and scale not in scales) or kind[:1] != letter:
            wrong.append(members.label(member))
            continue
        file = _File(
            _DEGRADATIONS.index(degradation),
            _SCALES.index(int(scale or 1)),
            high or low,
            int(kind[1:] or 0) - 1,
            _SPLITS.index(split),
            member,
        )
        files.setdefault(file[:5], file)
    if wrong:
        _log.warning(
            "the names of %d files, such as %s, contradict their folders; they are left out", len(wrong), wrong[0]
        )
    if not files:
        raise DataError(
            f"{members.source} contains no image such as DIV2K_train_HR/0001.png; unpack or fetch the release as it "
            "was published"
        )
    return sorted(files.values())


def _table(files: list[_File]) -> FactorTable:
    ids = sorted({file.image for file in files})
    codes = {image: code for code, image in enumerate(ids)}
    factors = {
        Factor("scene", Kind.NOMINAL, tuple(ids)): [codes[file.image] for file in files],
        Factor("scale", Kind.ORDINAL, _SCALES): [file.scale for file in files],
        Factor("degradation", Kind.NOMINAL, _DEGRADATIONS): [file.degradation for file in files],
        Factor("variant", Kind.NOMINAL, _VARIANTS, role="key"): [file.variant for file in files],
        Factor("split", Kind.NOMINAL, _SPLITS, role="split"): [file.split for file in files],
    }
    return table_of({factor: np.array(column, np.int64) for factor, column in factors.items()})
