"""Presets of the orbit papers on digits: what a step gets, that all methods train, and what reports compare."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

import itertools
from dataclasses import replace

import torch

from setsup.errors import SetsupError
from setsup.experiments import RunConfig, evaluate, find_preset, find_report, presets, smoke, train
from setsup.experiments.configs import build_method, build_transform
from setsup.loading import Loader
from tests.true_files import mnist

DIGITS = sorted(name for name in presets() if name.startswith(("orbits/mnist-", "orbits/even-odd-")))
SMALL = [name for name in DIGITS if name.endswith("-small")]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mnist")
    mnist.write(folder, per_split=600)
    return folder


def first_batch(name: str, digits: Path) -> tuple[dict, object]:
    preset = find_preset(name)
    dataset = preset.data.open(digits)
    sampler = preset.sampler.build(dataset, 0)
    transform = build_transform(preset.augmentation, dataset, 0)
    loader = Loader(dataset, sampler, modalities=preset.data.modalities, transform=transform, workers=0)
    return next(iter(loader)), dataset


@pytest.mark.parametrize("name", SMALL)
def test_what_a_step_gets(name: str, digits: Path) -> None:
    batch, _ = first_batch(name, digits)
    end = name.removesuffix("-small").split("-", maxsplit=2 if "even" in name else 1)[-1].removeprefix("odd-")
    sets, size = batch["image"].shape[:2]
    assert batch["image"].shape == (sets, size, 1, 40, 40)
    assert sets * size == 128
    sources, classes = batch["factors"]["source"], batch["factors"]["digit"]
    if end in ("oj", "ot", "ot-stn"):
        assert len(set(sources[:, 0].tolist())) == sets == 16
        assert bool((sources == sources[:, :1]).all())
    elif end.startswith("st"):
        assert size == 8
        assert bool((classes == classes[:, :1]).all())
        assert len(set(sources.flatten().tolist())) > 64
    else:
        assert size == 1
        assert len(set(sources.flatten().tolist())) > 64
    if end in ("oj", "oe"):
        assert batch["canonical_image"].shape == (sets, 1, 40, 40)
    if "even" in name:
        assert set((classes % 2).flatten().tolist()) == {0}


def test_the_canonical_image_is_the_digit_in_the_middle(digits: Path) -> None:
    batch, dataset = first_batch("orbits/mnist-oj-small", digits)
    rows = batch["indices"][:, 0].numpy() // 33 * 33
    shown = dataset.fetch(rows, ["original"])["original"]
    assert np.array_equal(batch["canonical_image"][:, 0, 6:34, 6:34].numpy(), shown[..., 0])
    assert int(batch["canonical_image"].sum()) == int(shown.sum())


@pytest.mark.parametrize("name", [name for name in DIGITS if name.count("-") < 5])
def test_data_of_the_training_and_of_the_test_share_no_orbit(name: str, digits: Path) -> None:
    preset = find_preset(name)
    trained, tested = (data.open(digits).factors.codes("source") for data in (preset.data, preset.datasets["test"]))
    assert len(trained)
    assert len(tested)
    assert not set(trained) & set(tested)


def test_images_are_rendered_in_the_order_of_the_dataset(digits: Path) -> None:
    preset = find_preset("orbits/mnist-oj-small")
    order = ("translate", "scale", "shear", "rotate")
    data = replace(preset.data, options=(("order", order),))
    dataset = data.open(digits)
    rows = np.arange(40)
    batch = {"original": torch.from_numpy(dataset.fetch(rows, ["original"])["original"]).movedim(-1, 1)[None]}
    batch["factors"] = {
        name: torch.as_tensor(dataset.factors.column(name).take(rows))[None]
        for name in ("rotation", "shear", "scale", "translation_x", "translation_y")
    }
    shown = dataset.fetch(rows, ["image"])["image"][..., 0].astype(int)
    found = build_transform(preset.augmentation, dataset, 0)(batch)["image"][0, :, 0].numpy()
    assert np.abs(found - shown).max() <= 1
    usual = build_transform(preset.augmentation, preset.data.open(digits), 0)(batch)["image"][0, :, 0].numpy()
    assert np.abs(usual - shown).max() > 100


def test_networks_have_the_parameters_of_the_paper(digits: Path) -> None:
    # four stages of two 3 × 3 convolutions with biases and normalisation, and a layer of 1,024
    widths = [1, 16, 16, 32, 32, 64, 64, 128, 128]
    encoder = sum(9 * a * b + b + 2 * b for a, b in itertools.pairwise(widths)) + (512 + 1) * 1024
    decoder = 512 + sum(widths[:-1]) + 2 * sum(widths[1:-1])  # tied: its own biases and normalisation
    table = find_preset("orbits/mnist-oj").data.open(digits).factors
    counts = {}
    for end in ("ot", "oj", "ex"):
        method = build_method(find_preset(f"orbits/mnist-{end}").method, table, 0)
        counts[end] = sum(one.numel() for one in method.parameters())
    assert counts == {"ot": encoder, "oj": encoder + decoder, "ex": encoder + 1025 * 500}


@pytest.mark.long("trainings")
@pytest.mark.parametrize("end", ["mnist-oj", "mnist-ex", "mnist-st-stn", "even-odd-oe"])
def test_one_of_each_kind_trains_and_is_compared_with_the_table(end: str, tmp_path: Path, digits: Path) -> None:
    preset = smoke(find_preset(f"orbits/{end}-small"))
    run = train(preset, tmp_path / "run", root=digits, config=RunConfig(workers=0))
    values = evaluate(run, device="cpu")["oneshot"].values
    assert 0 <= values["any member"] <= 1
    assert set(values) == {"any member", "any member: spread", "original only", "original only: spread"}
    report = find_report(f"orbits/{end}-small")
    assert any(row.preset == f"orbits/{end}-small" for row in report.rows)
    assert report.references["the paper"][report.rows[0].label, "any member"] in ((0.97, 0.02), (0.49, 0.08))


def test_the_joint_loss_needs_canonical_images(digits: Path) -> None:
    batch, dataset = first_batch("orbits/mnist-ot-small", digits)
    method = build_method(find_preset("orbits/mnist-oj-small").method, dataset.factors, 0)
    batch = {name: value for name, value in batch.items() if not name.startswith("canonical")}
    with pytest.raises(SetsupError, match="--canonical 'yaw == 0'"):
        method.loss(batch)
    assert torch.isfinite(build_method(find_preset("orbits/mnist-ot-small").method, dataset.factors, 0).loss(batch))
