"""Pictures a second of the data sets that are drawn from MNIST, on one core and one thread."""

import importlib
import tempfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

import setsup
from benchmarks.measure import Side, Spread, alternate, ratio
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, rate
from setsup.datasets.benchmarks.affine_mnist.affine import affine_maps
from setsup.datasets.benchmarks.affine_mnist.dataset import RANGES
from setsup.datasets.benchmarks.mnist import Mnist

__all__ = ["rows"]

TOPIC = "derived"
SIZE, SIDE, LEAST = 256, 40, 20_000
DIGITS = 2048

Array = np.ndarray[Any, Any]


def rows(full: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        folder = Path(name)
        _write(folder)
        yield from _affine(folder)
        for recipe in ("irm", "pixels"):
            colored = setsup.load("colored-mnist", folder, recipe=recipe)
            sets = cycle(_sets(len(colored)))
            found = alternate({"ours": Side(lambda colored=colored, sets=sets: colored.fetch(next(sets)), SIZE)})[
                "ours"
            ]
            what = f"colored-mnist, {recipe}, {SIZE} random rows a fetch"
            yield Row(TOPIC, what, rate(found, "images"), "", "", Spread.of(1 / found), "/s")


def _affine(folder: Path) -> Iterator[Row]:
    """Ours from the files to the images; the others from pictures in memory and matrices that are there already."""
    affine, mnist = setsup.load("affine-mnist", folder), Mnist(folder)
    some = _sets(len(affine))[0]
    pictures = mnist.fetch(some // 33)["image"][..., 0]
    maps = affine_maps(**{name: affine.factors.column(name)[some] for name in RANGES})
    turns = cycle(_sets(len(affine)))
    sides: dict[str, Side] = {"ours": Side(lambda: affine.fetch(next(turns)), SIZE)}
    sides |= {name: Side(run, SIZE) for name, run in _others(pictures, maps).items()}
    found = alternate(sides)
    what = f"affine-mnist, {SIZE} random rows a fetch"
    yield Row(TOPIC, what, rate(found["ours"], "images"), "", "", Spread.of(1 / found["ours"]), "/s", at_least(LEAST))
    for name in list(sides)[1:]:
        said = rate(found["ours"], "images"), name, rate(found[name], "images")
        yield Row(TOPIC, what, *said, ratio(found[name], found["ours"]))


def _others(pictures: Array, maps: Array) -> dict[str, Callable[[], object]]:
    """The same copies made by others, bilinear and with nothing outside."""
    found: dict[str, Callable[[], object]] = {}
    whole = np.tile(np.eye(3), (len(maps), 1, 1))
    whole[:, :2] = maps
    centred, onto = np.eye(3), np.eye(3)
    centred[:2, 2], onto[:2, 2] = -13.5, (SIDE - 1) / 2
    forth = onto @ whole @ centred  # from pixels (x, y) of the picture to those of the canvas
    back = np.linalg.inv(forth)
    swapped = back[:, [1, 0, 2]][:, :, [1, 0, 2]]

    def by_scipy() -> None:
        for picture, matrix in zip(pictures, swapped, strict=True):
            ndimage.affine_transform(picture, matrix, output_shape=(SIDE, SIDE), order=1, mode="grid-constant")

    found["scipy.ndimage.affine_transform, one at a time"] = by_scipy
    if (cv2 := peer("opencv-python-headless")) is not None:
        cv2.setNumThreads(1)

        def by_opencv() -> None:
            for picture, matrix in zip(pictures, forth[:, :2], strict=True):
                cv2.warpAffine(picture, matrix, (SIDE, SIDE), flags=cv2.INTER_LINEAR)

        found["OpenCV warpAffine, one at a time"] = by_opencv
    if peer("torch") is not None:
        torch = importlib.import_module("torch")
        # to −1 … 1 between the outer edges of either picture, as affine_grid has them
        from_unit, to_unit = np.diag([SIDE / 2, SIDE / 2, 1.0]), np.diag([2 / 28, 2 / 28, 1.0])
        from_unit[:2, 2], to_unit[:2, 2] = (SIDE - 1) / 2, -27 / 28
        theta = torch.from_numpy((to_unit @ back @ from_unit)[:, :2]).float()

        def by_torch() -> None:
            grid = torch.nn.functional.affine_grid(theta, (len(theta), 1, SIDE, SIDE), align_corners=False)
            images = torch.from_numpy(pictures)[:, None].float()
            drawn = torch.nn.functional.grid_sample(images, grid, align_corners=False)
            drawn.round_().to(torch.uint8)

        found["torch affine_grid and grid_sample, the batch"] = by_torch
    return found


def _sets(count: int) -> Array:
    return np.random.default_rng(0).integers(0, count, (64, SIZE))


def _write(folder: Path) -> None:
    """MNIST's files, unpacked: strokes about as wide and as long as digits are, of which most pixels are nothing."""
    dice = np.random.default_rng(0)
    y, x = np.mgrid[:28, :28] - 13.5
    ends = dice.uniform(-9, 9, (DIGITS, 2, 2, 1, 1))
    way = ends[:, 1] - ends[:, 0]
    along = ((x - ends[:, 0, 0]) * way[:, 0] + (y - ends[:, 0, 1]) * way[:, 1]) / np.maximum((way**2).sum(1), 1e-9)
    along = along.clip(0, 1)
    away = np.hypot(x - ends[:, 0, 0] - along * way[:, 0], y - ends[:, 0, 1] - along * way[:, 1])
    pictures = (255 * (2.0 - away).clip(0, 1)).astype(np.uint8)
    for prefix in ("train", "t10k"):
        count = DIGITS.to_bytes(4, "big")
        head = bytes([0, 0, 8, 3]) + count + 2 * (28).to_bytes(4, "big")
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(head + pictures.tobytes())
        labels = dice.integers(0, 10, DIGITS).astype(np.uint8).tobytes()
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1]) + count + labels)
