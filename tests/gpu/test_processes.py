"""Several processes that train together: two by gloo on one device, and NCCL with one process, or one on each GPU."""

import multiprocessing
import sys
from pathlib import Path
from typing import Any

import pytest

import setsup
from setsup.loading import Loader

torch = pytest.importorskip("torch", reason="torch is not installed")

from setsup.methods.rows import RowState  # noqa: E402
from tests.gpu.conftest import CPU, CUDA, exact  # noqa: E402

ROWS = 10
CASES = [
    pytest.param(*CUDA.values, "gloo", 2, id="cuda-gloo-2-on-one-gpu", marks=CUDA.marks),
    pytest.param(*CUDA.values, "nccl", 1, id="cuda-nccl-1", marks=CUDA.marks),
    pytest.param(*CUDA.values, "nccl", 2, id="cuda-nccl-2", marks=CUDA.marks),
    pytest.param(*CPU.values, "gloo", 2, id="cpu-gloo-2", marks=CPU.marks),
]


def batches(rank: int, world: int, device: str) -> Any:
    shapes = setsup.load("shapes3d-procedural")
    sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2)
    return iter(Loader(shapes, sets, rank=rank, world=world, to=device, workers=0))


def network(device: str) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(0, 1), torch.nn.Flatten(1), torch.nn.Linear(3 * 64 * 64, 4)).to(device)


def gradient(model: Any, batch: Any) -> Any:
    model(batch["image"].float() / 255).square().mean().backward()
    return next(model.parameters()).grad


def rank_main(rank: int, world: int, backend: str, device: str, folder: Path) -> None:
    """One rank: the gradient of its draw by DDP, and rows of a state that all ranks write and read."""
    import torch.distributed as dist

    torch.set_num_threads(1)  # of a forked process: the other threads of its parent are not there
    with exact(device):
        if backend == "nccl":
            device = f"cuda:{rank}"
            torch.cuda.set_device(rank)
        store = dist.FileStore(str(folder / "meeting"), world)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world)
        try:
            model = torch.nn.parallel.DistributedDataParallel(network(device))
            found = gradient(model, next(batches(rank, world, device))).cpu()
            bank = RowState(ROWS, 2, initial=0.0).to(device)
            own = torch.arange(rank, ROWS, world, device=device)
            bank.update(own, torch.stack([own, own + rank], 1).float())
            read = bank.gather(torch.arange(ROWS, device=device)).cpu()
            torch.save((found, read), folder / f"rank-{rank}.pt")
        finally:
            dist.destroy_process_group()


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
@pytest.mark.parametrize(("device", "backend", "world"), CASES)
def test_gradients_are_means_over_ranks_and_states_are_shared(
    tmp_path: Path, device: str, backend: str, world: int
) -> None:
    with exact(device):
        if backend == "nccl" and torch.cuda.device_count() < world:
            pytest.skip(f"NCCL gives each process a GPU of its own, and there are not {world}")
        context = multiprocessing.get_context("fork" if device == "cpu" else "spawn")
        given = [(rank, world, backend, device, tmp_path) for rank in range(world)]
        ranks = [context.Process(target=rank_main, args=one, daemon=True) for one in given]
        for one in ranks:
            one.start()
        for one in ranks:
            one.join(120)
        assert [one.exitcode for one in ranks] == [0] * world
        draws = batches(0, 1, "torch")  # those of one process, which the ranks take in turn
        wanted = torch.stack([gradient(network("cpu"), next(draws)) for _ in range(world)]).mean(0)
        rows = torch.arange(ROWS)
        for rank in range(world):
            found, read = torch.load(tmp_path / f"rank-{rank}.pt")
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
            assert torch.equal(read, torch.stack([rows, rows + rows % world], 1).float())
