"""Pairs of views as a page asks for them: the exact partner of every pixel, and what runs take for it.

Pixels are (x, y) with centres at integers, as in :mod:`setsup.correspondence.planar`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setsup.arrays import Array, Reals
from setsup.correspondence import PixelPairSampler, Status
from setsup.correspondence.matching import Window, find_match
from setsup.correspondence.rendered_pairs import OWN, PAIR, VIEW
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError, SetsupError
from setsup.pages.answers import Answer, Query, json_answer, packed
from setsup.pages.dataset_page import value_texts
from setsup.pages.images import image_modality
from setsup.pages.learned_matches import LearnedMatches
from setsup.pages.opened import Opening
from setsup.pages.recent import Recent
from setsup.samplers.steps import LAST

if TYPE_CHECKING:
    from setsup.experiments import Run

__all__ = ["CorrespondenceSource", "open_correspondences"]

_KEPT = 4  # pairs whose partners are kept
_LARGEST = 1 << 22  # pixels of a view
_SHOWN = 1 << 19  # pixels of a view whose partners are sent; of larger views those of a grid


class Partners(NamedTuple):
    """What is kept of pixel pairs: 17 bytes a pixel, where all that they have takes 61."""

    points2: Reals
    status: Array


STATUSES = tuple(status.name.lower() for status in Status)


@dataclass
class CorrespondenceSource:
    """Pairs of views of a dataset that answer.

    Attributes
    ----------
    dataset : Dataset
        What says which pixels of two rows show the same.
    opening : Opening
        What opens it.
    learned : mapping of str to LearnedMatches
        By names of runs: what each takes for the partners.
    pairs : int, optional
        How many pairs an exported page has; by default any can be asked for.
    shown : int
        Pixels of a view whose partners are sent, at most.

    """

    dataset: Dataset
    opening: Opening = field(default_factory=Opening)
    learned: Mapping[str, LearnedMatches] = field(default_factory=dict)
    pairs: int | None = None
    shown: int = _SHOWN
    _found: Recent[tuple[int, int], Partners] = field(default_factory=lambda: Recent(_KEPT), repr=False)

    def __post_init__(self) -> None:
        """Make the sampler of pairs, SetsupError where the dataset has none."""
        self.sampler = PixelPairSampler(self.dataset, pairs=1)

    def about(self) -> Mapping[str, Any]:
        """The last pair there is, and of which runs there are matches."""
        return {
            "kind": "correspondences",
            "last": str((LAST if self.pairs is None else self.pairs) - 1),
            "statuses": STATUSES,
            "runs": {name: run.name for name, run in self.learned.items()},
        }

    def answer(self, query: Query) -> Answer:
        """Answer a question about a pair of views."""
        answers = {"pair": self._pair, "partners": self._partners, "learned": self._learned}
        return answers[query.choice("q", tuple(answers))](query)

    def views(self, step: int) -> tuple[int, int]:
        """Rows of the two views of a draw."""
        view1, view2 = self.sampler[step].indices[0].tolist()
        return view1, view2

    def _rows(self, query: Query) -> tuple[int, int]:
        rows = query.integers("rows", 2, len(self.dataset.factors) - 1)
        if len(rows) != 2:
            raise DataError("rows must be two row numbers, of view 1 and view 2")
        return rows[0], rows[1]

    def _pair(self, query: Query) -> Answer:
        """Rows of a pair, and what they agree and differ in."""
        step = None if "rows" in query.words else query.integer("step", 0, LAST - 1)
        rows = self._rows(query) if step is None else self.views(step)
        self.partners(*rows)  # whether these are two views of one scene
        values = value_texts(self.dataset.factors, np.array(rows))
        agree = {name: value1 for name, (value1, value2) in values.items() if value1 == value2}
        return json_answer(
            {
                "rows": rows,
                "sizes": [self.size(row) for row in rows],
                "agree": agree,
                "differ": {name: both for name, both in values.items() if name not in agree},
                "modality": image_modality(self.dataset),
                "python": self._python(rows, step),
            }
        )

    def _python(self, rows: tuple[int, int], step: int | None) -> str:
        names = [] if step is None else ["PixelPairSampler"]
        drawn = f"PixelPairSampler(dataset, pairs=1)[{step}].indices[0].tolist()"
        if hasattr(self.dataset, "pixel_pairs"):
            last = "pairs = dataset.pixel_pairs([one, two])  # points2, status"
        elif hasattr(self.dataset, "scene"):
            names.append("spatial")
            last = "pairs = spatial(dataset.scene(one), dataset.camera(one), dataset.camera(two))  # points2, status"
        else:
            last = 'found = dataset.fetch(one, ["partners", "status"])  # (h, w, 2) pixels of view 2, (h, w)'
        imported = [f"from setsup.correspondence import {', '.join(names)}"] if names else []
        chosen = f"one, two = {f'{rows[0]}, {rows[1]}' if step is None else drawn}"
        return "\n".join(["import setsup", *imported, "", f"dataset = {self.opening.python}", chosen, last])

    def size(self, row: int) -> tuple[int, int]:
        """Height and width of a view: what its camera says, or those of its image."""
        if hasattr(self.dataset, "camera"):
            camera = self.dataset.camera(row)
            return camera.height, camera.width
        name = image_modality(self.dataset)
        if name is None:
            raise DataError(f"{self.dataset.name} has no images, so the size of its views is unknown")
        height, width = np.shape(self.dataset.fetch(row, [name])[name])[:2]
        return int(height), int(width)

    def partners(self, row1: int, row2: int) -> Partners:
        """Partners of all pixels of view 1, row after row."""
        return self._found.get((row1, row2), lambda: self._traced(row1, row2))

    def _traced(self, row1: int, row2: int) -> Partners:
        if row1 == row2:
            raise DataError(f"row {row1} cannot be both views; choose two different rows")
        sizes = self.size(row1), self.size(row2)
        for (height, width), row in zip(sizes, (row1, row2), strict=True):
            if height * width > _LARGEST:
                raise DataError(
                    f"the view of row {row} has {height:,} × {width:,} pixels, but partners are shown for at most "
                    f"{_LARGEST:,}; open the data with a smaller size"
                )
        pairs = find_match(self.dataset)(
            self.dataset, row1, row2, Window(0, 0, *sizes[0]), Window(0, 0, *sizes[1]), 1.0, 0
        )
        return Partners(pairs.points2.copy(), pairs.status.copy())

    def _partners(self, query: Query) -> Answer:
        """Places and statuses of a grid of pixels, as arrays: float32, uint8."""
        row1, row2 = self._rows(query)
        pairs, (height, width) = self.partners(row1, row2), self.size(row1)
        stride = max(math.ceil(math.sqrt(height * width / self.shown)), 1)
        places = pairs.points2.reshape(height, width, 2)[::stride, ::stride]
        status = pairs.status.reshape(height, width)[::stride, ::stride]
        return json_answer(
            {
                "stride": stride,
                "shape": status.shape,
                "x": packed(places[..., 0], np.float32),
                "y": packed(places[..., 1], np.float32),
                "status": packed(status, np.uint8),
                "counts": np.bincount(pairs.status, minlength=len(Status)),
            }
        )

    def _learned(self, query: Query) -> Answer:
        """What a run takes for the partners of a grid of pixels; or of one pixel."""
        row1, row2 = self._rows(query)
        run = self.learned[query.choice("run", tuple(self.learned))]
        name = image_modality(self.dataset)
        if name is None:
            raise DataError(f"{self.dataset.name} has no images to match")
        images = [np.asarray(self.dataset.fetch(row, [name])[name]) for row in (row1, row2)]
        if "pixel" in query.words:
            height, width = images[0].shape[:2]
            x, y = (*query.integers("pixel", 2, max(height, width) - 1), -1)[:2]
            if not (0 <= x < width and 0 <= y < height):
                raise DataError(f"pixel must be x,y within {width} × {height}")
            places, distances = run.partners((row1, row2), images, np.array([[x, y]]))
            return json_answer({"partner": places[0], "distance": distances[0]})
        pairs, (height, width) = self.partners(row1, row2), self.size(row1)
        stride = run.stride(images)
        at = np.mgrid[0:height:stride, 0:width:stride][::-1].reshape(2, -1).T
        places, _ = run.partners((row1, row2), images, at)
        flat = at[:, 1] * width + at[:, 0]
        seen = pairs.status[flat] == Status.VISIBLE
        away = np.linalg.norm(places - pairs.points2[flat], axis=1)[seen]
        shape = -(-height // stride), -(-width // stride)
        return json_answer(
            {
                "stride": stride,
                "shape": shape,
                "x": packed(places[:, 0], np.float32),
                "y": packed(places[:, 1], np.float32),
                "visible": len(away),
                "within": {str(most): int((away <= most).sum()) for most in (1, 3, 5)},
                "median": float(np.median(away)) if len(away) else None,
            }
        )


def open_correspondences(
    dataset: Dataset, opening: Opening | None = None, runs: "Mapping[str, Run] | None" = None
) -> CorrespondenceSource | None:
    """The pairs of views of a dataset; None where it has none, or does not say which pixels show the same."""
    stored = hasattr(dataset, "camera") and {PAIR, VIEW} <= set(dataset.factors.names)
    known = (
        hasattr(dataset, "pixel_pairs") or hasattr(dataset, "scene") or (stored and set(OWN) <= set(dataset.modalities))
    )
    if not known or not getattr(dataset, "pair_factors", None):
        return None
    try:
        learned = {name: LearnedMatches(run) for name, run in (runs or {}).items()}
        return CorrespondenceSource(dataset, opening or Opening(), learned)
    except SetsupError:  # no scene has two views
        return None
