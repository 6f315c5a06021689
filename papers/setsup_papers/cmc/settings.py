"""Settings of contrastive multiview coding, and of prediction across views."""

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from setsup.errors import SetsupError, did_you_mean
from setsup.experiments.configs import import_method
from setsup.experiments.optimisation import SGD, Adam, Constant, Optimiser, Schedule

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule
    from torch import nn

    from setsup.factors import FactorTable
    from setsup.loading.batch import Batch
    from setsup_papers.cmc.networks.views import ViewEncoder

__all__ = ["CMCSettings", "CrossViewPredictionSettings", "Error", "ViewSettings", "names_of"]

_log = logging.getLogger("setsup")

Encoder = Literal["alexnet", "stl10", "resnet18", "resnet50", "resnet101", "nyu", "caffenet", "small"]
Error = Literal["l1", "l2", "cross_entropy"]
Image = tuple[int, int, int]

_SGD = SGD(rate=0.03, momentum=0.9, weight_decay=1e-4)
_ADAM = Adam(rate=1e-3, betas=(0.5, 0.999))
_CONSTANT = Constant()


def names_of(words: tuple[str, ...]) -> tuple[str, ...]:
    """Names, also of words that are several names with commas.

    Examples
    --------
    >>> names_of(("image,depth", "normals"))
    ('image', 'depth', 'normals')

    """
    return tuple(name for word in words for part in word.split(",") if (name := part.strip()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """Settings of a method on views, which subclasses name as ``views``.

    Attributes
    ----------
    images : tuple of (int, int, int), optional
        Channels, height and width of each view; by default those of the data.
    optimiser : Optimiser
        Settings of the optimiser.
    schedule : Schedule
        Schedule of the learning rate.

    """

    images: tuple[Image, ...] | None = None
    optimiser: Optimiser = _SGD
    schedule: Schedule = _CONSTANT

    def fit_to(self, batch: "Batch") -> Self:
        """Settings with the sizes of the views of a batch."""
        settings: Any = self
        return self if self.images is not None else replace(self, images=_sizes(batch, settings.views))


@dataclass(frozen=True, slots=True, kw_only=True)
class CMCSettings(ViewSettings):
    """Settings of :class:`setsup_papers.cmc.CMC`, of what it compares, and of its encoders.

    Attributes
    ----------
    views : tuple of str
        Modalities of batches to compare, such as ``image,depth``.
    pairs : {"full", "core"}
        Compare all pairs of views, or the first view with each of the others.
    objective : {"nce", "softmax", "in_batch", "patch"}
        ``nce`` and ``softmax``: noise-contrastive estimation or softmax over memory banks; ``in_batch``: softmax over
        the images of a batch; ``patch``: softmax over positions of an early layer, also for a single view.
    encoder : str
        Encoder of every view: ``alexnet``, ``stl10``, ``resnet18``, ``resnet50``, ``resnet101``, ``nyu``, ``caffenet``
        or ``small``.
    width : float
        Factor of the number of channels; for ResNets, 0.5, 1 and 2 are the code's v1, v2 and v3.
    features : int
        Dimensions of features, d.
    negatives : int
        Number of negatives from memory banks, m, drawn with replacement, so that some repeat if there are fewer rows;
        4,096 in the paper, 16,384 by default in the code.
    temperature : float
        Temperature τ; ``patch`` does not use it.
    momentum : float
        Weight of the old value when a row of a memory bank is updated.
    bank : {"float32", "float16"}
        Data type of memory banks.
    normaliser : {"pair", "anchor"}
        Whether the constant Z of ``nce`` is estimated for each ordered pair of views, or for each view over its pairs
        [our choice].
    patch_layer : str
        Stage whose positions ``patch`` compares with images [our choice].
    projection : int
        Size of the projections of ``patch`` [our choice].
    shared : tuple of str
        Views that share one encoder, such as two frames.
    apart : tuple of str
        Images that are equal in all of these factors, such as clips of one video, are not negatives of each other in
        ``in_batch`` and ``patch``.
    norm : {"batch", "local"}
        Normalisation of ``caffenet`` [our choice].

    """

    views: tuple[str, ...] = field(default=("L", "ab"), metadata={"option": "views"})
    pairs: Literal["full", "core"] = field(default="full", metadata={"option": "pairs"})
    objective: Literal["nce", "softmax", "in_batch", "patch"] = "nce"
    encoder: Encoder = "alexnet"
    width: float = 1.0
    features: int = 128
    negatives: int = 4096
    temperature: float = 0.07
    momentum: float = 0.5
    bank: Literal["float32", "float16"] = "float32"
    normaliser: Literal["pair", "anchor"] = "pair"
    patch_layer: str = "conv3"
    projection: int = 2048
    shared: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    norm: Literal["batch", "local"] = "batch"

    def __post_init__(self) -> None:
        """Split names at commas, and check sizes, and that shared views are views."""
        for name in ("views", "shared", "apart"):
            object.__setattr__(self, name, names_of(getattr(self, name)))
        for name in ("features", "projection", "width"):
            if not getattr(self, name) > 0:
                raise SetsupError(f"{name} must be above 0, not {getattr(self, name)}")
        if other := [view for view in self.shared if view not in self.views]:
            raise SetsupError(
                f"shared contains {other[0]!r}, which is not one of the views "
                f"{self.views}{did_you_mean(other[0], self.views)}"
            )

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run."""
        encoders = self.encoders()
        method = import_method("setsup_papers.cmc.method:CMC")
        return method(self, encoders, self._contrast(encoders, len(table), generator))

    def encoders(self) -> "dict[str, ViewEncoder]":
        """Untrained encoders by view, for weights of torch's global generator."""
        if self.images is None or len(self.images) != len(self.views):
            raise SetsupError(
                f"images must contain the sizes (channels, height, width) of the {len(self.views)} views, not "
                f"{self.images}; set images, or complete the settings with fit_to(batch)"
            )
        sizes = dict(zip(self.views, self.images, strict=True))
        common = None
        if self.shared:
            if len({sizes[view] for view in self.shared}) > 1:
                several = ", ".join(f"{view} {' × '.join(map(str, sizes[view]))}" for view in self.shared)
                raise SetsupError(
                    "views that share an encoder must have the same size (channels × height × width), not "
                    f"{several}; remove one from --method.shared"
                )
            common = self._encoder(sizes[self.shared[0]])
        return {view: (common if view in self.shared else None) or self._encoder(sizes[view]) for view in self.views}

    def _encoder(self, image: Image) -> "ViewEncoder":
        return _build_encoder(self.encoder, image, self.features, self.width, self.norm)

    def _contrast(self, encoders: "dict[str, ViewEncoder]", images: int, generator: "torch.Generator") -> "nn.Module":
        import torch

        from setsup_papers.cmc.banks import BankContrast
        from setsup_papers.cmc.inputs import pair_views
        from setsup_papers.cmc.within_batch import BatchContrast, PatchContrast

        pairs = pair_views(self.views, self.pairs)
        if self.objective == "in_batch":
            return BatchContrast(pairs, self.temperature)
        if self.objective == "patch":
            channels = {view: encoder.channels(self.patch_layer) for view, encoder in encoders.items()}
            return PatchContrast(pairs, self.features, channels, self.projection)
        return BankContrast(
            pairs,
            images,
            self.features,
            objective=self.objective,
            negatives=self.negatives,
            temperature=self.temperature,
            momentum=self.momentum,
            dtype=torch.float16 if self.bank == "float16" else torch.float32,
            normaliser=self.normaliser,
            seed=generator.initial_seed() % 2**64,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossViewPredictionSettings(ViewSettings):
    """Settings of :class:`setsup_papers.cmc.CrossViewPrediction`, and of its networks.

    Attributes
    ----------
    source : str
        View to encode.
    target : str
        View to predict.
    width : float
        Factor of the channels of the encoder for NYU, and of the decoder that mirrors it [our choice].
    error : {"l1", "l2", "cross_entropy"}
        Loss, averaged over pixels: absolute or squared error of values, or cross-entropy for a target that is an
        integer map of labels [our choice].
    classes : int
        Number of classes of labels, numbered from 0.
    unlabelled : int
        Label of pixels that the cross-entropy ignores; it always ignores negative labels.

    """

    source: str = "L"
    target: str = "depth"
    width: float = 1.0
    error: Error = "l1"
    classes: int = 14
    unlabelled: int = 0
    optimiser: Optimiser = _ADAM

    @property
    def views(self) -> tuple[str, str]:
        """Source and target."""
        return self.source, self.target

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run."""
        from setsup_papers.cmc.networks.dense_views import ViewDecoder

        if self.images is None or len(self.images) != 2:
            raise SetsupError(
                f"images must contain the sizes of source and target, not {self.images}; complete the settings "
                "with fit_to(batch)"
            )
        source, (channels, *_) = self.images
        encoder = _build_encoder("nyu", source, 256, self.width)
        decoder = ViewDecoder(encoder, self.classes if self.error == "cross_entropy" else channels, skips=False)
        method = import_method("setsup_papers.cmc.prediction:CrossViewPrediction")
        return method(self, encoder, decoder)


def _build_encoder(
    name: Encoder, image: Image, features: int, width: float, norm: Literal["batch", "local"] = "batch"
) -> "ViewEncoder":
    from setsup_papers.cmc import networks

    if name == "caffenet":
        return networks.caffenet_view(image, features, width, norm)
    if name.startswith("resnet"):
        return networks.resnet_view(name, image, features, width)
    built = {
        "alexnet": networks.alexnet_view,
        "stl10": networks.stl10_view,
        "nyu": networks.nyu_view,
        "small": networks.small_view,
    }
    if name not in built:
        raise SetsupError(f"unknown encoder {name!r}{did_you_mean(name, (*built, 'caffenet', *networks.RESNETS))}")
    return built[name](image, features, width)


def _sizes(batch: "Batch", views: tuple[str, ...]) -> tuple[Image, ...]:
    """Channels, height and width of views of a batch."""
    from setsup_papers.cmc.inputs import view_images

    sizes: list[Image] = []
    for view in views:
        channels, height, width = view_images(batch, view).shape[1:]
        values = batch[view]
        if values.is_floating_point() and not bool(values.isfinite().any()):
            _log.warning(
                "the view %r has no finite values in the first %d images, so they are set to 0; check the view",
                view,
                len(values.flatten(0, 1)),
            )
        sizes.append((channels, height, width))
    return tuple(sizes)
