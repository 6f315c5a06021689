"""Measures for figure 5 of ABC: style of handwritten digits in embeddings, independent of the digit.

A digit's style is measured on its image: :func:`slant` and :func:`thickness`. :func:`digit_measures` measures how well
the two directions of largest variance predict both, for all digits and for one that was never trained on; whether
neighbours of another digit have the same style; and how much information on the digit is left. The baseline is
:func:`pixels`, reduced to as many dimensions.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, section on MNIST and figure 5. The figure is qualitative: the measures are not the paper's.

"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError, SetsupError, abbreviate, imported
from setsup.evaluation.agreement import accuracy
from setsup.evaluation.inputs import check_embeddings, check_labels
from setsup.evaluation.probes import ridge_probe
from setsup.evaluation.projection import principal_components
from setsup.random import fold, stream_key, uniform
from setsup_papers.abc.across import centred_correlation, nearest_across

__all__ = ["DigitMeasures", "digit_measures", "pixels", "slant", "thickness"]

Reals = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]

_HALF = 16 * 255 // 2  # an upsampled grey value counts 16ths
_CHUNK = 1024  # images whose distances are in memory at a time


@dataclass(frozen=True, slots=True)
class DigitMeasures:
    """Style and digit in embeddings of handwritten digits; ``dataclasses.asdict`` returns a report in this order.

    Attributes
    ----------
    withheld_variance : float
        Share of the variance of the withheld digit's embeddings in their first two principal components.
    withheld_slant, withheld_thickness : float
        R² of a linear regression on these two, as of :func:`~setsup.evaluation.ridge_probe` with five folds.
    slant, thickness : float
        The same for all digits, from the first two principal components of all.
    across_slant, across_thickness : float
        Correlation between an image and its nearest neighbour of another digit, each less the mean of its digit; see
        :func:`~setsup_papers.abc.across.nearest_across`.
    noisy_accuracy : float
        Accuracy of a vote of the 25 nearest neighbours for the digit, all embeddings under noise. Chance is one tenth
        for ten digits. It is meaningful only if ``spread`` is well above the noise.
    accuracy : float
        Accuracy of the nearest neighbour, without noise.
    spread : float
        Root of the summed variances of all dimensions, in units of the embedding.

    """

    withheld_variance: float
    withheld_slant: float
    withheld_thickness: float
    slant: float
    thickness: float
    across_slant: float
    across_thickness: float
    noisy_accuracy: float
    accuracy: float
    spread: float


def slant(images: npt.ArrayLike) -> Reals:
    """Slant of digits: −μ₁₁ / μ₀₂ of the central moments of grey values.

    With x to the right and y downwards, μ_pq = Σ grey · (x − x̄)^p (y − ȳ)^q. A digit that leans to the right, its top
    to the right of its foot, is positive: shearing an upright shape by s pixels to the right for each pixel upwards
    adds s, the tangent of the angle with the vertical.

    Parameters
    ----------
    images : (n, h, w) or (n, h, w, 1) uint8
        Bright strokes on black, as in MNIST.

    Returns
    -------
    (n,) float64
        0 for an image that is black, or bright in one row only.

    Raises
    ------
    DataError
        When the images have another shape or type.

    Examples
    --------
    >>> slash = 255 * np.eye(5, dtype=np.uint8)[:, ::-1]
    >>> slant([slash, slash[:, ::-1]])
    array([ 1., -1.])

    """
    grey = _check_images(images).astype(np.float64)
    y, x = np.arange(grey.shape[1], dtype=np.float64), np.arange(grey.shape[2], dtype=np.float64)
    rows = grey.sum(axis=2)
    total, down, down_down = rows.sum(axis=1), rows @ y, rows @ y**2
    right, both = grey.sum(axis=1) @ x, (grey @ x) @ y
    # times the total, moments about the mean are integers: exact for images of up to about 100 x 100
    tall = total * down_down - down**2
    return np.where(tall > 0, down * right - total * both, 0.0) / np.where(tall > 0, tall, 1.0)


def thickness(images: npt.ArrayLike) -> Reals:
    """Thickness of strokes of digits: the mean distance from their midline to the background.

    Each image is upsampled twice, bilinearly about the centres of pixels (weights 3/4 and 1/4, the border repeated);
    the stroke is where that is above half of 255. Its skeleton is that of Zhang and Suen. The distance is the Euclidean
    one from the centre of a skeleton's pixel to the centre of the nearest pixel outside of the stroke, where all
    outside of the image is background.

    Parameters
    ----------
    images : (n, h, w) or (n, h, w, 1) uint8
        Bright strokes on black, as in MNIST.

    Returns
    -------
    (n,) float64
        In pixels of the given image: w / 2 for a long bar w pixels wide. 0 if nothing is above half.

    Raises
    ------
    DataError
        When the images have another shape or type.
    SetsupError
        When scikit-image is not installed.

    Examples
    --------
    >>> bar = np.zeros((28, 28), dtype=np.uint8)
    >>> bar[12:15, 2:26] = 255
    >>> thickness(bar[None]).round(1)
    array([1.5])

    """
    grey = _check_images(images)
    skeletonize = _skeletonize()
    from scipy.ndimage import distance_transform_edt

    sums = np.zeros(len(grey))
    for start in range(0, len(grey), _CHUNK):
        stroke = np.pad(_upsample(grey[start : start + _CHUNK]) > _HALF, ((0, 0), (1, 1), (1, 1)))
        column = stroke.reshape(-1, stroke.shape[2])  # one above the other: the margins keep images apart
        middle = skeletonize(column, method="zhang").reshape(len(stroke), -1)
        apart = np.asarray(distance_transform_edt(column)).reshape(len(stroke), -1)
        sums[start : start + _CHUNK] = (apart * middle).sum(axis=1) / np.maximum(middle.sum(axis=1), 1)
    return sums / 2


def pixels(images: npt.ArrayLike) -> Reals:
    """Pixels as embeddings: grey values from 0 to 1, one row per image.

    Their first principal components are the baseline of an encoder. Fit them on its training data, without the withheld
    digit.

    Parameters
    ----------
    images : (n, h, w) or (n, h, w, 1) uint8
        Images.

    Returns
    -------
    (n, h · w) float64

    Raises
    ------
    DataError
        When the images have another shape or type.

    Examples
    --------
    >>> trained_on = np.eye(4, dtype=np.uint8).reshape(4, 2, 2) * 255
    >>> principal_components(pixels(trained_on), 3).project(pixels(trained_on[:1])).shape
    (1, 3)

    """
    grey = _check_images(images)
    return grey.reshape(len(grey), -1) / 255.0


def digit_measures(
    embeddings: npt.ArrayLike,
    digits: npt.ArrayLike,
    images: npt.ArrayLike,
    withheld_embeddings: npt.ArrayLike,
    withheld_images: npt.ArrayLike,
    *,
    sigma: float = 1.0,
    seed: int = 0,
) -> DigitMeasures:
    """Measure style and digit in embeddings of handwritten digits, after figure 5 [1]_.

    Accuracies are leave-one-out: each image is a query among all the others.

    Parameters
    ----------
    embeddings : (n, d) numbers
        Of the test images, all digits, in the order of the dataset.
    digits : (n,) integers
        Their digits; -1 where unknown, which is neither a query nor a neighbour.
    images : (n, h, w) or (n, h, w, 1) uint8
        Test images.
    withheld_embeddings, withheld_images : (m, d) numbers, (m, h, w) or (m, h, w, 1) uint8
        Of a digit that the encoder was not trained on: for MNIST all 6,958 nines of both parts.
    sigma : float
        Standard deviation of the noise, in units of the embedding, from 0 on:
        :func:`~setsup.evaluation.noise_scale` of the loss.
    seed : int
        Of the noise and of the folds, 0 ≤ seed < 2⁶⁴.

    Returns
    -------
    DigitMeasures

    Raises
    ------
    DataError
        When shapes disagree, an entry is not finite, embeddings are all equal, or there are too few images.
    SetsupError
        When an option is out of range, or scikit-image is not installed.

    Examples
    --------
    Slanted bars of two widths serve as digits, and a code of both as embeddings:

    >>> bars, at = np.zeros((60, 20, 20), dtype=np.uint8), np.arange(60)
    >>> for bar, number in zip(bars, at):
    ...     for up in range(4):
    ...         bar[16 - 4 * up : 20 - 4 * up, 4 + up * (number % 4) :][:, : 2 + number % 2] = 255
    >>> code = np.stack([at % 4, at % 2], axis=1)
    >>> found = digit_measures(code, at % 3, bars, code, bars)
    >>> [round(value, 2) for value in (found.withheld_variance, found.withheld_slant, found.across_thickness)]
    [1.0, 1.0, 1.0]

    """
    reals, withheld = check_embeddings(embeddings), check_embeddings(withheld_embeddings, "withheld embeddings")
    known = check_labels(digits, len(reals), "digits")
    if reals.shape[1] != withheld.shape[1]:
        raise DataError(
            f"embeddings and withheld embeddings must have the same number of dimensions, not {reals.shape[1]} and "
            f"{withheld.shape[1]}; embed both with the same network"
        )
    if not isinstance(sigma, int | float | np.integer | np.floating) or not 0 <= sigma < np.inf:
        raise SetsupError(f"sigma must be a number of at least 0, not {abbreviate(sigma)}")
    noisy = reals + sigma * _normal(reals.shape, seed)
    styles = _styles(images, len(reals), "images")
    withheld_styles = _styles(withheld_images, len(withheld), "withheld images")
    _, regressed = _in_two(reals, styles, seed)
    share, withheld_regressed = _in_two(withheld, withheld_styles, seed)
    queries, rows = nearest_across(reals, known)
    alike = [centred_correlation(style[queries], style[rows], known[queries], known[rows]) for style in styles]
    with_label = known >= 0
    return DigitMeasures(
        withheld_variance=share,
        withheld_slant=withheld_regressed[0],
        withheld_thickness=withheld_regressed[1],
        slant=regressed[0],
        thickness=regressed[1],
        across_slant=alike[0],
        across_thickness=alike[1],
        noisy_accuracy=_left_out(noisy[with_label], known[with_label], 25),
        accuracy=_left_out(reals[with_label], known[with_label], 1),
        spread=float(np.sqrt(reals.var(axis=0).sum())),
    )


def _in_two(reals: Reals, styles: list[Reals], seed: int) -> tuple[float, list[float]]:
    """Share of the first two principal components, and R² of each style from them."""
    components = principal_components(reals)
    placed = components.project(reals)[:, :2]
    return float(components.explained[:2].sum()), [ridge_probe(placed, style, seed=seed).r2 for style in styles]


def _left_out(reals: Reals, labels: npt.NDArray[np.int64], k: int) -> float:
    return accuracy(reals, reals, labels, labels, k, own=np.arange(len(reals))).value


def _styles(images: npt.ArrayLike, rows: int, name: str) -> list[Reals]:
    grey = _check_images(images, name)
    if len(grey) != rows:
        raise DataError(f"embeddings must have one row for each of the {len(grey):,} {name}, not {rows:,}")
    return [slant(grey), thickness(grey)]


def _normal(shape: tuple[int, ...], seed: int) -> Reals:
    from scipy.special import ndtri

    bits = fold(stream_key(seed, "digits noise"), np.arange(int(np.prod(shape)), dtype=np.uint64))
    return np.asarray(ndtri(uniform(bits) + 2.0**-54)).reshape(shape)  # in the middle of each step: never 0 or 1


def _upsample(grey: Bytes) -> npt.NDArray[np.uint16]:
    """Twice as high and as wide, (n, 2h, 2w), in 16ths of a grey value."""
    sums = grey.astype(np.uint16)
    for axis in (1, 2):
        last = sums.shape[axis] - 1
        before, after = (np.clip(np.arange(last + 1) + step, 0, last) for step in (-1, 1))
        halves = [3 * sums + sums.take(beside, axis=axis) for beside in (before, after)]
        shape = [size * (1 + (at == axis)) for at, size in enumerate(sums.shape)]
        sums = np.stack(halves, axis=axis + 1).reshape(shape)
    return sums


def _check_images(images: npt.ArrayLike, name: str = "images") -> Bytes:
    given = np.asarray(images)
    if given.ndim == 4 and given.shape[3] == 1:
        given = given[..., 0]
    if given.ndim != 3 or 0 in given.shape or given.dtype != np.uint8:
        raise DataError(
            f"{name} must be grayscale uint8 images of shape (n, h, w) or (n, h, w, 1), as datasets return them, not "
            f"{given.dtype} of shape {given.shape}"
        )
    return given


def _skeletonize() -> Any:
    return imported("skimage.morphology", "train").skeletonize
