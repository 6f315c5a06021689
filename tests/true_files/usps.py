"""A small USPS as LIBSVM's page has it, and as the HDF5 file does."""

import bz2
from pathlib import Path

import numpy as np

from tests.true_files.mnist import drawn

HELD = "digit"

COUNTS = {"train": 40, "test": 20}


def content(part: str) -> tuple[np.ndarray, list[int]]:
    """Values of the pixels from −1 to 1 with three digits, (n, 256), and digits."""
    digits = [(3 * row + len(part)) % 10 for row in range(COUNTS[part])]
    ink = drawn(np.array(digits), len(part))[:, 2:26, 2:26]  # 24 × 24, of which each 16 × 16 is taken from thirds
    at = (np.arange(16) * 1.5).astype(int)
    return np.round(ink[:, at][:, :, at].reshape(-1, 256) / 127.5 - 1, 3), digits


def text(values: np.ndarray, digits: list[int]) -> bytes:
    """Lines of LIBSVM."""
    lines = []
    for row, digit in zip(values.tolist(), digits, strict=True):
        lines.append(f"{digit + 1} " + " ".join(f"{place + 1}:{value:g}" for place, value in enumerate(row)) + " \n")
    return "".join(lines).encode()


def write(folder: Path) -> None:
    """Write ``usps.bz2`` and ``usps.t.bz2``."""
    for part, name in (("train", "usps.bz2"), ("test", "usps.t.bz2")):
        (folder / name).write_bytes(bz2.compress(text(*content(part))))


def write_h5(folder: Path) -> None:
    """Write ``usps.h5``."""
    import h5py

    with h5py.File(folder / "usps.h5", "w") as file:
        for part in COUNTS:
            values, digits = content(part)
            file[f"{part}/data"] = (values.astype(np.float32) + 1) / 2
            file[f"{part}/target"] = np.array(digits)
