"""Style of digits over a training: figures 5 and S7 of ABC as curves, from the checkpoints that a run has kept.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, figures 5 and S7. They are qualitative: the measures are not the paper's.

"""

import copy
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.trained_run import TrainedRun
from setsup_papers.abc.digit_images import open_digit_images
from setsup_papers.abc.digits import DigitMeasures

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule

__all__ = ["SECONDS", "StyleOverTraining", "training_points"]

SECONDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0)
"""Seconds of training at which curves over seconds are read: the same for all runs, so that these can be averaged."""

_LOG = logging.getLogger(__name__)


class _Point(NamedTuple):
    """A state of the training, and what makes the method as it was."""

    step: int
    seconds: float
    method: "Callable[[], LightningModule]"


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleOverTraining:
    """Measures of :func:`~setsup_papers.abc.digits.digit_measures` over steps and over seconds of training.

    Before the first step and at every checkpoint that ``setsup train --keep-every N`` has kept, and at the last one.
    So that methods with other losses and dimensions can be compared, the noise of all has the same length as a share of
    the spread of their embeddings.

    Attributes
    ----------
    withheld : int
        The digit that was not trained on.
    every : int
        Stride over the test images, and over those of the withheld digit in both parts of MNIST.
    noise : float
        Root mean square length of the noise as a share of the root of the summed variances of embeddings: σ is
        noise · spread / √d. 0.6 is about σ = √τ = 1 for the 8 dimensions of ABC after training.
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    version: ClassVar[int] = 1

    withheld: int = 9
    every: int = 5
    noise: float = 0.6
    embedding: str | None = None

    def __post_init__(self) -> None:
        """Check numbers before all is embedded."""
        if self.every < 1 or not 0 <= self.noise < math.inf:
            raise SetsupError(f"every must be 1 or more and noise 0 or more, not {self.every} and {self.noise}")

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of the measures."""
        return "skimage", "sklearn"

    def shrunk(self) -> "StyleOverTraining":
        """Return the evaluation shrunk to few images."""
        return replace(self, every=20)

    def measure(self, trained: TrainedRun) -> Measured:
        """Values of the last checkpoint, with ``seconds``; curves of each measure, over steps and over seconds.

        And a sheet as figure S7: the first image of each digit, and the nearest to it of every digit.
        """
        images = open_digit_images(trained, self.withheld, self.every, self.every)
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        points = training_points(trained)
        measures: list[dict[str, float]] = []
        for point in points:

            def compute(point: _Point = point) -> dict[str, float]:
                embedded, of_withheld = images.embed(trained, point.method(), self.embedding)
                spread = float(np.sqrt(embedded.var(axis=0, dtype=np.float64).sum()))
                sigma = self.noise * spread / math.sqrt(embedded.shape[1])
                return images.measure(embedded, of_withheld, sigma=sigma, seed=trained.seed)

            about = {"tables": images.fingerprints, **settings, "step": point.step}
            measures.append(trained.part("style-over-training", about, compute))
        steps, seconds = [point.step for point in points], [point.seconds for point in points]
        curves: dict[str, tuple[list[float], list[float]]] = {}
        for field in fields(DigitMeasures):
            heights = [measured[field.name] for measured in measures]
            curves[f"{field.name} over steps"] = (list(map(float, steps)), heights)
            curves[f"{field.name} over seconds"] = (list(SECONDS), _at(SECONDS, seconds, heights))
        last, _ = images.embed(trained, points[-1].method(), self.embedding)
        pictures = {"neighbours": images.draw_neighbours(last)}
        return Measured(values={**measures[-1], "seconds": seconds[-1]}, curves=curves, pictures=pictures)


def training_points(trained: TrainedRun) -> list[_Point]:
    """States of the training, in the order of their steps."""
    from setsup.experiments.runs.checkpoint import (
        callback_state,
        has_checkpoint,
        open_checkpoint,
        open_kept,
        trained_steps,
    )

    folder = trained.folder
    if not has_checkpoint(folder):
        raise SetsupError(
            f"{folder} is not a run with a checkpoint, so there is no training to repeat; choose another run"
        )
    points = {0: _Point(0, 0.0, lambda: trained.untrained)}
    kept = sorted(path.stem for path in folder.glob("step-*.ckpt"))
    if not kept:
        _LOG.warning(
            "%s has no checkpoints between its first and its last step; keep some with `setsup train … --keep-every N`",
            folder,
        )

    for name in (*kept, ""):

        def opened(name: str = name) -> dict[str, Any]:
            return (open_kept(folder, name) if name else open_checkpoint(folder))[1]

        state = opened()
        step, seconds = trained_steps(state), float(callback_state(state)["seconds"])
        points[step] = _Point(step, seconds, partial(_loaded, trained, opened))
    return [points[step] for step in sorted(points)]


def _loaded(trained: TrainedRun, opened: Callable[[], dict[str, Any]]) -> "LightningModule":
    """The method with the weights of a checkpoint."""
    method = copy.deepcopy(trained.untrained)
    method.load_state_dict(opened()["state_dict"])
    return method.eval()


def _at(places: tuple[float, ...], x: list[float], y: list[float]) -> list[float]:
    """Heights at some places, by lines between points; NaN before the first and after the last."""
    heights: list[float] = np.interp(places, x, y, left=math.nan, right=math.nan).tolist()
    return heights
