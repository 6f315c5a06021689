"""A small CO3D, version 2, as the download script unpacks it: gzipped annotations, images, masks and depths."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.true_files.pacs import encoded, put
from tests.true_files.rings import jpeg, ring, seen

HELD = "sequence"

SEQUENCES = {
    "apple": {"110_13051_23361": (90, 70), "189_20393_38136": (64, 100)},
    "toybus": {"110_13051_23361": (72, 72), "264_28179_53215": (90, 70)},
}
FRAMES = 6
SCALE = 1.25
LOST = ("apple", "189_20393_38136", 4)  # a frame whose camera is not known


def azimuths(sequence: int) -> list[float]:
    """Degrees of a sequence's frames, in the order of its frames."""
    return [(20.0 + 50 * sequence + 35 * frame) % 360 for frame in range(FRAMES)]


def camera(number: int, frame: int, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Pose and intrinsics of a frame in setsup's convention."""
    k = np.array([[1.3 * size[0], 0, size[1] / 2 - 0.5], [0, 1.25 * size[0], size[0] / 2 + 1.5], [0, 0, 1]])
    return ring(azimuths(number), 20 + 5 * number)[frame], k


def viewpoint(pose: np.ndarray, k: np.ndarray, size: tuple[int, int], isotropic: bool) -> dict[str, Any]:
    """The same camera as PyTorch3D has it: x left, y up, row vectors, normalised intrinsics."""
    rotation, shift = pose[:3, :3].T, -pose[:3, :3].T @ pose[:3, 3]
    flip = np.diag([-1.0, -1.0, 1.0])
    half = np.array([size[1], size[0]]) / 2
    unit = np.full(2, half.min()) if isotropic else half
    said = {
        "R": (flip @ rotation).T.tolist(),
        "T": (flip @ shift).tolist(),
        "focal_length": ([k[0, 0], k[1, 1]] / unit).tolist(),
        "principal_point": ((half - (k[:2, 2] + 0.5)) / unit).tolist(),
    }
    return {**said, "intrinsics_format": "ndc_isotropic"} if isotropic else said


def depth(size: tuple[int, int], frame: int) -> np.ndarray:
    """Depth of a frame before its scale, float16."""
    found = np.linspace(0.5, 3 + frame, size[0] * size[1]).reshape(size).astype(np.float16)
    found[0, 0] = np.inf
    return found


def annotations() -> list[tuple[str, dict[str, Any]]]:
    """Category and annotation of each frame, in the order of rows."""
    found = []
    for category, sequences in SEQUENCES.items():
        for number, (sequence, size) in enumerate(sequences.items()):
            for frame in range(FRAMES):
                top, name = f"{category}/{sequence}", f"frame{10 + frame:06}"
                said = {
                    "sequence_name": sequence,
                    "frame_number": frame,
                    "frame_timestamp": 0.25 * frame,
                    "image": {"path": f"{top}/images/{name}.jpg", "size": list(size)},
                    "depth": {
                        "path": f"{top}/depths/{name}.jpg.geometric.png",
                        "scale_adjustment": SCALE,
                        "mask_path": f"{top}/depth_masks/{name}.png",
                    },
                    "mask": {"path": f"{top}/masks/{name}.png", "mass": 100.0},
                    "viewpoint": viewpoint(*camera(number, frame, size), size, category == "apple"),
                    "meta": {"frame_type": "train"},
                }
                if (category, sequence, frame) == LOST:
                    said["viewpoint"] = None
                found.append((category, said))
    return found


def set_list(category: str) -> dict[str, list[list[Any]]]:
    """Sets of a category: the last frame of each sequence is for the test, the one before for validation."""
    said = [each for own, each in annotations() if own == category]
    entries = [[each["sequence_name"], each["frame_number"], each["image"]["path"]] for each in said]
    ends = {"train": range(FRAMES - 2), "val": [FRAMES - 2], "test": [FRAMES - 1]}
    return {part: [entry for entry in entries if entry[1] in numbers] for part, numbers in ends.items()}


@cache
def release() -> dict[str, bytes]:
    """Content by path."""
    files = {}
    for category, said in annotations():
        size, frame = tuple(said["image"]["size"]), said["frame_number"]
        number = list(SEQUENCES[category]).index(said["sequence_name"])
        picture, mask = seen(*camera(number, frame, size), size, number + len(category))
        files[said["image"]["path"]] = jpeg(picture)
        files[said["mask"]["path"]] = encoded(mask, "PNG")
        files[said["depth"]["path"]] = encoded(Image.fromarray(depth(size, frame).view(np.uint16)), "PNG")
    for category, sequences in SEQUENCES.items():
        own = [said for each, said in annotations() if each == category]
        qualities = [
            {
                "sequence_name": sequence,
                "category": category,
                "video": None,
                "point_cloud": {"path": f"{category}/{sequence}/pointcloud.ply", "quality_score": 0.5, "n_points": 9},
                "viewpoint_quality_score": 1.5 + number,
            }
            for number, sequence in enumerate(sequences)
        ]
        for kind, content in (("frame", own[::-1]), ("sequence", qualities)):
            files[f"{category}/{kind}_annotations.jgz"] = gzip.compress(json.dumps(content).encode(), mtime=0)
    files["apple/set_lists/set_lists_fewview_dev.json"] = json.dumps(set_list("apple")).encode()
    return files


def write(folder: Path) -> None:
    """Write the folders of two categories."""
    put(folder, release())
