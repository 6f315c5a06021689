"""Settings of contrastive multiview coding: what they build, and runs of one and two processes."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Preset, RunConfig, load_trained, open_run, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.optimisation import SGD, Adam, StepDecay  # noqa: E402
from setsup.loading import Loader  # noqa: E402
from setsup_papers.cmc import BankContrast, BatchContrast, PatchContrast  # noqa: E402
from setsup_papers.cmc.settings import CMCSettings, CrossViewPredictionSettings  # noqa: E402
from tests.experiments.ranks import run_ranks  # noqa: E402
from tests.papers.cmc.viewed import BANKED, ROWS  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
HERE = RunConfig(workers=0, accelerator="cpu")
SEED = 5
pytestmark = pytest.mark.filterwarnings("ignore:You are trying to `self.log")

SCRIPT = """
import sys
from pathlib import Path
from setsup.experiments import RunConfig, train
from tests.papers.cmc.viewed import BANKED

if __name__ == "__main__":
    train(BANKED, Path(sys.argv[1]) / "run", seed=%d, config=RunConfig(devices=2, accelerator="cpu", workers=0))
"""


class Rows:
    """In place of a factor table."""

    def __len__(self) -> int:
        return 20


def build(settings: Any) -> Any:
    return build_method(settings, Rows(), 0)  # type: ignore[arg-type]


def batch_of(**views: Any) -> dict[str, Any]:
    mask = torch.ones(1, 4, dtype=torch.bool)
    return {**views, "mask": mask, "indices": torch.arange(4)[None], "factors": {}}


def test_views_are_named_with_or_without_commas() -> None:
    assert CMCSettings(views=("image,depth", "normals")).views == ("image", "depth", "normals")
    with pytest.raises(
        SetsupError, match=r"shared contains 'frames', which is not one of the views .*; did you mean 'frame'"
    ):
        CMCSettings(views=("frame", "later"), shared=("frames",))


def test_sizes_of_views_are_those_of_the_data() -> None:
    batch = batch_of(
        image=torch.zeros(1, 4, 3, 32, 48, dtype=torch.uint8),
        depth=torch.rand(1, 4, 32, 48),
        normals=torch.rand(1, 4, 32, 48, 3),
        labels=torch.zeros(1, 4, 32, 48, dtype=torch.uint8),
    )
    settings = CMCSettings(views=("image", "depth", "normals", "labels"), encoder="small", width=0.25)
    completed = settings.fit_to(batch)
    assert completed.images == ((3, 32, 48), (1, 32, 48), (3, 32, 48), (1, 32, 48))
    assert completed.fit_to({}) is completed
    method = build(completed)
    assert {name: tuple(found.shape) for name, found in method.embed(batch).items()} == {
        **dict.fromkeys(settings.views, (1, 4, 128)),
        "all": (1, 4, 512),
    }
    assert len(method.contrast.directions) == 12
    assert len(build(replace(completed, pairs="core")).contrast.directions) == 6
    with pytest.raises(SetsupError, match=r"fit_to\(batch\)"):
        build(settings)


@pytest.mark.parametrize(
    ("objective", "kind"),
    [("nce", BankContrast), ("softmax", BankContrast), ("in_batch", BatchContrast), ("patch", PatchContrast)],
)
def test_each_objective_has_a_loss_whose_gradient_reaches_all_weights(objective: Any, kind: type) -> None:
    settings = CMCSettings(objective=objective, encoder="small", width=0.25, negatives=8, projection=16, features=8)
    batch = batch_of(L=torch.rand(1, 4, 1, 16, 16), ab=torch.rand(1, 4, 2, 16, 16))
    method = build(settings.fit_to(batch))
    assert isinstance(method.contrast, kind)
    loss = method.loss(batch)
    loss.backward()
    assert loss.isfinite()
    assert [name for name, weights in method.named_parameters() if weights.grad is None] == []


def test_one_view_is_compared_with_its_own_places() -> None:
    settings = CMCSettings(
        views=("L",), objective="patch", encoder="small", width=0.25, projection=16, patch_layer="conv2"
    )
    batch = batch_of(L=torch.rand(1, 4, 1, 16, 16))
    method = build(settings.fit_to(batch))
    assert method.contrast.directions == (("L", "L"),)
    assert method.loss(batch).isfinite()
    with pytest.raises(SetsupError, match="is the only view"):
        build(replace(settings, objective="nce", images=((1, 16, 16),)))


def test_shared_views_have_one_encoder() -> None:
    settings = CMCSettings(views=("frame", "later", "flow"), shared=("frame", "later"), pairs="core", encoder="small")
    settings = replace(settings, images=((3, 16, 16), (3, 16, 16), (20, 16, 16)))
    method = build(settings)
    assert method.encoders["frame"] is method.encoders["later"]
    assert method.encoders["frame"] is not method.encoders["flow"]
    assert sorted(method.contrast.banks) == ["flow", "frame", "later"]
    with pytest.raises(SetsupError, match="must have the same size"):
        build(replace(settings, images=((3, 16, 16), (3, 16, 32), (20, 16, 16))))


def test_weights_and_banks_are_functions_of_the_seed() -> None:
    settings = CMCSettings(encoder="small", width=0.25, images=((1, 16, 16), (2, 16, 16)))
    states = [build_method(settings, Rows(), seed).state_dict() for seed in (0, 0, 1)]  # type: ignore[arg-type]
    for name in ("encoders.L.stages.conv1.0.weight", "contrast.banks.L.values"):
        assert torch.equal(states[0][name], states[1][name])
        assert not torch.equal(states[0][name], states[2][name])
    assert not torch.equal(states[0]["contrast.banks.L.values"], states[0]["contrast.banks.ab.values"])


def test_the_rate_follows_its_schedule() -> None:
    settings = CMCSettings(
        encoder="small", width=0.25, images=((1, 16, 16), (2, 16, 16)), schedule=StepDecay(factor=0.1, at=(3,))
    )
    method = build(settings)
    method.trainer = SimpleNamespace(estimated_stepping_batches=10)
    found = method.configure_optimizers()
    rates = []
    for _ in range(5):
        rates.append(found["optimizer"].param_groups[0]["lr"])
        found["optimizer"].step()
        found["lr_scheduler"]["scheduler"].step()
    assert rates == pytest.approx([0.03, 0.03, 0.03, 0.003, 0.003])


@pytest.mark.parametrize(("error", "target"), [("l1", "depth"), ("l2", "normals"), ("cross_entropy", "labels")])
def test_prediction_across_views_overfits_a_batch(error: Any, target: str) -> None:
    generator = torch.Generator().manual_seed(0)
    batch = batch_of(
        L=torch.randn(1, 4, 1, 64, 64, generator=generator),
        depth=torch.rand(1, 4, 64, 64, generator=generator),
        normals=torch.rand(1, 4, 64, 64, 3, generator=generator),
        labels=torch.randint(0, 3, (1, 4, 2, 2), generator=generator).repeat_interleave(32, 2).repeat_interleave(32, 3),
    )
    settings = CrossViewPredictionSettings(
        target=target, error=error, classes=3, width=0.125, optimiser=Adam(rate=1e-2), unlabelled=0
    )
    method = build(settings.fit_to(batch))
    method.trainer = SimpleNamespace(estimated_stepping_batches=10)
    optimiser, losses = method.configure_optimizers()["optimizer"], []
    for _ in range(12):
        losses.append(method.loss(batch))
        optimiser.zero_grad()
        losses[-1].backward()
        assert [name for name, weights in method.named_parameters() if weights.grad is None] == []
        optimiser.step()
    assert losses[-1] < 0.8 * losses[0]
    assert method.embed(batch)["L"].shape == (1, 4, 64)


def test_unlabelled_pixels_do_not_count() -> None:
    settings = CrossViewPredictionSettings(target="labels", error="cross_entropy", classes=3, width=0.125)
    labels = torch.randint(0, 3, (1, 4, 64, 64), generator=torch.Generator().manual_seed(0))
    batch = batch_of(L=torch.rand(1, 4, 1, 64, 64), labels=labels)
    method = build(settings.fit_to(batch)).eval()
    logits = method.predict(batch).movedim(1, -1)[labels[0] > 0]
    expected = torch.nn.functional.cross_entropy(logits, labels[0][labels[0] > 0])
    torch.testing.assert_close(method.loss(batch), expected)
    assert method.loss({**batch, "labels": torch.zeros_like(labels)}).item() == 0
    with pytest.raises(SetsupError, match="label 3"):
        method.loss({**batch, "labels": labels + 1})


def state_of(folder: Path, preset: Preset) -> Any:
    return open_run(folder, preset).state()["state_dict"]


@pytest.mark.long("trainings")
def test_a_training_counts_its_draws_and_embeds_all_views_as_one(tmp_path: Path) -> None:
    run = train(replace(BANKED, steps=2), tmp_path, config=HERE)
    state = run.state()["state_dict"]
    assert (state["contrast.normalisers"] > 0).all()
    assert state["contrast.draws"] == 2
    assert load_trained(run, device="cpu").embed(rows=np.arange(5), name="all").shape == (5, 16)


@pytest.mark.smoke
@pytest.mark.long("trainings")
def test_two_processes_equal_one_with_the_draws_of_both_as_one_batch(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT % SEED)
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    run_ranks(tmp_path, str(tmp_path), environment=environment)
    assert BANKED.data is not None
    assert BANKED.sampler is not None
    dataset = BANKED.data.open()
    transform: Any = BANKED.augmentation.build(dataset, SEED)  # type: ignore[union-attr]
    draws = iter(Loader(dataset, BANKED.sampler.build(dataset, SEED), transform=transform, workers=0))
    method: Any = None
    losses = []
    for _ in range(6):
        one, other = next(draws), next(draws)
        joint = {name: torch.cat([one[name], other[name]]) for name in ("L", "ab", "indices", "mask")}
        if method is None:
            assert len(dataset.factors) == ROWS
            settings: Any = BANKED.method
            method = build_method(settings.fit_to(one), dataset.factors, SEED)
            optimiser = SGD(rate=0.05, momentum=0.9).build(
                [{"params": [*method.parameters()], "lr": 0.05, "momentum": 0.9}]
            )
        loss = method.loss(joint | {"factors": {}})
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    found, expected = state_of(tmp_path / "run", BANKED), method.state_dict()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    np.testing.assert_allclose([json.loads(line)["loss"] for line in lines], losses, rtol=1e-4)


@pytest.mark.parametrize("wrong", [{"features": 0}, {"width": 0.0}, {"width": -1.0}, {"projection": -3}])
def test_networks_have_a_positive_size(wrong: dict[str, Any]) -> None:
    with pytest.raises(SetsupError, match=f"{next(iter(wrong))} must be above 0, not"):
        CMCSettings(**wrong)


def test_a_view_without_any_value_in_the_first_batch_is_told(caplog: pytest.LogCaptureFixture) -> None:
    unknown = torch.full((1, 4, 16, 16), torch.nan)
    settings = CMCSettings(views=("L", "depth"), encoder="small")
    with caplog.at_level("WARNING", "setsup"):
        settings.fit_to(batch_of(L=torch.rand(1, 4, 1, 16, 16), depth=unknown))
    assert "the view 'depth' has no finite values in the first 4 images" in caplog.text
    caplog.clear()
    unknown[0, 2, 3, 4] = 1.0
    settings.fit_to(batch_of(L=torch.rand(1, 4, 1, 16, 16), depth=unknown))
    assert not caplog.text


def test_a_batch_larger_than_the_data_names_both_numbers() -> None:
    from setsup.experiments.image_batches import Images

    class Few:
        name, factors = "few", None

        def __len__(self) -> int:
            return 40

    with pytest.raises(SetsupError, match=r"^few has 40 rows, but a step draws 64 images; lower --sampler.size to 40"):
        Images(size=64).build(Few(), 0)  # type: ignore[arg-type]
