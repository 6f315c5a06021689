"""Encoders of pixels by their names."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy.interpolate import RegularGridInterpolator  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments.encoders.dense_encoders import open_dense_encoder  # noqa: E402

OWN = """
import torch

class Patches(torch.nn.Module):
    def forward(self, images):
        assert 0 <= images.min() and images.max() <= 1
        return torch.nn.functional.avg_pool2d(images, 4)

def build():
    return Patches()

def vector():
    return torch.nn.Flatten()
"""


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (2, 24, 32, 3), dtype=np.uint8)


def test_colors_are_those_of_the_image(images: np.ndarray) -> None:
    encoder = open_dense_encoder("colors")
    np.testing.assert_array_equal(encoder.features(images), images / 255)
    assert encoder.weights == "none"


def test_daisy_is_that_of_scikit_image(images: np.ndarray) -> None:
    feature = pytest.importorskip("skimage.feature")
    color = pytest.importorskip("skimage.color")
    found = open_dense_encoder("daisy").features(images)
    assert found.shape == (2, 24, 32, 200)
    grey = color.rgb2gray(images[1])
    rows, columns = (np.pad(np.arange(side), 15, mode="reflect") for side in grey.shape)
    expected = feature.daisy(grey[rows[:, None], columns], step=1, radius=15)
    np.testing.assert_allclose(found[1], expected, rtol=1e-6)


def test_sift_is_that_of_opencv_at_each_pixel(images: np.ndarray) -> None:
    cv2 = pytest.importorskip("cv2")
    found = open_dense_encoder("sift").features(images)
    assert found.shape == (2, 24, 32, 128)
    grey = cv2.cvtColor(images[1], cv2.COLOR_RGB2GRAY)
    for y, x in ((0, 0), (11, 20), (23, 31)):
        _, expected = cv2.SIFT_create().compute(grey, [cv2.KeyPoint(x, y, 4, 0)])
        np.testing.assert_array_equal(found[1, y, x], expected[0])


def test_random_weights_depend_on_the_seed_and_see_31_pixels(images: np.ndarray) -> None:
    encoder, other = (open_dense_encoder("random", "cpu", seed=seed) for seed in (0, 1))
    found = encoder.features(images)
    assert found.shape == (2, 24, 32, 32)
    np.testing.assert_array_equal(open_dense_encoder("random", "cpu").features(images), found)
    assert not np.allclose(other.features(images), found)
    changed = images.copy()
    changed[0, 2, 3] = 255 - changed[0, 2, 3]
    moved = np.abs(encoder.features(changed) - found).max(axis=-1) > 0
    y, x = np.nonzero(moved[0])
    assert (y.max(), x.max()) == (2 + 15, 3 + 15)
    assert not moved[1].any()


def test_a_function_of_ones_own_gives_a_grid(tmp_path: Path, images: np.ndarray) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    expected = (images / 255).reshape(2, 6, 4, 8, 4, 3).mean(axis=(2, 4))
    grid = open_dense_encoder(f"{file}:build", "cpu", grid=True).features(images)
    np.testing.assert_allclose(grid, expected, atol=1e-6)
    whole = open_dense_encoder(str(file), "cpu").features(images)
    assert whole.shape == (2, 24, 32, 3)
    centres = [np.arange(cells) * 4 + 1.5 for cells in (6, 8)]
    at = RegularGridInterpolator(centres, expected[1])([[9, 14]])[0]
    np.testing.assert_allclose(whole[1, 9, 14], at, atol=1e-6)
    with pytest.raises(SetsupError, match=r"of shape \(2, D, rows, columns\), not \(2, 2304\)"):
        open_dense_encoder(f"{file}:vector", "cpu").features(images)


def test_an_own_network_is_drawn_by_the_seed_and_known_by_its_weights(tmp_path: Path, images: np.ndarray) -> None:
    file = tmp_path / "own.py"
    file.write_text("import torch\n\ndef build():\n    return torch.nn.Conv2d(3, 4, 1)\n")
    before = torch.random.get_rng_state()
    first, again, other = (open_dense_encoder(f"{file}:build", "cpu", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert first.weights == again.weights != other.weights
    assert np.array_equal(first.features(images), again.features(images))
    assert not np.array_equal(first.features(images), other.features(images))
    file, weights = tmp_path / "loading.py", tmp_path / "weights.pt"
    file.write_text(
        "import torch\n\ndef build():\n    network = torch.nn.Conv2d(3, 4, 1)\n"
        f"    network.load_state_dict(torch.load({str(weights)!r}))\n    return network\n"
    )
    known = []
    for value in (0.0, 1.0):  # the file of the function stays as it is
        state = {"weight": torch.full((4, 3, 1, 1), value), "bias": torch.zeros(4)}
        torch.save(state, weights)
        known.append(open_dense_encoder(f"{file}:build", "cpu").weights)
    assert known[0] != known[1]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("dasy", "unknown encoder of pixels 'dasy'.*did you mean 'daisy'"),
        ("pixels:16", "unknown encoder of pixels 'pixels:16'; pass hf:NAME"),
        ("hf:", "is not the name of a model"),
    ],
)
def test_other_names_are_refused(name: str, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence):
        open_dense_encoder(name, "cpu")
