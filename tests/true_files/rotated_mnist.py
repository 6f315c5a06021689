"""Rotated MNIST is made of the files of MNIST."""

from pathlib import Path

from tests.true_files import mnist

HELD = "angle"


def write(folder: Path) -> None:
    """Write a small MNIST: 400 digits, half of them to test on."""
    mnist.write(folder)
