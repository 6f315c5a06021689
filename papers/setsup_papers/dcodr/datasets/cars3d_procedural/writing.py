"""Render cars into MAT files as Cars3D has them, each labelled as what it is."""

import io
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from setsup.checks import check_integer
from setsup.datasets.adapters.substitutes import RECORD, settle_record
from setsup.errors import DataError
from setsup.files import locked, need_space, written
from setsup.jobs import Unit, check_processes, run
from setsup.scenes.camera import Camera
from setsup.scenes.portable import sin_cos

__all__ = ["LIST", "write_cars"]

LIST = "list.txt"
"""File that is there once all cars are."""

AZIMUTHS, ELEVATIONS = tuple(range(0, 360, 15)), (0, 20, 40, 60)
_SIDE = 128
_DISTANCE, _MIDDLE, _SEEN = 9.0, 0.62, 34.0  # metres, metres, degrees from edge to edge
_MOST = 999
_VERSION = 1
_TITLE = "Substitute for Cars3D: made-up cars, rendered by setsup; no image of Cars3D"
_HEADER = 116  # bytes of text at the beginning of a MAT file
_BYTES = 2_500_000  # of a car with its arrays, which are not compressed, much more than of its file


def write_cars(folder: Path, objects: int, *, seed: int = 0, processes: int = 1) -> None:
    """Render the cars that the folder lacks, then write the list of all that are there."""
    check_integer(objects, "objects", DataError, 1, _MOST)
    check_integer(seed, "seed", DataError, 0)
    check_processes(processes)
    with locked(folder / RECORD):
        settle_record(folder, _TITLE, {"version": _VERSION, "seed": seed})
        listed = folder / LIST
        count = max(objects, len(listed.read_text("utf-8").split()) if listed.exists() else 0)
        units = [Unit(f"car {number}", number, 96) for number in range(count) if not _file(folder, number).exists()]
        need_space(folder, len(units) * _BYTES, "the substitute for Cars3D")
        run(
            partial(_write_car, folder, seed),
            units,
            processes=processes,
            folder=folder,
            what="rendering cars",
            counted="images",
        )
        with written(listed) as fresh:
            fresh.write_text("".join(f"{_file(folder, number).stem}\n" for number in range(count)), "utf-8")


def camera(azimuth: float, elevation: float) -> Camera:
    """Camera in degrees around the middle of a car; exact quarters of a turn, so that mirrored views are exact."""
    (side, rise), (ahead, flat) = sin_cos([math.radians(azimuth), math.radians(elevation)])
    middle = np.array([0.0, 0.0, _MIDDLE])
    eye = middle + _DISTANCE * np.array([flat * ahead, flat * side, rise])
    return Camera.look_at(eye, middle, height=_SIDE, width=_SIDE, field_of_view=math.radians(_SEEN))


def _file(folder: Path, number: int) -> Path:
    return folder / f"car_procedural_{number + 1:03}_mesh.mat"


def _write_car(folder: Path, seed: int, number: int) -> None:
    import scipy.io

    from setsup.scenes.cars.meshes import car_scene
    from setsup.scenes.cars.traits import make_car
    from setsup.scenes.renderers import renderer

    engine = renderer("embree")
    engine.load(car_scene(make_car(seed, number)))
    images = np.empty((_SIDE, _SIDE, 3, len(AZIMUTHS), len(ELEVATIONS)), np.uint8)
    masks = np.empty((_SIDE, _SIDE, len(AZIMUTHS), len(ELEVATIONS)), np.uint8)
    for column, azimuth in enumerate(AZIMUTHS):
        for row, elevation in enumerate(ELEVATIONS):
            frame = engine.render(camera(azimuth, elevation))
            images[..., column, row] = frame.rgb
            masks[..., column, row] = frame.triangle >= 0
    engine.close()
    content: Any = io.BytesIO()
    scipy.io.savemat(content, {"im": images, "mask": masks}, do_compression=True)
    # the label in place of the date, so that the same car has the same bytes
    label = f"MATLAB 5.0 MAT-file. {_TITLE}".encode()[:_HEADER].ljust(_HEADER)
    with written(_file(folder, number)) as fresh:
        fresh.write_bytes(label + content.getvalue()[_HEADER:])
