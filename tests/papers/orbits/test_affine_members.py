"""Members of orbits rendered on a device, against those that the dataset draws."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("kornia")

import setsup  # noqa: E402
from setsup.errors import DataError  # noqa: E402
from setsup_papers.orbits import AffineMembers  # noqa: E402
from tests.true_files import mnist  # noqa: E402


@pytest.mark.parametrize("order", [*permutations(("rotate", "shear", "scale", "translate"))][::5])
def test_images_are_those_of_the_dataset(order: tuple[str, ...], tmp_path: Path) -> None:
    mnist.write(tmp_path, per_split=60)
    digits = setsup.load("affine-mnist", root=tmp_path, order=order)
    sampler = setsup.OrbitSampler(digits.factors, "source", 6, 8, canonical="member == 0")
    batch = next(iter(setsup.loader(digits, sampler, workers=0)))
    expected = {name: batch.pop(name) for name in ("image", "canonical_image")}
    found = AffineMembers(order=order)(batch)
    assert "original" not in found
    for name, images in expected.items():
        assert found[name].shape == images.shape
        assert found[name].dtype == torch.uint8
        away = (found[name].int() - images.int()).abs()
        assert int(away.max()) <= 1  # of two roundings
        assert float((away > 0).double().mean()) < 1e-3
    assert np.ptp(expected["image"].numpy()) == 255


def test_what_is_not_affine_mnist_is_refused() -> None:
    with pytest.raises(DataError, match="no original, rotation"):
        AffineMembers()({"image": torch.zeros(1, 1, 1, 40, 40), "factors": {}})
    with pytest.raises(DataError, match="exactly once"):
        AffineMembers(order=("rotate", "rotate", "scale", "translate"))
