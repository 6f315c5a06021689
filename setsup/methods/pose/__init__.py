"""Pose from sets of images: spherical regression, pretrained features, and the baselines of ABC's paper."""

from setsup.methods.pose.angles import AngleTargets, pose_rotation
from setsup.methods.pose.cc_vae import CCVAE
from setsup.methods.pose.exclusive_information import ExclusiveInformation
from setsup.methods.pose.features import PretrainedFeatures
from setsup.methods.pose.mutual_information import jensen_shannon_loss
from setsup.methods.pose.pairs import pair_images
from setsup.methods.pose.shared_information import SharedInformation
from setsup.methods.pose.spherical import AngleLogits, SphericalHead, decode_angles, spherical_losses
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
