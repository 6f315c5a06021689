"""A small SPair-71k as it was published: toys in photographs, with boxes, keypoints, and pairs of the large layout."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from tests.true_files.toys import toy, toy_mesh

HELD = "category"

KINDS = {"aeroplane": 2, "car": 0, "chair": 3}
IMAGES = {"trn": 3, "val": 2, "test": 4}  # of each category
KEYPOINTS = 16  # vertices of the first two boxes of a toy

Points = dict[int, tuple[int, int]]


def photo(kind: int, number: int) -> tuple[Image.Image, list[int], Points, float]:
    """A photograph, the box of the toy (from 1, as VOC has it), keypoints that are seen, and the azimuth in degrees."""
    height, width = 150 + 15 * (number % 3), 200 - 25 * (number % 4)
    azimuth, elevation, side = 20.0 + 67 * number % 360, 20.0 + 8 * (number % 3), 110 + 12 * (number % 3)
    picture = Image.new("RGB", (width, height), (150, 190 - 9 * (number % 5), 225))
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, height * 6 // 10, width, height), fill=(120, 120 + 6 * (number % 5), 105))
    drawn = toy(kind, 0.13 * number, azimuth, elevation, size=(side, side), alpha=True)
    alpha = Image.fromarray(drawn)
    corner = (5 + 11 * number % max(width - side - 5, 1), (height - side) // 2)
    picture.paste(alpha, corner, alpha)
    left, top, right, bottom = alpha.getchannel("A").getbbox()
    box = [left + corner[0] + 1, top + corner[1] + 1, right + corner[0], bottom + corner[1]]
    return picture, box, seen(kind, azimuth, elevation, side, corner), azimuth


def seen(kind: int, azimuth: float, elevation: float, side: int, corner: tuple[int, int]) -> Points:
    """Vertices of the first two boxes that a face turned to the camera has, as :func:`toy` projects them."""
    a, e = np.deg2rad([azimuth, elevation])
    forward = -np.array([np.cos(e) * np.sin(a), -np.cos(e) * np.cos(a), np.sin(e)])
    right = np.array([np.cos(a), np.sin(a), 0.0])
    up = np.cross(right, forward)
    vertices, triangles = toy_mesh(kind)
    normals = np.cross(*(vertices[triangles[:, part]] - vertices[triangles[:, 0]] for part in (1, 2)))
    turned = {tuple(np.round(vertices[at], 6)) for face in triangles[normals @ forward < 0] for at in face}
    corners = sorted({tuple(np.round(vertex, 6)) for vertex in vertices[:48]})[:KEYPOINTS]
    points: Points = {}
    for key, vertex in enumerate(corners):
        if vertex in turned and (3 * key + round(azimuth)) % 5:  # people did not mark all
            x = vertex @ right * 0.36 * side + side / 2 + corner[0]
            y = side / 2 - vertex @ up * 0.36 * side + corner[1]
            points[key] = (round(x), round(y))
    return points


def annotations(category: str) -> list[tuple[str, Image.Image, dict[str, Any]]]:
    """Name, photograph and annotation of each image of a category."""
    found = []
    for number in range(sum(IMAGES.values())):
        picture, box, points, azimuth = photo(KINDS[category], number)
        name = f"20{8 + number % 4:02}_{1000 * (KINDS[category] + 1) + 37 * number:06}"
        annotation = {
            **{"filename": f"{name}.jpg", "src_database": "The VOC2008 Database", "src_annotation": "PASCAL VOC2008"},
            **{"src_image": "flickr", "image_width": picture.width, "image_height": picture.height, "image_depth": 3},
            **{"category": category, "pose": ("Frontal", "Right", "Rear", "Left", "Unspecified")[number % 5]},
            **{"truncated": int(number % 4 == 1), "occluded": int(number % 3 == 2), "difficult": 0, "bndbox": box},
            "kps": {str(key): list(points[key]) if key in points else None for key in range(30)},
            "azimuth_id": int(azimuth // 45),
        }
        found.append((name, picture, annotation))
    return found


def write(folder: Path) -> None:
    """Write the folder ``SPair-71k``."""
    top = folder / "SPair-71k"
    lines: dict[str, list[str]] = {split: [] for split in IMAGES}
    for category in KINDS:
        images = annotations(category)
        for name, picture, annotation in images:
            for place, ending in (("JPEGImages", "jpg"), ("ImageAnnotation", "json"), ("Segmentation", "png")):
                path = top / place / category / f"{name}.{ending}"
                path.parent.mkdir(parents=True, exist_ok=True)
                if ending == "json":
                    path.write_text(json.dumps(annotation))
                elif ending == "jpg":
                    picture.save(path, quality=92)
                else:
                    Image.new("L", picture.size).save(path)
        first = 0
        for split, count in IMAGES.items():
            for source in images[first : first + count]:
                for target in images[first : first + count]:
                    if source is not target:
                        _pair(top, split, lines[split], source, target)
            first += count
    for size in ("large", "small"):
        (top / "Layout" / size).mkdir(parents=True)
        for split, names in lines.items():
            kept = names if size == "large" else names[::5]
            (top / "Layout" / size / f"{split}.txt").write_text("".join(f"{name}\n" for name in kept))


def _pair(top: Path, split: str, lines: list[str], source: Any, target: Any) -> None:
    (name1, picture1, one), (name2, picture2, two) = source, target
    both = [key for key in one["kps"] if one["kps"][key] and two["kps"][key]]
    number = len(lines) + 1
    line = f"{number:06}-{name1}-{name2}:{one['category']}"
    apart = abs(one["azimuth_id"] - two["azimuth_id"])
    pair = {
        **{"pair_id": number, "filename": line, "src_imname": f"{name1}.jpg", "trg_imname": f"{name2}.jpg"},
        **{"src_imsize": [*picture1.size, 3], "trg_imsize": [*picture2.size, 3]},
        **{"src_bndbox": one["bndbox"], "trg_bndbox": two["bndbox"], "category": one["category"]},
        **{"src_pose": one["pose"], "trg_pose": two["pose"]},
        **{"src_kps": [one["kps"][key] for key in both], "trg_kps": [two["kps"][key] for key in both]},
        **{"kps_ids": both, "mirror": 0, "viewpoint_variation": (0, 0, 1, 1, 2)[min(apart, 8 - apart)]},
        "scale_variation": abs(picture1.width - picture2.width) // 50 % 3,
        "truncation": one["truncated"] + 2 * two["truncated"],
        "occlusion": one["occluded"] + 2 * two["occluded"],
    }
    path = top / "PairAnnotation" / split / f"{line}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(pair))
    lines.append(line)
