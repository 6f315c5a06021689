"""Experiments of the orbit papers of Tacchetti, Voinea and Evangelopoulos, and what these say of them."""

from setsup_papers.orbits.presets import PRESETS
from setsup_papers.orbits.reports import REPORTS

__all__ = ["PRESETS", "REPORTS"]
