"""Batches of no image: every transform gives results of the shapes that one of images has."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading import transforms as every
from setsup.loading.transforms import (
    AddBrightness,
    Affine,
    Augment,
    AutoContrast,
    Background,
    Blur,
    Brightness,
    CenterCrop,
    Contrast,
    Crop,
    Equalize,
    Erase,
    Flip,
    ForLevels,
    Gray,
    Hue,
    Jitter,
    Noise,
    OneOf,
    Perspective,
    Posterize,
    Premultiply,
    RandomApply,
    Resize,
    ResizedCrop,
    Rotate,
    SaltAndPepper,
    Saturation,
    Shift,
    Sobel,
    VerticalFlip,
)
from setsup_papers.orbits import AffineMembers
from setsup_papers.pixels import FreshColors

POOL = np.zeros((3, 16, 16, 3), np.uint8)
OPERATIONS = [
    AddBrightness(-0.1, 0.1),
    Affine((-5.0, 5.0)),
    AutoContrast(),
    Background(POOL),
    Blur(3, (0.1, 1.0)),
    Brightness(0.5, 1.0),
    CenterCrop(8),
    Contrast(0.5, 1.0),
    Crop(8),
    Equalize(),
    Erase(),
    Flip(),
    ForLevels(Hue(-0.1, 0.1), "shape", [1]),
    Gray(),
    Hue(-0.1, 0.1),
    Jitter(0.1, 0.1, 0.1, 0.1),
    Noise(0.1),
    OneOf([Hue(-0.1, 0.1), Gray()]),
    Perspective(),
    Posterize(4),
    Premultiply(),
    RandomApply(Hue(-0.1, 0.1)),
    Resize(8),
    ResizedCrop(8),
    Rotate((-5.0, 5.0)),
    SaltAndPepper(0.1),
    Saturation(0.5, 1.0),
    Shift(0.1),
    Sobel(0.5, 1.0),
    VerticalFlip(),
]
OTHERS = {"Augment", "Compose"}


def test_no_operation_is_left_out():
    assert {type(one).__name__ for one in OPERATIONS} | OTHERS == set(every.__all__)


def check(transform, make):
    found = transform(make((2, 3)))
    for lead in ((0, 3), (2, 0), (0, 0)):
        empty = transform(make(lead))
        assert empty.keys() == found.keys()
        for name, whole in found.items():
            if isinstance(whole, torch.Tensor):
                assert (empty[name].shape, empty[name].dtype) == ((*lead, *whole.shape[2:]), whole.dtype), name


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("eight_bit", [False, True])
@pytest.mark.parametrize("copies", [None, 2])
def test_an_operation_on_no_image(operation, eight_bit, copies):
    channels = 4 if isinstance(operation, Background | Premultiply) else 3
    for dtype in (torch.uint8, torch.float32):

        def make(lead, dtype=dtype):
            factors = {"shape": torch.zeros(lead, dtype=torch.int64)}
            return {"image": torch.zeros((*lead, channels, 16, 16), dtype=dtype), "factors": factors, "step": 0}

        check(Augment([operation], eight_bit=eight_bit, copies=copies), make)


def test_colors_and_digits_of_no_image():
    def colored(lead):
        names = ("clean_label", "label", "color", "environment")
        codes = {name: torch.zeros(lead, dtype=torch.int64) for name in names}
        return {"image": torch.zeros((*lead, 3, 32, 32), dtype=torch.uint8), "factors": codes, "step": 0}

    def digits(lead):
        numbers = {"rotation": 0.0, "shear": 0.0, "scale": 1.0, "translation_x": 0.0, "translation_y": 0.0}
        factors = {name: torch.full(lead, number) for name, number in numbers.items()}
        return {"original": torch.zeros((*lead, 28, 28), dtype=torch.uint8), "factors": factors}

    check(FreshColors(noise=(1.0,)), colored)
    check(AffineMembers(40), digits)
