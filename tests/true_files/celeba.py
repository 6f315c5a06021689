"""A small CelebA in the published files: drawn faces of six persons, with attributes that can be seen."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

HELD = "smiling"

ATTRIBUTES = """5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips Big_Nose Black_Hair
Blond_Hair Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee Gray_Hair Heavy_Makeup High_Cheekbones
Male Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard Oval_Face Pale_Skin Pointy_Nose Receding_Hairline Rosy_Cheeks
Sideburns Smiling Straight_Hair Wavy_Hair Wearing_Earrings Wearing_Hat Wearing_Lipstick Wearing_Necklace Wearing_Necktie
Young""".split()
POINTS = "lefteye_x lefteye_y righteye_x righteye_y nose_x nose_y leftmouth_x leftmouth_y rightmouth_x rightmouth_y"

# person: part, images, skin, hair
PERSONS = {
    2880: (0, 22, (236, 188, 150), "Black_Hair"),
    2937: (0, 19, (150, 100, 70), "Brown_Hair"),
    8692: (0, 20, (205, 160, 120), "Blond_Hair"),
    5805: (1, 3, (220, 175, 140), "Gray_Hair"),
    9295: (2, 1, (120, 80, 55), "Black_Hair"),
    4153: (2, 4, (240, 200, 170), "Brown_Hair"),
}
_HAIR = {
    **{"Black_Hair": (25, 22, 20), "Brown_Hair": (95, 55, 25)},
    **{"Blond_Hair": (225, 190, 90), "Gray_Hair": (150, 150, 150)},
}


@dataclass(frozen=True)
class Face:
    """What one image shows."""

    name: str
    person: int
    part: int
    has: frozenset[str]
    points: tuple[int, ...]
    outline: tuple[float, ...]  # 136 numbers on the 64 × 64 crop, zeros where no face is found


def faces() -> list[Face]:
    """All images in the order of their names; persons take turns."""
    dice = np.random.default_rng(0)
    turns = [(turn, person) for person, (_, count, _, _) in PERSONS.items() for turn in range(count)]
    found = []
    for number, (turn, person) in enumerate(sorted(turns), 1):
        part, _, _, hair = PERSONS[person]
        has = {hair, "No_Beard"}
        has |= {name for name in ("Smiling", "Eyeglasses", "Wearing_Hat", "Young") if dice.random() < 0.4}
        x, y = dice.integers(-6, 7, 2).tolist()
        points = (69 + x, 111 + y, 107 + x, 112 + y, 88 + x, 135 + y, 71 + x, 152 + y, 106 + x, 153 + y)
        angles = np.linspace(0, np.pi, 68)
        jaw = np.stack([89 + x + 45 * np.cos(angles), 125 + y + 55 * np.sin(angles)], 1)
        outline = np.round((jaw - [25, 45]) / 2, 3).reshape(-1) * (turn % 7 != 3)
        found.append(Face(f"{number:06}.jpg", person, part, frozenset(has), points, tuple((outline + 0.0).tolist())))
    return found


def picture(face: Face) -> npt.NDArray[np.uint8]:
    """The face as it is drawn, (218, 178, 3)."""
    part, _, skin, hair = PERSONS[face.person]
    drawn = Image.new("RGB", (178, 218), (90 + 40 * part, 120, 150))
    pen = ImageDraw.Draw(drawn)
    x, y = face.points[4], face.points[5] - 8
    pen.ellipse((x - 58, y - 82, x + 58, y + 50), fill=_HAIR[hair])
    pen.ellipse((x - 46, y - 60, x + 46, y + 56), fill=skin)
    if "Wearing_Hat" in face.has:
        pen.rectangle((x - 64, y - 62, x + 64, y - 50), fill=(170, 30, 40))
        pen.rectangle((x - 40, y - 100, x + 40, y - 55), fill=(170, 30, 40))
    for eye in (face.points[0:2], face.points[2:4]):
        pen.ellipse((eye[0] - 8, eye[1] - 5, eye[0] + 8, eye[1] + 5), fill="white")
        pen.ellipse((eye[0] - 4, eye[1] - 4, eye[0] + 4, eye[1] + 4), fill="black")
        if "Eyeglasses" in face.has:
            pen.ellipse((eye[0] - 16, eye[1] - 14, eye[0] + 16, eye[1] + 14), outline="black", width=3)
    pen.line((x, y - 10, *face.points[4:6]), fill=(110, 60, 40), width=4)
    left, right = face.points[6:8], face.points[8:10]
    dip = 12 if "Smiling" in face.has else 0
    pen.line((*left, (left[0] + right[0]) / 2, left[1] + dip, *right), fill=(170, 20, 40), width=5, joint="curve")
    return np.asarray(drawn)


def jpeg(face: Face) -> bytes:
    """The image file."""
    file = io.BytesIO()
    Image.fromarray(picture(face)).save(file, "JPEG", quality=95)
    return file.getvalue()


def texts() -> dict[str, str]:
    """The published texts by name, spaced as they are published, and the file that a user makes."""
    lines: dict[str, Callable[[Face], str]] = {
        "list_attr_celeba.txt": lambda face: " ".join(f"{2 * (name in face.has) - 1:2}" for name in ATTRIBUTES),
        "list_landmarks_align_celeba.txt": lambda face: " ".join(f"{number:3}".ljust(4) for number in face.points),
        "identity_CelebA.txt": lambda face: str(face.person),
        "list_eval_partition.txt": lambda face: str(face.part),
    }
    heads = {"list_attr_celeba.txt": " ".join(ATTRIBUTES), "list_landmarks_align_celeba.txt": POINTS}
    every = faces()
    found = {}
    for name, told in lines.items():
        head = f"{len(every)}\n{heads[name]} \n" if name in heads else ""
        found[name] = head + "".join(f"{face.name} {told(face)}\n" for face in every)
    columns = ",".join(f"{axis}{point}" for point in range(68) for axis in "xy")
    rows = "".join(f"{face.name},{','.join(map(str, face.outline))}\n" for face in every)
    found["list_landmarks68_celeba_x64.csv"] = f"image_id,{columns}\n{rows}"
    return found


def kaggle() -> dict[str, str]:
    """Annotations as Kaggle has them: csv, and no identities."""
    every = faces()
    attributes = "".join(
        f"{face.name},{','.join(str(2 * (name in face.has) - 1) for name in ATTRIBUTES)}\n" for face in every
    )
    points = "".join(f"{face.name},{','.join(map(str, face.points))}\n" for face in every)
    return {
        "list_attr_celeba.csv": f"image_id,{','.join(ATTRIBUTES)}\n{attributes}",
        "list_landmarks_align_celeba.csv": f"image_id,{POINTS.replace(' ', ',')}\n{points}",
        "list_eval_partition.csv": "image_id,partition\n" + "".join(f"{face.name},{face.part}\n" for face in every),
        "list_bbox_celeba.csv": "image_id,x_1,y_1,width,height\n" + "".join(f"{f.name},9,7,226,313\n" for f in every),
    }


def write(folder: Path) -> None:
    """Write ``Img``, ``Anno`` and ``Eval`` as they are published."""
    for name in ("Img", "Anno", "Eval"):
        (folder / name).mkdir()
    with zipfile.ZipFile(folder / "Img" / "img_align_celeba.zip", "w") as file:
        for face in faces():
            file.writestr(f"img_align_celeba/{face.name}", jpeg(face))
    for name, text in texts().items():
        (folder / ("Eval" if "partition" in name else "Anno") / name).write_text(text)
