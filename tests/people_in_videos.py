"""Videos in which drawn people appear in several tracks each, made into orbits by the recipe, with who is seen in each.

The "Late Night" experiment in small: ``write(folder)`` runs :func:`video_orbits.extract` on videos with known cuts,
boxes and points, so that no detector is needed; ``labelled(faces, people)`` joins the persons to the dataset.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.datasets import Dataset
from setsup.datasets.formats.video.frames import VideoFile
from setsup.factors import FactorTable
from setsup_papers.orbits.datasets.video_orbits import Faces, extract
from tests.true_files.video_orbits import Looks, face_box, head, pasted, points
from tests.videos import encoded

WIDTH, HEIGHT = 96, 72
SHOTS = 4  # in each video

Frame = npt.NDArray[np.uint8]


def looks(number: int) -> Looks:
    """Skin, hair and width of the head of a person, unlike those of others: multiples of roots fill the ranges."""
    part = (0.3 + number * np.sqrt([2, 3, 5, 7, 11, 13])) % 1.0
    skin = np.interp(part[0], [0, 1], [80, 235]) * np.array([1, 0.62 + 0.2 * part[1], 0.45 + 0.3 * part[2]])
    hair = 20 + 200 * part[3] * np.array([1, 0.3 + 0.7 * part[4], 0.9 * part[4]])
    return (*(tuple(int(value) for value in color) for color in (skin, hair)), round(0.85 + 0.3 * part[5], 3))


def filmed(person: int, track: int, frames: int, seed: int) -> Iterator[tuple[Frame, Faces]]:
    """Frames of a shot in which a person turns, and the face in each: ground, light, place and size vary by track."""
    dice = np.random.default_rng((seed, person, track))
    ground = np.full((HEIGHT, WIDTH, 3), dice.integers(40, 160, 3), np.uint8)
    size = int(dice.choice([48, 60]))
    left, top = int(dice.integers(4, WIDTH - size - 12)), int(dice.integers(2, HEIGHT - size - 4))
    # to and fro in steps of 10 degrees, so that heads are drawn once a person and size; some frame is frontal
    first = 5 - int(dice.integers(0, min(frames, 6)))
    light = dice.uniform(0.6, 1.0) * dice.uniform(0.85, 1.0, 3)
    for at in range(frames):
        picture = ground.copy()
        yaw, place = float(50 - 10 * abs((first + at) % 20 - 10)), left + at % 8
        pasted(picture, head(looks(person), yaw, size), place, top)
        picture = (picture * light).astype(np.uint8)
        corner = np.array([place, top])
        yield picture, Faces([face_box(size) + np.tile(corner, 2)], [0.9 - 0.001 * at], [points(yaw, size) + corner])


def write(
    folder: Path, people: int = 8, tracks: int = 4, frames: int = 8, size: int = 48, seed: int = 0
) -> tuple[Path, dict[str, str]]:
    """Write the videos and their orbits below a folder.

    Gives the folder that ``setsup.load("video-orbits", root=…)`` opens, and for each track its person, ``"p00"`` on.
    """
    order = np.random.default_rng(seed).permutation(people * tracks).tolist()
    known: dict[bytes, Faces] = {}
    persons: dict[str, str] = {}
    for video, start in enumerate(range(0, len(order), SHOTS)):
        pictures = []
        name = f"show-{video:03}.mkv"
        for shot, number in enumerate(order[start : start + SHOTS]):
            person, track = number % people, number // people
            persons[f"{name}/{shot:04}-00"] = f"p{person:02}"
            for picture, faces in filmed(person, track, frames, seed):
                pictures.append(picture)
                known[picture.tobytes()] = faces
        path = folder / "videos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(pictures, "ffv1", "matroska", pix_fmt="bgr0"))  # without loss

    def detect(frame: Frame) -> Faces:
        return known[frame.tobytes()]

    def cuts(video: VideoFile) -> list[int]:
        return list(range(frames, video.frames, frames))

    out = folder / "orbits"
    extract(folder / "videos", out, cuts=cuts, detect=detect, confirm=None, keep="shot", size=size)
    return out, persons


def labelled(faces: Dataset, persons: Mapping[str, str]) -> Dataset:
    """The dataset with the factor ``person``."""
    names = FactorTable.from_values({"track": list(persons), "person": list(persons.values())})
    return faces.with_factors(faces.factors.join(names, on="track"))
