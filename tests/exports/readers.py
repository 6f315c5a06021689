"""Readers of the published formats, written from their descriptions, without setsup's code."""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np


def read_flo(content: bytes) -> np.ndarray:
    """Middlebury's: a number, width, height, then pairs."""
    magic, width, height = struct.unpack("<fii", content[:12])
    assert magic == 202021.25
    assert len(content) == 12 + 8 * width * height
    return np.array(struct.unpack(f"<{2 * width * height}f", content[12:])).reshape(height, width, 2)


def read_deep_png(content: bytes) -> np.ndarray:
    """A PNG of three channels of 16 bits, with filter 0 in each line."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, []
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        kind, body = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + body),)
        chunks.append((kind, body))
        at += 12 + length
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    assert rest == [16, 2, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[1][1]), np.uint8).reshape(height, 1 + 6 * width)
    assert not lines[:, 0].any()
    high, low = lines[:, 1::2].astype(int), lines[:, 2::2].astype(int)
    return (256 * high + low).reshape(height, width, 3)


def read_kitti(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Flow and validity, as the development kit computes them."""
    pixels = read_deep_png(content)
    return (pixels[..., :2] - 2.0**15) / 64, pixels[..., 2] == 1


def decode_rle(told: dict[str, Any]) -> np.ndarray:
    """COCO's compressed run lengths, letter by letter."""
    height, width = told["size"]
    counts: list[int] = []
    letters = iter(told["counts"])
    for letter in letters:
        value, shift = 0, 0
        while True:
            digit = ord(letter) - 48
            value |= (digit & 31) << shift
            shift += 5
            if not digit & 32:
                break
            letter = next(letters)
        if digit & 16:
            value -= 1 << shift
        if len(counts) > 2:
            value += counts[-2]
        counts.append(value)
    flat = np.concatenate([np.full(count, number % 2 == 1) for number, count in enumerate(counts)])
    return flat.reshape(width, height).T


def read_coco(path: Path) -> tuple[dict[int, Any], dict[int, list[Any]], dict[int, str]]:
    """Images by id, their annotations, and names of categories, as COCO's own API indexes them."""
    content = json.loads(path.read_text())
    images = {image["id"]: image for image in content["images"]}
    assert len(images) == len(content["images"])
    found: dict[int, list[Any]] = {number: [] for number in images}
    assert len({entry["id"] for entry in content["annotations"]}) == len(content["annotations"])
    for entry in content["annotations"]:
        found[entry["image_id"]].append(entry)
    return images, found, {each["id"]: each["name"] for each in content["categories"]}


def read_ply(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of a binary PLY, by its header."""
    head, _, body = content.partition(b"end_header\n")
    sizes = {"float": ("f", 4), "uchar": ("B", 1), "int": ("i", 4)}
    elements: list[tuple[str, int, list[list[str]]]] = []
    for line in head.decode().splitlines():
        words = line.split()
        if words[0] == "element":
            elements.append((words[1], int(words[2]), []))
        elif words[0] == "property":
            elements[-1][2].append(words[1:])
    (_, count, properties), (_, faces, listed) = elements
    form = "<" + "".join(sizes[kind][0] for kind, _ in properties)
    rows = [struct.unpack_from(form, body, place * struct.calcsize(form)) for place in range(count)]
    assert listed == [["list", "uchar", "int", "vertex_indices"]]
    rest = body[count * struct.calcsize(form) :]
    assert len(rest) == 13 * faces
    triangles = [struct.unpack_from("<Biii", rest, 13 * place) for place in range(faces)]
    assert all(triangle[0] == 3 for triangle in triangles)
    return np.array(rows), np.array(triangles)[:, 1:]
