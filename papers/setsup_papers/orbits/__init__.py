"""The orbit joint loss of Tacchetti, Voinea and Evangelopoulos: embeddings of what an orbit's images share."""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup_papers.orbits.affine_members import AffineMembers
    from setsup_papers.orbits.evaluations import OneShot, SampleComplexity
    from setsup_papers.orbits.experiments import PRESETS, REPORTS
    from setsup_papers.orbits.losses import mine_triplets, rectification_loss, triplet_loss
    from setsup_papers.orbits.networks import OrbitDecoder, OrbitEncoder, SpatialTransformer
    from setsup_papers.orbits.orbit_joint import OrbitJoint
    from setsup_papers.orbits.settings import MembersOnDevice, OrbitBatches, OrbitJointSettings
    from setsup_papers.orbits.verification import Verification

__all__ = [
    "PRESETS",
    "REPORTS",
    "AffineMembers",
    "MembersOnDevice",
    "OneShot",
    "OrbitBatches",
    "OrbitDecoder",
    "OrbitEncoder",
    "OrbitJoint",
    "OrbitJointSettings",
    "SampleComplexity",
    "SpatialTransformer",
    "Verification",
    "mine_triplets",
    "rectification_loss",
    "triplet_loss",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "affine_members": ("AffineMembers",),
            "evaluations": ("OneShot", "SampleComplexity"),
            "experiments": ("PRESETS", "REPORTS"),
            "losses": ("mine_triplets", "rectification_loss", "triplet_loss"),
            "networks": ("OrbitDecoder", "OrbitEncoder", "SpatialTransformer"),
            "orbit_joint": ("OrbitJoint",),
            "settings": ("MembersOnDevice", "OrbitBatches", "OrbitJointSettings"),
            "verification": ("Verification",),
        },
        needs={"torch": ("affine_members", "losses", "networks", "orbit_joint"), "lightning": ("orbit_joint",)},
    )

    def __dir__() -> list[str]:
        return sorted(__all__)
