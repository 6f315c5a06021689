"""Every kind of method as a preset that trains in a second: those of all papers, and users' own."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import EMAWeightAveraging

from setsup.experiments import Data, Preset, find_preset
from setsup.experiments.image_batches import Images
from setsup.experiments.sets import Sets
from setsup_papers.abc.method import ABC
from setsup_papers.abc.pose.baseline_settings import (
    CCVAESettings,
    ExclusiveInformationSettings,
    SharedInformationSettings,
)
from setsup_papers.abc.pose.settings import PoseABCSettings
from setsup_papers.abc.settings import ABCObjective
from setsup_papers.cmc.settings import CrossViewPredictionSettings
from setsup_papers.dcodr.baseline_settings import AmortisedLORDSettings, DRNETSettings, LORDSettings, MLVAESettings
from setsup_papers.dcodr.settings import DCoDRSettings, DomainBatches
from setsup_papers.orbits.settings import OrbitBatches, OrbitJointSettings
from setsup_papers.pixels.settings import ColoredPairs, PixelContrastSettings
from tests.experiments.adversarial import AdversarialSettings
from tests.experiments.checkpoint_retention import BANKS, CODES
from tests.experiments.small import ACCUMULATED, AUGMENTED, DROPOUT, HALVED, PLAIN, Tiny
from tests.papers.cmc.viewed import BANKED, CONVOLVED

__all__ = [
    "AVERAGED",
    "CC_VAE",
    "DENSE",
    "DRNET",
    "EXCLUSIVE",
    "LATENT",
    "LORD",
    "METHODS",
    "MOMENTUM",
    "POSE",
    "SHARED",
    "Averaged",
    "Counting",
]

OWN = Path(__file__).resolve().parents[2] / "examples" / "a_method_of_your_own.py"
FEW = "orientation == 0 and scale == 0.75 and floor_hue == 0"
DOMAIN = ("shape",)
PAIRS = Sets(inactive=("shape",), sets=4, size=2)
GROUPS = OrbitBatches(orbit=DOMAIN, sets=3, size=5)
NARROW: dict[str, Any] = {"shared": 6, "filters": 2, "convolutions": 4, "width": 8}
GENERATOR: dict[str, Any] = {"generator_width": 16, "content": 12, "style": 10, "perceptual": "pyramid"}
CHANNELS = (4, 8, 8, 16)


class Counting(Callback):
    """Has a state, which changes at the end of a draw."""

    def __init__(self) -> None:
        self.bright: list[float] = []

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.bright.append(float(batch["image"].float().mean()))

    def state_dict(self) -> dict[str, Any]:
        return {"bright": self.bright}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.bright = list(state_dict["bright"])


class Averaged(ABC):
    """Gives callbacks with a state, one of which averages its weights."""

    def configure_callbacks(self) -> list[Callback]:
        return [EMAWeightAveraging(decay=0.7), Counting()]


class Momentum(ABC):
    """Averages its weights at the very end of a draw, in its own hook, and logs there."""

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.teacher.lerp_(self.encoder[1].weight.detach(), 0.3)
        self.log("spread", self.teacher.std(), on_step=True)


@dataclass(frozen=True)
class AveragedSettings:
    """None."""

    def build(self, table: Any, generator: torch.Generator) -> Averaged:
        return Averaged(ABCObjective(rate=1e-3), Tiny().build(table, generator).encoder)


@dataclass(frozen=True)
class MomentumSettings:
    """None."""

    def build(self, table: Any, generator: torch.Generator) -> Momentum:
        method = Momentum(ABCObjective(rate=1e-3), Tiny().build(table, generator).encoder)
        method.register_buffer("teacher", method.encoder[1].weight.detach().clone())
        return method


def _preset(name: str, method: Any, sampler: Any = PAIRS, **others: Any) -> Preset:
    data = Data("shapes3d-procedural", where=FEW)
    parts: dict[str, Any] = {"shows": "nothing", "steps": 6, "checkpoint_every": 2} | others
    return Preset(name=name, data=data, sampler=sampler, method=method, **parts)


POSE = _preset("small/tcc", PoseABCSettings(encoder="small", objective="correspondence", halve_every=3))
CC_VAE = _preset("small/cc-vae", CCVAESettings(channels=(4, 4, 8, 8), decay_every=3))
SHARED = _preset("small/shared", SharedInformationSettings(**NARROW))
EXCLUSIVE = _preset("small/exclusive", ExclusiveInformationSettings(exclusive=5, **NARROW), initial_run=SHARED.name)
LATENT = _preset("small/lord-latent", LORDSettings(domain=DOMAIN, **GENERATOR), Images(size=12))
LORD = _preset(
    "small/lord",
    AmortisedLORDSettings(domain=DOMAIN, encoder="small", channels=CHANNELS, **GENERATOR),
    Images(size=12),
    initial_run=LATENT.name,
)
DRNET = _preset("small/drnet", DRNETSettings(domain=DOMAIN, channels=CHANNELS), GROUPS)
DENSE = _preset("small/ml-vae", MLVAESettings(domain=DOMAIN, hidden=20), GROUPS)
DCODR = _preset(
    "small/dcodr",
    DCoDRSettings(
        domain=DOMAIN,
        encoder="small",
        channels=(4, 4, 4, 4),
        dimensions=8,
        generator_width=8,
        style=4,
        perceptual="pyramid",
        decay_every=1,
    ),
    DomainBatches(domain=DOMAIN, sets=4, size=2),
    augmentation="dcodr",
)
ORBITS = _preset(
    "small/orbit-joint",
    OrbitJointSettings(orbit=("object_hue",), channels=(4, 4, 8, 8), dimensions=16),
    OrbitBatches(orbit=("object_hue",), sets=3, size=4, canonical="wall_hue == 0"),
)
EXEMPLAR = replace(ORBITS, name="small/exemplar", method=replace(ORBITS.method, objective="exemplar"))
PREDICTED = replace(BANKED, name="small/views-predicted", method=CrossViewPredictionSettings(target="ab", width=0.125))
PIXELS = _preset(
    "small/pixels",
    PixelContrastSettings(widths=(8, 16), blocks=(1, 1), features=4, within=0.5),
    augmentation=ColoredPairs(colors="fixed"),
)
TWO = replace(PLAIN, name="small/adversarial", method=AdversarialSettings())
AVERAGED = replace(PLAIN, name="small/averaged", method=AveragedSettings())
MOMENTUM = replace(PLAIN, name="small/momentum", method=MomentumSettings())


def _methods() -> Iterator[Preset]:
    yield from (DROPOUT, HALVED, ACCUMULATED, AUGMENTED)
    yield from (POSE, CC_VAE, SHARED, EXCLUSIVE)
    yield from (DCODR, LATENT, LORD, DRNET, DENSE)
    yield from (ORBITS, EXEMPLAR)
    yield from (BANKED, CONVOLVED, PREDICTED)
    yield PIXELS
    yield from (TWO, AVERAGED, replace(AVERAGED, name="small/averaged-accumulated", accumulate=2), MOMENTUM)
    yield from (BANKS, CODES)
    yield find_preset(f"{OWN}:mine/halves")


METHODS = [replace(preset, steps=6, checkpoint_every=2, evaluations={}) for preset in _methods()]
