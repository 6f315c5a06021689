"""Experiments of the orbit papers of Tacchetti, Voinea and Evangelopoulos, and what these say of them."""

from setsup.experiments.orbits import presets, views
from setsup.experiments.orbits.reports import REPORTS
from setsup.experiments.orbits.settings import OrbitBatches, OrbitJointSettings

__all__ = ["PRESETS", "REPORTS", "OrbitBatches", "OrbitJointSettings"]

PRESETS = [*presets.PRESETS, *views.PRESETS]
"""All experiments."""
