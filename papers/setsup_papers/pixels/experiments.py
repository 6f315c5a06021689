"""Experiments of single-pixel contrast (arXiv 2512.04970), and what the paper says of them."""

from setsup_papers.pixels import finetuning_presets, presets, reports, room_presets

__all__ = ["PRESETS", "REPORTS"]

PRESETS = [*presets.PRESETS, *room_presets.PRESETS, *finetuning_presets.PRESETS]
"""All experiments."""

REPORTS = [*reports.REPORTS, *room_presets.REPORTS]
"""All reports."""
