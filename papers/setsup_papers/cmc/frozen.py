"""What evaluations of encoders of views share: batches that are drawn again and again, and trainings on top.

An evaluation trains on batches of the preset's augmentation, as the encoders were trained, and is tested on those of
its `eval_transform`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from setsup.errors import DataError, SetsupError, did_you_mean
from setsup.experiments.configs import build_transform
from setsup.experiments.data import shared_modalities
from setsup.experiments.trained_run import TrainedRun
from setsup.progress import progress
from setsup.random import fold, stream_key
from setsup.samplers import EpochSampler

if TYPE_CHECKING:
    import torch

    from setsup.datasets import Dataset
    from setsup.loading.batch import Batch, Transform

__all__ = [
    "augmented_batches",
    "check_views",
    "derived_seed",
    "fetch_batches",
    "fit_network",
    "needed_modalities",
    "seeded",
    "shared_classes",
    "shuffled_batches",
    "training_precision",
]


def derived_seed(trained: TrainedRun, name: str) -> int:
    """Seed of one part of an evaluation of a run."""
    return int(fold(stream_key(trained.seed, name), 0)) >> 1


@contextmanager
def seeded(trained: TrainedRun, name: str) -> "Iterator[None]":
    """Torch draws by the seed of one part of an evaluation, for weights that are made meanwhile."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derived_seed(trained, name))
        yield


def training_precision(trained: TrainedRun) -> "torch.autocast":
    """The precision of the training, on the device of the run."""
    import torch

    from setsup.experiments.embedding import precision_context

    return precision_context(torch.device(trained.device).type, trained.precision)


def check_views(method: Any, views: Sequence[str]) -> tuple[str, ...]:
    """Views of a method, those named or all; SetsupError where it has no such view or no encoders of views."""
    known = tuple(getattr(method, "encoders", ()))
    if not known:
        raise SetsupError(
            f"{type(method).__name__} has no encoders of views, whose layers this evaluation reads; train a preset of "
            "cmc, or define `encoders` and `inputs(batch, views)` in the method"
        )
    for view in views:
        if view not in known:
            there = f"{type(method).__name__} has no view {view!r} (views: {', '.join(known)})"
            raise SetsupError(f"{there}; choose from these views{did_you_mean(view, known)}")
    return tuple(views) or known


def needed_modalities(trained: TrainedRun, dataset: "Dataset", more: Sequence[str] = ()) -> tuple[str, ...] | None:
    """Modalities of the training and further ones; None for all of the dataset."""
    for name in more:
        if name not in dataset.modalities:
            raise SetsupError(f"{dataset.name} has no modality {name!r}{did_you_mean(name, dataset.modalities)}")
    shared = shared_modalities(trained.data, dataset)
    return None if shared is None else tuple(dict.fromkeys([*shared, *more]))


def shared_classes(fit: "Dataset", test: "Dataset", factor: str) -> int:
    """Number of levels of a factor, which both datasets have alike; DataError where they do not."""
    levels = fit.factors[factor].levels
    if levels is None or levels != test.factors[factor].levels:
        raise DataError(
            f"the levels of {factor!r} must be the same in {fit.name} and {test.name}; test on data with the same "
            "levels"
        )
    return len(levels)


def fit_network(
    name: str,
    batches: "Iterable[Batch]",
    steps: int,
    loss: "Callable[[Batch], torch.Tensor]",
    optimizer: "torch.optim.Optimizer",
    schedule: "torch.optim.lr_scheduler.LRScheduler",
) -> list[float]:
    """Take a step for each batch; the loss of each."""
    import torch

    losses: list[float] = []
    with progress(steps, name, "steps") as advance, torch.enable_grad():
        for batch in batches:
            value = loss(batch)
            optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            losses.append(value.item())
            advance()
    return losses


def augmented_batches(
    trained: TrainedRun,
    dataset: "Dataset",
    name: str,
    steps: int,
    size: int,
    modalities: Sequence[str] | None = None,
    *,
    seed: int | None = None,
) -> "Iterator[Batch]":
    """Batches (1, size, …) of a dataset in random order, augmented as in the training; by default by the run's seed."""
    seed = derived_seed(trained, name) if seed is None else seed
    transform = build_transform(trained.augmentation, dataset, seed)
    return islice(shuffled_batches(trained, dataset, size, seed, modalities, transform), steps)


def shuffled_batches(
    trained: TrainedRun,
    dataset: "Dataset",
    size: int,
    seed: int,
    modalities: Sequence[str] | None = None,
    transform: "Transform | None" = None,
) -> "Iterator[Batch]":
    """Batches (1, size, …) of a dataset in random order, without end."""
    from setsup.loading import Loader

    sampler = EpochSampler(dataset.factors, min(size, len(dataset)), seed=seed)
    return iter(Loader(dataset, sampler, modalities=modalities, transform=transform, to=_to(trained)))


def fetch_batches(
    trained: TrainedRun,
    dataset: "Dataset",
    size: int,
    modalities: Sequence[str] | None = None,
    *,
    transform: bool = True,
) -> "Iterator[Batch]":
    """Batches (1, size, …) of a dataset in its order, the last one padded; by default as the run embeds them."""
    from setsup.loading import Loader

    sampler = EpochSampler(dataset.factors, min(size, len(dataset)), epochs=1, shuffle=False, partial="pad")
    how = trained.transform(dataset) if transform else None
    return iter(Loader(dataset, sampler, modalities=modalities, transform=how, to=_to(trained)))


def _to(trained: TrainedRun) -> str:
    return "torch" if trained.device == "cpu" else trained.device
