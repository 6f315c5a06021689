"""Images on a CPU go through OpenCV one by one: held against torch's kernels for batches, operation by operation."""

import os
import signal
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from setsup.correspondence import planar

pytest.importorskip("torch", reason="torch is not installed")

import torch

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
    by_image,
)
from setsup.loading.transforms.by_image import cv2
from setsup.loading.views import ColorViews
from setsup.loading.views.colors import SPACES

pytestmark = pytest.mark.skipif(cv2 is None, reason="OpenCV is not installed")

HEIGHT, WIDTH = 44, 52
LEVEL, CLOSE = 1, 2e-3  # how far the two may be apart: levels of 8 bits, and values of 0 … 1
POOL = np.random.default_rng(3).integers(0, 256, (5, 60, 60, 3), dtype=np.uint8)


def images(kind: str, channels: int = 3) -> torch.Tensor:
    """Noise, slow waves, or few levels: (2, 4, channels, HEIGHT, WIDTH) uint8."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    phases = rng.uniform(0, 7, (2, 4, channels, 1, 1))
    waves = 128 + 120 * np.sin(x / 9 + phases) * np.cos(y / 7 - phases)
    found = {
        "noise": rng.integers(0, 256, waves.shape),
        "waves": waves,
        "few levels": rng.integers(0, 4, waves.shape) * 85,
        "uniform": np.broadcast_to(rng.integers(0, 256, (2, 4, channels, 1, 1)), waves.shape),
    }[kind]
    return torch.from_numpy(np.ascontiguousarray(found).astype(np.uint8))


def both(monkeypatch: pytest.MonkeyPatch, augment: Augment, given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What OpenCV makes, and what torch makes."""
    batch: dict[str, Any] = {"image": given, "step": 3}
    ours = augment(batch)
    with monkeypatch.context() as patch:
        patch.setattr(by_image, "cv2", None)
        other = augment(batch)
    assert ours["image"].shape == other["image"].shape
    assert ours["image"].dtype == other["image"].dtype
    assert ours["image"].is_contiguous()
    if "homography" in other:
        assert torch.equal(ours["homography"], other["homography"])
    return ours["image"], other["image"]


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference, in levels of 8 bits or in values of 0 … 1."""
    return float((one.double() - other.double()).abs().max())


COLORS = [
    AddBrightness(-0.5, 0.5),
    AutoContrast(),
    Blur(3, (0.3, 0.9)),
    Blur(7, (1, 3)),
    Brightness(0.2, 1.8),
    Contrast(0, 3),
    Equalize(),
    Erase((0.1, 0.4)),
    Gray(),
    Hue(-0.5, 0.5),
    Jitter(0.4, 0.4, 0.4, 0.1),
    Jitter(0.3, 0, 0.3, 0.1),
    Jitter(),
    Noise(0.1),
    Posterize(3),
    SaltAndPepper(0.2),
    Saturation(0, 3),
    Sobel(-1, 1),
]


@pytest.mark.parametrize("operation", COLORS, ids=repr)
@pytest.mark.parametrize("kind", ["noise", "waves", "few levels", "uniform"])
@pytest.mark.parametrize("channels", [1, 3])
def test_operations_on_colors_agree(monkeypatch, operation, kind, channels) -> None:
    given = images(kind, channels)
    for eight_bit, most in ((False, CLOSE), (True, _levels(operation))):
        found = both(monkeypatch, Augment([operation], eight_bit=eight_bit), given)
        assert apart(*found) <= most, eight_bit
    rough = given.float() / 301.7  # no halves of levels
    assert apart(*both(monkeypatch, Augment([operation]), rough)) <= CLOSE


def _levels(operation: Any) -> int:
    """Each of up to four enhancers may be off by a level, which the next multiplies by up to 1.4."""
    return 4 if isinstance(operation, Jitter) else LEVEL


@pytest.mark.parametrize("eight_bit", [False, True])
def test_backgrounds_agree(monkeypatch, eight_bit) -> None:
    for kind in ("noise", "waves"):
        for operations in ([Background(POOL)], [Premultiply(), Background(POOL, premultiplied=True)]):
            found = both(monkeypatch, Augment(operations, eight_bit=eight_bit), images(kind, 4))
            assert apart(*found) <= (LEVEL if eight_bit else CLOSE)


UNMIXED = [Crop((30, 41)), CenterCrop((21, 36)), Flip(0.5), VerticalFlip(1.0), Affine(translate=(9, 9))]


@pytest.mark.parametrize("operations", [[one] for one in UNMIXED] + [UNMIXED], ids=str)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_copies_are_equal_bit_for_bit(monkeypatch, operations, channels) -> None:
    for eight_bit in (False, True):
        for fill in (0.0, 0.3, 1.0):
            augment = Augment(operations, eight_bit=eight_bit, fill=fill)
            assert torch.equal(*both(monkeypatch, augment, images("noise", channels)))
    assert torch.equal(*both(monkeypatch, Augment(operations), images("noise", channels).float() / 300))


STRAIGHT = [
    [Shift(0.4)],
    [Shift(0.4), Flip(0.5), VerticalFlip(0.5)],
    [Crop(30), Shift(0.3)],
    [Resize((60, 90))],
    [Resize((30, 26))],
    [Resize((30, 90)), Flip()],
    [ResizedCrop(64, (0.2, 1)), VerticalFlip()],
    [ResizedCrop(20, (0.2, 1)), Flip()],
    [ResizedCrop((40, 48), (0.2, 1))],
    [Resize((60, 90)), Shift(0.2), Flip()],
    [Resize((30, 26)), Shift(0.2)],
    [Resize((31, 29)), Crop(17)],
    [Resize((80, 120)), Affine(translate=(1, 9)), Crop(40)],
    [Affine(scale=(0.5, 2.0), translate=(-9, 9))],
]


@pytest.mark.parametrize("operations", STRAIGHT, ids=str)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_resizes_and_moves_agree(monkeypatch, operations, channels) -> None:
    """What OpenCV rounds to 1/32 pixel, which is where a resize is moved too, is held against what that explains."""
    rounded = any(isinstance(one, Affine | Shift) for one in operations) and len(operations) > 0
    for kind in ("noise", "waves"):
        given = images(kind, channels)
        for eight_bit in (False, True):
            augment = Augment(operations, eight_bit=eight_bit, fill=0.4)
            most = LEVEL if eight_bit else CLOSE
            if rounded:
                most += _explained(given, 2) * (255 if eight_bit else 1)
            assert apart(*both(monkeypatch, augment, given)) <= most, (kind, eight_bit)


def _explained(given: torch.Tensor, zoom: float = 1.0) -> float:
    """Change of an image within 1/64 pixel to each side in x and in y, of which OpenCV's coordinates are off."""
    steps = [given.float().diff(dim=axis).abs().max().item() / 255 for axis in (-1, -2)]
    return sum(steps) / 64 * 1.1


SLANTED = [
    [Rotate((-180, 180))],
    [Affine((-90, 90), (-0.3, 0.3), (0.7, 1.3), (-5, 5))],
    [Perspective(0.6)],
    [Resize((70, 90)), Rotate((-40, 40)), CenterCrop(40), Flip()],
]


@pytest.mark.parametrize("operations", SLANTED, ids=str)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_turns_agree_but_for_rounded_coordinates(monkeypatch, operations, channels) -> None:
    for kind in ("noise", "waves"):
        given = images(kind, channels)
        for eight_bit in (False, True):
            for fill in (0.0, 0.3):
                augment = Augment(operations, eight_bit=eight_bit, fill=fill)
                ours, other = both(monkeypatch, augment, given)
                scale = 255 if eight_bit else 1
                most = (LEVEL if eight_bit else CLOSE) + _explained(given) * scale
                assert apart(ours, other) <= most, (kind, eight_bit)


@pytest.mark.parametrize("operations", [*SLANTED, [Rotate((90, 90))], [Affine(scale=(0.5, 2))]], ids=str)
def test_the_same_pixels_show_the_source(monkeypatch, operations) -> None:
    """Also those that OpenCV's coordinates put on the other side of an edge: as labels of the nearest pixel."""
    white = torch.full((2, 4, 3, HEIGHT, WIDTH), 255, dtype=torch.uint8)
    augment = Augment(operations, modalities={"image": "color", "seg": "label"})
    for step in (1, 3, 4):
        batch: dict[str, Any] = {"image": white, "seg": torch.ones(2, 4, HEIGHT, WIDTH), "step": step}
        ours = augment(batch)
        with monkeypatch.context() as patch:
            patch.setattr(by_image, "cv2", None)
            other = augment(batch)
        for found in (ours, other):
            assert torch.equal(found["image"][:, :, 0] > 0, found["seg"] > 0)


CHAINS = [
    [
        Premultiply(),
        Shift(0.1),
        Background(POOL, premultiplied=True),
        AddBrightness(-0.2, 0.2),
        RandomApply(Hue(-0.5, 0.5)),
        Noise(0.05),
        Sobel(-0.2, 0.2),
    ],
    [Crop(32), Brightness(0.5, 1.5), Posterize(5), Flip(), Contrast(0.5, 1.5), Brightness(0.8, 1.2)],
    [OneOf([Blur(5, (1, 1)), Contrast(1.8, 3), Saturation(1.8, 3), ResizedCrop((44, 52), (0.5, 1))])],
]


@pytest.mark.parametrize("operations", CHAINS, ids=str)
@pytest.mark.parametrize("copies", [None, 2])
def test_chains_agree(monkeypatch, operations, copies) -> None:
    given = images("waves", 4 if any(isinstance(one, Background) for one in operations) else 3)
    assert apart(*both(monkeypatch, Augment(operations, copies=copies), given)) <= (
        9 * CLOSE if any(isinstance(one, Posterize) for one in operations) else CLOSE
    )
    found = both(monkeypatch, Augment(operations, copies=copies, eight_bit=True), given)
    assert (found[0].int() - found[1].int()).abs().float().mean() < 0.3


def test_what_crosses_a_horizon_is_what_torch_makes(monkeypatch) -> None:
    class Tilted:
        def homography(self, slots: Any, height: int, width: int) -> tuple[np.ndarray, tuple[int, int]]:
            back = np.array([[2, 0, -20], [1.5, 0.3, -10], [0.1, 0, -1.23]])
            return np.broadcast_to(np.linalg.inv(back), (len(slots), 3, 3)), (height, width)

    assert torch.equal(*both(monkeypatch, Augment([Tilted()]), images("waves")))


# bits


MIXED = [
    ResizedCrop((50, 60), (0.3, 0.9)),
    Jitter(0.4, 0.4, 0.4, 0.1),
    OneOf([Flip(1.0), Noise(0.1), Rotate((-30, 30)), Erase()]),
    RandomApply(Perspective(0.2), 0.5),
    RandomApply(Blur(5, (1, 2)), 0.5),
    Sobel(-0.5, 0.5),
]


@pytest.mark.parametrize("eight_bit", [False, True])
def test_neither_threads_nor_company_nor_layout_change_bits(eight_bit) -> None:
    augment, given = Augment(MIXED, copies=2, eight_bit=eight_bit), images("noise")
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(augment({"image": given, "step": 1})["image"])
    finally:
        torch.set_num_threads(threads)
    packed = given.movedim(-3, -1).contiguous().movedim(-1, -3)
    found.append(augment({"image": packed, "step": 1})["image"])
    for one, other in pairwise(found):
        assert torch.equal(one, other)
    alone = augment({"image": given[:1, :2], "step": 1})["image"]
    assert torch.equal(alone, found[0][:1, :2])


def test_images_that_are_longer_than_opencv_moves_them_are_what_torch_makes(monkeypatch) -> None:
    given = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (1, 1, 1, 3, 40_000), dtype=np.uint8))
    assert apart(*both(monkeypatch, Augment([Shift(0.2)]), given)) == 0


def test_opencv_has_its_threads_afterwards() -> None:
    before = cv2.getNumThreads()
    try:
        cv2.setNumThreads(3)
        Augment(MIXED)({"image": images("noise"), "step": 1})
        assert cv2.getNumThreads() == 3
    finally:
        cv2.setNumThreads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_child_forked_within_an_augmentation_augments_and_has_opencv_threads(threads) -> None:
    """Also where OpenCV has started threads of its own, for which a child that ends them would wait forever."""
    given, before, mine = images("noise"), cv2.getNumThreads(), torch.get_num_threads()
    large = torch.zeros(2, 1, 3, 200, 200, dtype=torch.uint8)
    wanted, children = Augment([Noise(0.1)])({"image": given, "step": 1})["image"], []

    class Forks:
        def __call__(self, images: torch.Tensor, slots: Any) -> torch.Tensor:
            return images

        def kernels(self, slots: Any, shape: Any) -> list[list[Any]]:
            return [[self.fork]] * len(slots)

        def fork(self, image: np.ndarray) -> np.ndarray:
            child = os.fork()
            if child:
                children.append(child)
                return image
            signal.alarm(20)
            inside = cv2.getNumThreads() == 3
            found = Augment([Noise(0.1)])({"image": given, "step": 1})["image"]
            same = np.array_equal(found.numpy(), wanted.numpy())  # torch has threads of its own, which are not here
            os._exit(int(not (inside and same and cv2.getNumThreads() == 3)))

    try:
        torch.set_num_threads(threads)
        cv2.setNumThreads(3)
        cv2.GaussianBlur(np.zeros((1000, 1000), np.float32), (5, 5), 1)
        Augment([Forks()])({"image": large, "step": 0})
        assert cv2.getNumThreads() == 3
    finally:
        cv2.setNumThreads(before)
        torch.set_num_threads(mine)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]


@pytest.mark.parametrize("operation", [*COLORS, Shift(0.2), Flip(1.0), Rotate((10, 20)), Resize(20)], ids=repr)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_nothing_given_is_written_to(operation, dtype) -> None:
    given = images("noise") if dtype == torch.uint8 else images("noise").float() / 255
    packed = given.movedim(-3, -1).contiguous().movedim(-1, -3)
    for eight_bit in (False, True):
        for one in (given, packed):
            before = one.clone()
            for operations in ([operation], [operation, Noise(0.1), Sobel(1, 1)]):
                Augment(operations, eight_bit=eight_bit)({"image": one, "step": 1})["image"].fill_(1)
            assert torch.equal(one, before)


def test_images_that_are_wrong_for_an_operation_are_refused_as_ever(monkeypatch) -> None:
    from setsup.errors import SetsupError

    for operations, channels, said in (
        ([Blur(5, (1, 1))], 4, "apply Background first"),
        ([Background(POOL)], 3, "4 channels"),
        ([RandomApply(Background(POOL), 0.5)], 4, "apply the operation to all"),
        ([Crop(3), Blur(9, (1, 1))], 3, "requires larger images"),
    ):
        for module in (cv2, None):
            monkeypatch.setattr(by_image, "cv2", module)
            with pytest.raises(SetsupError, match=said):
                Augment(operations)({"image": images("noise", channels), "step": 0})


def test_a_uniform_pixel_is_where_its_matrix_takes_it() -> None:
    """Coordinates as images, within 1/32 pixel: an independent look at every way of resampling."""
    y, x = np.mgrid[:60, :70].astype(np.float32)
    given = torch.from_numpy(np.stack([x, y])).expand(1, 4, 2, 60, 70)
    for operations in (*SLANTED, [Shift(0.2)], [Resize((90, 80))], [ResizedCrop((90, 80), (0.3, 0.9)), Flip()]):
        found = Augment(operations)({"image": given, "step": 0})
        matrices = found["homography"][0].numpy()
        pixels = found["image"][0].movedim(1, -1).numpy()
        v, u = np.mgrid[: pixels.shape[1], : pixels.shape[2]]
        at = planar.carried(np.stack([u, v], -1).reshape(1, -1, 2), np.linalg.inv(matrices)).reshape(pixels.shape)
        inner = ((at > 1) & (at < [68, 58])).all(axis=-1)
        inner[:, [0, 1, -2, -1]] = inner[:, :, [0, 1, -2, -1]] = False
        assert inner.any()
        assert np.abs(pixels - at)[inner].max() < 1 / 32, operations


@pytest.mark.parametrize("space", SPACES)
def test_color_views_agree(monkeypatch, space) -> None:
    for given in (images("noise"), images("few levels"), images("noise").float() / 301.7):
        batch = {"image": given}
        ours = ColorViews(space)(batch)
        with monkeypatch.context() as patch:
            patch.setattr(by_image, "cv2", None)
            other = ColorViews(space)(batch)
        for name in SPACES[space].views:
            differ = (ours[name] - other[name]).abs()
            if space == "hsv":  # around the circle, whose width is 2 here
                differ = torch.minimum(differ, 2 - differ)
            assert differ.max() <= 1e-4
