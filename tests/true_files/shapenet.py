"""A small ShapeNetCore in the published layout: toy cars, planes and chairs with textures and voxels."""

import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

from tests.true_files.keypointnet import CATEGORIES, painted_toy

HELD = "category"
SIDE = 32


def write(folder: Path, version: str = "v2", models: int = 4) -> None:
    """Write `models` models of each of three categories, in the layout of version 1 or 2."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["id,synsetId,subSynsetId,modelId,split"]
    for place, (_, synset, kind) in enumerate(CATEGORIES):
        for number in range(models):
            model = f"{place * 100 + number + 7:032x}" if number else f"{place:x}odd-näme"
            top = folder / synset / model
            stem = top / "models" / "model_normalized" if version == "v2" else top / "model"
            (top / "images").mkdir(parents=True)
            stem.parent.mkdir(exist_ok=True)
            vertices, triangles, colors = painted_toy(kind, number)
            texture(colors[0], number).save(top / "images" / "texture0.jpg", quality=95)
            path = "../images/texture0.jpg" if version == "v2" else "./images/texture0.jpg"
            stem.with_suffix(".obj").write_text(obj(vertices, triangles, f"{stem.name}.mtl"))
            stem.with_suffix(".mtl").write_text(mtl(path, colors[-1]))
            if version == "v2":
                solid, translate, scale = voxels(vertices)
                for name, grid in (("solid", solid), ("surface", shell(solid))):
                    (stem.parent / f"{stem.name}.{name}.binvox").write_bytes(binvox(grid, translate, scale))
            if number:
                split = ("train", "train", "val", "test")[number % 4]
                rows.append(f"{len(rows):06d},{synset},{synset},{model},{split}")
    (folder / "all.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    nodes = [
        {"synsetId": synset, "name": f"{category},another {category}", "children": [], "numInstances": models}
        for category, synset, _ in CATEGORIES
    ]
    (folder / "taxonomy.json").write_text(json.dumps(nodes))


def texture(color, number: int) -> Image.Image:
    """Broad stripes of a colour and a darker one."""
    bright = (np.arange(32) // 8 + number) % 2 == 0
    pixels = np.where(bright[:, None], np.asarray(color), np.asarray(color) // 2)
    return Image.fromarray(np.repeat(pixels[:, None].astype(np.uint8), 32, axis=1))


def obj(vertices, triangles, library: str) -> str:
    """An OBJ file: the first box has the material "body" with texture coordinates, the others have "rest" without."""
    lines = ["# a toy", f"mtllib {library}", *(f"v {x:.6f} {y:.6f} {z:.6f}" for x, y, z in vertices)]
    lines += ["vt 0 0", "vt 1 0", "vt 1 1", "vt 0 1", "vn 0 1 0", "g body", "usemtl body"]
    for place in range(0, 12, 2):  # a side of a box is two triangles, here one polygon
        a, b, c = triangles[place] + 1
        lines.append(f"f {a}/1/1 {b}/2/1 {c}/3/1 {triangles[place + 1][2] + 1}/4/1")
    lines += ["g rest", "usemtl rest", *(f"f {a}//1 {b}//1 {c}//1" for a, b, c in triangles[12:] + 1)]
    return "\n".join(lines) + "\n"


def mtl(path: str, color) -> str:
    """Materials: "body" with a texture, "rest" with a colour."""
    r, g, b = np.asarray(color) / 255
    return f"newmtl body\nKd 1 1 1\nmap_Kd {path}\n\nnewmtl rest\nKa 0 0 0\nKd {r:.4f} {g:.4f} {b:.4f}\nillum 2\n"


def voxels(vertices) -> tuple[np.ndarray, np.ndarray, float]:
    """Voxels [x, y, z] inside the boxes, lower corner and length of the grid."""
    low, scale = vertices.min(axis=0), float(np.ptp(vertices, axis=0).max())
    centres = low + scale * (np.stack(np.meshgrid(*[np.arange(SIDE)] * 3, indexing="ij"), axis=-1) + 0.5) / SIDE
    solid = np.zeros((SIDE,) * 3, bool)
    for box in vertices.reshape(-1, 24, 3):
        solid |= ((centres >= box.min(axis=0)) & (centres <= box.max(axis=0))).all(axis=-1)
    return solid, low, scale


def shell(solid: np.ndarray) -> np.ndarray:
    """Voxels of a body that touch the outside."""
    wide = np.pad(solid, 1)
    inner = solid.copy()
    for axis in range(3):
        for step in (-1, 1):
            inner &= np.roll(wide, step, axis)[1:-1, 1:-1, 1:-1]
    return solid & ~inner


def binvox(grid: np.ndarray, translate, scale: float) -> bytes:
    """A binvox file of voxels [x, y, z]: runs in the order x, z, y, of at most 255."""
    flat = grid.transpose(0, 2, 1).reshape(-1)
    head = f"#binvox 1\ndim {SIDE} {SIDE} {SIDE}\ntranslate {' '.join(map(str, translate))}\nscale {scale}\ndata\n"
    runs = io.BytesIO()
    starts = np.flatnonzero(np.diff(flat, prepend=~flat[:1]))
    for start, stop in zip(starts, [*starts[1:], len(flat)], strict=True):
        while start < stop:
            runs.write(bytes([int(flat[start]), min(255, stop - start)]))
            start += min(255, stop - start)
    return head.encode() + runs.getvalue()
