"""The orbit joint loss and its baselines: embeddings of what the images of an orbit share.

The losses need torch alone; the method needs Lightning, and is imported on first use.
"""

from typing import TYPE_CHECKING

from setsup.errors import need
from setsup.lazy import lazy_names
from setsup.methods.orbits.losses import rectification_loss, triplet_loss

if TYPE_CHECKING:
    from setsup.methods.orbits.orbit_joint import OrbitJoint

__all__ = ["OrbitJoint", "rectification_loss", "triplet_loss"]

if not TYPE_CHECKING:
    _HOMES = {"orbit_joint": ("OrbitJoint",)}

    __getattr__ = lazy_names(__name__, _HOMES, lambda name, _: need(f"{name} needs", "lightning"))

    def __dir__() -> list[str]:
        return sorted(__all__)
