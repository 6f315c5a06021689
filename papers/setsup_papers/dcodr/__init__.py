"""DCoDR, arXiv 2203.11284, and the methods that its paper compares it with: representations without a domain."""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup_papers.dcodr.augmentations import Positives, Resized
    from setsup_papers.dcodr.baseline_settings import AmortisedLORDSettings, DRNETSettings, LORDSettings, MLVAESettings
    from setsup_papers.dcodr.drnet import DRNET
    from setsup_papers.dcodr.experiments import PRESETS, REPORTS
    from setsup_papers.dcodr.lord import LORD, AmortisedLORD
    from setsup_papers.dcodr.losses import domain_contrast_loss
    from setsup_papers.dcodr.measures import InvarianceProbes, LandmarkProbe, Retrieval
    from setsup_papers.dcodr.method import DCoDR
    from setsup_papers.dcodr.ml_vae import MLVAE
    from setsup_papers.dcodr.networks.domain_encoders import ResNetEncoder, contrast_head, small_encoder
    from setsup_papers.dcodr.networks.generator import AdaINGenerator, class_embedding
    from setsup_papers.dcodr.networks.perceptual import PerceptualDistance, PyramidDistance, vgg16_features
    from setsup_papers.dcodr.recipes import RECIPES
    from setsup_papers.dcodr.settings import DCoDRSettings, DomainBatches
    from setsup_papers.dcodr.speed import EpochTime
    from setsup_papers.dcodr.transforms_study import AutoencoderInvariance

__all__ = [
    "DRNET",
    "LORD",
    "MLVAE",
    "PRESETS",
    "RECIPES",
    "REPORTS",
    "AdaINGenerator",
    "AmortisedLORD",
    "AmortisedLORDSettings",
    "AutoencoderInvariance",
    "DCoDR",
    "DCoDRSettings",
    "DRNETSettings",
    "DomainBatches",
    "EpochTime",
    "InvarianceProbes",
    "LORDSettings",
    "LandmarkProbe",
    "MLVAESettings",
    "PerceptualDistance",
    "Positives",
    "PyramidDistance",
    "ResNetEncoder",
    "Resized",
    "Retrieval",
    "class_embedding",
    "contrast_head",
    "domain_contrast_loss",
    "small_encoder",
    "vgg16_features",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "augmentations": ("Positives", "Resized"),
            "baseline_settings": ("AmortisedLORDSettings", "DRNETSettings", "LORDSettings", "MLVAESettings"),
            "drnet": ("DRNET",),
            "experiments": ("PRESETS", "REPORTS"),
            "lord": ("AmortisedLORD", "LORD"),
            "losses": ("domain_contrast_loss",),
            "measures": ("InvarianceProbes", "LandmarkProbe", "Retrieval"),
            "method": ("DCoDR",),
            "ml_vae": ("MLVAE",),
            "networks.domain_encoders": ("ResNetEncoder", "contrast_head", "small_encoder"),
            "networks.generator": ("AdaINGenerator", "class_embedding"),
            "networks.perceptual": ("PerceptualDistance", "PyramidDistance", "vgg16_features"),
            "recipes": ("RECIPES",),
            "settings": ("DCoDRSettings", "DomainBatches"),
            "speed": ("EpochTime",),
            "transforms_study": ("AutoencoderInvariance",),
        },
        needs={
            "torch": (
                "drnet",
                "lord",
                "losses",
                "method",
                "ml_vae",
                "networks.domain_encoders",
                "networks.generator",
                "networks.perceptual",
                "recipes",
            ),
            "lightning": ("drnet", "lord", "method", "ml_vae"),
        },
    )

    def __dir__() -> list[str]:
        return sorted(__all__)
