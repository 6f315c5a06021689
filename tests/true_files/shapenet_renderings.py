"""KeypointNet's renderings in their published form: TFRecord files of pairs of views, and the lists beside them.

Written from the format's description with struct and a checksum of its own, never with setsup's readers. The camera is
placed as the published renderer places it, in Blender's axes; toys are drawn as seen from there.
"""

import hashlib
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from tests.kept import kept
from tests.true_files.toys import toy

HELD = "object"
KINDS = {"cars": 0, "planes": 2, "chairs": 3}
FOCAL = 22.9

_TO_BLENDER = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_TABLE = _crc_table()


def crc32c(data):
    """CRC-32C (Castagnoli), byte by byte."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(data):
    """One record."""
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(number):
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def field(number, content):
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def example(features):
    """A serialised tf.train.Example; bytes become a bytes_list, float arrays a float_list, int lists an int64_list."""
    entries = b""
    for name, value in features.items():
        if isinstance(value, bytes):
            feature = field(1, field(1, value))
        elif isinstance(value, np.ndarray):
            feature = field(2, field(1, value.astype("<f4").tobytes()))
        else:
            feature = field(3, field(1, b"".join(varint(number % 2**64) for number in value)))
        entries += field(1, field(1, name.encode()) + field(2, feature))
    return field(1, entries)


def png(picture):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return file.getvalue()


def camera(azimuth, elevation, shift):
    """Model-view matrix as the published renderer prints it, six decimals.

    Blender has z up; the front of an object is at +x of the y-up axes, which is +x of Blender's too.
    """
    a, e = np.deg2rad([azimuth, elevation])
    # azimuth 0: +x; azimuth 90: −z of the y-up axes, which is +y here
    away = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.cross([0, 0, 1], away)
    right /= np.linalg.norm(right)
    world = np.eye(4)
    world[:3, :3] = np.stack([right, np.cross(away, right), away], axis=1)
    # turned towards the origin first, moved a little afterwards
    world[:3, 3] = 30 * away + shift
    return np.round(np.linalg.inv(world) @ _TO_BLENDER, 6)


def pairs(plural, record, count):
    """Examples of one object, and the azimuth and elevation of every view."""
    rng = np.random.default_rng([list(KINDS).index(plural), record])
    hue = record * 0.27 % 1
    examples, angles = [], []
    for _ in range(count):
        features = {}
        for view in range(2):
            azimuth, elevation = rng.uniform(0, 360), float(np.rad2deg(np.arcsin(rng.uniform(0, 0.998))))
            matrix = camera(azimuth, elevation, rng.uniform(-0.2, 0.2, 3))
            features[f"img{view}"] = png(toy(KINDS[plural], hue, azimuth, elevation, alpha=True, ground=(0, 0, 0)))
            features[f"mv{view}"] = matrix.ravel()
            features[f"mvi{view}"] = np.linalg.inv(matrix).ravel()
            angles.append((azimuth, elevation))
        examples.append(example(features))
    return examples, angles


def release(plural, numbers=(0, 1, 2, 3), count=10):
    """Files of one category, by name: the first record is for dev, the last for test."""
    files = {f"{n:04d}.tfrecord": b"".join(map(framed, pairs(plural, n, count)[0])) for n in numbers}
    names = [f"{n:04d}" for n in numbers]
    files["train.txt"] = "".join(f"{name}\n" for name in names[1:-1]).encode()
    files["dev.txt"] = f"{names[0]}\n".encode()
    files["test.txt"] = f"{names[-1]}\n".encode()
    far, near = 100.0, 0.1
    depth = [0, 0, -(far + near) / (far - near), -2 * far * near / (far - near)]
    matrix = [[FOCAL, 0, 0, 0], [0, FOCAL, 0, 0], depth, [0, 0, -1, 0]]
    files["projection.txt"] = "".join(" ".join(f"{x:f}" for x in row) + "\n" for row in matrix).encode()
    files["job.txt"] = "".join(f"{object_id(plural, n)}\n" for n in range(max(numbers) + 1)).encode()
    return files


def object_id(plural, record):
    """32 hexadecimal digits, as in ShapeNet."""
    return hashlib.md5(f"{plural} {record}".encode(), usedforsecurity=False).hexdigest()


def pack(files, path, wrap="", deflate=True):
    """Write files as a folder, a zip or a tar, by the end of the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED) as archive:
            for name, content in files.items():
                archive.writestr(wrap + name, content)
    elif path.suffix == ".tar":
        with tarfile.open(path, "w") as archive:
            for name, content in files.items():
                info = tarfile.TarInfo(wrap + name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    else:
        for name, content in files.items():
            (path / wrap).mkdir(parents=True, exist_ok=True)
            (path / wrap / name).write_bytes(content)


@kept
def write(folder: Path, plurals=("cars", "planes", "chairs")) -> None:
    """Write the zips of some categories."""
    for plural in plurals:
        pack(release(plural), folder / f"{plural}_with_keypoints.zip")
