"""Representations without a domain: DCoDR, and the methods that its paper compares it with.

The loss needs torch alone; the methods need Lightning, and are imported on first use.
"""

from typing import TYPE_CHECKING

from setsup.errors import need
from setsup.lazy import lazy_names
from setsup.methods.domains.losses import domain_contrast_loss

if TYPE_CHECKING:
    from setsup.methods.domains.dcodr import DCoDR
    from setsup.methods.domains.drnet import DRNET
    from setsup.methods.domains.lord import LORD, AmortisedLORD
    from setsup.methods.domains.ml_vae import MLVAE

__all__ = ["DRNET", "LORD", "MLVAE", "AmortisedLORD", "DCoDR", "domain_contrast_loss"]

if not TYPE_CHECKING:
    _HOMES = {"dcodr": ("DCoDR",), "drnet": ("DRNET",), "lord": ("LORD", "AmortisedLORD"), "ml_vae": ("MLVAE",)}

    __getattr__ = lazy_names(__name__, _HOMES, lambda name, _: need(f"{name} needs", "lightning"))

    def __dir__() -> list[str]:
        return sorted(__all__)
