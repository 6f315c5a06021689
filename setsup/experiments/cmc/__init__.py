"""Experiments of contrastive multiview coding (arXiv 1906.05849), and what the paper says of them."""

from setsup.experiments.cmc import small_presets

__all__ = ["PRESETS"]

PRESETS = [*small_presets.PRESETS]
"""All experiments."""
