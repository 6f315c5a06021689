"""Mutual information between the views that a preset draws, figure 5 of contrastive multiview coding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.trained_run import TrainedRun
from setsup_papers.cmc.frozen import augmented_batches, needed_modalities

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["ViewsInformation"]

_BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsInformation:
    """Mutual information between two views by MINE, see :func:`setsup.evaluation.view_information`.

    Pairs of views are those of the preset's augmentation, each of another random crop. Nothing of the trained method
    enters but the names of its views.

    Attributes
    ----------
    views : (str, str), optional
        Two views; by default the first two of the method.
    dataset : str, optional
        One of the preset's ``datasets``; by default the training data.
    pairs : int
        Number of pairs of views: 70 % to train the statistics network, 15 % to choose the step, 15 % for the test.
    steps, batch : int
        Training steps of the statistics network, and pairs per step [our choice].
    rate : float
        Learning rate [our choice].
    width : int
        Width of the statistics network [our choice].
    pair_seed : int
        Random seed of pairs and network; it differs from the seed of the run, so that presets are compared on the same
        crops.

    """

    version: ClassVar[int] = 1

    views: tuple[str, ...] = ()
    dataset: str | None = None
    pairs: int = 10_000
    steps: int = 4_000
    batch: int = 128
    rate: float = 3e-4
    width: int = 32
    pair_seed: int = 0

    def __post_init__(self) -> None:
        """Check the number of views before any is drawn."""
        if len(self.views) not in (0, 2):
            raise SetsupError(f"views must be empty or contain two different views, not {self.views}")

    def shrunk(self) -> "ViewsInformation":
        """Return the evaluation shrunk to few pairs."""
        return replace(self, pairs=100, steps=4, batch=16, width=2)

    def measure(self, trained: TrainedRun) -> Measured:
        """Values ``nats``, the bound on pairs of the test, and ``nats of the fit``; the curve is that of the choice."""
        names = self.views or tuple(getattr(trained.method, "views", ()))[:2]
        if len(names) != 2:
            raise SetsupError(
                f"{type(trained.method).__name__} does not have exactly two views; set views to two of them"
            )
        dataset = trained.open(self.dataset)
        settings = {"views": names, "data": dataset.factors.fingerprint, "name": dataset.name}
        settings |= {key: getattr(self, key) for key in ("pairs", "steps", "batch", "rate", "width", "pair_seed")}

        def compute() -> dict[str, Any]:
            from setsup.evaluation import view_information

            first, second = (np.concatenate(some) for some in zip(*self._drawn(trained, dataset, names), strict=True))
            bound = view_information(
                first[: self.pairs],
                second[: self.pairs],
                steps=self.steps,
                batch=self.batch,
                rate=self.rate,
                width=self.width,
                seed=self.pair_seed,
                device=trained.device,
            )
            return {"nats": bound.nats, "fit": bound.fit_nats, "steps": bound.steps, "chosen_on": bound.chosen_on}

        results = trained.part("information", settings, compute)
        curve = (results["steps"], results["chosen_on"])
        return Measured(values={"nats": results["nats"], "nats of the fit": results["fit"]}, curves={"nats": curve})

    def _drawn(
        self, trained: TrainedRun, dataset: "Dataset", names: Sequence[str]
    ) -> Iterator[list[npt.NDArray[np.float32]]]:
        """Both views (n, C, h, w) of crops of images, batch by batch."""
        from setsup_papers.cmc.inputs import view_images

        size = min(_BATCH, len(dataset))
        modalities = needed_modalities(trained, dataset)
        steps = -(-self.pairs // size)
        for batch in augmented_batches(trained, dataset, "information", steps, size, modalities, seed=self.pair_seed):
            yield [view_images(batch, name).cpu().numpy() for name in names]
