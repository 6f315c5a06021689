"""Errors for files that changed or do not belong together, which several benchmarks raise."""

from setsup.errors import DamagedFile, DataError

__all__ = ["count_mismatch", "replaced"]


def replaced(label: object) -> DataError:
    """Make the error for a file that has been replaced since the dataset was opened."""
    return DataError(f"{label} has been replaced since it was opened; open the dataset again")


def count_mismatch(images: object, count: int, labels: object, labelled: int, what: str = "images") -> DamagedFile:
    """Make the error for two files, of images and of their labels, with different numbers of rows."""
    return DamagedFile(
        f"{images} has {count:,} {what}, but {labels} has {labelled:,} labels; expected the same number of both",
        "fetch both again",
    )
