"""What features of pixels of rooms say of places, objects and edges, beside features that need no training.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), second experiment: figures, which these measures turn into numbers.
.. [2] E. Tola, V. Lepetit, P. Fua, "DAISY: an efficient dense descriptor applied to wide-baseline stereo", PAMI 2010.

"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from setsup.correspondence import PixelPairs, Status
from setsup.errors import SetsupError
from setsup.evaluation.pixels import edge_pixels
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations.dense import DenseSettings, measure_pairs
from setsup.experiments.evaluations.view_pairs import ViewPair, draw_view_pairs
from setsup.experiments.trained_run import TrainedRun
from setsup.random import stream_key

if TYPE_CHECKING:
    from PIL.Image import Image

    from setsup.datasets import Dataset

__all__ = ["RoomMatches"]

Reals = npt.NDArray[Any]
Maps = Callable[[npt.NDArray[np.int64]], Reals]
"""From rows (n,) to feature maps (n, h, w, D)."""

_MODALITIES = ("depth", "instances", "partners", "status")
_LIMITS = (1, 3, 5)  # pixels
_DRAWN = 3  # pairs of views of the image of an evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomMatches:
    """Matches, rejections, instances and edges from pixel features, on pairs of views that were not used in training.

    Views are rows of a folder of ``setsup render --matches`` with depth, instances, partners and status. For some
    pixels of view 1 the nearest feature among all pixels of view 2 is found, by Euclidean distance.

    Attributes
    ----------
    pairs : int
        Number of pairs of views, each of a different combination of the scene's factors if there are enough.
    queries : int
        Visible pixels per pair, and as many occluded ones if there are enough.
    instances : int
        Random pairs of pixels per view.
    dataset : str, optional
        One of the preset's ``datasets``; the training data by default.
    baselines : tuple of {"untrained", "colors", "daisy"}
        Also measure these features on the same pixels: the initial weights, sRGB values, and DAISY of grey images.
    patches : str, optional
        Also measure the features of this vision transformer, such as ``"hf:facebook/dinov2-small"``; see
        :func:`setsup.experiments.encoders.patch_features.patch_features`.
    pair_seed : int
        Seed of pairs and pixels; independent of the seed of the run, so that runs are compared on the same pairs and
        pixels.

    """

    version: ClassVar[int] = 2  # of equal distances, the first pixel counts

    pairs: int = 200
    queries: int = 1024
    instances: int = 10_000
    dataset: str | None = "test"
    baselines: tuple[Literal["untrained", "colors", "daisy"], ...] = ("untrained", "colors", "daisy")
    patches: str | None = None
    pair_seed: int = 0

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of its areas and descriptors."""
        return ("scipy", *(("skimage",) if "daisy" in self.baselines else ()))

    def shrunk(self) -> "RoomMatches":
        """Return the evaluation shrunk to few pixels."""
        return replace(self, pairs=min(self.pairs, 2), queries=min(self.queries, 16), instances=100)

    def measure(self, trained: TrainedRun) -> Measured:
        """Means over pairs of views by source, the trained features without a name; and values of each pair as curves.

        ``within 1 px`` and others: share of the visible pixels whose nearest one is so near to the true place.
        ``rejection``: area under the ROC curve of telling occluded from visible ones by the distance of the nearest
        feature. ``instances``: of telling pixels of different instances from those of one by their features'
        distance. ``edges``: of telling pixels within 2 px of an edge by one channel, the best one over all views.
        ``pairs`` is how many there were, at most as many as asked for.
        The image of a source shows features, true places and nearest pixels of some pairs.
        """
        dataset = trained.open(self.dataset)
        missing = [name for name in _MODALITIES if name not in dataset.modalities]
        if missing:
            raise SetsupError(
                f"{dataset.name} lacks modalities ({', '.join(missing)}); render the rooms again with `setsup render "
                "room --matches N` and these modalities"
            )
        pairs = draw_view_pairs(dataset, self.pairs, self.pair_seed)
        values: dict[str, float] = {"pairs": len(pairs)}
        curves: dict[str, tuple[list[int], list[float]]] = {}
        numbers = list(range(len(pairs)))
        about = {"table": dataset.factors.fingerprint, "rows": pairs, "queries": self.queries}
        about |= {"instances": self.instances, "seed": self.pair_seed}
        pictures: dict[str, Image] = {}
        sources = {source: (maps, about) for source, maps in self._sources(trained, dataset).items()}
        if self.patches is not None:
            maps, weights = _patches(self.patches, trained.device, dataset)
            sources["patches"] = maps, about | {"weights": weights}
        for source, (maps, settings) in sources.items():

            def compute(maps: Maps = maps) -> dict[str, Any]:
                return self._measured(dataset, pairs, maps)

            by_name = trained.part("rooms", settings | {"source": source}, compute)
            for name, per_pair in by_name.items():
                title = f"{source}: {name}" if source else name
                known = np.array([np.nan if number is None else number for number in per_pair], dtype=np.float64)
                values[title] = float(np.nanmean(known))
                values[f"{title}: spread"] = float(np.nanstd(known, ddof=1)) if len(known) > 1 else 0.0
                curves[title] = (numbers, known.tolist())
            pictures[source or "trained"] = _drawn(dataset, pairs[:_DRAWN], maps)
        curves = {name: curve for name, curve in curves.items() if "px" in name}
        return Measured(values=values, curves=curves, pictures=pictures)

    def _sources(self, trained: TrainedRun, dataset: "Dataset") -> Mapping[str, Maps]:
        from setsup.experiments.embedding import embed_batches
        from setsup.experiments.encoders.descriptors import color_features, daisy_features

        def learned(rows: npt.NDArray[np.int64]) -> Reals:
            return np.concatenate(list(trained.embed_batches(dataset, rows)))

        def untrained(rows: npt.NDArray[np.int64]) -> Reals:
            return np.concatenate(list(embed_batches(trained.untrained, dataset, rows, **trained.embedding(dataset))))

        def colors(rows: npt.NDArray[np.int64]) -> Reals:
            return color_features(dataset.fetch(rows, ["image"])["image"])

        def daisy(rows: npt.NDArray[np.int64]) -> Reals:
            return daisy_features(dataset.fetch(rows, ["image"])["image"])

        known: dict[str, Maps] = {"untrained": untrained, "colors": colors, "daisy": daisy}
        return {"": learned} | {name: known[name] for name in self.baselines}

    def _measured(self, dataset: "Dataset", pairs: npt.NDArray[np.int64], maps: Maps) -> dict[str, list[float]]:
        """Values of each pair of views, by name."""
        settings = DenseSettings(
            protocols=("visible",),
            queries=self.queries,
            pixels=_LIMITS,
            metres=(),
            mutual=False,
            instances=self.instances,
        )
        key = int(stream_key(self.pair_seed, "pixels of rooms"))
        values = measure_pairs(lambda number: _stored_pair(dataset, pairs[number]), pairs, maps, settings, key)
        names = {f"visible: within {limit} px": f"within {limit} px" for limit in _LIMITS}
        return {names.get(name, name): values[name] for name in (*names, "rejection", "instances", "edges")}


def _stored_pair(dataset: "Dataset", rows: npt.NDArray[np.int64]) -> ViewPair:
    """What the folder stores of two views."""
    truth = dataset.fetch(rows[0], list(_MODALITIES))
    height, width = truth["status"].shape
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    pixels = np.stack([x, y], axis=-1).reshape(-1, 2).astype(np.float64)
    nothing = np.full((height * width, 3), np.nan)
    status, instances = truth["status"].reshape(-1), truth["instances"]
    found = PixelPairs(pixels, truth["partners"].reshape(-1, 2), nothing, instances.reshape(-1), status)
    edges = edge_pixels(instances, truth["depth"])
    size = (height, width)
    first, second = rows.tolist()
    return ViewPair((first, second), found, (size, size), instances=instances, edges=edges)


def _drawn(dataset: "Dataset", pairs: npt.NDArray[np.int64], maps: Maps) -> "Image":
    """Features of some pairs of views, and what is nearest to the visible pixels."""
    from setsup_papers.pixels.sheets import room_sheet

    truth = dataset.fetch(pairs[:, 0], ["partners", "status"])
    seen = np.where(truth["status"][..., None] == Status.VISIBLE, truth["partners"], np.nan)
    views = dataset.fetch(pairs, ["image"])["image"][..., :3]
    return room_sheet(list(views), [list(maps(rows)) for rows in pairs], list(seen))


def _patches(name: str, device: str, dataset: "Dataset") -> tuple[Maps, str]:
    """Features of a vision transformer, and which weights these are."""
    from setsup.experiments.encoders.patch_features import patch_features

    features, weights = patch_features(name, device)
    return lambda rows: features(dataset.fetch(rows, ["image"])["image"][..., :3]), weights
