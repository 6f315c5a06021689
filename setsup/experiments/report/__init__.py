"""What a paper found compared with what runs found, and whether the paper's claims hold."""

from setsup.experiments.report.report import Claim, Column, Criterion, HeatMap, Means, Report, Resplits, Row, Spread

__all__ = ["Claim", "Column", "Criterion", "HeatMap", "Means", "Report", "Resplits", "Row", "Spread"]
