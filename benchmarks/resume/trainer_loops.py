"""Loops of trainers that start the processes or select the epochs: Lightning, Ray Train."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.resume.data import AUGMENT, batch_digests, digests, images, make_batches, sampler
from benchmarks.resume.job import Job
from benchmarks.resume.loops import Rows, left_of, torch_bytes, torch_rows
from benchmarks.resume.plan import PASSES
from benchmarks.resume.run import Way

__all__ = ["lightning_bytes", "lightning_rows", "ray_bytes", "ray_rows"]

CHECKOUT = Path(__file__).resolve().parents[2]


# Lightning


def _module(job: Job, position: Callable[[int], Any]) -> Any:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any, _: int) -> Any:
            rows = batch["indices"] if isinstance(batch, dict) else batch
            if isinstance(batch, dict):
                job.saw(batch_digests(batch))
            else:
                job.saw(digests(batch), self.current_epoch)
            return self.layer(rows.reshape(-1, 1).float()).mean()

        def on_train_batch_end(self, _outputs: Any, _batch: Any, number: int) -> None:
            job.save({"model": self.state_dict(), "batches": position(number)})

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 1e-6)

    return Module()


def _trainer(job: Job, **options: Any) -> Any:
    import lightning

    quiet: dict[str, Any] = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
    }
    many: dict[str, Any] = {"strategy": "ddp", "devices": job.world} if job.world > 1 else {"devices": 1}
    return lightning.Trainer(accelerator="cpu", default_root_dir=job.folder, **many, **quiet, **options)


def lightning_rows(job: Job) -> None:
    batches, state = make_batches(), job.load()
    first = 0
    if state is not None:
        batches.load_state_dict(state["batches"])
        first = batches.state_dict()["pass"]
    module = _module(job, lambda number: batches.state_dict(delivered=number + 1))
    if state is not None:
        module.load_state_dict(state["model"])
    trainer = _trainer(job, max_epochs=PASSES, use_distributed_sampler=False)
    progress = trainer.fit_loop.epoch_progress.current
    progress.processed = progress.completed = progress.ready = progress.started = first
    loader = torch.utils.data.DataLoader(Rows(), batch_sampler=batches, num_workers=job.workers)
    trainer.fit(module, loader)


def lightning_bytes(job: Job) -> None:
    from setsup.loading.lightning import LightningBatches

    state = job.load()
    start = 0 if state is None else state["batches"]["delivered"]
    batches = LightningBatches(images(), sampler(), start=start, workers=job.workers, transform=AUGMENT)
    module = _module(job, lambda _: batches.state_dict())
    if state is not None:
        module.load_state_dict(state["model"])
    _trainer(job, max_steps=left_of(job, start)).fit(module, batches)


# Ray Train


def ray_rows(job: Job) -> None:
    _ray(job, torch_rows)


def ray_bytes(job: Job) -> None:
    _ray(job, torch_bytes)


def _ray(job: Job, loop: Way) -> None:
    """The plain loop, on workers that Ray starts: the first process is the driver, the others have nothing to do."""
    if job.rank:
        return
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "configure_logging": False}
    path = {"PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    ray.init(num_cpus=job.world, runtime_env={"env_vars": path}, _temp_dir=tempfile.mkdtemp(prefix="ray"), **options)
    about = {name: getattr(job, name) for name in ("folder", "part", "world", "workers", "stop")}

    def of_worker(config: dict[str, Any]) -> None:
        rank = ray.train.get_context().get_world_rank()
        loop(Job(rank=rank, **config))

    TorchTrainer(
        of_worker,
        train_loop_config=about,
        scaling_config=ScalingConfig(num_workers=job.world),
        run_config=RunConfig(storage_path=str(job.folder / "ray")),
    ).fit()
    ray.shutdown()
