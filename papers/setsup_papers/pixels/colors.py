"""What features of coloured digits say of the colour, and what can be classified from them.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), first experiment, and its published code.

"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from setsup.datasets.benchmarks.colored_mnist import LABEL_NOISE, NOISE
from setsup.experiments.evaluation import Measured
from setsup.experiments.trained_run import TrainedRun

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from setsup.datasets import Dataset

__all__ = ["ColorSwap", "PixelLabels"]

_COLORS = 2
_BATCH = 128
_DRAWN = 8  # digits of the image of an evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class ColorSwap:
    """How far pixel features move when a digit's color is swapped, compared with the distance of random pixels.

    Attributes
    ----------
    images : int
        Number of images of the split, each in both colors.
    split : str
        Split of the training data's dataset.
    norm : {"inf", "l1", "l2"}
        Distance of features, see :func:`setsup_papers.pixels.pixel_distances`.

    """

    version: ClassVar[int] = 1

    images: int = 500
    split: str = "test"
    norm: Literal["inf", "l1", "l2"] = "inf"

    def shrunk(self) -> "ColorSwap":
        """Return the evaluation shrunk to few images."""
        return replace(self, images=min(self.images, 8))

    def measure(self, trained: TrainedRun) -> Measured:
        """Mean distances, ``colour swapped`` and ``random pixels``, and their ratio; the same without training.

        The image ``features`` shows features of some digits, and which pixel of a digit is nearest to each pixel of the
        same one in the other colour, turned by 90°.
        """
        dataset = trained.open(split=self.split)
        rows = trained.sample(self.images, dataset.factors)
        about = {"rows": rows, "norm": self.norm}
        values: dict[str, float] = {}
        for name, method in (("", trained.method), ("untrained: ", trained.untrained)):
            distances = trained.part("swap", about | {"of": name}, partial(self._apart, method, dataset, rows))
            values |= {f"{name}{kind}": value for kind, value in distances.items()}
        return Measured(values=values, pictures={"features": _drawn(trained.method, dataset, rows[:_DRAWN])})

    def _apart(self, method: Any, dataset: "Dataset", rows: npt.NDArray[np.int64]) -> dict[str, float]:
        import torch

        from setsup_papers.pixels.losses import pixel_distances

        generator = torch.Generator().manual_seed(0)
        sums = np.zeros(2)
        for maps in _maps_in_both_colors(method, dataset, rows):
            first, second = maps.flatten(3).unbind(1)  # (n, D, pixels)
            other = torch.randint(second.shape[2], (second.shape[2],), generator=generator)
            apart = [pixel_distances(first, view, self.norm).mean(1).sum() for view in (second, second[..., other])]
            sums += [float(total) for total in apart]
        swapped, random = (sums / len(rows)).tolist()
        return {"colour swapped": swapped, "random pixels": random, "ratio": swapped / random}


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelLabels:
    """Accuracy of a classifier of pixel features, on images with colors as in training and with opposite colors.

    The network is frozen. A :class:`~setsup_papers.pixels.PixelClassifier` is trained on features of images that are
    not warped, with labels and colours drawn again at every access: binary cross-entropy of every pixel with the label
    of its image. An image is of the class to which the mean over pixels of the logistic function points.

    Attributes
    ----------
    steps : int
        Training steps of the classifier.
    batch : int
        Images per step.
    rate : float
        Largest learning rate of AdamW, with one cycle.
    images : int, optional
        Training images, whose features in both colors are kept in memory in 16 bits; all by default.
    test : int, optional
        Maximum number of test images per split.
    stride : int
        Use the features of every `stride`-th row and column; 1 uses all.
    hidden : tuple of int
        Widths of the hidden layers of the classifier.

    """

    version: ClassVar[int] = 1

    steps: int = 12_000
    batch: int = 128
    rate: float = 2e-3
    images: int | None = None
    test: int | None = None
    stride: int = 1
    hidden: tuple[int, ...] = (150, 100, 50)

    def shrunk(self) -> "PixelLabels":
        """Return the evaluation shrunk to few steps and images."""
        return replace(self, steps=2, batch=8, images=16, test=16, stride=4)

    def measure(self, trained: TrainedRun) -> Measured:
        """Accuracies ``ID``, of the split ``test``, and ``OOD``, of ``ood``."""
        settings = {
            name: getattr(self, name) for name in ("steps", "batch", "rate", "images", "test", "stride", "hidden")
        }
        results = trained.part("labels", settings, lambda: self._accuracies(trained))
        curve = (list(range(1, self.steps + 1)), results.pop("losses"))
        return Measured(values=results, curves={"loss of the classifier": curve})

    def _accuracies(self, trained: TrainedRun) -> dict[str, Any]:
        classifier, losses = self._classifier(trained)
        accuracies: dict[str, Any] = {"losses": losses}
        for name, split in (("ID", "test"), ("OOD", "ood")):
            accuracies[name] = self._accuracy(trained, classifier, trained.open(split=split))
        return accuracies

    def _classifier(self, trained: TrainedRun) -> tuple["torch.nn.Module", list[float]]:
        """Train on features of both colours of each image; the loss of each step, too."""
        import torch
        from torch.nn import functional

        from setsup_papers.pixels.networks import PixelClassifier

        dataset = trained.dataset
        rows = trained.sample(len(dataset) if self.images is None else self.images)
        maps = [
            some_maps[..., :: self.stride, :: self.stride].half()
            for some_maps in _maps_in_both_colors(trained.method, dataset, rows)
        ]
        features = torch.cat(maps).flatten(4)  # (n, 2, D, h, w)
        clean = torch.from_numpy(dataset.factors.codes("clean_label", rows)).long()
        noise = torch.tensor(NOISE)[torch.from_numpy(dataset.factors.codes("environment", rows)).long()]
        random = torch.Generator().manual_seed(trained.seed)
        device = torch.device(trained.device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(trained.seed)
            classifier = PixelClassifier(features.shape[2], self.hidden).to(device)
        optimizer = torch.optim.AdamW(
            classifier.parameters(), self.rate, betas=(0.9, 0.99), weight_decay=1e-6, fused=True
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.rate, self.steps, pct_start=0.05)
        losses = []
        for _ in range(self.steps):
            some = torch.randint(len(rows), (self.batch,), generator=random)
            flips = torch.rand(2, self.batch, generator=random)
            label = clean[some] ^ (flips[0] < LABEL_NOISE)
            color = label ^ (flips[1] < noise[some])
            logits = classifier(features[some, color].to(device).float())
            targets = label.to(device, logits.dtype)[:, None, None].expand_as(logits)
            loss = functional.binary_cross_entropy_with_logits(logits, targets)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_value_(classifier.parameters(), 3.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        return classifier.eval(), losses

    def _accuracy(self, trained: TrainedRun, classifier: "torch.nn.Module", dataset: "Dataset") -> float:
        """Share of a split's images whose label is found; labels and colours are those of the dataset."""
        import torch

        rows = trained.sample(len(dataset) if self.test is None else self.test, dataset.factors)
        labels = torch.from_numpy(dataset.factors.codes("label", rows)).long()
        right, start = 0, 0
        with torch.inference_mode():
            for maps in trained.embed_batches(dataset, rows):
                features = torch.from_numpy(maps)[:, :: self.stride, :: self.stride].movedim(-1, 1)
                logits = classifier(features.to(trained.device))
                predicted = (logits.sigmoid().mean((1, 2)) > 0.5).long().cpu()
                right += int((predicted == labels[start : start + len(predicted)]).sum())
                start += len(predicted)
        return right / len(rows)


def _in_both_colors(dataset: "Dataset", rows: npt.NDArray[np.int64]) -> "torch.Tensor":
    """Images (n, 2, 3, h, w) uint8 of some rows, in colour 0 and in colour 1."""
    import torch

    from setsup.datasets.benchmarks.colored_mnist import zeroed

    image = torch.from_numpy(dataset.fetch(rows, ["image"])["image"]).movedim(-1, 1)
    grey = image.amax(1, keepdim=True)  # one of three equal channels is empty
    channel = torch.arange(image.shape[1])[:, None, None]
    return torch.stack([grey * (channel != zeroed(color, image.shape[1])) for color in range(_COLORS)], 1)


def _maps_in_both_colors(method: Any, dataset: "Dataset", rows: npt.NDArray[np.int64]) -> Iterator["torch.Tensor"]:
    """Features (n, 2, D, h, w) of some images after the others, in colour 0 and in colour 1."""
    import torch

    with torch.inference_mode():
        for start in range(0, len(rows), _BATCH):
            yield _maps(method, _in_both_colors(dataset, rows[start : start + _BATCH]))


def _maps(method: Any, images: "torch.Tensor") -> "torch.Tensor":
    """Features (n, 2, D, h, w) of images (n, 2, 3, h, w)."""
    features: torch.Tensor = method.embed({"image": images.to(next(method.parameters()).device)})
    return features.movedim(-1, 2)


def _drawn(method: Any, dataset: "Dataset", rows: npt.NDArray[np.int64]) -> "Image":
    """Features of digits in colour 0, and in colour 1 turned by 90°."""
    import torch

    from setsup_papers.pixels.sheets import color_sheet

    images = _in_both_colors(dataset, rows)
    images[:, 1] = images[:, 1].rot90(dims=(2, 3))
    with torch.inference_mode():
        maps = _maps(method, images).float().cpu().movedim(2, -1).numpy()
    shown = images.movedim(2, -1).numpy()
    return color_sheet(list(shown[:, 0]), list(shown[:, 1]), list(maps[:, 0]), list(maps[:, 1]))
