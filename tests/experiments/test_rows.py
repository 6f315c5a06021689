"""State by row of a run by two processes, then one, is that of one process with the draws of all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import RunConfig, load_trained, open_run, train  # noqa: E402
from setsup.experiments.configs import build_method  # noqa: E402
from setsup.random import fold  # noqa: E402
from tests.experiments.checkpoint_retention import BANKS, CODES, FORGOTTEN, NEGATIVES, Banks, initial  # noqa: E402
from tests.experiments.ranks import run_ranks  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SEED = 5
SESSIONS = [(2, 4), (1, 12)]
"""Processes, and the step at which they stop."""

# Lightning starts the script once more for each further process; the first is asked to stop, and takes them along
SCRIPT = """
import os, signal, sys
from pathlib import Path
from setsup.experiments import RunConfig, train
from tests.experiments.ranks import run_ranks  # noqa: E402
from tests.experiments.checkpoint_retention import BANKS, CODES, Banks, Codes

folder, devices, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def stopping(training_step):
    def stopped(self, batch, batch_idx):
        if os.environ.get("LOCAL_RANK", "0") == "0" and self.global_step + 1 == last:
            os.kill(os.getpid(), signal.SIGTERM)
        return training_step(self, batch, batch_idx)
    return stopped

if __name__ == "__main__":
    for kind, preset in (Banks, BANKS), (Codes, CODES):
        kind.training_step = stopping(kind.training_step)
        try:
            config = RunConfig(devices=devices, accelerator="cpu", workers=0)
            train(preset, folder / preset.name, seed=%d, config=config)
        except KeyboardInterrupt:
            pass
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "script.py").write_text(SCRIPT % SEED)
    environment = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    for devices, last in SESSIONS:
        if devices > 1:
            run_ranks(folder, str(folder), str(devices), str(last), environment=environment)
        for preset in (BANKS, CODES):
            if devices == 1:
                train(preset, folder / preset.name, seed=SEED, config=RunConfig(accelerator="cpu", workers=0))
            assert open_run(folder / preset.name, preset).progress().steps == last
    return folder


def batches() -> Any:
    """Rows and images of the draws of each step, those of all its processes one after the other."""
    shapes = setsup.load("shapes3d-procedural")
    sampler, draw = BANKS.sampler.build(shapes, SEED), 0
    for (devices, last), (_, before) in zip(SESSIONS, [(0, 0), *SESSIONS], strict=False):
        for _ in range(last - before):
            rows = sampler.block(draw, draw + devices).indices.reshape(-1)
            draw += devices
            images = shapes.fetch(rows)["image"].astype(np.float32) / 255
            means = images.reshape(len(rows), 8, 8, 8, 8, 3).mean((2, 4)).transpose(0, 3, 1, 2)
            yield torch.from_numpy(rows), torch.from_numpy(means.reshape(len(rows), 3, 64))


@pytest.mark.long("trainings")
def test_memory_banks_are_those_of_one_process(trained: Path) -> None:
    count = len(setsup.load("shapes3d-procedural"))
    method = build_method(BANKS.method, setsup.load("shapes3d-procedural").factors, SEED)
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
    state = open_run(trained / BANKS.name, BANKS).state()["state_dict"]
    torch.testing.assert_close(state["red_bank.values"], banks[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state["others_bank.values"], banks[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state["red.weight"], red.detach(), rtol=1e-4, atol=1e-5)
    lines = (trained / BANKS.name / "metrics.jsonl").read_text().splitlines()
    np.testing.assert_allclose([json.loads(line)["loss"] for line in lines], losses, rtol=1e-4)


@pytest.mark.long("trainings")
def test_codes_are_those_of_a_sparse_embedding(trained: Path) -> None:
    count = len(setsup.load("shapes3d-procedural"))
    layer = build_method(CODES.method, setsup.load("shapes3d-procedural").factors, SEED).layer
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
    state = open_run(trained / CODES.name, CODES).state()["state_dict"]
    torch.testing.assert_close(state["content.codes.values"], codes.weight.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(state["layer.weight"], layer.weight.detach(), rtol=1e-4, atol=1e-5)
    assert set(state["content.codes.seen"].nonzero()[:, 0].tolist()) == drawn
    # one process embeds what was trained on, and nothing else
    found = load_trained(open_run(trained / CODES.name, CODES), device="cpu")
    rows = np.array(sorted(drawn))
    np.testing.assert_array_equal(found.embed(rows=rows), state["content.codes.values"][rows].numpy())
    missing = next(row for row in range(count) if row not in drawn)
    said = r"^Codes has no values for 1 of 2 rows \(never seen in training: 1\); embed"
    with pytest.raises(SetsupError, match=said):
        found.embed(rows=np.array([rows[0], missing]))


@pytest.mark.long("trainings")
def test_gradients_of_codes_that_are_never_applied_end_a_run_at_its_first_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match=r"^gradients of content were never applied; call step\(\) of the codes"):
        train(FORGOTTEN, tmp_path / "run", config=RunConfig(workers=0))


@pytest.mark.long("trainings")
def test_state_by_row_that_is_not_finite_ends_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Banks.on_train_batch_end

    def spoil(self: Banks, outputs: Any, batch: Any, batch_idx: int) -> None:
        whole(self, outputs, batch, batch_idx)
        self.red_bank.update(torch.tensor([3]), torch.full((1, 4), torch.inf))

    monkeypatch.setattr(Banks, "on_train_batch_end", spoil)
    with pytest.raises(SetsupError, match="after step 6 red_bank of small/banks is not finite"):
        train(BANKS, tmp_path / "run", config=RunConfig(workers=0))
