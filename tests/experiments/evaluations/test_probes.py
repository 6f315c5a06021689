"""Probes on another split, with copies, candidates of C and neighbours: direct calls, and what may not leak."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import LightningModule  # noqa: E402

from setsup import evaluation  # noqa: E402
from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.evaluation.held_out import held_out  # noqa: E402
from setsup.experiments.evaluations import Probes  # noqa: E402
from setsup.experiments.evaluations.rows import draw_sample, shared_rows  # noqa: E402
from setsup.experiments.result_cache import PartStore  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402
from tests.experiments.numbered import Numbered, trained  # noqa: E402


class Noisy(LightningModule):
    """A vector a row: its shape as a number, with noise, and noise."""

    noise = np.random.default_rng(2).normal(size=(4_000, 6)).astype(np.float32)

    def embed(self, batch: Any) -> torch.Tensor:
        numbers = batch["image"].long().flatten(2) @ torch.tensor([256, 1])
        found = torch.from_numpy(self.noise)[numbers % 4_000]
        found[..., 0] += 1.5 * batch["factors"]["shape"].float()
        return found


@dataclass(frozen=True)
class NextRow:
    """An augmentation that shows the next row, of 4,000; with its seed it may show another."""

    far: int = 1

    def build(self, dataset: Any, seed: int) -> Any:
        return _Next(self.far + seed % 3)


@dataclass(frozen=True)
class _Next:
    far: int

    def __call__(self, batch: Any) -> Any:
        low = batch["image"][..., -1:].int() + self.far
        image = torch.cat([batch["image"][..., :-1], (low % 250).to(torch.uint8)], dim=-1)
        return {**batch, "image": torch.stack([image, image], dim=2)}  # two copies, of which one is taken


def by_hand(some: Any, samples: int) -> tuple[Any, Any, Any, Any]:
    """Embeddings and shapes of the training rows and of the test."""
    whole = some.dataset
    test = whole.where("split == 'test'")
    rows = np.flatnonzero(whole.factors.codes("split") == 0)
    picked = [row for row in some.sample(len(whole)) if row in set(rows)][:samples]
    tested = some.sample(samples, test.factors)
    return (
        some.embed(whole, np.array(picked)),
        whole.factors.codes("shape", np.array(picked)),
        some.embed(test, tested),
        test.factors.codes("shape", tested),
    )


def test_on_another_split_nothing_of_it_is_fitted_or_chosen_on() -> None:
    """All rows are trained on here; those of the split that is tested are left out of the fit."""
    some = trained(Noisy(), Numbered(1_200), seed=3)
    how: dict[str, Any] = {"classifiers": ("logistic", "svm"), "c": (0.01, 1.0), "knn": (1, 9)}
    found = Probes(factors=("shape",), samples=300, split="test", **how).measure(some).values
    fit, labels, test, wanted = by_hand(some, 300)
    expected: dict[str, Any] = {}
    for front, loss in (("", "logistic"), ("svm ", "squared_hinge")):
        direct = evaluation.linear_classifier(fit, labels, test, wanted, loss=loss, c=(0.01, 1.0), seed=3)
        expected |= {f"{front}accuracy: shape": direct.accuracy, f"{front}c: shape": direct.c}
    for k in (1, 9):
        expected[f"accuracy of {k} neighbours: shape"] = evaluation.accuracy(test, fit, wanted, labels, k).value
    expected["majority: shape"] = (wanted == np.bincount(labels).argmax()).mean()
    assert found == expected
    assert list(found) == list(expected)


def test_copies_are_fitted_and_not_tested() -> None:
    some = trained(Noisy(), Numbered(1_200), seed=3)
    measure = Probes(factors=("shape",), samples=300, augment=NextRow(), copies=2, c=(1.0,), knn=(1,))
    found = measure.measure(some).values
    rows = some.sample(300)
    labels, points = some.dataset.factors.codes("shape", rows), some.embed(rows=rows)
    away = held_out(300, 3, labels.astype(np.int64))
    plain = evaluation.linear_classifier(points[~away], labels[~away], points[away], labels[away], c=(1.0,))
    assert found["accuracy: shape"] != plain.accuracy
    assert found["accuracy of 1 neighbours: shape"] == (
        evaluation.accuracy(points[away], points[~away], labels[away], labels[~away]).value
    ), "neighbours are of images as they are"
    assert found == measure.measure(some).values
    one = Probes(factors=("shape",), samples=300, augment=NextRow(), c=(1.0,)).measure(some).values
    assert one["accuracy: shape"] != plain.accuracy


def test_a_recipe_gives_its_augmented_image(monkeypatch: pytest.MonkeyPatch) -> None:
    import setsup.experiments.evaluations.probes as module

    view = module._OneView(lambda batch: {**batch, "positive_image": batch["image"] + 1})
    assert view({"image": torch.zeros(1, 2, 3, 4, 4)})["image"].unique().tolist() == [1]


class Angled(Numbered):
    """There is an angle, too."""

    def __init__(self) -> None:
        super().__init__(600)
        table = self.factors
        columns = {name: table.codes(name) for name in table.names}
        angle = np.where(np.arange(600) % 50, Noisy.noise[:600, 1] * 2 + 1, np.nan).astype(np.float32)
        self.factors = FactorTable([*table.factors, Factor("angle", Kind.CONTINUOUS)], columns | {"angle": angle})


def test_numbers_on_another_split() -> None:
    some = trained(Noisy(), Angled())
    found = Probes(factors=("angle", "shape"), split="test").measure(some).values
    assert found["R²: angle"] == pytest.approx(1)
    assert Probes(factors=("angle",)).measure(some).values["R²: angle"] == pytest.approx(1)


def test_parts_are_by_factor_and_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = trained(Noisy(), Numbered(900), store=PartStore(tmp_path, {}))
    asked: list[str] = []
    whole = evaluation.linear_classifier
    monkeypatch.setattr(
        evaluation, "linear_classifier", lambda *a, loss, **k: asked.append(loss) or whole(*a, loss=loss, **k)
    )
    first = Probes(factors=("shape",), samples=200).measure(some).values
    both = Probes(factors=("shape", "size"), samples=200, knn=(3,)).measure(some).values
    Probes(factors=("shape",), samples=200, classifiers=("svm", "logistic")).measure(some)
    assert asked == ["logistic", "logistic", "squared_hinge"]
    assert {name: both[name] for name in first} == first


def test_rows_that_two_selections_share() -> None:
    whole = Numbered(20)
    train, test = (whole.where(f"split == '{name}'") for name in ("train", "test"))
    assert shared_rows(whole, test).tolist() == (np.arange(20) % 2 == 1).tolist()
    assert not shared_rows(train, test).any()
    assert not shared_rows(whole, Numbered(20, name="other")).any()
    with pytest.raises(SetsupError, match="training used all rows of numbered"):
        draw_sample(trained(Noisy(), test), ("shape",), 5, without=test)


def test_another_split_with_other_levels_is_refused() -> None:
    class Other(Numbered):
        def where(self, expression: str) -> Any:  # type: ignore[override]
            other = Numbered(40, name="other")
            kinds = [Factor("shape", Kind.NOMINAL, (7, 8, 9, 10))]
            other.factors = FactorTable(kinds, {"shape": np.arange(40) % 4})
            return other

    with pytest.raises(DataError, match="the levels of the factor 'shape' differ between the split 'test' and"):
        Probes(factors=("shape",), split="test").measure(trained(Noisy(), Other(40)))


@pytest.mark.parametrize("wrong", [{"c": (0.0,)}, {"knn": (0,)}, {"copies": 0}])
def test_settings_out_of_range(wrong: Any) -> None:
    with pytest.raises(SetsupError):
        Probes(factors=("shape",), **wrong)
