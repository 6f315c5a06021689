"""Experiments on poses of "Learning ABCs: Approximate Bijective Correspondence" (arXiv 2103.03240): tables 1 and 2."""

from setsup_papers.abc.pose import ablations, mnist, presets, reports, small_presets

__all__ = ["PRESETS", "REPORTS"]

PRESETS = [*presets.PRESETS, *ablations.PRESETS, *small_presets.PRESETS, *mnist.PRESETS]
"""All experiments."""

REPORTS = [*reports.REPORTS, *mnist.REPORTS]
"""All reports."""
