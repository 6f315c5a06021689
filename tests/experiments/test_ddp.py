"""Two processes learn the same as one with two draws per step, and one process resumes where two were stopped.

So does state by row: two processes, then one, have that of one process with the draws of all.
"""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Preset, RunConfig, load_trained, open_run, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.experiments.training.counting import StepCounter  # noqa: E402
from setsup.experiments.training.monitoring.validation import ValidationCallback  # noqa: E402
from setsup.random import fold  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from tests.experiments.banked import BANKED, NORMED  # noqa: E402
from tests.experiments.by_hand import draws, looped  # noqa: E402
from tests.experiments.checkpoint_retention import BANKS, CODES, NEGATIVES, initial  # noqa: E402
from tests.experiments.ranks import run_ranks  # noqa: E402
from tests.experiments.small import FEW, PLAIN  # noqa: E402
from tests.experiments.validated import GATHERING, RestlessSettings, hold_out  # noqa: E402

pytestmark = pytest.mark.long("trainings")

ROOT = Path(__file__).resolve().parents[2]
SHAPES = setsup.load("shapes3d-procedural")
SETS = setsup.SetSampler(SHAPES.factors, inactive=["wall_hue"], size=4, sets=2, where=FEW, seed=5)
STEPS = 6
STOPPED = 3
SESSIONS = [(2, 4), (1, 12)]
"""Processes of runs with state by row, and the step at which they stop."""

# Lightning starts the script once more for the second process; the first is asked to stop, and takes it along
SCRIPT = f"""
import json, os, signal, sys
from dataclasses import replace
from pathlib import Path
from setsup.errors import SetsupError
from setsup.experiments import RunConfig, Validation, train
from setsup_papers.abc.method import ABC
from tests.experiments.adversarial import AdversarialSettings
from tests.experiments.banked import BANKED, NORMED
from tests.experiments.checkpoint_retention import BANKS, CODES, Banks, Codes
from tests.experiments.small import PLAIN
from tests.experiments.validated import GATHERING

folder, rank, phase = Path(sys.argv[1]), os.environ.get("LOCAL_RANK", "0"), "whole"
training_step = ABC.training_step

def noted(self, batch, batch_idx):
    with (folder / f"{{phase}}-{{rank}}.jsonl").open("a") as lines:
        print(json.dumps(batch["indices"].tolist()), file=lines)
    if phase == "stopped" and rank == "0" and self.global_step + 1 == {STOPPED}:
        os.kill(os.getpid(), signal.SIGTERM)
    return training_step(self, batch, batch_idx)

def stopping(training_step):
    def stopped(self, batch, batch_idx):
        if rank == "0" and self.global_step + 1 == {SESSIONS[0][1]}:
            os.kill(os.getpid(), signal.SIGTERM)
        return training_step(self, batch, batch_idx)
    return stopped

if __name__ == "__main__":
    ABC.training_step = noted
    two = RunConfig(devices=2, accelerator="cpu", workers=0)
    train(replace(PLAIN, steps={STEPS}), folder / "whole", seed=5, config=two)
    phase = "stopped"
    try:
        train(PLAIN, folder / "stopped", seed=5, config=two)
    except KeyboardInterrupt:
        (folder / f"rank {{rank}} stopped").touch()
    ABC.training_step = training_step
    train(NORMED, folder / "normed", config=two)
    train(replace(PLAIN, steps=4, accumulate=2, clip_norm=1e-2), folder / "accumulated", seed=5, config=two)
    unused = replace(two, strategy="ddp-unused")
    adversarial = replace(PLAIN, name="small/adversarial", method=AdversarialSettings(), steps=5, clip_norm=0.1)
    train(adversarial, folder / "adversarial", config=unused)
    try:
        train(adversarial, folder / "used", config=two)
    except SetsupError as error:
        (folder / f"unused {{rank}}").write_text(str(error))
    train(GATHERING, folder / "validated", config=two)
    train(replace(GATHERING, validation=Validation()), folder / "not validated", config=two)
    for preset in BANKED:
        try:
            train(preset, folder / preset.name, config=two)
        except SetsupError as error:
            (folder / f"{{preset.name.replace('/', ' ')}} {{rank}}").write_text(str(error))
    for kind, preset in (Banks, BANKS), (Codes, CODES):
        kind.training_step = stopping(kind.training_step)
        try:
            train(preset, folder / preset.name, seed=5, config=two)
        except KeyboardInterrupt:
            pass
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "script.py").write_text(SCRIPT)
    run_ranks(folder, str(folder), environment={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)})
    return folder


def noted(path: Path) -> np.ndarray:
    """Rows of the draws that a process trained on, one after the other."""
    return np.array([json.loads(line) for line in path.read_text().splitlines()])


def test_two_processes_learn_from_the_mean_of_two_draws(trained: Path) -> None:
    for rank in range(2):
        np.testing.assert_array_equal(noted(trained / f"whole-{rank}.jsonl"), SETS.block(0, 2 * STEPS).indices[rank::2])
    preset = replace(PLAIN, steps=STEPS)
    encoder = build_method(preset.method, SHAPES.factors, 5).encoder
    losses = looped(encoder, draws(SHAPES, SETS), STEPS, ranks=2)
    lines = [json.loads(line) for line in (trained / "whole" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    np.testing.assert_allclose([line["loss"] for line in lines], losses, rtol=1e-5)
    found = build_method(preset.method, SHAPES.factors, 5)
    found.load_state_dict(torch.load(trained / "whole" / "last.ckpt", weights_only=True)["state_dict"])
    for weight, expected in zip(found.encoder.parameters(), encoder.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-6)


def test_two_processes_that_accumulate_two_draws_step_on_the_clipped_mean_of_four(trained: Path) -> None:
    encoder = build_method(PLAIN.method, SHAPES.factors, 5).encoder
    norms: list[torch.Tensor] = []

    def clip(network: torch.nn.Module) -> None:
        norms.append(torch.nn.utils.clip_grad_norm_(network.parameters(), 1e-2))

    losses = looped(encoder, draws(SHAPES, SETS), 4, ranks=4, before=clip)
    assert min(norms) > 1e-2, "all gradients are clipped"
    lines = [json.loads(line) for line in (trained / "accumulated" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    np.testing.assert_allclose([line["loss"] for line in lines], losses, rtol=1e-5)
    found = torch.load(trained / "accumulated" / "last.ckpt", weights_only=True)["state_dict"]
    for (name, weight), expected in zip(found.items(), encoder.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-6, msg=name)


def test_two_processes_train_two_optimisers(trained: Path) -> None:
    lines = (trained / "adversarial" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3, 4, 5]
    for rank in range(2):
        said = (trained / f"unused {rank}").read_text()
        assert said.startswith("some parameters of Adversarial received no gradient in a step")
        assert said.endswith("train with --strategy ddp-unused, or on one device")


def test_all_processes_stop_at_one_step_and_one_goes_on_with_the_next_draw(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sorted(path.name for path in trained.glob("rank * stopped")) == ["rank 0 stopped", "rank 1 stopped"]
    folder = trained / "stopped"
    run = open_run(folder, PLAIN)
    assert run.progress().steps == STOPPED
    for rank in range(2):
        rows = noted(trained / f"stopped-{rank}.jsonl")
        np.testing.assert_array_equal(rows, SETS.block(0, 2 * STOPPED).indices[rank::2])
    seen, whole = [], ABC.training_step

    def training_step(self: ABC, batch: Any, batch_idx: int) -> Any:
        seen.append(batch["indices"].numpy().copy())
        return whole(self, batch, batch_idx)

    monkeypatch.setattr(ABC, "training_step", training_step)
    assert train(PLAIN, folder, seed=5, config=RunConfig(workers=0)).finished
    left = PLAIN.steps - STOPPED
    np.testing.assert_array_equal(seen, SETS.block(2 * STOPPED, 2 * STOPPED + left).indices)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, PLAIN.steps + 1))


@pytest.mark.parametrize("preset", BANKED, ids=[preset.name for preset in BANKED])
def test_rows_that_each_process_writes_for_itself_are_not_lost_without_a_word(trained: Path, preset: Preset) -> None:
    at = 4 if preset is BANKED[-1] else 1  # the last one differs late, at a checkpoint
    for rank in range(2):
        said = (trained / f"{preset.name.replace('/', ' ')} {rank}").read_text()
        assert said.startswith("bank of Banked differs between the 2 devices that train together")
        assert "--devices 1 --nodes 1" in said
        assert "\n" not in said
    run = open_run(trained / preset.name, preset)
    assert run.progress().steps < at + preset.checkpoint_every
    # one process writes all of its rows
    alone = train(preset, trained / f"{preset.name} alone", config=RunConfig(workers=0))
    assert alone.finished
    assert alone.state()["state_dict"]["bank"].any()


def test_statistics_of_normalisation_are_no_such_state(trained: Path) -> None:
    assert open_run(trained / "normed", NORMED).finished


def test_two_processes_validate_the_state_of_the_first_and_do_not_notice(trained: Path) -> None:
    from lightning.pytorch.plugins import Precision

    run = open_run(trained / "validated", GATHERING)
    assert run.finished
    state, plain = (
        torch.load(trained / name / "last.ckpt", weights_only=True) for name in ("validated", "not validated")
    )
    for name, value in state["state_dict"].items():
        assert torch.equal(value, plain["state_dict"][name]), name
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "validation/loss" in line] == [3, 6]
    # one process finds the same with the weights and the running statistics of the checkpoint
    preset = replace(GATHERING, method=RestlessSettings())
    assert preset.data is not None
    assert preset.sampler is not None
    dataset = preset.data.open()
    method = build_method(preset.method, dataset.factors, 0)
    method.load_state_dict(state["state_dict"])
    held_out = hold_out(preset, method, dataset)
    assert held_out is not None
    measured = ValidationCallback(held_out, StepCounter())
    alone = SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device("cpu")), precision_plugin=Precision())
    found = measured._measure(alone, method)
    for name in ("loss", "knn/shape"):
        assert lines[5][f"validation/{name}"] == pytest.approx(found[name], rel=1e-5)


@pytest.fixture(scope="module")
def by_row(trained: Path) -> Path:
    """The runs with state by row, which one process ends."""
    for preset in (BANKS, CODES):
        folder = trained / preset.name
        assert open_run(folder, preset).progress().steps == SESSIONS[0][1]
        train(preset, folder, seed=5, config=RunConfig(accelerator="cpu", workers=0))
        assert open_run(folder, preset).progress().steps == SESSIONS[1][1]
    return trained


def batches() -> Any:
    """Rows and images of the draws of each step, those of all its processes one after the other."""
    sampler, draw = BANKS.sampler.build(SHAPES, 5), 0
    for (devices, last), (_, before) in zip(SESSIONS, [(0, 0), *SESSIONS], strict=False):
        for _ in range(last - before):
            rows = sampler.block(draw, draw + devices).indices.reshape(-1)
            draw += devices
            images = SHAPES.fetch(rows)["image"].astype(np.float32) / 255
            means = images.reshape(len(rows), 8, 8, 8, 8, 3).mean((2, 4)).transpose(0, 3, 1, 2)
            yield torch.from_numpy(rows), torch.from_numpy(means.reshape(len(rows), 3, 64))


def test_memory_banks_are_those_of_one_process(by_row: Path) -> None:
    count = len(SHAPES)
    method = build_method(BANKS.method, SHAPES.factors, 5)
    red, others = method.red.weight, method.others.weight
    banks = [initial(torch.arange(count)) for _ in range(2)]
    adam, losses = torch.optim.SGD([red, others], 0.1), []
    for rows, means in batches():
        found = [means[:, 0] @ red.T, means[:, 1:].flatten(1) @ others.T]
        found = [one / one.norm(dim=1, keepdim=True) for one in found]
        numbers = rows.numpy().astype(np.uint64)[:, None] * np.uint64(1000) + np.arange(NEGATIVES, dtype=np.uint64)
        table = torch.cat([rows[:, None], torch.from_numpy((fold(3, numbers) % count).astype(np.int64))], 1)
        logits = [
            torch.einsum("nd,nmd->nm", one, bank[table]) / 0.1 for one, bank in zip(found, banks[::-1], strict=True)
        ]
        loss = sum((one.logsumexp(1) - one[:, 0]).mean() for one in logits)
        losses.append(loss.item())
        adam.zero_grad()
        loss.backward()
        adam.step()
        for bank, one in zip(banks, found, strict=True):
            mixed = (bank[rows] + one.detach()) / 2
            for row, value in zip(rows.tolist(), mixed / mixed.norm(dim=1, keepdim=True), strict=True):
                bank[row] = value
    state = open_run(by_row / BANKS.name, BANKS).state()["state_dict"]
    torch.testing.assert_close(state["red_bank.values"], banks[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state["others_bank.values"], banks[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state["red.weight"], red.detach(), rtol=1e-4, atol=1e-5)
    lines = (by_row / BANKS.name / "metrics.jsonl").read_text().splitlines()
    np.testing.assert_allclose([json.loads(line)["loss"] for line in lines], losses, rtol=1e-4)


def test_codes_are_those_of_a_sparse_embedding(by_row: Path) -> None:
    count = len(SHAPES)
    layer = build_method(CODES.method, SHAPES.factors, 5).layer
    codes = torch.nn.Embedding.from_pretrained(initial(torch.arange(count)), freeze=False, sparse=True)
    rule, adam = torch.optim.SGD(layer.parameters(), 0.1), torch.optim.SparseAdam(codes.parameters(), 0.01)
    drawn = set()
    for rows, means in batches():
        drawn |= set(rows.tolist())
        rule.zero_grad()
        adam.zero_grad()
        (layer(codes(rows)) - means.flatten(1)).square().mean().backward()
        rule.step()
        adam.step()
    state = open_run(by_row / CODES.name, CODES).state()["state_dict"]
    torch.testing.assert_close(state["content.codes.values"], codes.weight.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state["layer.weight"], layer.weight.detach(), rtol=1e-4, atol=1e-5)
    assert set(state["content.codes.seen"].nonzero()[:, 0].tolist()) == drawn
    # one process embeds what was trained on, and nothing else
    found = load_trained(open_run(by_row / CODES.name, CODES), device="cpu")
    rows = np.array(sorted(drawn))
    np.testing.assert_array_equal(found.embed(rows=rows), state["content.codes.values"][rows].numpy())
    missing = next(row for row in range(count) if row not in drawn)
    said = r"^Codes has no values for 1 of 2 rows \(never seen in training: 1\); embed"
    with pytest.raises(SetsupError, match=said):
        found.embed(rows=np.array([rows[0], missing]))
