"""A small CIFAR-100 in its two versions: pickles as Python 2 wrote them, and binary files."""

from pathlib import Path

import numpy as np

from tests.true_files.cifar10 import flat, labels, old_pickle, pictures

HELD = "superclass"

COUNTS = {"train": 24, "test": 8}
SUPERCLASS = {6: 7, 7: 7, 8: 18, 13: 18, 9: 3, 10: 3, 2: 14, 11: 14}
"""Coarse labels by fine ones: two each of insects, vehicles 1, food containers and people."""


def codes(part: int, count: int) -> tuple[list[int], list[int]]:
    """Coarse and fine labels of a part."""
    fine = [list(SUPERCLASS)[number] for number in labels(part, count, len(SUPERCLASS))]
    return [SUPERCLASS[code] for code in fine], fine


def write(folder: Path, *, binary: bool = False) -> None:
    """Write ``cifar-100-python`` or ``cifar-100-binary``, as the archives hold them."""
    root = folder / ("cifar-100-binary" if binary else "cifar-100-python")
    root.mkdir(parents=True)
    for number, (part, count) in enumerate(COUNTS.items()):
        (coarse, fine), rows = codes(number, count), flat(pictures(count, 24 * number))
        if binary:
            told = np.array([coarse, fine], np.uint8).T
            (root / f"{part}.bin").write_bytes(np.column_stack([told, rows]).tobytes())
            continue
        files = [f"picture_s_{row:06}.png" for row in range(count)]
        content = {"filenames": files, "batch_label": f"{part}ing batch 1 of 1", "fine_labels": fine}
        (root / part).write_bytes(old_pickle({**content, "coarse_labels": coarse, "data": rows}))
