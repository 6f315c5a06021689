"""Representations without a domain: DCoDR, and the methods that its paper compares it with."""

from setsup.methods.domains.dcodr import DCoDR
from setsup.methods.domains.drnet import DRNET
from setsup.methods.domains.lord import LORD, AmortisedLORD
from setsup.methods.domains.losses import domain_contrast_loss
from setsup.methods.domains.ml_vae import MLVAE

__all__ = ["DRNET", "LORD", "MLVAE", "AmortisedLORD", "DCoDR", "domain_contrast_loss"]
