"""A small PF-PASCAL as it was published, with the lists of pairs: toys in photographs, annotated in MAT files."""

from pathlib import Path

import numpy as np
import scipy.io

from tests.true_files.spair_71k import KINDS, photo

HELD = "category"

NUMBERS = {"aeroplane": 1, "car": 7, "chair": 9}  # of the categories in the lists
IMAGES = 6  # of each category
SPLITS = {"trn": (0, 3), "val": (2, 4), "test": (3, 6)}  # images of the lists; some are in two of them
KEYPOINTS = {"aeroplane": 14, "car": 16, "chair": 12}


def annotation(category: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Keypoints (n, 2) with NaN, and the box (1, 4)."""
    _, box, points, _ = photo(KINDS[category], number)
    keypoints = np.full((KEYPOINTS[category], 2), np.nan)
    for key, (x, y) in points.items():
        if key < len(keypoints):
            keypoints[key] = x + 0.25, y - 0.125
    return keypoints, np.array([box], np.uint16)


def name(category: str, number: int) -> str:
    """Name of an image, without its ending."""
    return f"20{8 + number % 4:02}_{2000 * (KINDS[category] + 1) + 13 * number:06}"


def lines(short: str) -> list[tuple[str, int, int, str]]:
    """Category, both images, and the rest of a line, of each pair of a list."""
    found = []
    first, last = SPLITS[short]
    for category in KINDS:
        for source in range(first, last):
            for target in range(first, last):
                if source == target:
                    continue
                if short == "trn":
                    found += [(category, source, target, str(flip)) for flip in (0, 1)]
                    continue
                one, two = annotation(category, source)[0], annotation(category, target)[0]
                both = ~np.isnan(one[:, 0]) & ~np.isnan(two[:, 0])
                columns = [*one[both].T, *two[both].T]
                rest = ",".join(";".join(f"{number:.15g}" for number in column) for column in columns)
                found.append((category, source, target, rest))
    return found


def write(folder: Path, names: tuple[str, str, str] = ("trn_pairs.csv", "val_pairs.csv", "test_pairs.csv")) -> None:
    """Write the folder ``PF-dataset-PASCAL``, and the lists beside it."""
    top = folder / "PF-dataset-PASCAL"
    (top / "JPEGImages").mkdir(parents=True)
    for category in KINDS:
        (top / "Annotations" / category).mkdir(parents=True)
        for number in range(IMAGES):
            picture = photo(KINDS[category], number)[0]
            picture.save(top / "JPEGImages" / f"{name(category, number)}.jpg", quality=92)
            keypoints, box = annotation(category, number)
            scipy.io.savemat(
                top / "Annotations" / category / f"{name(category, number)}.mat", {"kps": keypoints, "bbox": box}
            )
    for short, file in zip(SPLITS, names, strict=True):
        text = f"source_image,target_image,class,{'flip' if short == 'trn' else 'XA,YA,XB,YB'}\n"
        for category, source, target, rest in lines(short):
            paths = [f"PF-dataset-PASCAL/JPEGImages/{name(category, number)}.jpg" for number in (source, target)]
            text += f"{','.join(paths)},{NUMBERS[category]},{rest}\n"
        (folder / file).write_text(text)
