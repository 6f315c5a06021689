"""Segmentation by frozen encoders of views: a decoder is trained on top, and classes of pixels are compared.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), section 4.3, figure 4
   and tables 3 and 7.

"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from setsup.errors import DataError, SetsupError
from setsup.evaluation.segmentation import confusion_matrix, segmentation_scores
from setsup.experiments.evaluation import Measured
from setsup.experiments.trained_run import TrainedRun
from setsup_papers.cmc.frozen import (
    augmented_batches,
    check_views,
    fetch_batches,
    fit_network,
    needed_modalities,
    seeded,
    training_precision,
)
from setsup_papers.cmc.tiles import draw_tiles, tiles

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from setsup.datasets import Dataset
    from setsup.loading.batch import Batch

__all__ = ["Segmentation"]

_UNLABELLED = 0
"""Class of pixels that count for nothing: unlabelled ones of NYU, and what lies beyond the windows of rooms."""

_DECAY, _DECAYS = 0.2, (2000 / 3000, 2400 / 3000, 2800 / 3000)
_DRAWN = 6  # tiles of the image of an evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Segmentation:
    """Mean intersection over union and accuracy of pixels, by a decoder on top of the frozen encoder of one view.

    The decoder is a U-Net that mirrors the encoder, :class:`~setsup_papers.cmc.ViewDecoder` [our choice]. It is
    trained on batches of the preset's augmentation by cross-entropy, with Adam and the decays of the training, ×0.2
    after 2/3, 4/5 and 14/15 of the steps [our choice]. Images of the test are divided into tiles of the size that the
    encoder reads, as many whole ones as there is room for in the middle of the image [our choice]. Class 0, unlabelled,
    counts for nothing, neither in the training nor in the test, and is never predicted.

    Attributes
    ----------
    views : tuple of str
        Views to measure, each separately; by default all views of the method.
    labels : str
        Modality that contains the classes.
    classes : int, optional
        Number of classes, including the unlabelled one; by default as many as the dataset names.
    dataset : str, optional
        One of the preset's ``datasets`` to test on.
    split : str, optional
        Other split of the training data to test on, if no `dataset` is given.
    size : int
        Side of tiles, in pixels, as the crops in training.
    steps : int
        Training steps of the decoder; 200 epochs in the paper.
    baseline_steps : int
        Training steps of the baselines; 1,000 epochs in the paper.
    batch : int
        Number of crops per step.
    rate : float
        Learning rate [our choice].
    betas : (float, float)
        β₁ and β₂ of Adam [our choice].
    baselines : tuple of {"untrained", "supervised"}
        Also measure the frozen initial weights of the encoder (``untrained``), or encoder and decoder trained together
        from the same initial weights (``supervised``).

    """

    version: ClassVar[int] = 2  # never tells a pixel to be unlabelled

    views: tuple[str, ...] = ()
    labels: str = "labels"
    classes: int | None = None
    dataset: str | None = None
    split: str | None = None
    size: int = 128
    steps: int = 2_400
    baseline_steps: int = 12_000
    batch: int = 64
    rate: float = 1e-3
    betas: tuple[float, float] = (0.5, 0.999)
    baselines: tuple[Literal["untrained", "supervised"], ...] = ("untrained", "supervised")

    def __post_init__(self) -> None:
        """Check settings before networks are trained."""
        if self.dataset is not None and self.split is not None:
            raise SetsupError("dataset and split are mutually exclusive; set only one of them")

    def shrunk(self) -> "Segmentation":
        """Return the evaluation shrunk to few steps."""
        return replace(self, steps=2, baseline_steps=2, batch=4)

    def measure(self, trained: TrainedRun) -> Measured:
        """Values ``VIEW: mIoU`` and ``VIEW: pixel accuracy``; those of baselines begin with their names.

        The curves are the losses of the trainings, and the images show true and predicted classes of some tiles.
        """
        views = check_views(trained.method, self.views)
        train, test = trained.dataset, trained.open(self.dataset, split=self.split)
        classes = self._classes(train, test)
        values: dict[str, float] = {}
        curves: dict[str, tuple[list[int], list[float]]] = {}
        pictures: dict[str, Image] = {}
        for source in ("", *self.baselines):
            steps = self.baseline_steps if source else self.steps
            for view in views:
                about = {"view": view, "labels": self.labels, "classes": classes, "size": self.size, "steps": steps}
                about |= {"batch": self.batch, "rate": self.rate, "betas": self.betas, "source": source}
                about |= {"train": train.factors.fingerprint, "test": test.factors.fingerprint}

                def compute(source: str = source, view: str = view, steps: int = steps) -> dict[str, Any]:
                    return self._measured(trained, train, test, view, source, classes, steps)

                results = trained.part("segmentation", about, compute)
                title = f"{source}: {view}" if source else view
                scores = segmentation_scores(np.array(results["confusion"]))
                values |= {f"{title}: mIoU": scores.mean_iou, f"{title}: pixel accuracy": scores.pixel_accuracy}
                curves[f"{title}: loss"] = (list(range(1, steps + 1)), results["losses"])
                shown = [np.array(results[name], np.uint8) for name in ("shown", "labels", "told")]
                pictures[title.replace(": ", "-")] = draw_tiles(
                    shown[0], shown[1], shown[2], _names(train, self.labels)
                )
        return Measured(values=values, curves=curves, pictures=pictures)

    def _classes(self, train: "Dataset", test: "Dataset") -> int:
        for data in (train, test):
            if self.labels not in data.modalities:
                raise SetsupError(
                    f"{data.name} has no modality {self.labels!r} (modalities: {', '.join(data.modalities)}); set "
                    "labels to the modality with the classes, or render the classes with `setsup render room "
                    "--modalities image … labels`"
                )
        names = _names(train, self.labels)
        if names != _names(test, self.labels):
            raise SetsupError(
                f"the class names of {train.name} and {test.name} differ; test on data with the same class names"
            )
        if self.classes is None and not names:
            raise SetsupError(f"{train.name} has no class names; set classes to the number of classes")
        classes = len(names) if self.classes is None else self.classes
        if classes < 2:
            raise SetsupError(
                f"classes must be 2 or more, including class {_UNLABELLED}, which is ignored, not {classes}; set "
                "classes to a larger number"
            )
        return classes

    def _measured(
        self,
        trained: TrainedRun,
        train: "Dataset",
        test: "Dataset",
        view: str,
        source: str,
        classes: int,
        steps: int,
    ) -> dict[str, Any]:
        """Losses, the confusion matrix, and some tiles."""
        import torch

        from setsup_papers.cmc.networks.dense_views import ViewDecoder

        method: Any = trained.untrained if source else trained.method
        encoder: Any = deepcopy(method.encoders[view])
        learns = source == "supervised"
        encoder.requires_grad_(learns)
        with seeded(trained, f"decoder of {view}"):
            decoder = ViewDecoder(encoder, classes).to(trained.device, memory_format=torch.channels_last)  # type: ignore[call-overload]

        def logits(batch: "Batch") -> "torch.Tensor":
            images = method.inputs(batch, [view])[view]
            with training_precision(trained):
                with torch.set_grad_enabled(learns and torch.is_grad_enabled()):
                    layers = encoder.layers(images, decoder.reads)
                logits_of_pixels: torch.Tensor = decoder(layers).float()
            return logits_of_pixels

        network = torch.nn.ModuleDict({"decoder": decoder, **({"encoder": encoder} if learns else {})})
        encoder.eval()
        batches = augmented_batches(
            trained, train, f"segmentation {view}", steps, self.batch, needed_modalities(trained, train, [self.labels])
        )
        losses = self._train(network, logits, batches, steps)
        network.eval()
        confusion = np.zeros((classes, classes), np.int64)
        kept: list[list[Any]] = []
        with torch.inference_mode():
            for batch in self._tiles(trained, test):
                # of the known classes: one pixel told to be unlabelled would add a class without any intersection
                guess = 1 + logits(batch)[:, 1:].argmax(1).cpu().numpy()
                labels = batch[self.labels].flatten(0, 1).cpu().numpy()
                known = batch["mask"].flatten().cpu().numpy()
                confusion += confusion_matrix(labels[known], guess[known], classes, ignored=_UNLABELLED)
                if len(kept) < _DRAWN:
                    kept.append([method.inputs(batch, [view])[view][0, 0].cpu().numpy(), labels[0], guess[0]])
        shown, true, predicted = (np.stack(some) for some in zip(*kept, strict=True))
        low, high = np.percentile(shown, (1, 99))
        grey = (255 * ((shown - low) / max(high - low, 1e-6)).clip(0, 1)).astype(np.uint8)
        return {"losses": losses, "confusion": confusion, "shown": grey, "labels": true, "told": predicted}

    def _train(self, network: "torch.nn.Module", logits: Any, batches: "Iterator[Batch]", steps: int) -> list[float]:
        """Train what of an encoder and a decoder is to be trained; the loss of each step."""
        import torch
        from torch.nn import functional

        optimizer = torch.optim.Adam(network.parameters(), self.rate, betas=self.betas, fused=True)
        milestones = [round(share * steps) for share in _DECAYS]
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones, _DECAY)

        def loss(batch: "Batch") -> "torch.Tensor":
            scores = logits(batch)
            # the unlabelled class has a score, which is never the target
            labels = batch[self.labels].flatten(0, 1).long()
            if not bool((labels != _UNLABELLED).any()):
                raise SetsupError(
                    f"{self.labels!r} of the batch contains no pixel of a known class; check that labels is the "
                    "modality with the classes"
                )
            low, high = int(labels.min()), int(labels.max())
            if low < 0 or high >= scores.shape[1]:
                raise DataError(
                    f"{self.labels!r} contains the class {low if low < 0 else high}, but class numbers must be at "
                    f"least 0 and below {scores.shape[1]}; set classes to the number of classes"
                )
            return functional.cross_entropy(scores, labels, ignore_index=_UNLABELLED)

        network.train()
        return fit_network("segmentation", batches, steps, loss, optimizer, schedule)

    def _tiles(self, trained: TrainedRun, test: "Dataset") -> "Iterator[Batch]":
        """Batches of tiles of all images."""
        transform = trained.transform(test)
        modalities = needed_modalities(trained, test, [self.labels])
        for batch in fetch_batches(trained, test, self.batch, modalities, transform=False):
            for tile in tiles(batch, batch[self.labels].shape[-2:], self.size):
                yield tile if transform is None else transform(tile)


def _names(dataset: "Dataset", labels: str) -> tuple[str, ...]:
    """Names of the classes of a modality, if the dataset tells them."""
    classes: Mapping[str, tuple[str, ...]] = getattr(dataset, "classes", {})
    return tuple(classes.get(labels, ()))
