"""Views of contrastive multiview coding as settings of a transform: one crop for all views, halves, patches, clips.

Each serves as the augmentation and, without what is random, as the ``eval_transform`` of a preset.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from setsup.errors import SetsupError
from setsup_papers.cmc.settings import names_of

if TYPE_CHECKING:
    from setsup.datasets import Dataset, Modality
    from setsup.loading.batch import Batch, Transform

__all__ = ["FrameFlow", "Frames", "Halves", "PatchViews", "ViewCrops", "resampling_kind"]

_log = logging.getLogger("setsup")

_LAB = "lab"
"""The usual colour space."""

_CLASSES = ("label", "labels", "classes", "segmentation")
"""Names of maps of classes, which are not images."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCrops:
    """One crop of all modalities of an image, then the views of a color space if requested.

    A view is a modality of the data under its own name, or the channels of a colour space: ``L`` and ``ab`` of ``lab``.
    Bytes stay bytes, depth stays in metres, normals turn with a flip, and classes are never interpolated. Views that
    are missing from the data are omitted, so that encoders can be tested on images only.

    Attributes
    ----------
    views : tuple of str
        Names of views, such as ``image,depth``.
    size : int, optional
        Side of the crop, in pixels; smaller images are not enlarged. By default images are not cropped.
    crop : {"box", "resized", "center", "whole"}
        ``box``: a random box; ``resized``: a random part, resized; ``center``: the box in the middle; ``whole``: the
        whole image, resized.
    area : (float, float)
        Minimum and maximum area of a resized part, as a share of the image.
    flip : bool
        Whether half of the images are flipped.
    space : str
        Color space, such as ``lab`` or ``ycbcr``.
    image : str
        Modality that is converted to this color space.

    """

    views: tuple[str, ...] = field(default=("L", "ab"), metadata={"option": "views"})
    size: int | None = field(default=None, metadata={"option": "crop_size"})
    crop: Literal["box", "resized", "center", "whole"] = "box"
    area: tuple[float, float] = (0.2, 1.0)
    flip: bool = False
    space: str = field(default="lab", metadata={"option": "space"})
    image: str = "image"

    def __post_init__(self) -> None:
        """Split names at commas."""
        object.__setattr__(self, "views", names_of(self.views))

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        from setsup.loading.transforms import CenterCrop, Crop, Flip, Resize, ResizedCrop
        from setsup.loading.views import ColorViews
        from setsup.loading.views.colors import color_space

        colors = self._colors(dataset)
        wanted = [self.image] if colors else []
        wanted += [view for view in self.views if view in dataset.modalities]
        if not self.views:
            raise SetsupError("views must contain at least one modality of the data, for example --views image,depth")
        if not wanted:
            known, channels = ", ".join(dataset.modalities), " and ".join(color_space(self.space).views)
            raise SetsupError(
                f"{dataset.name} has none of the views {', '.join(self.views)}; choose from {known} with --views, "
                f"or use {channels} of the color space {self.space} (--space), which require {self.image!r}; to "
                "use images of two sensors, store them in one .npz file, because a table has one column of images"
            )
        if self.space != _LAB and not set(self.views) & set(color_space(self.space).views):
            channels = " and ".join(color_space(self.space).views)
            raise SetsupError(
                f"--space {self.space} splits images into {channels}, but --views {','.join(self.views)} contains "
                "neither; add them to --views, or omit --space"
            )
        _check_kinds(dataset, wanted, self.image if colors else None, self.space)
        shape = dataset.modalities[wanted[0]].shape[:2]
        sides = tuple(side for side in shape if side is not None)
        operations: list[Any] = []
        if self.size is not None:
            box = min((self.size, *sides))
            if box < self.size and self.crop in ("box", "center"):
                _tell_smaller(dataset.name, shape, box, self.size)
            crops = {"box": Crop(box), "center": CenterCrop(box), "whole": Resize(self.size)}
            operations.append(crops[self.crop] if self.crop in crops else ResizedCrop(self.size, self.area))
        elif self.crop in ("resized", "whole"):
            raise SetsupError("images must be resized to one size; pass --augmentation.size, or another crop")
        if self.flip:
            operations.append(Flip())
        shapes = {name: dataset.modalities[name].shape[:2] for name in wanted}
        if operations and len(set(shapes.values())) > 1:
            sizes = ", ".join(f"{name} {' × '.join(map(str, size))}" for name, size in shapes.items())
            raise SetsupError(
                f"views of {dataset.name} are cropped and flipped together, but their sizes differ: {sizes}; resize "
                "them to one size, or omit --crop-size and flips"
            )
        kinds = {
            name: kind
            for name, modality in dataset.modalities.items()
            if (kind := resampling_kind(name, modality)) and (name in wanted or modality.shape[:2] == shape)
        }
        return _Views(tuple(operations), kinds, ColorViews(self.space, self.image) if colors else None, seed)

    def _colors(self, dataset: "Dataset") -> bool:
        """Whether channels of the colour space are among the views."""
        from setsup.loading.views.colors import color_space

        channels = color_space(self.space).views if self.image in dataset.modalities else ()
        return any(view in channels and view not in dataset.modalities for view in self.views)


@cache
def _tell_smaller(name: str, shape: tuple[int | None, ...], box: int, size: int) -> None:
    """Warn of crops that are smaller than asked for, once: a run builds its transforms several times."""
    height, width = shape
    _log.warning(
        "images of %s are %s × %s, smaller than --crop-size %d: crops are %d × %d", name, height, width, size, box, box
    )


def _check_kinds(dataset: "Dataset", wanted: list[str], colored: str | None, space: str) -> None:
    """Refuse an image without colours where its colours are views, and classes that look like a grey image."""
    for name in wanted:
        modality = dataset.modalities[name]
        if name == colored and (not modality.color or modality.shape[-1] != 3):
            shape = " × ".join(map(str, modality.shape))
            raise SetsupError(
                f"channels of {space} require uint8 RGB images of shape (height, width, 3), but {name!r} of "
                f"{dataset.name} has dtype {modality.dtype} and shape {shape}; choose other views with --views, or "
                "another image with --augmentation.image"
            )
        if modality.color == "grey" and name in _CLASSES:
            raise SetsupError(
                f"{name!r} of {dataset.name} is uint8 and would be resized and scaled as a grey image; store classes "
                "as int16 (n, height, width), or rename the modality if it is an image"
            )


def resampling_kind(name: str, modality: "Modality") -> str:
    """How a modality is resampled, as :class:`~setsup.loading.transforms.Augment` names it; empty if it is not a map.

    Maps of integers are classes, and maps of floats are interpolated as depth is, but for normals and flow.
    """
    shape = modality.shape
    if modality.color:
        return "color" if len(shape) == 3 else ""
    if len(shape) not in (2, 3) or min(size or 0 for size in shape[:2]) <= 1:
        return ""
    if len(shape) == 3 and shape[2] == 3 and name in ("normals", "normal"):
        return "normal"
    return "label" if modality.dtype.startswith(("int", "uint", "bool")) else "depth"


@dataclass(frozen=True)
class _Views:
    """Crops what a batch has, and adds the views of a colour space."""

    operations: tuple[Any, ...]
    kinds: Mapping[str, str]
    colors: Any
    seed: int

    def __call__(self, batch: "Batch") -> "Batch":
        from setsup.loading.transforms import Augment
        from setsup.loading.views.colors import color_space

        if self.colors is not None and (
            taken := [view for view in color_space(self.colors.space).views if view in batch]
        ):
            raise SetsupError(
                f"the modality {taken[0]!r} of the data has the same name as a view of the color space "
                f"{self.colors.space}, whose two views are created together; exclude the modality by listing the "
                "others with --data.modalities"
            )
        kinds = {name: kind for name, kind in self.kinds.items() if name in batch}
        if self.operations and kinds:
            eight_bit = any(kind == "color" for kind in kinds.values())
            augment = Augment(
                list(self.operations), modalities=kinds, eight_bit=eight_bit, seed=self.seed, stream="ViewCrops"
            )
            batch = augment(batch)
        return batch if self.colors is None else self.colors(batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Halves:
    """The left and the right half of each image: views ``left`` and ``right``.

    Attributes
    ----------
    image : str
        Modality that is cut.

    """

    image: str = "image"

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        return _Cut(self.image)


@dataclass(frozen=True)
class _Cut:
    """Cuts images in the middle; of an odd width, the column in the middle is in neither."""

    image: str

    def __call__(self, batch: "Batch") -> "Batch":
        images = batch[self.image]
        middle = images.shape[-1] // 2
        return {**batch, "left": images[..., :middle], "right": images[..., -middle:]}


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchViews:
    """Two patches of each image at a fixed distance: views ``patch_1`` and ``patch_2``.

    See :class:`setsup.loading.views.PatchPairs`.

    Attributes
    ----------
    size : int
        Side of a patch, in pixels.
    offset : int
        Distance from the first patch to the second, in pixels to the right and down.
    image : str
        Modality that is cut.

    """

    size: int = 64
    offset: int = 64
    image: str = "image"

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        from setsup.loading.views import PatchPairs

        return PatchPairs(self.size, self.offset, self.image, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """A frame of a clip, a later one, and the motion around the first: views ``frame``, ``later``, ``flow_stack``.

    See :class:`setsup.loading.views.FrameTriples`.

    Attributes
    ----------
    size : int, optional
        Side of the crop of all three views, in pixels; by default frames are not cropped.
    center : bool
        Whether to crop the centre, without flips.
    later : int
        Number of frames from the frame to the later one, k [our choice].
    flow : int
        Number of flow fields in a stack.

    """

    size: int | None = field(default=None, metadata={"option": "crop_size"})
    center: bool = False
    later: int = 5
    flow: int = 10

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        from setsup.loading.transforms import Augment, CenterCrop, Compose, Crop, Flip
        from setsup.loading.views import FrameTriples

        if "flow" not in dataset.modalities:
            raise SetsupError(f"{dataset.name} has no modality 'flow'; open it with optical flow, --option flow=true")
        triples = FrameTriples(self.later, self.flow, seed=seed)
        operations: list[Any] = []
        if self.size is not None:
            operations.append(CenterCrop(self.size) if self.center else Crop(self.size))
        if not self.center:
            operations.append(Flip())
        if not operations:
            return triples
        kinds = {"frame": "color", "later": "color", "flow_stack": "flow"}
        return Compose([triples, Augment(operations, modalities=kinds, seed=seed, stream="Frames")])


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFlow:
    """A rendered frame and its exact flow to the next frame: views ``image`` and ``flow``.

    See :class:`setsup.loading.views.FlowViews`.

    Attributes
    ----------
    size : int, optional
        Side of the crop, in pixels; by default frames are not cropped.
    flip : bool
        Whether half of the frames are flipped.
    limit : float
        Pixels at which flow is clipped.

    """

    size: int | None = field(default=None, metadata={"option": "crop_size"})
    flip: bool = False
    limit: float = 20.0

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        from setsup.loading.transforms import Crop, Flip
        from setsup.loading.views import FlowViews

        if "exact_flow" not in dataset.modalities:
            raise SetsupError(
                f"{dataset.name} has no modality 'exact_flow'; render frames, for example with `setsup render room "
                "--frames 24`"
            )
        operations = [*([] if self.size is None else [Crop(self.size)]), *([Flip()] if self.flip else [])]
        return _FrameFlow(FlowViews(self.limit), tuple(operations), seed)


@dataclass(frozen=True)
class _FrameFlow:
    """Adds the view of flow, and crops it with the frame and its classes."""

    view: Any
    operations: tuple[Any, ...]
    seed: int

    def __call__(self, batch: "Batch") -> "Batch":
        from setsup.loading.transforms import Augment

        batch = self.view(batch)
        if not self.operations:
            return batch
        kinds = {"image": "color", "flow": "flow", "labels": "label"}
        known = {name: kind for name, kind in kinds.items() if name in batch}
        augment = Augment(list(self.operations), modalities=known, eight_bit=True, seed=self.seed, stream="FrameFlow")
        return augment(batch)
