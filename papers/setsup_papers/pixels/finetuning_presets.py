"""Experiments of ours that fine-tune a vision transformer by single-pixel contrast; no figures of the paper.

Views are those of ``pixels/rooms``; ``--data.name FOLDER`` names other rendered views or a capture. `setsup report
dense` measures the transformer before fine-tuning, and the run.
"""

from dataclasses import replace

from setsup.experiments.data import Data
from setsup.experiments.preset import Preset
from setsup_papers.pixels.finetuning_settings import FinetuningSettings
from setsup_papers.pixels.rooms import RoomPairs, Views

__all__ = ["PRESETS"]

_RENDER = (
    'setsup render room --rooms 34 --pairs 84 --where "room < 24" --matches 2000 --size 240 320 --supersample 2 '
    "--modalities image partners status --out rooms-train"
)

_LOW_RANK = Preset(
    name="pixels/finetune",
    shows="a vision transformer fine-tuned by low-rank updates (LoRA), on views of rooms or objects",
    data=Data("rooms-train", modalities=("image",)),
    missing={"rooms-train": f"render it by `{_RENDER}`, or name such a folder by --data.name"},
    sampler=Views(pairs=16),
    augmentation=RoomPairs(size=224, keep=1 / 64),  # 16 × 16 patches of 14 pixels, and at most 784 matches
    method=FinetuningSettings(),
    steps=2_000,
    seeds=3,
    checkpoint_every=100,
    clip_norm=1.0,
)

_HEAD = replace(
    _LOW_RANK,
    name="pixels/finetune-head",
    shows="a linear head on a frozen vision transformer, on views of rooms or objects",
    method=FinetuningSettings(rank=0, features=128, rate=1e-3),
)

PRESETS = [_LOW_RANK, _HEAD]
