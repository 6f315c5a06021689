"""A small MVImgNet as its zips are unpacked: folders of frames, and models of COLMAP in their binary form."""

import struct
from functools import cache
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from tests.true_files.pacs import put
from tests.true_files.rings import jpeg, project, ring, seen

HELD = "sequence"

CATEGORIES = {7: "stove", 56: "toy bear"}
SEQUENCES = {7: ("0801f4c3", "1a00c25b"), 56: ("0500a1b2", "2b01ffee")}
FRAMES = 6
SIZE = (120, 80)
LOST = (7, "1a00c25b", 2)  # a frame that COLMAP did not place
SHIFT, TURN, SCALE = np.array([4.0, -2.0, 7.0]), Rotation.from_rotvec([0.4, -0.9, 0.3]), 1.7


def azimuths(number: int) -> list[float]:
    """Degrees of the frames of a sequence."""
    return [15.0 * number + 25 * frame for frame in range(FRAMES)]


def lens(category: int) -> tuple[int, list[float]]:
    """COLMAP's model and its parameters; pixels are counted from the corner of the image."""
    half = [SIZE[1] / 2, SIZE[0] / 2]
    return (2, [130.0, *half, 0.0125]) if category == 7 else (1, [131.0, 127.0, half[0] + 3, half[1] - 2])


def intrinsics(category: int) -> np.ndarray:
    """The same as a matrix whose pixels have their centres at integers."""
    _, numbers = lens(category)
    fx, fy, cx, cy = (numbers[0], *numbers[:3]) if category == 7 else numbers
    return np.array([[fx, 0, cx - 0.5], [0, fy, cy - 0.5], [0, 0, 1]])


def plain(number: int) -> np.ndarray:
    """Poses of a sequence in the world in which its box is drawn."""
    return ring(azimuths(number), 20 + 8 * number)


def poses(number: int) -> np.ndarray:
    """The same in COLMAP's world, which is turned, shifted and scaled."""
    found = plain(number)
    found[:, :3, :3] = TURN.as_matrix() @ found[:, :3, :3]
    found[:, :3, 3] = SCALE * TURN.apply(found[:, :3, 3]) + SHIFT
    return found


def frames() -> list[tuple[int, str, int, int]]:
    """Category, sequence, number of the sequence and frame, in the order of rows."""
    return [
        (category, sequence, number, frame)
        for category, sequences in sorted(SEQUENCES.items(), key=lambda each: str(each[0]))
        for number, sequence in enumerate(sequences)
        for frame in range(FRAMES)
    ]


def image_name(frame: int) -> str:
    """Name of a frame's file."""
    return f"{5 * frame + 1:03}.jpg"


def images_bin(category: int, sequence: str) -> bytes:
    """``images.bin`` of a sequence, in an order of its own."""
    number = SEQUENCES[category].index(sequence)
    entries = b""
    listed = [frame for frame in reversed(range(FRAMES)) if (category, sequence, frame) != LOST]
    for frame in listed:
        pose = poses(number)[frame]
        x, y, z, w = Rotation.from_matrix(pose[:3, :3].T).as_quat()
        shift = -pose[:3, :3].T @ pose[:3, 3]
        entries += struct.pack("<i7di", frame + 1, w, x, y, z, *shift, 1) + image_name(frame).encode() + b"\0"
        points = [(1.5, 2.5, -1)] * frame
        seen_at = project(cloud(), poses(number)[frame], intrinsics(category)) + 0.5
        points += [(*seen_at[each].tolist(), 100 + each) for each in sorted(observed(frame))]
        entries += struct.pack("<Q", len(points)) + b"".join(struct.pack("<ddq", *point) for point in points)
    return struct.pack("<Q", len(listed)) + entries


def cloud() -> np.ndarray:
    """Points of every model, in COLMAP's world."""
    grid = np.stack(np.meshgrid([-0.3, 0, 0.3], [-0.2, 0.1, 0.3], [-0.2, 0, 0.25]), axis=-1).reshape(-1, 3)
    return SCALE * TURN.apply(grid) + SHIFT


def observed(frame: int) -> set[int]:
    """Points that a frame observes."""
    return {point for point in range(len(cloud())) if (point + frame) % 4 and (point * frame) % 5 != 1}


def points_bin() -> bytes:
    """``points3D.bin`` of every sequence."""
    entries = b"".join(
        struct.pack("<Q3d3BdQ", 100 + number, *position, 9, 99, 9, 0.5, 0) for number, position in enumerate(cloud())
    )
    return struct.pack("<Q", len(cloud())) + entries


def cameras_bin(category: int) -> bytes:
    """``cameras.bin`` of a sequence."""
    model, numbers = lens(category)
    return struct.pack("<QiiQQ", 1, 1, model, SIZE[1], SIZE[0]) + struct.pack(f"<{len(numbers)}d", *numbers)


@cache
def release() -> dict[str, bytes]:
    """Content by path."""
    files = {
        f"{category}/{sequence}/images/{image_name(frame)}": jpeg(
            seen(plain(number)[frame], intrinsics(category), SIZE, number + (category > 7))[0]
        )
        for category, sequence, number, frame in frames()
    }
    for category, sequences in SEQUENCES.items():
        for sequence in sequences:
            top = f"{category}/{sequence}/sparse/0"
            files |= {f"{top}/cameras.bin": cameras_bin(category), f"{top}/images.bin": images_bin(category, sequence)}
            files[f"{top}/points3D.bin"] = points_bin()
    files["mvimgnet_category.txt"] = "".join(f"{key},{name}\n" for key, name in CATEGORIES.items()).encode()
    return files


def write(folder: Path) -> None:
    """Write the folders of two categories."""
    put(folder, release())
