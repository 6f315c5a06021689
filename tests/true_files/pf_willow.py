"""A small PF-WILLOW as it was published, with its list of pairs: toys with ten keypoints each."""

from pathlib import Path

import numpy as np

from tests.true_files.spair_71k import photo

HELD = "category"

KINDS = {"car(G)": 0, "car(S)": 0, "winebottle(wC)": 1}
IMAGES = 4  # of each category


def keypoints(category: str, number: int) -> np.ndarray:
    """Ten keypoints (10, 2) of an image: people marked hidden ones, too."""
    _, (left, top, right, bottom), points, _ = photo(KINDS[category], number + 5 * list(KINDS).index(category))
    filled = [points.get(key, ((left + right) // 2 + 3 * key, (top + bottom) // 2 - 2 * key)) for key in range(10)]
    return np.array(filled, float) + np.array([0.5, 0.25])


def file(category: str, number: int) -> str:
    """Path of an image in the list."""
    return f"PF-dataset/{category}/{category[:-3].title()}s_{number:03}a.png"


def write(folder: Path) -> None:
    """Write the folder ``PF-dataset`` with ``test_pairs.csv``."""
    heads = [f"{axis}{image}{number}" for image in "AB" for axis in "XY" for number in range(1, 11)]
    text = ",".join(["imageA", "imageB", *heads]) + "\n"
    for category in KINDS:
        (folder / "PF-dataset" / category).mkdir(parents=True)
        for number in range(IMAGES):
            picture = photo(KINDS[category], number + 5 * list(KINDS).index(category))[0]
            picture.save(folder / file(category, number))
        for source in range(IMAGES):
            for target in range(IMAGES):
                if source != target:
                    numbers = np.concatenate([keypoints(category, one).T.ravel() for one in (source, target)])
                    text += ",".join([file(category, source), file(category, target), *map(str, numbers)]) + "\n"
    (folder / "PF-dataset" / "test_pairs.csv").write_text(text)
