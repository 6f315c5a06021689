"""The augmentations and views of the papers (:mod:`setsup.methods.augmentations`) by name.

The stream of a recipe is its name, so that recipes with one seed draw independently.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from setsup.errors import SetsupError, near
from setsup.loading.batch import Transform
from setsup.loading.transforms import CenterCrop
from setsup.methods import augmentations

__all__ = ["evaluation_transform", "recipe", "recipes"]


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
        When there is no such recipe, or it has no such option.

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
            f"recipe takes the name of a recipe and returns a transform, so call it first: not {name!r:.60}"
        )
    if name not in _RECIPES:
        raise SetsupError(f"there is no recipe {name!r}{near(name, _RECIPES)}")
    make = _RECIPES[name]
    known = [option for option in inspect.signature(make).parameters if option not in ("seed", "stream")]
    for option in options:
        if option not in known:
            raise SetsupError(f"the recipe {name!r} has no option {option!r}{near(option, known)}")
    return make(seed=seed, stream=name, **options)


def recipes() -> tuple[str, ...]:
    """Names of all recipes.

    Examples
    --------
    >>> [name for name in recipes() if name.startswith("oxels")]
    ['oxels-2d', 'oxels-3d']

    """
    return tuple(_RECIPES)


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
        When there is no such recipe.

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
    return _EVALUATED.get(name)


_RECIPES: Mapping[str, Callable[..., Transform]] = MappingProxyType(
    {
        "abc-shapes3d": augmentations.abc_shapes3d,
        "abc-pose": augmentations.abc_pose,
        "dcodr": augmentations.dcodr,
        "dcodr-blur": augmentations.dcodr_blur,
        "dcodr-simsiam": augmentations.dcodr_simsiam,
        **{f"dcodr-a/{name}": partial(augmentations.dcodr_appendix, name) for name in augmentations.APPENDIX_A},
        "cmc-alexnet": partial(augmentations.cmc, 0.2),
        "cmc-resnet": partial(augmentations.cmc, 0.08),
        "cmc-stl10": augmentations.cmc_stl10,
        "cmc-nyu": augmentations.cmc_nyu,
        "oxels-2d": augmentations.oxels_2d,
        "oxels-3d": augmentations.oxels_3d,
    }
)
_EVALUATED: Mapping[str, Transform] = MappingProxyType(
    {
        "cmc-alexnet": augmentations.Centered(224, 7 / 8),
        "cmc-resnet": augmentations.Centered(224, 7 / 8),
        "cmc-stl10": augmentations.lab_views([CenterCrop(64)], 0, "evaluation"),
        "cmc-nyu": augmentations.lab_views([CenterCrop(128)], 0, "evaluation", modalities=augmentations.ROOM),
    }
)
