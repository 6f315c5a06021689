"""What resizes show of images: torchvision's published distribution, exact proportions, and refusals."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from setsup.correspondence import planar
from setsup.errors import SetsupError
from setsup.loading.resizing import Letterbox, RandomResizedCrop, Resize, ShortSide
from setsup.loading.resizing.kinds import homographies

SIZES = [(1, 1), (1, 7), (9, 1), (480, 640), (375, 500), (3, 2000), (4000, 30), (64, 64), (2, 3)]


def published(
    height: int,
    width: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    uniform: Callable[[float, float], float],
    randint: Callable[[int], int],
) -> tuple[int, int, int, int]:
    """Top, left, height and width as torchvision's ``RandomResizedCrop.get_params`` finds them, line by line."""
    area = height * width
    log_ratio = math.log(ratio[0]), math.log(ratio[1])
    for _ in range(10):
        target_area = area * uniform(scale[0], scale[1])
        aspect_ratio = math.exp(uniform(log_ratio[0], log_ratio[1]))
        w = round(math.sqrt(target_area * aspect_ratio))
        h = round(math.sqrt(target_area / aspect_ratio))
        if 0 < w <= width and 0 < h <= height:
            j = randint(width - w + 1)
            i = randint(height - h + 1)
            return i, j, h, w
    in_ratio = float(width) / float(height)
    if in_ratio < min(ratio):
        w = width
        h = round(w / min(ratio))
    elif in_ratio > max(ratio):
        h = height
        w = round(h * max(ratio))
    else:
        w, h = width, height
    return (height - h) // 2, (width - w) // 2, h, w


def rows_of_numbers(count: int, draws: int, seed: int = 0) -> list[list[float]]:
    rows: list[list[float]] = np.random.default_rng(seed).random((count, draws)).tolist()
    return rows


def box_of(resize: Resize, numbers: Sequence[float], height: int, width: int) -> tuple[float, ...]:
    return resize.place(numbers, height, width).box


@pytest.mark.parametrize(("scale", "ratio"), [((0.08, 1), (3 / 4, 4 / 3)), ((0.2, 0.5), (0.1, 9)), ((1, 1), (1, 1))])
def test_a_random_resized_crop_is_torchvisions_for_the_same_numbers(scale: Any, ratio: Any) -> None:
    crop = RandomResizedCrop(32, scale, ratio)
    for height, width in SIZES:
        for numbers in rows_of_numbers(60, crop.draws):
            in_turn: Iterator[float] = iter(numbers[:-2])
            last: Iterator[float] = iter(numbers[-2:])
            top, left, tall, wide = published(
                height,
                width,
                scale,
                ratio,
                lambda a, b, turns=in_turn: a + (b - a) * next(turns),  # type: ignore[misc]
                lambda n, turns=last: math.floor(next(turns) * n),  # type: ignore[misc]
            )
            assert box_of(crop, numbers, height, width) == (left, top, wide, tall)


@pytest.mark.long("statistics")
def test_boxes_are_distributed_as_torchvisions() -> None:
    random, count = np.random.default_rng(1), 20_000
    theirs = np.array(
        [
            published(375, 500, (0.08, 1), (3 / 4, 4 / 3), random.uniform, lambda n: int(random.integers(n)))
            for _ in range(count)
        ]
    )
    crop = RandomResizedCrop(224)
    boxes = np.array([box_of(crop, numbers, 375, 500) for numbers in rows_of_numbers(count, crop.draws, seed=2)])
    ours = boxes[:, [1, 0, 3, 2]]
    for measure in (
        lambda box: box[:, 2] * box[:, 3],
        lambda box: box[:, 3] / box[:, 2],
        lambda box: box[:, 0],
        lambda box: box[:, 1],
        lambda box: box[:, 0] + box[:, 2],
    ):
        assert stats.ks_2samp(measure(ours), measure(theirs)).pvalue > 0.001


def test_the_operation_of_augment_has_the_same_boxes_for_the_same_numbers() -> None:
    pytest.importorskip("torch")
    from setsup.loading.transforms import ResizedCrop
    from setsup.loading.transforms.slots import Slots

    slots = Slots(np.arange(200, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    crop = RandomResizedCrop(32)
    numbers = np.stack([slots.uniform(0, 1, parameter) for parameter in range(crop.draws)], axis=1)
    for height, width in ((48, 64), (10, 90), (300, 200)):
        left, top, tall, wide = ResizedCrop(32).boxes(slots, height, width)
        boxes = [box_of(crop, row, height, width) for row in numbers.tolist()]
        np.testing.assert_array_equal(boxes, np.stack([left, top, wide, tall], axis=1))


def test_a_short_side_has_exact_proportions_and_lies_within_the_image() -> None:
    for size, short in ((24, None), (24, 32), ((10, 30), None), ((10, 30), 40)):
        for position in ("centre", "random"):
            resize = ShortSide(size, short, position)  # type: ignore[arg-type]
            rows, columns = resize.shape
            for height, width in SIZES:
                for numbers in rows_of_numbers(20, resize.draws):
                    left, top, wide, tall = box_of(resize, numbers, height, width)
                    assert wide / columns == pytest.approx(tall / rows)
                    assert left >= 0 <= top
                    assert left + wide <= width * (1 + 1e-12)
                    assert top + tall <= height * (1 + 1e-12)
                    if short is None:  # it just covers the result
                        assert wide == pytest.approx(width) or tall == pytest.approx(height)
                    else:
                        assert tall / rows == pytest.approx(min(height, width) / short)
                    if position == "centre":
                        assert (left + wide / 2, top + tall / 2) == pytest.approx((width / 2, height / 2))


def test_a_letterbox_shows_the_whole_image_between_equal_borders() -> None:
    for size in (24, (10, 30)):
        resize = Letterbox(size)
        for height, width in SIZES:
            place = resize.place([], height, width)
            assert place.box == (0, 0, width, height)
            above, below = place.row, resize.shape[0] - place.row - place.rows
            before, behind = place.column, resize.shape[1] - place.column - place.columns
            assert 0 <= above <= below <= above + 1
            assert 0 <= before <= behind <= before + 1
            assert above + below == 0 or before + behind == 0
            assert min(place.rows, place.columns) >= 1
            factor = min(resize.shape[0] / height, resize.shape[1] / width)
            assert abs(place.rows - height * factor) <= 1 >= abs(place.columns - width * factor)


def test_homographies_are_those_of_boxes_moved_to_their_regions() -> None:
    random = np.random.default_rng(0)
    places = np.concatenate([random.uniform(0, 50, (20, 2)), random.uniform(1, 50, (20, 2))], axis=1)
    regions = random.integers(1, 40, (20, 4)).astype(float)
    found = homographies(np.concatenate([places, regions], axis=1))
    for matrix, (left, top, wide, tall), (row, column, rows, columns) in zip(found, places, regions, strict=True):
        expected = planar.compose(planar.fit(left, top, tall, wide, rows, columns), planar.translate(column, row))
        np.testing.assert_allclose(matrix, expected, atol=1e-12)


def test_equal_resizes_have_equal_hashes() -> None:
    one, same, other = (Letterbox(8, {"ids": 3}, modalities={"ids": kind}) for kind in ("label", "label", "depth"))
    assert one == same != other
    assert hash(one) == hash(same)
    assert len({one, same, other, RandomResizedCrop(8), RandomResizedCrop(8, seed=1)}) == 4


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RandomResizedCrop(0), "RandomResizedCrop: size must be a number of pixels or (height, width), not 0"),
        (lambda: RandomResizedCrop("224"), "size must be a number of pixels or (height, width), not '224'"),
        (lambda: RandomResizedCrop(8, scale=(0, 1)), "scale must be two numbers (low, high) above 0 and at most 1"),
        (lambda: RandomResizedCrop(8, scale=(0.5, 1.5)), "with low <= high, not (0.5, 1.5)"),
        (lambda: RandomResizedCrop(8, scale=0.5), "with low <= high, not 0.5"),
        (lambda: RandomResizedCrop(8, ratio=(2, 1)), "ratio must be two numbers (low, high) above 0 with low <= high"),
        (lambda: RandomResizedCrop(8, copies=0), "RandomResizedCrop: copies must be an integer of at least 1, not 0"),
        (lambda: RandomResizedCrop(8, interpolation="cubic"), "interpolation must be one of bilinear, bicubic"),
        (lambda: RandomResizedCrop(8, modalities=["mask"]), 'as in {"mask": "label"}, not'),
        (lambda: RandomResizedCrop(8, stream=5), "the stream must be a string, not 5"),
        (lambda: RandomResizedCrop(8, seed=-1), "the seed must be an integer from 0 to 2**64 - 1"),
        (lambda: ShortSide(224, short=200), "short must be an integer of at least 224, the longer side"),
        (lambda: ShortSide(224, position="left"), "position must be one of centre, random"),
        (lambda: Letterbox(8, fill=2), "Letterbox: fill must be a finite number from 0 to 1"),
        (lambda: Letterbox(8, fill={"mask": "x"}), "Letterbox: fill of 'mask' must be a finite number"),
    ],
)
def test_bad_arguments_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(SetsupError) as caught:
        make()
    assert said in str(caught.value)
