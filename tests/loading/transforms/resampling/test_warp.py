"""Resampling on coordinate images: whatever lies on a pixel must land where its matrix says, to 1e-3 px."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage
from scipy.linalg import polar

from setsup.correspondence import planar

pytest.importorskip("torch", reason="torch is not installed")

import torch

from setsup.loading.transforms import (
    Affine,
    Augment,
    CenterCrop,
    Crop,
    Flip,
    Perspective,
    Resize,
    ResizedCrop,
    Rotate,
    Shift,
    VerticalFlip,
    by_image,
)
from setsup.loading.transforms.resampling.warp import carried, warp
from setsup.loading.transforms.slots import Slots
from setsup.random import fold, stream_key

CLOSE = 1e-3  # pixels


def slots(count: int, seed: int = 0) -> Slots:
    return Slots(fold(stream_key(seed, "test"), np.arange(count, dtype=np.uint64)))


def coordinates(n: int, height: int, width: int) -> torch.Tensor:
    """Images whose two channels are the x and y of their pixels."""
    y, x = np.mgrid[:height, :width]
    return torch.from_numpy(np.stack([x, y]).astype(np.float32)).expand(n, 2, height, width)


def sources(matrices: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Where pixels of results come from, (n, height, width, 2)."""
    y, x = np.mgrid[: size[0], : size[1]].astype(np.float64)
    pixels = np.stack([x, y], axis=-1).reshape(1, -1, 2)
    return planar.carried(pixels, np.linalg.inv(matrices)).reshape(len(matrices), *size, 2)


def interior(at: np.ndarray, height: int, width: int, margin: float = 1.0) -> np.ndarray:
    low, high = margin - 0.5, np.array([width, height]) - 0.5 - margin
    return ((at >= low) & (at < high)).all(axis=-1)


def displaced(matrices: np.ndarray, size, height: int, width: int, believed: np.ndarray | None = None) -> float:
    """Largest distance, in pixels of the source, of what a warped picture shows from what it should."""
    found = warp(coordinates(len(matrices), height, width), matrices, size).movedim(1, -1).numpy()
    at = sources(matrices if believed is None else believed, size)
    # a crop's outermost pixels repeat its edge, as Pillow's do: they lie less than a pixel from the result's rim
    inner = interior(at, height, width) & rim(size)
    assert inner.any()
    return float(np.abs(found - at)[inner].max())


def rim(size: tuple[int, int]) -> np.ndarray:
    inner = np.zeros(size, dtype=bool)
    inner[3:-3, 3:-3] = True
    return inner


OPERATIONS = [
    Crop((90, 70)),
    CenterCrop(81),
    Resize((150, 190)),
    ResizedCrop((170, 180), (0.2, 1)),
    Flip(1.0),
    VerticalFlip(1.0),
    Rotate((-180, 180)),
    Affine((-90, 90), (-0.3, 0.3), (0.7, 1.3), (-15, 15)),
    Affine(translate=(-3, 3)),
    Shift(0.1),
    Perspective(0.5),
]
HEIGHT, WIDTH = 120, 140


@pytest.mark.parametrize("operation", OPERATIONS, ids=repr)
def test_images_land_where_matrices_say(operation) -> None:
    matrices, size = operation.homography(slots(6), HEIGHT, WIDTH)
    assert displaced(matrices, size, HEIGHT, WIDTH) < CLOSE


@pytest.mark.parametrize("operation", [Rotate((-180, 180)), Perspective(0.4), Shift(0.2), ResizedCrop(512, (0.2, 0.6))])
def test_images_of_512_pixels_land_where_matrices_say(operation) -> None:
    matrices, size = operation.homography(slots(1), 512, 512)
    assert displaced(matrices, size, 512, 512) < CLOSE


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: planar.compose(m, planar.translate(0.5, 0)),
        lambda m: planar.compose(m, planar.translate(0, -0.5)),
        lambda m: planar.compose(planar.translate(0.5, 0.5), m, planar.translate(-0.5, -0.5)),  # corners as centres
        lambda m: m[:, [1, 0, 2]],
        lambda m: np.concatenate([np.swapaxes(m[:, :2, :2], 1, 2), m[:, :2, 2:]], axis=2),
        np.linalg.inv,
    ],
    ids=["half right", "half up", "corners", "swapped", "transposed", "inverted"],
)
def test_the_measure_would_notice_a_wrong_matrix(wrong) -> None:
    matrices, size = Affine((20, 70), (0.1, 0.3), (1.1, 1.3), (4, 9)).homography(slots(6), HEIGHT, WIDTH)
    planted = wrong(matrices)
    if planted.shape[1] == 2:
        planted = np.concatenate([planted, matrices[:, 2:]], axis=1)
    assert displaced(matrices, size, HEIGHT, WIDTH, believed=planted) > 0.05


@pytest.mark.parametrize("size", [(64, 96), (50, 33), (100, 139)])
def test_shrinking_keeps_places_as_well_as_pillow_does(size) -> None:
    """The triangle of an odd ratio ripples by some hundredths of a pixel; it does not shift."""
    matrices, _ = Resize(size).homography(slots(1), HEIGHT, WIDTH)
    found = warp(coordinates(1, HEIGHT, WIDTH), matrices, size)[0].movedim(0, -1).numpy()
    off = (found - sources(matrices, size)[0])[5:-5, 5:-5]
    assert np.abs(off).max() < 0.07
    assert np.abs(off.mean(axis=(0, 1))).max() < 2e-3


# what shows an error that matrix and picture share: other libraries, by their own idea of each operation


def smooth(height: int, width: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return ndimage.gaussian_filter(rng.random((height, width)), 2).astype(np.float32)


def test_rotation_is_that_of_pillow() -> None:
    image = smooth(60, 80)
    matrices, size = Rotate((33, 33)).homography(slots(1), 60, 80)
    ours = warp(torch.from_numpy(image)[None, None], matrices, size)[0, 0].numpy()
    theirs = np.asarray(Image.fromarray(image).rotate(33, Image.Resampling.BILINEAR))
    differ = np.abs(ours - theirs)
    assert np.median(differ) < 1e-5
    assert (differ > 1e-3).mean() < 0.005  # pixels on the very edge


def test_rotation_of_8_bits_is_that_of_pillow() -> None:
    image = np.random.default_rng(0).integers(0, 256, (60, 80), dtype=np.uint8)
    matrices, size = Rotate((33, 33)).homography(slots(1), 60, 80)
    ours = warp(torch.from_numpy(image)[None, None], matrices, size, eight_bit=True)[0, 0].numpy().astype(int)
    theirs = np.asarray(Image.fromarray(image).rotate(33, Image.Resampling.BILINEAR))
    differ = np.abs(ours - theirs)
    assert differ.max() <= 1
    assert (differ > 0).mean() < 1e-3  # where a value is whole to within what float32 tells


def test_shift_is_that_of_scipy() -> None:
    image = smooth(60, 80)
    ours = warp(torch.from_numpy(image)[None, None], planar.translate(3.25, -7.6)[None], (60, 80))[0, 0].numpy()
    theirs = ndimage.shift(image, (-7.6, 3.25), order=1)
    np.testing.assert_allclose(ours[1:50, 5:], theirs[1:50, 5:], atol=1e-5)


def test_perspective_is_that_of_scikit_image() -> None:
    transform = pytest.importorskip("skimage.transform", reason="scikit-image is not installed")
    image = smooth(60, 80)
    matrices, size = Perspective(0.5).homography(slots(1), 60, 80)
    ours = warp(torch.from_numpy(image)[None, None], matrices, size)[0, 0].numpy()
    theirs = transform.warp(image, np.linalg.inv(matrices[0]), order=1)
    inner = interior(sources(matrices, size)[0], 60, 80)
    np.testing.assert_allclose(ours[inner], theirs[inner], atol=1e-5)


def test_affine_is_that_of_scipy() -> None:
    image = smooth(60, 80)
    linear = np.array([[1.1, 0.4], [-0.3, 0.9]])
    matrix = planar.compose(np.block([[linear, np.zeros((2, 1))], [np.zeros((1, 2)), 1]]), planar.translate(2, 5))
    ours = warp(torch.from_numpy(image)[None, None], matrix[None], (60, 80))[0, 0].numpy()
    back = np.linalg.inv(linear)[::-1, ::-1]  # rows before columns
    theirs = ndimage.affine_transform(image, back, offset=back @ [-5, -2], order=1)
    inner = interior(sources(matrix[None], (60, 80))[0], 60, 80)
    np.testing.assert_allclose(ours[inner], theirs[inner], atol=1e-5)


@pytest.mark.parametrize("operation", [Perspective(0.5), Rotate((-180, 180))], ids=repr)
def test_warps_are_those_of_kornia(operation) -> None:
    geometry = pytest.importorskip("kornia.geometry", reason="kornia is not installed")
    rng = np.random.default_rng(9)
    images = torch.from_numpy(rng.random((3, 2, 100, 120)))
    matrices, size = operation.homography(slots(3), 100, 120)
    theirs = geometry.warp_perspective(images, torch.from_numpy(matrices), size)
    ours = warp(images.float(), matrices, size)
    inner = torch.from_numpy(interior(sources(matrices, size), 100, 120))
    assert (ours - theirs).movedim(1, -1)[inner].abs().max() < 1e-4


# Pillow, to the last bit where it has 8 bits


def pillow_crop(image: np.ndarray, box, size: tuple[int, int], passes: bool = False) -> np.ndarray:
    left, top, rows, columns = (int(side) for side in box)
    cut = Image.fromarray(image).crop((left, top, left + columns, top + rows))
    if passes:  # across and then down, as every version did before 13, which begins with the cheaper one
        cut = cut.resize((size[1], rows), Image.Resampling.BILINEAR)
    return np.asarray(cut.resize((size[1], size[0]), Image.Resampling.BILINEAR))


@pytest.mark.parametrize(
    ("height", "width", "size", "area"),
    [
        (64, 64, (64, 64), (0.5, 1)),
        (96, 96, (64, 64), (0.08, 1)),
        (40, 50, (128, 100), (0.1, 1)),
        (200, 300, (32, 48), (0.3, 1)),
        (300, 90, (31, 57), (0.3, 1)),
    ],
)
def test_resized_crops_are_those_of_pillow(height, width, size, area) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (12, height, width, 3), dtype=np.uint8)
    crop, keys = ResizedCrop(size, area), slots(12)
    boxes = np.stack(crop.boxes(keys, height, width), axis=-1)
    matrices, _ = crop.homography(keys, height, width)
    given_ = torch.from_numpy(images).movedim(-1, 1)
    bits = warp(given_, matrices, size, eight_bit=True).movedim(1, -1).numpy()
    wanted = np.stack([pillow_crop(image, box, size, passes=True) for image, box in zip(images, boxes, strict=True)])
    np.testing.assert_array_equal(bits, wanted)
    real = warp(given_, matrices, size)[:, 1].numpy() * 255
    single = [
        pillow_crop(image[..., 1].astype(np.float32), box, size) for image, box in zip(images, boxes, strict=True)
    ]
    np.testing.assert_allclose(real, np.stack(single), atol=1e-3)


@pytest.mark.parametrize("size", [(64, 64), (20, 200), (200, 20), (48, 31), (7, 7)])
def test_resizes_of_8_bits_are_those_of_pillow(size) -> None:
    image = np.random.default_rng(1).integers(0, 256, (64, 48, 3), dtype=np.uint8)
    matrices, _ = Resize(size).homography(slots(1), 64, 48)
    bits = warp(torch.from_numpy(image).movedim(-1, 0)[None], matrices, size, eight_bit=True)[0].movedim(0, -1).numpy()
    np.testing.assert_array_equal(bits, pillow_crop(image, (0, 0, 64, 48), size, passes=True))
    if size[0] >= 48:  # whatever the version
        np.testing.assert_array_equal(
            bits, np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling.BILINEAR))
        )


# copies: no arithmetic


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("layout", ["CHW", "HWC", "strided"])
def test_crops_and_flips_are_copies(dtype, layout) -> None:
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (9, 3, 20, 26), dtype=np.uint8)
    tensor = torch.from_numpy(images)
    if dtype == torch.float32:
        tensor = torch.from_numpy(rng.random(images.shape, dtype=np.float32))
        images = tensor.numpy()
    if layout == "HWC":
        tensor = tensor.movedim(1, -1).contiguous().movedim(-1, 1)
    elif layout == "strided":
        wide = torch.zeros(9, 3, 40, 26, dtype=dtype)
        wide[:, :, ::2] = tensor
        tensor = wide[:, :, ::2]
    crops, size = Crop((12, 15)).homography(slots(9), 20, 26)
    across, _ = Flip().homography(slots(9, 1), *size)
    down, _ = VerticalFlip().homography(slots(9, 2), *size)
    found = warp(tensor, planar.compose(crops, across, down), size)
    for n in range(9):
        left, top = (-crops[n, :2, 2]).astype(int)
        cut = images[n, :, top : top + 12, left : left + 15]
        cut = cut[:, :, :: int(across[n, 0, 0])][:, :: int(down[n, 1, 1])]
        wanted = cut if dtype == torch.float32 else cut.astype(np.float32) / np.float32(255)
        np.testing.assert_array_equal(found[n].numpy(), wanted)
    if dtype == torch.uint8:
        bits = warp(tensor, planar.compose(crops, across, down), size, eight_bit=True)
        assert bits.dtype == torch.uint8
        np.testing.assert_array_equal(bits.float().div(255).numpy(), found.numpy())


@pytest.mark.parametrize("fill", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("eight_bit", [False, True])
@pytest.mark.parametrize(
    "matrix",
    [planar.translate(5, -3), planar.translate(5.4, -3.2), planar.about_centre(planar.rotation(30), 16, 20)],
    ids=["copied", "straight", "slanted"],
)
def test_what_is_outside_is_filled_and_nothing_else(matrix, fill, eight_bit) -> None:
    bright = torch.full((1, 3, 16, 20), 153, dtype=torch.uint8)
    found = warp(bright, matrix[None], (16, 20), fill=fill, eight_bit=eight_bit)[0].movedim(0, -1)
    inner = planar.inside(sources(matrix[None], (16, 20))[0], 16, 20)
    wanted = np.where(inner[..., None], 0.6, fill)
    wanted = np.rint(wanted * 255) if eight_bit else wanted
    np.testing.assert_allclose(found.numpy(), np.broadcast_to(wanted, found.shape), atol=1e-6)


@pytest.mark.parametrize("kind", ["color", "label", "depth"])
@pytest.mark.parametrize(
    "matrix",
    [planar.translate(2, 1), planar.resize(16, 20, 24, 30), planar.rotation(10)],
    ids=["moved", "sized", "turned"],
)
def test_a_multiple_of_a_matrix_is_the_same_map(kind, matrix) -> None:
    values = torch.arange(320.0).reshape(1, 16, 20) + 1
    values = values[:, None] / 320 if kind == "color" else values
    matrix = planar.compose(matrix, planar.translate(0.3, 0.2))  # enlarges or keeps sizes, so that nothing averages
    found = [warp(values, factor * matrix[None], (16, 20), kind) for factor in (1, 3)]
    np.testing.assert_allclose(*found, atol=1e-4)


@pytest.mark.parametrize("kind", ["color", "label", "depth"])
def test_beyond_the_horizon_there_is_nothing(kind) -> None:
    back = np.array([[2, 0, -20], [1.5, 0.3, -10], [0.1, 0, -1.23]])  # of the result; its horizon is x = 12.3
    x, y = np.meshgrid(np.arange(30.0), np.arange(30.0))
    depth = back[2, 0] * x + back[2, 1] * y + back[2, 2]
    at = np.stack([back[row, 0] * x + back[row, 1] * y + back[row, 2] for row in range(2)], axis=-1) / depth[..., None]
    seen = planar.inside(at, 30, 30)
    assert (seen & (depth <= 0)).any()  # what a careless division would show
    assert (seen & (depth > 0)).any()
    values = torch.ones(1, 1, 30, 30) if kind == "color" else torch.ones(1, 30, 30)
    found = warp(values, np.linalg.inv(back)[None], (30, 30), kind).reshape(30, 30).numpy()
    np.testing.assert_array_equal(found > 0.5, seen & (depth > 0))


# labels, depths, normals and points


def nearest_by_hand(labels: np.ndarray, at: np.ndarray, fill) -> np.ndarray:
    column, row = (np.floor(at[..., axis] + 0.5 + 1e-9) for axis in (0, 1))
    inner = (column >= 0) & (column < labels.shape[1]) & (row >= 0) & (row < labels.shape[0])
    row, column = np.where(inner, row, 0).astype(int), np.where(inner, column, 0).astype(int)
    return np.where(inner.reshape(inner.shape + (1,) * (labels.ndim - 2)), labels[row, column], fill)


@pytest.mark.parametrize("operation", [*OPERATIONS, Resize((50, 60))], ids=repr)
def test_labels_are_those_of_the_nearest_pixel(operation) -> None:
    ids = np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)
    matrices, size = operation.homography(slots(5), HEIGHT, WIDTH)
    found = warp(torch.from_numpy(ids).expand(5, -1, -1), matrices, size, "label", fill=-1).numpy()
    for n, at in enumerate(sources(matrices, size)):
        np.testing.assert_array_equal(found[n], nearest_by_hand(ids, at, -1))


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "float32"]
)
def test_labels_of_every_dtype_keep_their_bits(dtype) -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, (4, 9, 11, 2)).astype(bool) if dtype == "bool" else None
    if labels is None:
        labels = rng.integers(0, 256, (4, 9, 11, 2 * np.dtype(dtype).itemsize), dtype=np.uint8).view(dtype)
    matrices, size = VerticalFlip(1.0).homography(slots(4), 9, 11)
    found = warp(torch.from_numpy(labels), matrices, size, "label").numpy()
    assert found.dtype == labels.dtype
    np.testing.assert_array_equal(found, labels[:, ::-1])


@pytest.mark.parametrize("operation", [*OPERATIONS, Resize((50, 60))], ids=repr)
def test_depths_land_where_matrices_say(operation) -> None:
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    ramps = torch.from_numpy(np.stack([x + 1, y + 1], axis=-1)).expand(5, -1, -1, -1)
    matrices, size = operation.homography(slots(5), HEIGHT, WIDTH)
    at = sources(matrices, size)
    inner = interior(at, HEIGHT, WIDTH)
    found = warp(ramps, matrices, size, "depth").numpy() - 1
    assert np.abs(found - at)[inner].max() < CLOSE
    outside = ~planar.inside(at, HEIGHT, WIDTH)
    assert (found[outside] == -1).all()
    plain = warp(ramps[..., 0], matrices, size, "depth").numpy() - 1
    np.testing.assert_array_equal(plain, found[..., 0])


def test_depth_never_mixes_something_with_nothing() -> None:
    rng = np.random.default_rng(4)
    depth = rng.uniform(5, 9, (20, 24)).astype(np.float32)
    depth[rng.random(depth.shape) < 0.3] = 0
    matrix = Affine((10, 80), (0.1, 0.2), (0.8, 1.2), (-2, 2)).homography(slots(1), 20, 24)[0]
    found = warp(torch.from_numpy(depth)[None], matrix, (20, 24), "depth")[0].numpy()
    for (row, column), value in np.ndenumerate(found):
        x, y = sources(matrix, (20, 24))[0, row, column]
        if not planar.inside([x, y], 20, 24):
            assert value == 0
            continue
        x, y = np.clip(x, 0, 23), np.clip(y, 0, 19)
        left, top = int(x), int(y)
        around = depth[np.ix_([top, min(top + 1, 19)], [left, min(left + 1, 23)])]
        if (around == 0).any():
            assert value == depth[int(np.floor(y + 0.5)), int(np.floor(x + 0.5))]
        else:
            mixed = np.array([1 - (y - top), y - top]) @ around @ np.array([1 - (x - left), x - left])
            assert value == pytest.approx(mixed, abs=1e-4)


def test_depth_that_is_not_a_number_stays_where_it_is() -> None:
    depth = torch.full((1, 6, 6), 2.0)
    depth[0, 2, 2] = torch.nan
    found = warp(depth, planar.translate(0.3, 0)[None], (6, 6), "depth")[0]
    assert found.isnan().nonzero().tolist() == [[2, 2]]


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def sphere(height: int, width: int) -> np.ndarray:
    """Normals of a ball that fills the image, seen from the front: a field that changes all over it."""
    y, x = np.mgrid[:height, :width].astype(np.float64)
    x, y = (x - (width - 1) / 2) / width, (y - (height - 1) / 2) / width
    return unit(np.stack([x, y, -np.sqrt(1 - x**2 - y**2)], axis=-1))


@pytest.mark.parametrize("operation", [*OPERATIONS, Resize((50, 60))], ids=repr)
def test_normals_land_and_turn_with_their_surface(operation) -> None:
    matrices, size = operation.homography(slots(4), HEIGHT, WIDTH)
    at = sources(matrices, size)
    found = warp(
        torch.from_numpy(sphere(HEIGHT, WIDTH).astype(np.float32)).expand(4, -1, -1, -1), matrices, size, "normal"
    )
    centre, step = np.array([(WIDTH - 1) / 2, (HEIGHT - 1) / 2]), 1e-4
    for n, matrix in enumerate(matrices):
        arms = planar.carried(centre + step * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]), matrix)
        turn = polar(np.stack([arms[0] - arms[1], arms[2] - arms[3]], axis=-1))[0]
        x, y = ((at[n] - centre) / WIDTH).transpose(2, 0, 1)
        inner = interior(at[n], HEIGHT, WIDTH)
        field = np.stack([x, y, -np.sqrt(np.maximum(0, 1 - x**2 - y**2))], axis=-1)
        wanted = np.concatenate([field[..., :2] @ turn.T, field[..., 2:]], axis=-1)
        assert np.abs(found[n].numpy() - wanted)[inner].max() < 1e-4
        outside = ~planar.inside(at[n], HEIGHT, WIDTH)
        assert (found[n].numpy()[outside] == 0).all()
    lengths = found.norm(dim=-1)[torch.from_numpy(planar.inside(at, HEIGHT, WIDTH))]
    assert (lengths - 1).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("matrix", "wanted"),
    [
        (planar.flip_x(8), [-0.6, 0.0, 0.8]),
        (planar.about_centre(planar.rotation(90), 8, 8), [0.0, -0.6, 0.8]),
        (planar.resize(8, 8, 8, 16), [0.6, 0.0, 0.8]),
        (planar.translate(2, 1), [0.6, 0.0, 0.8]),
    ],
    ids=["flip", "quarter turn", "scale", "move"],
)
def test_a_normal_to_the_right(matrix, wanted) -> None:
    normals = torch.tensor([0.6, 0.0, 0.8]).expand(1, 8, 8, 3)
    found = warp(normals, matrix[None], (8, 8), "normal")[0, 4, 4]
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-6)


def test_no_normal_stays_none() -> None:
    normals = torch.from_numpy(sphere(20, 20).astype(np.float32)).clone()[None]
    normals[:, :, :10] = 0
    matrices = planar.about_centre(planar.rotation([25.0]), 20, 20)
    found = warp(normals, matrices, (20, 20), "normal")[0].numpy()
    near = nearest_by_hand(normals[0].numpy(), sources(matrices, (20, 20))[0], 0)
    np.testing.assert_array_equal((found == 0).all(axis=-1), (near == 0).all(axis=-1))


def test_points_on_tensors_are_those_on_arrays() -> None:
    rng = np.random.default_rng(6)
    points = rng.uniform(-20, 160, (5, 40, 2))
    matrices, size = Perspective(0.5).homography(slots(5), HEIGHT, WIDTH)
    found, inner = carried(torch.from_numpy(points), matrices, size)
    np.testing.assert_allclose(found.numpy(), planar.carried(points, matrices), atol=1e-9)
    np.testing.assert_array_equal(inner.numpy(), planar.inside(planar.carried(points, matrices), *size))
    assert found.dtype == torch.float64


# any composition

PARTS = st.one_of(
    st.builds(Rotate, st.just((-180.0, 180.0))),
    st.builds(Affine, st.just((-40, 40)), st.just((-0.3, 0.3)), st.just((1.0, 1.4)), st.just((-6, 6))),
    st.builds(Shift, st.floats(0, 0.15)),
    st.builds(Flip, st.floats(0, 1)),
    st.builds(VerticalFlip, st.floats(0, 1)),
    st.builds(Perspective, st.floats(0, 0.3)),
    st.builds(lambda up: Resize((80 + up, 90 + up)), st.integers(0, 30)),
    st.just((Crop, 6, 8)),  # smaller by so many rows and columns
    st.just((CenterCrop, 4, 11)),
    st.builds(ResizedCrop, st.just((88, 84)), st.just((0.5, 0.9))),
)


@pytest.mark.long("large or genuine files")
@settings(max_examples=40)
@given(st.lists(PARTS, min_size=1, max_size=4), st.integers(0, 10**6))
def test_any_composition_carries_everything_to_the_same_place(parts, seed) -> None:
    height, width, n = 76, 82, 3
    matrices, size = np.tile(np.eye(3), (n, 1, 1)), (height, width)
    for number, part in enumerate(parts):
        operation = part[0]((size[0] - part[1], size[1] - part[2])) if isinstance(part, tuple) else part
        step, size = operation.homography(slots(n, seed).at(number), *size)
        matrices = planar.compose(matrices, step)
    at = sources(matrices, size)
    inner, inside = interior(at, height, width), interior(at, height, width, margin=1e-6)
    pictures = warp(coordinates(n, height, width), matrices, size).movedim(1, -1).numpy()
    y, x = np.mgrid[:height, :width]
    ids = warp(torch.from_numpy(y * width + x).expand(n, -1, -1), matrices, size, "label", fill=-1).numpy()
    depths = warp(coordinates(n, height, width).movedim(1, -1) + 1, matrices, size, "depth").numpy()
    for picture, place, inn, matrix in zip(pictures, at, inner, matrices, strict=True):
        averaged = matrix[0, 1] == matrix[1, 0] == 0 and min(abs(matrix[0, 0]), abs(matrix[1, 1])) < 1 - 1e-9
        assert np.abs(picture - place)[inn & rim(size)].max(initial=0) < (0.07 if averaged else CLOSE)
    if inner.any():
        assert np.abs(depths - 1 - at)[inner].max() < CLOSE
    near = np.stack([ids % width, ids // width], axis=-1)
    assert np.abs(near - at)[inside].max(initial=0) <= 0.5 + 1e-6
    assert (ids[~interior(at, height, width, margin=-1e-6)] == -1).all()
    shown = np.argwhere(inner[0])[::97]
    there, on_it = carried(torch.from_numpy(at[0][tuple(shown.T)][None]), matrices[:1], size)
    if len(shown):
        np.testing.assert_allclose(there[0].numpy(), shown[:, ::-1], atol=1e-6)
        assert on_it.all()


# an image's bits are its own

EVERYWHERE = [
    planar.compose(),
    planar.flip_x(30),
    planar.crop(3, 2),
    planar.translate(1.3, 0.2),
    planar.fit(3, 2, 20, 21, 24, 30),
    planar.fit(0, 0, 24, 30, 12, 15),
    planar.about_centre(planar.rotation(20), 24, 30),
    planar.compose(planar.rotation(20), planar.shear(0.4)),
    planar.four_points([[0, 0], [29, 0], [29, 23], [0, 23]], [[4, 1], [25, 3], [29, 21], [2, 23]]),
]


@pytest.mark.parametrize("kind", ["color", "label", "depth", "normal"])
def test_an_image_has_the_same_bits_in_any_company(kind) -> None:
    rng = np.random.default_rng(7)
    shape = (len(EVERYWHERE), 3, 24, 30) if kind == "color" else (len(EVERYWHERE), 24, 30, 3)
    values = torch.from_numpy(rng.random(shape, dtype=np.float32))
    matrices = np.stack(EVERYWHERE)
    together = warp(values, matrices, (24, 30), kind)
    for n in range(len(EVERYWHERE)):
        assert torch.equal(together[n], warp(values[n : n + 1], matrices[n : n + 1], (24, 30), kind)[0])
    back = warp(values.flip(0), matrices[::-1], (24, 30), kind)
    assert torch.equal(back.flip(0), together)
    if kind == "color":
        bits = values.mul(255).round().to(torch.uint8)
        together = warp(bits, matrices, (24, 30), eight_bit=True)
        for n in range(len(EVERYWHERE)):
            alone = warp(bits[n : n + 1], matrices[n : n + 1], (24, 30), eight_bit=True)
            assert torch.equal(together[n], alone[0])


def test_threads_change_no_bits() -> None:
    rng = np.random.default_rng(8)
    images = torch.from_numpy(rng.integers(0, 256, (40, 3, 64, 64), dtype=np.uint8))
    threads = torch.get_num_threads()
    found = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            results = []
            for operation in (ResizedCrop(50, (0.2, 1)), Rotate((0, 90)), Perspective(0.3), Shift(0.2)):
                results.append(warp(images, *operation.homography(slots(40), 64, 64)))
            found.append(results)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize(
    ("way", "operation"),
    [("torch", Shift(0.4)), ("opencv", Shift(0.4)), ("opencv", Resize((90, 75)))],
    ids=lambda one: str(one),
)
def test_moves_and_enlarged_images_of_8_bits_are_the_nearest_levels(way, operation, monkeypatch) -> None:
    """Of the exact value, in float64 by scipy; torch enlarges as Pillow does, which rounds twice."""
    image = np.random.default_rng(2).integers(0, 256, (60, 50), dtype=np.uint8)
    if way == "torch":
        monkeypatch.setattr(by_image, "cv2", None)
    elif by_image.cv2 is None:
        pytest.skip("OpenCV is not installed")
    for step in range(4):
        found = Augment([operation], eight_bit=True)({"image": torch.from_numpy(image)[None, None, None], "step": step})
        bits, matrix = found["image"][0, 0, 0].numpy(), found["homography"][0, 0].numpy()
        inverse = np.linalg.inv(matrix)[[1, 0]][:, [1, 0, 2]]
        exact = ndimage.affine_transform(
            image.astype(np.float64), inverse[:, :2], inverse[:, 2], bits.shape, order=1, mode="nearest"
        )
        y, x = np.mgrid[: bits.shape[0], : bits.shape[1]]
        at = np.einsum("ij,jhw->ihw", inverse[:, :2], np.stack([y, x])) + inverse[:, 2:, None]
        inside = ((at > -0.499) & (at < np.array(image.shape)[:, None, None] - 0.501)).all(0)
        errors = (bits - exact)[inside]
        assert np.abs(errors).max() < 0.51
        assert abs(errors.mean()) < 0.02
