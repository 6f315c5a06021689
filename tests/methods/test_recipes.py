"""Recipes: each runs, follows its step, draws what the paper says, and DCoDR's agree with Pillow bit for bit."""

import colorsys
import itertools
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageEnhance
from scipy import ndimage, stats

import setsup
from setsup.errors import DataError, SetsupError

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms import by_image
from setsup.loading.transforms.augment import Compose
from setsup.loading.transforms.modalities import keyed_slots
from setsup.loading.transforms.slots import Slots
from setsup.methods.recipes import recipe, recipes

pytestmark = pytest.mark.usefixtures("one_thread")
RARE = 1e-4  # every statistic below is a fixed number, for its seed is
THIRTEEN = (
    *("horizontal-flip", "vertical-flip", "affine", "erasing", "hue", "low-brightness", "high-brightness"),
    *("low-contrast", "high-contrast", "grey", "high-saturation", "blur", "crop"),
)
POSITIVES = ("dcodr", "dcodr-blur", "dcodr-simsiam", *(f"dcodr-a/{name}" for name in THIRTEEN))
POOL = np.random.default_rng(2).integers(0, 256, (5, 70, 80, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Threads wait for each other by spinning, which takes long where other tests keep the cores busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def pictures(sets: int, size: int, height: int = 64, width: int = 64, channels: int = 3) -> torch.Tensor:
    """Smooth pictures with sharp edges, (sets, size, channels, height, width) uint8."""
    y, x = np.mgrid[:height, :width]
    phase = np.random.default_rng(1).uniform(0, 7, (sets, size, channels, 1, 1))
    waves = 128 + 90 * np.sin(x / 9 + phase) * np.cos(y / 7 - 2 * phase) + 30 * ((x // 8 + y // 8) % 2)
    return torch.from_numpy(np.clip(np.rint(waves), 0, 255).astype(np.uint8))


def uniform_images(sets: int, size: int, color: tuple[int, ...], height: int = 64, width: int = 64) -> torch.Tensor:
    color_of = torch.tensor(color, dtype=torch.uint8)[:, None, None]
    return color_of.expand(sets, size, len(color), height, width)


def small(name: str, step: int = 3) -> tuple[dict[str, Any], dict[str, Any]]:
    """A small batch for a recipe, and options that suit it."""
    batch: dict[str, Any] = {"image": pictures(2, 3), "step": step, "factors": {"part": torch.arange(6).view(2, 3) % 2}}
    if name == "abc-pose":
        batch["image"] = pictures(2, 3, channels=4)
        return batch, {"pool": POOL, "real": ("part", 1)}
    if name == "cmc-nyu":
        plane = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
        normals = torch.nn.functional.normalize(torch.stack([plane, plane**2, -1 - plane], dim=-1), dim=-1)
        return {**batch, "depth": 1 + plane, "normals": normals, "labels": (plane * 13).long()}, {"size": 40}
    sized = name.startswith(("cmc", "oxels"))
    return batch, {"size": (24, 32) if name.startswith("cmc") else 32} if sized else {}


ADDED = {
    "abc-shapes3d": {"image": ((2, 3, 2, 3, 64, 64), torch.float32)},
    "abc-pose": {"image": ((2, 3, 2, 3, 64, 64), torch.float32)},
    **{name: {"positive_image": ((2, 3, 3, 64, 64), torch.uint8)} for name in POSITIVES},
    **{
        f"cmc-{name}": {
            "image": ((2, 3, 3, 24, 32), torch.uint8),
            "L": ((2, 3, 1, 24, 32), torch.float32),
            "ab": ((2, 3, 2, 24, 32), torch.float32),
        }
        for name in ("alexnet", "resnet", "stl10")
    },
    "cmc-nyu": {
        "L": ((2, 3, 1, 40, 40), torch.float32),
        "ab": ((2, 3, 2, 40, 40), torch.float32),
        "depth": ((2, 3, 40, 40), torch.float32),
        "normals": ((2, 3, 40, 40, 3), torch.float32),
        "labels": ((2, 3, 40, 40), torch.int64),
    },
    "oxels-2d": {
        "view_1": ((2, 3, 3, 32, 32), torch.float32),
        "view_2": ((2, 3, 3, 32, 32), torch.float32),
        "partner": ((2, 3, 1024), torch.int64),
        "positive": ((2, 3, 1024), torch.bool),
        "valid": ((2, 3, 1024), torch.bool),
    },
    "oxels-3d": {"image": ((2, 3, 3, 32, 32), torch.uint8)},
}


# all of them


def test_all_recipes_are_there() -> None:
    assert sorted(recipes()) == sorted(ADDED)


@pytest.mark.parametrize("name", recipes())
def test_each_runs_and_follows_its_step(name: str) -> None:
    batch, options = small(name)
    before = {key: value.clone() for key, value in batch.items() if isinstance(value, torch.Tensor)}
    make = recipe(name, **options)
    found = make(batch)
    for key, (shape, dtype) in ADDED[name].items():
        assert (tuple(found[key].shape), found[key].dtype) == (shape, dtype)
        if dtype == torch.float32 and key in ("image", "view_1", "view_2"):
            assert found[key].min() >= 0
            assert found[key].max() <= 1
    for key, value in before.items():
        assert torch.equal(batch[key], value)  # what is given stays as it is
    if name in POSITIVES:
        assert found["image"] is batch["image"]
    again = pickle.loads(pickle.dumps(make))(batch)
    assert all(torch.equal(found[key], again[key]) for key in ADDED[name])
    fixed = name.startswith("dcodr-a/") and name.endswith(("flip", "grey", "blur"))
    if not fixed and name != "dcodr-blur":
        for other in (make({**batch, "step": 4}), recipe(name, seed=1, **options)(batch)):
            assert any(not torch.equal(found[key], other[key]) for key in ADDED[name])


@pytest.mark.long("renderings")
@pytest.mark.parametrize("name", ["abc-shapes3d", "dcodr", "dcodr-simsiam", "cmc-stl10", "oxels-2d", "oxels-3d"])
def test_a_loader_that_starts_later_gives_the_same(name: str) -> None:
    shapes = setsup.load("shapes3d-procedural")
    sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=3, sets=2)
    make = recipe(name, **small(name)[1])
    first = list(itertools.islice(setsup.loader(shapes, sets, transform=make, workers=0), 4))
    (resumed,) = itertools.islice(setsup.loader(shapes, sets, transform=make, workers=0, start=3), 1)
    assert resumed["step"] == 3
    for key in ADDED[name]:
        assert torch.equal(first[3][key], resumed[key])
    assert any(not torch.equal(first[2][key], resumed[key]) for key in ADDED[name])


def test_recipes_of_one_seed_draw_independently() -> None:
    batch = {"image": pictures(1, 400, 2, 2), "step": 0}
    one, other = (
        recipe(f"dcodr-a/{name}")({**batch, "image": uniform_images(1, 400, (100, 100, 100), 2, 2)})["positive_image"]
        for name in ("low-brightness", "high-brightness")
    )
    pairs = torch.stack([image.flatten(2)[0, :, 0].double() for image in (one, other)])
    assert abs(torch.corrcoef(pairs)[0, 1]) < 4.5 / math.sqrt(400)


def test_a_recipe_twice_is_refused() -> None:
    for name in ("cmc-stl10", "oxels-3d", "dcodr", "oxels-2d"):
        with pytest.raises(SetsupError, match=rf"same random numbers \(seed 0, stream '{name}'\)"):
            Compose([recipe(name), recipe(name)])
        assert Compose([recipe(name), recipe(name, seed=1)])


@pytest.mark.parametrize("options", [{"cop": 2}, {"stream": "a"}, {"sizes": 3}])
def test_options_that_are_none_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SetsupError, match="'dcodr' has no option"):
        recipe("dcodr", **options)


def test_mistakes_are_named() -> None:
    with pytest.raises(SetsupError, match="did you mean 'dcodr'"):
        recipe("dcord")
    with pytest.raises(SetsupError, match="did you mean 'size'"):
        recipe("dcodr", sizes=3)
    with pytest.raises(SetsupError, match="pool must be a uint8 array"):
        recipe("abc-pose", pool=[1, 2])
    with pytest.raises(SetsupError, match="codes of its levels"):
        recipe("abc-pose", real=("part", "photo"))
    with pytest.raises(SetsupError, match="seed"):
        recipe("oxels-2d", seed=-1)
    with pytest.raises(SetsupError, match="128 × 128 and 64 × 64"):
        recipe("dcodr")({"image": pictures(1, 40, 128, 128), "step": 0})
    with pytest.raises(DataError, match="Background"):
        recipe("abc-pose")({"image": pictures(1, 2, channels=4), "step": 0})
    with pytest.raises(SetsupError, match="modality 'depth' not found"):
        recipe("cmc-nyu")({"image": pictures(1, 2, 130, 130), "step": 0})


# ABC


def hues(images: torch.Tensor) -> np.ndarray:
    """Turns of uniform images from red, −0.5 … 0.5, by the mean of the middle of each."""
    means = images[..., 16:-16, 16:-16].float().mean((-2, -1)).reshape(-1, 3)
    turns = np.array([colorsys.rgb_to_hsv(*color)[0] for color in means.tolist()])
    return (turns + 0.5) % 1 - 0.5


def is_uniform(values: np.ndarray, low: float, high: float, slack: float = 0.0) -> bool:
    """Whether values fill a range evenly; slack is how far each can be off by rounding."""
    nearly = 0.05 * (high - low) + slack
    assert low - slack - 1e-6 <= values.min() < low + nearly
    assert high - nearly < values.max() <= high + slack + 1e-6
    return bool(stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > RARE)


def test_abc_turns_all_hues_and_copies_by_themselves() -> None:
    found = recipe("abc-shapes3d")({"image": uniform_images(4, 100, (200, 40, 40), 33, 33), "step": 0})["image"]
    turns = hues(found).reshape(-1, 2)
    assert is_uniform(turns.ravel(), -0.5, 0.5)
    assert abs(np.corrcoef(turns.T)[0, 1]) < 4.5 / math.sqrt(400)


def test_pose_images_are_moved_shaded_and_noisy() -> None:
    found = recipe("abc-pose")({"image": uniform_images(3, 100, (128, 128, 128)), "step": 0})
    assert is_uniform(found["homography"][..., 0, 2].numpy().ravel(), -6.4, 6.4)
    assert is_uniform(found["homography"][..., 1, 2].numpy().ravel(), -6.4, 6.4)
    middle = found["image"][..., 12:-12, 12:-12]
    # edges of the noise lift or lower the mean by up to 0.2 · 0.03
    assert is_uniform(middle.mean((-3, -2, -1)).numpy().ravel() - 128 / 255, -0.2, 0.2, slack=0.01)
    deviations = middle.std((-3, -2, -1))
    assert 0.047 < deviations.min() <= deviations.max() < 0.054
    black = (found["image"] < 0.2).float().mean()  # what a move uncovers: shares of 0.05 a side on average
    assert 0.08 < black < 0.14


def test_pose_edges_are_added_and_taken_away() -> None:
    step = torch.full((2, 100, 3, 128, 64), 70, dtype=torch.uint8)
    step[..., 32:] = 185
    found = recipe("abc-pose")({"image": step, "step": 1})
    rows = found["image"][..., 16:-16, :].double().mean((-3, -2)).flatten(0, 2).numpy()
    moves = found["homography"][..., 0, 2].flatten().numpy()[:, None]
    dark, light = rows[:, 10:20].mean(1, keepdims=True), rows[:, 44:54].mean(1, keepdims=True)
    plain = dark + (light - dark) * np.clip(np.arange(64) - moves - 31, 0, 1)
    excess = (rows - plain)[:, 20:44].sum(1)
    # along a row the length of the gradient sums to the height of the step, wherever a move puts it
    assert is_uniform(excess / (115 / 255), -0.2, 0.2, slack=0.1)


def test_only_real_pose_images_change_hue() -> None:
    part = torch.arange(400).view(4, 100) % 3
    batch = {"image": uniform_images(4, 100, (160, 90, 90)), "step": 2, "factors": {"part": part}}
    turns = hues(recipe("abc-pose", real=("part", (1,)))(batch)["image"]).reshape(-1, 2)
    real = (part == 1).numpy().ravel()
    assert np.abs(turns[~real]).max() < 0.01  # what the noise makes of it
    assert is_uniform(turns[real].ravel(), -0.5, 0.5)
    untouched = hues(recipe("abc-pose")(batch)["image"])
    assert np.abs(untouched).max() < 0.01


def test_backgrounds_of_pose_images_come_evenly_from_the_pool() -> None:
    levels = np.array([60, 75, 130, 180, 195])
    pool = np.broadcast_to(levels[:, None, None, None], (5, 70, 70, 3)).astype(np.uint8)
    image = uniform_images(3, 100, (255, 255, 255, 0)).clone()
    image[..., 3, 22:42, 22:42] = 255  # a white square on nothing
    found = recipe("abc-pose", pool=pool)({"image": image, "step": 0})["image"]
    assert tuple(found.shape) == (3, 100, 2, 3, 64, 64)
    assert found[..., 32, 32].mean() > 0.9
    behind = found[..., :12, :].double().mean((-3, -2, -1)).numpy().ravel() * 255

    def shaded(values: np.ndarray) -> np.ndarray:
        return np.clip((values[:, None] - levels) / 102 + 0.5, 0, 1).mean(1)

    assert stats.kstest(behind, shaded).pvalue > RARE


@pytest.mark.parametrize("amount", [0.0, 0.3])
def test_amounts_of_pose_images_are_options(amount: float) -> None:
    one = {"move": 0.0, "brightness": 0.0, "hue": 0.0, "noise": 0.0, "sobel": 0.0}
    batch = {"image": uniform_images(2, 150, (150, 90, 90), 24, 24), "step": 0, "factors": {"part": torch.ones(2, 150)}}

    def made(**options: Any) -> dict[str, Any]:
        return recipe("abc-pose", real=("part", 1), **{**one, **options})(batch)

    plain = batch["image"][:, :, None].expand(-1, -1, 2, -1, -1, -1) / 255
    moves = made(move=amount)["homography"][..., :2, 2].numpy().ravel()
    lifted = (made(brightness=amount)["image"] - plain).mean((-3, -2, -1)).numpy().ravel()
    found = made(hue=amount)["image"][..., 0, 0].reshape(-1, 3).tolist()
    turned = (np.array([colorsys.rgb_to_hsv(*color)[0] for color in found]) + 0.5) % 1 - 0.5
    for values, most in ((moves, 24 * amount), (lifted, amount), (turned, amount)):
        assert is_uniform(values, -most, most, slack=1e-5) if amount else np.abs(values).max() < 1e-6
    noisy = made(noise=amount / 10)["image"] - plain
    assert abs(noisy.std() - amount / 10) < 1e-3
    grains = made(salt_and_pepper=amount)["image"]
    for level in (0.0, 1.0):
        share = (grains == level).all(dim=-3).float().mean()
        assert abs(share - amount / 2) < 4 * math.sqrt(amount / 2 / (600 * 24 * 24)) + 1e-12
    step = torch.full((2, 150, 3, 8, 24), 77, dtype=torch.uint8)
    step[..., 12:] = 179
    batch = {**batch, "image": step}
    # the length of the gradient of a step of 0.4 is 0.2 on both of its pixels
    edges = (made(sobel=amount)["image"][..., 0, 4, 11] - 77 / 255).numpy().ravel()
    assert is_uniform(edges, -0.2 * amount, 0.2 * amount, slack=1e-5) if amount else np.abs(edges).max() < 1e-6


def test_options_of_pose_images_are_those_of_the_recipe_by_default() -> None:
    batch, options = small("abc-pose")
    stated = {"move": 0.1, "brightness": 0.2, "hue": 0.5, "noise": 0.05, "salt_and_pepper": 0.0, "sobel": 0.2}
    found = recipe("abc-pose", **options)(batch)["image"]
    assert torch.equal(recipe("abc-pose", **options, **stated)(batch)["image"], found)
    with pytest.raises(SetsupError, match="noise"):
        recipe("abc-pose", nois=0.1)
    with pytest.raises(SetsupError, match="Shift: fraction"):
        recipe("abc-pose", move=2)


def test_a_box_is_moved_over_its_photograph() -> None:
    """With margins around the box a move uncovers the photograph; the pool stands only behind what is clear."""
    y, x = torch.meshgrid(torch.arange(44), torch.arange(48), indexing="ij")
    photo = torch.stack([4 * x, 4 * y, 0 * x, 0 * x + 255]).to(torch.uint8)  # of its own places, opaque
    batch = {"image": photo.expand(2, 100, 4, 44, 48), "step": 0}
    pool = np.zeros((1, 44, 48, 3), np.uint8)
    pool[..., 2] = 255
    still = {"brightness": 0.0, "noise": 0.0, "sobel": 0.0, "pool": pool}
    found = recipe("abc-pose", size=(36, 40), **still)(batch)
    assert tuple(found["image"].shape) == (2, 100, 2, 3, 36, 40)
    assert found["image"][..., 2, :, :].max() == 0  # nowhere the pool
    corners = found["image"][..., :2, 18, 20].double() * 255 / 4 - torch.tensor([20, 18])  # shown by pixel (20, 18)
    rounded = 1 / 8  # of a pixel: half a level, of four from one pixel to the next
    assert np.abs((corners + found["homography"][..., :2, 2]).numpy()).max() <= rounded + 1e-6
    assert is_uniform(corners[..., 0].numpy().ravel() - 4, -4, 4, slack=1e-3)  # a tenth of 40 about the middle
    assert is_uniform(corners[..., 1].numpy().ravel() - 4, -3.6, 3.6, slack=1e-3)
    whole = recipe("abc-pose", **still)(batch)["image"]
    assert (whole[..., 2, :, :] == 1).any()  # without it the pool stands beside the photograph


# DCoDR, against a picture at a time with Pillow


def box_of(slots: Slots, height: int, width: int) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of one resized crop: torchvision's loop, with the keyed numbers of one image."""
    for attempt in range(10):
        area = height * width * float(slots.uniform(0.5, 1, 2 * attempt)[0])
        ratio = math.exp(float(slots.uniform(math.log(3 / 4), math.log(4 / 3), 2 * attempt + 1)[0]))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = int(slots.below(width - w + 1, 20)[0]), int(slots.below(height - h + 1, 21)[0])
            return left, top, left + w, top + h
    return 0, 0, width, height


def blurred(image: Image.Image, kernel: int = 5, sigma: float = 1.0) -> np.ndarray:
    weights = np.exp(-(np.arange(-(kernel // 2), kernel // 2 + 1) ** 2) / (2 * sigma**2))
    levels = np.asarray(image, dtype=np.float64)
    for axis in (0, 1):
        levels = ndimage.correlate1d(levels, weights / weights.sum(), axis=axis, mode="mirror")
    return np.rint(levels).astype(np.uint8)


def positive(image: Image.Image, slots: Slots) -> tuple[int, np.ndarray]:
    """Which of the four operations an image has, and what Pillow makes of it."""
    which = int(slots.below(4)[0])
    inner = slots.at(1 + which)
    if which == 0:
        return which, blurred(image)
    if which == 3:
        box = box_of(inner, image.height, image.width)
        return which, np.asarray(image.crop(box).resize((64, 64), Image.Resampling.BILINEAR))
    enhancer = (ImageEnhance.Contrast, ImageEnhance.Color)[which - 1]
    return which, np.asarray(enhancer(image).enhance(float(inner.uniform(1.8, 3)[0])))


@pytest.mark.long("renderings")
@pytest.mark.parametrize("library", ["OpenCV", "torch"])
def test_dcodr_is_pillow_s(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Bit for bit by torch; by OpenCV, which rounds where Pillow cuts off, within a level."""
    if library == "torch":
        monkeypatch.setattr(by_image, "cv2", None)
    shapes = setsup.load("shapes3d-procedural")
    rows = np.arange(0, 480_000, 3_761)
    images = np.concatenate([shapes.fetch(rows)["image"], pictures(1, 100)[0].permute(0, 2, 3, 1).numpy()])[:224]
    batch = {"image": torch.from_numpy(images).unflatten(0, (4, 56)).movedim(-1, -3), "step": 11}
    found = recipe("dcodr", seed=5)(batch)["positive_image"].movedim(-3, -1).flatten(0, 1).numpy()
    slots = keyed_slots({"step": 11}, 5, "dcodr", (4, 56)).at(0)
    chosen = np.zeros(4, dtype=int)
    for number, (pixels, result) in enumerate(zip(images, found, strict=True)):
        which, wanted = positive(Image.fromarray(pixels), slots.take(slice(number, number + 1)))
        chosen[which] += 1
        if library == "torch":
            np.testing.assert_array_equal(result, wanted)
        assert abs(result.astype(int) - np.asarray(wanted, int)).max() <= 1
    assert chosen.min() > 20


def test_dcodr_on_grey_images_is_dcodr_on_three_equal_channels() -> None:
    grey = pictures(2, 40, channels=1)
    one = recipe("dcodr")({"image": grey, "step": 0})["positive_image"]
    three = recipe("dcodr")({"image": grey.expand(2, 40, 3, 64, 64), "step": 0})["positive_image"]
    assert torch.equal(one.expand_as(three), three)
    copies = (one == grey).flatten(2).all(-1).float().mean()  # those whose saturation is raised
    assert 0.1 < copies < 0.42


def test_a_quarter_of_the_images_has_each_operation() -> None:
    """What each is is seen in its result: three bars, of two greys and of a colour."""
    image = torch.full((3, 64, 64), 110, dtype=torch.uint8)
    image[:, :, 20:40] = 140
    image[:, :, 40:] = torch.tensor([120, 130, 125], dtype=torch.uint8)[:, None, None]
    found = recipe("dcodr")({"image": image.expand(4, 300, 3, 64, 64), "step": 0})
    moved = (found["positive_homography"] != torch.eye(3)).flatten(2).any(-1)
    result = found["positive_image"].int()
    left, right = result[..., 0, 32, 5], result[..., 0, 32, 30]
    chroma = result[..., 1, 32, 60] - result[..., 0, 32, 60]
    contrast = ~moved & (right - left > 40)
    saturation = ~moved & (right - left == 30) & (chroma > 12)
    smooth = ~moved & (right - left == 30) & (chroma == 10)
    counts = [int(some.sum()) for some in (moved, contrast, saturation, smooth)]
    assert sum(counts) == 1200
    assert stats.chisquare(counts).pvalue > RARE
    assert (result[smooth][:, :, 32, 19] != 110).all()
    # 110 and 140 about the mean grey go apart by the factor, to the nearest level or two
    assert is_uniform((right - left)[contrast].numpy() / 30, 1.8, 3, slack=1 / 30)


def test_blur_alone_for_edges() -> None:
    images = pictures(1, 6)
    found = recipe("dcodr-blur")({"image": images, "step": 0})["positive_image"][0].permute(0, 2, 3, 1).numpy()
    for pixels, result in zip(images[0].permute(0, 2, 3, 1).numpy(), found, strict=True):
        np.testing.assert_array_equal(result, blurred(Image.fromarray(pixels)))


def areas(matrices: torch.Tensor, height: int, width: int, size: int = 64) -> np.ndarray:
    """Shares of the images' areas that resized crops show, flipped or not."""
    across, down = (size / matrices[..., at, at].abs() for at in (0, 1))
    return (across * down / (height * width)).numpy().ravel()


@pytest.mark.long("renderings")
def test_simsiam_happens_as_often_as_it_should() -> None:
    color = (150, 100, 80)
    found = recipe("dcodr-simsiam")({"image": uniform_images(4, 500, color), "step": 0})
    shares = areas(found["positive_homography"], 64, 64)
    assert 0.58 < shares.min() < 0.63
    assert shares.max() <= 1
    flips = (found["positive_homography"][..., 0, 0] < 0).double().mean()
    result = found["positive_image"][..., 30, 30].int()
    grey = (result == result[..., :1]).all(-1).double().mean()
    same = (result == torch.tensor(color)).all(-1).double().mean()  # neither jitter nor grey; a blur leaves no trace
    for share, wanted in ((flips, 0.5), (grey, 0.2), (same, 0.7 * 0.8)):
        assert abs(share - wanted) < 4 * math.sqrt(wanted * (1 - wanted) / 2000)


@pytest.mark.long("renderings")
def test_simsiam_jitters_by_its_amounts() -> None:
    grey = recipe("dcodr-simsiam")(rooms(4, 300, (160, 160, 160)))["positive_image"][..., 0, 30, 30].numpy().ravel()
    changed = grey[grey != 160]  # on a uniform grey only brightness does anything
    assert abs(len(changed) / 1200 - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 1200) + 0.01
    assert is_uniform((changed + 0.5) / 160, 0.6, 1.4, slack=0.01)
    red = recipe("dcodr-simsiam")(rooms(4, 300, (150, 110, 110)))["positive_image"][..., 30, 30].flatten(0, 1).double()
    jittered = red[(red != red[:, :1]).any(-1) & (red != torch.tensor([150, 110, 110])).any(-1)]
    turns = np.array([colorsys.rgb_to_hsv(*color)[0] for color in (jittered / 255).tolist()])
    assert is_uniform((turns + 0.5) % 1 - 0.5, -0.1, 0.1, slack=0.02)  # levels are whole
    chroma = (jittered.amax(-1) - jittered.amin(-1)).numpy() / 40  # times brightness, contrast and saturation
    product = np.random.default_rng(0).uniform(0.6, 1.4, (100_000, 3)).prod(axis=1)
    assert stats.kstest(chroma, product).pvalue > RARE


def cropped(image: torch.Tensor, matrix: np.ndarray, size: int) -> Image.Image:
    """The crop that a matrix stands for, by Pillow: cut out, resized, and mirrored where the matrix does."""
    flipped = matrix[0, 0] < 0
    left = ((size - 0.5 if flipped else -0.5) - matrix[0, 2]) / matrix[0, 0] + 0.5
    top = (-0.5 - matrix[1, 2]) / matrix[1, 1] + 0.5
    box = (left, top, left + size / abs(matrix[0, 0]), top + size / matrix[1, 1])
    picture = Image.fromarray(image.permute(1, 2, 0).numpy()).crop(tuple(round(float(edge)) for edge in box))
    picture = picture.resize((size, size), Image.Resampling.BILINEAR)
    return picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flipped else picture


@pytest.mark.long("renderings")
def test_simsiam_blurs_a_fifth_by_a_deviation_of_one_to_two() -> None:
    step = torch.full((3, 64, 64), 60, dtype=torch.uint8)
    step[..., 32:] = 170
    found = recipe("dcodr-simsiam")({"image": step.expand(1, 800, 3, 64, 64), "step": 1})
    side = []  # weights of neighbours in a row, from what a blur adds to a crop
    for result, matrix in zip(found["positive_image"][0], found["positive_homography"][0].numpy(), strict=True):
        before, after = (
            (row - row.min()) / np.ptp(row)
            for row in (np.asarray(cropped(step, matrix, 64), dtype=float)[32, :, 0], result[0, 32].double().numpy())
        )
        bend = before[:-2] + before[2:] - 2 * before[1:-1]
        side.append((after - before)[1:-1] @ bend / (bend @ bend))
    some = np.array([weight for weight in side if weight > 0.15])
    assert abs(len(some) / 800 - 0.2) < 4 * math.sqrt(0.2 * 0.8 / 800)
    least, most = (math.exp(-0.5 / sigma**2) / (1 + 2 * math.exp(-0.5 / sigma**2)) for sigma in (1, 2))
    assert least - 0.008 < some.min() < least + 0.008
    assert most - 0.008 < np.quantile(some, 0.98) < most + 0.008  # a step at the rim of a crop tells less


# appendix A


def thirteenth(name: str, images: torch.Tensor, **options: Any) -> dict[str, Any]:
    return recipe(f"dcodr-a/{name}", **options)({"image": images, "step": 4})


def test_flips_and_grey_and_blur_are_pillow_s() -> None:
    images = pictures(1, 5)
    for name, wanted in (
        ("horizontal-flip", lambda image: np.asarray(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT))),
        ("vertical-flip", lambda image: np.asarray(image.transpose(Image.Transpose.FLIP_TOP_BOTTOM))),
        ("grey", lambda image: np.asarray(image.convert("L").convert("RGB"))),
        ("blur", blurred),
    ):
        found = thirteenth(name, images)["positive_image"][0].permute(0, 2, 3, 1).numpy()
        for pixels, result in zip(images[0].permute(0, 2, 3, 1).numpy(), found, strict=True):
            np.testing.assert_array_equal(result, wanted(Image.fromarray(pixels)))


def test_affine_turns_by_forty_degrees_on_white() -> None:
    found = thirteenth("affine", uniform_images(2, 200, (10, 20, 30)))
    matrices = found["positive_homography"].numpy().reshape(-1, 3, 3)
    angles = np.degrees(np.arctan2(-matrices[:, 1, 0], matrices[:, 0, 0]))
    assert is_uniform(angles, -40, 40)
    np.testing.assert_allclose(matrices @ [31.5, 31.5, 1], np.tile([31.5, 31.5, 1], (400, 1)), atol=1e-9)
    corners = found["positive_image"][..., 0, 0].flatten(0, 1)[np.abs(angles) > 3]
    assert (corners == 255).all()
    assert (found["positive_image"][..., 32, 32].flatten(0, 1) == torch.tensor([10, 20, 30])).all()


def test_erasing_takes_a_rectangle_of_the_right_size() -> None:
    found = thirteenth("erasing", uniform_images(2, 300, (255, 255, 255)))["positive_image"].flatten(0, 1)
    gone = (found == 0).numpy()
    assert (gone == gone[:, :1]).all()
    assert set(found.unique().tolist()) == {0, 255}
    high, wide = gone[:, 0].any(2).sum(1), gone[:, 0].any(1).sum(1)
    np.testing.assert_array_equal(gone[:, 0].sum((1, 2)), high * wide)  # one rectangle, whole
    shares, ratios = high * wide / 64**2, high / wide
    assert 0.015 < shares.min() < 0.04
    assert 0.29 < shares.max() < 0.34
    assert 0.25 < ratios.min() < 0.4
    assert 2.5 < ratios.max() < 4
    # tall rectangles fit less often, and wide ones likewise
    assert abs(np.median(shares) - 0.175) < 0.03
    assert abs(np.median(np.log(ratios))) < 0.15


def test_hue_goes_away_from_where_it_is() -> None:
    found = thirteenth("hue", uniform_images(2, 300, (200, 40, 40), 34, 34))["positive_image"]
    turns = hues(found)
    assert is_uniform(np.abs(turns), 0.2, 0.5, slack=1 / 128)  # hues have 256 levels
    right = int((turns > 0).sum())
    assert stats.binomtest(right, 600).pvalue > RARE


@pytest.mark.parametrize(
    ("name", "low", "high", "level"), [("low-brightness", 0.2, 0.6, 250), ("high-brightness", 1.4, 1.8, 140)]
)
def test_brightness_is_of_its_range(name: str, low: float, high: float, level: int) -> None:
    found = thirteenth(name, uniform_images(2, 200, (level, level, level), 2, 2))["positive_image"]
    assert is_uniform((found[..., 0, 0, 0].numpy().ravel() + 0.5) / level, low, high, slack=1 / level)


@pytest.mark.parametrize(("name", "low", "high"), [("low-contrast", 0.3, 0.8), ("high-contrast", 1.8, 3)])
def test_contrast_is_of_its_range(name: str, low: float, high: float) -> None:
    image = torch.full((3, 8, 8), 108, dtype=torch.uint8)
    image[..., 4:] = 148
    found = thirteenth(name, image.expand(2, 200, 3, 8, 8))["positive_image"].int()
    apart = (found[..., 0, 0, 7] - found[..., 0, 0, 0]).numpy().ravel()
    assert is_uniform(apart / 40, low, high, slack=1 / 40)


def test_saturation_is_of_its_range() -> None:
    found = thirteenth("high-saturation", uniform_images(2, 200, (148, 128, 108), 2, 2))["positive_image"].int()
    apart = (found[..., 0, 0, 0] - found[..., 2, 0, 0]).numpy().ravel()
    assert is_uniform(apart / 40, 1.8, 3, slack=1 / 40)


@pytest.mark.parametrize(("name", "least"), [("dcodr-a/crop", 0.5), ("cmc-alexnet", 0.2), ("cmc-resnet", 0.08)])
def test_crops_show_their_share(name: str, least: float) -> None:
    found = recipe(name, size=32)({"image": uniform_images(2, 200, (1, 2, 3), 96, 96), "step": 0})
    matrices = found["positive_homography" if name.startswith("dcodr") else "homography"]
    shares = areas(matrices, 96, 96, size=32)
    assert least * 0.97 < shares.min() < least + 0.012
    assert 0.95 < shares.max() <= 1
    # a quarter of the way up, where every box fits
    assert stats.kstest(shares[shares < 0.7], stats.uniform(least, 0.7 - least).cdf).pvalue > RARE


# CMC


@pytest.mark.parametrize("name", ["cmc-resnet", "cmc-stl10"])
def test_cmc_views_are_those_of_one_crop(name: str) -> None:
    color = pytest.importorskip("skimage", reason="scikit-image is not installed").color
    height, width = (64, 60) if name == "cmc-resnet" else (96, 96)
    batch = {"image": pictures(2, 20, height, width), "step": 0}
    found = recipe(name, size=64)(batch)  # crops are enlarged: from 13 on, Pillow does some that it shrinks otherwise
    flipped = found["homography"][..., 0, 0] < 0
    assert 0.25 < flipped.float().mean() < 0.75
    for place in np.ndindex(2, 20):
        pixels = np.asarray(cropped(batch["image"][place], found["homography"][place].numpy(), 64))
        image = found["image"][place].permute(1, 2, 0).numpy()
        np.testing.assert_allclose(image, pixels.astype(int), atol=1)  # Pillow rounds after each of two passes
        pixels = image
        wanted = (color.rgb2lab(pixels) - [50, 6.025, -6.6895]) / [50, 92.208, 101.1675]
        views = torch.cat([found["L"][place], found["ab"][place]]).permute(1, 2, 0).numpy()
        np.testing.assert_allclose(views, wanted, atol=2e-3)


def test_views_of_rooms_share_their_patch() -> None:
    y, x = torch.meshgrid(torch.arange(60), torch.arange(80), indexing="ij")
    lead = (2, 8)
    batch = {
        "image": torch.stack([x, y, 0 * x]).to(torch.uint8).expand(*lead, 3, 60, 80),
        "depth": (1.0 + 80 * y + x).expand(*lead, 60, 80),
        "normals": torch.tensor([0.6, 0.0, -0.8]).expand(*lead, 60, 80, 3),
        "labels": (80 * y + x).expand(*lead, 60, 80),
        "step": 0,
    }
    found = recipe("cmc-nyu", size=16)(batch)
    shown = 80 * found["image"][..., 1, :, :].long() + found["image"][..., 0, :, :].long()
    assert torch.equal(found["labels"], shown)
    assert torch.equal(found["depth"], 1 + shown.float())
    turned = found["homography"][..., 0, 0] < 0
    assert 2 < turned.sum() < 14
    assert torch.equal(found["normals"][..., 5, 5, 0] < 0, turned)
    corners = found["homography"][..., :2, 2][~turned]
    assert len(corners.unique(dim=0)) > 1
    only = recipe("cmc-nyu", size=16, modalities={"image": "color", "labels": "label"})(batch)
    assert torch.equal(only["labels"], shown)
    assert only["depth"] is batch["depth"]


# oxels


def test_pixel_pairs_are_as_many_as_published() -> None:
    found = recipe("oxels-2d")({"image": pictures(1, 300, 32, 32), "step": 0})
    shares = found["positive"].float().mean(-1)
    assert abs(shares.mean() - 0.18) < 0.01
    assert (found["valid"] | ~found["positive"]).all()


@pytest.mark.parametrize(("keep", "share"), [(0.0, 0.0), (0.125, 0.09), (1.0, 0.72)])
def test_the_share_of_pixel_pairs_is_an_option(keep: float, share: float) -> None:
    batch = {"image": pictures(1, 300, 32, 32), "step": 0}
    shares = recipe("oxels-2d", keep=keep)(batch)["positive"].float().mean(-1)
    assert abs(shares.mean() - share) <= 0.04 * keep  # in proportion to the published 0.18 of 0.25
    plain, stated = (recipe("oxels-2d", **options)(batch)["partner"] for options in ({}, {"keep": 0.25}))
    assert torch.equal(plain, stated)


def rooms(sets: int, views: int, color: tuple[int, ...], height: int = 12, width: int = 14) -> dict[str, Any]:
    return {"image": uniform_images(sets, views, color, height, width), "step": 0}


def test_views_of_a_room_share_their_window_and_not_their_colors() -> None:
    batch = {"image": pictures(6, 2, 60, 80), "step": 0, "points": torch.full((6, 2, 3, 2), 30.25)}
    found = recipe("oxels-3d", size=40)(batch)
    matrices = found["homography"]
    assert torch.equal(matrices[:, 0], matrices[:, 1])
    assert len(matrices[:, 0].flatten(1).unique(dim=0)) > 3
    assert torch.equal(found["points"], (30.25 + matrices[..., None, :2, 2]).expand(6, 2, 3, 2))
    assert found["points_inside"].dtype == torch.bool
    assert "points" not in recipe("oxels-3d", size=40)({"image": batch["image"], "step": 0})
    means = found["image"].float().mean((-3, -2, -1))
    assert (means[:, 0] != means[:, 1]).all()


def test_colors_of_rooms_are_of_their_ranges() -> None:
    grey = recipe("oxels-3d", size=8)(rooms(300, 2, (130, 130, 130)))["image"]
    # the others leave a uniform grey as it is, but for 5 bits in a tenth of the images
    assert is_uniform(grey[..., 0, 4, 4].double().numpy().ravel() / 130, 0.7, 1.3, slack=8 / 130)
    red = recipe("oxels-3d", size=8)(rooms(300, 2, (160, 60, 60)))["image"].flatten(0, 1)[:, :, 4, 4].double()
    colored = red[(red != red[:, :1]).any(-1)]
    share = 1 - len(colored) / 600
    assert abs(share - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 600)
    turns = np.array([colorsys.rgb_to_hsv(*color)[0] for color in (colored / 255).tolist()])
    assert is_uniform((turns + 0.5) % 1 - 0.5, -0.1, 0.1, slack=0.02)  # levels are whole, in a tenth multiples of 8
    chroma = (colored.amax(-1) - colored.amin(-1)).numpy() / 100  # which hue keeps: brightness times saturation
    factors = np.linspace(0.7, 1.3, 2001)
    product = stats.kstest(chroma, lambda z: np.clip((z[:, None] / factors - 0.7) / 0.6, 0, 1).mean(1))
    assert product.pvalue > RARE
    assert chroma.min() < 0.8 * 0.7 - 0.01
    assert chroma.max() > 1.2 * 1.3 + 0.01


def test_rare_changes_of_rooms_are_rare() -> None:
    """Told apart by pictures that only they change: tones, edges, low bits."""
    bars = torch.tensor([60] * 8 + [72] * 4 + [120] * 4, dtype=torch.uint8).expand(400, 2, 3, 64, 16)
    found = recipe("oxels-3d", size=(64, 16))({"image": bars, "step": 0})["image"].flatten(0, 1)[:, 0, 8].double()
    low, middle, high = found[:, 1], found[:, 10], found[:, 15]
    wide = high - low > 200
    stretched, equalized = wide & (middle < 80), wide & (middle > 100)  # a fifth of the range, or half of the pixels
    coarse = (found % 8 == 0).all(-1)  # 5 bits, unless equalised afterwards
    for some, wanted in ((stretched, 0.1 * 0.9), (equalized, 0.1), (coarse, 0.1 * 0.9)):
        assert abs(some.double().mean() - wanted) < 4 * math.sqrt(wanted * (1 - wanted) / 800)
    checks = torch.from_numpy(np.indices((32, 32)).sum(0) % 2 * 60 + 90).to(torch.uint8).expand(400, 2, 3, 32, 32)
    smooth = recipe("oxels-3d", size=32)({"image": checks, "step": 0})["image"].flatten(0, 1)[:, 0].double()
    flat = ((smooth[:, 16, 15:17].diff().abs() < 2).flatten()).double().mean()
    assert abs(flat - 0.1) < 4 * math.sqrt(0.09 / 800)


def test_blur_of_rooms_has_a_deviation_of_one_to_three() -> None:
    step = torch.full((3, 12, 16), 60, dtype=torch.uint8)
    step[..., 8:] = 170
    found = recipe("oxels-3d", size=(12, 16))({"image": step.expand(1000, 2, 3, 12, 16), "step": 0})["image"]
    rows = found[..., 0, 6, :].flatten(0, 1).double()
    middle = ((rows[:, 8] - rows[:, 7]) / (rows[:, 15] - rows[:, 0])).numpy()  # weight of the middle of the kernel
    some = middle[middle < 0.6]
    assert abs(len(some) / 2000 - 0.1) < 4 * math.sqrt(0.09 / 2000)
    sigmas = np.linspace(0.5, 5, 1001)
    weights = 1 / np.exp(-0.5 * (np.arange(-3, 4)[:, None] / sigmas) ** 2).sum(0)
    sigma = np.interp(-some, -weights, sigmas)
    assert 0.9 < sigma.min() < 1.1
    assert abs(np.median(sigma) - 2) < 0.25
    assert 2.7 < sigma.max() < 3.8  # a level more or less tells much at the broad end
