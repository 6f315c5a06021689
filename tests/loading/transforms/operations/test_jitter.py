"""Jitter is its four operations in each image's own order."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from setsup import random
from setsup.errors import SetsupError

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms.operations.jitter import Jitter
from setsup.loading.transforms.operations.photometry import Brightness, Contrast, Hue, Saturation
from setsup.loading.transforms.slots import Slots

RARE = 1e-4  # every statistic below is a fixed number, for its key is


def slots_for(n: int, eight_bit: bool = False) -> Slots:
    return Slots(random.fold(random.stream_key(0, "jitter"), np.arange(n, dtype=np.uint64)), eight_bit)


def pictures(n: int, side: int = 2, channels: int = 3) -> torch.Tensor:
    found = torch.rand(n, channels, side, side, generator=torch.Generator().manual_seed(5))
    return found.mul_(255).round_().div_(255)


def in_orders(images: torch.Tensor, slots: Slots, operations: dict[int, object]) -> tuple[list, torch.Tensor]:
    """All orders of the operations, each with the key of its number, and the results."""
    orders, results = list(itertools.permutations(operations)), []
    for order in orders:
        result = images
        for number in order:
            result = operations[number](result, slots.at(number))
        results.append(result)
    return orders, torch.stack(results)


@pytest.mark.parametrize("eight_bit", [False, True])
def test_each_image_has_one_of_the_orders_all_equally_often(eight_bit: bool) -> None:
    images, slots = pictures(2400), slots_for(2400, eight_bit)
    found = Jitter(brightness=0.3, contrast=0.6, saturation=1.5, hue=0.2)(images, slots)
    four = (Brightness(0.7, 1.3), Contrast(0.4, 1.6), Saturation(0, 2.5), Hue(-0.2, 0.2))
    orders, results = in_orders(images, slots, dict(enumerate(four)))
    same = (results == found).flatten(2).all(-1).numpy()  # orders × images
    assert same.any(0).all()
    told_apart = same[:, same.sum(0) == 1]
    assert told_apart.shape[1] > 600
    if not eight_bit:  # where hardly any two orders have the same result
        assert told_apart.shape[1] > 2200
        assert stats.chisquare(told_apart.sum(1)).pvalue > RARE
        order = np.array(orders)[same.argmax(0)]
        for number in range(4):  # amounts do not depend on the order
            amounts, place = slots.at(number).uniform(0, 1), (order == number).argmax(1)
            assert stats.kruskal(*(amounts[place == at] for at in range(4))).pvalue > RARE


def test_an_amount_of_nought_leaves_the_operation_out() -> None:
    images, slots = pictures(200), slots_for(200)
    found = Jitter(contrast=0.5, hue=0.5)(images, slots)
    orders, results = in_orders(images, slots, {1: Contrast(0.5, 1.5), 3: Hue(-0.5, 0.5)})
    same = (results == found).flatten(2).all(-1)
    assert same.any(0).all()
    assert len(orders) == 2
    assert same.any(1).all()


def test_no_amounts_change_nothing() -> None:
    images = pictures(3)
    assert torch.equal(Jitter()(images, slots_for(3)), images)


def test_factors_are_those_of_torchvision() -> None:
    n = 3000
    images = torch.full((n, 1, 1, 1), 0.25)
    for amount, low, high in ((0.4, 0.6, 1.4), (2.0, 0.0, 3.0)):
        factors = Jitter(brightness=amount)(images, slots_for(n)).flatten().double().numpy() * 4
        assert stats.kstest(factors, "uniform", args=(low, high - low)).pvalue > RARE


def test_grey_images_keep_one_channel() -> None:
    images, slots = pictures(50, channels=1), slots_for(50)
    _, results = in_orders(images, slots, {0: Brightness(0.5, 1.5), 1: Contrast(0.5, 1.5)})
    found = Jitter(0.5, 0.5, 0.5, 0.5)(images, slots)
    assert (results == found).flatten(2).all(-1).any(0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"brightness": -0.1}, "brightness must be a finite number of at least 0"),
        ({"contrast": math.inf}, "contrast must be a finite number of at least 0"),
        ({"saturation": "0.4"}, "saturation must be a finite number of at least 0"),
        ({"hue": 0.6}, "hue must be a finite number from 0 to 0.5, not 0.6"),
    ],
)
def test_amounts_are_checked(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SetsupError, match=f"Jitter: {message}"):
        Jitter(**arguments)
