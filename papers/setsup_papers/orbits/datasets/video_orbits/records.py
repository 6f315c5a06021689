"""What the recipe writes: crops and records of each clip, and the table of all."""

import csv
import io
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.errors import DataError
from setsup.files import written, written_folder
from setsup.files.roots import some
from setsup_papers.orbits.datasets.video_orbits.clips import Clip, clip_frames
from setsup_papers.orbits.datasets.video_orbits.yaw import Canonical

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["COLUMNS", "TABLE", "FoundFaces", "describe_stage", "is_done", "write_clip", "write_table"]

TABLE = "orbits.csv"
"""The table of all faces, in the folder that :func:`extract` writes."""

COLUMNS = (
    *("file", "video", "shot", "track", "frame", "time"),
    *("left", "top", "right", "bottom", "score", "yaw", "canonical"),
)
"""Its columns: boxes in pixels of the frame, time in s, yaw in degrees; a number that is unknown is empty."""

_RECORD, _PART = "recipe.json", "faces.csv"
_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class FoundFaces:
    """Faces of one clip that are kept, row by row."""

    frame: npt.NDArray[np.int64]
    shot: npt.NDArray[np.int64]
    track: npt.NDArray[np.int64]
    boxes: Array
    scores: Array
    yaw: Array


def write_clip(
    place: Path, clip: Clip, found: FoundFaces, canonical: Canonical, size: int, margin: float, record: dict[str, Any]
) -> None:
    """Write the crops of a clip, its part of the table, and what both were made of."""
    rows: list[list[str]] = []
    times = None if clip.video is None else clip.video.times
    wanted: dict[int, list[int]] = {}
    for row, frame in enumerate(found.frame.tolist()):
        wanted.setdefault(frame, []).append(row)
    best = _canonical_rows(found, canonical)
    for row, frame in enumerate(found.frame.tolist()):
        shot, number = int(found.shot[row]), int(found.track[row])
        inner = "" if clip.video is None else f"/{shot:04}-{number:02}"
        rows.append(
            [
                f"tracks/{clip.name}{inner}/{frame:06}.png",
                *(("", "") if clip.video is None else (clip.name, str(shot))),
                f"{clip.name}{inner}",
                str(frame),
                "" if times is None else _number(times[frame], 6),
                *(_number(edge, 2) for edge in found.boxes[row]),
                _number(found.scores[row], 6),
                _number(found.yaw[row], 4),
                "true" if row in best else "false",
            ]
        )
    with written_folder(place) as part:
        for frame, image in clip_frames(clip, max(wanted, default=-1) + 1):
            for row in wanted.get(frame, ()):
                target = part / rows[row][0].removeprefix(f"tracks/{clip.name}/")
                target.parent.mkdir(exist_ok=True)
                _crop(image, found.boxes[row], size, 0.0 if clip.video is None else margin).save(target)
        (part / _PART).write_text(_csv(rows), encoding="utf-8")
        (part / _RECORD).write_text(_json(record), encoding="utf-8")


def _canonical_rows(faces: FoundFaces, canonical: Canonical) -> set[int]:
    _, member = np.unique(np.stack([faces.shot, faces.track], 1), axis=0, return_inverse=True)
    best = set()
    for number in range(int(member.max()) + 1 if member.size else 0):
        rows = np.flatnonzero(member.reshape(-1) == number)
        chosen = canonical(faces.yaw[rows], faces.scores[rows])
        if not 0 <= chosen < len(rows):
            raise DataError(
                f"the stage {describe_stage(canonical)} returned the position {chosen}, but the track has "
                f"{len(rows)} faces"
            )
        best.add(int(rows[chosen]))
    return best


def _crop(image: npt.NDArray[np.uint8], box: Array, size: int, margin: float) -> "Image.Image":
    """Square around a box, antialiased to `size`."""
    from PIL import Image

    left, top, right, bottom = box.tolist()
    half = max(right - left, bottom - top) * (0.5 + margin)
    x, y = (left + right) / 2, (top + bottom) / 2
    height, width = image.shape[:2]
    beyond = int(np.ceil(max(0.0, half - x, half - y, x + half - width, y + half - height)))
    if beyond:
        image = np.pad(image, ((beyond, beyond), (beyond, beyond), (0, 0)), "edge")
    square = (x - half + beyond, y - half + beyond, x + half + beyond, y + half + beyond)
    return Image.fromarray(image).resize((size, size), Image.Resampling.BICUBIC, box=square)


def is_done(place: Path, record: dict[str, Any]) -> bool:
    """Whether a clip was done by the same recipe; its folder is there whole or not at all."""
    try:
        return (place / _RECORD).read_text(encoding="utf-8") == _json(record) and (place / _PART).is_file()
    except (OSError, ValueError):
        return False


def write_table(out: Path, clips: Sequence[Clip], recipe: dict[str, Any]) -> Path:
    """Write the table of all clips, and the recipe."""
    parts = [(out / "tracks" / clip.name / _PART).read_text(encoding="utf-8") for clip in clips]
    empty = [clip.name for clip, part in zip(clips, parts, strict=True) if not part]
    if len(empty) == len(clips):
        raise DataError(
            f"no face was found in any of the {len(clips):,} videos of {clips[0].members.source}; try another detector"
        )
    if empty:
        _log.warning("no face was found in %s of %s videos: %s", f"{len(empty):,}", f"{len(clips):,}", some(empty))
    with written(out / _RECORD) as fresh:
        fresh.write_text(_json(recipe), encoding="utf-8")
    with written(out / TABLE) as fresh:
        fresh.write_text(_csv([list(COLUMNS)]) + "".join(parts), encoding="utf-8")
    return out / TABLE


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _number(value: float, digits: int) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def describe_stage(stage: object) -> Any:
    """Name of a stage and what it was given, as a record keeps it."""
    if isinstance(stage, partial):
        given = {str(number): value for number, value in enumerate(stage.args)} | stage.keywords
        return {"partial": describe_stage(stage.func), **{name: describe_stage(value) for name, value in given.items()}}
    if is_dataclass(stage) and not isinstance(stage, type):
        given = {field.name: getattr(stage, field.name) for field in fields(stage) if field.init}
        return {"name": _name(type(stage)), **{name: describe_stage(value) for name, value in given.items()}}
    if isinstance(stage, tuple | list):
        return [describe_stage(part) for part in stage]
    if stage is None or isinstance(stage, bool | int | float | str):
        return stage
    return str(stage) if isinstance(stage, Path) else _name(stage if hasattr(stage, "__qualname__") else type(stage))


def _name(stage: Any) -> str:
    return f"{stage.__module__}.{stage.__qualname__}"
