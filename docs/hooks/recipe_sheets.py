"""Sheets of the papers' recipes: a row for each, with an image and eight keyed results of it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import rendered_sheets
from PIL import Image

from setsup.datasets import Dataset
from setsup.reports.page import CAPTIONS, GAP, GUTTER, MARGIN, PADDING, Cell, Page
from setsup.reports.text_layout import wrap_text

RESULTS, CELL, LABEL = 8, Cell(64, 64, 64), 270
Row = tuple[str, np.ndarray, Sequence[np.ndarray]]
"""Words, a picture, and results of it."""


def abc(shapes: Dataset) -> Image.Image:
    image, other = picture(shapes, "cube"), picture(shapes, "cylinder", wall_hue=0.3)
    drawn = np.concatenate([image, 255 * alone(shapes, "cube")], axis=-1)
    real = np.concatenate([other, np.full_like(other[..., :1], 255)], axis=-1)
    posed = {"pool": waves(6, 96, 96), "real": ("part", 1)}
    rows = [
        ("abc-shapes3d\nhue; copies side by side", image, pairs("abc-shapes3d", image)),
        (
            "abc-pose\na rendering: move, background, brightness, noise, edges",
            drawn,
            pairs("abc-pose", drawn, 0, **posed),
        ),
        ("abc-pose\na real picture: also its hue", real, pairs("abc-pose", real, 1, **posed)),
    ]
    return sheet(rows, 'recipe("abc-shapes3d"), recipe("abc-pose", pool=…, real=…)')


def dcodr(shapes: Dataset) -> Image.Image:
    rows = []
    for name, shape, words in (
        ("dcodr", "cylinder", "one of blur, contrast, saturation, crop"),
        ("dcodr-blur", "sphere", "blur by 5 x 5 pixels, always the same"),
        ("dcodr-simsiam", "cube", "crop, flip; jitter 0.3, grey 0.2, blur 0.2"),
    ):
        image = picture(shapes, shape)
        rows.append((f"{name}\n{words}", image, results(name, image)))
    return sheet(rows, 'recipe("dcodr"), …: positive_image')


THIRTEEN = {
    "horizontal-flip": "",
    "vertical-flip": "",
    "affine": "turned by -40 … 40 degrees",
    "erasing": "0.02 … 0.33 of the area",
    "hue": "0.2 … 0.5 turns either way",
    "low-brightness": "times 0.2 … 0.6",
    "high-brightness": "times 1.4 … 1.8",
    "low-contrast": "times 0.3 … 0.8",
    "high-contrast": "times 1.8 … 3",
    "grey": "",
    "high-saturation": "times 1.8 … 3",
    "blur": "5 x 5 pixels, σ = 1",
    "crop": "0.5 … 1 of the area",
}


def thirteen(shapes: Dataset) -> Image.Image:
    image = picture(shapes, "capsule")
    rows = [(f"{name}\n{words}", image, results(f"dcodr-a/{name}", image)) for name, words in THIRTEEN.items()]
    return sheet(rows, 'recipe("dcodr-a/horizontal-flip"), recipe("dcodr-a/vertical-flip"), …')


def cmc(shapes: Dataset) -> Image.Image:
    image = picture(shapes, "sphere")
    rows = []
    for name, size in (("cmc-alexnet", 64), ("cmc-resnet", 64), ("cmc-stl10", 48)):
        found = batch_of(name, image, size=size)
        rows.append((f"{name}, size={size}\nthe crop, which both views show", image, colors_of(found["image"])))
        for view, channel, words in (("L", 0, "view L"), ("ab", 0, "view ab: a"), ("ab", 1, "view ab: b")):
            if name == "cmc-alexnet":
                grey = (found[view][0, :, channel : channel + 1].clamp(-1, 1) + 1) / 2
                rows.append((words, image, colors_of(grey[None])))
    rows += room_rows()
    return sheet(rows, 'recipe("cmc-alexnet"), …\nchannels of views: -1 is black, 1 is white')


def room_rows() -> list[Row]:
    """Patches of one rendered room, in all its modalities."""
    import torch

    from setsup.methods.recipes import recipe
    from setsup.rendered.dataset import RenderedDataset
    from setsup.scenes.recipes import Room

    kinds = {"image": "color", "depth": "depth", "normals": "normal", "instances": "label"}
    rooms = RenderedDataset(Room(rooms=1, pairs=1, size=(120, 160), seed=1), renderer="embree")
    room = rooms.fetch([0], list(kinds))
    batch = {name: torch.from_numpy(np.repeat(found[None], RESULTS, axis=1)) for name, found in room.items()}
    batch["image"] = batch["image"].movedim(-1, -3)
    found = recipe("cmc-nyu", size=64, modalities=kinds)({**batch, "step": 0})
    found["image"] = found["image"].movedim(-3, -1)
    rows: list[Row] = []
    for name in kinds:
        # one scale of greys for the room and all its patches
        first, *made = drawn(name, [room[name][0], *found[name][0].numpy()])
        words = "cmc-nyu, size=64\nthe patch of a room of 120 x 160, which all views show" if name == "image" else name
        rows.append((words, first[::3, ::3], made))
    return rows


def drawn(name: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Modalities as bytes to look at, all on the scale of the first."""
    if name != "depth":
        return [rendered_sheets.picture(name, array) for array in arrays]
    near, far = arrays[0][arrays[0] > 0].min(), arrays[0].max()
    return [
        np.where(a > 0, 255 - 225 * (a - near) / (far - near), 0).clip(0, 255).astype(np.uint8)[..., None]
        for a in arrays
    ]


def oxels(shapes: Dataset) -> Image.Image:
    import torch

    from setsup.methods.recipes import recipe

    image = picture(shapes, "cylinder")
    planar = batch_of("oxels-2d", image)
    room = [picture(shapes, "cube", orientation=orientation) for orientation in (-30.0, 30.0)]
    scenes = torch.from_numpy(np.stack(room)).movedim(-1, -3).expand(RESULTS, 2, 3, 64, 64)
    views = recipe("oxels-3d", size=48)({"image": scenes, "step": 0})["image"]
    rows = [
        ("oxels-2d\nview 1: turned and distorted", image, colors_of(planar["view_1"])),
        ("view 2: cut out nearby", image, colors_of(planar["view_2"])),
        ("oxels-3d, size=48\none view of a scene", room[0], colors_of(views[None, :, 0])),
        ("the other: the same window, colours of its own", room[1], colors_of(views[None, :, 1])),
    ]
    return sheet(rows, 'recipe("oxels-2d"), recipe("oxels-3d")')


SHEETS: dict[str, Callable[[Dataset], Image.Image]] = {
    "recipes-abc": abc,
    "recipes-dcodr": dcodr,
    "recipes-thirteen": thirteen,
    "recipes-cmc": cmc,
    "recipes-oxels": oxels,
}
"""What makes the sheet of each name of the dataset of the other pictures."""


def picture(shapes: Dataset, shape: str, **levels: float) -> np.ndarray:
    """One picture, (64, 64, 3) uint8."""
    wanted = {"scale": 1.25, "orientation": 0.0, "wall_hue": 0.6, "floor_hue": 0.3, "object_hue": 0.0, **levels}
    words = [f"shape == '{shape}'", *(f"{name} == {level}" for name, level in wanted.items())]
    return shapes.where(" and ".join(words)).fetch(np.array([0]))["image"][0]


def alone(shapes: Dataset, shape: str) -> np.ndarray:
    """Where the object is, (64, 64, 1) uint8: what stays as it is when the room has other hues, but for the sky."""
    one, other = (picture(shapes, shape, wall_hue=wall, floor_hue=floor) for wall, floor in ((0.6, 0.3), (0.1, 0.8)))
    found = (one == other).all(axis=-1, keepdims=True) & (one != one[0, 0]).any(axis=-1, keepdims=True)
    return found.astype(np.uint8)


def waves(count: int, height: int, width: int) -> np.ndarray:
    """Pictures of slow waves of colour, to stand behind others."""
    y, x = np.mgrid[:height, :width, :count][:2] / 9
    phases = np.arange(count) * 1.7
    channels = [np.sin(x * (0.4 + 0.2 * k) + phases + k) * np.cos(y * (0.9 - 0.2 * k) - phases) for k in range(3)]
    return np.moveaxis(np.stack(channels, axis=-1) * 100 + 128, 2, 0).astype(np.uint8)


def batch_of(name: str, image: np.ndarray, part: int = 0, **options: Any) -> dict[str, Any]:
    """What a recipe makes of a batch of one image eight times."""
    import torch  # only here, so that the other pictures need none

    from setsup.methods.recipes import recipe

    pixels = torch.from_numpy(image).movedim(-1, 0).expand(1, RESULTS, -1, -1, -1)
    factors = {"part": torch.full((1, RESULTS), part)}
    return recipe(name, **options)({"image": pixels, "step": 0, "factors": factors})


def colors_of(images: Any) -> list[np.ndarray]:
    """Pictures of the first set, as arrays of bytes."""
    pixels = images[0].movedim(-3, -1)
    return list((pixels if pixels.dtype.itemsize == 1 else (pixels * 255).round().byte()).numpy())


def results(name: str, image: np.ndarray) -> list[np.ndarray]:
    return colors_of(batch_of(name, image)["positive_image"])


def pairs(name: str, image: np.ndarray, part: int = 0, **options: Any) -> list[np.ndarray]:
    """Both copies of half of the images, next to each other."""
    return colors_of(batch_of(name, image, part, **options)["image"][:, : RESULTS // 2].flatten(1, 2))


def sheet(rows: Sequence[Row], title: str) -> Image.Image:
    """One row below the other: words, a picture, its results."""
    across = LABEL + CELL.width + GUTTER + CELL.span(RESULTS) + 2 * PADDING
    page = Page(across + 2 * MARGIN, CELL.rise(len(rows)) + 2 * PADDING, title, CELL)
    page.card(MARGIN, page.top, across, CELL.rise(len(rows)) + 2 * PADDING)
    left = MARGIN + PADDING + LABEL
    for number, (words, image, made) in enumerate(rows):
        top = page.top + PADDING + number * (CELL.height + GAP)
        page.write(MARGIN + PADDING, top + 4, wrap_text(words, LABEL - GUTTER, CAPTIONS))
        page.place(image, left, top)
        for place, result in enumerate(made):
            page.place(result, left + CELL.width + GUTTER + place * (CELL.width + GAP), top)
    return page.image
