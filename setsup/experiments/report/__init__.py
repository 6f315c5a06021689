"""What a paper found beside what runs found, and whether the paper's claims hold."""

from setsup.experiments.report.report import Claim, Column, Means, Report, Row, Spread

__all__ = ["Claim", "Column", "Means", "Report", "Row", "Spread"]
