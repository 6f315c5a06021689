"""Annotations of CO3D: frames, sequences and lists of sets of each category.

Convention
----------
As published, cameras are PyTorch3D's: x points left, y up and z forward, a row vector X of the world is ``X R + T`` in
the camera's frame, and focal length and principal point are in normalised coordinates that grow to the left and up from
the middle of the image: the shorter side is −1 … 1 (``ndc_isotropic``, version 2), or each side is
(``ndc_norm_image_bounds``, the default of annotations without a format). Here x points right, y down and z forward, and
with s half of the shorter side (or of each side) ``fx = s f_x`` and ``cx = W/2 − s p_x − 1/2``, likewise for y: pixels
have their centres at integers.

References
----------
.. [1] Reizenstein, Shapovalov, Henzler, Sbordone, Labatut, Novotny, "Common Objects in 3D: Large-Scale Learning and
   Evaluation of Real-life 3D Category Reconstruction", ICCV 2021.

"""

import zlib
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.adapters.factor_columns import nominal
from setsup.datasets.cached_arrays import cached_table, file_states
from setsup.datasets.formats.json_text import read_json
from setsup.errors import DamagedFile
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import cache_folder
from setsup.files.archives.members import MemberIndex

__all__ = ["FILES", "PARTS", "intrinsics_of", "poses_of", "read_category"]

FILES = ("image", "mask", "depth")
"""Columns of paths."""

PARTS = ("train", "val", "test")
"""Parts of a list of sets."""

_POSE = [f"pose{row}{column}" for row in range(3) for column in range(4)]
_LENS = ("fx", "fy", "cx", "cy")
_NUMBERS = ("time", *_POSE, *_LENS, "height", "width", "depth_scale", "viewpoint_quality", "cloud_quality")
_FLIP = np.array([-1.0, -1.0, 1.0])
_MOST_PACKED, _MOST = 1 << 30, 1 << 32
_VERSION = 1
_WRONG_ROTATION = 0.05


def read_category(release: MemberIndex, category: str) -> FactorTable:
    """Read a row for each annotated frame of a category; read once, then from the cache.

    Columns are ``sequence``, ``frame``, paths (:data:`FILES`), and numbers: ``time``, the pose (camera to world) as
    ``pose00`` … ``pose23``, ``fx``, ``fy``, ``cx``, ``cy``, ``height``, ``width``, ``depth_scale`` and the sequence's
    ``viewpoint_quality`` and ``cloud_quality``; and finally a split for each of the category's set lists.
    """
    names = [f"{category}/{kind}_annotations.jgz" for kind in ("frame", "sequence")]
    listed = release.under(category).matching(r"set_lists/set_lists_[a-z0-9_]+\.json")[0]
    lists = release.under(category).names.take(listed).to_pylist()
    places = [
        int(member) for member in release.places([*names, *(f"{category}/{name}" for name in lists)]) if member >= 0
    ]
    state = sha256(repr((_VERSION, file_states(release, places))).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    path = cache_folder() / "indexes" / "co3d" / f"{state}.arrow"
    return cached_table(path, lambda: _with_sets(_read(release, names), release, category, lists))


def poses_of(table: FactorTable) -> npt.NDArray[np.float32]:
    """Poses of all rows of a category's table, (n, 4, 4)."""
    poses = np.zeros((len(table), 4, 4), np.float32)
    poses[:, :3] = np.stack([table.codes(name) for name in _POSE], axis=-1).reshape(-1, 3, 4)
    poses[:, 3, 3] = 1
    poses[np.isnan(poses[:, 0, 0])] = np.nan
    return poses


def intrinsics_of(table: FactorTable) -> npt.NDArray[np.float32]:
    """Camera matrices of all rows of a category's table, (n, 3, 3)."""
    intrinsics = np.zeros((len(table), 3, 3), np.float32)
    for name, (row, column) in zip(_LENS, ((0, 0), (1, 1), (0, 2), (1, 2)), strict=True):
        intrinsics[:, row, column] = table.codes(name)
    intrinsics[:, 2, 2] = 1
    intrinsics[np.isnan(intrinsics[:, 0, 0])] = np.nan
    return intrinsics


def _with_sets(table: FactorTable, release: MemberIndex, category: str, lists: list[str]) -> FactorTable:
    """Add a split for each ``set_lists_<name>.json``."""
    keys = list(zip(table.values("sequence").tolist(), table.values("frame").tolist(), strict=True))
    for name in lists:
        sets = _read_set_list(release, f"{category}/{name}")
        codes = np.array([PARTS.index(sets[key]) if key in sets else -1 for key in keys], np.int64)
        factor = Factor(name.partition("/set_lists_")[2].removesuffix(".json"), Kind.NOMINAL, PARTS, role="split")
        table = table.with_factor(factor, codes)
    return table


def _read_set_list(release: MemberIndex, name: str) -> dict[tuple[str, int], str]:
    """Part of each (sequence, frame); the first of test, val, train where lists overlap."""
    member = release.place(name)
    label = release.label(member)
    content = read_json(release.read(member, _MOST_PACKED), label)
    sets: dict[tuple[str, int], str] = {}
    try:
        for part in reversed(PARTS):
            for entry in content.get(part, []):
                sets.setdefault((str(entry[0]), int(entry[1])), part)
    except (AttributeError, TypeError, ValueError, IndexError) as error:
        raise DamagedFile(
            f"{label} is not a set list; expected a list of frames [sequence, number, path] for each part"
        ) from error
    return sets


def _read(release: MemberIndex, names: list[str]) -> FactorTable:
    frames, label = _unpacked(release, names[0])
    qualities = _qualities(release, names[1]) if names[1] in release else {}
    texts: dict[str, list[str]] = {name: [] for name in ("sequence", *FILES)}
    numbers: dict[str, list[Any]] = {name: [] for name in ("frame", *_NUMBERS)}
    cameras = list[tuple[Any, ...]]()
    for number, frame in enumerate(frames):
        try:
            _add(frame, texts, numbers, cameras, qualities)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())[:100]
            raise DamagedFile(f"{label}: frame {number} does not match the published format: {why}") from error
    sizes = np.array([numbers["height"], numbers["width"]], np.float64).T.reshape(-1, 2)
    columns: dict[str, Array] = {name: np.array(numbers[name], np.float32) for name in _NUMBERS if numbers[name]}
    columns |= _converted(cameras, sizes, label)
    levels = tuple(sorted(set(numbers["frame"]))) or (0,)
    named = [nominal(name, texts[name], role="key") for name in texts]
    columns |= {factor.name: codes for factor, codes in named}
    columns["frame"] = np.searchsorted(np.array(levels), np.array(numbers["frame"], np.int64))
    factors = [factor for factor, _ in named] + [Factor("frame", Kind.ORDINAL, levels, role="key")]
    factors += [Factor(name, Kind.CONTINUOUS) for name in _NUMBERS]
    return FactorTable(factors, {factor.name: columns[factor.name] for factor in factors})


def _add(
    frame: dict[str, Any],
    texts: dict[str, list[str]],
    numbers: dict[str, list[Any]],
    cameras: list[tuple[Any, ...]],
    qualities: dict[str, tuple[float, float]],
) -> None:
    """Append what one annotation says."""
    height, width = frame["image"]["size"]
    if not (0 < height < 1 << 16 and 0 < width < 1 << 16):
        raise ValueError(
            f"the size of its image is {height} × {width} pixels (height × width); expected sides from 1 to 65,535"
        )
    depth, mask, viewpoint = (frame.get(name) or {} for name in ("depth", "mask", "viewpoint"))
    texts["sequence"].append(str(frame["sequence_name"]))
    for name, path in zip(FILES, (frame["image"]["path"], mask.get("path"), depth.get("path")), strict=True):
        texts[name].append(str(path or ""))
    numbers["frame"].append(int(frame["frame_number"]))
    numbers["time"].append(float(frame["frame_timestamp"]))
    numbers["height"].append(height)
    numbers["width"].append(width)
    numbers["depth_scale"].append(float(depth.get("scale_adjustment", np.nan)))
    viewed, clouded = qualities.get(texts["sequence"][-1], (np.nan, np.nan))
    numbers["viewpoint_quality"].append(viewed)
    numbers["cloud_quality"].append(clouded)
    if not viewpoint:
        cameras.append((np.full((3, 3), np.nan), np.full(3, np.nan), (np.nan,) * 2, (np.nan,) * 2, True))
        return
    form = viewpoint.get("intrinsics_format", "ndc_norm_image_bounds")
    if form not in ("ndc_isotropic", "ndc_norm_image_bounds"):
        raise ValueError(f"unknown intrinsics_format {form!r}; expected ndc_isotropic or ndc_norm_image_bounds")
    turn, shift = np.array(viewpoint["R"], float).reshape(3, 3), np.array(viewpoint["T"], float).reshape(3)
    lens = (np.array(viewpoint[name], float).reshape(2) for name in ("focal_length", "principal_point"))
    cameras.append((turn, shift, *lens, form == "ndc_isotropic"))


def _converted(cameras: list[tuple[Any, ...]], sizes: npt.NDArray[np.float64], label: str) -> dict[str, Array]:
    """Poses and intrinsics in setsup's convention, by column."""
    turns, shifts, focal, principal, isotropic = (np.array(column) for column in zip(*cameras, strict=True))
    with np.errstate(invalid="ignore"):
        wrong = np.abs(np.linalg.det(turns) - 1) > _WRONG_ROTATION
    if wrong.any():
        raise DamagedFile(f"{label}: R of frame {int(np.argmax(wrong))} is not a rotation")
    # camera axes in the world are the columns of R; x and y point the other way here
    rotation = turns * _FLIP
    centres = -np.einsum("nij,nj->ni", turns, shifts)
    pose = np.concatenate([rotation, centres[:, :, None]], axis=2).reshape(len(turns), 12)
    half = sizes[:, ::-1] / 2
    scale = np.where(isotropic[:, None], half.min(axis=1, keepdims=True), half)
    lens = np.concatenate([focal * scale, half - principal * scale - 0.5], axis=1)
    named = zip((*_POSE, *_LENS), np.concatenate([pose, lens], axis=1).T, strict=True)
    return {name: column.astype(np.float32) for name, column in named}


def _qualities(release: MemberIndex, name: str) -> dict[str, tuple[float, float]]:
    """Quality of the viewpoints and of the point cloud of each sequence."""
    sequences, label = _unpacked(release, name)
    try:
        return {
            str(each["sequence_name"]): (
                _number(each.get("viewpoint_quality_score")),
                _number((each.get("point_cloud") or {}).get("quality_score")),
            )
            for each in sequences
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedFile(f"{label} is not a list of sequences in the published format") from error


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)


def _unpacked(release: MemberIndex, name: str) -> tuple[list[Any], str]:
    """Content of a gzipped JSON file, which is a list."""
    member = release.place(name)
    label = release.label(member)
    packed = release.read(member, _MOST_PACKED)
    unpacker = zlib.decompressobj(31)
    try:
        content = unpacker.decompress(packed, _MOST)
    except zlib.error as error:
        raise DamagedFile(f"{label} could not be read as gzip: {error}") from error
    if not unpacker.eof:
        raise DamagedFile(f"{label} is truncated, or decompresses to more than the limit of {_MOST:,} bytes")
    entries = read_json(content, label)
    if not isinstance(entries, list) or not entries:
        raise DamagedFile(f"{label} is not a list of annotations")
    return entries, label
