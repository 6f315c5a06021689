"""Representations without a domain: DCoDR, and the methods that its paper compares it with."""

from setsup.methods.domains.dcodr import DCoDR
from setsup.methods.domains.losses import domain_contrast_loss

__all__ = ["DCoDR", "domain_contrast_loss"]
