"""A substitute for Multi-PIE: synthetic heads, rendered into the published tree, to try experiments without it.

Its images do not show real people, and results on it do not predict results on Multi-PIE. The features, skin and hair
of a synthetic subject are sampled from the seed; a session changes clothes, hair, pose and expression slightly. Each of
the 13 cameras at head height records the 20 shots: room light in 0 and 19, an additional flash in 1 to 18. Geometry is
rendered once per view and relit for every shot, by Lambert's law without cast shadows.

Ids begin at 901, which no subject of Multi-PIE has; the title of every file, and ``SUBSTITUTE.json`` next to the
sessions, state that the data are a substitute.
"""

import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from setsup.checks import check_integer
from setsup.datasets.adapters.substitutes import RECORD, settle_record
from setsup.datasets.benchmarks.multi_pie.dataset import CAMERAS
from setsup.errors import DataError
from setsup.files import locked, need_space, written_folder
from setsup.files.atomic import clear
from setsup.files.expand_user import expanded
from setsup.jobs import Unit, check_processes, run
from setsup.scenes.camera import Camera

__all__ = ["write_substitute"]

HEIGHT, WIDTH = 480, 640
_DISTANCE, _SEEN, _MIDDLE = 2.2, 0.40, 0.0  # metres: of a camera, that an image is high, and up to its centre
_FIRST, _MOST = 901, 99
_VERSION = 1
_TITLE = "Substitute for Multi-PIE: a made-up head, rendered by setsup; no image of Multi-PIE, and of no person"
_BYTES = 75_000  # of an image, on average

_YAWS = {camera: yaw for camera, (yaw, elevated) in CAMERAS.items() if not elevated}


def write_substitute(
    folder: Path | str,
    subjects: int = 20,
    *,
    sessions: Iterable[int] = (1, 2, 3, 4),
    cameras: Iterable[str] = tuple(_YAWS),
    shots: Iterable[int] = range(20),
    seed: int = 0,
    processes: int = 1,
) -> Path:
    """Render synthetic heads into the tree of Multi-PIE; opened by ``setsup.load("multi-pie", root=folder)``.

    Existing files are kept, so repeating an interrupted call resumes it. More subjects, sessions or cameras may be
    added later. The same seed gives the same tree with any number of processes.

    Parameters
    ----------
    folder : Path or str
        New, empty, or left unfinished by an earlier call with the same shots and seed.
    subjects : int
        Number of subjects, from 1 to 99, with ids from 901 on.
    sessions : iterable of int
        Sessions from 1 to 4; only recording 01, the neutral expression in Multi-PIE.
    cameras : iterable of str
        Some of the 13 cameras at head height.
    shots : iterable of int
        Shots from 0 to 19. Flashes 1 to 13 go from the left of the frontal image to the right, 14 to 18 are above;
        their positions differ from those of Multi-PIE.
    seed : int
        Seed of the subjects.
    processes : int
        Worker processes.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    DataError
        When a number is out of range, the folder contains other files, the library of the renderer is missing, or the
        disk is full.

    Examples
    --------
    >>> import tempfile, setsup
    >>> folder = write_substitute(tempfile.mkdtemp(), 1, sessions=[1], cameras=["05_1"], shots=[0, 7])
    >>> faces = setsup.load("multi-pie", root=folder)
    >>> faces.paths([1]), faces.fetch(1)["image"].shape
    (['session01/multiview/901/01/05_1/901_01_01_051_07.png'], (480, 640, 3))

    """
    check_integer(subjects, "subjects", DataError, 1, _MOST)
    check_integer(seed, "seed", DataError, 0)
    check_processes(processes)
    taken = _chosen(sessions, "sessions", range(1, 5))
    seen = _chosen(cameras, "cameras", _YAWS)
    lit = _chosen(shots, "shots", range(20))
    target = expanded(folder)
    with locked(target / RECORD):
        settle_record(target, _TITLE, {"version": _VERSION, "seed": seed, "shots": lit})
        units = [
            Unit(f"subject {number}, session {session}", (number, session), len(seen) * len(lit))
            for number in range(subjects)
            for session in taken
            if not all(_at(target, number, session, camera).is_dir() for camera in seen)
        ]
        need_space(target, sum(unit.size for unit in units) * _BYTES, "the substitute for Multi-PIE")
        work = partial(_write_sitting, folder=target, cameras=seen, shots=lit, seed=seed)
        run(work, units, processes=processes, folder=target, what="rendering heads", counted="images")
    return target


def _chosen(values: Iterable[Any], name: str, known: Iterable[Any]) -> list[Any]:
    """The values in the order of those that there are."""
    chosen, there = list(values), list(known)
    wrong = [value for value in chosen if value not in there]
    if wrong or not chosen:
        problem = f"be among {there[0]} … {there[-1]}, not {wrong[0]!r}" if wrong else "have at least one value"
        raise DataError(f"{name} of the substitute must {problem}")
    return [value for value in there if value in chosen]


def _at(folder: Path, number: int, session: int, camera: str) -> Path:
    return folder / f"session{session:02}" / "multiview" / f"{_FIRST + number}" / "01" / camera


def _camera(yaw: float) -> Camera:
    """Camera whose images show the nose on the right where its yaw is positive."""
    turn = math.radians(yaw)
    eye = (-_DISTANCE * math.sin(turn), -_DISTANCE * math.cos(turn), _MIDDLE)
    return Camera.look_at(eye, (0, 0, _MIDDLE), height=HEIGHT, width=WIDTH, focal_length=HEIGHT / _SEEN * _DISTANCE)


def _write_sitting(who: tuple[int, int], *, folder: Path, cameras: list[str], shots: list[int], seed: int) -> None:
    """Write the images of a person in a session; the folder of a camera is there whole or not at all."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    from setsup.datasets.benchmarks.multi_pie.heads import head_scene
    from setsup.datasets.benchmarks.multi_pie.lighting import relit
    from setsup.datasets.benchmarks.multi_pie.traits import sitting_of, traits_of
    from setsup.scenes.renderers import renderer

    number, session = who
    sitting = sitting_of(seed, number, session)
    title = PngInfo()
    title.add_text("Title", _TITLE)
    drawn = renderer("embree")
    drawn.load(head_scene(traits_of(seed, number), sitting))
    for name in cameras:
        target = _at(folder, number, session, name)
        if target.is_dir():
            continue
        camera = _camera(_YAWS[name])
        frame, yaw = drawn.render(camera), _YAWS[name]
        ground = (95 + yaw // 6, 110, 130 - yaw // 6)  # what is behind depends on the camera alone
        clear(target)  # what a killed process left
        with written_folder(target) as part:
            for shot, image in zip(shots, relit(frame, camera, shots, sitting.exposure, ground), strict=True):
                file = f"{_FIRST + number}_{session:02}_01_{name.replace('_', '')}_{shot:02}.png"
                Image.fromarray(image).save(part / file, compress_level=1, pnginfo=title)
    drawn.close()
