"""Presets of contrastive multiview coding that train in a second: luminance against colour of small rooms."""

from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from setsup.experiments import Data, Preset
from setsup.experiments.image_batches import Images
from setsup.experiments.optimisation import SGD
from setsup.loading.views import ColorViews
from setsup_papers.cmc import ViewEncoder
from setsup_papers.cmc.settings import CMCSettings

__all__ = ["BANKED", "CONVOLVED", "ROWS"]

ROWS = 1500


class Blocks(nn.Module):
    """Means of 8 × 8 blocks, flat."""

    def forward(self, images: Any) -> Any:
        return nn.functional.avg_pool2d(images, 8).flatten(1)


class Unnormalised(CMCSettings):
    """With encoders in which images do not depend on each other."""

    def _encoder(self, image: tuple[int, int, int]) -> ViewEncoder:
        layers = nn.Sequential(nn.Linear(64 * image[0], 16), nn.Tanh())
        return ViewEncoder({"blocks": Blocks(), "fc1": layers}, nn.Linear(16, self.features))


@dataclass(frozen=True)
class Lab:
    """Views L and ab."""

    def build(self, dataset: Any, seed: int) -> ColorViews:
        return ColorViews("lab")


BANKED = Preset(
    name="small/views-banked",
    shows="nothing",
    data=Data("shapes3d-procedural", where="scale == 0.75 and floor_hue == 0 and shape == 'cube'"),
    sampler=Images(size=6),
    augmentation=Lab(),
    eval_transform=Lab(),
    method=Unnormalised(features=8, negatives=24, temperature=0.2, optimiser=SGD(rate=0.05, momentum=0.9)),
    steps=6,
    checkpoint_every=3,
)
CONVOLVED = replace(
    BANKED,
    name="small/views-convolved",
    method=CMCSettings(encoder="small", width=0.25, features=8, negatives=24, bank="float16"),
)
