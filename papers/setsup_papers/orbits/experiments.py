"""Experiments of the orbit papers of Tacchetti, Voinea and Evangelopoulos, and what these say of them."""

from setsup_papers.orbits import presets, reports, views

__all__ = ["PRESETS", "REPORTS"]

PRESETS = [*presets.PRESETS, *views.PRESETS]
"""All experiments."""

REPORTS = reports.REPORTS
"""All reports."""
