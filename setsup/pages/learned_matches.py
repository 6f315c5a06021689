"""Partners of pixels by the features of a run: the nearest pixel of the other view, as in ``setsup pairs --run``."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from setsup.arrays import Array, Reals, Rows
from setsup.correspondence import planar
from setsup.errors import DataError, require_modules
from setsup.pages.recent import Recent

if TYPE_CHECKING:
    from setsup.experiments import Run

__all__ = ["LearnedMatches"]

_KEPT = 4  # views whose features are kept
_MATCHED = 4096  # pixels of a grid
_LARGEST = 1 << 19  # pixels of a view
_COMPARED = 1 << 28  # pairs of pixels of a grid and of the other view


@dataclass
class LearnedMatches:
    """What the network of a run takes for the partners of pixels; it is loaded when it is first asked."""

    run: "Run"
    _trained: Any = field(default=None, repr=False)
    _features: Recent[int, Reals] = field(default_factory=lambda: Recent(_KEPT), repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def name(self) -> str:
        """Preset and seed of the run."""
        return f"{self.run.preset.name}, seed {self.run.seed}"

    def stride(self, images: Sequence[Array]) -> int:
        """Distance of the pixels of a grid that are matched at once."""
        pixels, others = (image.shape[0] * image.shape[1] for image in images)
        most = max(min(_MATCHED, _COMPARED // others), 1)
        return max(math.ceil(math.sqrt(pixels / most)), 1)

    def partners(self, rows: Sequence[int], images: Sequence[Array], pixels: Rows) -> tuple[Reals, Reals]:
        """Partners (n, 2) float64 in the second view of pixels (n, 2) of the first, and how far their features are.

        `rows` (2,) are the rows of a dataset that `images` (2,), (h, w, C) uint8 each, are of.
        """
        from setsup.evaluation.pixels import nearest_pixels

        first, second = (self._embed_view(row, image) for row, image in zip(rows, images, strict=True))
        # images are resized where networks need it, and pixels follow
        at = np.rint(planar.carried(pixels, planar.resize(*images[0].shape[:2], *first.shape[:2]))).astype(np.int64)
        at = at.clip(0, np.array(first.shape[1::-1]) - 1)
        nearest = nearest_pixels(first[at[:, 1], at[:, 0]], second)
        back = planar.resize(*second.shape[:2], *images[1].shape[:2])
        return planar.carried(nearest.places, back), nearest.distances

    def _embed_view(self, row: int, image: Array) -> Reals:
        """Features (h, w, D) of a view."""
        require_modules("features of pixels need", "torch", "lightning")
        if image.shape[0] * image.shape[1] > _LARGEST:
            size = f"{image.shape[0]:,} × {image.shape[1]:,}"
            raise DataError(
                f"row {row} has {size} pixels, but this page matches views of at most {_LARGEST:,} pixels; open the "
                "data with a smaller size"
            )
        with self._lock:  # one view at a time, since torch uses all cores
            return self._features.get(row, lambda: self._computed(row, image))

    def _computed(self, row: int, image: Array) -> Reals:
        """Features of a view, resized to what networks can halve."""
        from PIL import Image

        from setsup.experiments import load_trained
        from setsup.experiments.pixel_features import MULTIPLE, pixel_features, resized_view

        if self._trained is None:
            self._trained = load_trained(self.run)
        colors = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image[..., :3]
        height = max(round(image.shape[0] / MULTIPLE), 1) * MULTIPLE
        view = resized_view(Image.fromarray(np.ascontiguousarray(colors)), height, f"row {row}")
        return pixel_features(self._trained, view, self.run.folder.name)
