"""The augmentations and views of CMC as functions that return a transform of a batch.

Arguments and notation are those that :mod:`setsup.methods.recipes` explains.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), and its published code.

"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from setsup.arrays import Size
from setsup.loading.batch import Batch, Transform
from setsup.loading.transforms import (
    Augment,
    CenterCrop,
    Compose,
    Crop,
    Flip,
    Resize,
    ResizedCrop,
)
from setsup.loading.views import ColorViews

__all__ = ["EVALUATION_TRANSFORMS", "RECIPES", "ROOM", "Centered", "cmc", "cmc_nyu", "cmc_stl10", "lab_views"]

ROOM = {"image": "color", "depth": "depth", "normals": "normal", "labels": "label"}


def cmc(least: float, *, seed: int, stream: str, size: int | Size = 224) -> Transform:
    """Views L and ab of one crop of each image [1]_ (code for ImageNet), 8 bits until colours are converted.

    A crop of U(least, 1) of the area, resized, with least = 0.2 for AlexNet and 0.08 for ResNets; a flip of half of the
    images. The best ResNets of the paper had Fast AutoAugment as well, which is not here. The code crops images as
    they are stored; batches have images of one size, such as those of ``setsup.load("imagenet", size=(256, 256))``.
    """
    return lab_views([ResizedCrop(size, (least, 1)), Flip()], seed, stream)


def cmc_stl10(*, seed: int, stream: str, size: int | Size = 64) -> Transform:
    """Views L and ab of a box of 64 of the 96 pixels of STL-10 [1]_ (implementation details); half of them flipped."""
    return lab_views([Crop(size), Flip()], seed, stream)


def cmc_nyu(
    *, seed: int, stream: str, size: int | Size = 128, modalities: Mapping[str, str] | None = None
) -> Transform:
    """Views L, ab, depth, normals and labels of one patch of each image of NYU [1]_ (implementation details).

    A box of 128 of 480 × 640 pixels, and a flip of half of them, the same for all modalities; normals turn with it.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of the patch.
    modalities : mapping of str to str, optional
        As in :class:`Augment`; by default ``image``, ``depth``, ``normals`` and ``labels``.

    """
    return lab_views([Crop(size), Flip()], seed, stream, modalities=ROOM if modalities is None else modalities)


def lab_views(operations: list[Any], seed: int, stream: str, **more: Any) -> Transform:
    """Augment with 8 bits, then split into the views L and ab."""
    return Compose([Augment(operations, eight_bit=True, seed=seed, stream=stream, **more), ColorViews("lab")])


@dataclass(frozen=True)
class Centered:
    """Views L and ab of the middle of each image: a box of a share of its shorter side, resized to one size.

    With 7/8 and 224 pixels the box of 224 in the middle of 256, which the code of CMC cuts out [1]_.
    """

    size: int
    share: float

    def __call__(self, batch: Batch) -> Batch:
        """Cut out, resize, and split into views."""
        side = round(self.share * min(batch["image"].shape[-2:]))
        return lab_views([CenterCrop(side), Resize(self.size)], 0, "evaluation")(batch)


RECIPES: Mapping[str, Callable[..., Transform]] = MappingProxyType(
    {
        "cmc-alexnet": partial(cmc, 0.2),
        "cmc-resnet": partial(cmc, 0.08),
        "cmc-stl10": cmc_stl10,
        "cmc-nyu": cmc_nyu,
    }
)
"""By the names that :func:`setsup.methods.recipes.recipe` takes."""

EVALUATION_TRANSFORMS: Mapping[str, Transform] = MappingProxyType(
    {
        "cmc-alexnet": Centered(224, 7 / 8),
        "cmc-resnet": Centered(224, 7 / 8),
        "cmc-stl10": lab_views([CenterCrop(64)], 0, "evaluation"),
        "cmc-nyu": lab_views([CenterCrop(128)], 0, "evaluation", modalities=ROOM),
    }
)
"""What is done to images that are evaluated, by the recipe that is trained with."""
