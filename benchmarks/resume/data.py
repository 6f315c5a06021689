"""Labels, images and the stream that the runs should train on."""

import hashlib
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

import setsup
from benchmarks.resume.noise import SIDE, pixels
from benchmarks.resume.plan import DRAWS, PASSES
from setsup.loading.transforms import Augment, Flip, ResizedCrop

__all__ = [
    "AUGMENT",
    "CALL",
    "LABELS",
    "ROWS",
    "batch_digests",
    "digests",
    "images",
    "make_batches",
    "make_loader",
    "sampler",
    "truth",
]

AUGMENT = Augment([ResizedCrop(SIDE, area=(0.3, 1)), Flip()])
ROWS = 192
LABELS = [row % 12 for row in range(ROWS)]
CALL: dict[str, Any] = {"classes": 4, "per_class": 2, "seed": 7}
"""Batches of eight rows, so that a pass has 24 draws."""

Item = tuple[int, str]
"""A row, and the digest of its image; without an image the digest is empty."""


@cache
def images() -> Any:
    """A dataset of the same rows, of noise."""
    return setsup.from_arrays(pixels(ROWS), {"label": np.array(LABELS)})


def make_batches(**options: Any) -> Any:
    """The batch sampler of all runs."""
    return setsup.batch_sampler(LABELS, **CALL, **options)


def make_loader(**options: Any) -> Any:
    """The loader of all runs: the same draws, with random crops and flips, which only tensors can have."""
    transform = None if options.get("to") == "numpy" else AUGMENT
    return setsup.loader(images(), sampler(), transform=transform, **options)


def sampler() -> Any:
    """The sampler of the loader."""
    return setsup.DomainSampler(images().factors, "label", sets=4, size=2, seed=7)


def digests(rows: Any, pixels: Any = None) -> list[Item]:
    """Each row of a batch with the digest of its image."""
    numbers = np.asarray(rows).reshape(-1).tolist()
    if pixels is None:
        return [(row, "") for row in numbers]
    flat: npt.NDArray[Any] = np.ascontiguousarray(pixels).reshape(len(numbers), -1)
    return [
        (row, hashlib.blake2s(one.tobytes(), digest_size=8).hexdigest()) for row, one in zip(numbers, flat, strict=True)
    ]


def truth(line: str, draws: int = DRAWS * PASSES, to: str = "torch") -> list[list[Item]]:
    """The first draws of a run of one process that nothing interrupts."""
    if line == "rows":
        batches = make_batches()
        return [digests(batches.rows(draw)) for draw in range(draws)]
    return [batch_digests(batch) for batch in islice(make_loader(to=to, workers=0), draws)]


def batch_digests(batch: Any) -> list[Item]:
    """Rows and digests of a batch of the loader."""
    return digests(batch["indices"], channels_last(batch["image"]))


def channels_last(pixels: Any) -> npt.NDArray[Any]:
    """Images as numpy has them, so that digests of tensors are the same."""
    array = np.asarray(pixels)
    return array if array.shape[-1] == 3 else np.moveaxis(array, -3, -1)
