"""kornia keeps the matrices of its transforms, in the pixels of this package: asked of a picture of coordinates."""

from typing import Any

import kornia.augmentation as kornia
import numpy as np
import pytest
import torch

from setsup.correspondence import carried, inside

HEIGHT, WIDTH = 48, 64

OPERATIONS: dict[str, Any] = {
    "affine": kornia.RandomAffine(30, translate=(0.1, 0.1), scale=(0.8, 1.2), shear=10, p=1.0),
    "affine, corners": kornia.RandomAffine(30, p=1.0, align_corners=True),
    "perspective": kornia.RandomPerspective(0.5, p=1.0),
    "perspective, corners": kornia.RandomPerspective(0.5, p=1.0, align_corners=True),
    "rotation": kornia.RandomRotation(40.0, p=1.0),
    "shear": kornia.RandomShear(10.0, p=1.0),
    "flip": kornia.RandomHorizontalFlip(p=1.0),
    "upside down": kornia.RandomVerticalFlip(p=1.0),
    "crop": kornia.RandomCrop((32, 32), p=1.0),
    "resized crop": kornia.RandomResizedCrop((32, 32), p=1.0),
    "resized crop, resampled": kornia.RandomResizedCrop((32, 32), p=1.0, cropping_mode="resample"),
    "resize": kornia.Resize((24, 32)),
    "pad": kornia.PadTo((60, 80)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_matrix_of_kornia_takes_points_where_the_pixels_went(name: str) -> None:
    torch.manual_seed(0)
    operation = OPERATIONS[name]
    y, x = torch.meshgrid(torch.arange(HEIGHT) * 1.0, torch.arange(WIDTH) * 1.0, indexing="ij")
    coordinates = torch.stack([x, y, torch.ones_like(x)])[None]
    moved = operation(coordinates)[0].double().numpy()
    matrix = operation.transform_matrix[0].double().numpy()
    shown = moved[2] > 0.999  # all four neighbours were inside
    landed = np.argwhere(shown)[:, ::-1]
    came_from = moved[:2, shown].T
    found = carried(came_from, matrix)
    # bilinear sampling clamps beside the border: only places at least a pixel inside are exact
    well_inside = inside(came_from - 1, HEIGHT - 2, WIDTH - 2)
    assert well_inside.sum() > 400
    np.testing.assert_allclose(found[well_inside], landed[well_inside], atol=2e-3)


def test_a_sequence_of_kornia_has_one_matrix() -> None:
    torch.manual_seed(1)
    both = kornia.AugmentationSequential(
        kornia.RandomHorizontalFlip(p=1.0), kornia.RandomRotation(20.0, p=1.0), data_keys=["input", "keypoints"]
    )
    points = torch.tensor([[[5.0, 7.0], [60.0, 40.0], [31.5, 23.5]]])
    _, moved = both(torch.rand(1, 3, HEIGHT, WIDTH), points)
    matrix = both.transform_matrix[0].double().numpy()
    np.testing.assert_allclose(carried(points[0].numpy(), matrix), moved[0].numpy(), atol=1e-4)
