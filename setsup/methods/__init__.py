"""What trains on the batches: losses of the papers as pure functions of tensors, on whatever device these are."""

from importlib.util import find_spec

from setsup.errors import SetsupError

if find_spec("torch") is None:
    raise SetsupError("methods need torch: pip install -e '.[torch]' in setsup's folder")

from setsup.methods.correspondence_loss import (
    augmentation_loss,
    correspondence_loss,
    directed_loss,
    double_augmentation_loss,
)
from setsup.methods.neighbours import soft_nearest_neighbours
from setsup.methods.similarity import similarities

__all__ = [
    "augmentation_loss",
    "correspondence_loss",
    "directed_loss",
    "double_augmentation_loss",
    "similarities",
    "soft_nearest_neighbours",
]
