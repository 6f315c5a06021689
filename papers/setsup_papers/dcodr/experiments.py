"""Experiments of DCoDR (arXiv 2203.11284) with LORD, DRNET and ML-VAE, and what the paper says of them."""

from setsup_papers.dcodr import presets, reports, small_presets, small_reports

__all__ = ["PRESETS", "REPORTS"]

PRESETS = [*presets.PRESETS, *small_presets.PRESETS]
"""All experiments."""

REPORTS = [*reports.REPORTS, *small_reports.REPORTS]
"""All reports."""
