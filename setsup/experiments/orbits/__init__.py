"""Experiments of the orbit papers of Tacchetti, Voinea and Evangelopoulos, and what these say of them."""

from setsup.experiments.orbits import presets, views

__all__ = ["PRESETS"]

PRESETS = [*presets.PRESETS, *views.PRESETS]
"""All experiments."""
