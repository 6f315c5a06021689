"""Every preset is whole, from its data to its networks; and one of each kind trains and is measured."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup  # noqa: E402
from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments import Data, Preset, RunConfig, evaluate, find_preset, open_run, presets, smoke, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.settings import flatten, put  # noqa: E402
from setsup.experiments.training.preparing import build_batches  # noqa: E402
from setsup_papers.abc import presets as abc_presets  # noqa: E402
from tests.true_files import mnist  # noqa: E402

SHAPES = setsup.load("shapes3d-procedural")
PRESETS = presets()
TRAINING = [preset.name for preset in abc_presets.PRESETS if preset.method is not None]

# one preset of each method and shape of data: the pair whose second set is free, copies, grey images; the command and
# the documentation train the pair itself, abc/fig3a
KINDS = ["abc/fig4b-random", "abc/augmentation", "abc/mnist"]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a toy MNIST, large enough to be measured on."""
    folder = tmp_path_factory.mktemp("mnist")
    mnist.write(folder, per_split=1_000)
    return folder


def opened(preset: Preset, digits: Path) -> setsup.datasets.Dataset:
    """The substitute dataset, or the toy."""
    assert preset.data is not None
    return preset.data.open(digits) if preset.data.substitute is None else preset.data.open(substitute=True)


@pytest.mark.long("trainings")
@pytest.mark.parametrize("name", TRAINING)
def test_its_first_batch_fits_its_method(name: str, digits: Path) -> None:
    preset = PRESETS[name]
    dataset = opened(preset, digits)
    assert preset.steps >= 500
    assert preset.sampler is not None
    sampler = preset.sampler.build(dataset, 0)
    draw = sampler[0]
    copies = (2,) if preset.augmentation is not None else ()
    # a batch as the loader gives it, of few of its slots: images of 1,024 would take seconds to render
    slots = min(4, draw.indices.shape[1])
    rows = draw.indices[:, :slots]
    images = np.moveaxis(dataset.fetch(np.maximum(rows, 0))["image"], -1, -3)
    images = torch.from_numpy(np.repeat(images[:, :, None], 2, 2) if copies else images)
    method = build_method(preset.method, dataset.factors, 0)
    batch = {"image": images, "mask": torch.from_numpy(rows >= 0)}
    loss = method.loss(batch)
    assert loss.shape == ()
    assert 0 <= loss.item() < math.inf
    assert sum(parameter.numel() for parameter in method.parameters()) == {3: 2_654_688, 1: 239_176}[images.shape[-3]]
    optimiser = method.configure_optimizers()
    assert (type(optimiser), optimiser.defaults["eps"]) == (torch.optim.Adam, 1e-7)
    assert optimiser.defaults["lr"] == {3: 3e-5, 1: 1e-4}[images.shape[-3]]


@pytest.mark.long("trainings")
@pytest.mark.parametrize("name", TRAINING)
def test_its_sets_hold_what_they_should(name: str, digits: Path) -> None:
    preset = PRESETS[name]
    dataset = opened(preset, digits)
    sampler = preset.sampler.build(dataset, 3)
    held = preset.sampler.inactive
    for step in range(3):
        sets = sampler[step].indices
        assert len(sets) == (1 if preset.augmentation else 2)
        for number, rows in enumerate(sets):
            rows = rows[rows >= 0]
            assert len(set(rows.tolist())) == len(rows)
            levels = [len(np.unique(dataset.factors.codes(factor, rows))) for factor in held]
            if number < len(sets) - preset.sampler.unconstrained:
                assert levels == [1] * len(held)
            else:
                assert max(levels) > 1
        if name == "abc/mnist":
            assert 9 not in dataset.factors.values("digit", sets[sets >= 0])


def test_transforms_of_presets_give_two_copies() -> None:
    preset = smoke(find_preset("abc/augmentation"))
    data = build_batches(preset.open_training(0, substitute=True), workers=0)
    assert data.state_dict() == {"delivered": 0}
    named = {one for preset in PRESETS.values() if isinstance(one := preset.augmentation, str)}
    assert named == {"abc-shapes3d"}
    for name in named:
        setsup.methods.recipes.recipe(name, seed=1)


def test_stand_ins_have_the_factors_of_what_they_stand_for() -> None:
    from setsup.files import load_manifest

    data = [preset.data for preset in PRESETS.values() if preset.data is not None]
    for name, stand_in in {(one.name, one.substitute) for one in data if one.substitute is not None}:
        genuine, substitute = load_manifest(name), load_manifest(stand_in)
        assert [factor.name for factor in genuine.factors] == [factor.name for factor in substitute.factors], name
        assert genuine.samples == substitute.samples, name
        if stand_in == "shapes3d-procedural":  # others are rendered first; their tests compare what was rendered
            opened = setsup.load(stand_in)
            assert [factor.name for factor in genuine.factors] == list(opened.factors.names)
            assert len(opened) == genuine.samples


@pytest.mark.parametrize("counts", [{"steps": -1}, {"seeds": 0}, {"checkpoint_every": 0}])
def test_counts_that_are_too_small(counts: dict[str, int]) -> None:
    with pytest.raises(
        SetsupError, match="abc/mnist: steps must be 0 or more, and seeds and checkpoint_every 1 or more"
    ):
        replace(find_preset("abc/mnist"), **counts)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"data": None}, "abc/mnist must set all of data, sampler and method, or none of these; missing: data"),
        ({"sampler": None}, "abc/mnist must set all of data, sampler and method, or none of these; missing: sampler"),
        (
            {"sampler": None, "method": None},
            "abc/mnist must set all of data, sampler and method, or none of these; missing: sampler and",
        ),
        ({"steps": 0}, "abc/mnist: steps must be 1 or more with a method, not 0"),
        ({"data": None, "sampler": None, "method": None}, "abc/mnist: steps must be 0 without a method, not 500"),
    ],
)
def test_what_trains_is_whole(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SetsupError, match=f"^{sentence}"):
        replace(find_preset("abc/mnist"), **changed)


@pytest.mark.parametrize("name", ["class", "only", "root", "device", "json", "help", "k-nn", "a/b", "", "_a", "1st"])
def test_names_that_no_evaluation_can_have(name: str) -> None:
    preset = find_preset("abc/mnist")
    with pytest.raises(SetsupError, match=r"^abc/mnist cannot use the name '.*' for an evaluation") as caught:
        replace(preset, evaluations=dict.fromkeys([name], preset.evaluations["style"]))
    assert repr(name) in str(caught.value)


def test_rows_and_options_of_the_data(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = replace(find_preset("abc/mnist").data, where="digit in (3, 5)")
    opened = data.open(digits)
    assert set(opened.factors.values("digit")) == {3, 5}
    assert set(opened.factors.values("split")) == {"train"}
    assert set(data.open(digits, split="test").factors.values("split")) == {"test"}
    asked = []
    monkeypatch.setattr("setsup.opening.load", lambda *words, **options: asked.append((words, options)) or [0])
    some = Data("pascal3d", "train", "mnist", "a == 1", (("size", (64, 32)), ("margin", 0.1)))
    some.open("there")
    some.open("there", substitute=True)
    assert asked == [
        (("pascal3d", "there", "train", "a == 1"), {"size": (64, 32), "margin": 0.1}),
        (("mnist", "there", "train", "a == 1"), {}),
    ]
    assert put(Data("pascal3d"), json.loads(json.dumps(flatten(some)))) == some


def test_data_are_never_replaced_silently() -> None:
    with pytest.raises(DataError, match="setsup fetch shapes3d"):
        find_preset("abc/fig3a").data.open()
    with pytest.raises(SetsupError, match="mnist has no substitute; omit --substitute"):
        find_preset("abc/mnist").data.open(substitute=True)


def trained_and_measured(name: str, folder: Path, digits: Path) -> None:
    """The preset shrunk: it trains, what is asked of it is measured, and all is there when the run is opened again."""
    preset = smoke(find_preset(name))
    substitute = preset.data is not None and preset.data.substitute is not None
    run = train(preset, folder, root=None if substitute else digits, substitute=substitute, config=RunConfig(workers=0))
    assert run.finished
    assert run.progress().steps == min(4, find_preset(name).steps)
    again = open_run(folder)
    assert again.preset == preset
    found = evaluate(again, device="cpu")
    assert list(found) == list(preset.evaluations)
    kept = open_run(folder).results()
    assert list(kept) == list(found)
    for evaluation, measured in found.items():
        assert kept[evaluation]["values"] == pytest.approx(dict(measured.values), nan_ok=True)
        assert measured.values or measured.curves
        for picture in kept[evaluation]["pictures"]:
            assert (folder / picture).stat().st_size > 0


@pytest.mark.long("trainings")
@pytest.mark.parametrize("name", KINDS)
def test_one_of_each_kind_trains_and_is_measured(name: str, tmp_path: Path, digits: Path) -> None:
    trained_and_measured(name, tmp_path / "run", digits)


@pytest.mark.smoke
@pytest.mark.parametrize("name", [name for name in TRAINING if name not in KINDS])
def test_all_others_train_and_are_measured(name: str, tmp_path: Path, digits: Path) -> None:
    trained_and_measured(name, tmp_path / "run", digits)


class Without:
    """Settings that lack what is called."""


@pytest.mark.parametrize(
    ("part", "given", "sentence"),
    [
        ("method", Without(), "method must have a method build(table, generator), but Without has none"),
        ("sampler", Without(), "sampler must have a method build(dataset, seed), but Without has none"),
        ("augmentation", Without(), "augmentation must have a method build(dataset, seed), but Without has none"),
        ("eval_transform", Without(), "eval_transform must have a method build(dataset, seed), but Without has none"),
        ("data", "mnist", "data must have a method open(root), but str has none"),
        (
            "method",
            type(find_preset("abc/mnist").method),
            "method must be an instance of ABCSettings, not the class itself",
        ),
        ("sampler", "sets", "sampler must have a method build(dataset, seed), but str has none"),
        (
            "evaluations",
            {"mine": Without()},
            "evaluation 'mine' must have a method measure(trained), but Without has none",
        ),
    ],
)
def test_settings_without_what_is_called_are_refused(part: str, given: object, sentence: str) -> None:
    with pytest.raises(SetsupError, match=f"^mine/first: {re.escape(sentence)}"):
        replace(find_preset("abc/mnist"), name="mine/first", **{part: given})
