"""Experiments of DCoDR (arXiv 2203.11284) with LORD, DRNET and ML-VAE, and what the paper says of them."""

from setsup_papers.dcodr.presets import PRESETS
from setsup_papers.dcodr.reports import REPORTS

__all__ = ["PRESETS", "REPORTS"]
