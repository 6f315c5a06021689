"""3D Chairs: 1,393 chairs, each rendered from 31 directions at two elevations.

Convention
----------
Names are ``<chair>/renders/image_<number>_p<elevation>_t<azimuth>_r096.png``; the azimuth is written in integer
degrees, multiples of 360°/31 rounded down. Rows are ordered by the bytes of the folder's name, elevation and azimuth.
"""

from pathlib import Path

import numpy as np

from setsup.datasets.adapters.factor_columns import nominal
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.releases import find_members

__all__ = ["open"]

_ELEVATIONS = (20, 30)
_AZIMUTHS = tuple(turn * 360 // 31 for turn in range(31))
_FILE = r"(?P<chair>[^/]+)/renders/image_[0-9]{3}_p(?P<elevation>[0-9]{3})_t(?P<azimuth>[0-9]{3})_r[0-9]{3}\.png"


def open(
    root: Path | str | None = None, size: tuple[int, int] | None = None, crop: tuple[int, int] | None = None
) -> ImageFilesDataset:
    """Open 3D Chairs: ``rendered_chairs.tar``, unpacked or not.

    Factors: ``chair``, the name of its folder; ``elevation`` and ``azimuth`` of the camera. The table is a grid where
    all chairs have all 62 views. Images are 600 × 600 pixels with a wide white margin: papers crop the centre with
    ``crop=(400, 400)`` and resize it with ``size=(64, 64)``.

    `size` (height, width), optional; `crop` (height, width), optional.

    References
    ----------
    .. [1] Aubry, Maturana, Efros, Russell, Sivic, "Seeing 3D chairs: exemplar part-based 2D-3D alignment using a large
       dataset of CAD models", CVPR 2014.

    """
    size, crop = check_size(size), check_size(crop, "crop")
    archives = ["rendered_chairs.tar", "rendered_chairs", "rendered_chairs.zip"]
    example = "<chair>/renders/image_000_p020_t000_r096.png"
    release = find_members("chairs3d", root, {_FILE: example}, archives)
    places, groups = release.matching(_FILE)
    chair, of = nominal("chair", groups["chair"].to_pylist())
    elevation, azimuth = (
        _codes(groups[name].to_pylist(), levels, name, str(release.source))
        for name, levels in (("elevation", _ELEVATIONS), ("azimuth", _AZIMUTHS))
    )
    factors = [
        chair,
        Factor("elevation", Kind.ORDINAL, _ELEVATIONS, unit="deg"),
        Factor("azimuth", Kind.CYCLIC, _AZIMUTHS, unit="deg", period=360.0),
    ]
    order = np.lexsort((azimuth, elevation, of))
    table = FactorTable(factors)
    columns = {"chair": of[order], "elevation": elevation[order], "azimuth": azimuth[order]}
    cells = np.ravel_multi_index(tuple(columns.values()), [len(factor) for factor in factors])
    if not np.array_equal(cells, np.arange(len(table))):
        table = FactorTable(factors, columns)
    return ImageFilesDataset("chairs3d", table, MemberImages(release, places[order]), size, crop)


def _codes(
    texts: list[str], levels: tuple[int, ...], name: str, source: str
) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    code = {f"{level:03}": number for number, level in enumerate(levels)}
    if unknown := sorted(set(texts) - set(code)):
        raise DamagedFile(f"{source} has images with the {name} {unknown[0]}, which does not exist in 3D Chairs")
    return np.array([code[text] for text in texts], np.int64)
