"""The augmentations and views of the papers by name.

A module under the entry-point group ``setsup.experiments`` offers them as ``RECIPES``, functions by name, and as
``EVALUATION_TRANSFORMS`` what is done to images that are evaluated.

The stream of a recipe is its name, so that recipes with one seed draw independently.

All recipes take ``seed`` and ``stream``, those of :class:`~setsup.loading.transforms.augment.Augment`; ``size`` is that
of the result in pixels, a number or (height, width). If the published code of a paper fixes what its text leaves open,
or contradicts it, the recipe follows the code and says so. U(a, b) is uniform between a and b, drawn for each image.
*8 bits* means images that are uint8 after every operation, as in Pillow.
"""

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from setsup.errors import SetsupError, did_you_mean
from setsup.loading.batch import Transform
from setsup.packages import offered_modules

__all__ = ["evaluation_transform", "recipe", "recipes"]

_GROUP = "setsup.experiments"


def recipe(name: str, *, seed: int = 0, **options: Any) -> Transform:
    """Make the transform of a paper.

    Parameters
    ----------
    name : str
        One of :func:`recipes`.
    seed : int
        0 ≤ seed < 2⁶⁴.
    **options
        What the recipe of that name takes, such as the ``size`` of its crops.

    Returns
    -------
    callable
        From a batch to a batch, for ``transform=`` of :func:`setsup.loader`. It pickles, and prints what it does.

    Raises
    ------
    SetsupError
        When the recipe is unknown, or it has no such option.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> domains = setsup.DomainSampler(shapes.factors, "shape", sets=4, size=32)
    >>> batch = next(iter(setsup.loader(shapes, domains, transform=recipe("dcodr"), workers=0)))
    >>> tuple(batch["image"].shape), tuple(batch["positive_image"].shape), batch["positive_image"].dtype
    ((4, 32, 3, 64, 64), (4, 32, 3, 64, 64), torch.uint8)

    """
    if not isinstance(name, str):
        raise SetsupError(
            f"recipe() requires the name of a recipe, not {name!r:.60}; pass the transform that it returns to the "
            "loader"
        )
    module = _offering(name)
    if module is None:
        raise SetsupError(f"unknown recipe {name!r}{did_you_mean(name, recipes())}")
    make = module.RECIPES[name]
    known = [option for option in inspect.signature(make).parameters if option not in ("seed", "stream")]
    for option in options:
        if option not in known:
            raise SetsupError(f"recipe {name!r} has no option {option!r}{did_you_mean(option, known)}")
    made: Transform = make(seed=seed, stream=name, **options)
    return made


def recipes() -> tuple[str, ...]:
    """Names of all recipes.

    Examples
    --------
    >>> [name for name in recipes() if name.startswith("oxels")]
    ['oxels-2d', 'oxels-3d']

    """
    return tuple(dict.fromkeys(name for module in _modules() for name in getattr(module, "RECIPES", {})))


def evaluation_transform(name: str) -> Transform | None:
    """What a paper does to images that it evaluates, where it trains on those of a recipe: nothing of it is random.

    Parameters
    ----------
    name : str
        One of :func:`recipes`.

    Returns
    -------
    callable or None
        From a batch to a batch, with the views that the recipe makes, of the size that it makes by default; None where
        images are evaluated as they are.

    Raises
    ------
    SetsupError
        When the recipe is unknown.

    Examples
    --------
    >>> import torch
    >>> batch = {"image": torch.zeros(1, 2, 3, 256, 256, dtype=torch.uint8), "step": 0}
    >>> found = evaluation_transform("cmc-resnet")(batch)
    >>> tuple(found["L"].shape), tuple(found["ab"].shape)
    ((1, 2, 1, 224, 224), (1, 2, 2, 224, 224))
    >>> evaluation_transform("dcodr") is None
    True

    """
    recipe(name)  # says what is wrong with the name
    # of the package that has the recipe: another one cannot change what is done to its images
    transform: Transform | None = getattr(_offering(name), "EVALUATION_TRANSFORMS", {}).get(name)
    return transform


def _offering(name: str) -> ModuleType | None:
    """The module that offers a recipe; other packages are imported only where setsup's own papers have none."""
    return next((module for module in _modules() if name in getattr(module, "RECIPES", {})), None)


def _modules() -> Iterator[ModuleType]:
    return (module for module, _ in offered_modules(_GROUP, "the experiments"))
