"""Settings of what is done to images: their size, and the positives of the domain-wise contrast."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from setsup.datasets.images import several_sizes
from setsup.experiments.data import image_modality

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.loading.batch import Batch, Transform

__all__ = ["Positives", "Resized"]

_WITHOUT_SIZE = ("dcodr-blur",)
"""Recipes that do not crop, and so have no size of the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Positives:
    """An augmented copy of each image, ``positive_image``; the images themselves are only resized.

    Attributes
    ----------
    recipe : str
        Recipe: ``dcodr``, one of four operations for each image; ``dcodr-blur``; ``dcodr-simsiam``, all of its
        operations; or a single transform of appendix A, such as ``dcodr-a/crop``.
    size : int, optional
        Side of images, in pixels; by default that of the data.

    """

    recipe: str = "dcodr"
    size: int | None = 64

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        from setsup.loading.transforms import Compose
        from setsup.methods.recipes import recipe

        options: dict[str, Any] = {}
        if self.recipe not in _WITHOUT_SIZE:
            options["size"] = _shape(dataset) if self.size is None else self.size
        positives = recipe(self.recipe, seed=seed, **options)
        resized = Resized(size=self.size).build(dataset, seed)
        return positives if resized is _unchanged else Compose([resized, positives])


@dataclass(frozen=True, slots=True, kw_only=True)
class Resized:
    """Resizes images, averaging when they shrink; images of the given size are unchanged.

    Attributes
    ----------
    size : int, optional
        Side of images, in pixels; by default that of the data.

    """

    size: int | None = 64

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        from setsup.loading.transforms import Augment, Resize

        if self.size is None or _shape(dataset) == (self.size, self.size):
            return _unchanged
        return Augment([Resize(self.size)], eight_bit=True, seed=seed, stream="size")


def _unchanged(batch: "Batch") -> "Batch":
    """The batch as it is."""
    return batch


def _shape(dataset: "Dataset") -> tuple[int, int]:
    """Height and width of the images of a dataset."""
    height, width = dataset.modalities[image_modality(dataset)].shape[:2]
    if height is None or width is None:
        raise several_sizes(f"the images of {dataset.name} have several sizes")
    return height, width
