"""Pose from sets of images: spherical regression, pretrained features, and the baselines of ABC's paper."""

from setsup.methods.pose.angles import AngleTargets, pose_rotation
from setsup.methods.pose.features import PretrainedFeatures
from setsup.methods.pose.spherical import AngleLogits, SphericalHead, decode_angles, spherical_losses
from setsup.methods.pose.spherical_regression import SphericalRegression

__all__ = [
    "AngleLogits",
    "AngleTargets",
    "PretrainedFeatures",
    "SphericalHead",
    "SphericalRegression",
    "decode_angles",
    "pose_rotation",
    "spherical_losses",
]
