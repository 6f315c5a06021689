import hashlib
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from setsup.datasets.benchmarks.shapes3d_procedural import ProceduralShapes3D, open
from setsup.errors import DataError, RowError
from setsup.scenes.shapes3d import FRAMING, factors
from setsup.scenes.shapes3d_caster import HUE_FIFTHS, SKY, Samples, planes, trace

SIZES = (10, 10, 10, 8, 4, 15)
GOLDEN = "ce16f08e62d8d3c1593225d269b8710edd73c72c006876a7c461b401d2fd76cd"


@pytest.fixture(scope="module")
def shapes() -> ProceduralShapes3D:
    return open()


def _digest(images: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(images).tobytes()).hexdigest()


def _golden_rows() -> np.ndarray:
    """Every shape, scale, orientation and hue at least once."""
    return (np.arange(30) * 16_661 + 7) % 480_000


def _direct(row: int) -> np.ndarray:
    """One image from its samples' colours, without the planes that all images of a state share."""
    *hues, scale, shape, orientation = np.unravel_index(row, SIZES)
    samples: Samples = trace(int(scale), int(shape), int(orientation))
    table = np.array([FRAMING.sky, *(HUE_FIFTHS[hue] / 5 for hue in hues)])
    light = np.where(samples.surface == SKY, 1.0, samples.light)
    colors = np.minimum(table[samples.surface] * light[..., None] + samples.gloss[..., None], 1.0)
    picture = np.zeros((64, 64, 3), int)
    for surface in range(4):
        seen = samples.surface == surface
        total = sum(np.where(seen[..., None], colors, 0.0))
        picture += np.floor(total * 255 / len(seen) + 0.5 * seen.all(axis=0)[..., None]).astype(int)
    return picture


def test_describes_itself(shapes: ProceduralShapes3D) -> None:
    assert shapes.name == "shapes3d-procedural"
    assert len(shapes) == 480_000
    assert shapes.factors.is_grid
    assert shapes.factors.factors == factors()
    assert shapes.modalities["image"].shape == (64, 64, 3)
    assert repr(shapes) == "ProceduralShapes3D(480,000 rows)"
    assert "ot the published" in str(ProceduralShapes3D.__doc__)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
def test_indices_of_any_shape(shapes: ProceduralShapes3D, shape: tuple[int, ...]) -> None:
    rows = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 77_777
    images = shapes.fetch(rows, ["image"])["image"]
    assert images.shape == (*shape, 64, 64, 3)
    assert images.dtype == np.uint8
    for place in np.ndindex(shape):
        np.testing.assert_array_equal(images[place], shapes.fetch(int(rows[place]))["image"])


@pytest.mark.long("large or genuine files")
def test_pictures_equal_direct_casting_in_any_batch(shapes: ProceduralShapes3D) -> None:
    rows = np.random.default_rng(0).integers(0, 480_000, 40)
    images = shapes.fetch(rows)["image"]
    for row, image in zip(rows, images, strict=True):
        np.testing.assert_array_equal(image, _direct(row))
    order = np.random.default_rng(1).permutation(40)
    np.testing.assert_array_equal(open().fetch(rows[order])["image"], images[order])


def test_golden_pictures(shapes: ProceduralShapes3D) -> None:
    """The same bytes on every machine; a change of the images needs a line in the release notes."""
    rows = _golden_rows()
    codes = np.unravel_index(rows, SIZES)
    assert [len(np.unique(code)) for code in codes] == list(SIZES)
    assert _digest(shapes.fetch(rows)["image"]) == GOLDEN


@pytest.mark.long("large or genuine files")
def test_golden_states() -> None:
    """All that any picture is made of."""
    states = [planes(*np.unravel_index(state, SIZES[3:])) for state in range(480)]
    assert _digest(np.stack(states)) == "c6d484d361b406701545525e71298b4f5db2d2aa017e086b67ec5716a4e3dcce"


@pytest.mark.long("large or genuine files")
def test_row_order_is_that_of_the_table(shapes: ProceduralShapes3D) -> None:
    """Hues read back from pixels that show nothing but sky, floor and wall, and the object's height."""
    rows = np.random.default_rng(5).integers(0, 480_000, 60)
    for row, image in zip(rows, shapes.fetch(rows)["image"], strict=True):
        floor, wall = image[60, 2].astype(float), image[28, 12].astype(float)
        for name, pixel in (("floor_hue", floor), ("wall_hue", wall)):
            nearest = np.abs(HUE_FIFTHS / 5 - pixel / pixel.max()).sum(axis=1).argmin()
            assert nearest == shapes.factors.codes(name, row)
        assert image[0, 0].tolist() == [153, 226, 249]


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("floor_hue", 0.08),
        ("wall_hue", 0.08),
        ("object_hue", 0.03),
        ("scale", 0.012),
        ("shape", 0.02),
        ("orientation", 0.012),
    ],
)
def test_every_change_of_a_factor_is_visible(shapes: ProceduralShapes3D, name: str, least: float) -> None:
    """Root mean square difference of two images that differ by any two levels of one factor, in parts of 1."""
    axis = shapes.factors.names.index(name)
    codes = np.random.default_rng(2).integers(0, SIZES, (8, 6))
    for base in codes:
        series = np.repeat(base[None], SIZES[axis], axis=0)
        series[:, axis] = np.arange(SIZES[axis])
        images = shapes.fetch(np.ravel_multi_index(tuple(series.T), SIZES))["image"] / 255
        changes = np.sqrt(((images[:, None] - images[None]) ** 2).mean(axis=(2, 3, 4)))
        assert changes[~np.eye(len(images), dtype=bool)].min() > least


def test_refuses_what_is_not_there(shapes: ProceduralShapes3D) -> None:
    for rows in (480_000, [-1], [[0, 1], [2, 10**9]]):
        with pytest.raises(RowError):
            shapes.fetch(rows)
    with pytest.raises(DataError, match=r"shapes3d-procedural has no modality 'images'; did you mean 'image'"):
        shapes.fetch([0], ["images"])


@pytest.mark.long("worker processes")
def test_threads_get_the_same_bytes() -> None:
    fresh, rows = open(), np.random.default_rng(4).integers(0, 480_000, (8, 30))
    rows[4:] = rows[:4]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda batch: fresh.fetch(batch)["image"], rows))
    np.testing.assert_array_equal(found[:4], found[4:])
    np.testing.assert_array_equal(found[2], open().fetch(rows[2])["image"])


def test_pickle_leaves_the_pictures_out(shapes: ProceduralShapes3D) -> None:
    shapes.fetch(np.arange(50))
    assert len(pickle.dumps(shapes)) < 300
    copy = pickle.loads(pickle.dumps(shapes))
    assert copy.factors.fingerprint == shapes.factors.fingerprint


@pytest.mark.long("worker processes")
def test_other_processes_draw_the_same(shapes: ProceduralShapes3D) -> None:
    """A fresh process that was sent the dataset, and a fork of it that inherits some states."""
    script = (
        "import hashlib, os, pickle, sys\n"
        "shapes = pickle.load(sys.stdin.buffer)\n"
        "shapes.fetch([0, 1, 20018])\n"
        "child = os.fork()\n"
        f"images = shapes.fetch({_golden_rows().tolist()})['image']\n"
        "os.write(1, (hashlib.sha256(images.tobytes()).hexdigest() + '\\n').encode())\n"
        "child and os.waitpid(child, 0)\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(shapes), capture_output=True, check=True)
    assert answer.stdout.decode().split() == [GOLDEN, GOLDEN]
