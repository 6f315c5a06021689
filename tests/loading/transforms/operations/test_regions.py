"""Erased rectangles follow the published law, and backgrounds are crops of the pool."""

import math

import numpy as np
import pytest
from scipy import stats

from setsup import random
from setsup.errors import DataError, SetsupError

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms import Augment, Shift
from setsup.loading.transforms.operations.regions import Background, Erase, Premultiply
from setsup.loading.transforms.slots import Slots

RARE = 1e-4  # every statistic below is a fixed number, for its key is


def slots_for(n: int, seed: int = 0) -> Slots:
    return Slots(random.fold(random.stream_key(seed, "regions"), np.arange(n, dtype=np.uint64)))


def published(n: int, height: int, width: int, area: tuple, aspect: tuple) -> np.ndarray:
    """Heights, widths, tops and lefts of rectangles, one image after the other; none where ten do not fit."""
    draw = np.random.default_rng(11)
    found = []
    for _ in range(n):
        for _ in range(10):
            pixels = height * width * draw.uniform(*area)
            ratio = math.exp(draw.uniform(math.log(aspect[0]), math.log(aspect[1])))
            h, w = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
            if h < height and w < width:
                found.append((h, w, draw.integers(height - h + 1), draw.integers(width - w + 1)))
                break
    return np.array(found).T


def boxes_of(images: torch.Tensor) -> np.ndarray:
    """Heights, widths, tops and lefts of what is nought, which must be a whole rectangle."""
    found = []
    for gone in (images == 0).all(1).numpy():
        rows, columns = np.flatnonzero(gone.any(1)), np.flatnonzero(gone.any(0))
        if len(rows):
            assert gone.sum() == len(rows) * len(columns) == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
            found.append((len(rows), len(columns), rows[0], columns[0]))
    return np.array(found).T


@pytest.mark.parametrize(
    ("height", "width", "area", "aspect"),
    [(24, 18, (0.02, 0.33), (0.3, 3.3)), (16, 30, (0.1, 0.9), (0.2, 1.0)), (20, 20, (0.5, 1.0), (1.0, 6.0))],
)
def test_rectangles_follow_the_published_distribution(height: int, width: int, area: tuple, aspect: tuple) -> None:
    n = 3000
    images = torch.full((n, 1, height, width), 0.7)
    erased = Erase(area, aspect)(images, slots_for(n))
    assert set(erased.unique().tolist()) <= {0.0, images[0, 0, 0, 0].item()}
    found, wanted = boxes_of(erased), published(n, height, width, area, aspect)
    fitting = np.array([[len(one.T), n - len(one.T)] for one in (found, wanted)])
    if fitting[:, 1].any():
        assert stats.chi2_contingency(fitting).pvalue > RARE
    for ours, theirs in zip(found, wanted, strict=True):
        assert stats.ks_2samp(ours, theirs).pvalue > RARE
    for sign in (1, -1):
        assert stats.ks_2samp(found[0] + sign * found[1], wanted[0] + sign * wanted[1]).pvalue > RARE


def test_all_channels_are_erased_and_the_rest_keeps_its_bits() -> None:
    images = torch.rand(20, 3, 16, 16, generator=torch.Generator().manual_seed(6)) * 0.9 + 0.05
    erased = Erase()(images, slots_for(20))
    boxes_of(erased)
    assert torch.equal(torch.where(erased == 0, images, erased), images)
    assert torch.equal((erased == 0).all(1), (erased == 0).any(1))


def test_an_image_without_room_stays_as_it_is() -> None:
    images = torch.ones(5, 1, 8, 8)
    assert torch.equal(Erase(area=(1, 1), aspect=(1, 1))(images, slots_for(5)), images)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"area": 0.3}, r"area must be two numbers \(low, high\) of at least 0 with low <= high, not 0\.3"),
        ({"area": (0.3, 0.2)}, r"area must be two numbers .* not \(0\.3, 0\.2\)"),
        ({"area": (-0.1, 0.2)}, r"area must be two numbers .* of at least 0 .* not \(-0\.1, 0\.2\)"),
        ({"aspect": (0, 1)}, "aspect must be two numbers .* above 0"),
        ({"aspect": (0.3, math.nan)}, "aspect must be two numbers"),
    ],
)
def test_ranges_are_checked(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SetsupError, match=f"Erase: {message}"):
        Erase(**arguments)


def coordinates(k: int, height: int, width: int) -> np.ndarray:
    """Pictures whose pixels are (picture, row, column)."""
    return np.stack(np.meshgrid(np.arange(k), np.arange(height), np.arange(width), indexing="ij"), -1).astype(np.uint8)


def test_behind_a_clear_image_is_one_crop_of_the_pool() -> None:
    n, pool = 4000, coordinates(5, 12, 9)
    found = Background(pool)(torch.zeros(n, 4, 4, 6), slots_for(n)).mul(255).round().long().numpy()
    picture, top, left = found[:, 0, 0, 0], found[:, 1, 0, 0], found[:, 2, 0, 0]
    assert (found[:, 0] == picture[:, None, None]).all()
    assert (found[:, 1] == top[:, None, None] + np.arange(4)[:, None]).all()
    assert (found[:, 2] == left[:, None, None] + np.arange(6)).all()
    counts = np.zeros((5, 12 - 4 + 1, 9 - 6 + 1))
    np.add.at(counts, (picture, top, left), 1)
    assert stats.chisquare(counts.ravel()).pvalue > RARE


def test_alpha_mixes_linearly_to_the_nearest_level() -> None:
    images = torch.rand(6, 4, 7, 5, generator=torch.Generator().manual_seed(7)).mul(255).round().div(255)
    images[0, 3], images[1, 3] = 0, 1
    pool, slots = coordinates(3, 9, 9), slots_for(6)
    behind = Background(pool)(torch.zeros(6, 4, 7, 5), slots).double().numpy()
    found = Background(pool)(images, slots)
    color, alpha = images[:, :3].double().numpy(), images[:, 3:].double().numpy()
    assert found.shape == (6, 3, 7, 5)
    np.testing.assert_allclose(found.numpy(), alpha * color + (1 - alpha) * behind, atol=0.5 / 255 + 1e-6)


def test_premultiplied_colors_are_laid_over_as_colors_with_alpha_are() -> None:
    images = torch.rand(6, 4, 7, 5, generator=torch.Generator().manual_seed(8))
    pool, slots = coordinates(3, 9, 9), slots_for(6)
    found = Background(pool, premultiplied=True)(Premultiply()(images, slots), slots)
    torch.testing.assert_close(found, Background(pool)(images, slots), rtol=0, atol=1 / 255 + 1e-6)


def test_what_is_black_under_no_alpha_does_not_darken_an_outline_that_was_moved() -> None:
    given = torch.zeros(32, 1, 4, 20, 20, dtype=torch.uint8)
    given[..., 6:14, 6:14] = 255
    white = np.full((1, 20, 20, 3), 255, np.uint8)
    moved = Augment([Premultiply(), Shift(0.1), Background(white, premultiplied=True)])
    assert moved({"image": given, "step": 1})["image"].min() > 1 - 2e-3
    straight = Augment([Shift(0.1), Background(white)])
    assert straight({"image": given, "step": 1})["image"].min() < 0.8


def test_premultiply_needs_alpha() -> None:
    with pytest.raises(DataError, match="Premultiply requires images of 4 channels, of which the last is alpha, not 3"):
        Premultiply()(torch.zeros(1, 3, 4, 4), slots_for(1))


def test_a_pool_may_be_mapped_from_a_file_that_is_only_read(tmp_path) -> None:
    np.save(tmp_path / "pool.npy", coordinates(3, 9, 9))
    mapped = Background(np.load(tmp_path / "pool.npy", mmap_mode="r"))
    images = torch.zeros(4, 4, 5, 5)
    assert torch.equal(mapped(images, slots_for(4)), Background(coordinates(3, 9, 9))(images, slots_for(4)))
    assert repr(mapped) == "Background(premultiplied=False)"


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (None, "not NoneType"),
        (np.zeros((2, 8, 8, 3)), r"not float64 \(2, 8, 8, 3\)"),
        (np.zeros((8, 8, 3), np.uint8), r"not uint8 \(8, 8, 3\)"),
        (np.zeros((2, 8, 8, 4), np.uint8), r"not uint8 \(2, 8, 8, 4\)"),
        (np.zeros((0, 8, 8, 3), np.uint8), "is empty"),
    ],
)
def test_a_pool_is_images_of_bytes(pool: object, message: str) -> None:
    with pytest.raises(SetsupError, match=f"Background: (the )?pool .*{message}"):
        Background(pool)


def test_images_must_have_alpha_and_fit_the_pool() -> None:
    background = Background(coordinates(2, 8, 8))
    with pytest.raises(DataError, match="images of 4 channels, of which the last is alpha, not 3"):
        background(torch.zeros(1, 3, 4, 4), slots_for(1))
    with pytest.raises(DataError, match="8 × 8 pixels, are smaller than the images of the batch, 4 × 9"):
        background(torch.zeros(1, 4, 4, 9), slots_for(1))
