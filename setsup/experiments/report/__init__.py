"""What a paper found compared with what runs found, and whether the paper's claims hold."""

from setsup.experiments.report.report import (
    Chart,
    Claim,
    Column,
    Criterion,
    HeatMap,
    Means,
    Report,
    Resplits,
    Row,
    Spread,
)

__all__ = ["Chart", "Claim", "Column", "Criterion", "HeatMap", "Means", "Report", "Resplits", "Row", "Spread"]
