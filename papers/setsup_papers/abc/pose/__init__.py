"""Poses from sets of images, of ABC's paper: spherical regression, pretrained features, and its baselines."""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup_papers.abc.pose.angles import AngleTargets, pose_rotation
    from setsup_papers.abc.pose.baseline_settings import (
        CCVAESettings,
        ExclusiveInformationSettings,
        SharedInformationSettings,
    )
    from setsup_papers.abc.pose.cc_vae import CCVAE
    from setsup_papers.abc.pose.cc_vae_networks import CycleDecoder, CycleEncoder
    from setsup_papers.abc.pose.data import PoseAugmentation, PoseCrop, PoseSets
    from setsup_papers.abc.pose.evaluations import PoseLookup, PoseRegression
    from setsup_papers.abc.pose.exclusive_information import ExclusiveInformation
    from setsup_papers.abc.pose.features import PretrainedFeatures
    from setsup_papers.abc.pose.information_networks import MapEncoder, StatisticsNetworks
    from setsup_papers.abc.pose.mutual_information import jensen_shannon_loss
    from setsup_papers.abc.pose.pairs import pair_images
    from setsup_papers.abc.pose.rotations import (
        PoseErrors,
        euler_from_rotation,
        geodesic_error,
        pose_errors,
        rotation_from_euler,
    )
    from setsup_papers.abc.pose.settings import PoseABCSettings, PoseFeaturesSettings, SphericalRegressionSettings
    from setsup_papers.abc.pose.shared_information import SharedInformation
    from setsup_papers.abc.pose.spherical import AngleLogits, SphericalHead, decode_angles, spherical_losses
    from setsup_papers.abc.pose.spherical_regression import SphericalRegression
    from setsup_papers.abc.pose.style_curves import StyleOverTraining

__all__ = [
    "CCVAE",
    "AngleLogits",
    "AngleTargets",
    "CCVAESettings",
    "CycleDecoder",
    "CycleEncoder",
    "ExclusiveInformation",
    "ExclusiveInformationSettings",
    "MapEncoder",
    "PoseABCSettings",
    "PoseAugmentation",
    "PoseCrop",
    "PoseErrors",
    "PoseFeaturesSettings",
    "PoseLookup",
    "PoseRegression",
    "PoseSets",
    "PretrainedFeatures",
    "SharedInformation",
    "SharedInformationSettings",
    "SphericalHead",
    "SphericalRegression",
    "SphericalRegressionSettings",
    "StatisticsNetworks",
    "StyleOverTraining",
    "decode_angles",
    "euler_from_rotation",
    "geodesic_error",
    "jensen_shannon_loss",
    "pair_images",
    "pose_errors",
    "pose_rotation",
    "rotation_from_euler",
    "spherical_losses",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "angles": ("AngleTargets", "pose_rotation"),
            "baseline_settings": ("CCVAESettings", "ExclusiveInformationSettings", "SharedInformationSettings"),
            "cc_vae": ("CCVAE",),
            "cc_vae_networks": ("CycleDecoder", "CycleEncoder"),
            "data": ("PoseAugmentation", "PoseCrop", "PoseSets"),
            "evaluations": ("PoseLookup", "PoseRegression"),
            "exclusive_information": ("ExclusiveInformation",),
            "features": ("PretrainedFeatures",),
            "information_networks": ("MapEncoder", "StatisticsNetworks"),
            "mutual_information": ("jensen_shannon_loss",),
            "pairs": ("pair_images",),
            "rotations": ("PoseErrors", "euler_from_rotation", "geodesic_error", "pose_errors", "rotation_from_euler"),
            "settings": ("PoseABCSettings", "PoseFeaturesSettings", "SphericalRegressionSettings"),
            "shared_information": ("SharedInformation",),
            "spherical": ("AngleLogits", "SphericalHead", "decode_angles", "spherical_losses"),
            "spherical_regression": ("SphericalRegression",),
            "style_curves": ("StyleOverTraining",),
        },
        needs={
            "torch": (
                "angles",
                "cc_vae",
                "cc_vae_networks",
                "exclusive_information",
                "features",
                "information_networks",
                "mutual_information",
                "pairs",
                "shared_information",
                "spherical",
                "spherical_regression",
            ),
            "lightning": ("cc_vae", "exclusive_information", "features", "shared_information", "spherical_regression"),
        },
    )

    def __dir__() -> list[str]:
        return sorted(__all__)
