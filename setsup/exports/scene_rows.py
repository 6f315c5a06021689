"""Rows of a dataset by scene, the names of scenes in files, and the rows of a video in the order of its frames."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Rows
from setsup.errors import DataError, did_you_mean

__all__ = ["FRAME", "SceneRows", "flow_videos_of", "need_frames", "scene_factors", "scenes_of", "videos_of"]

FRAME = "frame"
"""The factor that numbers the frames of a video."""

_PAIR = "pair"
_OTHER = re.compile(r"[^A-Za-z0-9._+-]+")
_LONGEST = 100


class SceneRows(NamedTuple):
    """A scene: its name in files, and its rows, ascending; of a video in the order of its frames."""

    name: str
    rows: Rows


def scene_factors(dataset: Any, names: Sequence[str] | None) -> tuple[str, ...]:
    """Factors in which the views of a scene agree: those that are named, else those of the rendering."""
    if names is not None:
        for name in names:
            if name not in dataset.factors:
                raise DataError(f"{dataset.name} has no factor {name!r}{did_you_mean(name, dataset.factors.names)}")
        return tuple(names)
    found = [name for name in dataset.pair_factors if name in dataset.factors and name != FRAME]
    # two views of a room are a pair, but all views of a room show one scene
    without = [name for name in found if name != _PAIR]
    return tuple(without or found)


def scenes_of(dataset: Any, names: Sequence[str] | None) -> list[SceneRows]:
    """Scenes in the order of their levels; each has a name that files may have."""
    factors = scene_factors(dataset, names)
    rows = np.arange(len(dataset.factors))
    if not factors:
        return [SceneRows("scene", rows)]
    codes = np.stack([dataset.factors.codes(name) for name in factors], axis=1)
    _, first, scene = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    texts = [_text([dataset.factors.row(row)[name] for name in factors]) for row in first.tolist()]
    taken = [text.casefold() for text in texts]
    if len(set(taken)) < len(taken) or not all(text.strip("._") for text in texts):
        texts = [f"{number:06d}" for number in range(len(texts))]
    order = np.argsort(scene.ravel(), kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(scene.ravel()))[:-1])
    return [SceneRows(text, part) for text, part in zip(texts, parts, strict=True)]


def need_frames(dataset: Any, layout: str, modalities: Sequence[str]) -> None:
    """Refuse renders that are not videos."""
    if FRAME not in dataset.factors or dataset.factors[FRAME].levels is None:
        raise DataError(
            f"the layout {layout} contains videos, but {dataset.name} has no factor {FRAME!r}; render frames, such as "
            f"`setsup render room --frames 24 --modalities {' '.join(modalities)} --out frames`"
        )


def videos_of(dataset: Any, names: Sequence[str] | None) -> list[SceneRows]:
    """Videos, whose rows are frames that follow one another.

    Raises
    ------
    DataError
        When a video has a frame twice or lacks one between others.

    """
    levels = np.array(dataset.factors[FRAME].levels)
    videos = []
    for name, rows in scenes_of(dataset, names):
        frames = levels[dataset.factors.codes(FRAME, rows)]
        order = np.argsort(frames, kind="stable")
        steps = np.diff(frames[order])
        if len(steps) and not (steps == 1).all():
            at = int(np.flatnonzero(steps != 1)[0])
            raise DataError(
                f"frame {frames[order[at]]} of the video {name} of {dataset.name} is followed by frame "
                f"{frames[order[at + 1]]}; a video needs each frame once: name the factors of a video with --scene "
                "(scene=), or render all frames"
            )
        videos.append(SceneRows(name, rows[order]))
    return videos


def flow_videos_of(dataset: Any, names: Sequence[str] | None, layout: str) -> list[SceneRows]:
    """Videos as by :func:`videos_of`, of which at least one has two frames."""
    videos = videos_of(dataset, names)
    if all(len(video.rows) < 2 for video in videos):
        raise DataError(
            f"the layout {layout} contains flow from frame to frame, but no video of {dataset.name} has two frames; "
            "render more frames"
        )
    return videos


def _text(values: Sequence[Any]) -> str:
    """Values as part of the name of a file."""
    words = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return "-".join(_OTHER.sub("_", word) for word in words)[:_LONGEST]
