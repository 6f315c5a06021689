"""Settings of the data of ABC's pose experiment: which images are drawn, and what is done to them.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence", arXiv 2103.03240, pose estimation and its appendix.

"""

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from setsup.arrays import Pixels
from setsup.errors import DataError, SetsupError
from setsup.samplers import Mixture, SetSampler, Stepwise

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.loading.batch import Batch, Transform
    from setsup.samplers import Sampler

__all__ = ["PoseAugmentation", "PoseCrop", "PoseSets"]

_LOG = logging.getLogger(__name__)
_SMOKE = 4
_RENDERED, _REAL = "source == 'rendering'", "source == 'real'"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseSets:
    """Pairs of a set of renderings of one model, and an unconstrained one in which some images are real [1]_.

    Sets 0, 2, 4 … of a step are of one model each, uniform among models; sets 1, 3, 5 … are uniform over all
    renderings, and each of their images is replaced by a real one with a probability p, independently. See
    :class:`setsup.SetSampler` and :class:`setsup.Mixture`.

    Attributes
    ----------
    pairs : int
        Pairs of sets per step.
    size : int
        Set size.
    real : float
        Final value of p, the probability of a real image: 0.10 for look-up, 0.02 for regression. With 0, no real images
        are needed.
    every : int, optional
        Number of training steps between increases of p: p(t) = real·min(⌊t/every⌋, levels − 1)/(levels − 1), which
        reaches `real` for the last part of 40,000 steps, or of 60,000 with 6,000. The values between 0 and `real` are
        [unclear]. By default, p is constant: p = `real`.
    levels : int
        Number of values of p, including 0 and `real`.
    constrained : bool
        Whether every other set shows one model. If false, all sets are unconstrained, as for augmentation alone.
        [unclear]

    """

    pairs: int = 4
    size: int = 32
    real: float = 0.10
    every: int | None = 4_000
    levels: int = 10
    constrained: bool = True

    def build(self, dataset: "Dataset", seed: int) -> "Sampler":
        """Build the sampler of a run."""
        if self.pairs < 1:
            raise SetsupError(f"pairs must be 1 or more (pairs of sets per step), not {self.pairs}")
        model = ["object"] if self.constrained else []
        base = SetSampler(
            dataset.factors,
            [model, []] * self.pairs,
            size=self.size,
            sets=2 * self.pairs,
            choose="groups",
            on_small_group="drop",
            where=_RENDERED,
            seed=seed,
        )
        if not self.real:
            return base
        share = self.real if self.every is None else Stepwise(self.real, self.every, self.levels)
        mixed = range(1, 2 * self.pairs, 2) if self.constrained else range(2 * self.pairs)
        return Mixture(base, _REAL, list(mixed), share, seed=seed)

    def shrunk(self) -> "PoseSets":
        """One pair of sets of four, and real images from the first step on."""
        return replace(self, pairs=1, size=min(self.size, _SMOKE), real=0.5 if self.real else 0.0, every=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseAugmentation:
    """Double augmentation: two copies of each image; the recipe ``abc-pose`` of :mod:`setsup.methods.recipes`.

    The operations are those of the paper [1]_; amounts that it does not state are [unclear], and so is their order.

    Attributes
    ----------
    size : int
        Side of the object's box, in pixels, at the centre of the images of the data.
    move : float
        Maximum move of the box, as a share of its sides, as in the paper. The box has a margin of this size in the
        images, 0.1 by default; if the margin is smaller, moves show background beyond it, which is logged.
    brightness, hue, sobel : float
        Maximum amounts in either direction: offset of colors in 0 … 1, turns of the hue of real images, weight of a
        Sobel-filtered copy. [unclear]
    noise : float
        Standard deviation of normal noise of each pixel. [unclear]
    salt_and_pepper : float
        Share of the pixels that become black or white. The text mentions this noise, a caption normal noise. [unclear]
    backgrounds : int
        Maximum number of images in the pool of backgrounds; renderings are composited over random crops of them. 0
        leaves renderings on black.

    """

    size: int = 128
    move: float = 0.1
    brightness: float = 0.2
    hue: float = 0.5
    noise: float = 0.05
    salt_and_pepper: float = 0.0
    sobel: float = 0.2
    backgrounds: int = 1_000

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        from setsup.loading.transforms import Compose
        from setsup.methods.recipes import recipe

        self._note_margin(dataset)
        names = ("size", "move", "brightness", "hue", "noise", "salt_and_pepper", "sobel")
        options: dict[str, Any] = {name: getattr(self, name) for name in names}
        options["real"] = ("source", int(dataset.factors["source"].code("real")))
        if self.backgrounds:
            options["pool"] = _pool(dataset, self.backgrounds, self.size)
        augment = recipe("abc-pose", seed=seed, **options)
        return augment if self.backgrounds else Compose([_without_alpha, augment])

    def _note_margin(self, dataset: "Dataset") -> None:
        """Warn where a move shows what images do not have."""
        sides = dataset.modalities["image"].shape[:2] if "image" in dataset.modalities else ()
        short = min((side for side in sides if side is not None), default=None)
        if short is not None and self.size <= short and (short - self.size) / 2 < self.move * self.size - 1e-6:
            _LOG.warning(
                "images of %s have a margin of %g pixels, but moves are of up to %g; pixels beyond the margin "
                "are %s; open the data with a larger margin, or lower --augmentation.move",
                *(dataset.name, (short - self.size) / 2, self.move * self.size),
                "background" if self.backgrounds else "black",
            )

    def shrunk(self) -> "PoseAugmentation":
        """A pool of eight images."""
        return replace(self, backgrounds=min(self.backgrounds, 2 * _SMOKE))


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseCrop:
    """The unchanged box of the object, from the centre of images, without alpha: colors of transparent pixels are kept.

    Those are black in images with a margin, and what the file has in images without one, as in the published
    evaluation; see :func:`setsup_papers.abc.pose.datasets.abc_pose.open`.

    Attributes
    ----------
    size : int
        Side of the box, in pixels; images are at least as large.

    """

    size: int = 128

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform; nothing of it is random."""
        return _Crop(self.size)


@dataclass(frozen=True, slots=True)
class _Crop:
    """The middle of the images of a batch, and their first three channels."""

    size: int

    def __call__(self, batch: "Batch") -> "Batch":
        height, width = batch["image"].shape[-2:]
        if min(height, width) < self.size:
            raise SetsupError(
                f"images must be at least as large as the box, {self.size} × {self.size}, not {height} × {width}"
            )
        # where CenterCrop has it: what is left over above and on the left is rounded to an even number
        top, left = round((height - self.size) / 2), round((width - self.size) / 2)
        image = batch["image"][..., :3, top : top + self.size, left : left + self.size]
        return {**batch, "image": image.contiguous()}


def _without_alpha(batch: "Batch") -> "Batch":
    return {**batch, "image": batch["image"][..., :3, :, :].contiguous()}


def _pool(dataset: "Dataset", count: int, side: int) -> Pixels:
    """Images of a dataset for what lies behind its renderings, (k, height, width, 3) uint8."""
    backgrounds = getattr(dataset, "backgrounds", None)
    if backgrounds is None:
        raise DataError(
            f"{dataset.name} has no backgrounds; train on abc-pose or its substitute, or pass "
            "--augmentation.backgrounds 0"
        )
    images: Pixels = backgrounds(count, side)
    return images
