"""Views of a batch as networks read them, and pairs of views."""

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from setsup.errors import DataError, SetsupError, did_you_mean
from setsup.loading.batch import Batch

__all__ = ["Pairs", "both_directions", "check_different", "check_names", "group_numbers", "pair_views", "view_images"]

Pairs = Literal["full", "core"]
"""Full graph: all pairs of views; core view: the first with each other one."""

_FEW = 4
"""Channels that stand last at most, such as those of normals."""


def view_images(batch: Batch, name: str) -> Tensor:
    """A view of all images of a batch, as a network reads it.

    Bytes are divided by 255, floats are taken as they are, other integers become floats. Depth and labels, which have
    no channels, get one; normals and other maps with channels at the end have them moved before the rows. What is not
    finite, such as unknown depth, becomes 0.

    Parameters
    ----------
    batch : dict
        Of a loader, with ``mask`` (sets, size).
    name : str
        Of a modality: (sets, size, C, h, w), (sets, size, h, w) or (sets, size, h, w, C).

    Returns
    -------
    (sets·size, C, h, w) float32

    Raises
    ------
    SetsupError
        When the batch has no such modality.
    DataError
        When it is not an image or map.

    Examples
    --------
    >>> batch = {"mask": torch.ones(1, 2, dtype=torch.bool), "depth": torch.rand(1, 2, 8, 8)}
    >>> tuple(view_images(batch, "depth").shape)
    (2, 1, 8, 8)

    """
    if name not in batch:
        known = [key for key, value in batch.items() if isinstance(value, Tensor) and value.ndim >= _FEW]
        meant = did_you_mean(name, known)
        if not meant.startswith("; did you mean"):
            meant = (
                "; to use images of two sensors, store them in one .npz file, because a table has one column of images"
            )
        raise SetsupError(
            f"the batch has no view {name!r} (it contains {', '.join(known) or 'no images'}); choose other views "
            f"with --views, or use channels of a color space (--space), such as L and ab{meant}"
        )
    images, lead = batch[name], tuple(batch["mask"].shape)
    if not isinstance(images, Tensor) or tuple(images.shape[:2]) != lead or images.ndim not in (4, 5):
        shape = tuple(images.shape) if isinstance(images, Tensor) else type(images).__name__
        raise DataError(
            f"view {name!r} must have the shape (sets, size, channels, height, width), (sets, size, height, "
            f"width) or (sets, size, height, width, channels) with (sets, size) = {lead}, not {shape}"
        )
    images = images.flatten(0, 1)
    if images.ndim == 3:
        images = images[:, None]
    elif images.shape[-1] <= _FEW < images.shape[1]:
        images = images.movedim(-1, 1)
    scaled = images.float() / 255 if images.dtype == torch.uint8 and batch[name].ndim == 5 else images.float()
    return torch.nan_to_num(scaled, 0.0, 0.0, 0.0) if images.is_floating_point() else scaled


def pair_views(views: Sequence[str], pairs: Pairs = "full") -> tuple[tuple[str, str], ...]:
    """Pairs of views, each once: of all, or of the first with each other; of a single view, that with itself.

    Raises
    ------
    SetsupError
        When a view is named twice or none is, or there is no such choice of pairs.

    Examples
    --------
    >>> pair_views(["L", "ab", "depth"], "core")
    (('L', 'ab'), ('L', 'depth'))
    >>> len(pair_views(["L", "ab", "depth", "normal"], "full"))
    6

    """
    if not views:
        raise SetsupError("views must contain at least one modality of the data, for example --views image,depth")
    if twice := [view for view in views if list(views).count(view) > 1]:
        raise SetsupError(f"view {twice[0]!r} is listed twice; list each view only once, as in --views image,depth")
    if pairs not in get_args(Pairs):
        raise SetsupError(f"pairs must be {' or '.join(get_args(Pairs))}, not {pairs!r}")
    if len(views) == 1:
        return ((views[0], views[0]),)
    heads = views[:1] if pairs == "core" else views
    return tuple((head, other) for at, head in enumerate(heads) for other in views[at + 1 :])


def both_directions(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Each pair of views as (anchor, candidates), in both directions; that of a view with itself once."""
    return tuple(dict.fromkeys(way for view, other in pairs for way in ((view, other), (other, view))))


def check_different(pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse a view that is paired with itself: its features of an image are not alike, they are the same."""
    if (single := next((view for view, other in pairs if view == other), None)) is not None:
        raise SetsupError(
            f"features are compared between views, but {single!r} is the only view; add another to --views, or compare "
            "its positions with --method.objective patch"
        )


def check_names(views: Iterable[str]) -> None:
    """Refuse names under which nothing can be kept: encoders, banks and projections are modules by name of a view."""
    for view in views:
        if not view or "." in view or hasattr(nn.ModuleDict(), view):
            raise SetsupError(
                f"{view!r} cannot be the name of a view: its encoder is stored under that name in an nn.ModuleDict, so "
                "the name must not be empty, contain a dot, or be an attribute of nn.ModuleDict, such as 'training'; "
                "rename the modality"
            )


def group_numbers(batch: Batch, factors: Sequence[str]) -> Tensor | None:
    """A number for each image of a batch, (n,), equal where all of some factors are; None without factors.

    An unknown value is equal to nothing.
    """
    if not factors:
        return None
    missing = [name for name in factors if name not in batch["factors"]]
    if missing:
        known = tuple(batch["factors"])
        raise SetsupError(
            f"apart contains {missing[0]!r}, which is not a factor of the data{did_you_mean(missing[0], known)}; "
            "choose factors with --method.apart"
        )
    codes = torch.stack([batch["factors"][name].flatten().to(torch.int64) for name in factors], 1)
    numbers = torch.unique(codes, dim=0, return_inverse=True)[1]
    unknown = (codes < 0).any(1)
    alone = torch.arange(len(numbers), device=numbers.device) + len(numbers)
    return torch.where(unknown, alone, numbers)
