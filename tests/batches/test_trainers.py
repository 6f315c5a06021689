"""Batches in the trainers that people have: the draws of one rank, once each, after every resume and on any ranks."""

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import setsup
from setsup.batches import BatchSampler
from setsup.batches.trainers import warn_of_lone_ranks
from setsup.errors import SamplerError

torch = pytest.importorskip("torch", reason="torch is not installed")

ROOT = Path(__file__).resolve().parents[2]
LABELS = [number % 7 for number in range(61)]
CALL: dict[str, Any] = {"classes": 3, "per_class": 2}  # ten draws per pass


def wanted(passes: int) -> list[list[int]]:
    """Draws of some passes of a single rank."""
    batches = setsup.batch_sampler(LABELS, **CALL)
    return [rows for _ in range(passes) for rows in batches]


class Rows(torch.utils.data.Dataset):
    """A dataset whose items are their own numbers."""

    def __len__(self) -> int:
        return len(LABELS)

    def __getitem__(self, row: int) -> int:
        return row


def loader_of(batches: BatchSampler, workers: int, stateful: bool = False, **options: Any) -> Any:
    if stateful:
        made = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")
        return made.StatefulDataLoader(Rows(), batch_sampler=batches, num_workers=workers, **options)
    return torch.utils.data.DataLoader(Rows(), batch_sampler=batches, num_workers=workers, **options)


WORKERS = [0, pytest.param(2, marks=pytest.mark.long("worker processes"))]


# torch


@pytest.mark.parametrize("workers", WORKERS)
def test_a_pass_over_a_dataloader_is_a_pass(workers: int) -> None:
    for options in ({}, {"persistent_workers": True}) if workers else ({},):
        loader = loader_of(setsup.batch_sampler(LABELS, **CALL), workers, **options)
        assert len(loader) == 10
        found = [rows.tolist() for _ in range(3) for rows in loader]
        assert found == wanted(3)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_dataloader_resumes_by_the_batches_that_arrived(workers: int) -> None:
    for stop in (3, 10, 14) if workers else (1, 3, 9, 10, 14):
        batches = setsup.batch_sampler(LABELS, **CALL)
        loader = loader_of(batches, workers)
        count = 0
        for number, _ in (each for _ in range(2) for each in enumerate(loader, 1)):
            count += 1
            if count == stop:
                state = batches.state_dict(delivered=number)
                break
        resumed = setsup.batch_sampler(LABELS, **CALL)
        resumed.load_state_dict(state)
        after = loader_of(resumed, workers)
        found = [rows.tolist() for _ in range(2 - state["pass"]) for rows in after]
        assert found == wanted(2)[stop:]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")  # torchdata 0.11 beside torch 2.13
@pytest.mark.parametrize("workers", WORKERS)
def test_a_stateful_dataloader_keeps_the_position_with_each_batch(workers: int) -> None:
    for stop in (1, 10, 17) if workers else (0, 1, 4, 9, 10, 11, 17, 20):
        loader = loader_of(setsup.batch_sampler(LABELS, **CALL), workers, stateful=True)
        seen, state = 0, loader.state_dict()
        while seen < stop:
            for _ in loader:
                seen += 1
                state = loader.state_dict()
                if seen == stop:
                    break
        resumed = loader_of(setsup.batch_sampler(LABELS, **CALL), workers, stateful=True)
        resumed.load_state_dict(state)
        # at the end of a pass, its rest is empty: the loop over epochs is still in this one
        passes = 3 - max(stop - 1, 0) // 10
        assert [rows.tolist() for _ in range(passes) for rows in resumed] == wanted(3)[stop:]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")  # torchdata 0.11 beside torch 2.13
@pytest.mark.parametrize("workers", WORKERS)
def test_a_stateful_dataloader_saved_behind_a_pass_continues_with_the_next(workers: int) -> None:
    loader = loader_of(setsup.batch_sampler(LABELS, **CALL), workers, stateful=True)
    list(loader)
    resumed = loader_of(setsup.batch_sampler(LABELS, **CALL), workers, stateful=True)
    resumed.load_state_dict(loader.state_dict())
    assert [rows.tolist() for _ in range(2) for rows in resumed] == wanted(3)[10:]


IN_GROUP = """
import json, os, sys, traceback
import torch
import setsup

folder, labels = sys.argv[1], [number % 7 for number in range(61)]

def train(rank, world, workers, steps, state, file):
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}-meeting", rank=rank, world_size=world)
    batches = setsup.batch_sampler(labels, classes=3, per_class=2)
    if state:
        batches.load_state_dict(state)
    loader = torch.utils.data.DataLoader(range(61), batch_sampler=batches, num_workers=workers)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    seen, place, left = [], batches.state_dict(), steps
    for epoch in range(place["pass"], 3):
        batches.set_epoch(epoch)
        for number, rows in enumerate(loader, 1):
            if not left:
                break
            model(rows[:, None].float()).sum().backward()
            optimizer.step()
            seen.append(rows.tolist())
            place, left = batches.state_dict(delivered=number), left - 1
        if not left:
            break
    with open(f"{file}{rank}.json", "w") as out:
        json.dump({"seen": seen, "state": place, "length": len(loader)}, out)

for name, (workers, *sessions) in json.loads(sys.argv[2]).items():  # torch, which takes longer, is imported once
    state = None
    for number, (world, steps) in enumerate(sessions):
        file = f"{folder}/{name}-{number}-rank"
        for rank in range(world):
            if not os.fork():
                try:
                    train(rank, world, workers, steps, state, file)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)
        assert [os.wait()[1] for _ in range(world)] == [0] * world
        with open(f"{file}0.json") as kept:
            state = json.load(kept)["state"]
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints; a failure shows its errors."""
    # ranks find each other on this machine, and two cores are enough for them
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **environment}
    words = [str(part) for part in command]
    found = subprocess.run(words, cwd=cwd, env=variables, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def in_order(folder: Path, world: int, name: str = "rank") -> list[list[int]]:
    """Batches of the ranks by round, then by rank; all ranks have equally many."""
    seen = [json.loads((folder / f"{name}{rank}.json").read_text())["seen"] for rank in range(world)]
    return [rows for each in zip(*seen, strict=True) for rows in each]


# processes of a loader, and then ranks and their steps
SESSIONS: dict[str, tuple[int, tuple[int, int], tuple[int, int]]] = {
    "fewer": (2, (3, 3), (2, 99)),
    "more": (0, (1, 3), (2, 99)),
}


@pytest.fixture(scope="module")
def in_groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("groups")
    run(sys.executable, "-c", IN_GROUP, folder, json.dumps(SESSIONS), cwd=folder)
    return folder


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("name", SESSIONS)
def test_ranks_of_ddp_have_every_draw_once_and_resume_on_other_ranks(name: str, in_groups: Path) -> None:
    draw, draws = 0, wanted(3)
    for number, (world, _) in enumerate(SESSIONS[name][1:]):
        file = f"{name}-{number}-rank"
        found = in_order(in_groups, world, file)
        kept = [json.loads((in_groups / f"{file}{rank}.json").read_text()) for rank in range(world)]
        assert all(one["state"] == kept[0]["state"] and one["length"] == -(-10 // world) for one in kept)
        ahead = iter(found)
        while (end := min((draw // 10 + 1) * 10, 30)) and draw < 30:
            part = list(islice(ahead, -(-(end - draw) // world) * world))
            if not part:
                break
            stop = min(draw + len(part), end)
            assert part == draws[draw:stop] + [draws[end - 1]] * (draw + len(part) - stop)
            draw = stop
        assert not list(ahead)
        assert kept[0]["state"]["delivered"] == draw
    assert draw == 30


def test_processes_that_draw_the_same_are_told_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    warn_of_lone_ranks.cache_clear()
    next(iter(setsup.batch_sampler(LABELS, **CALL, rank=0, world=1)))
    assert not caplog.records
    for _ in range(2):
        next(iter(setsup.batch_sampler(LABELS, **CALL)))
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == ["WORLD_SIZE=2"]
    warn_of_lone_ranks.cache_clear()


# accelerate and Hugging Face


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """How accelerate prepares a loader for one of two processes, without starting them."""
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    monkeypatch.setattr(accelerate.state.PartialState(cpu=True), "num_processes", 2)

    def prepared(
        rank: int, workers: int = 0, batches: BatchSampler | None = None, world: int = 2, **options: Any
    ) -> Any:
        made = loader_of(batches or setsup.batch_sampler(LABELS, **CALL), workers)
        return accelerate.data_loader.prepare_data_loader(made, num_processes=world, process_index=rank, **options)

    return prepared


@pytest.mark.parametrize("workers", WORKERS)
def test_accelerate_gives_whole_draws_to_its_processes_in_turn(processes: Any, workers: int) -> None:
    for rank in range(2):
        loader = processes(rank, workers)
        assert len(loader) == 5
        assert [rows.tolist() for _ in range(3) for rows in loader] == wanted(3)[rank::2]
        loader.set_epoch(1)
        assert [rows.tolist() for rows in loader] == wanted(2)[10 + rank :: 2]


@pytest.mark.parametrize("even", [True, False])  # sentence-transformers sets it to False
def test_processes_of_accelerate_have_equally_many_batches_and_repeat_the_last(processes: Any, even: bool) -> None:
    for world in (3, 4, 11):
        for start in (0, 16):
            loaders = [
                processes(
                    rank, batches=setsup.batch_sampler(LABELS, **CALL, start=start), world=world, even_batches=even
                )
                for rank in range(world)
            ]
            found = [[rows.tolist() for rows in loader] for loader in loaders]
            draws = wanted(2)[start : start // 10 * 10 + 10]
            rounds = -(-len(draws) // world)
            assert [len(batches) for batches in found] == [rounds] * world
            assert {len(loader) for loader in loaders} == {-(-10 // world)}
            together = [rows for each in zip(*found, strict=True) for rows in each]
            assert together == draws + [draws[-1]] * (rounds * world - len(draws))


def test_accelerate_resumes_a_loaded_position_or_skips_batches(processes: Any) -> None:
    from accelerate import skip_first_batches

    saved = setsup.batch_sampler(LABELS, **CALL, start=16)
    for rank in range(2):
        batches = setsup.batch_sampler(LABELS, **CALL)
        batches.load_state_dict(saved.state_dict())
        loader = processes(rank, batches=batches)
        assert [rows.tolist() for _ in range(2) for rows in loader] == wanted(3)[16 + rank :: 2]
        other = processes(rank)
        other.set_epoch(2)
        assert [rows.tolist() for rows in skip_first_batches(other, 3)] == wanted(3)[26 + rank :: 2]
        skipping = skip_first_batches(processes(rank), 3)
        skipping.set_epoch(2)  # as Hugging Face's Trainer does, and it does not come through
        assert [rows.tolist() for rows in skipping] == wanted(3)[26 + rank :: 2]


def test_the_position_under_accelerate_counts_the_draws_of_all_processes(processes: Any) -> None:
    batches = setsup.batch_sampler(LABELS, **CALL)
    for number, _ in enumerate(processes(1, batches=batches), 1):
        if number == 3:
            assert batches.state_dict(delivered=number) | {"delivered": 6, "steps": 3} == batches.state_dict(
                delivered=3
            )
            break


def test_with_steps_each_process_of_accelerate_has_that_many(processes: Any) -> None:
    for rank in range(2):
        loader = processes(rank, batches=setsup.batch_sampler(LABELS, **CALL, steps=4))
        assert len(loader) == 4
        assert [rows.tolist() for _ in range(2) for rows in loader] == wanted(2)[rank:16:2]


@pytest.mark.parametrize("even", [True, False])
def test_the_last_round_is_whole_whether_accelerate_evens_batches_or_not(
    even: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sentence-transformers turns its evening off; a process without a batch would wait for the others for ever."""
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    monkeypatch.setattr(accelerate.state.PartialState(cpu=True), "num_processes", 3)
    for rank in range(3):
        loader = accelerate.data_loader.prepare_data_loader(
            loader_of(setsup.batch_sampler(LABELS, **CALL), 0), num_processes=3, process_index=rank, even_batches=even
        )
        draws = wanted(2)
        first, second = [*draws[:10], *[draws[9]] * 2], [*draws[10:], *[draws[19]] * 2]
        assert [rows.tolist() for _ in range(2) for rows in loader] == [*first[rank::3], *second[rank::3]]


def test_accelerate_may_not_cut_batches_or_divide_those_of_a_rank(processes: Any) -> None:
    with pytest.raises(SamplerError, match="accelerate's split_batches=True cuts batches into parts"):
        processes(0, split_batches=True)
    with pytest.raises(SamplerError, match="accelerate's dispatch_batches=True cuts batches into parts"):
        processes(0, dispatch_batches=True, put_on_device=True)
    of_rank = processes(0, batches=setsup.batch_sampler(LABELS, **CALL, rank=0, world=2))
    with pytest.raises(SamplerError, match=r"among 2 processes again.*leave out rank= and world="):
        next(iter(of_rank))


def test_one_process_of_accelerate_may_ask_for_parts() -> None:
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    loader = loader_of(setsup.batch_sampler(LABELS, **CALL), 0)
    prepared = accelerate.data_loader.prepare_data_loader(loader, dispatch_batches=True, put_on_device=True)
    assert [rows.tolist() for rows in prepared] == wanted(1)


WITH_ACCELERATE = """
import json, sys
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
import setsup

labels = [number % 7 for number in range(61)]
accelerator = Accelerator(cpu=True)

def batches(**options):
    return torch.utils.data.DataLoader(range(61), batch_sampler=setsup.batch_sampler(labels, **options), num_workers=2)

loader = accelerator.prepare(batches(classes=3, per_class=2))
found = {"seen": [rows.tolist() for epoch in range(2) for rows in loader], "length": len(loader)}
plain = batches(classes=3, per_class=2)  # not prepared: its rank is that of the process group
found["plain"] = [rows.tolist() for rows in plain]
for option in ("split_batches", "dispatch_batches"):
    accelerator.dataloader_config = DataLoaderConfiguration(**{option: True})
    try:
        accelerator.prepare(batches(classes=3, per_class=2))
    except setsup.SetsupError as error:
        found[option] = str(error)
with open(f"rank{accelerator.process_index}.json", "w") as file:
    json.dump(found, file)
accelerator.end_training()
"""

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@pytest.mark.long("worker processes")
def test_two_processes_of_accelerate(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    (tmp_path / "ranks.py").write_text(WITH_ACCELERATE)
    run(*TORCHRUN, tmp_path / "ranks.py", cwd=tmp_path)
    assert in_order(tmp_path, 2) == wanted(2)
    for rank in range(2):
        found = json.loads((tmp_path / f"rank{rank}.json").read_text())
        assert found["length"] == 5
        assert found["plain"] == wanted(1)[rank::2]
        for option in ("split_batches", "dispatch_batches"):
            assert f"accelerate's {option}=True cuts batches" in found[option]


class Numbers(torch.nn.Module):
    """A model of one weight that notes the rows it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.seen: list[list[int]] = []

    def forward(self, row: Any) -> dict[str, Any]:
        self.seen.append(row.tolist())
        return {"loss": self.layer(row[:, None].float()).sum() * 0}


def collate(rows: list[int]) -> dict[str, Any]:
    return {"row": torch.tensor(rows)}


def trained(folder: Path, checkpoint: str | None = None, workers: int = 0, **options: Any) -> list[list[int]]:
    """Rows that Hugging Face's Trainer trains on in two epochs, which it may resume by itself."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            batches = setsup.batch_sampler(LABELS, **CALL)
            return self.accelerator.prepare(loader_of(batches, workers, collate_fn=collate))

    arguments = transformers.TrainingArguments(
        str(folder), num_train_epochs=2, use_cpu=True, report_to=[], disable_tqdm=True, logging_strategy="no", **options
    )
    model = Numbers()
    Trainer(model, arguments, train_dataset=Rows()).train(resume_from_checkpoint=checkpoint)
    return model.seen


@pytest.mark.long("worker processes")
@pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")
def test_hugging_faces_trainer_resumes_in_an_epoch_and_behind_it(tmp_path: Path) -> None:
    assert trained(tmp_path, save_steps=5) == wanted(2)
    for checkpoint in (5, 10, 15):
        resumed = trained(tmp_path / "again", str(tmp_path / f"checkpoint-{checkpoint}"), workers=2, save_strategy="no")
        assert resumed == wanted(2)[checkpoint:]


WITH_TRAINER = """
import json, os, sys, traceback
import torch, transformers
from torch.distributed import TCPStore
import setsup

labels = [number % 7 for number in range(61)]

class Numbers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(1, 1), []

    def forward(self, row):
        self.seen.append(row.tolist())
        return {"loss": self.layer(row[:, None].float()).sum() * 0}

class Trainer(transformers.Trainer):
    def get_train_dataloader(self):
        batches = setsup.batch_sampler(labels, classes=3, per_class=2)
        return self.accelerator.prepare(torch.utils.data.DataLoader(
            range(61), batch_sampler=batches, collate_fn=lambda rows: {"row": torch.tensor(rows)}
        ))

def train(checkpoint):
    arguments = transformers.TrainingArguments(
        "runs", num_train_epochs=2, use_cpu=True, report_to=[], disable_tqdm=True, save_steps=3, logging_strategy="no"
    )
    trainer = Trainer(Numbers(), arguments, train_dataset=list(range(61)))
    trainer.train(resume_from_checkpoint=checkpoint)
    return trainer.model.seen

def main(rank):
    found = {"seen": train(None), "resumed": train("runs/checkpoint-6")}
    with open(f"rank{rank}.json", "w") as file:
        json.dump(found, file)
    torch.distributed.destroy_process_group()

# what torchrun tells its ranks; but transformers, which takes long, is imported once
store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
os.environ |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
for rank in range(2):
    if not os.fork():
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        try:
            main(rank)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
assert [os.wait()[1] for _ in range(2)] == [0, 0]
"""


@pytest.mark.long("worker processes")
def test_two_ranks_of_hugging_faces_trainer(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    run(sys.executable, "-c", WITH_TRAINER, cwd=tmp_path)
    assert in_order(tmp_path, 2) == wanted(2)
    resumed = [json.loads((tmp_path / f"rank{rank}.json").read_text())["resumed"] for rank in range(2)]
    assert [rows for each in zip(*resumed, strict=True) for rows in each] == wanted(2)[12:]


# Lightning


def lightning_module() -> Any:
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.seen: list[list[int]] = []

        def training_step(self, rows: Any, _: int) -> Any:
            self.seen.append(rows.tolist())
            return self.layer(rows[:, None].float()).sum() * 0

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 1e-3)

    return Module()


QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning")
@pytest.mark.filterwarnings("ignore:.*is not resumable:UserWarning")
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")
def test_lightning_trains_passes_and_resumes_them(workers: int, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")

    def trainer(**options: Any) -> Any:
        options = {"enable_checkpointing": False, "use_distributed_sampler": False, **QUIET, **options}
        return lightning.Trainer(default_root_dir=tmp_path, **options)

    def loader(stateful: bool = False) -> Any:
        return loader_of(setsup.batch_sampler(LABELS, **CALL), workers, stateful)

    whole = lightning_module()
    trainer(max_epochs=3).fit(whole, loader())
    assert whole.seen == wanted(3)
    # behind an epoch
    first = trainer(max_epochs=1)
    first.fit(lightning_module(), loader())
    first.save_checkpoint(tmp_path / "behind.ckpt")
    rest = lightning_module()
    trainer(max_epochs=3).fit(rest, loader(), ckpt_path=tmp_path / "behind.ckpt")
    assert rest.seen == wanted(3)[10:]

    # within an epoch: Lightning keeps the state of a loader that has one
    class Saved(lightning.Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if trainer.global_step == 14:
                trainer.save_checkpoint(tmp_path / "within.ckpt")

    trainer(max_epochs=2, callbacks=[Saved()]).fit(lightning_module(), loader(stateful=True))
    rest = lightning_module()
    trainer(max_epochs=3).fit(rest, loader(stateful=True), ckpt_path=tmp_path / "within.ckpt")
    assert rest.seen == wanted(3)[14:]


def test_lightning_is_told_not_to_replace_the_sampler() -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    from lightning.fabric.utilities.data import _update_dataloader as in_fabric
    from lightning.pytorch.utilities.data import _update_dataloader as in_trainer

    for update in (in_fabric, in_trainer):
        loader = loader_of(setsup.batch_sampler(LABELS, **CALL), 0)
        with pytest.raises(SamplerError, match=r"Lightning would replace the sampler.*use_distributed_sampler=False"):
            update(loader, torch.utils.data.DistributedSampler(range(61), 2, 0))
