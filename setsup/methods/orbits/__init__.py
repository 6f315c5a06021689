"""The orbit joint loss and its baselines: embeddings of what the images of an orbit share."""

from setsup.methods.orbits.losses import rectification_loss, triplet_loss
from setsup.methods.orbits.orbit_joint import OrbitJoint

__all__ = ["OrbitJoint", "rectification_loss", "triplet_loss"]
