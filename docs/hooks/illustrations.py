"""Images of the gallery of datasets.

``python docs/hooks/illustrations.py`` makes them again. Most datasets may not be shown: what stands for them are the
drawings that the tests write in the published formats, read by the adapters. Only the images of `shapes3d` are genuine
(Apache-2.0); ``--shapes3d FILE`` cuts them from ``notebook_grid.png``, the figure of the dataset's own notebook.
"""

import argparse
import importlib
import logging
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageOps

import setsup
from setsup.files import load_manifest, manifest_names

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "images" / "datasets"
TILE, GAP, COLUMNS, ROWS = 80, 4, 4, 2
SIZE = (COLUMNS * (TILE + GAP) - GAP, ROWS * (TILE + GAP) - GAP)
GENUINE = "shapes3d"
RENDERED = "shapes3d-procedural"
PREPARED = {
    "cars3d-procedural": {"objects": 8},
    "smallnorb-procedural": {"toys": 2},
    "abc-pose-procedural": {"models": 2, "codebook": 1, "views": 2, "real": 4, "tests": 2, "size": 80},
}
"""Substitutes that are rendered to files: options of their preparation."""
OWN = "table"
SAME = {
    "mpi3d-real": "mpi3d-toy",
    "mpi3d-realistic": "mpi3d-toy",
    "mpi3d-complex": "mpi3d-toy",
    "imagenet-100": "imagenet",
}
"""Datasets whose drawings are those of another one, of the same kind of images."""


def origin(name: str) -> str:
    """Where the image of a dataset comes from, in a few words."""
    if name == GENUINE:
        return "from the dataset"
    return "rendered by setsup" if name == RENDERED or name in PREPARED else "drawn by setsup"


def illustration(name: str) -> Image.Image:
    """The image of a dataset, made of nothing but what setsup and its tests bring."""
    if name == OWN:
        return empty_frames()
    if name == RENDERED:
        return grid(distinct(setsup.load(RENDERED)))
    known = SAME.get(name, name)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / known
        root.mkdir()
        if name in PREPARED:
            importlib.import_module(load_manifest(name).adapter).prepare(root, **PREPARED[name])
            return grid(distinct(setsup.load(name, root=root)))
        importlib.import_module(f"tests.true_files.{known.replace('-', '_')}").write(root)
        return grid(distinct(setsup.load(known, root=root)))


def distinct(dataset: setsup.datasets.Dataset) -> list[np.ndarray]:
    """Images of rows from all over a dataset, without those that are of one colour: files of tests have gaps."""
    modality = "image" if "image" in dataset.modalities else "preview"
    wanted = COLUMNS * ROWS
    for count in (wanted, 4 * wanted, 512 * wanted):
        rows = np.unique(np.linspace(0, len(dataset) - 1, count).round().astype(int))
        found = [image for row in rows if np.ptp(image := dataset.fetch([row], [modality])[modality][0])]
        if len(found) >= wanted or count >= len(dataset):
            break
    return [found[place] for place in np.linspace(0, len(found) - 1, wanted).round().astype(int)]


def grid(images: list[np.ndarray]) -> Image.Image:
    """Images as square tiles."""
    sheet = Image.new("RGBA", SIZE)
    for number, array in enumerate(images):
        if array.shape[-1] == 2:  # the two colours of Colored MNIST
            array = np.concatenate([array, 0 * array[..., :1]], axis=-1)
        image = Image.fromarray(array.squeeze()).convert("RGB")
        method = Image.Resampling.NEAREST if min(image.size) < TILE else Image.Resampling.LANCZOS
        place = (number % COLUMNS * (TILE + GAP), number // COLUMNS * (TILE + GAP))
        sheet.paste(ImageOps.fit(image, (TILE, TILE), method), place)
    return sheet


def published(figure: Path) -> Image.Image:
    """Eight of the images in the figure of the notebook of `shapes3d`."""
    with Image.open(figure) as opened:
        whole = np.asarray(opened.convert("RGB"))
    starts = (8, 181, 355, 528, 701)
    places = ((0, 0), (0, 2), (1, 2), (1, 4), (2, 1), (2, 4), (3, 0), (3, 4))
    return grid([whole[starts[row] : starts[row] + 143, starts[k] : starts[k] + 143] for row, k in places])


def empty_frames() -> Image.Image:
    """Frames for the user's own images."""
    scale = 4
    large = Image.new("RGBA", (SIZE[0] * scale, SIZE[1] * scale))
    draw = ImageDraw.Draw(large)
    for number in range(COLUMNS * ROWS):
        left, top = number % COLUMNS * (TILE + GAP) * scale, number // COLUMNS * (TILE + GAP) * scale
        side = TILE * scale
        shade = ("#e8eaf6", "#c5cae9")[number // COLUMNS]
        draw.rounded_rectangle((left, top, left + side - 1, top + side - 1), 20, fill=shade)
        hill = [(0.1, 0.85), (0.4, 0.4), (0.58, 0.66), (0.7, 0.52), (0.92, 0.85)]
        draw.polygon([(left + x * side, top + y * side) for x, y in hill], fill="#7986cb")
        x = 0.2 + 0.2 * (number % COLUMNS)
        draw.ellipse((left + x * side, top + 0.12 * side, left + (x + 0.17) * side, top + 0.29 * side), fill="#3f51b5")
    return large.resize(SIZE, Image.Resampling.LANCZOS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes3d", type=Path, metavar="FILE", help="notebook_grid.png of its repository")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    logging.disable(logging.WARNING)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["SETSUP_CACHE"] = cache
        for name in manifest_names():
            if name == GENUINE and given.shapes3d is None:
                continue
            made = published(given.shapes3d) if name == GENUINE else illustration(name)
            made.save(FOLDER / f"{name}.webp", quality=80, method=6)
            print(name, (FOLDER / f"{name}.webp").stat().st_size)


if __name__ == "__main__":
    main()
