"""Experiments of DCoDR that fit two cores, a preset each, and that on a user's own domains.

A small one has an encoder of four convolutions in place of the ResNet-50, a generator of 32 channels, L1 with a
Laplacian pyramid in place of VGG, no pre-training, and few steps. Its temperature and its rates are for few steps.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from setsup.experiments.data import YOURS, Data
from setsup.experiments.preset import Evaluation, Preset
from setsup_papers.dcodr import presets
from setsup_papers.dcodr.augmentations import Positives
from setsup_papers.dcodr.baseline_settings import MLVAESettings
from setsup_papers.dcodr.benchmarks import BENCHMARKS, Benchmark
from setsup_papers.dcodr.measures import InvarianceProbes, Retrieval
from setsup_papers.dcodr.settings import DCoDRSettings, DomainBatches

__all__ = ["COMPARED", "PRESETS", "STEPS"]

COMPARED = ("shapes3d", "cars3d", "smallnorb")
"""Datasets of which setsup makes substitutes."""

STEPS = {
    "": 400,
    "-norec": 2_000,
    "-norec-no-domain-negatives": 2_000,
    "-no-domain-negatives": 600,
    "-lord-latent": 200,
    "-lord": 200,
    "-drnet": 800,
    "-ml-vae": 2_000,
}
"""Of the small presets, by the ends of their names: as many as eight minutes of two cores allow."""

_SEEDS = 3
_ROWS = 10_000
"""That probes are fitted to, and as many that they are tested on; and queries."""
_SMALL: dict[str, Any] = {"encoder": "small", "generator_width": 32, "perceptual": "pyramid"}
_FAST: dict[str, Any] = {"temperature": 0.2, "head": False, "rate": 1e-3, "generator_rate": 1e-3, "decay_every": None}


def _method(preset: Preset, **more: Any) -> Any:
    """Settings of a method for two cores: those that it has. ML-VAE's networks are small as they are."""
    if isinstance(preset.method, MLVAESettings):
        return preset.method
    known = {"channels": (32, 64, 128, 256), "lazy_codes": True, **_SMALL, **more}
    method: Any = preset.method
    own = {name: value for name, value in known.items() if name in type(method).__dataclass_fields__}
    return replace(method, **own)


def _small(preset: Preset, end: str, **more: Any) -> Preset:
    """The same with small networks, for few steps."""
    return replace(
        preset,
        name=f"{preset.name}-small",
        shows=f"{preset.shows}, small",
        method=_method(preset, **more),
        initial_run=None if preset.initial_run in (None, presets.PRETRAINED) else f"{preset.initial_run}-small",
        steps=STEPS[end],
        seeds=_SEEDS,
        checkpoint_every=100,
        evaluations={name: _fewer(one) for name, one in preset.evaluations.items() if name != "transforms"},
    )


def _fewer(evaluation: Evaluation) -> Evaluation:
    """The same with fewer rows that are fitted, and tested."""
    if isinstance(evaluation, InvarianceProbes | Retrieval):
        return replace(evaluation, samples=_ROWS)
    return evaluation


def _presets(benchmark: Benchmark) -> Iterator[Preset]:
    for reconstruct in (True, False):
        end = "" if reconstruct else "-norec"
        whole = presets.whole(benchmark, reconstruct)
        yield _small(whole, end, **_FAST)
        shuffled = presets.without_domain_negatives(whole, benchmark)
        yield _small(shuffled, f"{end}-no-domain-negatives", **_FAST)
        if benchmark.name == "cars3d" and not reconstruct:
            for name in presets.TABLE_1:
                yield _small(presets.augmented(whole, name), end, **_FAST)
    for baseline in presets.baselines(benchmark):
        yield _small(baseline, baseline.name.removeprefix(f"dcodr/{benchmark.name}"))


_OWN = Preset(
    name="dcodr",
    shows="your own domains: --data.name and --domain",
    data=Data(YOURS, modalities=("image",)),
    missing={
        YOURS: "name them and their domain, as in `setsup train dcodr --data.name scans.csv --domain scanner`, "
        "or try it by `setsup train dcodr --data.name shapes3d-procedural --domain shape`"
    },
    sampler=DomainBatches(domain=("shape",)),
    augmentation=Positives(size=None),
    method=DCoDRSettings(domain=("shape",), reconstruction=0.0, **_SMALL, **_FAST),
    steps=2_000,
)

PRESETS = [*(preset for name in COMPARED for preset in _presets(BENCHMARKS[name])), _OWN]
"""All small experiments, and that on domains of one's own."""
