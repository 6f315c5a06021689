"""The batch of a step is the one that the method got: noted in the training itself."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments import train, trained_on  # noqa: E402
from setsup.experiments.runs.run import Run  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from tests.experiments.small import AUGMENTED, PLAIN  # noqa: E402


@pytest.fixture
def noted(monkeypatch):
    """Batches as the method gets them."""
    found, training_step = [], ABC.training_step

    def note(self, batch, batch_idx):
        found.append({name: value.clone() for name, value in batch.items() if isinstance(value, torch.Tensor)})
        return training_step(self, batch, batch_idx)

    monkeypatch.setattr(ABC, "training_step", note)
    return found


@pytest.mark.long("trainings")
@pytest.mark.parametrize(
    "preset", [PLAIN, AUGMENTED, replace(PLAIN, accumulate=2)], ids=["plain", "augmented", "parts"]
)
def test_it_is_what_the_method_got(preset, noted, tmp_path):
    preset = replace(preset, steps=3)
    run = train(preset, tmp_path / "run", seed=5)
    assert len(noted) == 3 * preset.accumulate
    for number, batch in enumerate(noted):
        step, part = divmod(number, preset.accumulate)
        found = trained_on(run, step + 1, part=part)
        assert found.number == number
        np.testing.assert_array_equal(found.draw.indices, batch["indices"])
        np.testing.assert_array_equal(found.sampler[number].indices, batch["indices"])
        for name, value in batch.items():
            assert torch.equal(found.batch[name], value), name
        assert (found.rank, found.world, found.step) == (0, 1, step + 1)
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3]


@pytest.mark.long("trainings")
def test_runs_of_several_sessions_count_the_draws_of_each(tmp_path):
    run = train(replace(PLAIN, steps=2), tmp_path / "run", seed=5)
    config = run.description["config"]
    one = {**config, "devices": 1}
    about = {**run.description, "config": {**config, "devices": 2, "nodes": 2}}
    about["later"] = [{"from_step": 3, "config": {**config, "devices": 3}}, {"from_step": 5, "config": one}]
    several = Run(run.folder, replace(run.preset, steps=9, accumulate=2), 5, about)
    before = 0
    for step in range(1, 10):
        world = 4 if step <= 3 else 3 if step <= 5 else 1
        for part in range(2):
            for rank in range(world):
                found = trained_on(several, step, rank=rank, part=part)
                assert (found.number, found.world) == (before + rank, world)
                sampler = run.preset.sampler.build(found.dataset, 5)
                np.testing.assert_array_equal(found.draw.indices, sampler[found.number].indices)
                np.testing.assert_array_equal(found.batch["indices"], found.draw.indices)
            before += world


def test_what_is_not_there_is_one_sentence(tmp_path):
    run = train(replace(PLAIN, steps=2), tmp_path / "run", seed=5)
    with pytest.raises(SetsupError, match="the step of"):
        trained_on(run, 3)
    with pytest.raises(SetsupError, match="the rank, of 1 in step 1,"):
        trained_on(run, 1, rank=1)
    with pytest.raises(SetsupError, match="the part, of 1 draws per step,"):
        trained_on(run, 1, part=1)
    other = replace(
        run.preset,
        data=replace(run.preset.data, where="shape == 'cube'"),
        sampler=replace(run.preset.sampler, where=None),
    )
    with pytest.raises(DataError, match=r"differs from the training data of"):
        trained_on(Run(run.folder, other, 5, run.description), 1)
