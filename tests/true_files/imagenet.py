"""A small ImageNet as ILSVRC 2012 published it: a tar of tars, a flat tar of validation pictures, and the kit."""

import io
import tarfile
from pathlib import Path

import numpy as np
import scipy.io
from PIL import Image, ImageDraw

HELD = "synset"

# as in the kit: number, name; the numbers are not in the order of the synsets
SYNSETS = {
    "n01443537": (201, "goldfish, Carassius auratus"),
    "n02012849": (39, "crane"),
    "n03126707": (762, "crane"),
    "n04146614": (650, "school bus"),
    "n07753592": (113, "banana"),
}
ABOVE = {"n00001740": (1001, "entity", 3)}  # a synset with others below it: pictures never have it
TRAIN, VAL = 5, 2
VALIDATION = ["n07753592", "n02012849", "n04146614", "n01443537", "n03126707"] * VAL
"""Synset of validation picture 1, 2, …"""
GREY, CMYK, PNG = ("n01443537", 1), ("n02012849", 2), ("n03126707", 3)
"""Pictures that are no ordinary JPEG, as a few of the published ones."""


def drawn(synset: str, number: int) -> Image.Image:
    """A picture of the thing, of a size and on a ground of its own."""
    width, height = 120 + 12 * (number % 4), 96 + 10 * (number % 3)
    picture = Image.new("RGB", (width, height), (150 + 20 * (number % 5), 200 - 12 * (number % 7), 225))
    pen = ImageDraw.Draw(picture)
    x, y = 20 + 4 * (number % 3), 20 + 5 * (number % 2)
    if synset == "n01443537":
        pen.ellipse((x, y + 10, x + 60, y + 45), fill=(240, 130, 20))
        pen.polygon([(x + 55, y + 27), (x + 80, y + 8), (x + 80, y + 46)], fill=(250, 160, 40))
        pen.ellipse((x + 10, y + 20, x + 16, y + 26), fill="black")
    elif synset == "n02012849":
        pen.ellipse((x + 10, y + 20, x + 50, y + 44), fill=(240, 240, 240))
        pen.line([(x + 46, y + 26), (x + 58, y + 12), (x + 54, y), (x + 66, y + 2)], fill=(240, 240, 240), width=5)
        pen.line([(x + 64, y + 2), (x + 80, y + 4)], fill=(220, 60, 30), width=3)
        for leg in (24, 34):
            pen.line([(x + leg, y + 42), (x + leg, y + 70)], fill=(60, 60, 60), width=2)
    elif synset == "n03126707":
        pen.line([(x + 10, y + 66), (x + 10, y), (x + 80, y), (x + 10, y + 12)], fill=(230, 190, 0), width=4)
        pen.line([(x + 66, y), (x + 66, y + 40)], fill=(40, 40, 40), width=1)
        pen.rectangle((x + 58, y + 40, x + 74, y + 52), fill=(160, 70, 40))
    elif synset == "n04146614":
        pen.rectangle((x, y + 10, x + 80, y + 46), fill=(250, 190, 0), outline="black")
        for window in range(4):
            pen.rectangle((x + 6 + 18 * window, y + 16, x + 18 + 18 * window, y + 28), fill=(90, 130, 170))
        for wheel in (12, 56):
            pen.ellipse((x + wheel, y + 40, x + wheel + 14, y + 54), fill="black")
    else:
        pen.arc((x, y - 40, x + 80, y + 50), 20, 160, fill=(245, 220, 40), width=14)
    return picture


def encoded(picture: Image.Image, kind: tuple[str, int]) -> bytes:
    """The bytes of a file that is named .JPEG, whatever it holds."""
    file = io.BytesIO()
    if kind == PNG:
        picture.save(file, "PNG")
    elif kind == GREY:
        picture.convert("L").save(file, "JPEG", quality=90)
    elif kind == CMYK:
        picture.convert("CMYK").save(file, "JPEG", quality=90)
    else:
        picture.save(file, "JPEG", quality=90)
    return file.getvalue()


def train_files() -> dict[str, dict[str, bytes]]:
    """Content of the training pictures by synset and name, in an order that is not that of the names."""
    return {
        synset: {
            f"{synset}_{number * 7}.JPEG": encoded(drawn(synset, number), (synset, number))
            for number in reversed(range(TRAIN))
        }
        for synset in reversed(SYNSETS)
    }


def val_files() -> dict[str, bytes]:
    """Content of the validation pictures by name."""
    return {
        f"ILSVRC2012_val_{number:08}.JPEG": encoded(drawn(synset, 10 + number), (synset, 10 + number))
        for number, synset in enumerate(VALIDATION, 1)
    }


def packed(files: dict[str, bytes], mode: str = "w") -> bytes:
    """A tar of files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def meta() -> bytes:
    """The file meta.mat: a column of structs."""
    kinds = [
        *(("ILSVRC2012_ID", object), ("WNID", object), ("words", object), ("gloss", object)),
        *(("num_children", object), ("children", object), ("wordnet_height", object), ("num_train_images", object)),
    ]
    rows = [(number, synset, words, 0) for synset, (number, words) in SYNSETS.items()]
    rows += [(number, synset, words, children) for synset, (number, words, children) in ABOVE.items()]
    table = np.empty((len(rows), 1), kinds)
    for row, (number, synset, words, children) in enumerate(sorted(rows)):
        table[row, 0] = (
            *(np.array([[float(number)]]), synset, words, f"what {words} is", np.array([[float(children)]])),
            *(np.arange(1.0, children + 1)[np.newaxis], np.array([[0.0]]), np.array([[float(TRAIN)]])),
        )
    file = io.BytesIO()
    scipy.io.savemat(file, {"synsets": table}, do_compression=True)
    return file.getvalue()


def kit_files() -> dict[str, bytes]:
    """The development kit."""
    truth = "".join(f"{SYNSETS[synset][0]}\n" for synset in VALIDATION)
    return {
        "ILSVRC2012_devkit_t12/readme.txt": b"Introduction\n",
        "ILSVRC2012_devkit_t12/data/meta.mat": meta(),
        "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt": truth.encode(),
    }


def write(folder: Path) -> None:
    """Write the three archives as they are downloaded."""
    inner = {f"{synset}.tar": packed(files) for synset, files in train_files().items()}
    (folder / "ILSVRC2012_img_train.tar").write_bytes(packed(inner))
    (folder / "ILSVRC2012_img_val.tar").write_bytes(packed(val_files()))
    (folder / "ILSVRC2012_devkit_t12.tar.gz").write_bytes(packed(kit_files(), "w:gz"))


def write_tree(folder: Path, sorted_val: bool = True) -> None:
    """Write the same pictures unpacked, with the validation pictures by synset or in one folder."""
    files = {f"train/{synset}/{name}": data for synset, each in train_files().items() for name, data in each.items()}
    for (name, data), synset in zip(val_files().items(), VALIDATION, strict=True):
        files[f"val/{synset}/{name}" if sorted_val else f"val/{name}"] = data
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
