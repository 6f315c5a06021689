"""Experiments of DCoDR, a preset each: its two variants, its ablations and baselines, at the paper's size and small.

The paper trains for 200 epochs; an epoch has as many steps as batches fit into the training data.

A small experiment fits two cores: the same variant through :func:`shrink_preset`, with an encoder of four convolutions
in place of the ResNet-50, a generator of 32 channels, L1 with a Laplacian pyramid in place of VGG, no pre-training, and
few steps. Its temperature and its rates are for few steps.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from setsup.experiments.configs import MethodConfig
from setsup.experiments.data import YOURS, Data
from setsup.experiments.evaluation import Evaluation
from setsup.experiments.image_batches import Images
from setsup.experiments.preset import Preset
from setsup_papers.dcodr.augmentations import Positives, Resized
from setsup_papers.dcodr.baseline_settings import AmortisedLORDSettings, DRNETSettings, LORDSettings, MLVAESettings
from setsup_papers.dcodr.benchmarks import BENCHMARKS, PAPER_EPOCHS, Benchmark
from setsup_papers.dcodr.measures import InvarianceProbes, LandmarkProbe, Retrieval
from setsup_papers.dcodr.settings import DCoDRSettings, DomainBatches
from setsup_papers.dcodr.speed import EpochTime
from setsup_papers.dcodr.transforms_study import AutoencoderInvariance

__all__ = ["COMPARED", "ENDS", "FIGURE_4", "PRESETS", "STEPS", "TABLE_1", "shrink_preset"]

_PRETRAINED = "resnet50-mocov2-800"
"""Initial weights of the ResNet-50."""

_SHUFFLED = 64
"""Images of a batch without negatives of the domain."""
_DECAY_EPOCHS = 30
_LORD = 128
"""Images of a batch of LORD."""
_STUDIED = ("cars3d", "edges2shoes", "celeba")
"""Datasets of appendix A."""

ENDS = {"LORD": "-lord", "DRNET": "-drnet", "ML-VAE": "-ml-vae", "DCoDR-norec": "-norec", "DCoDR": ""}
"""Ends of the names of presets by methods, in the order of the tables."""

TABLE_1 = ("blur", "horizontal-flip")
"""Single augmentations: of appendix A."""

FIGURE_4 = (
    "crop",
    "blur",
    "high-contrast",
    "high-saturation",
    "high-brightness",
    "low-contrast",
    "low-brightness",
    "hue",
    "grey",
    "erasing",
    "affine",
    "horizontal-flip",
    "vertical-flip",
)
"""Single augmentations: all of appendix A."""


# -- the paper's size --------------------------------------------------------------------------------------------------


def _evaluations(benchmark: Benchmark, epoch: int) -> dict[str, Evaluation]:
    """Evaluations of any method on a dataset; CelebA has landmarks in place of attributes."""
    domain, attributes = benchmark.domain, benchmark.attributes
    time = EpochTime(steps=epoch, epochs=PAPER_EPOCHS)
    probes = InvarianceProbes(domain=domain, attributes=attributes, dataset="test", resplit=not attributes)
    if not attributes:
        return {"time": time, "probes": probes, "landmarks": LandmarkProbe(identity=domain, dataset="test")}
    retrieval = Retrieval(attributes=attributes, tolerances=benchmark.tolerances, dataset="test")
    measured: dict[str, Evaluation] = {"time": time, "probes": probes, "retrieval": retrieval}
    if benchmark.tolerances:
        wider = tuple((name, levels + 1) for name, levels in benchmark.tolerances)
        measured["retrieval_wide"] = replace(retrieval, tolerances=wider)  # as the text has it
    return measured


def _preset(benchmark: Benchmark, end: str, title: str, method: MethodConfig, batch: int | None = None) -> Preset:
    """A method on a dataset: on batches of so many images, or on batches that are balanced over domains."""
    epoch = benchmark.epoch(batch)
    return Preset(
        name=f"dcodr/{benchmark.name}{end}",
        shows=f"{benchmark.title}: {title}",
        data=benchmark.data,
        datasets={"test": benchmark.test},
        sampler=DomainBatches(domain=benchmark.domain) if batch is None else Images(size=batch),
        augmentation=Resized(),
        eval_transform=Resized(),
        method=method,
        steps=PAPER_EPOCHS * epoch,
        checkpoint_every=500,
        evaluations=_evaluations(benchmark, epoch),
    )


def _dcodr(benchmark: Benchmark, reconstruct: bool = True) -> Preset:
    """DCoDR, or DCoDR-norec, as the published code trains it."""
    end, title = ("", "DCoDR") if reconstruct else ("-norec", "DCoDR without reconstruction")
    method = DCoDRSettings(
        domain=benchmark.domain,
        temperature=benchmark.temperature,
        head=benchmark.head and reconstruct,
        reconstruction=0.3 if reconstruct else 0.0,
        rate=benchmark.rate if reconstruct else 1e-4,
        generator_rate=benchmark.generator_rate,
        decay_every=_DECAY_EPOCHS * benchmark.epoch(),
    )
    preset = _preset(benchmark, end, title, method)
    evaluations = dict(preset.evaluations)
    if reconstruct and benchmark.name in _STUDIED:
        evaluations["transforms"] = AutoencoderInvariance(dataset="test")
    positives = Positives(recipe=benchmark.recipe)
    return replace(preset, augmentation=positives, initial_run=_PRETRAINED, evaluations=evaluations)


def _variant(preset: Preset, end: str, title: str, **changed: Any) -> Preset:
    return replace(preset, name=f"{preset.name}-{end}", shows=f"{preset.shows}, {title}", **changed)


def _without_domain_negatives(preset: Preset, benchmark: Benchmark) -> Preset:
    """The same on shuffled batches, in which all other images are negatives."""
    epoch = benchmark.epoch(_SHUFFLED)
    method: Any = preset.method
    return _variant(
        preset,
        "no-domain-negatives",
        "negatives of all domains",
        sampler=Images(size=_SHUFFLED),
        method=replace(method, negatives="batch", decay_every=_DECAY_EPOCHS * epoch),
        steps=PAPER_EPOCHS * epoch,
        evaluations={**preset.evaluations, "time": EpochTime(steps=epoch, epochs=PAPER_EPOCHS)},
    )


def _augmented(preset: Preset, transform: str) -> Preset:
    """The same with a transform of appendix A alone."""
    title = f"{transform.replace('-', ' ')} alone"
    return _variant(preset, transform, title, augmentation=Positives(recipe=f"dcodr-a/{transform}"))


def _table_3(preset: Preset, benchmark: Benchmark) -> Iterator[Preset]:
    """Rows of table 3."""
    method: Any = preset.method
    yield _without_domain_negatives(preset, benchmark)
    yield _variant(preset, "no-positives", "without positives", method=replace(method, positives=False))
    yield _variant(preset, "no-pre-training", "random initial weights", initial_run=None)
    simsiam = Positives(recipe="dcodr-simsiam")
    yield _variant(preset, "simsiam", "augmentations of SimSiam", augmentation=simsiam)


def _baselines(benchmark: Benchmark) -> Iterator[Preset]:
    """LORD in two stages, DRNET and ML-VAE."""
    domain = benchmark.domain
    latent = LORDSettings(domain=domain, lazy_codes=False)
    first = _preset(benchmark, "-lord-latent", "LORD, first stage: a code for each image", latent, _LORD)
    yield replace(first, evaluations={"time": first.evaluations["time"]})
    amortised = AmortisedLORDSettings(domain=domain, lazy_codes=False)
    second = _preset(benchmark, "-lord", "LORD, second stage: encoders", amortised, _LORD)
    yield replace(second, initial_run=first.name)
    yield _preset(benchmark, "-drnet", "DRNET", DRNETSettings(domain=domain))
    yield _preset(benchmark, "-ml-vae", "ML-VAE", MLVAESettings(domain=domain))


def _paper() -> Iterator[Preset]:
    for benchmark in BENCHMARKS.values():
        whole, short = _dcodr(benchmark), _dcodr(benchmark, reconstruct=False)
        yield from (whole, short, *_baselines(benchmark))
        if benchmark.name == "cars3d":
            yield from (_augmented(short, name) for name in TABLE_1)
        if benchmark.name == "smallnorb":
            yield from (*_table_3(whole, benchmark), *_table_3(short, benchmark))
            yield from (_augmented(short, name) for name in FIGURE_4)


# -- two cores ---------------------------------------------------------------------------------------------------------

COMPARED = ("shapes3d", "cars3d", "smallnorb")
"""Datasets of which setsup makes substitutes."""

STEPS = {
    "": 400,
    "-norec": 2_000,
    "-norec-no-domain-negatives": 2_000,
    "-norec-blur": 2_000,
    "-norec-horizontal-flip": 2_000,
    "-no-domain-negatives": 600,
    "-lord-latent": 200,
    "-lord": 200,
    "-drnet": 800,
    "-ml-vae": 2_000,
}
"""Of the small presets, by the ends of their names: as many as eight minutes of two cores allow."""

_ROWS = 10_000
"""That probes are fitted to, and as many that they are tested on; and queries."""
_NARROW: dict[str, Any] = {"encoder": "small", "generator_width": 32, "perceptual": "pyramid"}
_FAST: dict[str, Any] = {"temperature": 0.2, "head": False, "rate": 1e-3, "generator_rate": 1e-3, "decay_every": None}


def shrink_preset(preset: Preset) -> Preset:
    """The same for two cores: with small networks, without pre-training, for few steps, measured on few rows."""
    dataset = preset.name.removeprefix("dcodr/").partition("-")[0]
    return replace(
        preset,
        name=f"{preset.name}-small",
        shows=f"{preset.shows}, small",
        method=_shrink_method(preset.method),
        initial_run=None if preset.initial_run in (None, _PRETRAINED) else f"{preset.initial_run}-small",
        steps=STEPS[preset.name.removeprefix(f"dcodr/{dataset}")],
        seeds=3,
        checkpoint_every=100,
        evaluations={
            name: _shrink_evaluation(evaluation)
            for name, evaluation in preset.evaluations.items()
            if name != "transforms"
        },
    )


def _shrink_method(method: Any) -> Any:
    """The same with small networks, where it has them; those of ML-VAE are small as they are."""
    if isinstance(method, MLVAESettings):
        return method
    if isinstance(method, DCoDRSettings):
        return replace(method, **_NARROW, **_FAST)
    known = {"channels": (32, 64, 128, 256), "lazy_codes": True, **_NARROW}
    return replace(method, **{setting.name: known[setting.name] for setting in fields(method) if setting.name in known})


def _shrink_evaluation(evaluation: Evaluation) -> Evaluation:
    """The same with fewer rows that are fitted, and tested."""
    return replace(evaluation, samples=_ROWS) if isinstance(evaluation, InvarianceProbes | Retrieval) else evaluation


def _two_cores() -> Iterator[Preset]:
    for benchmark in map(BENCHMARKS.__getitem__, COMPARED):
        for preset in (_dcodr(benchmark), _dcodr(benchmark, reconstruct=False)):
            yield from (preset, _without_domain_negatives(preset, benchmark))
        if benchmark.name == "cars3d":
            yield from (_augmented(_dcodr(benchmark, reconstruct=False), name) for name in TABLE_1)
        yield from _baselines(benchmark)


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
    method=DCoDRSettings(domain=("shape",), reconstruction=0.0, **_NARROW, **_FAST),
    steps=2_000,
)

PRESETS = [*_paper(), *map(shrink_preset, _two_cores()), _OWN]
"""All experiments."""
