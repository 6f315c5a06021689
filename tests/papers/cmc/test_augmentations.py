"""Views of one's own files: what is cropped alike, what the colours are of, and what is refused before a training."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import setsup
from setsup.errors import SetsupError
from setsup.experiments import find_preset
from setsup.samplers import EpochSampler
from setsup_papers.cmc.augmentations import ViewCrops, _tell_smaller

COUNT, HEIGHT, WIDTH = 8, 20, 28


def opened(folder: Path, **changed: Any) -> Any:
    """A file with an image whose colours are the place of the pixel, and maps that tell the place too."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    place = np.broadcast_to(y * WIDTH + x, (COUNT, HEIGHT, WIDTH))
    turn = np.broadcast_to(x / WIDTH, place.shape)
    arrays: dict[str, Any] = {
        "image": np.stack([place % WIDTH, place // WIDTH, 0 * place], -1).astype(np.uint8),
        "depth": place.astype(np.float32),
        "labels": place.astype(np.int16),
        "normals": np.stack([np.sin(turn), 0 * turn, -np.cos(turn)], -1).astype(np.float32),
        "object": np.arange(COUNT),
    }
    arrays = {name: array for name, array in {**arrays, **changed}.items() if array is not None}
    np.savez(folder / "mine.npz", **arrays)
    return setsup.open(folder / "mine.npz")


@pytest.mark.parametrize("crop", ["box", "center"])
def test_one_crop_and_flip_of_images_depth_labels_and_normals(tmp_path: Path, crop: Any) -> None:
    dataset = opened(tmp_path)
    views = ("image", "depth", "labels", "normals")
    transform = ViewCrops(views=views, size=12, crop=crop, flip=True).build(dataset, 3)
    sampler = EpochSampler(dataset.factors, COUNT)
    flips = 0
    for batch in (
        batch
        for batch, _ in zip(setsup.loader(dataset, sampler, transform=transform, workers=0), range(3), strict=False)
    ):
        image, depth, labels, normals = (np.asarray(batch[name][0]) for name in views)
        assert image.shape == (COUNT, 3, 12, 12)
        place = image[:, 1].astype(int) * WIDTH + image[:, 0]
        np.testing.assert_array_equal(labels, place)
        np.testing.assert_array_equal(depth, place)
        flipped = place[:, 0, 0] > place[:, 0, 1]
        flips += int(flipped.sum())
        turn = image[:, 0] / WIDTH
        wanted = np.stack([np.where(flipped, -1, 1)[:, None, None] * np.sin(turn), 0 * turn, -np.cos(turn)], -1)
        np.testing.assert_allclose(normals, wanted, atol=1e-5)
    assert 0 < flips < 3 * COUNT


def test_views_of_several_sizes_are_not_cropped(tmp_path: Path) -> None:
    dataset = opened(tmp_path, depth=np.ones((COUNT, 10, 14), np.float32))
    with pytest.raises(
        SetsupError, match=r"their sizes differ: image 20 × 28, depth 10 × 14; resize them to one size, or"
    ):
        ViewCrops(views=("image", "depth"), size=8).build(dataset, 0)
    with pytest.raises(SetsupError, match="their sizes differ"):
        ViewCrops(views=("image", "depth"), flip=True).build(dataset, 0)
    ViewCrops(views=("image", "depth")).build(dataset, 0)  # uncropped views may have any
    ViewCrops(views=("image", "normals"), size=8).build(dataset, 0)  # depth is none of the views


@pytest.mark.parametrize(
    "image", [np.zeros((COUNT, 4, 4), np.uint8), np.zeros((COUNT, 4, 4, 4), np.uint8), np.zeros((COUNT, 4, 4, 3))]
)
def test_what_has_no_colors_is_refused_before_it_is_read(tmp_path: Path, image: Any) -> None:
    dataset = opened(tmp_path, image=image)
    with pytest.raises(SetsupError, match=r"channels of lab require uint8 RGB images .*; choose other views with"):
        ViewCrops(views=("L", "ab")).build(dataset, 0)
    ViewCrops(views=("image", "depth")).build(dataset, 0)


def test_classes_that_look_like_a_grey_image_are_refused(tmp_path: Path) -> None:
    dataset = opened(tmp_path, labels=np.ones((COUNT, HEIGHT, WIDTH), np.uint8))
    with pytest.raises(SetsupError, match=r"'labels' of mine is uint8 and would be .* a grey image; store classes as"):
        ViewCrops(views=("image", "labels")).build(dataset, 0)
    ViewCrops(views=("image", "depth")).build(dataset, 0)


def test_a_modality_with_the_name_of_a_channel_is_refused(tmp_path: Path) -> None:
    dataset = opened(tmp_path, L=np.ones((COUNT, HEIGHT, WIDTH), np.float32))
    transform = ViewCrops(views=("L", "ab")).build(dataset, 0)
    sampler = EpochSampler(dataset.factors, 2)
    with pytest.raises(
        SetsupError, match=r"the modality 'L' of the data has the same name as a view .* lab, .*; exclude the modality"
    ):
        next(iter(setsup.loader(dataset, sampler, transform=transform, workers=0)))
    read = ["image"]
    batch = next(iter(setsup.loader(dataset, sampler, modalities=read, transform=transform, workers=0)))
    assert batch["L"].shape == (1, 2, 1, HEIGHT, WIDTH)


def test_views_that_the_data_lack_are_listed_with_the_channels_of_the_space(tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match=r"mine has none of the views Y, CbCr; choose from depth, image.*L and ab"):
        ViewCrops(views=("Y", "CbCr")).build(opened(tmp_path), 0)
    with pytest.raises(SetsupError, match="views must contain at least one"):
        ViewCrops(views=("",)).build(opened(tmp_path), 0)


def test_views_of_ones_own_are_embedded_from_the_middle() -> None:
    preset: Any = find_preset("cmc")
    assert (preset.augmentation.crop, preset.eval_transform.crop) == ("box", "center")


def test_crops_of_smaller_images_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _tell_smaller.cache_clear()
    dataset = opened(tmp_path)
    with caplog.at_level("WARNING", "setsup"):
        ViewCrops(views=("image",), size=HEIGHT).build(dataset, 0)
        assert not caplog.text
        transform = ViewCrops(views=("image",), size=64).build(dataset, 0)
        ViewCrops(views=("image",), size=64).build(dataset, 1)
    assert caplog.text.count("images of mine are 20 × 28, smaller than --crop-size 64: crops are 20 × 20") == 1
    batch = next(iter(setsup.loader(dataset, EpochSampler(dataset.factors, 2), transform=transform, workers=0)))
    assert batch["image"].shape == (1, 2, 3, HEIGHT, HEIGHT)
