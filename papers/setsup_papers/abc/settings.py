"""Settings of ABC: of its loss and its optimiser, whatever the encoder, and of the paper's encoders."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from setsup.experiments.configs import import_method

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule

    from setsup.factors import FactorTable

__all__ = ["ABCObjective", "ABCSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ABCObjective:
    """Settings of the objective of :class:`setsup_papers.abc.ABC` and of its optimiser.

    Attributes
    ----------
    similarity : {"l2sq", "l2", "l1", "linf", "cosine"}
        Similarity of embeddings.
    temperature : float
        Temperature τ, above 0, in the unit of the similarity.
    objective : {"correspondence", "double", "augmentation"}
        ``correspondence``: the loss between the images of two sets; ``double``: the same with two augmented copies of
        each image; ``augmentation``: a baseline without a second set, with copy 1 as the query and copy 2 as the
        candidates.
    neighbours : {"second", "first"}
        With ``double``, the copy whose embeddings are averaged into soft neighbours.
    rate : float
        Learning rate of Adam.
    halve_every : int, optional
        Halve the learning rate every N steps; by default it is constant.

    """

    similarity: Literal["l2sq", "l2", "l1", "linf", "cosine"] = "l2sq"
    temperature: float = 1.0
    objective: Literal["correspondence", "double", "augmentation"] = "correspondence"
    neighbours: Literal["second", "first"] = "second"
    rate: float = 3e-5
    halve_every: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ABCSettings(ABCObjective):
    """Settings of :class:`setsup_papers.abc.ABC`, and the paper's encoder for a dataset.

    Attributes
    ----------
    encoder : {"shapes3d", "mnist", "pose"}
        Encoder of the paper; see :mod:`setsup_papers.abc.networks`.

    """

    encoder: Literal["shapes3d", "mnist", "pose"]

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run."""
        from setsup_papers.abc import networks

        build = getattr(networks, f"{self.encoder}_encoder")
        method = import_method("setsup_papers.abc.method:ABC")
        return method(self, build(generator))
