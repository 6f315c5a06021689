"""Trainers see exactly the sampler's draws: after a crash, from any checkpoint, and with any number of ranks."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setsup
from setsup.errors import SetsupError

torch = pytest.importorskip("torch", reason="torch is not installed")

ROOT = Path(__file__).resolve().parents[2]
SHAPES = setsup.load("shapes3d-procedural")
SETS = setsup.SetSampler(SHAPES.factors, inactive=["wall_hue"], size=4, sets=2, seed=3)
FEW = setsup.EpochSampler(
    SHAPES.factors,
    size=4,
    seed=3,
    epochs=1,
    where="scale == 0.75 and floor_hue == 0 and orientation == 0 and wall_hue < 0.1",
)


def numbers(sampler: setsup.samplers.Sampler) -> Callable[[dict[str, Any]], int]:
    """What tells a batch's draw by its rows alone."""
    rows = sampler.block(0, sampler.length or 300).indices
    known = {draw.tobytes(): number for number, draw in enumerate(rows)}
    assert len(known) == len(rows)
    return lambda batch: known[np.asarray(batch["indices"]).tobytes()]


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; a failure shows its errors."""
    # ranks find each other on this machine, and two cores are enough for them
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    words = [str(part) for part in command]
    found = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


# Lightning


def recorder(sampler: setsup.samplers.Sampler, crash: int | None = None, estimates: bool = False) -> Any:
    """A module that notes the number of every draw it trains on, and may crash at one of its batches."""
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")
    number = numbers(sampler)

    class Recorder(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)
            self.seen: list[int] = []

        def training_step(self, batch: dict[str, Any], _: int) -> Any:
            if len(self.seen) == crash:
                raise ConnectionError("the machine goes down")
            self.seen.append(number(batch))
            return self.layer(batch["image"].float().mean((0, 1, 3, 4))).sum()

        def configure_optimizers(self) -> Any:
            optimiser = torch.optim.SGD(self.parameters(), 1e-3)
            if estimates:  # as schedules of the learning rate do; makes Lightning ask for the batches before it resumes
                assert self.trainer.estimated_stepping_batches > 0
            return optimiser

    return Recorder()


def module_of(sampler: setsup.samplers.Sampler, **options: Any) -> Any:
    """The data module that a user would pass."""
    pytest.importorskip("lightning", reason="lightning is not installed")
    from setsup.loading.lightning import LightningBatches

    return LightningBatches(SHAPES, sampler, **options)


def fitted(
    folder: Path, batches: Any, module: Any, saving: dict[str, Any], resume: Path | None = None, **options: Any
) -> list[int]:
    """Numbers of the draws that a run of Lightning trains on."""
    from lightning import Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    saved = ModelCheckpoint(folder, save_top_k=-1, **saving)
    trainer = Trainer(accelerator="cpu", callbacks=[saved], **quiet, **options)
    trainer.fit(module, batches, ckpt_path=resume)
    seen: list[int] = module.seen
    return seen


def last_checkpoint(folder: Path) -> Path:
    """The checkpoint of the most steps."""
    return max(folder.glob("*.ckpt"), key=lambda path: int(re.search(r"step=(\d+)", path.name)[1]))


STEPS = {"max_steps": 11}
EPOCHS = {"max_epochs": 4, "limit_train_batches": 3}
WAYS = [
    pytest.param(SETS, STEPS, {"every_n_train_steps": 4}, (11, 8), id="endless"),
    pytest.param(SETS, EPOCHS, {}, (12, 6), id="at an epoch's end"),
    pytest.param(SETS, EPOCHS, {"every_n_train_steps": 4}, (12, 8), id="within an epoch"),
    pytest.param(SETS, STEPS | {"limit_train_batches": 3}, {"every_n_train_steps": 3}, (11, 6), id="steps and epochs"),
    pytest.param(
        *(SETS, {"max_steps": 5, "accumulate_grad_batches": 3}, {"every_n_train_steps": 2}, (15, 6)), id="accumulated"
    ),
    pytest.param(FEW, {"max_epochs": 1}, {"every_n_train_steps": 4}, (10, 4), id="finite"),
]


@pytest.mark.long("trainings")
@pytest.mark.parametrize(("sampler", "options", "saving", "counts"), WAYS)
def test_lightning_resumes_after_a_crash_as_if_there_had_been_none(
    tmp_path: Path, sampler: Any, options: dict[str, Any], saving: dict[str, Any], counts: tuple[int, int]
) -> None:
    every, kept = counts
    whole = fitted(tmp_path / "whole", module_of(sampler), recorder(sampler), saving, **options)
    assert whole == list(range(every))
    crashing, folder = recorder(sampler, crash=kept + 2), tmp_path / "crashed"
    with pytest.raises(ConnectionError):
        fitted(folder, module_of(sampler), crashing, saving, **options)
    again = module_of(sampler)
    resumed = fitted(folder, again, recorder(sampler), saving, resume=last_checkpoint(folder), **options)
    assert crashing.seen[:kept] + resumed == whole
    assert again.state_dict() == {"delivered": every}


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize(
    "options", [STEPS, STEPS | {"limit_train_batches": 3}, EPOCHS], ids=["steps", "both", "epochs"]
)
def test_lightning_resumes_where_a_schedule_asks_for_the_number_of_steps(tmp_path: Path, options: Any) -> None:
    saving = {"every_n_train_steps": 4}
    whole = fitted(tmp_path, module_of(SETS), recorder(SETS, estimates=True), saving, **options)
    checkpoint = next(tmp_path.glob("*step=4.ckpt"))
    resumed = fitted(tmp_path, module_of(SETS), recorder(SETS, estimates=True), saving, checkpoint, **options)
    assert resumed == whole[4:]


@pytest.mark.filterwarnings("ignore:The 'val_dataloader' does not have many workers")
@pytest.mark.filterwarnings("ignore:You have overridden `on_before_batch_transfer` in both")
def test_validation_does_not_count_and_hooks_of_the_module_are_heard(tmp_path: Path) -> None:
    batches, module = module_of(SETS), recorder(SETS)

    class Validated(type(batches)):
        def val_dataloader(self) -> Any:
            return torch.utils.data.DataLoader(setsup.loading.as_torch(SHAPES), batch_size=8)

    class Module(type(module)):
        touched, validated = 0, 0

        def on_before_batch_transfer(self, batch: dict[str, Any], dataloader_idx: int) -> dict[str, Any]:
            self.touched += 1
            return batch

        def validation_step(self, batch: dict[str, Any], _: int) -> None:
            self.validated += 1

    module = Module()
    options = EPOCHS | {"limit_val_batches": 2, "num_sanity_val_steps": 1}
    assert fitted(tmp_path, Validated(SHAPES, SETS), module, {}, **options) == list(range(12))
    assert (module.validated, module.touched) == (1 + 4 * 2, 1 + 4 * 2 + 12)


def test_a_bare_loader_is_exact_where_lightning_counts_steps_in_epochs(tmp_path: Path) -> None:
    options, saving = STEPS | {"limit_train_batches": 3}, {"every_n_train_steps": 4}
    whole = fitted(tmp_path, setsup.loader(SHAPES, SETS), recorder(SETS), saving, **options)
    checkpoint = next(tmp_path.glob("*step=8.ckpt"))
    resumed = fitted(tmp_path, setsup.loader(SHAPES, SETS), recorder(SETS), saving, checkpoint, **options)
    assert (whole, resumed) == (list(range(11)), [8, 9, 10])


# passes in Lightning

FEW_ENDLESS = setsup.EpochSampler(SHAPES.factors, size=4, seed=3, where=FEW.arguments["where"])
PASSES = 4 * len(FEW)


def of_draw(batch: dict[str, Any]) -> int:
    """The draw that a batch is of, over all passes, by its rows: of a loader, or of torch's DataLoader."""
    rows = np.asarray(batch["indices" if "indices" in batch else "index"])
    wanted = FEW_ENDLESS.block(0, PASSES).indices.reshape(PASSES, -1)
    return int(np.flatnonzero((wanted == rows.reshape(1, -1)).all(axis=1))[0])


def in_passes(crash: int | None = None) -> Any:
    """A module that notes the draws of passes, and may crash."""
    module = recorder(FEW, crash)

    class Passes(type(module)):
        def training_step(self, batch: dict[str, Any], _: int) -> Any:
            if len(self.seen) == crash:
                raise ConnectionError("the machine goes down")
            self.seen.append(of_draw(batch))
            return self.layer(batch["image"].float().mean((-1, -2)).reshape(-1, 3)).sum()

    return Passes()


def torch_batches(workers: int) -> Any:
    """Passes by torch's own DataLoader, to which Lightning tells its epoch."""
    batches = setsup.loading.set_batches(FEW)
    return torch.utils.data.DataLoader(setsup.loading.as_torch(SHAPES), batch_sampler=batches, num_workers=workers)


def data_module(workers: int) -> Any:
    return module_of(FEW, workers=workers)


@pytest.mark.filterwarnings("ignore:The dirpath has changed")
@pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers")
@pytest.mark.long("trainings")
@pytest.mark.parametrize(
    ("make", "saving", "kept", "workers"),
    [
        pytest.param(data_module, {}, (20,), 0, id="data module, at the end of a pass"),
        pytest.param(data_module, {"every_n_train_steps": 1}, (19, 20, 23), 0, id="data module, in a pass"),
        pytest.param(data_module, {"every_n_train_steps": 1}, (20, 23), 2, id="data module, worker processes"),
        pytest.param(torch_batches, {}, (20,), 0, id="torch's DataLoader"),
        pytest.param(torch_batches, {}, (20,), 2, id="torch's DataLoader, worker processes"),
    ],
)
def test_lightning_resumes_in_the_third_of_four_passes(
    tmp_path: Path, make: Any, saving: dict[str, Any], kept: tuple[int, ...], workers: int
) -> None:
    """Each pass has its own order, and a run that crashed in pass 2 goes on with it."""
    crashing = in_passes(crash=24)
    with pytest.raises(ConnectionError):
        fitted(tmp_path, make(workers), crashing, saving, max_epochs=4, use_distributed_sampler=False)
    assert crashing.seen == list(range(24))
    for steps in kept:
        checkpoint = next(tmp_path.glob(f"*step={steps}.ckpt"))
        options = {"max_epochs": 4, "use_distributed_sampler": False}
        resumed = fitted(tmp_path / "again", make(workers), in_passes(), saving, checkpoint, **options)
        assert resumed == list(range(steps, PASSES)), steps


def test_lightning_sets_the_pass_of_set_batches() -> None:
    """What it does with every loader when a run resumes at epoch 2, on data of forty rows."""
    data = pytest.importorskip("lightning.fabric.utilities.data", reason="lightning is not installed")
    table = setsup.FactorTable.from_values({"c": np.arange(40) % 4})
    rows = setsup.loading.as_torch(setsup.from_arrays({"image": np.zeros((40, 4, 4, 3), np.uint8)}, table))
    once = setsup.EpochSampler(table, size=8, epochs=1, seed=1)
    loader = torch.utils.data.DataLoader(rows, batch_sampler=setsup.loading.set_batches(once))
    data._set_sampler_epoch(loader, 2)
    first = next(iter(loader))["index"].tolist()
    thrice = setsup.EpochSampler(table, size=8, epochs=3, seed=1)
    assert [p for p in range(3) if thrice[5 * p].indices.ravel().tolist() == first] == [2]


@pytest.mark.long("trainings")
def test_epochs_of_lightning_are_passes(tmp_path: Path) -> None:
    batches = module_of(FEW, workers=0)
    assert fitted(tmp_path, batches, in_passes(), {}, max_epochs=3) == list(range(30))
    assert batches.state_dict() == {"delivered": 30}


@pytest.mark.long("trainings")
def test_an_endless_sampler_that_a_trainer_ends_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    batches = module_of(FEW_ENDLESS, workers=0)
    assert fitted(tmp_path, batches, in_passes(), {}, max_steps=12) == list(range(12))
    assert not [record for record in caplog.records if record.name == "setsup"]


def test_a_loop_of_three_ranks_resumes_from_a_checkpoint_of_lightning(tmp_path: Path) -> None:
    fitted(tmp_path, module_of(SETS), recorder(SETS), {"every_n_train_steps": 4}, **STEPS)
    saved = torch.load(last_checkpoint(tmp_path), weights_only=False)["LightningBatches"]
    number = numbers(SETS)
    for rank in range(3):
        batches = setsup.loader(SHAPES, SETS, rank=rank, world=3)
        batches.load_state_dict(saved)
        assert [number(batch) for batch in islice(batches, 2)] == [8 + rank, 11 + rank]


RANKS_OF_LIGHTNING = """
import json, sys
from pathlib import Path
import lightning, torch
from lightning.pytorch.callbacks import ModelCheckpoint
import setsup
from setsup.errors import SetsupError
from setsup.loading.lightning import LightningBatches

class Recorder(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(3, 1), []

    def training_step(self, batch, _):
        self.seen.append(batch["indices"].tolist())
        return self.layer(batch["image"].float().mean((0, 1, 3, 4))).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1e-3)

    def on_train_end(self):
        Path(f"rank{self.global_rank}.json").write_text(json.dumps(self.seen))

if __name__ == "__main__":
    shapes = setsup.load("shapes3d-procedural")
    sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2, seed=3)
    saved = ModelCheckpoint(".", save_top_k=-1, every_n_train_steps=3)
    quiet = dict(logger=False, enable_progress_bar=False, enable_model_summary=False)
    trainer = lightning.Trainer(
        accelerator="cpu", strategy="ddp_fork", devices=2, max_steps=5, callbacks=[saved], **quiet
    )
    trainer.fit(Recorder(), LightningBatches(shapes, sets))
"""


@pytest.mark.long("trainings")
def test_two_ranks_of_lightning_share_the_draws_and_one_resumes(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    (tmp_path / "ranks.py").write_text(RANKS_OF_LIGHTNING)
    run(sys.executable, "ranks.py", cwd=tmp_path)
    number = numbers(SETS)
    for rank in range(2):
        seen = json.loads((tmp_path / f"rank{rank}.json").read_text())
        assert [number({"indices": rows}) for rows in seen] == [rank, rank + 2, rank + 4, rank + 6, rank + 8]
    saving, checkpoint = {"every_n_train_steps": 3}, next(tmp_path.glob("*step=3.ckpt"))
    resumed = fitted(tmp_path, module_of(SETS), recorder(SETS), saving, checkpoint, max_steps=6)
    assert resumed == [6, 7, 8]


def test_a_data_module_refuses_at_once_what_a_loader_refuses() -> None:
    with pytest.raises(SetsupError, match=r"create the sampler from dataset\.factors"):
        module_of(setsup.SetSampler(SHAPES.where("shape != 'cube'").factors, inactive=["shape"], size=4))
    with pytest.raises(TypeError, match="rank"):
        module_of(SETS, rank=1)
    batches = module_of(SETS, start=3)
    with pytest.raises(SetsupError, match="not attached to a trainer"):
        batches.train_dataloader()
    with pytest.raises(SetsupError, match="the state of a loader must be"):
        batches.load_state_dict({"delivered": "three"})
    batches.load_state_dict({"delivered": 7})
    assert "delivered=7" in str(batches)


# Hugging Face


def trained(
    folder: Path,
    steps: int,
    resume: Path | None = None,
    *,
    crash: int | None = None,
    batches: Any = None,
    **options: Any,
) -> list[int]:
    """Numbers of the draws that a run of Hugging Face's Trainer trains on."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    from setsup.loading.huggingface import PositionCallback

    number, seen = numbers(SETS), []

    class Recorder(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            rank, world = self.args.process_index, self.args.world_size
            return setsup.loader(SHAPES, SETS, rank=rank, world=world, start=5) if batches is None else batches

        def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
            if len(seen) == crash:
                raise ConnectionError("the machine goes down")
            seen.append(number(inputs))
            return model(inputs["image"].float().mean((0, 1, 3, 4))).sum()

    arguments = transformers.TrainingArguments(
        str(folder), max_steps=steps, save_steps=3, use_cpu=True, report_to=[], disable_tqdm=True, **options
    )
    Recorder(torch.nn.Linear(3, 1), arguments, callbacks=[PositionCallback()]).train(resume_from_checkpoint=resume)
    return seen


@pytest.mark.long("trainings")
@pytest.mark.parametrize(
    "options",
    [{}, {"gradient_accumulation_steps": 3}, {"restore_callback_states_from_checkpoint": True}],
    ids=["plain", "accumulated", "with the states of callbacks"],
)
def test_hugging_face_resumes_after_a_crash_as_if_there_had_been_none(tmp_path: Path, options: dict[str, Any]) -> None:
    batches = options.get("gradient_accumulation_steps", 1)
    whole = trained(tmp_path / "whole", 8, **options)
    assert whole == list(range(5, 5 + 8 * batches))
    with pytest.raises(ConnectionError):
        trained(tmp_path / "crashed", 8, crash=7 * batches, **options)
    resumed = trained(tmp_path / "crashed", 8, tmp_path / "crashed" / "checkpoint-6", **options)
    assert resumed == whole[6 * batches :]


@pytest.mark.long("large or genuine files")
def test_a_loop_of_three_ranks_resumes_from_a_checkpoint_of_hugging_face(tmp_path: Path) -> None:
    trained(tmp_path, 3)
    state = json.loads((tmp_path / "checkpoint-3" / "trainer_state.json").read_text())
    saved = state["stateful_callbacks"]["PositionCallback"]["attributes"]["position"]
    batches = setsup.loader(SHAPES, SETS, rank=2, world=3)
    batches.load_state_dict(saved)
    assert numbers(SETS)(next(iter(batches))) == 5 + 3 + 2


@pytest.mark.long("trainings")
def test_a_checkpoint_without_a_position_and_batches_of_others_are_refused(tmp_path: Path) -> None:
    trained(tmp_path, 3)
    path = tmp_path / "checkpoint-3" / "trainer_state.json"
    state = json.loads(path.read_text())
    del state["stateful_callbacks"]["PositionCallback"]
    path.write_text(json.dumps(state))
    with pytest.raises(SetsupError, match="contains no loader position"):
        trained(tmp_path, 6, tmp_path / "checkpoint-3")
    with pytest.raises(SetsupError, match="return one from get_train_dataloader, not list"):
        trained(tmp_path, 3, batches=[1, 2, 3])


# torchdata


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")  # torchdata 0.11 beside torch 2.13
def test_torchdata_keeps_the_position_of_a_stream() -> None:
    pytest.importorskip("torchdata", reason="torchdata is not installed")
    from torchdata.stateful_dataloader import StatefulDataLoader

    class Stream(torch.utils.data.IterableDataset):
        """What torch takes for a stream."""

        def __init__(self) -> None:
            self.batches = setsup.loader(SHAPES, SETS)
            self.state_dict, self.load_state_dict = self.batches.state_dict, self.batches.load_state_dict

        def __iter__(self) -> Any:
            return iter(self.batches)

    number = numbers(SETS)
    first, second = (StatefulDataLoader(Stream(), batch_size=None, num_workers=0) for _ in range(2))
    assert [number(batch) for batch in islice(first, 5)] == [0, 1, 2, 3, 4]
    second.load_state_dict(first.state_dict())
    assert [number(batch) for batch in islice(second, 3)] == [5, 6, 7]


def test_torchdata_nodes_keep_the_position_of_a_loader() -> None:
    pytest.importorskip("torchdata", reason="torchdata is not installed")
    from torchdata import nodes

    number = numbers(SETS)
    first, second = (nodes.Loader(nodes.IterableWrapper(setsup.loader(SHAPES, SETS))) for _ in range(2))
    assert [number(batch) for batch in islice(first, 5)] == [0, 1, 2, 3, 4]
    second.load_state_dict(first.state_dict())
    assert [number(batch) for batch in islice(second, 3)] == [5, 6, 7]


# ranks

RANKS = """
import json, multiprocessing, sys
import torch
import torch.distributed as dist
import setsup
from setsup.errors import SetsupError

shapes = setsup.load("shapes3d-procedural")
sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2, seed=3)

def work(rank, world, state, steps, store, out):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    batches, rows = setsup.loader(shapes, sets, rank=rank, world=world), []
    batches.load_state_dict(state)
    for _, batch in zip(range(steps), batches):
        gathered = [torch.empty_like(batch["indices"]) for _ in range(world)]
        dist.all_gather(gathered, batch["indices"])
        rows += [found.tolist() for found in gathered]
    states = [None] * world
    dist.all_gather_object(states, batches.state_dict())
    if rank == 0:
        out.put((rows, states))
    dist.destroy_process_group()

fork = multiprocessing.get_context("fork")  # torch is imported once
state, seen = {"delivered": int(sys.argv[1])}, []
for number, (world, steps) in enumerate([(1, 3), (4, 3), (2, 4), (1, 2)]):
    out = fork.SimpleQueue()
    ranks = [
        fork.Process(target=work, args=(rank, world, state, steps, f"{sys.argv[2]}/{number}", out))
        for rank in range(world)
    ]
    for process in ranks:
        process.start()
    rows, states = out.get()
    for process in ranks:
        process.join()
    assert states == [states[0]] * world
    state = states[0]
    seen += rows
print(json.dumps([state["delivered"], seen]))
"""


@pytest.mark.long("worker processes")
def test_ranks_of_gloo_see_the_stream_of_one_process_whatever_their_number_was(tmp_path: Path) -> None:
    start = 8_675_309  # a step like any other
    (tmp_path / "ranks.py").write_text(RANKS)
    delivered, seen = json.loads(run(sys.executable, "ranks.py", str(start), tmp_path, cwd=tmp_path))
    assert delivered == start + 3 * 1 + 3 * 4 + 4 * 2 + 2 * 1
    np.testing.assert_array_equal(seen, SETS.block(start, delivered).indices)


def ranks_in(printed: str) -> list[str]:
    """What each rank printed, sorted; their lines may run into one another, as ranks share a pipe."""
    return sorted(re.findall(r"rank \d+ of \d+: [^,]*", printed))


TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@pytest.mark.smoke
@pytest.mark.long("large or genuine files")
def test_the_example_resumes_on_another_number_of_ranks(tmp_path: Path) -> None:
    example = ROOT / "examples" / "torchrun_gloo.py"
    assert ranks_in(run(*TORCHRUN, example, "checkpoint.pt", cwd=tmp_path)) == [
        "rank 0 of 2: 20 batches of draws 0 to 40",
        "rank 1 of 2: 20 batches of draws 0 to 40",
    ]
    alone = run(sys.executable, example, "checkpoint.pt", cwd=tmp_path)
    assert alone.startswith("rank 0 of 1: 20 batches of draws 40 to 60,")


@pytest.mark.smoke
@pytest.mark.long("worker processes")
def test_the_example_with_accelerate_resumes_on_another_number_of_ranks(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    example = ROOT / "examples" / "accelerate_loop.py"
    assert ranks_in(run(*TORCHRUN, example, "checkpoint", cwd=tmp_path)) == [
        "rank 0 of 2: 20 batches of draws 0 to 40",
        "rank 1 of 2: 20 batches of draws 0 to 40",
    ]
    assert run(sys.executable, example, "checkpoint", cwd=tmp_path).startswith(
        "rank 0 of 1: 20 batches of draws 40 to 60,"
    )


WITH_ACCELERATE = """
import json, sys
import torch
from accelerate import Accelerator
import setsup

accelerator = Accelerator(cpu=True)
shapes = setsup.load("shapes3d-procedural")
sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2, seed=3)
loader = setsup.loader(shapes, sets, rank=accelerator.process_index, world=accelerator.num_processes, workers=0)

class Images(torch.utils.data.IterableDataset):
    def __iter__(self):
        return ({"image": batch["image"]} for batch in loader)  # tensors alone, as accelerate puts them together

found = {"rows": [batch["indices"].tolist() for batch, _ in zip(loader, range(5))]}
prepared = accelerator.prepare(torch.utils.data.DataLoader(Images(), batch_size=None))
try:
    next(iter(prepared))
except setsup.SetsupError as error:
    found["refused"] = str(error)
with open(f"rank{accelerator.process_index}.json", "w") as file:
    json.dump(found, file)
accelerator.end_training()
"""


@pytest.mark.long("worker processes")
def test_accelerate_gets_every_draw_once_or_a_refusal(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    (tmp_path / "ranks.py").write_text(WITH_ACCELERATE)
    run(sys.executable, "-c", AS_TORCHRUN, "accelerate:Accelerator,setsup:loader", tmp_path / "ranks.py", cwd=tmp_path)
    found = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(2)]
    for rank in range(2):
        assert found[rank]["rows"] == [SETS[step].indices.tolist() for step in range(rank, 10, 2)]
        assert "shard it among 2 processes again" in found[rank]["refused"]


def test_one_process_of_accelerate_may_read_a_loader() -> None:
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    batches = setsup.loader(SHAPES, SETS, workers=0)

    class Batches(torch.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(batches)

    prepared = accelerate.data_loader.prepare_data_loader(torch.utils.data.DataLoader(Batches(), batch_size=None))
    number = numbers(SETS)
    assert [number(batch) for batch in islice(iter(prepared), 3)] == [0, 1, 2]


def test_batches_of_a_rank_are_not_sharded_again_by_accelerate(monkeypatch: pytest.MonkeyPatch) -> None:
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    monkeypatch.setattr(accelerate.state.PartialState(cpu=True), "num_processes", 2)

    def steps(sampler: Any, rank: int) -> list[list[int]]:
        batches = torch.utils.data.DataLoader(range(len(SHAPES)), batch_sampler=setsup.loading.set_batches(sampler))
        prepared = accelerate.data_loader.prepare_data_loader(batches, num_processes=2, process_index=rank)
        return [rows.tolist() for rows in islice(iter(prepared), 3)]

    for rank in range(2):
        assert steps(SETS, rank) == [SETS[step].indices.ravel().tolist() for step in range(rank, 6, 2)]
        with pytest.raises(setsup.SetsupError, match="among 2 processes again"):
            steps(SETS.shard(rank, 2), rank)
        directly = torch.utils.data.DataLoader(range(len(SHAPES)), batch_sampler=SETS)
        prepared = accelerate.data_loader.prepare_data_loader(directly, num_processes=2, process_index=rank)
        assert next(iter(prepared)).tolist() == SETS[rank].indices.ravel().tolist()
        again = torch.utils.data.DataLoader(range(len(SHAPES)), batch_sampler=SETS.shard(rank, 2))
        prepared = accelerate.data_loader.prepare_data_loader(again, num_processes=2, process_index=rank)
        with pytest.raises(setsup.SetsupError, match="among 2 processes again"):
            next(iter(prepared))


def test_lightning_does_not_share_out_draws_that_are_shared_out() -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    from lightning.pytorch.utilities.data import _update_dataloader

    for batches in (SETS, SETS.shard(0, 2), setsup.loading.set_batches(SETS.shard(0, 2), steps=5)):
        loader = torch.utils.data.DataLoader(range(len(SHAPES)), batch_sampler=batches)
        with pytest.raises(TypeError, match="use_distributed_sampler=False"):
            _update_dataloader(loader, torch.utils.data.DistributedSampler(range(len(SHAPES)), 2, 0))


AS_TORCHRUN = """
import importlib, os, runpy, sys, traceback
from torch.distributed import TCPStore

# what torchrun tells its ranks; but libraries, which take longer than the scripts, are imported once
for name in sys.argv.pop(1).split(","):
    module, _, attribute = name.partition(":")
    getattr(importlib.import_module(module), attribute)
store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
os.environ |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
for rank in range(2):
    if not os.fork():
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        try:
            sys.argv = sys.argv[1:]
            runpy.run_path(sys.argv[0], run_name="__main__")
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
assert [os.wait()[1] for _ in range(2)] == [0, 0]
"""


@pytest.mark.long("large or genuine files")
def test_two_ranks_of_hugging_face_take_the_draws_by_turns(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    imported = "transformers:ResNetForImageClassification,transformers:Trainer"
    example = ROOT / "examples" / "huggingface_trainer.py"
    run(sys.executable, "-c", AS_TORCHRUN, imported, example, "runs", cwd=tmp_path)
    for steps in (10, 30):  # before and after its own resume
        state = json.loads((tmp_path / "runs" / f"checkpoint-{steps}" / "trainer_state.json").read_text())
        assert state["stateful_callbacks"]["PositionCallback"]["attributes"]["position"] == {"delivered": 2 * steps}


@pytest.mark.long("large or genuine files")
def test_the_example_without_torch_imports_none(tmp_path: Path) -> None:
    shown = run(sys.executable, ROOT / "examples" / "numpy_loop.py", cwd=tmp_path)
    assert "torch was imported: False" in shown
