"""What trains on the batches: losses of the papers as pure functions of tensors, on whatever device these are."""

# ruff: noqa: E402

from setsup.errors import need

need("methods need", "torch")  # before what imports them

from setsup.methods.correspondence_loss import (
    augmentation_loss,
    correspondence_loss,
    directed_loss,
    double_augmentation_loss,
)
from setsup.methods.domains.losses import domain_contrast_loss
from setsup.methods.neighbours import soft_nearest_neighbours
from setsup.methods.orbits.losses import mine_triplets, rectification_loss, triplet_loss
from setsup.methods.pixels.losses import between_loss, pixel_distances, within_loss
from setsup.methods.similarity import similarities
from setsup.methods.views.losses import in_batch_loss, nce_loss, patch_loss, softmax_loss

__all__ = [
    "augmentation_loss",
    "between_loss",
    "correspondence_loss",
    "directed_loss",
    "domain_contrast_loss",
    "double_augmentation_loss",
    "in_batch_loss",
    "mine_triplets",
    "nce_loss",
    "patch_loss",
    "pixel_distances",
    "rectification_loss",
    "similarities",
    "soft_nearest_neighbours",
    "softmax_loss",
    "triplet_loss",
    "within_loss",
]
