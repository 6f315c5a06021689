"""How a preset is run: devices, precision, loggers."""

from dataclasses import asdict, dataclass
from typing import Literal

from setsup.errors import SetsupError
from setsup.experiments.settings import check
from setsup.experiments.training.checkpoint_retention import split_metric

__all__ = ["RunConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Configuration of a run. Only devices, nodes and sync_batchnorm change its result by more than rounding.

    Attributes
    ----------
    precision : {"float32", "bf16", "fp16"}
        Of convolutions and products: with ``bf16`` in bfloat16, with ``fp16`` in float16, with scaled gradients, on a
        GPU only; weights and losses stay float32.
    devices, nodes : int
        GPUs, or processes without a GPU, on each of so many machines. W devices train on W draws per step: another
        experiment than with one, as reports say of such a run.
    accelerator : {"auto", "cpu", "gpu"}
        What to train on.
    strategy : {"auto", "ddp", "ddp-unused"}
        How several devices train together: each has the whole method, and gradients are averaged. ``ddp-unused`` is
        for methods some of whose parameters get no gradient in a step.
    sync_batchnorm : bool
        Batch normalisation over the draws of all GPUs together.
    compile : bool
        Compile the method's networks with ``torch.compile``.
    workers : int or str
        As for :func:`setsup.loader`.
    log : tuple of {"tensorboard", "wandb", "mlflow"}
        Loggers of metrics, in addition to the files of the run folder.
    profiler : {"simple", "advanced", "pytorch"}, optional
        Lightning's profiler: times of its hooks, of Python's functions, or of torch's operators; written into the
        folder ``profile`` of the run.
    allow_nonfinite : bool
        Continue when the loss or the weights are no longer finite; otherwise a run stops there.
    checkpoint_minutes : float, optional
        Also write a checkpoint when so many minutes have passed since the last one, for a machine that may be taken
        away.
    keep_every : int, optional
        Keep the checkpoint of every N-th step, as ``step-000500.ckpt``.
    keep_best : str, optional
        Keep the checkpoint with the least value of a metric, or the greatest with ``:max`` after its name, as
        ``best.ckpt``. A metric of every step counts as its mean since the checkpoint before.

    """

    precision: Literal["float32", "bf16", "fp16"] = "float32"
    devices: int = 1
    nodes: int = 1
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    strategy: Literal["auto", "ddp", "ddp-unused"] = "auto"
    sync_batchnorm: bool = False
    compile: bool = False
    workers: int | str = "auto"
    log: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = ()
    profiler: Literal["simple", "advanced", "pytorch"] | None = None
    allow_nonfinite: bool = False
    checkpoint_minutes: float | None = None
    keep_every: int | None = None
    keep_best: str | None = None

    def __post_init__(self) -> None:
        """Check them."""
        check(self, asdict(self))
        if self.devices < 1 or self.nodes < 1:
            name, number = ("devices", self.devices) if self.devices < 1 else ("nodes", self.nodes)
            raise SetsupError(f"{name} must be 1 or more, not {number}")
        if self.keep_best is not None:
            split_metric(self.keep_best)
        if self.checkpoint_minutes is not None and not 0 < self.checkpoint_minutes < float("inf"):
            raise SetsupError(
                "checkpoint_minutes must be above 0, or None for checkpoints by steps only, not "
                f"{self.checkpoint_minutes}"
            )
        if self.keep_every is not None and self.keep_every < 1:
            raise SetsupError(f"keep_every must be 1 or more (a number of steps), not {self.keep_every}")
