"""Camera data of SceneNN's recordings: times, poses and intrinsics, matched to the frames."""

import logging
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.datasets.cached_arrays import cached_array, file_states
from setsup.datasets.formats.geometry.trajectory import read_keys, read_timestamps, read_trajectory
from setsup.datasets.images import parallel
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.members import MemberIndex

__all__ = ["ASUS", "lens", "looked_up", "recorded"]


_MOST_BYTES = 1 << 27  # of a text file; a trajectory of 100,000 frames has a quarter of that
_WRONG_ROTATION = 0.1
_MANY = 20_000
_VERSION = 1
_ENTRY = np.dtype([("time", np.float32), ("pose", np.float32, (4, 4))])

_log = logging.getLogger("setsup")

ASUS = np.array([[544.47329, 0, 320], [0, 544.47329, 240], [0, 0, 1]], np.float32)
"""Published camera matrix of the Asus Xtion, pixels."""


def recorded(members: MemberIndex, scenes: Sequence[str], codes: Rows, frames: Rows) -> Array:
    """Read times and poses of all frames.

    `codes` (n,) int64; `frames` (n,) int64; returns (n,) structured array.

    Returns: ``time``, float32, recording time in s, NaN if missing; ``pose``, (4, 4) float32, m, camera to world, NaN
    if it is missing or not a rotation with a translation. Mapped from the cache if there are many frames.
    """
    logs = members.places([f"{scene}/trajectory.log" for scene in scenes])
    others = members.places([f"trajectory/{scene}_trajectory.log" for scene in scenes])
    logs = np.where(logs < 0, others, logs)
    clocks = members.places([f"{scene}/timestamp.txt" for scene in scenes])

    def make() -> Array:
        return _read_all(members, logs, clocks, np.split(frames, np.flatnonzero(np.diff(codes)) + 1))

    if len(frames) < _MANY:
        return make()
    # text is slow to read: 200,000 poses take half a second
    places = np.concatenate([logs, clocks])
    rows = sha256(codes.tobytes() + frames.tobytes()).hexdigest()
    made_of = [_VERSION, scenes, (places >= 0).tolist(), file_states(members, places[places >= 0].tolist()), rows]
    return cached_array("cameras", made_of, _ENTRY, len(frames), make)


def _read_all(members: MemberIndex, logs: Rows, clocks: Rows, frames: Sequence[Rows]) -> Array:
    """Read the files of all scenes; `frames` has the numbers of each scene's frames."""
    cameras = np.full(sum(map(len, frames)), np.nan, np.float32).repeat(_ENTRY.itemsize // 4).view(_ENTRY)
    parts = np.split(cameras, np.cumsum([len(part) for part in frames])[:-1])
    from_one: list[int] = []

    def read(scene: int) -> None:
        part, wanted = parts[scene], frames[scene]
        if clocks[scene] >= 0:
            member = int(clocks[scene])
            numbers, micros = read_timestamps(members.read(member, _MOST_BYTES), members.label(member))
            # what is not found is looked up in the last place, where nothing is known
            part["time"] = np.append(micros / 1e6, np.nan)[_spots(numbers, wanted)]
        if logs[scene] >= 0:
            member = int(logs[scene])
            numbers, poses = read_trajectory(members.read(member, _MOST_BYTES), members.label(member))
            known = np.append(_rigid(poses), np.full((1, 4, 4), np.nan, np.float32), axis=0)
            if _counts_from_one(numbers, wanted):
                from_one.append(scene)
            else:
                numbers = numbers + 1
            part["pose"] = known[_spots(numbers, wanted)]

    parallel(read, range(len(frames)))
    if from_one:
        _log.warning(
            "%d of %d trajectories, such as %s, number their frames from 1 instead of 0; they are matched to the "
            "images by these numbers",
            *(len(from_one), int((logs >= 0).sum()), members.label(int(logs[min(from_one)]))),
        )
    return cameras


def _spots(numbers: Rows, wanted: Rows) -> Rows:
    """Where each wanted number stands among others in any order, -1 where it does not."""
    order = np.argsort(numbers, kind="stable")
    return looked_up(numbers[order], order, wanted)


def _counts_from_one(numbers: Rows, frames: Rows) -> bool:
    """Whether a trajectory counts as its images do: from 1 to the very last of them, where others count from 0."""
    return len(numbers) > 0 and bool(numbers.min() == 1 and numbers.max() == frames.max())


def _rigid(poses: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Poses with NaN for those that are no rotation with a translation."""
    with np.errstate(all="ignore"):
        sound = np.abs(np.linalg.det(poses[:, :3, :3]) - 1) <= _WRONG_ROTATION
        sound &= np.abs(poses[:, 3] - [0, 0, 0, 1]).max(axis=1) < 1e-3
        single = poses.astype(np.float32)
        sound &= np.isfinite(single).all(axis=(1, 2))
    single[~sound] = np.nan
    return single


def lens(members: MemberIndex, sensor: str) -> npt.NDArray[np.float32]:
    """Read the camera matrix of a sensor.

    Returns (3, 3) float32, pixels.
    """
    name = f"intrinsic/{sensor}.ini"
    if name not in members:
        if sensor == "asus":
            return ASUS
        raise DataError(f"{members.source} has no {name}, which the scenes in kinect2= require; add it")
    member = members.place(name)
    label = members.label(member)
    keys = read_keys(members.read(member, _MOST_BYTES), label, ("fx", "fy", "cx", "cy"))
    if not (0 < keys["fx"] < 1e6 and 0 < keys["fy"] < 1e6 and abs(keys["cx"]) < 1e6 and abs(keys["cy"]) < 1e6):
        raise DamagedFile(
            f"{label} has the invalid intrinsics {keys}; expected fx and fy above 0, and all values below 1,000,000"
        )
    return np.array([[keys["fx"], 0, keys["cx"]], [0, keys["fy"], keys["cy"]], [0, 0, 1]], np.float32)


def looked_up(keys: Rows, values: Array, wanted: Rows) -> Array:
    """Value of each wanted key in sorted keys; -1 for missing keys."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    spots = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[spots] == wanted, values[spots], -1)
