"""A small Pascal3D+ in the layout of release 1.1: toys in pictures, with boxes, poses and CAD models."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from PIL import Image

from tests.kept import kept
from tests.true_files.toys import toy, toy_mesh

HELD = "category"

# the toy of each category, and how many CAD models it has here
KINDS = {"aeroplane": (2, 2), "car": (0, 3), "chair": (3, 2)}
HUES = {"aeroplane": 0.55, "car": 0.0, "chair": 0.3}
PICTURE = (180, 260)  # height, width
TOY = 96  # pixels of a toy's own picture
SCALE = 0.36 * TOY  # pixels a unit of the toys' frame, as toys.toy draws them
DISTANCE = 3000 / SCALE
ANCHORS = ("left_front", "right_back", "top")
ABC = {"car": "car_test.txt", "chair": "chair_test.txt"}


def struct(**fields: Any) -> np.ndarray:
    """A MATLAB struct of one element."""
    found = np.empty((1, 1), [(name, object) for name in fields])
    for name, value in fields.items():
        found[0, 0][name] = value
    return found


def structs(elements: list[np.ndarray]) -> np.ndarray:
    """A 1 × n struct array."""
    return np.concatenate(elements, axis=1) if elements else np.zeros((0, 0))


def viewpoint(a: float, e: float, t: float, px: float, py: float, **changed: Any) -> np.ndarray:
    """The field `viewpoint`, finely annotated."""
    fields = {
        "azimuth_coarse": float(round(a / 45) * 45 % 360),
        "elevation_coarse": float(round(e / 10) * 10),
        "azimuth": a,
        "elevation": e,
        "distance": DISTANCE,
        "focal": 1.0,
        "px": px,
        "py": py,
        "theta": t,
        "viewport": 3000.0,
        "error": 12.5,
        "interval_azimuth": 0.04,
        "interval_elevation": 0.03,
        "num_anchor": 8.0,
        **changed,
    }
    return struct(**{name: value for name, value in fields.items() if value is not None})


def annotated(category: str, box: Any, view: Any, cad: Any = 1, **changed: Any) -> np.ndarray:
    """An element of `objects`; the flags are truncated, occluded and difficult."""
    anchors = struct(**{name: struct(location=np.array([[10.0, 20.0]]), status=1.0) for name in ANCHORS})
    fields = {
        "class": category,
        "bbox": np.asarray(box, float).reshape(1, -1),
        "truncated": 0.0,
        "occluded": 0.0,
        "difficult": 0.0,
        "cad_index": cad,
        "viewpoint": view,
        "anchors": anchors,
        **changed,
    }
    return struct(**{name: value for name, value in fields.items() if value is not None})


def record(image: str, folder: str, objects: list[np.ndarray], size: tuple[int, int] = PICTURE) -> dict[str, Any]:
    """The variable `record` of an annotation file."""
    height, width = float(size[0]), float(size[1])
    found = struct(
        filename=f"{image}.jpg",
        folder=folder,
        source=struct(database="The VOC2012 Database", annotation="PASCAL VOC2012", image="flickr"),
        imgname=f"VOC2012/JPEGImages/{image}.jpg",
        size=struct(width=width, height=height, depth=3.0),
        imgsize=np.array([[width, height, 3.0]]),
        segmented=0.0,
        database="The VOC2012 Database",
        objects=structs(objects),
    )
    return {"record": found}


def save(folder: Path, category: str, source: str, image: str, objects: list[np.ndarray], **more: Any) -> Path:
    """Write an annotation file."""
    path = folder / "Annotations" / f"{category}_{source}" / f"{image}.mat"
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, record(image, f"{category}_{source}", objects, **more), do_compression=True)
    return path


@kept
def write(folder: Path, *, images: int = 6, lists: bool = True, wrapped: bool = False) -> list[dict[str, Any]]:
    """Write a release: `images` pictures of each category and source, an object or two each.

    Returns
    -------
    list of dict
        What was annotated, a dict for each object of the folder's category, in the order of the files' names and of the
        objects within.

    """
    folder = folder / "PASCAL3D+_release1.1" if wrapped else folder
    dice = np.random.default_rng(3)
    rows: list[dict[str, Any]] = []
    for category in KINDS:
        for source in ("imagenet", "pascal"):
            for number in range(images):
                image = f"n0{len(rows):07d}_{number}" if source == "imagenet" else f"2008_{len(rows):06d}"
                rows += _write_image(folder, category, source, image, number, dice)
        _write_cad(folder, category)
    pascal = sorted({row["image"] for row in rows if row["source"] == "pascal"})
    _write_sets(folder, rows, pascal)
    if lists:
        for category, name in ABC.items():
            (folder / name).write_text("".join(map(abc_line, abc_rows(rows, category))))
    return rows


def abc_rows(rows: list[dict[str, Any]], category: str) -> list[dict[str, Any]]:
    """Rows that the evaluation list of a category holds here."""
    kept = ("truncated", "occluded", "difficult")
    return [
        row
        for row in rows
        if row["category"] == category
        and row["split"] == "val"
        and row["azimuth"] is not None
        and not any(row[name] for name in kept)
    ]


def abc_line(row: dict[str, Any]) -> str:
    """A line of an evaluation list."""
    box = " ".join(str(int(side)) for side in row["box"])
    return f"{row['image']}.jpg {box} {row['azimuth']:.6f} {row['elevation']:.6f} {row['theta']:.6f}\n"


def _write_image(
    folder: Path, category: str, source: str, image: str, number: int, dice: np.random.Generator
) -> list[dict[str, Any]]:
    ground = tuple(int(part) for part in dice.integers(170, 235, 3))
    picture = Image.new("RGB", (PICTURE[1], PICTURE[0]), ground)
    rows: list[dict[str, Any]] = []
    objects: list[np.ndarray] = []
    for place in range(2 if number % 2 else 1):
        azimuth = float(dice.uniform(0, 360)) if number else 0.0
        elevation, theta = float(dice.uniform(0, 40)), float(dice.uniform(-10, 10))
        kind, models = KINDS[category]
        cad = (number + place) % models + 1
        centre = (70 + 110 * place, 90 - 6 * place)
        alpha = _drawn(kind, HUES[category] + 0.04 * cad, azimuth, elevation, theta)
        picture.paste(alpha, (centre[0] - TOY // 2, centre[1] - TOY // 2), alpha)
        left, top, right, bottom = alpha.getchannel("A").getbbox()
        corner = (centre[0] - TOY // 2, centre[1] - TOY // 2)
        box = [left + corner[0] + 1, top + corner[1] + 1, right + corner[0], bottom + corner[1]]
        if source == "imagenet":  # floats, as in that part
            box = [side + 0.25 for side in box]
        coarse = number == 2
        fine = {"azimuth": azimuth, "elevation": elevation, "theta": theta, "distance": DISTANCE}
        view = viewpoint(azimuth, elevation, theta, *map(float, centre))
        if coarse:
            view = viewpoint(0.0, 0.0, 0.0, 0.0, 0.0, azimuth_coarse=45.0, elevation_coarse=10.0, distance=0.0)
        objects.append(annotated(category, box, view, float(cad), truncated=float(number == 4)))
        row = {"category": category, "source": source, "image": image, "box": box, "cad": cad, "truncated": number == 4}
        row |= {"object": place + 1, "occluded": False, "difficult": False}
        row |= dict.fromkeys(fine) if coarse else fine
        row |= {"px": centre[0], "py": centre[1], "split": "val" if source == "pascal" and number % 3 == 0 else "train"}
        rows.append(row)
    # what is of another category stands in its own folder's file; here it has no viewpoint
    objects.append(annotated("person", [1, 1, 20, 40], np.zeros((0, 0)), np.zeros((0, 0)), anchors=np.zeros((0, 0))))
    save(folder, category, source, image, objects)
    path = folder / "Images" / f"{category}_{source}" / (image + (".JPEG" if source == "imagenet" else ".jpg"))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, quality=92, format="JPEG")
    return rows


def _drawn(kind: int, hue: float, azimuth: float, elevation: float, theta: float) -> Image.Image:
    """A toy on nothing, turned counter-clockwise by theta as the published projection does."""
    alpha = Image.fromarray(toy(kind, hue, azimuth, elevation, size=(TOY, TOY), alpha=True))
    return alpha.rotate(theta, Image.Resampling.BICUBIC)


def _write_cad(folder: Path, category: str) -> None:
    kind, models = KINDS[category]
    (folder / "CAD" / category).mkdir(parents=True, exist_ok=True)
    elements = []
    for number in range(models):
        vertices, triangles = toy_mesh(kind)
        vertices = vertices * (1 + 0.1 * number)
        points = {name: vertices[place : place + 1] for place, name in enumerate(ANCHORS)}
        elements.append(struct(vertices=vertices, faces=(triangles + 1).astype(float), **points))
        lines = [f"OFF\n{len(vertices)} {len(triangles)} 0"]
        lines += [" ".join(f"{value:.8f}" for value in vertex) for vertex in vertices]
        lines += [f"3 {a} {b} {c}" for a, b, c in triangles]
        (folder / "CAD" / category / f"{number + 1:02d}.off").write_text("\n".join(lines) + "\n")
    scipy.io.savemat(folder / "CAD" / f"{category}.mat", {category: structs(elements)}, do_compression=True)


def _write_sets(folder: Path, rows: list[dict[str, Any]], pascal: list[str]) -> None:
    val = {row["image"] for row in rows if row["split"] == "val"}
    main = folder / "PASCAL" / "VOCdevkit" / "VOC2012" / "ImageSets" / "Main"
    main.mkdir(parents=True, exist_ok=True)
    (folder / "Image_sets").mkdir(parents=True, exist_ok=True)
    for category in KINDS:
        mine = {row["image"] for row in rows if row["category"] == category}
        for part in ("train", "val"):
            ids = [image for image in pascal if (image in val) == (part == "val")]
            lines = [f"{image} {1 if image in mine else -1:2d}\n" for image in ids]
            (main / f"{category}_{part}.txt").write_text("".join(lines))
        nets = sorted({row["image"] for row in rows if row["category"] == category and row["source"] == "imagenet"})
        for part, ids in (("train", nets[::2]), ("val", nets[1::2])):
            (folder / "Image_sets" / f"{category}_imagenet_{part}.txt").write_text("".join(f"{name}\n" for name in ids))
