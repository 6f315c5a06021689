"""CO3D, version 2: frames of videos around objects, with camera, mask and depth.

Convention
----------
Poses and intrinsics are converted from PyTorch3D's; see :mod:`setsup.datasets.benchmarks.co3d.annotations`. Each
sequence has its own world frame, whose scale and axes were chosen by COLMAP; depth is in its unit, along the optical
axis.
"""

from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.camera_frames import CameraFrames, FrameMaps
from setsup.datasets.adapters.camera_paths import pose_factors
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.benchmarks.co3d.annotations import FILES, PARTS, intrinsics_of, poses_of, read_category
from setsup.datasets.formats.depth_images import decode_depth
from setsup.datasets.formats.source import Source
from setsup.datasets.images import check_size, decode
from setsup.errors import DamagedFile
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.releases import find_members

__all__ = ["open"]

_HOLDS = {
    r"[^/]+/frame_annotations\.jgz": "<category>/frame_annotations.jgz",
    r"[^/]+/[^/]+/images/[^/]+\.jpg": "<category>/<sequence>/images/*.jpg",
}
_ARCHIVES = ("co3d", "CO3D", "CO3Dv2", "co3d.zip", "co3d.tar")
_PACKED = r"[a-z]+_[0-9]{3}(?:_singlesequence)?\.zip"
_FACTORS = {"time": "s", "viewpoint_quality": "", "cloud_quality": ""}


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> CameraFrames:
    """Open CO3D: a folder with any of its zips, packed or unpacked into a folder per category.

    Rows are the annotated frames whose image exists, by category, sequence and frame. Factors: ``category``;
    ``sequence`` (within the category: one object); the key ``frame``; ``time`` (s from the start of the video);
    ``viewpoint_quality`` and ``cloud_quality`` of the sequence, the larger the better; ``azimuth``, ``elevation`` and
    ``distance`` of the camera about the sequence's own axis (:mod:`setsup.datasets.adapters.camera_paths`); and a split
    for each set list, such as ``fewview_dev``: train, val, test, or none.

    Modalities: ``image``; ``pose``, camera to world, NaN where unknown; ``intrinsics``; and, if available,
    ``object_mask``, 255 for the object's pixels, and ``depth``, 0 if unknown.

    `size` (height, width), optional: images are resized to cover this size and cropped about their centre, intrinsics
    follow, masks and depth take the nearest pixel.

    Raises
    ------
    DataError
        When the release is missing, or an annotation or a list is damaged.

    References
    ----------
    .. [1] Reizenstein, Shapovalov, Henzler, Sbordone, Labatut, Novotny, "Common Objects in 3D: Large-Scale Learning and
       Evaluation of Real-life 3D Category Reconstruction", ICCV 2021.

    """
    size = check_size(size)
    release = find_members("co3d", root, _HOLDS, _ARCHIVES, parts=_PACKED)
    _, groups = release.matching(r"(?P<category>[^/]+)/frame_annotations\.jgz")
    categories = sorted(groups["category"].to_pylist())
    tables = [_ordered(read_category(release, category)) for category in categories]
    code = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    places = {name: release.places(_joined(tables, name).tolist()) for name in FILES}
    rows = np.flatnonzero(places["image"] >= 0)
    lost = _joined(tables, "image")[places["image"] < 0].tolist()
    warn_left_out(release.source, "images", lost, len(code))
    sequence = nominal("sequence", _joined(tables, "sequence")[rows].tolist(), within="category")
    frame = _joined(tables, "frame")[rows]
    levels = np.unique(frame)
    numbers = {name: _joined(tables, name)[rows] for name in (*_FACTORS, "height", "width", "depth_scale")}
    poses = np.concatenate([poses_of(table) for table in tables])[rows]
    intrinsics = np.concatenate([intrinsics_of(table) for table in tables])[rows]
    factors = [
        (Factor("category", Kind.NOMINAL, tuple(categories)), code[rows]),
        sequence,
        (
            Factor("frame", Kind.ORDINAL, tuple(levels.tolist()), within="sequence", role="key"),
            np.searchsorted(levels, frame),
        ),
        *((Factor(name, Kind.CONTINUOUS, unit=unit), numbers[name]) for name, unit in _FACTORS.items()),
        *pose_factors(poses, code[rows] * len(sequence[0].levels or ()) + sequence[1]),
        *_splits(tables, rows),
    ]
    maps = {
        name: FrameMaps(release, indices, dtype, read)
        for name, file, dtype, read in (
            ("object_mask", "mask", "uint8", _mask),
            ("depth", "depth", "float32", partial(_depth, numbers["depth_scale"])),
        )
        if ((indices := places[file][rows]) >= 0).any()
    }
    sizes = np.stack([numbers["height"], numbers["width"]], axis=1).astype(np.int64)
    # cameras are those of the pixels as they are stored
    images = MemberImages(release, places["image"][rows], upright=False)
    return CameraFrames("co3d", table_of(factors), images, poses, intrinsics, sizes, size, maps)


def _joined(tables: list[FactorTable], name: str) -> Array:
    """Values of all categories; empty texts where a path is unknown."""
    values = np.concatenate([table.values(name) for table in tables])
    return np.where(values == None, "", values) if values.dtype == object else values  # noqa: E711


def _ordered(table: FactorTable) -> FactorTable:
    """Bring rows into the order of sequences and frames."""
    return table.select(np.lexsort([table.codes("frame"), table.codes("sequence")]))


def _splits(tables: list[FactorTable], rows: Rows) -> list[tuple[Factor, Rows]]:
    """Make a factor for each name of lists of sets: unknown for categories without that list."""
    names = sorted({factor.name for table in tables for factor in table.factors if factor.role == "split"})
    columns = []
    for name in names:
        codes = [table.codes(name) if name in table else np.full(len(table), -1) for table in tables]
        columns.append((Factor(name, Kind.NOMINAL, PARTS, role="split"), np.concatenate(codes)[rows]))
    return columns


def _mask(source: Source, label: str, row: int, size: tuple[int, int]) -> Array:
    pixels = decode(source, label, 1)[..., 0]
    if pixels.shape != size:
        raise DamagedFile(
            f"{label} is {pixels.shape[0]} × {pixels.shape[1]} pixels (height × width); expected {size[0]} × "
            f"{size[1]}, the size of its image"
        )
    return pixels


def _depth(scale: npt.NDArray[np.float32], source: Source, label: str, row: int, size: tuple[int, int]) -> Array:
    """Depth of a frame: 16 bits of the file are a half-precision number."""
    depth = decode_depth(source, label, size).view(np.float16).astype(np.float32) * scale[row]
    return np.where(np.isfinite(depth), depth, np.float32(0))
