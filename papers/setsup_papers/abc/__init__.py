"""Approximate bijective correspondence (ABC), arXiv 2103.03240: method, networks, experiments and reports."""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup_papers.abc.experiments import PRESETS, REPORTS
    from setsup_papers.abc.losses import augmentation_loss, correspondence_loss, directed_loss, double_augmentation_loss
    from setsup_papers.abc.method import ABC
    from setsup_papers.abc.neighbours import soft_nearest_neighbours
    from setsup_papers.abc.networks import mnist_encoder, pose_encoder, shapes3d_encoder
    from setsup_papers.abc.recipes import RECIPES
    from setsup_papers.abc.resnet_v2 import Bottleneck, ResNet50V2, resnet50v2
    from setsup_papers.abc.settings import ABCObjective, ABCSettings

__all__ = [
    "ABC",
    "PRESETS",
    "RECIPES",
    "REPORTS",
    "ABCObjective",
    "ABCSettings",
    "Bottleneck",
    "ResNet50V2",
    "augmentation_loss",
    "correspondence_loss",
    "directed_loss",
    "double_augmentation_loss",
    "mnist_encoder",
    "pose_encoder",
    "resnet50v2",
    "shapes3d_encoder",
    "soft_nearest_neighbours",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "experiments": ("PRESETS", "REPORTS"),
            "losses": ("augmentation_loss", "correspondence_loss", "directed_loss", "double_augmentation_loss"),
            "method": ("ABC",),
            "neighbours": ("soft_nearest_neighbours",),
            "networks": ("mnist_encoder", "pose_encoder", "shapes3d_encoder"),
            "recipes": ("RECIPES",),
            "resnet_v2": ("Bottleneck", "ResNet50V2", "resnet50v2"),
            "settings": ("ABCObjective", "ABCSettings"),
        },
        needs={
            "torch": ("losses", "method", "neighbours", "networks", "recipes", "resnet_v2"),
            "lightning": ("method",),
        },
    )

    def __dir__() -> list[str]:
        return sorted(__all__)
