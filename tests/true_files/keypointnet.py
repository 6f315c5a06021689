"""A small KeypointNet in the published layout: toy cars, planes and chairs with keypoints, clouds and meshes."""

import colorsys
import json
from pathlib import Path

import numpy as np

from tests.true_files.toys import toy_boxes, toy_mesh

HELD = "category"
CATEGORIES = (("airplane", "02691156", 2), ("car", "02958343", 0), ("chair", "03001627", 3))
POINTS = 2048


def write(folder: Path, models: int = 5) -> None:
    """Write `models` models of each of three categories; the last one of each is in no split."""
    folder.mkdir(parents=True, exist_ok=True)
    lists: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    for place, (category, synset, kind) in enumerate(CATEGORIES):
        annotations = []
        for number in range(models):
            model = f"{place * 100 + number:032x}" if number else f"{place:x}odd-name"
            vertices, triangles, colors = painted_toy(kind, number)
            annotations.append(_model(folder, synset, model, number, vertices, triangles, colors))
            if number < models - 1:
                lists[("train", "train", "val", "test")[number % 4]].append(f"{synset}-{model}")
        (folder / "annotations").mkdir(exist_ok=True)
        (folder / "annotations" / f"{category}.json").write_text(json.dumps(annotations))
    (folder / "splits").mkdir(exist_ok=True)
    for split, lines in lists.items():
        (folder / "splits" / f"{split}.txt").write_text("\n".join(lines) + "\n")


def painted_toy(kind: int, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices (y up, front −z, box of diagonal 1), triangles and vertex colours of a toy; each number differs."""
    vertices, triangles = toy_mesh(kind)
    vertices = vertices * (1 + 0.25 * np.sin([number, 2 * number + 1, 3 * number + 2]))
    vertices = np.stack([-vertices[:, 0], vertices[:, 2], vertices[:, 1]], axis=1)
    vertices /= np.linalg.norm(np.ptp(vertices, axis=0))
    hues = [(0.17 * number + box[2]) % 1 for box in toy_boxes(kind)]
    colors = np.repeat([np.rint(255 * np.array(colorsys.hsv_to_rgb(hue, 0.75, 0.9))) for hue in hues], 24, axis=0)
    return vertices, triangles, colors.astype(int)


def _model(folder, synset, model, number, vertices, triangles, colors):
    vertices = np.round(vertices, 6)
    dice = np.random.default_rng(number)
    corners = vertices[triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    faces = dice.choice(len(triangles), POINTS, p=areas / areas.sum())
    uv = np.round(dice.dirichlet((1, 1, 1), POINTS), 6)
    points = np.round((uv[:, :, None] * corners[faces]).sum(axis=1), 6)
    paint = colors[triangles[faces, 0]]
    lines = [
        f"{x:.6f} {y:.6f} {z:.6f} {r << 16 | g << 8 | b}" for (x, y, z), (r, g, b) in zip(points, paint, strict=True)
    ]
    head = (
        "# .PCD v.7 - Point Cloud Data file format\nVERSION .7\nFIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F U\n"
        f"COUNT 1 1 1 1\nWIDTH {POINTS}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {POINTS}\nDATA ascii\n"
    )
    path = folder / "pcds" / synset / f"{model}.pcd"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + "\n".join(lines) + "\n")
    _ply(folder / "ShapeNetCore.v2.ply" / synset / f"{model}.ply", vertices, triangles, colors)
    keypoints = [
        {
            "xyz": points[i].tolist(),
            "rgb": paint[i].tolist(),
            "semantic_id": int(2 * turn + (turn > 2) * (number % 2)),
            "pcd_info": {"point_index": int(i)},
            "mesh_info": {"face_index": int(faces[i]), "face_uv": uv[i].tolist()},
        }
        for turn, i in enumerate(np.argsort(points[:, 0])[:: POINTS // (5 + number % 2) - 1])
    ]
    circle = {"center": [0.0, 0.1, 0.0], "radius": 0.3, "normal": [0, 1.0, 0]}
    rotation = [{"kp_indexes": [0, 1, 2], "is_circle": True, "circle": circle}] if number == 1 else []
    symmetries = {"reflection": [{"kp_indexes": [0, 1]}], "rotation": rotation}
    return {"class_id": synset, "model_id": model, "keypoints": keypoints, "symmetries": symmetries}


def _ply(path, vertices, triangles, colors):
    kinds = "".join(f"property float {name}\n" for name in ("x", "y", "z", "nx", "ny", "nz"))
    kinds += "".join(f"property uchar {name}\n" for name in ("red", "green", "blue"))
    head = f"ply\nformat ascii 1.0\nelement vertex {len(vertices)}\n{kinds}element face {len(triangles)}\n"
    body = [f"{x} {y} {z} 0 1 0 {r} {g} {b}" for (x, y, z), (r, g, b) in zip(vertices, colors, strict=True)]
    body += ["3 " + " ".join(map(str, triangle)) for triangle in triangles]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + "property list uchar int vertex_indices\nend_header\n" + "\n".join(body) + "\n")
