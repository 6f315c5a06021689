"""Experiments of contrastive multiview coding (arXiv 1906.05849), a module for each kind of data, and that on your own.

Each module has the presets and the reports of its tables and figures; names of what fits two cores end in ``-small``.
"""

from dataclasses import replace

from setsup.experiments.data import YOURS, Data
from setsup.experiments.image_batches import Images
from setsup.experiments.preset import Preset
from setsup_papers.cmc.augmentations import ViewCrops
from setsup_papers.cmc.experiments import digits, figure5, frames, imagenet, rooms, stl10, videos
from setsup_papers.cmc.experiments.parts import ADAM
from setsup_papers.cmc.settings import CMCSettings

__all__ = ["PRESETS", "REPORTS", "SMALL_PRESETS"]

_VIEWS = ViewCrops(views=("image", "depth"))
_OWN = Preset(
    name="cmc",
    shows="views of your own data",
    missing={
        YOURS: "name them and their modalities, as in `setsup train cmc --data.name mine.npz --views image,depth`"
    },
    data=Data(YOURS),
    sampler=Images(size=64),
    # patches projected to the default of 2,048 numbers diverged on images of 32 × 32
    method=CMCSettings(views=_VIEWS.views, encoder="small", negatives=1024, optimiser=ADAM, projection=256),
    augmentation=_VIEWS,
    eval_transform=replace(_VIEWS, crop="center"),
    steps=5_000,
)

SMALL_PRESETS = [*rooms.SMALL_PRESETS, *digits.SMALL_PRESETS, *figure5.SMALL_PRESETS]
"""Experiments that fit two cores."""

PRESETS = [
    *imagenet.PRESETS,
    *stl10.PRESETS,
    *figure5.PRESETS,
    *rooms.PRESETS,
    *videos.PRESETS,
    *frames.PRESETS,
    _OWN,
    *SMALL_PRESETS,
]
"""All experiments."""

REPORTS = [
    *imagenet.REPORTS,
    *stl10.REPORTS,
    *figure5.REPORTS,
    *rooms.REPORTS,
    *videos.REPORTS,
    *rooms.SMALL_REPORTS,
    *digits.SMALL_REPORTS,
    *figure5.SMALL_REPORTS,
]
"""All tables and figures."""
