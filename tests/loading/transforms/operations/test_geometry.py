"""Geometric operations: their matrices by hand, their laws against loops and distributions."""

import math
import random as plain_random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from setsup.correspondence import planar
from setsup.errors import SetsupError

pytest.importorskip("torch", reason="torch is not installed")

from setsup.loading.transforms import (
    Affine,
    CenterCrop,
    Crop,
    Flip,
    Perspective,
    Resize,
    ResizedCrop,
    Rotate,
    Shift,
    VerticalFlip,
)
from setsup.loading.transforms.slots import Slots
from setsup.random import fold, stream_key

RARE = 1e-4  # every statistic below is a fixed number, for its seed is; so none of them can flicker
MANY = 4000


def slots(count: int = MANY, seed: int = 0) -> Slots:
    return Slots(fold(stream_key(seed, "test"), np.arange(count, dtype=np.uint64)))


def even(counts: np.ndarray) -> float:
    return float(stats.chisquare(counts).pvalue)


def test_crops_are_uniform_over_whole_positions() -> None:
    matrices, size = Crop((5, 4)).homography(slots(), 9, 10)
    assert size == (5, 4)
    np.testing.assert_array_equal(matrices[:, :, :2], np.tile(np.eye(3)[:, :2], (MANY, 1, 1)))
    left, top = -matrices[:, 0, 2], -matrices[:, 1, 2]
    cells = np.bincount((top * 7 + left).astype(int), minlength=35)
    assert len(cells) == 35
    assert even(cells) > RARE


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_a_centre_crop_leaves_the_same_on_both_sides(rows, columns, more_down, more_across) -> None:
    height, width = rows + more_down, columns + more_across
    matrices, size = CenterCrop((rows, columns)).homography(slots(2), height, width)
    left, top = -matrices[:, 0, 2], -matrices[:, 1, 2]
    assert size == (rows, columns)
    assert left.tolist() == [np.rint(more_across / 2)] * 2  # half to even, as torchvision rounds
    assert top.tolist() == [np.rint(more_down / 2)] * 2


def test_a_centre_crop_is_that_of_torchvision() -> None:
    for side, size, expected in ((64, 41, 12), (64, 43, 10), (224, 223, 0), (227, 224, 2), (65, 64, 0), (256, 224, 16)):
        matrices, _ = CenterCrop(size).homography(slots(1), side, side)
        # torchvision.transforms.functional.center_crop: int(round((height - crop_height) / 2.0))
        assert -matrices[0, 0, 2] == -matrices[0, 1, 2] == expected, (side, size)


def test_resize_covers_the_whole_image() -> None:
    matrices, size = Resize((30, 20)).homography(slots(3), 12, 50)
    assert (matrices.shape, size) == ((3, 3, 3), (30, 20))
    np.testing.assert_allclose(planar.carried([[-0.5, -0.5], [49.5, 11.5]], matrices[1]), [[-0.5, -0.5], [19.5, 29.5]])


def published_box(rng: plain_random.Random, height: int, width: int, area, aspect) -> tuple[int, int, int, int]:
    """One box, as torchvision's documentation and Inception's authors describe it, one number after another."""
    for _ in range(10):
        share = height * width * rng.uniform(*area)
        ratio = math.exp(rng.uniform(math.log(aspect[0]), math.log(aspect[1])))
        columns, rows = round(math.sqrt(share * ratio)), round(math.sqrt(share / ratio))
        if 0 < columns <= width and 0 < rows <= height:
            return rng.randint(0, width - columns), rng.randint(0, height - rows), rows, columns
    rows, columns = height, width
    if width / height < aspect[0]:
        rows = round(width / aspect[0])
    elif width / height > aspect[1]:
        columns = round(height * aspect[1])
    return (width - columns) // 2, (height - rows) // 2, rows, columns


@pytest.mark.parametrize(
    ("height", "width", "area", "aspect"),
    [
        (64, 64, (0.5, 1.0), (3 / 4, 4 / 3)),
        (96, 128, (0.08, 1.0), (3 / 4, 4 / 3)),
        (60, 20, (0.6, 1.0), (3 / 4, 4 / 3)),  # seldom fits: the box in the middle is the rule
        (20, 50, (0.5, 1.0), (0.5, 2.0)),
    ],
)
def test_resized_crops_follow_the_published_distribution(height, width, area, aspect) -> None:
    boxes = np.stack(ResizedCrop(32, area, aspect).boxes(slots(), height, width), axis=-1)
    rng = plain_random.Random(1)
    wanted = np.array([published_box(rng, height, width, area, aspect) for _ in range(MANY)])
    for of in (boxes, wanted):
        assert (of[:, :2] >= 0).all()
        assert (of[:, 0] + of[:, 3] <= width).all()
        assert (of[:, 1] + of[:, 2] <= height).all()
    for name, ours, theirs in zip(("left", "top", "height", "width"), boxes.T, wanted.T, strict=True):
        assert stats.ks_2samp(ours, theirs).pvalue > RARE, name
    for ours, theirs in (
        (boxes[:, 2] * boxes[:, 3], wanted[:, 2] * wanted[:, 3]),
        (boxes[:, 3] / boxes[:, 2], wanted[:, 3] / wanted[:, 2]),
    ):
        assert stats.ks_2samp(ours, theirs).pvalue > RARE
    middle = published_box(rng, height, width, (4.0, 4.0), aspect)  # no such box fits
    share = [float((of == middle).all(axis=1).mean()) for of in (boxes, wanted)]
    assert abs(share[0] - share[1]) < 4 * math.sqrt(0.5 / MANY)
    # joint law: positions given the size
    slack = boxes[:, :2] / np.maximum(1, [width, height] - boxes[:, [3, 2]])
    theirs = wanted[:, :2] / np.maximum(1, [width, height] - wanted[:, [3, 2]])
    for axis in range(2):
        assert stats.ks_2samp(slack[:, axis], theirs[:, axis]).pvalue > RARE


def test_resized_crops_are_matrices_of_their_boxes() -> None:
    crop, keys = ResizedCrop((32, 16), (0.2, 0.7)), slots(50)
    matrices, size = crop.homography(keys, 64, 48)
    left, top, rows, columns = crop.boxes(keys, 64, 48)
    assert size == (32, 16)
    edges = np.stack([np.stack([left, top], -1) - 0.5, np.stack([left + columns, top + rows], -1) - 0.5], axis=1)
    np.testing.assert_allclose(
        planar.carried(edges, matrices), np.tile([[-0.5, -0.5], [15.5, 31.5]], (50, 1, 1)), atol=1e-9
    )


@pytest.mark.parametrize(("operation", "axis", "length"), [(Flip, 0, 50), (VerticalFlip, 1, 40)])
@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_flips_mirror_a_share_of_the_images(operation, axis, length, p) -> None:
    matrices, size = operation(p).homography(slots(), 40, 50)
    mirrored = matrices[:, axis, axis] == -1
    assert size == (40, 50)
    assert abs(mirrored.mean() - p) < 4 * math.sqrt(p * (1 - p) / MANY) + 1e-12
    np.testing.assert_array_equal(matrices[~mirrored], np.broadcast_to(np.eye(3), ((~mirrored).sum(), 3, 3)))
    found = planar.carried([[0.0, 0.0]], matrices[mirrored])[:, 0, axis]
    assert (found == length - 1).all()


def test_rotations_are_uniform_about_the_centre() -> None:
    matrices, size = Rotate((-30, 90)).homography(slots(), 40, 50)
    assert size == (40, 50)
    np.testing.assert_allclose(planar.carried([[24.5, 19.5]], matrices), np.tile([[[24.5, 19.5]]], (MANY, 1, 1)))
    arm = planar.carried([[25.5, 19.5]], matrices)[:, 0] - [24.5, 19.5]
    degrees = np.rad2deg(np.arctan2(-arm[:, 1], arm[:, 0]))
    assert stats.kstest(degrees, stats.uniform(-30, 120).cdf).pvalue > RARE


def test_affine_numbers_are_uniform_independent_and_in_the_stated_order() -> None:
    ranges = {"degrees": (-90, 90), "shear": (-0.3, 0.3), "scale": (0.7, 1.3), "translate": (-15, 15)}
    matrices, size = Affine(**ranges).homography(slots(), 40, 40)
    assert size == (40, 40)
    x, y = (planar.carried([[19.5, 19.5]], matrices)[:, 0] - 19.5).T
    linear = matrices[:, :2, :2]
    # scale · shear · turn has determinant scale², and its second row is scale · (−sin, cos)
    scale = np.sqrt(np.linalg.det(linear))
    degrees = np.rad2deg(np.arctan2(-linear[:, 1, 0], linear[:, 1, 1]))
    cos, sin = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    shear = (linear[:, 0, 0] / scale - cos) / np.where(np.abs(sin) < 1e-9, np.nan, -sin)
    drawn = {"degrees": degrees, "shear": shear, "scale": scale, "x": x, "y": y}
    for name, numbers in drawn.items():
        low, high = ranges.get(name, ranges["translate"])
        assert stats.kstest(numbers, stats.uniform(low, high - low).cdf).pvalue > RARE, name
    correlation = np.corrcoef(np.stack(list(drawn.values())))
    assert np.abs(correlation - np.eye(5)).max() < 4.5 / math.sqrt(MANY)


def test_shifts_are_shares_of_the_sides() -> None:
    matrices, size = Shift(0.1).homography(slots(), 40, 200)
    assert size == (40, 200)
    x, y = matrices[:, 0, 2], matrices[:, 1, 2]
    assert stats.kstest(x, stats.uniform(-20, 40).cdf).pvalue > RARE
    assert stats.kstest(y, stats.uniform(-4, 8).cdf).pvalue > RARE
    assert abs(np.corrcoef(x, y)[0, 1]) < 4.5 / math.sqrt(MANY)


def test_perspective_moves_each_corner_inward() -> None:
    matrices, size = Perspective(0.4).homography(slots(), 40, 60)
    corners = np.array([[-0.5, -0.5], [59.5, -0.5], [59.5, 39.5], [-0.5, 39.5]])
    shares = (planar.carried(corners, matrices) - corners) / ([30, 20] * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]))
    assert size == (40, 60)
    for numbers in shares.reshape(MANY, 8).T:
        assert stats.kstest(numbers, stats.uniform(0, 0.4).cdf).pvalue > RARE
    assert np.abs(np.corrcoef(shares.reshape(MANY, 8).T) - np.eye(8)).max() < 4.5 / math.sqrt(MANY)


def test_perspective_never_folds() -> None:
    matrices, _ = Perspective(0.66).homography(slots(), 40, 60)
    grid = np.stack(np.meshgrid([-0.5, 29.5, 59.5], [-0.5, 19.5, 39.5]), axis=-1).reshape(-1, 2)
    found = planar.carried(grid, matrices)
    assert np.isfinite(found).all()
    assert planar.inside(found, 40.001, 60.001).all()


EVERY = [
    Crop(8),
    CenterCrop(8),
    Resize(9),
    ResizedCrop(8),
    Flip(),
    VerticalFlip(),
    Rotate((0, 9)),
    Affine((0, 9), (0, 1), (1, 2), (0, 1)),
    Shift(0.2),
    Perspective(0.3),
]


@pytest.mark.parametrize("operation", EVERY, ids=repr)
def test_an_image_draws_the_same_in_any_company(operation) -> None:
    keys = slots(60)
    together, _ = operation.homography(keys, 20, 30)
    alone = np.concatenate([operation.homography(keys.take(np.array([n])), 20, 30)[0] for n in range(60)])
    np.testing.assert_array_equal(together, alone)
    assert together.dtype == np.float64
    assert (together[:, 2, 2] == 1).all()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Crop(0), "Crop: size"),
        (lambda: Crop((3, 4, 5)), "Crop: size"),
        (lambda: Crop(3.5), "Crop: size"),
        (lambda: Crop(True), "Crop: size"),
        (lambda: CenterCrop("8"), "CenterCrop: size"),
        (lambda: Resize((8, -1)), "Resize: size"),
        (lambda: ResizedCrop(8, area=(0, 1)), "area must be two numbers .* above 0 and at most 1"),
        (lambda: ResizedCrop(8, area=(0.9, 0.5)), "with low <= high"),
        (lambda: ResizedCrop(8, aspect=0.5), "aspect must be two numbers"),
        (lambda: Flip(1.5), "Flip: p"),
        (lambda: VerticalFlip(math.nan), "VerticalFlip: p"),
        (lambda: Rotate(90), "degrees must be two numbers"),
        (lambda: Rotate((0, math.inf)), "degrees"),
        (lambda: Affine(scale=(0, 1)), "scale .* above 0"),
        (lambda: Affine(translate="xy"), "translate"),
        (lambda: Shift(-0.1), "Shift: fraction"),
        (lambda: Perspective(0.7), "2/3"),
    ],
)
def test_wrong_arguments_are_one_sentence_at_construction(make, said) -> None:
    with pytest.raises(SetsupError, match=said):
        make()


@pytest.mark.parametrize("operation", [Crop((8, 40)), CenterCrop((40, 8))])
def test_a_box_larger_than_the_image_is_refused(operation) -> None:
    with pytest.raises(SetsupError, match=r"Crop of .* pixels is larger than the images, 20 × 30"):
        operation.homography(slots(1), 20, 30)
