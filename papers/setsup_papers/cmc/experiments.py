"""Experiments of contrastive multiview coding (arXiv 1906.05849), and what the paper says of them."""

from setsup_papers.cmc import presets, reports, small_presets, small_reports

__all__ = ["PRESETS", "REPORTS"]

PRESETS = [*presets.PRESETS, *small_presets.PRESETS]
"""All experiments."""

REPORTS = [*reports.REPORTS, *small_reports.REPORTS]
"""All tables and figures."""
