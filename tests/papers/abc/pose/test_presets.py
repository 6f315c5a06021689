"""Presets of ABC's tables 1 and 2: settings as stated, and from files in the published formats to the tables."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.experiments import (  # noqa: E402
    RunConfig,
    evaluate,
    find_preset,
    find_report,
    presets,
    smoke,
    train,
)
from setsup.experiments.configs import build_method, build_transform, fit_to_batch  # noqa: E402
from setsup.experiments.report import Spread  # noqa: E402
from setsup.loading import Loader  # noqa: E402
from setsup.samplers import Stepwise  # noqa: E402
from setsup_papers.abc.pose import PoseAugmentation, PoseSets  # noqa: E402
from setsup_papers.abc.pose.ablations import CHANGES  # noqa: E402
from setsup_papers.abc.pose.presets import CATEGORIES, TABLE_1, TABLE_2  # noqa: E402
from tests.true_files import abc_pose  # noqa: E402


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small releases of everything, in the published formats."""
    folder = tmp_path_factory.mktemp("releases")
    abc_pose.write(folder)
    return folder


# Settings


@pytest.mark.parametrize("plural", CATEGORIES)
def test_settings_of_the_tables(plural: str) -> None:
    lookup = find_preset(f"abc/table1-{plural}")
    assert (lookup.steps, lookup.method.temperature, lookup.method.rate, lookup.method.halve_every) == (
        *(40_000, 0.1, 1e-4),
        10_000,
    )
    assert (lookup.sampler.pairs, lookup.sampler.size) == (4, 32)
    titrated = Stepwise(lookup.sampler.real, lookup.sampler.every, lookup.sampler.levels)
    assert titrated.at([0, 39_999]).tolist() == [0, 0.10]
    assert lookup.augmentation.move == 0.1
    assert lookup.data.where == f"category == '{CATEGORIES[plural]}'"
    regression = find_preset(f"abc/table2-{plural}")
    assert (regression.steps, regression.method.temperature, regression.method.halve_every) == (60_000, 0.05, 20_000)
    assert (regression.sampler.real, regression.method.contrast) == (0.02, 1.0)
    assert find_preset(f"abc/table2-{plural}-regression").method.contrast == 0
    for preset in (lookup, regression):
        assert preset.initial_run == "resnet50v2-imagenet"
        assert preset.eval_transform.size == preset.augmentation.size == 128


@pytest.mark.parametrize(
    "name", [name for name in presets() if name.startswith("abc/table") and name.endswith("-small")]
)
def test_small_presets_are_shortened_alike(name: str) -> None:
    small, whole = find_preset(name), find_preset(name.removesuffix("-small"))
    if "features" in name:
        assert (small.steps, small.initial_run, small.method.image) == (1, "resnet50v2-imagenet", (64, 64))
        return
    assert small.initial_run is None
    assert small.steps == 1_500
    for part, setting in (("method", "halve_every"), ("sampler", "every")):
        before, after = (getattr(getattr(preset, part), setting, None) for preset in (whole, small))
        assert after == (None if before is None else before * 1_500 / whole.steps)
    assert getattr(small.sampler, "pairs", 1) == 1
    assert getattr(small.method, "encoder", "small") == "small"
    for amount in ("move", "brightness", "hue", "noise", "sobel"):
        assert getattr(small.augmentation, amount, 0) == getattr(whole.augmentation, amount, 0) / 2
    backgrounds = 0 if "chairs" in small.name else getattr(whole.augmentation, "backgrounds", None)
    assert getattr(small.augmentation, "backgrounds", backgrounds) == backgrounds
    assert small.data.substitute == "abc-pose-procedural"
    assert dict(small.data.options)["size"] == (64, 64)
    assert small.data.where == whole.data.where


def test_ablations_change_one_thing() -> None:
    for figure, base in (
        ("figS4", "abc/table1-cars"),
        ("figS5", "abc/table2-cars"),
        ("figS4-small", "abc/table1-cars-small"),
    ):
        whole = find_preset(base)
        stem, _, small = figure.partition("-")
        for change in CHANGES:
            found = find_preset(f"abc/{stem}-{change.end}" + (f"-{small}" if small else ""))
            parts = ("sampler", "augmentation", "method", "data", "steps", "initial_run")
            changed = [part for part in parts if getattr(found, part) != getattr(whole, part)]
            far = change.end == "move-0.2"
            assert len(changed) <= 1 or (far and changed == ["augmentation", "data"]), found.name
            margin = dict(found.data.options).get("margin", 0.1)
            assert margin == (0.2 if far else 0.1)
            assert margin >= found.augmentation.move
            assert found.seeds == {"figS4": 8, "figS5": 10, "figS4-small": 1}[figure]
    titrated, constant = (find_preset(f"abc/figS4-{kind}-0.05").sampler for kind in ("real", "constant"))
    assert (titrated.real, titrated.every, constant.real, constant.every) == (0.05, 4_000, 0.05, None)
    stronger = find_preset("abc/figS4-augmentation-2").augmentation
    assert (stronger.brightness, stronger.hue, stronger.noise, stronger.sobel, stronger.move) == (
        0.4,
        0.5,
        0.1,
        0.4,
        0.1,
    )
    assert find_preset("abc/figS4-l2sq-10").method.similarity == "l2sq"
    assert find_preset("abc/figS5-size-64").sampler.size == 64


# Reports


def test_tables_have_the_numbers_of_the_paper() -> None:
    rows = {"ABC": (12.8, 0.72), "ABC without real images": (14.7, 0.66), "CC-VAE": (54.8, 0.26)}
    said = find_report("abc/table1-cars").references["the paper"]
    for row, (median, share) in rows.items():
        assert (said[row, "median error"], said[row, "Acc@30"]) == (median, share)
    for number, table in ((1, TABLE_1), (2, TABLE_2)):
        for plural in CATEGORIES:
            report = find_report(f"abc/table{number}-{plural}")
            labels = {row.label for row in report.rows} - {"random network"}
            assert {row for row, _ in report.references["the paper"]} == labels
            assert len(labels) == len(table)
    chairs = find_report("abc/table2-chairs").references["the paper"]
    assert chairs["Spherical regression", "median error"] == 30.8


def test_claims_name_by_how_much_they_fail() -> None:
    claims = find_report("abc/table1-cars-small").claims

    def means(median: float, share: float) -> dict[str, Spread]:
        return {"median error": Spread(median, None, 1), "Acc@30": Spread(share, None, 1)}

    found = {"ABC": means(20, 0.6), "ABC without real images": means(25, 0.5), "CC-VAE": means(19, 0.4)}
    assert claims[1].criterion(found) == (True, "ABC 20.0°, 0.60; ABC without real images 25.0°, 0.50")
    held, words = claims[0].criterion(found)
    assert held is False
    assert words.endswith("CC-VAE 19.0°, 0.40 (ABC is 1.0° above)")
    assert claims[0].criterion({"ABC": found["ABC"]})[0] is None
    regression = find_report("abc/table2-cars").claims[0]
    labels = regression.rows
    falling = {label: means(10 - place, 0.5) for place, label in enumerate(labels)}
    assert regression.criterion(falling)[0] is True
    assert regression.criterion({**falling, labels[0]: means(1, 0.5)})[0] is False
    assert regression.criterion({})[0] is None


# From files to tables


TABLES = [
    f"abc/table{number}-{plural}{end}{small}"
    for number, table in ((1, TABLE_1), (2, TABLE_2))
    for plural in CATEGORIES
    for end in table
    for small in ("", "-small")
]


@pytest.mark.long("trainings")
@pytest.mark.parametrize("name", TABLES)
def test_its_first_batch_fits_its_method(name: str, releases: Path) -> None:
    preset = smoke(find_preset(name))
    dataset = preset.data.open(releases)
    transform = build_transform(preset.augmentation, dataset, 0)
    sampler = preset.sampler.build(dataset, 0)
    batch = next(iter(Loader(dataset, sampler, modalities=preset.data.modalities, transform=transform, workers=0)))
    box = preset.eval_transform.size
    copies = (2,) if isinstance(preset.augmentation, PoseAugmentation) else ()
    assert batch["image"].shape[2:] == (*copies, 3, box, box)
    real = batch["factors"]["source"] == dataset.factors["source"].code("real")
    if not getattr(preset.sampler, "real", 0):
        assert not real.any()
    if isinstance(preset.sampler, PoseSets) and preset.sampler.constrained:
        objects = batch["factors"]["object"][::2]
        assert (objects == objects[:, :1]).all()
        assert not real[::2].any()
    method = build_method(fit_to_batch(preset.method, batch), dataset.factors, 0)
    if "features" not in name:
        method.log = lambda *words: None  # no trainer is there to log to
        loss = method.loss(batch)
        assert loss.shape == ()
        assert math.isfinite(loss.item())
    with torch.no_grad():
        plain = preset.eval_transform.build(dataset, 0)
        images = torch.from_numpy(dataset.fetch([[0, 1]], ["image"])["image"]).movedim(-1, -3)
        found = method.eval().embed(plain({"image": images, "step": 0}))
    found = found["embedding"] if isinstance(found, dict) else found
    assert found.shape[:2] == (1, 2)
    dimensions = {"-features": 16_384, "-features-small": 4_096}
    end = name.removeprefix("abc/table1-cars").removeprefix("abc/table1-chairs")
    assert found[0, 0].numel() == dimensions.get(end, 64)


def trained(name: str, folder: Path, root: Path, **more: Any) -> dict[str, Any]:
    """Values of a preset that is shrunk, trained and measured."""
    preset = replace(smoke(find_preset(name)), **more)
    run = train(preset, folder, root=root, config=RunConfig(workers=0, accelerator="cpu"))
    return {key: measured.values for key, measured in evaluate(run, run.preset, device="cpu").items()}


MEASURED = ("table1-cars-small", "table1-cars", "table1-chairs-ml-vae-small", "table2-chairs-small")


@pytest.mark.long("trainings")
@pytest.mark.parametrize("name", [MEASURED[0], *(pytest.param(name, marks=pytest.mark.smoke) for name in MEASURED[1:])])
def test_genuine_files_lead_to_the_tables(name: str, releases: Path, tmp_path: Path) -> None:
    more = {"initial_run": None}  # weights that nobody has here
    values = trained(f"abc/{name}", tmp_path / "seed-0", releases, **more)
    [found] = values.values()
    assert 0 <= found["median error"] <= 180
    assert 0 <= found["Acc@15"] <= found["Acc@30"] <= 1
    assert found["images"] > 0
