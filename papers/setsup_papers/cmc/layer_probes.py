"""Classifiers on top of the layers of frozen encoders of views: the protocols for ImageNet and for STL-10.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), tables 1, 2 and 5, and
   its published code.

"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from setsup.errors import DataError, SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations.rows import SMOKE_ROWS
from setsup.experiments.trained_run import TrainedRun
from setsup.progress import progress
from setsup_papers.cmc.frozen import (
    augmented_batches,
    check_views,
    fetch_batches,
    needed_modalities,
    seeded,
    shared_classes,
    training_precision,
)

if TYPE_CHECKING:
    import torch

    from setsup.datasets import Dataset
    from setsup.loading.batch import Batch

__all__ = ["LayerProbes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerProbes:
    """Accuracy of classifiers of the layers of all views: linear ones, or networks with one hidden layer.

    Encoders are frozen, in evaluation mode. Of a layer the maps of all views are concatenated and max-pooled, and a
    classifier is trained by cross-entropy, with SGD or Adam on batches of the preset's augmentation; those of all
    layers at once, on one pass through the encoders, but each by itself. After every epoch it is tested on batches of
    the `eval_transform`. As in the published code the best of these epochs is reported, which is chosen on the images
    of the test; the last epoch is reported, too.

    Attributes
    ----------
    factor : str
        Factor of the class.
    layers : tuple of str
        Stages of the encoders.
    pooled : tuple of int
        Side of the pooled maps of each layer; 0, or an empty list, for no pooling.
    hidden : tuple of int
        Units of the hidden layer of each classifier, with ReLU; 0 for a linear one. Several are trained together.
    views : tuple of str
        Views to measure; by default all views of the method.
    fit : str, optional
        Split of the training data's dataset to fit to; by default the training data. Images of unknown class are left
        out.
    fit_dataset : str, optional
        One of the preset's ``datasets`` to fit to, instead of the training data.
    split : str, optional
        Split to test on, of the dataset that the classifiers are fitted to.
    dataset : str, optional
        One of the preset's ``datasets`` to test on, if it differs from the one that the classifiers are fitted to;
        `split` is then a split of it.
    epochs : int
        Number of epochs; 160 in the paper, 60 in the code.
    decays : tuple of int
        Epochs after which the rate is multiplied by `decay`.
    decay : float
        Factor of each decay.
    batch : int
        Number of images per step.
    rate : float
        Learning rate; in the paper 30 for ResNets and 50 for those of double width.
    momentum, weight_decay : float
        Momentum and weight decay of SGD.
    betas : (float, float), optional
        β₁ and β₂ of Adam, which then replaces SGD, as for STL-10 in the paper; `momentum` is not used.
    strided : (int, int), optional
        Size and stride of image patches that are encoded separately, such as 16 and 8 pixels; a layer is then a map of
        patches.
    samples : int, optional
        Maximum number of training images and of test images; all by default.
    baselines : tuple of {"untrained"}
        Also measure the encoders with their initial weights.

    """

    version: ClassVar[int] = 1

    factor: str
    layers: tuple[str, ...] = ("conv1", "conv2", "conv3", "conv4", "conv5")
    pooled: tuple[int, ...] = (10, 6, 5, 5, 6)
    hidden: tuple[int, ...] = (0,)
    views: tuple[str, ...] = ()
    fit: str | None = None
    fit_dataset: str | None = None
    split: str | None = None
    dataset: str | None = None
    epochs: int = 60
    decays: tuple[int, ...] = (30, 40, 50)
    decay: float = 0.2
    batch: int = 256
    rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    betas: tuple[float, float] | None = field(default=None, metadata={"added": True})
    strided: tuple[int, int] | None = None
    samples: int | None = None
    baselines: tuple[Literal["untrained"], ...] = ()

    def __post_init__(self) -> None:
        """Check settings before classifiers are trained."""
        if self.dataset is None and self.split is None:
            raise SetsupError(
                "all images are used for fitting, so none are left to test on; set a split or a dataset to test on"
            )
        if not self.layers or len(self.pooled) > len(self.layers):
            raise SetsupError(
                f"layers must contain at least one layer, and pooled at most one side per layer, not {self.layers} "
                f"and {self.pooled}"
            )

    def shrunk(self) -> "LayerProbes":
        """Return the evaluation shrunk to two epochs of few images."""
        return replace(self, epochs=2, decays=(1,), batch=16, samples=SMOKE_ROWS)

    def measure(self, trained: TrainedRun) -> Measured:
        """Values ``LAYER: accuracy``, ``… of the last epoch`` and ``… best epoch``; curves have all epochs.

        Names of layers have ``strided`` added where patches are encoded, and ``MLP`` for a hidden layer; those of
        baselines begin with ``untrained``. ``majority`` is what naming the most frequent class would have.
        """
        views = check_views(trained.method, self.views)
        fit = self._known(trained, trained.open(self.fit_dataset, split=self.fit))
        test = self._known(trained, trained.open(self.dataset, split=self.split))
        classes = shared_classes(fit, test, self.factor)
        about: dict[str, Any] = {"views": views, "classes": classes}
        names = ("factor", "layers", "pooled", "hidden", "epochs", "decays", "decay", "batch", "rate", "momentum")
        about |= {name: getattr(self, name) for name in (*names, "weight_decay", "strided")}
        about |= {} if self.betas is None else {"betas": self.betas}
        about |= {"fit": fit.factors.fingerprint, "test": test.factors.fingerprint}
        values: dict[str, float] = {"majority": _majority(fit, test, self.factor)}
        curves: dict[str, tuple[list[int], list[float]]] = {}
        for source in ("", *self.baselines):

            def compute(source: str = source) -> dict[str, list[float]]:
                return self._accuracies(trained, views, fit, test, classes, source)

            by_layer = trained.part("layers", about | {"source": source}, compute)
            for layer, shares in by_layer.items():
                title = f"{source}: {layer}" if source else layer
                best = int(np.argmax(shares))
                values |= {f"{title}: accuracy": shares[best], f"{title}: accuracy of the last epoch": shares[-1]}
                values[f"{title}: best epoch"] = float(best + 1)
                curves[title] = (list(range(1, len(shares) + 1)), shares)
        return Measured(values=values, curves=curves)

    def _known(self, trained: TrainedRun, dataset: "Dataset") -> "Dataset":
        """Rows whose class is known, at most so many."""
        if self.factor not in dataset.factors:
            raise SetsupError(
                f"{dataset.name} has no factor {self.factor!r}; choose from {', '.join(dataset.factors.names)}"
            )
        codes = dataset.factors.codes(self.factor)
        rows = np.flatnonzero(codes >= 0)
        if not len(rows):
            raise DataError(f"{self.factor!r} is unknown for all images of {dataset.name}; choose another split")
        if len(rows) < len(codes):
            dataset = dataset.select(rows)
        if self.samples is not None and self.samples < len(dataset):
            dataset = dataset.select(np.sort(trained.sample(self.samples, dataset.factors)))
        return dataset

    def _accuracies(
        self,
        trained: TrainedRun,
        views: Sequence[str],
        fit: "Dataset",
        test: "Dataset",
        classes: int,
        source: str,
    ) -> dict[str, list[float]]:
        """Accuracies of each epoch by the name of the classifier."""
        import torch
        from torch.nn import functional

        from setsup.experiments.embedding_batch import evaluation_mode

        method: Any = trained.untrained if source else trained.method
        steps = len(fit) // min(self.batch, len(fit))
        shared = [needed_modalities(trained, dataset) for dataset in (fit, test)]
        heads: Any = None
        accuracies: dict[str, list[float]] = {}
        batches = augmented_batches(trained, fit, "layers", self.epochs * steps, self.batch, shared[0])
        with evaluation_mode(method), progress(self.epochs * steps, "layers", "steps") as advance:
            for _ in range(self.epochs):
                for _ in range(steps):
                    batch = next(batches)
                    features = self._features(trained, method, batch, views)
                    if heads is None:
                        with seeded(trained, "layers"):
                            heads = _heads(features, self.hidden, classes).to(trained.device)
                        optimizer = self._optimizer(heads)
                        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, list(self.decays), self.decay)
                    labels = batch["factors"][self.factor].flatten().long()
                    scores = _scores(heads, features)
                    loss = torch.stack([functional.cross_entropy(logits, labels) for logits in scores.values()]).sum()
                    optimizer.zero_grad()
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimizer.step()
                    advance()
                schedule.step()
                right = self._right(trained, method, heads, fetch_batches(trained, test, self.batch, shared[1]), views)
                for name, count in right.items():
                    accuracies.setdefault(self._title(name), []).append(count / len(test))
        return accuracies

    def _optimizer(self, heads: Any) -> "torch.optim.Optimizer":
        import torch

        decay, weights = self.weight_decay, heads.parameters()
        if self.betas is None:
            return torch.optim.SGD(weights, self.rate, self.momentum, weight_decay=decay, fused=True)
        return torch.optim.Adam(weights, self.rate, self.betas, weight_decay=decay, fused=True)

    def _right(
        self, trained: TrainedRun, method: Any, heads: Any, batches: "Iterator[Batch]", views: Sequence[str]
    ) -> dict[str, int]:
        """How many images each classifier gets right."""
        import torch

        right: dict[str, int] = {}
        with torch.inference_mode():
            for batch in batches:
                scores = _scores(heads, self._features(trained, method, batch, views))
                labels, known = batch["factors"][self.factor].flatten(), batch["mask"].flatten()
                for name, logits in scores.items():
                    right[name] = right.get(name, 0) + int(((logits.argmax(1) == labels) & known).sum())
        return right

    def _features(
        self, trained: TrainedRun, method: Any, batch: "Batch", views: Sequence[str]
    ) -> dict[str, "torch.Tensor"]:
        """Vectors (n, d) of all views together, by layer."""
        import torch
        from torch.nn import functional

        with torch.no_grad(), training_precision(trained):
            images = method.inputs(batch, views)
            if self.strided is None:
                layers = [method.encoders[view].layers(images[view], self.layers) for view in views]
            else:
                layers = [_strided(method.encoders[view], images[view], self.layers, *self.strided) for view in views]
            pooled = {}
            sides = dict(zip(self.layers, self.pooled, strict=False))
            for name in self.layers:
                maps = torch.cat([layer[name].float() for layer in layers], dim=1)
                side = sides.get(name, 0)
                if maps.ndim == 4 and side and side < maps.shape[-1]:
                    maps = functional.adaptive_max_pool2d(maps, side)
                pooled[name] = maps.flatten(1)
        return pooled

    def _title(self, name: str) -> str:
        layer, hidden = name.split("/")
        strided = "" if self.strided is None else " strided"
        return f"{layer}{strided}{' MLP' if int(hidden) else ''}"


def _heads(features: Mapping[str, "torch.Tensor"], hidden: Sequence[int], classes: int) -> "torch.nn.ModuleDict":
    """Classifiers by layer and hidden units; weights of last layers are drawn from N(0, 0.01²)."""
    import torch

    heads = torch.nn.ModuleDict()
    for name, vectors in features.items():
        for units in hidden:
            before = [torch.nn.Linear(vectors.shape[1], units), torch.nn.ReLU()] if units else []
            last = torch.nn.Linear(units or vectors.shape[1], classes)
            torch.nn.init.normal_(last.weight, 0, 0.01)
            torch.nn.init.zeros_(last.bias)
            heads[f"{name}/{units}"] = torch.nn.Sequential(*before, last)
    return heads


def _scores(heads: Any, features: Mapping[str, "torch.Tensor"]) -> dict[str, "torch.Tensor"]:
    """Scores (n, classes) of all classifiers."""
    return {name: head(features[name.split("/")[0]]) for name, head in heads.items()}


def _strided(
    encoder: Any, images: "torch.Tensor", layers: Sequence[str], size: int, stride: int
) -> dict[str, "torch.Tensor"]:
    """Layers of all patches of images, as maps (n, d, rows, columns) of patches."""
    from setsup.loading.views import Patches

    patches = Patches(size, stride)({"image": images[None]})["patches"]  # (1, n, rows·columns, C, size, size)
    grid = (len(images), *((side - size) // stride + 1 for side in images.shape[-2:]))
    maps = encoder.layers(patches.flatten(0, 2), layers)
    return {name: some.flatten(1).unflatten(0, grid).movedim(-1, 1) for name, some in maps.items()}


def _majority(fit: "Dataset", test: "Dataset", factor: str) -> float:
    most = np.bincount(fit.factors.codes(factor)).argmax()
    return float((test.factors.codes(factor) == most).mean())
