"""Experiments of single-pixel contrast on rooms; the one whose name ends in ``-small`` fits two cores.

Views are folders of ``setsup render room --matches N``, of SceneNN's rooms with ShapeNet's objects where a user has
them (``--meshes``, ``--objects``), or generated ones: ``--data.name FOLDER --datasets.test.name FOLDER``. The rooms of
the two must differ. Small are images of 192 x 256 pixels, windows of 128, and 2,000 steps of 8 pairs.
"""

from dataclasses import replace

from setsup.experiments.data import YOURS, Data
from setsup.experiments.preset import Preset
from setsup.experiments.report import Column, Report, Row
from setsup_papers.pixels.presets import PAPER
from setsup_papers.pixels.room_measures import RoomMatches
from setsup_papers.pixels.rooms import RoomPairs, Views
from setsup_papers.pixels.settings import PixelContrastSettings

__all__ = ["PRESETS", "REPORTS"]

_RENDER = "setsup render room --rooms 34 --pairs"


def _commands(train: str, test: str, size: str) -> dict[str, str]:
    """What makes the data: the rooms of the test are others than those of the training."""
    made = {
        "rooms-train": f'{_RENDER} {train} --where "room < 24" --matches 2000 {size} --supersample 2 '
        "--modalities image partners status --out rooms-train",
        "rooms-test": f'{_RENDER} {test} --where "room >= 24" --matches 200 {size} --supersample 2 '
        "--modalities image depth instances partners status --out rooms-test",
    }
    options = {"rooms-train": "--data.name", "rooms-test": "--datasets.test.name"}
    return {
        name: f"render it by `{command}`, or name such a folder by {options[name]}" for name, command in made.items()
    }


_WHOLE = Preset(
    name="pixels/rooms",
    shows="second experiment, pairs of views of rooms: places, objects and edges",
    data=Data("rooms-train", modalities=("image",)),
    missing=_commands("1600", "20", "--size 480 640"),  # 38,400 pairs of views
    datasets={"test": Data("rooms-test")},
    sampler=Views(pairs=32),
    augmentation=RoomPairs(size=256),
    method=PixelContrastSettings(widths=(16, 16, 32, 32, 64), blocks=(1, 1, 1, 2, 4)),
    steps=7_200,  # six passes over 38,400 pairs
    seeds=1,
    clip_value=3.0,
    checkpoint_every=100,
    evaluations={"rooms": RoomMatches()},
)

_SMALL = replace(
    _WHOLE,
    name="pixels/rooms-small",
    shows=f"{_WHOLE.shows}, small",
    missing=_commands("84", "20", "--size 192 256"),
    sampler=Views(pairs=8),
    augmentation=RoomPairs(size=128),
    steps=2_000,
)

_OWN = replace(
    _SMALL,
    name="pixels/pairs",
    shows="pairs of views of your own: rendered, captured, with depth, or photographs with homographies",
    data=Data(YOURS, modalities=("image",)),
    missing={
        YOURS: "name pairs of views, such as those of `setsup render room --matches 200 --out pairs`, as in "
        "`setsup train pixels/pairs --data.name pairs`, or views whose overlap was measured, as in `setsup train "
        "pixels/pairs --data.name capture --sampler.overlaps capture.overlap --sampler.overlap .3 .8`"
    },
    datasets={},
    evaluations={},
)

PRESETS = [_WHOLE, _SMALL, _OWN]

_VALUES = ("within 1 px", "within 3 px", "within 5 px", "rejection", "instances", "edges")
_SOURCES = {"": "trained", "untrained: ": "untrained", "colors: ": "sRGB", "daisy: ": "DAISY", "patches: ": "patches"}


def _report(preset: Preset) -> Report:
    size = "; windows of 128 pixels, 2,000 steps of 8 pairs: not the paper's size" if preset is _SMALL else ""
    return Report(
        name=preset.name,
        shows=f"places, objects and edges by features of pixels{', small' if size else ''}",
        source=f"second experiment of {PAPER}, which gives figures only{size}",
        evaluations=("rooms",),
        rows=tuple(Row(preset.name, label, prefix) for prefix, label in _SOURCES.items()),
        columns=tuple(Column(name) for name in _VALUES),
        digits=3,
    )


REPORTS = [_report(preset) for preset in (_WHOLE, _SMALL)]
