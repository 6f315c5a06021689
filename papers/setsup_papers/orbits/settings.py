"""Settings of samplers and methods of the orbit papers."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from setsup.experiments.configs import ImageSettings, import_method
from setsup.samplers import OrbitSampler

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule

    from setsup.datasets import Dataset
    from setsup.factors import FactorTable
    from setsup.loading.batch import Transform

__all__ = ["DECODED", "MembersOnDevice", "Objective", "OrbitBatches", "OrbitJointSettings", "Scale"]

Objective = Literal["joint", "triplet", "rectification", "exemplar", "autoencoder"]
Scale = Literal["recmean", "dims", "none"]

DECODED = ("joint", "rectification", "autoencoder")
"""Objectives with a decoder."""

_SMOKE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OrbitBatches:
    """Several orbits per step, and several members of each; see :class:`setsup.OrbitSampler`.

    Attributes
    ----------
    orbit : tuple of str
        Factors whose combinations are the orbits.
    sets : int
        Orbits per step.
    size : int
        Members per orbit, without repeats.
    canonical : str, optional
        Canonical member of each orbit. ``first``: the first row, in the order of the table; ``argmin:FACTOR``: the row
        with the smallest value; any other text: the first row that satisfies this expression, such as ``yaw == 0``.
    values : {"different", "independent"}
        Whether the orbits of a step are different; ``independent`` with ``size`` 1 draws single images.
    small : {"short", "drop", "replace", "error"}
        What to do with orbits that have fewer than `size` members.
    where : str, optional
        Expression over the factors that selects the rows to draw from, canonical rows included.

    """

    orbit: tuple[str, ...] = field(metadata={"option": "orbit"})
    sets: int = 32
    size: int = 8
    canonical: str | None = field(default=None, metadata={"option": "canonical"})
    values: Literal["different", "independent"] = "different"
    small: Literal["short", "drop", "replace", "error"] = "short"
    where: str | None = None

    def build(self, dataset: "Dataset", seed: int) -> OrbitSampler:
        """Build the sampler of a run."""
        return OrbitSampler(
            dataset.factors,
            self.orbit,
            self.sets,
            self.size,
            canonical=self.canonical,
            values=self.values,
            choose="groups" if self.values == "different" else "rows",
            on_small_group=self.small,
            where=self.where,
            seed=seed,
        )

    def shrunk(self) -> "OrbitBatches":
        """At most four orbits of four members."""
        return replace(self, sets=min(self.sets, _SMOKE), size=min(self.size, _SMOKE))


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersOnDevice:
    """Renders the images of Affine MNIST on the device; see :class:`setsup_papers.orbits.AffineMembers`.

    The order of the steps is the dataset's.
    """

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        from setsup.datasets.benchmarks.affine_mnist.dataset import AffineMnist
        from setsup.experiments.training_rows import find_origin
        from setsup_papers.orbits.affine_members import AffineMembers

        source, _ = find_origin(dataset)
        return AffineMembers(order=source.order) if isinstance(source, AffineMnist) else AffineMembers()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrbitJointSettings(ImageSettings):
    """Settings of :class:`setsup_papers.orbits.OrbitJoint` and of its networks.

    Attributes
    ----------
    objective : {"joint", "triplet", "rectification", "exemplar", "autoencoder"}
        Loss to minimise: the papers' OJ, OT, OE, EX or AE.
    orbit : tuple of str
        Factors whose combinations are the orbits; for the supervised baseline, the class.
    channels : tuple of int
        Channels of the encoder's stages.
    dimensions : int
        Dimensions of the code.
    pools : tuple of int
        Side of each stage's max-pool; the paper uses 2 and 4 without saying where. [unclear]
    transformer : bool
        Whether a spatial transformer precedes the encoder.
    margin : float
        Margin α of triplets, in units of squared distances. [unclear]
    normalise : bool
        Whether codes of triplets and embeddings are scaled to length 1. [unclear]
    negatives : {"hardest", "random"}
        Which of the semi-hard negatives to use. [unclear]
    weights : (float, float)
        Weights of the triplet loss and of the rectification loss.
    scale : {"recmean", "dims", "none"}
        Divisors of these losses: ``recmean``: 1 and the size of an image; ``dims``: the dimensions of the code and the
        size of an image; ``none``: 1 and 1. [unclear]
    tied : bool
        Whether the decoder shares the encoder's weights.
    unpooling : {"fixed", "nearest", "switches"}
        Position of a smaller map's values in the decoder: ``fixed``: upper left; ``nearest``: all pixels; ``switches``:
        where the encoder's maxima were. [unclear]
    decoder_norm : bool
        Whether the decoder uses batch normalisation. [unclear]
    rate : float
        Learning rate of Adam. [unclear]

    """

    objective: Objective = "joint"
    orbit: tuple[str, ...] = field(metadata={"option": "orbit", "factors": True})
    channels: tuple[int, ...] = (16, 32, 64, 128)
    dimensions: int = 1024
    pools: tuple[int, ...] = (2, 2, 2, 2)
    transformer: bool = False
    margin: float = 0.2
    normalise: bool = True
    negatives: Literal["hardest", "random"] = "hardest"
    weights: tuple[float, float] = (1.0, 1.0)
    scale: Scale = "recmean"
    tied: bool = True
    unpooling: Literal["fixed", "nearest", "switches"] = "fixed"
    decoder_norm: bool = True
    rate: float = 1e-3

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run; weights are torch's own initial ones."""
        from setsup.methods.groups import GroupCodes
        from setsup_papers.orbits.networks import OrbitDecoder, OrbitEncoder, SpatialTransformer

        image = (1, 40, 40) if self.image is None else self.image
        encoder = OrbitEncoder(image, self.channels, self.dimensions, self.pools)
        decoder = None
        if self.objective in DECODED:
            decoder = OrbitDecoder(encoder, self.tied, self.unpooling, self.decoder_norm)
        front = SpatialTransformer(image) if self.transformer else None
        method = import_method("setsup_papers.orbits.orbit_joint:OrbitJoint")
        return method(self, encoder, GroupCodes(table, self.orbit), decoder=decoder, front=front)
