"""Render toys into the six binary-matrix files of SmallNORB, unpacked."""

import math
import struct
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from setsup.arrays import Array
from setsup.checks import check_integer
from setsup.datasets.adapters.substitutes import RECORD, settle_record
from setsup.datasets.benchmarks.smallnorb.dataset import INSTANCES, STEMS
from setsup.errors import DataError
from setsup.files import disk_errors, locked, need_space, written
from setsup.jobs import Unit, check_processes, run
from setsup.scenes.camera import Camera

__all__ = ["LAST", "write_toys"]

LAST = f"{STEMS[1]}-info.mat"
"""File that is written when all others are there."""

ELEVATIONS, AZIMUTHS, LIGHTS = tuple(range(30, 75, 5)), tuple(range(0, 360, 20)), 6
_SIDE, _CATEGORIES, _MOST = 96, 5, 10
_VIEWS = len(ELEVATIONS) * len(AZIMUTHS) * LIGHTS  # pairs of a toy
_PAIR = 2 * _SIDE * _SIDE
_BASELINE = 5.0  # degrees between the two cameras
_DISTANCE, _MIDDLE, _SEEN = 3.2, 0.27, 26.0  # metres, metres, degrees from edge to edge
_VERSION = 1
_TITLE = "Substitute for SmallNORB: made-up toys, rendered by setsup; no image of SmallNORB"
_BYTES, _INTEGERS = 0x1E3D4C55, 0x1E3D4C54  # magic numbers of the format
_DONE = ".rendered"


def write_toys(folder: Path, toys: int, *, seed: int = 0, processes: int = 1) -> None:
    """Render the toys that the files lack; the files get their names when all are there."""
    check_integer(toys, "toys", DataError, 2, _MOST)
    if toys % 2:
        raise DataError(f"toys must be even, because each split contains half of them, not {toys}")
    check_integer(seed, "seed", DataError, 0)
    check_processes(processes)
    with locked(folder / RECORD):
        settle_record(folder, _TITLE, {"version": _VERSION, "seed": seed, "toys": toys})
        if (folder / LAST).exists():
            return
        places = _places(toys)
        missing = sum(not _part(folder, split).exists() for split in (0, 1)) * len(places) // 2
        need_space(folder, missing * _VIEWS * _PAIR, "the substitute for SmallNORB")
        for split in (0, 1):
            _begin(_part(folder, split), len(places) // 2)
        done = folder / _DONE
        with disk_errors(done):
            done.mkdir(exist_ok=True)
        units = [
            Unit(f"toy {instance} of category {category}", (split, position, category, instance), 2 * _VIEWS)
            for split, position, category, instance in places
            if not (done / f"{category}-{instance}").exists()
        ]
        work = partial(_write_toy, folder, seed)
        run(work, units, processes=processes, folder=folder, what="rendering toys", counted="images")
        _finish(folder, places)


def camera(azimuth: float, elevation: float) -> Camera:
    """Camera in degrees around the middle of a toy."""
    turn, rise = math.radians(azimuth), math.radians(elevation)
    way = np.array([math.cos(turn) * math.cos(rise), math.sin(turn) * math.cos(rise), math.sin(rise)])
    middle = np.array([0.0, 0.0, _MIDDLE])
    seen = math.radians(_SEEN)
    return Camera.look_at(middle + _DISTANCE * way, middle, height=_SIDE, width=_SIDE, field_of_view=seen)


def _places(toys: int) -> list[tuple[int, int, int, int]]:
    """Split, place in its file, category and instance of each toy."""
    return [
        (split, position, category, instance)
        for split in (0, 1)
        for position, (category, instance) in enumerate(product(range(_CATEGORIES), INSTANCES[split][: toys // 2]))
    ]


def _part(folder: Path, split: int) -> Path:
    return folder / f".{STEMS[split]}-dat.part"


def _begin(path: Path, toys: int) -> None:
    """Create the file of the images at its full length; what is there stays."""
    if path.exists() or path.with_name(f"{path.stem[1:]}.mat").exists():
        return
    head = struct.pack("<6i", _BYTES, 4, toys * _VIEWS, 2, _SIDE, _SIDE)
    with written(path) as fresh, fresh.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + toys * _VIEWS * _PAIR)


def _write_toy(folder: Path, seed: int, which: tuple[int, int, int, int]) -> None:
    from setsup.scenes.renderers import renderer
    from setsup_papers.dcodr.datasets.smallnorb_procedural.lighting import lit
    from setsup_papers.dcodr.datasets.smallnorb_procedural.toys import toy_scene

    split, position, category, instance = which
    engine = renderer("embree")
    engine.load(toy_scene(seed, category, instance))
    images = np.empty((len(ELEVATIONS), len(AZIMUTHS), LIGHTS, 2, _SIDE, _SIDE), np.uint8)
    for row, elevation in enumerate(ELEVATIONS):
        for column, azimuth in enumerate(AZIMUTHS):
            for eye, shift in enumerate((-_BASELINE / 2, _BASELINE / 2)):
                seen = camera(azimuth + shift, elevation)
                images[row, column, :, eye] = lit(engine.render(seen), seen, azimuth)
    engine.close()
    path = _part(folder, split)
    with disk_errors(path), path.open("r+b") as file:
        file.seek(24 + position * _VIEWS * _PAIR)
        file.write(images.data)
    (folder / _DONE / f"{category}-{instance}").touch()


def _finish(folder: Path, places: list[tuple[int, int, int, int]]) -> None:
    """Give the images their names, and write what they are of."""
    stored = [(rise - 30) // 5 for rise in ELEVATIONS], [turn // 10 for turn in AZIMUTHS], range(LIGHTS)
    views = np.array(list(product(*stored)), "<i4")
    for split, stem in enumerate(STEMS):
        toys = [(category, instance) for part, _, category, instance in places if part == split]
        categories = np.repeat(np.array([category for category, _ in toys], "<i4"), _VIEWS)
        instances = np.repeat(np.array([instance for _, instance in toys], "<i4"), _VIEWS)
        with disk_errors(folder):
            if _part(folder, split).exists():
                _part(folder, split).rename(folder / f"{stem}-dat.mat")
        _write_integers(folder / f"{stem}-cat.mat", categories)
        _write_integers(folder / f"{stem}-info.mat", np.column_stack([instances, np.tile(views, (len(toys), 1))]))
    with disk_errors(folder):
        for marker in (folder / _DONE).iterdir():
            marker.unlink()
        (folder / _DONE).rmdir()


def _write_integers(path: Path, values: Array) -> None:
    lengths = [*values.shape, 1, 1][: max(3, values.ndim)]
    with written(path) as fresh:
        head = struct.pack(f"<{2 + len(lengths)}i", _INTEGERS, values.ndim, *lengths)
        fresh.write_bytes(head + values.astype("<i4").tobytes())
