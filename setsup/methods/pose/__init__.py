"""Pose from sets of images: spherical regression, pretrained features, and the baselines of ABC's paper.

Losses and heads need torch alone; the methods need Lightning, and are imported on first use.
"""

from typing import TYPE_CHECKING

from setsup.errors import need
from setsup.lazy import lazy_names
from setsup.methods.pose.angles import AngleTargets, pose_rotation
from setsup.methods.pose.mutual_information import jensen_shannon_loss
from setsup.methods.pose.pairs import pair_images
from setsup.methods.pose.spherical import AngleLogits, SphericalHead, decode_angles, spherical_losses

if TYPE_CHECKING:
    from setsup.methods.pose.cc_vae import CCVAE
    from setsup.methods.pose.exclusive_information import ExclusiveInformation
    from setsup.methods.pose.features import PretrainedFeatures
    from setsup.methods.pose.shared_information import SharedInformation
    from setsup.methods.pose.spherical_regression import SphericalRegression

__all__ = [
    "CCVAE",
    "AngleLogits",
    "AngleTargets",
    "ExclusiveInformation",
    "PretrainedFeatures",
    "SharedInformation",
    "SphericalHead",
    "SphericalRegression",
    "decode_angles",
    "jensen_shannon_loss",
    "pair_images",
    "pose_rotation",
    "spherical_losses",
]

if not TYPE_CHECKING:
    _HOMES = {
        "cc_vae": ("CCVAE",),
        "exclusive_information": ("ExclusiveInformation",),
        "features": ("PretrainedFeatures",),
        "shared_information": ("SharedInformation",),
        "spherical_regression": ("SphericalRegression",),
    }

    __getattr__ = lazy_names(__name__, _HOMES, lambda name, _: need(f"{name} needs", "lightning"))

    def __dir__() -> list[str]:
        return sorted(__all__)
