"""What an encoder knows: measures of embeddings whose knowledge is known, and results in a folder."""

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from torch import nn  # noqa: E402

from setsup.datasets import Dataset, Modality, fetch_request  # noqa: E402
from setsup.errors import DataError, FactorError, SetsupError  # noqa: E402
from setsup.evaluation import mean_average_precision  # noqa: E402
from setsup.experiments.encoders import (  # noqa: E402
    Encoder,
    FactorKnowledge,
    encoder_run,
    evaluate_encoder,
    open_encoder,
    suitable_factors,
)
from setsup.experiments.encoders.encoder import Pixels  # noqa: E402
from setsup.experiments.encoders.knowledge import _precision_by_chance  # noqa: E402
from setsup.experiments.evaluations import Probes  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402


class Shades(Dataset):
    """Images of two grey pixels: the first shows the level of ``shade``, the second nothing but noise."""

    def __init__(self, rows: int = 600, modality: str = "image", **more: Modality) -> None:
        dice = np.random.default_rng(0)
        self.name = "shades"
        columns = {"shade": dice.integers(0, 3, rows), "other": dice.integers(0, 3, rows), "take": np.arange(rows)}
        columns["split"] = np.arange(rows) % 2
        factors = [Factor(name, Kind.NOMINAL, tuple(range(3))) for name in ("shade", "other")]
        factors += [Factor("take", Kind.NOMINAL, tuple(range(rows)))]
        factors += [Factor("split", Kind.NOMINAL, ("train", "test"), role="split"), Factor("angle", Kind.CONTINUOUS)]
        columns["angle"] = (columns["shade"] * 10 + dice.normal(size=rows)).astype(np.float32)
        self.factors = FactorTable(factors, columns)
        self.images = np.zeros((rows, 1, 2, 1), np.uint8)
        self.images[:, 0, 0, 0] = 40 + 80 * columns["shade"]
        self.images[:, 0, 1, 0] = dice.integers(0, 20, rows)
        self.modalities = {modality: Modality((1, 2, 1), "uint8", color="grey"), **more}

    def fetch(self, indices: Any, modalities: Any = None) -> dict[str, np.ndarray]:
        rows, names = fetch_request(self, indices, modalities)
        return {name: self.images[rows] for name in names}


class Grey(nn.Module):
    """The two pixels, of which encoders get three equal channels."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images[:, 0].flatten(1).float() / 255


def shown(dataset: Dataset, **options: Any) -> Any:
    return encoder_run(Encoder("grey", Grey(), lambda images: images, **options), dataset)


def test_what_is_shown_is_known_and_nothing_else() -> None:
    pytest.importorskip("sklearn")
    run = shown(Shades())
    values = FactorKnowledge(metric="l2sq").measure(run).values
    assert {name.split(": ")[-1] for name in values} == {"shade", "other", "angle"}
    assert values["linear probe: shade"] == values["nearest neighbours: shade"] == 1
    assert values["average precision: shade"] == pytest.approx(1)
    table = run.dataset.factors
    shares = np.bincount(table.codes("shade")) / 600
    entropy = -(shares * np.log(shares)).sum()
    assert entropy - 0.05 < values["information: shade"] <= entropy + 0.01
    # within a set the noise is left, of variance (20² − 1) / 12, beside the shades' 80² · 2 / 3
    noise = (20**2 - 1) / 12 / (80**2 * 2 / 3 + (20**2 - 1) / 12)
    assert values["within-set variance: shade"] == pytest.approx(noise, rel=0.15)
    assert values["within-set variance: other"] == pytest.approx(1, abs=0.02)
    for measure in ("linear probe", "nearest neighbours"):
        assert abs(values[f"{measure}: other"] - values[f"chance: {measure}: other"]) < 0.2
        # an angle is its shade, in steps of 10, and noise of variance 1
        assert values[f"{measure}: angle"] == pytest.approx(1 - 1 / (1 + 100 * 2 / 3), abs=0.01)
    assert abs(values["information: other"]) < 0.1


def test_chance_of_average_precision_is_that_of_all_rankings() -> None:
    """Every order of six rows on a line, whose nearest first is their order."""
    codes = np.array([0, 0, 0, 1, 1, 2])
    found = []
    for query in range(5):  # the only row of its level is left out
        others = [row for row in range(6) if row != query]
        for order in permutations(range(1, 6)):
            ranked = mean_average_precision([[0.0]], np.array(order)[:, None], [codes[query]], codes[others])
            found.append(ranked.value)
    assert _precision_by_chance(codes) == pytest.approx(np.mean(found), rel=1e-9)


def test_estimators_that_train_take_the_place_of_the_linear_bound() -> None:
    pytest.importorskip("sklearn")
    run = shown(Shades())
    linear = FactorKnowledge(factors=("shade",)).measure(run).values
    trained = FactorKnowledge(factors=("shade",), estimator="probe", steps=5).measure(run).values
    assert trained["information: shade"] != linear["information: shade"]
    assert {name: value for name, value in trained.items() if name != "information: shade"} == {
        name: value for name, value in linear.items() if name != "information: shade"
    }


def test_factors_that_cannot_be_measured_are_left_out_or_refused() -> None:
    table, rows = Shades().factors, np.arange(600)
    names, others = suitable_factors(table, rows)
    assert names == ("shade", "other", "angle")
    assert others == {"take": "600 levels of 600 rows, fewer than 5 rows per level", "split": "it defines the split"}
    assert suitable_factors(table, rows, ["split"])[0] == ("split",)
    with pytest.raises(FactorError, match="did you mean 'shade'"):
        suitable_factors(table, rows, ["shadow"])
    with pytest.raises(SetsupError, match="'shade' cannot be measured on 1 rows: it does not vary"):
        suitable_factors(table, rows[:1], ["shade"])
    with pytest.raises(SetsupError, match="none of the factors can be measured on 1 rows"):
        suitable_factors(table, rows[:1])


def test_padding_is_not_encoded_and_parts_make_no_difference() -> None:
    seen: list[int] = []

    class Counted(Pixels):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            seen.append(len(images))
            return super().forward(images)

    encoder = Encoder("counted", Counted(), lambda images: images, batch=4)
    images = torch.arange(2 * 5 * 2).reshape(2, 5, 1, 1, 2).to(torch.uint8)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    found = encoder.embed({"image": images, "mask": mask})
    assert seen == [4, 3]
    expected = torch.cat([images.flatten(2)] * 3, 2) / 255
    assert torch.equal(found[mask], expected[mask])
    assert not found[~mask].any()
    dataset = Shades(300)  # two batches, the second of them padded
    assert np.array_equal(shown(dataset, batch=7).embed(), dataset.images.reshape(300, 2) / np.float32(255))


def test_an_encoder_stays_in_evaluation_mode_without_gradients() -> None:
    encoder = Encoder("dropout", nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(3, 2)), lambda images: images)
    encoder.train()
    assert not any(part.training for part in encoder.modules())
    assert not any(parameter.requires_grad for parameter in encoder.parameters())
    assert not encoder.embed({"image": torch.ones(1, 4, 3, 1, 1)}).requires_grad


def test_the_image_of_several_modalities_is_read() -> None:
    depth = Modality((1, 2, 1), "float32")
    assert encoder_run(open_encoder("pixels", "cpu"), Shades(depth=depth)).method.modality == "image"
    assert shown(Shades(modality="photo", depth=depth)).embed().shape == (600, 2)
    with pytest.raises(DataError, match=r"several image modalities \(left, right\), none of them named 'image'"):
        shown(Shades(modality="left", right=Modality((1, 2, 1), "uint8", color="grey")))
    blind = Shades()
    blind.modalities = {"depth": depth}
    with pytest.raises(
        DataError, match=r"shades has no images \(its modalities: depth\), but an encoder reads one image per row"
    ):
        shown(blind)


@pytest.mark.parametrize("batch", [0, 257])
def test_batches_are_limited(batch: int) -> None:
    with pytest.raises(SetsupError, match="batch"):
        open_encoder("pixels", "cpu", batch=batch)


def test_results_are_kept_with_what_they_are_of(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    run = shown(Shades(), random=True)
    run.folder = tmp_path / "results"
    probes = {"probes": Probes(factors=("shade",), samples=600), "again": Probes(factors=("other",), samples=600)}
    started: list[str] = []
    found = evaluate_encoder(run, probes, only=["probes"], on_start=lambda name, _: started.append(name))
    assert (list(found), started) == (["probes"], ["probes"])
    evaluate_encoder(run, probes, only=["again"])
    results = json.loads((run.folder / "evaluation.json").read_text())
    assert list(results) == ["probes", "again"]
    assert results["probes"]["values"]["accuracy: shade"] == 1
    about = json.loads((run.folder / "encoder.json").read_text())
    assert (about["encoder"], about["random_weights"], about["dataset"], about["rows"]) == ("grey", True, "shades", 600)
    run.seed = 1
    with pytest.raises(
        SetsupError,
        match=r"a different value of seed \(existing: 0, requested: 1\); choose another folder with --out FOLDER, or",
    ):
        evaluate_encoder(run, probes)
    with pytest.raises(SetsupError, match="unknown evaluation 'probe'; did you mean 'probes'"):
        evaluate_encoder(run, probes, only=["probe"])
