"""Transforms and views on a GPU against the same on the processor, both by torch's operations on whole batches.

How far OpenCV's way, which processors take by default, is from these: tests/loading/transforms/test_by_image.py.
"""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("kornia", reason="kornia is not installed")

from setsup.loading.transforms import (  # noqa: E402
    AddBrightness,
    Affine,
    Augment,
    AutoContrast,
    Blur,
    Brightness,
    Contrast,
    Crop,
    Equalize,
    Erase,
    Flip,
    Gray,
    Hue,
    Jitter,
    Noise,
    Perspective,
    Posterize,
    Resize,
    ResizedCrop,
    Rotate,
    SaltAndPepper,
    Saturation,
    Shift,
    Sobel,
    VerticalFlip,
    by_image,
)
from setsup.loading.views import ColorViews, PatchPairs, PlanarPairs  # noqa: E402
from setsup.methods.recipes import recipe  # noqa: E402
from setsup_papers.orbits import AffineMembers  # noqa: E402

LEVEL, SHARE, CLOSE = 1, 0.002, 2e-3
"""Levels of 8 bits that pixels may be apart; the share of pixels that may be farther; values of 0 … 1."""

OPERATIONS: dict[str, list[Any]] = {
    "moves": [Flip(), VerticalFlip(), Rotate((-60, 60)), Affine((-20, 20), (-0.2, 0.2), (0.7, 1.3), (-5, 5))],
    "perspective": [Perspective(0.4), Shift(0.3)],
    "crops": [ResizedCrop(40, (0.3, 1)), Crop((36, 30)), Resize((48, 52))],
    "photometry": [AddBrightness(-0.3, 0.3), Brightness(0.6, 1.4), Contrast(0.6, 1.4), Hue(-0.1, 0.1)],
    "colors": [Saturation(0.6, 1.4), Jitter(0.4, 0.4, 0.4, 0.1), Gray()],
    "filters": [Blur(5, (0.4, 1.5)), Noise(0.05), Sobel(-0.2, 0.2), SaltAndPepper(0.1)],
    "regions": [Erase()],
    "steps": [Posterize(4)],
    "equalised": [Equalize(), AutoContrast()],
}


@pytest.fixture(autouse=True)
def by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_image, "cv2", None)


def images(*lead: int, height: int = 44, width: int = 52, channels: int = 3) -> Any:
    """Waves some pixels long, uint8, as a loader gives them."""
    y, x = np.mgrid[:height, :width]
    phases = np.random.default_rng(0).uniform(0, 7, (*lead, channels, 1, 1))
    return torch.from_numpy((128 + 120 * np.sin(x / 9 + phases) * np.cos(y / 7 - phases)).astype(np.uint8))


def moved(value: Any, device: str) -> Any:
    if isinstance(value, dict):
        return {name: moved(inner, device) for name, inner in value.items()}
    return value.to(device) if isinstance(value, torch.Tensor) else value


def compare(transform: Any, batch: dict[str, Any], device: str) -> None:
    """Check that a transform makes the same of a batch on both, on the device of the batch."""
    wanted, found = transform(batch), transform(moved(batch, device))
    assert found.keys() == wanted.keys()
    for name, one in wanted.items():
        if not isinstance(one, torch.Tensor):
            continue
        other = found[name]
        assert (other.shape, other.dtype, other.device.type) == (one.shape, one.dtype, device.partition(":")[0])
        apart = (other.cpu().double() - one.double()).abs()
        if one.dtype == torch.uint8:
            assert (apart > LEVEL).double().mean() <= SHARE, name
        elif one.is_floating_point():
            scale = max(1.0, float(one.abs().max()))
            assert (apart > CLOSE * scale).double().mean() <= SHARE, name
        else:
            assert not apart.any(), f"{name} holds row numbers or flags"


@pytest.mark.parametrize("eight_bit", [True, False], ids=["uint8", "float"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(device: str, name: str, eight_bit: bool) -> None:
    compare(Augment(OPERATIONS[name], eight_bit=eight_bit, seed=3), {"image": images(2, 4), "step": 7}, device)


@pytest.mark.parametrize("name", ["abc-shapes3d", "dcodr", "cmc-stl10", "oxels-2d"])
def test_recipes(device: str, name: str) -> None:
    side = {"cmc-stl10": 96, "oxels-2d": 32}.get(name, 64)
    given = {"image": images(2, 4, height=side, width=side), "step": 3, "factors": {}}
    given |= {"indices": torch.arange(8).reshape(2, 4), "mask": torch.ones(2, 4, dtype=torch.bool)}
    compare(recipe(name), given, device)


@pytest.mark.parametrize(
    "view", [PlanarPairs(32, 0.25), PatchPairs(16, 8), *map(ColorViews, ("lab", "hsv", "ycbcr"))], ids=str
)
def test_views(device: str, view: Any) -> None:
    given = {"image": images(2, 3, height=64, width=64), "step": 5, "factors": {}}
    compare(view, given, device)


def test_members_of_orbits(device: str) -> None:
    shape, rng = (3, 4), np.random.default_rng(1)
    most = {"rotation": 1.5, "shear": 0.3, "translation_x": 15.0, "translation_y": 15.0}
    factors = {name: torch.from_numpy(rng.uniform(-high, high, shape)) for name, high in most.items()}
    digits = images(*shape, height=28, width=28, channels=1)
    batch = {"original": digits, "factors": factors | {"scale": torch.full(shape, 0.9, dtype=torch.float64)}}
    compare(AffineMembers(), batch | {"canonical_original": digits[:, 0]}, device)
