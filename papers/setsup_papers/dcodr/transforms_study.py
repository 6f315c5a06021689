"""Appendix A of DCoDR: how far an autoencoder changes when its images are transformed, for thirteen transforms.

The autoencoder G of an image is the image that its code and its domain give. With the distance d of images,

    f_unnorm = d(G(x), G(T(x))),    f_norm = f_unnorm / d(x, T(x)),

where T is drawn once for each image. A small f_norm says that the encoder leaves out what T changes.

The distance is the one that the method was trained with, by default L1 with features of VGG16. [unclear] Whether the
means of f_norm are means of quotients or quotients of means is not said; quotients of each image are averaged here, and
images that T leaves as they are (a grey image, desaturated) are left out.

References
----------
.. [1] J. Kahana, Y. Hoshen, "A contrastive objective for learning disentangled representations", ECCV 2022
   (arXiv 2203.11284), appendix A, equations 10 and 11.

"""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations.rows import SMOKE_ROWS
from setsup.experiments.trained_run import TrainedRun
from setsup_papers.dcodr.network_choice import image_distance
from setsup_papers.dcodr.tables import AUTOENCODERS

if TYPE_CHECKING:
    from setsup.loading.batch import Batch

__all__ = ["TRANSFORMS", "AutoencoderInvariance"]

TRANSFORMS = tuple(AUTOENCODERS)
"""In the order of tables 6 and 7; those of the recipes ``dcodr-a/…``."""

_BATCH = 64
_LEAST = 1e-6  # of d(x, T(x)): below it an image is as it was


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoencoderInvariance:
    """Distances between reconstructions of images and of their transforms, to find what an autoencoder ignores.

    The method must define ``reconstruct(batch)``, which returns images (sets, size, C, H, W) in [0, 1], such as DCoDR
    with a generator.

    Attributes
    ----------
    dataset : str, optional
        One of the preset's ``datasets``; by default the training data.
    split : str, optional
        Split of the dataset.
    samples : int
        Maximum number of images.
    transforms : tuple of str
        Transforms of appendix A; all by default.
    distance : {"vgg16", "pyramid"}, optional
        Distance between images; by default the one that the method was trained with.
    vgg_weights : str
        File of VGG16 for ``vgg16``, as for :class:`~setsup_papers.dcodr.PerceptualDistance`.

    """

    version: ClassVar[int] = 1

    dataset: str | None = None
    split: str | None = None
    samples: int = 2_000
    transforms: tuple[str, ...] = TRANSFORMS
    distance: Literal["vgg16", "pyramid"] | None = None
    vgg_weights: str = "vgg16-imagenet"

    def __post_init__(self) -> None:
        """Check names before anything is computed."""
        unknown = [name for name in self.transforms if name not in TRANSFORMS]
        if unknown or not self.transforms:
            named = f"not {unknown[0]!r}" if unknown else "not an empty list"
            raise SetsupError(
                f"transforms must contain one or more transforms of appendix A ({', '.join(TRANSFORMS)}), {named}"
            )

    def shrunk(self) -> "AutoencoderInvariance":
        """Return the evaluation shrunk to few images."""
        return replace(self, samples=min(self.samples, SMOKE_ROWS // 8))

    def measure(self, trained: TrainedRun) -> Measured:
        """``<transform>: normalised`` and ``<transform>: unnormalised``, means over images."""
        method: Any = trained.method
        if not hasattr(method, "reconstruct") or getattr(method, "generator", method) is None:
            raise SetsupError(
                f"{type(method).__name__} does not reconstruct images; evaluate a method with a generator, for "
                "example DCoDR with --method.reconstruction above 0"
            )
        own = self.dataset is None and self.split is None
        dataset = trained.dataset if own else trained.open(self.dataset, split=self.split)
        rows = trained.sample(self.samples, dataset.factors)
        settings = {
            "table": dataset.factors.fingerprint,
            "dataset": dataset.name,
            "rows": rows,
            "distance": self.distance,
            "vgg_weights": self.vgg_weights,
        }
        results = trained.parts(
            "autoencoder-invariance",
            settings,
            self.transforms,
            lambda names: {name: _measure(trained, dataset, rows, name, self._distance(trained)) for name in names},
        )
        return Measured(
            values={
                f"{name}: {measure}": results[name][measure]
                for name in self.transforms
                for measure in ("normalised", "unnormalised")
            }
        )

    def _distance(self, trained: TrainedRun) -> Any:
        if self.distance is not None:
            return image_distance(self.distance, self.vgg_weights).to(trained.device)
        own: Any = getattr(trained.method, "distance", None)
        if own is None:
            raise SetsupError(
                f"{type(trained.method).__name__} does not define a distance between images; set distance"
            )
        return own


def _change(transform: str, seed: int, batch: "Batch") -> "Batch":
    """A batch with transformed copies, of the size of its images."""
    from setsup.methods.recipes import recipe

    height, width = batch["image"].shape[-2:]
    return recipe(f"dcodr-a/{transform}", seed=seed, size=(height, width))(batch)


def _measure(trained: TrainedRun, dataset: Any, rows: Any, transform: str, distance: Any) -> dict[str, float]:
    """Both means of one transform."""
    import torch

    from setsup.experiments.embedding import GivenRows
    from setsup.experiments.embedding_batch import evaluation_mode
    from setsup.loading import Loader
    from setsup.loading.transforms import Compose
    from setsup.methods.networks.images import unit_range
    from setsup.progress import progress

    method: Any = trained.method
    before = trained.transform(dataset)
    change = partial(_change, transform, trained.seed)
    steps: list[Any] = [change] if before is None else [before, change]
    to = "torch" if trained.device == "cpu" else trained.device
    loader = Loader(dataset, GivenRows(dataset, rows, _BATCH), transform=Compose(steps), to=to)
    plain, quotients = [], []
    with evaluation_mode(method), torch.inference_mode(), progress(len(rows), transform, "images") as advance:
        for batch in loader:
            keep = batch["mask"].flatten()
            images, changed = batch["image"], batch["positive_image"]
            output, of_changed = (
                method.reconstruct({**batch, "image": some}).flatten(0, 1)[keep] for some in (images, changed)
            )
            distances = distance(output, of_changed).double().cpu().numpy()
            given = [unit_range(some.flatten(0, 1)[keep]) for some in (images, changed)]
            moved = distance(*given).double().cpu().numpy()
            plain.append(distances)
            quotients.append(distances[moved > _LEAST] / moved[moved > _LEAST])
            advance(len(distances))
    normalised = np.concatenate(quotients)
    return {
        "unnormalised": float(np.concatenate(plain).mean()),
        "normalised": float(normalised.mean()) if len(normalised) else float("nan"),
    }
