"""Measurements on held-out orbits: against direct calls, and what depends on which seed."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from lightning.pytorch import LightningModule  # noqa: E402

from setsup import evaluation  # noqa: E402
from setsup.datasets import Dataset, Modality, fetch_request  # noqa: E402
from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments.result_cache import PartStore  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402
from setsup_papers.orbits.evaluations import OneShot, SampleComplexity  # noqa: E402
from setsup_papers.orbits.orbit_rows import draw_rows, number  # noqa: E402
from setsup_papers.orbits.verification import Verification  # noqa: E402
from tests.experiments.numbered import trained  # noqa: E402

CLASSES, OBJECTS, VIEWS, LIGHTS = 3, 8, 4, 2


class Objects(Dataset):
    """Eight objects of each of three classes, seen from four sides in two lights; the first halves are trained on."""

    def __init__(self, by_object: bool = True) -> None:
        shape = (CLASSES, OBJECTS, VIEWS, LIGHTS)
        codes = [axis.reshape(-1) for axis in np.indices(shape)]
        split = codes[1] % 2 if by_object else codes[2] % 2
        names = dict(zip(("class", "object", "view", "light"), codes, strict=True))
        levels = [
            Factor(name, Kind.NOMINAL, tuple(range(count)), within="class" if name == "object" else None)
            for name, count in zip(names, shape, strict=True)
        ]
        self.name = "objects"
        self.factors = FactorTable(
            [*levels, Factor("split", Kind.NOMINAL, ("train", "test"), role="split")], names | {"split": split}
        )
        self.modalities = {"image": Modality((2, 2, 1), "uint8", color="grey")}

    def fetch(self, indices: Any, modalities: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        rows, names = fetch_request(self, indices, modalities)
        table = self.factors
        noise = np.random.default_rng(0).integers(0, 90, (len(table), 4))
        values = noise + 40 * np.asarray(table.codes("class"))[:, None]
        return {name: values[rows].astype(np.uint8).reshape(*rows.shape, 2, 2, 1) for name in names}


class Values(LightningModule):
    def embed(self, batch: Any) -> torch.Tensor:
        return batch["image"].float().flatten(2)


class _Parted:
    """The split that is trained on is named train."""

    def __init__(self, whole: Dataset) -> None:
        self.whole, self.name, self.modalities, self.substitute = whole, whole.name, None, None

    def open(self, root: Any = None, *, substitute: bool = False, split: str | None = None) -> Dataset:
        return self.whole.where(f"split == '{split or 'train'}'")


class _Config:
    """Something was trained."""

    def build(self, table: Any, generator: Any) -> LightningModule:
        return Values()


ONE_SHOT = OneShot(factor="class", orbit=("object", "light"), group=("object",), splits=6, original="view == 0")


def run(dataset: Dataset | None = None, **options: Any) -> Any:
    data = _Parted(Objects() if dataset is None else dataset)
    return trained(Values(), data.whole, config=_Config(), data=data, **options)


def test_one_shot_equals_direct_calls() -> None:
    some = run()
    found = ONE_SHOT.measure(some)
    test = some.open(split="test")
    table = test.factors
    labels = table.codes("class")
    objects = labels * OBJECTS + table.codes("object")
    orbits = objects * LIGHTS + table.codes("light")
    points = test.fetch(np.arange(len(test)))["image"].reshape(len(test), -1)
    within = ~evaluation.draw_parts(objects, labels, 6)
    for name, candidates in (("any member", None), ("original only", table.codes("view") == 0)):
        drawn = evaluation.draw_labelled(labels, orbits, 6, candidates=candidates, within=within)
        expected = evaluation.one_shot_accuracy(points, labels, orbits, drawn, within=within)
        assert found.curves[name] == (list(range(6)), expected.tolist())
        assert found.values[name] == expected.mean()
        assert found.values[f"{name}: spread"] == pytest.approx(expected.std(ddof=1))


def test_runs_of_other_seeds_have_the_same_re_splits() -> None:
    one, other = (ONE_SHOT.measure(run(seed=seed)).curves for seed in (0, 7))
    assert one == other
    assert one != replace(ONE_SHOT, resplit_seed=1).measure(run()).curves
    assert one != replace(ONE_SHOT, part="validation").measure(run()).curves


def test_baselines_are_measured_on_the_same_re_splits() -> None:
    """The embedding is the pixels, trained or not."""
    found = replace(ONE_SHOT, baselines=("pixels", "untrained")).measure(run())
    for variant in ("any member", "original only"):
        assert found.curves[f"pixels: {variant}"] == found.curves[variant]
        assert found.curves[f"untrained: {variant}"] == found.curves[variant]


def test_all_orbits_may_be_test() -> None:
    found = replace(ONE_SHOT, validation=0.0, original=None).measure(run())
    assert set(found.values) == {"any member", "any member: spread"}


def test_an_orbit_that_was_trained_on_is_named() -> None:
    with pytest.raises(
        DataError, match=r"an orbit \(object 0, light 0\) is in both the training data and the test data;"
    ):
        ONE_SHOT.measure(run(Objects(by_object=False)))


def test_rows_are_of_few_groups_and_members() -> None:
    some = run()
    test = some.open(split="test")
    rows = draw_rows(some, test, "class", ("object", "light"), ("object",), per_class=2, members=3)
    assert len(rows.sample.rows) == CLASSES * 2 * LIGHTS * 3
    assert len(np.unique(rows.groups)) == CLASSES * 2
    assert test.factors.codes("view", rows.sample.rows).max() == 2
    with pytest.raises(DataError, match=r"some orbits \(object\) contain images of several groups \(light\)"):
        draw_rows(some, test, "class", ("object",), ("light",))


def test_objects_are_counted_within_their_class() -> None:
    table = Objects().factors
    assert len(np.unique(number(table, ["object"]))) == CLASSES * OBJECTS


def test_sample_complexity_equals_direct_calls_and_keeps_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = run(store=PartStore(tmp_path, {}))
    measure = SampleComplexity(factor="class", orbit=("object", "light"), counts=(1, 4), resamples=3, test=6)
    found = measure.measure(some)
    test = some.open(split="test")
    labels, orbits = test.factors.codes("class"), number(test.factors, ("object", "light"))
    drawn = evaluation.draw_resamples(labels, orbits, 3, most=4, test=6)
    points = test.fetch(np.arange(len(test)))["image"].reshape(len(test), -1)
    expected = evaluation.accuracy_over_labels(points, labels, drawn, (1, 4))
    assert found.curves["accuracy"] == ([1, 4], pytest.approx(expected.mean(axis=0)))
    assert [found.curves[f"resample {row}"][1] for row in range(3)] == expected.tolist()
    assert found.values["orbits"] == len(np.unique(number(some.dataset.factors, ("object", "light"))))
    assert found.values["4 labels"] == expected[:, 1].mean()
    assert found.values["1 label: spread"] == pytest.approx(expected[:, 0].std(ddof=1))
    monkeypatch.setattr(evaluation, "accuracy_over_labels", None)
    assert measure.measure(some) == found


def test_verification_equals_direct_calls() -> None:
    some = run()
    measure = Verification(identity="class", conditions=("view", "light"), orbit=("object",), split="test")
    found = replace(measure, baselines=("pixels",)).measure(some).values
    test = some.open(split="test")
    labels = test.factors.codes("class")
    points = test.fetch(np.arange(len(test)))["image"].reshape(len(test), -1)
    conditions = np.stack([test.factors.codes(name) for name in ("view", "light")], axis=1)
    expected = {
        "AUC": evaluation.verification_auc(points, labels).auc,
        "top-1": evaluation.identity_retrieval(points, labels, conditions).value,
    }
    assert found == expected | {f"pixels: {name}": value for name, value in expected.items()}
    few = replace(measure, identities=2).measure(some).values
    assert few["AUC"] == evaluation.verification_auc(points[labels < 2], labels[labels < 2]).auc


def test_shrunk_measurements_run() -> None:
    assert ONE_SHOT.shrunk().measure(run()).values
    assert SampleComplexity(factor="class", orbit=("object",)).shrunk().measure(run()).values
    some = Verification(identity="class", conditions=("view",), orbit=("object",), split="test")
    assert some.shrunk().measure(run()).values


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: OneShot(validation=1.0), "validation must be at least 0 and below 1"),
        (lambda: OneShot(splits=0), "splits 1 or more"),
        (lambda: OneShot(part="validation", validation=0.0), "must be above 0 to evaluate on"),
        (lambda: OneShot(groups=0), "groups must be 1 or more, or None for all, not 0"),
        (
            lambda: SampleComplexity(factor="class", orbit=("object",), counts=()),
            "counts, resamples and test must be 1",
        ),
        (lambda: Verification(conditions=()), "conditions must contain at least one condition"),
        (lambda: replace(ONE_SHOT, baselines=("pixel",)).measure(run()), "baselines must be pixels or untrained"),
        (lambda: replace(ONE_SHOT, orbit=()).measure(run()), "orbit must contain at least one factor"),
    ],
)
def test_settings_that_cannot_be_are_refused(make: Any, words: str) -> None:
    with pytest.raises(SetsupError, match=words):
        make()
