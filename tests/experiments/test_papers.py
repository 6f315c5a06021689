"""Every explicit number of the papers and of their public code that is a setting of a preset, one by one.

The numbers are copied from the papers' text, or where that is silent or overruled from the code, by hand, and not from
the presets. What presets have otherwise, and why, stands on the pages of the experiments as "open" or "ours".
"""

from fnmatch import fnmatchcase
from typing import Any

import pytest

pytest.importorskip("torch")

from setsup.experiments import presets
from setsup.experiments.settings import describe, flatten

HUES = ["floor_hue", "object_hue", "wall_hue"]
ADAM = {"rate": 1e-3, "betas": [0.5, 0.999]}


def epochs(count: float, images: int, batch: int) -> int:
    return round(count * images / batch)


def decays(after: tuple[int, ...], images: int, batch: int) -> list[int]:
    return [epochs(one, images, batch) for one in after]


def sgd(rate: float) -> dict[str, Any]:
    return {
        "method.optimiser": "SGD",
        "method.optimiser.rate": rate,
        "method.optimiser.momentum": 0.9,
        "method.optimiser.weight_decay": 1e-4,
    }


def cmc(batch: int, count: int, factor: float, after: tuple[int, ...], images: int) -> dict[str, Any]:
    return {
        "sampler.size": batch,
        "steps": epochs(count, images, batch),
        "method.schedule.factor": factor,
        "method.schedule.at": decays(after, images, batch),
    }


def probe(name: str, **values: Any) -> dict[str, Any]:
    return {f"{name}.{key}": value for key, value in values.items()}


IMAGENET, IMAGENET_100, STL10, NYU, UCF101 = 1_281_167, 126_689, 105_000, 795, 9_537
LAYERS = {"pooled": [10, 6, 5, 5, 6], "rate": 0.1, "momentum": 0.9, "weight_decay": 0.0, "batch": 256, "decay": 0.2}
BY_TEXT = probe("layers", epochs=160, decays=[100, 120, 140], **LAYERS)
BY_CODE = probe("layers", epochs=60, decays=[30, 40, 50], **LAYERS)
OF_STL10 = {"rate": 1e-3, "betas": [0.5, 0.999], "epochs": 100}
DCODR_EPOCHS = {"cars3d": 15_811 // 128, "smallnorb": 43_740 // 128, "shapes3d": 50_000 // 128}
PROBE = {"layers": 6, "width": 128, "rate": 1e-3, "batch": 128, "epochs": 100, "patience": 7}

SAID: list[tuple[str, dict[str, Any]]] = [
    # ABC, sections 1.3 to 1.5
    (
        "abc/fig[34]*",
        {"steps": 2_000, "seeds": 10, "method.rate": 3e-5, "method.similarity": "l2sq", "sampler.sets": 2},
    ),
    ("abc/fig[34][abc]*", {"sampler.size": 32, "method.temperature": 1.0, "sampler.small": "short"}),
    ("abc/fig3[ac]", {"sampler.inactive": ["wall_hue"]}),
    ("abc/fig4a*", {"sampler.inactive": ["wall_hue"]}),
    ("abc/fig4[abc]-random", {"sampler.unconstrained": 1}),
    *(
        (f"abc/fig4d-{size}", {"sampler.size": size, "sampler.inactive": ["wall_hue"]})
        for size in (4, 16, 64, 256, 1024)
    ),
    ("abc/fig3[cd]", {"noise.scales": 40, "noise.steps": 20_000, "noise.samples": 249_856}),
    ("abc/fig4*", {"information.samples": 249_856}),
    ("abc/figS1*", {"accuracy.held_out": 0.1, "accuracy.rate": 1e-3}),
    ("abc/figS3", {"simulation.dimensions": [1, 2, 3, 4, 5, 6], "simulation.draws": 10_000}),
    ("abc/augmentation", {"sampler.sets": 1, "sampler.size": 32, "augmentation": "abc-shapes3d"}),
    (
        "abc/mnist",
        {"sampler.size": 64, "sampler.sets": 2, "sampler.where": "digit != 9", "steps": 500, "method.rate": 1e-4},
    ),
    ("abc/mnist", {"method.similarity": "l2sq", "method.temperature": 1.0}),
    ("abc/figS7-sanchez", {"method.exclusive": 64}),
    ("abc/figS7-ml-vae", {"sampler.size": 64}),
    # ABC, section 1.6
    (
        "abc/table1-*",
        {"lookup.codebooks": 10, "lookup.size": 1_800},
    ),
    *(
        (
            f"abc/table1-{plural}{end}",
            {
                "steps": 40_000,
                "sampler.size": 32,
                "sampler.pairs": 4,
                "method.similarity": "cosine",
                "method.temperature": 0.1,
                "method.rate": 1e-4,
                "method.halve_every": 10_000,
            },
        )
        for plural in ("cars", "chairs")
        for end in ("", "-no-real", "-tcc", "-augmentation")
    ),
    *(
        (f"abc/table1-{plural}", {"sampler.real": 0.10, "sampler.every": 4_000, "augmentation.move": 0.1})
        for plural in ("cars", "chairs")
    ),
    ("abc/table1-*-vae", {"data.options.size": [64, 64]}),
    ("abc/table1-*-ml-vae", {"sampler.size": 32}),
    (
        "abc/table2-*",
        {
            "steps": 60_000,
            "sampler.pairs": 4,
            "method.temperature": 0.05,
            "method.rate": 1e-4,
            "method.halve_every": 20_000,
            "method.angles": ["azimuth", "elevation", "theta"],
            "augmentation.move": 0.1,
        },
    ),
    *((f"abc/table2-{plural}", {"sampler.real": 0.02, "sampler.every": 6_000}) for plural in ("cars", "chairs")),
    ("abc/figS4-*", {"seeds": 8, "steps": 40_000}),
    ("abc/figS5-*", {"seeds": 10, "steps": 60_000}),
    # DCoDR, sections 2.1 to 2.7
    ("dcodr/*", {"probes.*": PROBE}),
    *(
        (
            f"dcodr/{name}*",
            {
                "method.decay": 0.33,
                "method.style_rate": 3e-3,
                "method.temperature": temperature,
                "augmentation.size": 64,
            },
        )
        for name, temperature in (
            ("cars3d", 0.2),
            ("smallnorb", 0.2),
            ("shapes3d", 0.1),
            ("celeba", 0.2),
            ("edges2shoes", 0.1),
        )
    ),
    *(
        (f"dcodr/{name}{end}", {"steps": 200 * epoch, "method.decay_every": 30 * epoch})
        for name, epoch in DCODR_EPOCHS.items()
        for end in ("", "-norec")
    ),
    *(
        (f"dcodr/{name}{end}", {"sampler.sets": 4, "sampler.size": 32, "sampler.domains": "independent"})
        for name in ("cars3d", "smallnorb", "shapes3d", "celeba", "edges2shoes")
        for end in ("", "-norec")
    ),
    *(
        (
            f"dcodr/{name}",
            {
                "method.reconstruction": 0.3,
                "method.head": name == "smallnorb",
                "method.rate": rate,
                "method.generator_rate": generator,
            },
        )
        for name, rate, generator in (
            ("cars3d", 1e-4, 3e-4),
            ("smallnorb", 3e-4, 3e-4),
            ("shapes3d", 1e-4, 3e-4),
            ("celeba", 1e-3, 1e-3),
            ("edges2shoes", 1e-3, 1e-3),
        )
    ),
    ("dcodr/*-norec*", {"method.reconstruction": 0.0, "method.head": False, "method.rate": 1e-4}),
    ("dcodr/*-no-domain-negatives", {"sampler.size": 64, "method.negatives": "batch"}),
    ("dcodr/*-no-positives", {"method.positives": False}),
    ("dcodr/*-no-pre-training", {"initial_run": None}),
    ("dcodr/edges2shoes*", {"augmentation.recipe": "dcodr-blur"}),
    ("dcodr/smallnorb*", {"retrieval.tolerances": [["azimuth", 2]], "retrieval_wide.tolerances": [["azimuth", 3]]}),
    (
        "dcodr/*-lord-latent",
        {
            "sampler.size": 128,
            "method.rate": 3e-4,
            "method.latent_rate": 3e-3,
            "method.last_rate": 1e-5,
            "method.noise": 1.0,
            "method.penalty": 1e-4,
            "method.content": 128,
            "method.style": 256,
            "method.lazy_codes": False,
        },
    ),
    (
        "dcodr/*-lord",
        {"sampler.size": 128, "method.rate": 1e-4, "method.last_rate": 1e-5, "method.weights": [10.0, 10.0]},
    ),
    *((f"dcodr/{name}-lord*", {"steps": 200 * epoch}) for name, epoch in DCODR_EPOCHS.items()),
    # orbit sets, section 3
    ("orbits/*", {"method.dimensions": 1_024, "method.weights": [1.0, 1.0]}),
    ("orbits/mnist-*", {"method.image": [1, 40, 40], "method.channels": [16, 32, 64, 128], "batch": 256}),
    ("orbits/even-odd-*", {"method.image": [1, 40, 40], "method.channels": [16, 32, 64, 128], "batch": 256}),
    ("orbits/norb-*", {"method.image": [1, 96, 96], "batch": 256, "oneshot.splits": 1_000, "oneshot.validation": 0.4}),
    ("orbits/multi-pie-*", {"method.image": [3, 128, 128], "method.channels": [64, 128, 256, 512], "batch": 72}),
    ("orbits/video-*", {"method.image": [3, 96, 96], "method.channels": [64, 128, 256, 512], "batch": 128}),
    ("orbits/mnist-*", {"oneshot.splits": 10}),
    ("orbits/video-*", {"samples.counts": list(range(1, 21)), "samples.resamples": 10, "samples.test": 64}),
    ("orbits/*-stn", {"method.transformer": True}),
    # CMC, section 4
    (
        "cmc/imagenet-*",
        {"method.objective": "nce", "method.momentum": 0.5, "method.temperature": 0.07, "method.features": 128},
    ),
    ("cmc/imagenet-alexnet", {**sgd(0.03), **cmc(128, 400, 0.1, (250, 300, 350), IMAGENET), **BY_TEXT}),
    ("cmc/imagenet-alexnet", {"method.negatives": 4_096, "augmentation.area": [0.2, 1.0], "augmentation.size": 224}),
    ("cmc/imagenet-alexnet-code", {**sgd(0.03), **cmc(128, 240, 0.1, (120, 160, 200), IMAGENET), **BY_CODE}),
    ("cmc/imagenet-alexnet-code", {"method.negatives": 16_384}),
    *(
        (
            f"cmc/imagenet-{name}",
            {
                **sgd(rate),
                **cmc(batch, 280, 0.1, (160, 200, 240), IMAGENET),
                **probe("layers", epochs=100, decays=[60, 75, 90], decay=0.2, rate=probe_rate, weight_decay=0.0),
                "method.width": width,
                "augmentation.area": [0.08, 1.0],
            },
        )
        for name, batch, rate, width, probe_rate in (
            ("resnet50", 280, 0.08, 1.0, 30.0),
            ("resnet101", 200, 0.05, 1.0, 30.0),
            ("resnet50x2", 156, 0.04, 2.0, 50.0),
        )
    ),
    *(
        row
        for count in (64, 128, 256, 512, 1024, 2048, 4096, 8192)
        for row in (
            (
                f"cmc/fig6-m{count}",
                {
                    "method.negatives": count,
                    **sgd(0.03),
                    **BY_TEXT,
                    **cmc(128, 400, 0.1, (250, 300, 350), IMAGENET_100),
                },
            ),
            (
                f"cmc/fig6-m{count}-code",
                {
                    "method.negatives": count,
                    **sgd(0.03),
                    **BY_CODE,
                    **cmc(128, 240, 0.1, (120, 160, 200), IMAGENET_100),
                },
            ),
        )
    ),
    ("cmc/stl10-*", {"augmentation.size": 64, "method.features": 64, "method.temperature": 0.1}),
    ("cmc/stl10-*", probe("layers", hidden=[0, 200], layers=["conv5", "fc7"], **OF_STL10)),
    ("cmc/stl10-patch", {**probe("method.optimiser", **ADAM), **cmc(128, 200, 0.2, (120, 160), STL10)}),
    ("cmc/stl10-patch", probe("strided", strided=[16, 8], **OF_STL10)),
    ("cmc/stl10-nce", {"method.optimiser.rate": 0.03, **cmc(128, 320, 0.1, (200, 240, 280), STL10)}),
    ("cmc/fig5-[!d]*", {"method.optimiser.rate": 0.03, **cmc(128, 320, 0.1, (200, 240, 280), STL10)}),
    ("cmc/nyu-*", {**probe("method.optimiser", **ADAM), **cmc(128, 3_000, 0.2, (2_000, 2_400, 2_800), NYU)}),
    ("cmc/nyu-*", {"augmentation.size": 128}),
    (
        "cmc/nyu-full",
        {"segmentation.steps": epochs(200, NYU, 64), "segmentation.baseline_steps": epochs(1_000, NYU, 64)},
    ),
    ("cmc/nyu-*-depth", probe("layers", **OF_STL10)),
    (
        "cmc/ucf101-*",
        {"method.optimiser.rate": 1e-3, "augmentation.flow": 10, **cmc(128, 300, 0.2, (200, 250), UCF101)},
    ),
    # single-pixel contrast, section 5
    (
        "pixels/colors-*",
        {
            "sampler.size": 128,
            "method.widths": [32, 64, 64],
            "method.blocks": [1, 2, 2],
            "method.rate": 1e-3,
            "method.weight_decay": 1e-6,
            "method.warmup": 0.05,
            "method.dropout": 0.1,
            "clip_value": 3.0,
            "augmentation.keep": 0.25,
            "labels.rate": 2e-3,
            "labels.batch": 128,
            "labels.hidden": [150, 100, 50],
        },
    ),
    *(
        (
            f"pixels/colors-{norm}-{weight}",
            {
                "method.within": int(weight) / 100,
                "method.norm": norm,
                "method.features": 32,
                "steps": 30_000,
                "labels.steps": 12_000,
                "seeds": 10,
            },
        )
        for norm in ("inf", "l1", "l2")
        for weight in ("100", "090", "070", "050", "030", "010", "000")
    ),
    *(
        (
            f"pixels/colors-inf-100-d{count}",
            {"method.features": count, "steps": 100_000, "labels.steps": 30_000, "method.within": 1.0},
        )
        for count in (4, 8, 16, 32)
    ),
    *(
        (
            f"pixels/colors-{norm}-010-long",
            {"method.norm": norm, "method.within": 0.1, "steps": 100_000, "labels.steps": 30_000, "seeds": 5},
        )
        for norm in ("inf", "l1", "l2")
    ),
    (
        "pixels/rooms",
        {
            "method.widths": [16, 16, 32, 32, 64],
            "method.blocks": [1, 1, 1, 2, 4],
            "method.features": 32,
            "sampler.pairs": 32,
            "method.within": 1.0,
            "method.norm": "inf",
            "augmentation.keep": 0.125,
            "augmentation.size": 256,
        },
    ),
]
"""Patterns of names, and what the presets of these names have; a preset without such a setting is not concerned."""

WHOLE = {name: preset for name, preset in presets().items() if "-small" not in name and "/" in name}


def settings_of(name: str) -> dict[str, Any]:
    preset = WHOLE[name]
    found = {**flatten(preset), "seeds": preset.seeds}
    found |= {f"data.options.{key}": value for key, value in found.get("data.options", ())}
    if "sampler.sets" in found:
        found["batch"] = found["sampler.sets"] * found["sampler.size"]
    elif name.startswith("orbits/"):
        found["batch"] = found["sampler.size"]
    for evaluation, one in preset.evaluations.items():
        found |= {f"{evaluation}.{key}": value for key, value in describe(one).items()}
    return found


def spread(values: dict[str, Any]) -> dict[str, Any]:
    """Without nesting: ``probes.*`` stands for several settings."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= {f"{name[:-1]}{key}": one for key, one in value.items()} if name.endswith(".*") else {name: value}
    return found


@pytest.mark.parametrize("number", range(len(SAID)), ids=[pattern for pattern, _ in SAID])
def test_presets_have_the_numbers_of_their_papers(number: int) -> None:
    pattern, said = SAID[number]
    names = [name for name in WHOLE if fnmatchcase(name, pattern)]
    assert names, f"no preset is named {pattern}"
    for setting, value in spread(said).items():
        having = [name for name in names if setting in settings_of(name)]
        assert having, f"no preset of {pattern} has a setting {setting}"
        for name in having:
            found = settings_of(name)[setting]
            assert found == value, f"{name} has {setting} = {found}, where the paper or its code has {value}"


def test_three_hues_are_inactive_where_the_figures_say_so() -> None:
    for name in ("abc/fig3b", "abc/fig3d", "abc/fig4c", "abc/fig4c-random"):
        assert sorted(settings_of(name)["sampler.inactive"]) == HUES
    assert len(settings_of("abc/fig4b")["sampler.inactive"]) == 2
