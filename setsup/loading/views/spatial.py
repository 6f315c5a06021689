"""Pairs of pixels in two views of one scene, for learning dense features."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch

from setsup.arrays import Reals, Rows, Size
from setsup.checks import check_integer
from setsup.correspondence import planar
from setsup.correspondence.matching import Match, followed, matched, view_size
from setsup.correspondence.pixel_partners import Partners, partners
from setsup.correspondence.view_pairs import descriptor_pairs
from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.loading.crops import check_box
from setsup.loading.transforms.modalities import get_images, keyed_slots
from setsup.loading.transforms.operations.base import check_probability, pair
from setsup.loading.transforms.slots import Slots
from setsup.loading.views.names import add_views, check_names
from setsup.random import stream_key
from setsup.samplers.overlap.forms import Form
from setsup.samplers.overlap.set_pairs import pair_positions

__all__ = ["SpatialDescriptors", "SpatialPairs"]


_PIXELS, _PARTNERS, _WINDOWS = range(3)  # what a pair's key is folded with


@dataclass(frozen=True, eq=False)
class SpatialPairs:
    """Two views of each scene, and a partner in the second for every pixel of the first: single-pixel contrast in 3D.

    A share of the pixels of view 1 is traced to the scene and on to view 2. Those that are also visible in view 2 are
    positive; every other pixel has a random partner, as described in [1]_ (the published loader draws none). Where
    view 2 was moved before and shows nothing, no partner is drawn.

    Of a capture with a COLMAP model and no depth, only pixels at points that both views observe are valid, and of a
    dataset with keypoints only those that both images have: a share of them is positive, the others have random
    partners. Of sets of more than two views, as :class:`setsup.OverlapSampler`
    draws them, each has the pairs of :func:`setsup.correspondence.pair_positions`.

    Partners account for a previous :class:`Augment` by ``homographies`` of the batch: pixels of the rendered images
    are matched, and the matrices move both ends, to the nearest pixel. So
    ``Compose([recipe("oxels-3d"), SpatialPairs(rooms)])`` has partners in the recipe's windows. Nothing else may move
    or resize images before; after it, only photometric operations may change the views.

    Parameters
    ----------
    dataset : RenderedDataset, RenderedFolder, Photographs, a capture, or another with depth or ``pixel_pairs``
        The dataset of the loader, which may be a selection: it has the scenes, partners, depth, tracks or keypoints of
        rows.
    size : int or (height, width), optional
        Size of a window to crop from both views, such as the published 256 from 480 × 640; the whole views by default.
    keep : float
        0 … 1: share of the pixels to trace; 1/8 as published. If images were resized or rotated before, of the
        pixels as rendered. With tracks, share of the valid pixels to take as positives, from 0 up to less than 1 where
        random partners are needed.
    independent : bool
        Whether the windows of the two views are independent; by default they are the same, as published.
    match : callable
        Function that finds pairs. By default the first of these that the dataset has: its method ``pixel_pairs``; its
        method ``keypoint_pairs`` (:func:`setsup.correspondence.keypoints`); its scenes, which are traced; partners
        stored in its folder (:func:`setsup.correspondence.stored`); depth (:func:`setsup.correspondence.recorded`); the
        tracks of a COLMAP model (:func:`setsup.correspondence.tracked`).
    image : str
        Modality to make views of.
    views : int, optional
        For sets of more than two views: how many of them, from the first one, are paired; the `size` of the sampler.
        Later ones are its negatives.
    form : {"chain", "star", "clique"}
        The form of these sets, that of the sampler.
    names : tuple of five str
        Names of the new modalities.
    seed, stream : int, str
        0 ≤ seed < 2⁶⁴; transforms with one seed draw the same numbers unless their streams differ.

    Returns
    -------
    batch
        With ``view_1`` and ``view_2``, (pairs, channels, h, w) as the images are, set after set; and for the pixels of
        view 1, row after row, (pairs, h·w) each: ``partner``, int64, a pixel y · w + x of view 2; ``positive``, bool,
        whether the partner shows the same point; ``valid``, bool, false where an image that was moved before shows
        nothing, and where tracks are silent. :class:`PlanarPairs` adds the same of single images.

    Raises
    ------
    SetsupError
        When sets are not pairs, rows show different scenes or belong to another dataset, the window is larger than the
        views, or images have another size than the views without ``homographies``.

    References
    ----------
    .. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
       (arXiv 2512.04970), second experiment.

    Examples
    --------
    >>> import setsup
    >>> from setsup.correspondence import PixelPairSampler
    >>> from setsup.rendered.dataset import RenderedDataset
    >>> from setsup.loading.views import SpatialPairs
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = RenderedDataset(Shapes3D(size=(48, 48)), renderer="embree")
    >>> pairs = PixelPairSampler(shapes, pairs=2)
    >>> views = SpatialPairs(shapes, size=32, keep=0.25)
    >>> batch = next(iter(setsup.loader(shapes, pairs, modalities=["image"], transform=views, workers=0)))
    >>> tuple(batch["view_1"].shape), tuple(batch["partner"].shape), bool(batch["positive"].any())
    ((2, 3, 32, 32), (2, 1024), True)

    """

    dataset: Any
    size: int | Size | None = None
    keep: float = 0.125
    independent: bool = False
    _: KW_ONLY
    match: Match = matched
    image: str = "image"
    views: int | None = None
    form: Form = "chain"
    names: tuple[str, ...] = ("view_1", "view_2", "partner", "positive", "valid")
    seed: int = 0
    stream: str = "SpatialPairs"

    def __post_init__(self) -> None:
        if self.size is not None:
            object.__setattr__(self, "size", check_box(self.size, "SpatialPairs"))
        check_probability(self.keep, "SpatialPairs: keep")
        check_names(self.names, 5)
        stream_key(self.seed, self.stream)
        pair_positions(2 if self.views is None else self.views, self.form)  # whether these are valid

    def __call__(self, batch: Batch) -> Batch:
        """Add the views and what belongs to their pixels."""
        images, rows = _get_sets(batch, self.dataset, self.image)
        positions = self._positions(rows.shape[1])
        rows = rows[:, : positions.max() + 1]
        matrices = _matrices(batch, self.dataset, self.image, rows)[:, positions].reshape(-1, 2, 3, 3)
        if images.shape[1] > 2:
            images = images[:, torch.from_numpy(positions).to(images.device)].flatten(0, 1)
        rows = rows[:, positions].reshape(-1, 2)
        slots = keyed_slots(batch, self.seed, self.stream, (len(rows), 1))
        size = (int(images.shape[-2]), int(images.shape[-1]))
        if self.size is not None:
            windows = _windows(slots.at(_WINDOWS), size, pair(self.size), self.independent)
            size = pair(self.size)
            images = _cut(images, windows, size)
            matrices = planar.compose(matrices, planar.crop(windows[..., 0], windows[..., 1]))
        drawn = []
        keys = (slots.at(word).keys.tolist() for word in (_PIXELS, _PARTNERS))
        for views, by, pixel_key, partner_key in zip(rows.tolist(), matrices, *keys, strict=True):
            pairs, share, shown = followed(self.dataset, views, by, size, self.match, self.keep, pixel_key)
            drawn.append(partners(pairs, size, size, partner_key, shown=shown[0], shown2=shown[1], share=share))
        stack = Partners.stack(drawn)
        maps = [torch.from_numpy(part).to(images.device) for part in (stack.partner, stack.positive, stack.valid)]
        return add_views(batch, self.names, (images[:, 0], images[:, 1], *maps), (len(rows),))

    def _positions(self, width: int) -> Rows:
        """Pairs of positions in sets of so many views."""
        if self.views is None and width > 2:
            raise SetsupError(
                f"the batch has sets of {width} views; pass views=, the size of the OverlapSampler, and its form= to "
                "pair them, or draw two views"
            )
        if self.views is not None and self.views > width:
            raise SetsupError(f"the batch has sets of {width} views, fewer than views={self.views}; pass fewer views")
        return pair_positions(2 if self.views is None else self.views, self.form)


@dataclass(frozen=True, eq=False)
class SpatialDescriptors:
    """Matches of two views of each scene, each with three non-matches, for learning dense descriptors ([1]_).

    Parameters
    ----------
    dataset : RenderedDataset or RenderedFolder
        The dataset of the loader, which may be a selection.
    count : int
        n, number of matches per pair of views; each has a non-match on the same object, on another one, and on the
        background.
    background : tuple of str
        Names of instances that are not objects, such as ``("floor", "wall")``; pixels without an instance are
        background, too, except where an image that was moved before is blank.
    match : callable
        Function that finds pairs, as for :class:`SpatialPairs`.
    names : tuple of five str
        Names of the new modalities.
    seed, stream : int, str
        0 ≤ seed < 2⁶⁴; transforms with one seed draw the same numbers unless their streams differ.

    Returns
    -------
    batch
        With ``first``, pixels of view 1, and ``match``, ``same``, ``other`` and ``background``, pixels of view 2:
        (pairs, n) int64 as y · width + x, −1 where there is none; see
        :class:`setsup.correspondence.DescriptorPairs`. The views are ``batch["image"][:, 0]`` and ``[:, 1]``; pixels
        account for a previous :class:`Augment` of ``image`` and ``instances`` as those of :class:`SpatialPairs` do.

    Raises
    ------
    SetsupError
        When sets are not pairs, rows belong to another dataset, the batch has no ``instances``, or ``instances`` and
        ``image`` were moved differently.

    References
    ----------
    .. [1] P. Florence, L. Manuelli, R. Tedrake, "Dense Object Nets: learning dense visual object descriptors by and
       for robotic manipulation", CoRL 2018 (arXiv 1806.08756), section 3.

    """

    dataset: Any
    count: int
    background: tuple[str, ...] = ()
    _: KW_ONLY
    match: Match = matched
    names: tuple[str, ...] = ("first", "match", "same", "other", "background")
    seed: int = 0
    stream: str = "SpatialDescriptors"

    def __post_init__(self) -> None:
        check_integer(self.count, "count", SetsupError, 1)
        check_names(self.names, 5)
        stream_key(self.seed, self.stream)

    def __call__(self, batch: Batch) -> Batch:
        """Add the pixels."""
        instances, rows = _get_pairs(batch, self.dataset, "instances", axes=4)
        matrices = _matrices(batch, self.dataset, "instances", rows)
        if "image" in batch and not np.array_equal(_matrices(batch, self.dataset, "image", rows), matrices):
            raise SetsupError(
                "'image' and 'instances' were transformed differently; list both in modalities= of one Augment, as "
                "color and label"
            )
        size = (int(instances.shape[-2]), int(instances.shape[-1]))
        per_pair = []
        for views, by, seen, key in zip(
            rows.tolist(),
            matrices,
            instances[:, 1].cpu().numpy(),
            keyed_slots(batch, self.seed, self.stream, (len(rows), 1)).keys,
            strict=True,
        ):
            ground = [number for number, name in self.dataset.names(views[0]).items() if name in self.background]
            pairs, _, shown = followed(self.dataset, views, by, size, self.match, 1.0, 0)
            visible = np.where(shown[1], seen.astype(np.int64), -2)  # nothing, whatever an Augment filled it with
            drawn = descriptor_pairs(pairs, visible, size, self.count, int(key), background=ground)
            per_pair.append([drawn.first, drawn.match, drawn.same, drawn.other, drawn.background])
        maps = [torch.from_numpy(np.stack(part)).to(instances.device) for part in zip(*per_pair, strict=True)]
        return add_views(batch, self.names, maps, (len(rows),))


def _get_pairs(batch: Batch, dataset: Any, name: str, axes: int = 5) -> tuple[torch.Tensor, Rows]:
    """A modality of pairs of views, and their rows (pairs, 2) of the dataset, whose factors are the batch's."""
    images, rows = _get_sets(batch, dataset, name, axes)
    if rows.shape[1] != 2:
        raise SetsupError(f"{name!r} must be of pairs of views, (pairs, 2, …), not {tuple(images.shape)}; draw pairs")
    return images, rows


def _get_sets(batch: Batch, dataset: Any, name: str, axes: int = 5) -> tuple[torch.Tensor, Rows]:
    """A modality of sets of views, and their rows (sets, size) of the dataset, whose factors are the batch's."""
    images = get_images(batch, name) if axes == 5 else batch.get(name)
    rows = torch.as_tensor(batch.get("indices", ())).cpu().numpy()
    if not isinstance(images, torch.Tensor) or images.ndim != axes or rows.ndim != 2 or rows.shape[1] < 2:
        raise SetsupError(
            f"{name!r} must be a tensor of pairs of views, (pairs, 2, …), not {tuple(getattr(images, 'shape', ()))}; "
            "load this modality, and draw with a PixelPairSampler or an OverlapSampler"
        )
    drawn = rows >= 0  # others are of masked positions
    for factor, codes in batch.get("factors", {}).items():
        known = dataset.factors.codes(factor, rows[drawn]) if factor in dataset.factors else None
        given = torch.as_tensor(codes).cpu().numpy()
        if known is None or not np.array_equal(given[drawn], known, equal_nan=given.dtype.kind == "f"):
            raise SetsupError(f"the rows of the batch are not rows of {dataset.name}; pass the dataset of the loader")
    return images, rows


def _matrices(batch: Batch, dataset: Any, name: str, rows: Rows) -> Reals:
    """From pixels of views as they were drawn to those of a modality, (pairs, 2, 3, 3)."""
    height, width = batch[name].shape[-2:]
    matrices = batch.get("homographies", {}).get(name)
    if matrices is not None:
        return np.asarray(matrices.cpu().numpy(), np.float64)
    for row in rows.ravel().tolist():
        if (size := view_size(dataset, row, name)) != (height, width):
            raise SetsupError(
                f"{name!r} is {height} × {width}, but views of {dataset.name} are {size[0]} × {size[1]}; resize and "
                "crop them in an Augment, which records the homographies"
            )
    return np.broadcast_to(np.eye(3), (*rows.shape, 3, 3))


def _windows(slots: Slots, views: Size, size: Size, independent: bool) -> Rows:
    """Corners (left, top) of a window in each view, (pairs, 2, 2)."""
    room = (views[1] - size[1], views[0] - size[0])
    if min(room) < 0:
        raise SetsupError(
            f"a window of {size[0]} × {size[1]} pixels is larger than the views, {views[0]} × {views[1]}; pass a "
            "smaller size"
        )
    corners = [slots.below(room[number % 2] + 1, number) for number in range(4 if independent else 2)]
    return np.stack(corners if independent else corners * 2, axis=-1).reshape(-1, 2, 2)


def _cut(images: torch.Tensor, windows: Rows, size: Size) -> torch.Tensor:
    """Windows of views (pairs, 2, channels, height, width)."""
    views = [
        view[:, top : top + size[0], left : left + size[1]]
        for view, (left, top) in zip(images.flatten(0, 1), windows.reshape(-1, 2).tolist(), strict=True)
    ]
    return torch.stack(views).reshape(*images.shape[:3], *size)
