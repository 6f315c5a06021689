"""Random resized crops of photographs of several sizes, from JPEG files to one array, against the ways of an item."""

import io
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchmarks.decoding import over
from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, rate
from setsup.datasets import images
from setsup.datasets.own.table import open_table
from setsup.loading.resizing import RandomResizedCrop
from setsup.loading.resizing.fetch import ResizedRows

__all__ = ["rows"]

TOPIC = "resizing"
CLOCK: dict[str, Any] = {"clock": time.perf_counter, "seconds": 0.2, "blocks": 9}
RESULT = 224
SIZES = {"about 500 × 375": (375, 500, 64), "about 1600 × 1200": (1200, 1600, 32), "about 4000 × 3000": (3000, 4000, 8)}
"""Height, width, and number of photographs, whose sizes differ by up to a tenth."""

Pixels = npt.NDArray[np.uint8]
Item = Callable[[Path], Any]


def rows(full: bool) -> Iterator[Row]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    before = images.threads
    try:
        for said, (height, width, count) in SIZES.items():
            height, width, count = sized((height, width, count), (300, 400, 10))
            with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
                paths = _photographs(Path(folder), height, width, count)
                for threads in sorted({1, min(cores, 8)}):
                    images.threads = threads
                    yield from _crops(Path(folder), paths, said, threads)
    finally:
        images.threads = before


def _crops(folder: Path, paths: Sequence[Path], said: str, threads: int) -> Iterator[Row]:
    """How much longer items of a DataLoader take: each reads, decodes whole, crops and resizes one photograph."""
    table = open_table(folder / "photos.csv")
    resized = ResizedRows(table, RandomResizedCrop(RESULT), {"image": "color"})
    indices, steps = np.arange(len(paths))[None], iter(range(1 << 30))
    out = {"image": np.empty((1, len(paths), RESULT, RESULT, 3), np.uint8)}

    def ours() -> None:
        resized.fetch(indices, next(steps), out)

    def side(item: Item) -> Side:
        slots = np.empty((len(paths), RESULT, RESULT, 3), np.uint8)

        def fill(numbered: tuple[int, Path]) -> None:
            slots[numbered[0]] = item(numbered[1])

        return Side(lambda: over(list(enumerate(paths)), fill, threads), len(paths))

    items = _items()
    found = alternate({"ours": Side(ours, len(paths)), **{name: side(item) for name, item in items.items()}}, **CLOCK)
    threaded = "1 thread" if threads == 1 else f"{threads} threads"
    what = f"random resized crops to {RESULT} × {RESULT} of JPEG of {said}, {threaded}"
    for name in items:
        sides = rate(found["ours"], "images"), name, rate(found[name], "images")
        yield Row(TOPIC, what, *sides, ratio(found[name], found["ours"]))


def _items() -> dict[str, Item]:
    """From a path to a result, by name."""
    found: dict[str, Item] = {"Pillow, as torchvision": _by_pillow}
    if (cv2 := peer("opencv-python-headless")) is not None:
        cv2.setNumThreads(1)

        def decoded(path: Path) -> Pixels:
            content = np.frombuffer(path.read_bytes(), np.uint8)
            return np.asarray(cv2.imdecode(content, cv2.IMREAD_COLOR_RGB))

        def by_opencv(path: Path, method: int) -> Any:
            pixels = decoded(path)
            top, left, tall, wide = _box(*pixels.shape[:2])
            window = pixels[top : top + tall, left : left + wide]
            return cv2.resize(window, (RESULT, RESULT), interpolation=method)

        found["OpenCV, bilinear without antialiasing"] = lambda path: by_opencv(path, cv2.INTER_LINEAR)
        found["OpenCV, means of areas"] = lambda path: by_opencv(path, cv2.INTER_AREA)
        if (albumentations := peer("albumentations")) is not None:
            crop = albumentations.RandomResizedCrop((RESULT, RESULT), scale=(0.08, 1), p=1)
            found["albumentations, without antialiasing"] = lambda path: crop(image=decoded(path))["image"]
    return found


def _box(height: int, width: int) -> tuple[int, int, int, int]:
    """Top, left, height and width of a random crop of 8 % of the area or more."""
    from benchmarks.per_image import box_of  # its module imports OpenCV, which may be missing

    return box_of(height, width, 0.08)


def _by_pillow(path: Path) -> Pixels:
    with Image.open(io.BytesIO(path.read_bytes())) as image:
        color = image.convert("RGB")
    top, left, tall, wide = _box(color.height, color.width)
    window = color.crop((left, top, left + wide, top + tall))
    return np.asarray(window.resize((RESULT, RESULT), Image.Resampling.BILINEAR))


def _photographs(folder: Path, height: int, width: int, count: int) -> list[Path]:
    """Smooth pictures with the noise of a sensor, of about as many bytes per pixel as photographs, and their table."""
    noise = np.random.default_rng(4)
    random.seed(4)
    lines, paths = ["path,subject"], []
    for number in range(count):
        tall, wide = (int(side * random.uniform(0.9, 1)) for side in (height, width))
        coarse = noise.integers(0, 256, (tall // 16, wide // 16, 3), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(coarse).resize((wide, tall), Image.Resampling.BICUBIC), dtype=np.int16)
        noisy = smooth + noise.integers(-5, 6, (tall, wide, 1), dtype=np.int16)
        paths.append(folder / f"{number:03}.jpg")
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(paths[-1], quality=90)
        lines.append(f"{paths[-1].name},{number % 2}")
    (folder / "photos.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths
