"""Experiments of the orbit papers of Tacchetti, Voinea and Evangelopoulos, and what these say of them."""

from setsup.experiments.orbits import presets, views
from setsup.experiments.orbits.evaluations import OneShot, SampleComplexity
from setsup.experiments.orbits.reports import REPORTS
from setsup.experiments.orbits.settings import MembersOnDevice, OrbitBatches, OrbitJointSettings
from setsup.experiments.orbits.verification import Verification

__all__ = [
    "PRESETS",
    "REPORTS",
    "MembersOnDevice",
    "OneShot",
    "OrbitBatches",
    "OrbitJointSettings",
    "SampleComplexity",
    "Verification",
]

PRESETS = [*presets.PRESETS, *views.PRESETS]
"""All experiments."""
