"""A small Tetrominoes in the form of its release: a gzipped TFRecord file of images, masks and factors."""

import gzip
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.true_files.multi_dsprites import bytes_list, float_list, serialised
from tests.true_files.shapenet_renderings import framed

HELD = "objects"

NUMBER = 12
COLORS = np.array([color for color in product((0, 1), repeat=3) if 0 < sum(color) < 3], np.float32)
PLACES = ((2, 2), (18, 4), (6, 18), (20, 20))
PIECES = {
    1: ((0, 0), (0, 1), (1, 0), (1, 1)),
    2: ((0, 0), (0, 1), (0, 2), (0, 3)),
    3: ((0, 0), (1, 0), (2, 0), (3, 0)),
    4: ((0, 0), (0, 1), (0, 2), (1, 1)),
    5: ((0, 0), (1, 0), (2, 0), (2, 1)),
}


def factors(number: int) -> dict[str, npt.NDArray[np.float32]]:
    """Features of a record by name: the background and three tetrominoes."""
    chance = np.random.Generator(np.random.PCG64([35, number]))
    corners = np.array([(0, 0), *chance.permutation(PLACES)[:3]], np.float32)
    shape = np.array([0, *chance.integers(1, 6, 3)], np.float32)
    color = np.concatenate([np.zeros((1, 3), np.float32), COLORS[chance.integers(0, 6, 3)]])
    found = {"x": corners[:, 1], "y": corners[:, 0], "shape": shape, "color": color}
    return found | {"visibility": np.ones(4, np.float32)}


def drawn(number: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Image (35, 35, 3) and masks (4, 35, 35, 1)."""
    told = factors(number)
    owner = np.zeros((35, 35), int)
    for entity in (1, 2, 3):
        for row, column in PIECES[int(told["shape"][entity])]:
            top, left = int(told["y"][entity]) + 3 * row, int(told["x"][entity]) + 3 * column
            owner[top : top + 3, left : left + 3] = entity
    masks = 255 * (owner == np.arange(4)[:, None, None]).astype(np.uint8)
    return (255 * told["color"][owner]).astype(np.uint8), masks[..., None]


@cache
def content() -> bytes:
    """Content of the file."""
    records = []
    for number in range(NUMBER):
        image, masks = drawn(number)
        lists = {name: float_list(values) for name, values in factors(number).items()}
        records.append(framed(serialised({"image": bytes_list(image), "mask": bytes_list(masks), **lists})))
    return gzip.compress(b"".join(records), 1, mtime=0)


def write(folder: Path) -> None:
    """Write the release."""
    (folder / "tetrominoes_train.tfrecords").write_bytes(content())
