"""Experiments of "Learning ABCs: Approximate Bijective Correspondence" (arXiv 2103.03240), and what it says of them."""

from setsup_papers.abc import presets, reports
from setsup_papers.abc.pose import experiments as pose

__all__ = ["PRESETS", "REPORTS"]

PRESETS = [*presets.PRESETS, *pose.PRESETS]
"""All experiments."""

REPORTS = [*reports.REPORTS, *pose.REPORTS]
"""All reports."""
