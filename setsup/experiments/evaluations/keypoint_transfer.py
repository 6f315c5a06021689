"""Transfer of keypoints between images of a category: PCK on SPair-71k, PF-PASCAL and PF-WILLOW.

References
----------
.. [1] J. Min, J. Lee, J. Ponce, M. Cho, "SPair-71k: a large-scale benchmark for semantic correspondence", 2019
   (arXiv 1908.10543).
.. [2] J. Min, J. Lee, J. Ponce, M. Cho, "Hyperpixel Flow: semantic correspondence with multi-layer neural features",
   ICCV 2019 (arXiv 1908.06537), and its published code: the scale of each benchmark.

"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals
from setsup.datasets import Dataset
from setsup.datasets.keypoint_pairs import KeypointPairs, PairList, listed_pairs
from setsup.errors import DataError
from setsup.evaluation.feature_points import Sampling
from setsup.evaluation.keypoint_transfer import transfer_keypoints
from setsup.evaluation.keypoints import keypoint_accuracy, keypoint_extent
from setsup.experiments.evaluations.measured import (
    ALL,
    Encode,
    Example,
    Measured,
    describe_count,
    draw_numbers,
    fetch_rgb,
    spread_numbers,
)
from setsup.factors import Kind

__all__ = [
    "METHOD",
    "KeypointTask",
    "Transfer",
    "choose",
    "content",
    "describe",
    "examples",
    "main_value",
    "measure",
    "score",
    "transfer",
]

METHOD = 1
"""Version of the measure; results stored by another version are measured again."""
_ALPHAS = (0.05, 0.1, 0.15)
_RIGHT = 0.1  # α of the points that a sheet shows as right
_KEPT = 1 << 29  # bytes of maps kept in memory
_SPLIT = "split"
_TEST = "test"


@dataclass(frozen=True, slots=True, eq=False)
class KeypointTask:
    """The pairs of images that are measured.

    Attributes
    ----------
    pairs : PairList
        The pairs, in the order of the published list.
    total : int
        Number of pairs that they were drawn from.
    split : str, optional
        Split of the benchmark that they belong to; None if they were chosen by an expression, or there are no splits.

    """

    pairs: PairList
    total: int
    split: str | None

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.pairs)

    @property
    def about(self) -> dict[str, Any]:
        """Identify the pairs in stored results, as JSON values."""
        return {"pairs": self.pairs.rows.tolist(), "factors": self.pairs.factors.fingerprint}


@dataclass(frozen=True, slots=True, eq=False)
class Transfer:
    """Keypoints of a pair of images, where they are found, and the lengths that errors are compared with.

    Attributes
    ----------
    keypoints : KeypointPairs
        Keypoints that both images show.
    found : (n, 2) float64
        Positions (x, y) found in image 2, pixels.
    scales : mapping of str to float
        Pixels: ``bbox``, longer side of the object's box in image 2, where there are boxes; ``img``, longer side of
        image 2; ``keypoints``, longer side of the box around the keypoints of image 2. The dataset's ``keypoint_scale``
        comes first.

    """

    keypoints: KeypointPairs
    found: Reals
    scales: Mapping[str, float]


def choose(dataset: Dataset, *, most: int | None, seed: int, where: str | None = None) -> KeypointTask:
    """Choose published pairs: those of the test split, or those that satisfy an expression over their factors.

    Parameters
    ----------
    dataset : Dataset
        With keypoints.
    most : int, optional
        Draw at most so many of them; all by default.
    seed : int
        Random seed of the draw.
    where : str, optional
        Expression such as ``"split == 'val' and viewpoint == 'hard'"``; by default the pairs of the split
        ``test``, if there are any.

    Returns
    -------
    KeypointTask

    Raises
    ------
    DataError, FactorError
        When no pair is left, or the expression names no factor.

    """
    pairs, split = listed_pairs(dataset), None
    if where is not None:
        pairs = pairs.where(where)
    elif _SPLIT in pairs.factors.names:
        tests = pairs.factors.values(_SPLIT) == _TEST
        if tests.any():
            pairs, split = pairs.select(np.flatnonzero(tests)), _TEST
    if not len(pairs):
        raise DataError(f"no published pair of {dataset.name} is left; choose more rows, or another expression")
    total = len(pairs)
    return KeypointTask(pairs.select(draw_numbers(total, most, seed, "published pairs")), total, split)


def content(dataset: Any, task: KeypointTask) -> Iterator[npt.ArrayLike]:
    """Return what values depend on besides the encoder: images, boxes and keypoints."""
    for row in np.unique(task.pairs.rows).tolist():
        yield fetch_rgb(dataset, row)
        if "box" in dataset.modalities:
            yield dataset.fetch(row, ["box"])["box"]
    for rows in task.pairs.rows.tolist():
        keypoints = dataset.keypoint_pairs(rows)
        yield from (keypoints.points1, keypoints.points2, keypoints.status)


def describe(task: KeypointTask, features: Sampling) -> list[str]:
    """Lines of the report."""
    drawn = describe_count(len(task), task.total, "published pair of images", "published pairs of images")
    part = f" of the split {task.split}" if task.split else ""
    places = "all pixels of image 2" if features == "pixels" else "the cells of its grid, found at their centers"
    return [
        f"{drawn}{part}; keypoints are found at the largest cosine of features, of {places}",
        "PCK: share of keypoints at most α · s from the truth; s is the longer side of the object's box (bbox), of the "
        "image (img) or of the box around the keypoints (keypoints), all of image 2",
        "per image: mean of the shares of pairs; per point: share of the keypoints of all pairs",
    ]


def transfer(
    dataset: Any, encode: Encode, pairs: PairList, features: Sampling = "pixels"
) -> Iterator[tuple[Transfer, tuple[npt.NDArray[Any], npt.NDArray[Any]]]]:
    """Find the keypoints of image 1 of each pair in image 2; yields the result and the maps of both images.

    The most recently used maps are kept, up to 512 MiB: published lists name the pairs of an image one after another.
    """
    known: OrderedDict[int, tuple[npt.NDArray[Any], tuple[int, int]]] = OrderedDict()

    def encoded(row: int) -> tuple[npt.NDArray[Any], tuple[int, int]]:
        if row not in known:
            image = fetch_rgb(dataset, row)
            known[row] = np.asarray(encode(image)), (image.shape[0], image.shape[1])
            while len(known) > 2 and sum(held.nbytes for held, _ in known.values()) > _KEPT:
                known.popitem(last=False)
        known.move_to_end(row)
        return known[row]

    boxed = "box" in dataset.modalities
    for row1, row2 in pairs.rows.tolist():
        keypoints = _both(dataset.keypoint_pairs([row1, row2]))
        (map1, size1), (map2, size2) = encoded(row1), encoded(row2)
        found = transfer_keypoints(map1, map2, keypoints.points1, size1, size2, features=features).points
        scales = {"img": float(max(size2))}
        if boxed:
            left, top, right, bottom = dataset.fetch(row2, ["box"])["box"].astype(np.float64).tolist()
            scales = {"bbox": max(right - left, bottom - top), **scales}
        if len(keypoints):
            scales["keypoints"] = keypoint_extent(keypoints.points2)
        usual = getattr(dataset, "keypoint_scale", "")
        scales = dict(sorted(scales.items(), key=lambda scale: scale[0] != usual))
        yield Transfer(keypoints, found, scales), (map1, map2)


def measure(
    dataset: Dataset,
    encode: Encode,
    task: KeypointTask,
    features: Sampling = "pixels",
    on_part: Callable[[], Any] | None = None,
) -> list[Measured]:
    """Measure PCK of features, for all pairs and by the factors of pairs.

    Parameters
    ----------
    dataset : Dataset
        Dataset with keypoints.
    encode : callable
        Computes the features of an image.
    task : KeypointTask
        From :func:`choose`.
    features : {"pixels", "grid"}
        As for :func:`setsup.evaluation.transfer_keypoints`.
    on_part : callable, optional
        Called after each pair.

    Returns
    -------
    list of Measured
        As :func:`score` returns them.

    Raises
    ------
    DataError
        When a feature is not finite.

    """
    found = []
    for one, _ in transfer(dataset, encode, task.pairs, features):
        found.append(one)
        if on_part is not None:
            on_part()
    return score(found, task.pairs)


def score(transfers: Sequence[Transfer], pairs: PairList, alphas: Sequence[float] = _ALPHAS) -> list[Measured]:
    """Compute PCK [1]_ at each scale, of all pairs and of each level of their factors except the split.

    Parameters
    ----------
    transfers : sequence of Transfer
        Results of :func:`transfer`, one for each pair.
    pairs : PairList
        The same pairs.
    alphas : sequence of float
        Thresholds of errors, in units of the scale.

    Returns
    -------
    list of Measured
        Values such as ``"PCK bbox, per image: α 0.1"``, with the number of pairs, and ``"PCK bbox, per point: α 0.1"``,
        with the number of keypoints. Groups are ``"all"`` and such as ``"viewpoint hard"``. Pairs whose scale is zero,
        such as the extent of a single keypoint, are left out.

    """
    names = dict.fromkeys(name for one in transfers for name in one.scales)
    found = []
    for group, inside in _groups(pairs):
        numbers = np.flatnonzero(inside).tolist()
        for scale in names:
            kept = [one for one in (transfers[number] for number in numbers) if one.scales.get(scale, 0.0) > 0]
            accuracy = keypoint_accuracy(
                [one.found for one in kept],
                [one.keypoints.points2 for one in kept],
                np.array([one.scales[scale] for one in kept]),
                alphas=alphas,
            )
            for kind, shares, count in (
                ("per image", accuracy.per_image, accuracy.pairs),
                ("per point", accuracy.per_point, accuracy.points),
            ):
                found += [
                    Measured(f"PCK {scale}, {kind}: α {alpha:g}", group, float(share), count)
                    for alpha, share in zip(alphas, shares.tolist(), strict=True)
                ]
    return found


def main_value(measured: Sequence[Measured]) -> str:
    """Name of the value that tables show by groups: per image, α = 0.1, at the first scale."""
    return next((one.value for one in measured if one.value.endswith("per image: α 0.1")), "")


def examples(dataset: Dataset, encode: Encode, task: KeypointTask, features: Sampling, count: int) -> list[Example]:
    """Pairs for a sheet, evenly spread over the list; right: within α = 0.1 at the first scale."""
    chosen = task.pairs.select(spread_numbers(len(task), count))
    shown = []
    for number, (one, maps) in enumerate(transfer(dataset, encode, chosen, features)):
        row1, row2 = chosen.rows[number].tolist()
        name, scale = next(iter(one.scales.items()))
        right = np.linalg.norm(one.found - one.keypoints.points2, axis=1) <= _RIGHT * scale
        labels = [f"{factor} {chosen.factors.values(factor, number)}" for factor in _shown(chosen)]
        lines = [", ".join([f"rows {row1} and {row2}", *labels[:1]])]
        lines += [", ".join(labels[at : at + 2]) for at in range(1, len(labels), 2)]
        caption = "\n".join([*lines, f"right: within {_RIGHT * scale:.0f} px (α {_RIGHT:g}, {name})"])
        views = fetch_rgb(dataset, row1), fetch_rgb(dataset, row2)
        shown.append(Example(views, maps, one.keypoints.points1, one.found, right, caption))
    return shown


def _both(keypoints: KeypointPairs) -> KeypointPairs:
    """Keypoints that image 2 shows, and whose positions are known in both images."""
    known = (keypoints.status == 0) & np.isfinite(np.concatenate([keypoints.points1, keypoints.points2], axis=1)).all(1)
    names = [name for name, kept in zip(keypoints.names, known.tolist(), strict=True) if kept]
    return KeypointPairs(keypoints.points1[known], keypoints.points2[known], keypoints.status[known], names)


def _shown(pairs: PairList) -> list[str]:
    """Discrete factors of pairs, without the split and keys."""
    return [
        factor.name
        for factor in pairs.factors.factors
        if factor.kind != Kind.CONTINUOUS and factor.role == "variation" and factor.name != _SPLIT
    ]


def _groups(pairs: PairList) -> Iterator[tuple[str, Bools]]:
    """All pairs, and those of each level of a factor."""
    yield ALL, np.ones(len(pairs), dtype=np.bool_)
    for name in _shown(pairs):
        codes = pairs.factors.codes(name)
        for code, level in enumerate(pairs.factors[name].levels or ()):
            if (inside := np.asarray(codes == code)).any():
                yield f"{name} {level}", inside
