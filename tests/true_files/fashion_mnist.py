"""Fashion-MNIST has files of the same names and form as MNIST."""

from pathlib import Path

from tests.true_files import mnist

HELD = "category"


def write(folder: Path) -> None:
    """Write four files, of pictures that are digits."""
    mnist.write(folder)
