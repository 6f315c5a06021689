"""COLMAP's binary models, packed here by the published description of the format."""

import struct

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from setsup.datasets.formats.geometry.colmap import read_cameras, read_images
from setsup.errors import DataError

# model, parameters, (fx, fy, cx, cy), (k1, k2, p1, p2, k3, …)
MODELS = [
    (0, [500, 320, 240], (500, 500, 320, 240), (0, 0, 0, 0)),
    (1, [500, 510, 320, 240], (500, 510, 320, 240), (0, 0, 0, 0)),
    (2, [500, 320, 240, 0.1], (500, 500, 320, 240), (0.1, 0, 0, 0)),
    (3, [500, 320, 240, 0.1, 0.2], (500, 500, 320, 240), (0.1, 0.2, 0, 0)),
    (4, [500, 510, 320, 240, 0.1, 0.2, 0.3, 0.4], (500, 510, 320, 240), (0.1, 0.2, 0.3, 0.4)),
    (6, [500, 510, 320, 240, *range(1, 9)], (500, 510, 320, 240), tuple(range(1, 9))),
]


def camera(number, model, numbers):
    return struct.pack(f"<iiQQ{len(numbers)}d", number, model, 640, 480, *numbers)


def test_cameras():
    content = b"".join(camera(7 - model, model, numbers) for model, numbers, *_ in MODELS)
    found = read_cameras(struct.pack("<Q", len(MODELS)) + content, "cameras.bin")
    for model, _, lens, distortion in MODELS:
        each = found[7 - model]
        assert (each.height, each.width) == (480, 640)
        # the middle of the first pixel is at (½, ½) there, and at 0 here
        assert np.allclose(np.add(each.lens, [0, 0, 0.5, 0.5]), lens)
        assert each.distortion.tolist() == [*distortion, 0, 0, 0, 0][:8]
    with pytest.raises(DataError, match=r"camera 3 has 640 × 480 pixels \(width × height\) and the parameters"):
        read_cameras(struct.pack("<Q", 1) + camera(3, 0, [np.nan, 1, 1]), "cameras.bin")


@pytest.mark.parametrize("name", ["a.jpg", "a name of many letters" * 15 + ".jpg", "été.png"])
def test_poses(name):
    """A point of the camera goes to where the inverse of COLMAP's transform takes it, whatever the name's length."""
    turns, shifts = Rotation.random(3, random_state=0), np.array([[1.0, 2, 3], [0, 0, 0], [-4, 5, 0.5]])
    content = struct.pack("<Q", 3)
    for number, (turn, shift) in enumerate(zip(turns, shifts, strict=True)):
        x, y, z, w = turn.as_quat()
        content += struct.pack("<i7di", number + 1, w, x, y, z, *shift, 9) + f"{number}{name}".encode() + b"\0"
        content += struct.pack("<Q", 2 * number) + bytes(24 * 2 * number)
    found = read_images(lambda offset, length: content[offset : offset + length], "images.bin")
    assert list(found) == [f"{number}{name}" for number in range(3)]
    world = np.array([0.3, -0.7, 2.0])
    for image, turn, shift in zip(found.values(), turns, shifts, strict=True):
        assert image.camera == 9
        assert np.allclose(image.pose @ [*(turn.apply(world) + shift), 1], [*world, 1])


@pytest.mark.parametrize("points", [2**33, 2**61, 2**64 - 1])
def test_more_points_than_any_image_has(points):
    content = struct.pack("<Q", 2)
    for name in (b"a\0", b"b\0"):
        content += struct.pack("<i7di", 1, 1, 0, 0, 0, 0, 0, 0, 9) + name + struct.pack("<Q", points)
    with pytest.raises(
        DataError, match=r"image 'a' specifies .* points, more than the limit of .*; expected a binary COLMAP model"
    ):
        read_images(lambda offset, length: content[offset : offset + length], "images.bin")
