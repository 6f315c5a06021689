"""Action recognition from frames: an encoder of frames is fine-tuned, and videos are classified by several frames.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), table 6.

"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.trained_run import TrainedRun
from setsup.random import fold, randint_below, stream_key
from setsup_papers.cmc.frozen import (
    check_views,
    derived_seed,
    fetch_batches,
    fit_network,
    seeded,
    shared_classes,
    shuffled_batches,
    training_precision,
)

if TYPE_CHECKING:
    import torch

    from setsup.datasets import Dataset
    from setsup.loading.batch import Batch

__all__ = ["Actions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """Accuracy of the classes of videos, by a fine-tuned encoder of frames and a linear classifier on top.

    A step trains on a random frame of each of some clips: a random box of it, half of them flipped. A video of the test
    is classified by the mean, over frames evenly spaced in all its clips, of the probabilities for the middle box. How
    the encoder was fine-tuned is not published: layers, optimiser, schedule and frames are [our choice].

    Attributes
    ----------
    view : str
        View whose encoder is fine-tuned; it reads frames, (3, size, size).
    factor : str
        Factor of the class.
    video : str
        Factor that identifies videos.
    layer : str
        Stage of the encoder whose output is classified.
    size : int
        Side of the crops, in pixels, as in training.
    dataset : str, optional
        One of the preset's ``datasets`` to fine-tune and test on; by default the training data.
    fit, split : str
        Splits to fine-tune and to test on.
    frozen : bool
        Whether the encoder is frozen.
    steps, batch : int
        Number of fine-tuning steps, and of frames per step.
    rate : float
        Learning rate of Adam, divided by 10 after 2/3 and 5/6 of the steps.
    frames : int
        Number of frames of each test clip.
    baselines : tuple of {"untrained"}
        Also fine-tune from the initial weights, which is training with labels alone.

    """

    version: ClassVar[int] = 1

    view: str = "frame"
    factor: str = "action"
    video: str = "file"
    layer: str = "fc6"
    size: int = 224
    dataset: str | None = None
    fit: str = "split1-train"
    split: str = "split1-test"
    frozen: bool = False
    steps: int = 20_000
    batch: int = 128
    rate: float = 1e-4
    frames: int = 5
    baselines: tuple[Literal["untrained"], ...] = ("untrained",)

    def shrunk(self) -> "Actions":
        """Return the evaluation shrunk to few steps."""
        return replace(self, steps=2, batch=4)

    def measure(self, trained: TrainedRun) -> Measured:
        """Values ``accuracy`` and ``untrained: accuracy``, shares of the videos; the curves are losses."""
        (view,) = check_views(trained.method, (self.view,))
        fit, test = (trained.open(self.dataset, split=split) for split in (self.fit, self.split))
        for data in (fit, test):
            if "video" not in data.modalities or not {self.factor, self.video} <= set(data.factors.names):
                raise SetsupError(
                    f"{data.name} must have the modality 'video' and the factors {self.factor} and {self.video}; "
                    "choose a dataset of videos, for example ucf101, and its factors"
                )
        classes = shared_classes(fit, test, self.factor)
        names = ("factor", "video", "layer", "size", "frozen", "steps", "batch", "rate", "frames")
        about = {"view": view, **{name: getattr(self, name) for name in names}}
        about |= {"fit": fit.factors.fingerprint, "test": test.factors.fingerprint}
        values: dict[str, float] = {}
        curves: dict[str, tuple[list[int], list[float]]] = {}
        for source in ("", *self.baselines):

            def compute(source: str = source) -> dict[str, Any]:
                method = trained.untrained if source else trained.method
                return self._measured(trained, method, fit, test, classes)

            results = trained.part("actions", about | {"source": source}, compute)
            front = f"{source}: " if source else ""
            values[f"{front}accuracy"] = results["accuracy"]
            curves[f"{front}loss"] = (list(range(1, self.steps + 1)), results["losses"])
        return Measured(values=values, curves=curves)

    def _measured(
        self, trained: TrainedRun, method: Any, train: "Dataset", test: "Dataset", classes: int
    ) -> dict[str, Any]:
        import torch
        from torch.nn import functional

        encoder = deepcopy(method.encoders[self.view]).requires_grad_(not self.frozen)

        def scores(batch: "Batch") -> "torch.Tensor":
            images = method.inputs(batch, [self.view])[self.view]
            with training_precision(trained):
                class_scores: torch.Tensor = head(encoder.layers(images, [self.layer])[self.layer].flatten(1)).float()
            return class_scores

        def loss(batch: "Batch") -> "torch.Tensor":
            return functional.cross_entropy(scores(batch), batch["factors"][self.factor].flatten().long())

        encoder.eval()
        batches = self._drawn(trained, train)
        first = next(batches)
        with torch.no_grad():
            width = encoder.layers(method.inputs(first, [self.view])[self.view], [self.layer])[self.layer][0].numel()
        with seeded(trained, "actions"):
            head = torch.nn.Linear(width, classes).to(trained.device)
            optimizer = torch.optim.Adam([*head.parameters(), *encoder.parameters()], self.rate, fused=True)
            decays = [round(self.steps * share) for share in (2 / 3, 5 / 6)]
            schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, decays, 0.1)
            encoder.train(not self.frozen)
            drawn = chain([first], islice(batches, self.steps - 1))
            losses = fit_network("actions", drawn, self.steps, loss, optimizer, schedule)
        encoder.eval()
        return {"accuracy": self._accuracy(trained, test, scores, classes), "losses": losses}

    def _accuracy(self, trained: TrainedRun, test: "Dataset", scores: Any, classes: int) -> float:
        """Share of the videos whose class has the largest sum of probabilities over frames and clips."""
        import torch

        videos, owner = np.unique(test.factors.codes(self.video), return_inverse=True)
        sums, start = np.zeros((len(videos), classes)), 0
        with torch.inference_mode():
            for batch in fetch_batches(trained, test, max(1, self.batch // self.frames), ["video"], transform=False):
                clips = batch["video"]
                times = np.linspace(0, clips.shape[2] - 1, self.frames).round().astype(int)
                shares = sum(
                    scores(self._cut({**batch, self.view: clips[:, :, time]}, None)).softmax(1).cpu().numpy()
                    for time in times.tolist()
                )
                known = batch["mask"].flatten().cpu().numpy()
                rows = owner[start : start + int(known.sum())]
                np.add.at(sums, rows, shares[known])
                start += len(rows)
        first = np.unique(owner, return_index=True)[1]
        return float((sums.argmax(1) == test.factors.codes(self.factor)[first]).mean())

    def _drawn(self, trained: TrainedRun, dataset: "Dataset") -> "Iterator[Batch]":
        """Batches with a random frame of each of some clips, cut and flipped at random."""
        import torch

        seed = derived_seed(trained, "actions")
        for batch in shuffled_batches(trained, dataset, self.batch, seed, ["video"]):
            clips = batch["video"]
            key = fold(stream_key(seed, "frames"), int(batch["step"]))
            times = torch.from_numpy(
                randint_below(fold(key, np.arange(clips.shape[1])), clips.shape[2]).astype(np.int64)
            )
            frames = clips[0, torch.arange(clips.shape[1]), times.to(clips.device)]
            yield self._cut({**batch, self.view: frames[None]}, seed)

    def _cut(self, batch: "Batch", seed: int | None) -> "Batch":
        """Cut boxes out of frames: at random places by a seed, or the middle ones."""
        from setsup.loading.transforms import Augment, CenterCrop, Crop, Flip

        operations: list[Any] = [CenterCrop(self.size)] if seed is None else [Crop(self.size), Flip()]
        kept = {name: value for name, value in batch.items() if name != "video"}
        kinds = {self.view: "color"}
        return Augment(operations, modalities=kinds, eight_bit=True, seed=seed or 0, stream="actions")(kept)
