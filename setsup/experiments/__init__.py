"""The papers' experiments as presets, from the dataset to what is measured; and runs of them.

A ``preset`` says what is trained; a ``run`` is a folder that ``training`` fills and ``evaluating`` measures. Papers,
with their presets, evaluations and reports, are found through the entry-point group ``setsup.experiments``.
``report`` compares runs with what a paper says.

Presets are plain settings: they are found and listed without torch. Names are imported on first use.
"""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup.experiments.configs import Augmentation, ImageSettings, MethodConfig, SamplerConfig
    from setsup.experiments.data import Data
    from setsup.experiments.embedding import embed, embed_batches
    from setsup.experiments.evaluating import evaluate
    from setsup.experiments.evaluation import Evaluation, Measured
    from setsup.experiments.exporting import export
    from setsup.experiments.preset import Preset, smoke
    from setsup.experiments.preset_registry import find_preset, presets
    from setsup.experiments.report import Claim, Column, Report, Row
    from setsup.experiments.report.filled import FilledReport
    from setsup.experiments.report.picture import draw_report
    from setsup.experiments.report.registry import find_report, measured_reports, report_on, reports
    from setsup.experiments.runs.run import Run
    from setsup.experiments.runs.run_folder import open_run
    from setsup.experiments.sets import Sets
    from setsup.experiments.step_batches import StepBatch, trained_on
    from setsup.experiments.trained_run import TrainedRun
    from setsup.experiments.training.config import RunConfig
    from setsup.experiments.training.train import train
    from setsup.experiments.validation import Validation
    from setsup.experiments.weights import load_trained

__all__ = [
    "Augmentation",
    "Claim",
    "Column",
    "Data",
    "Evaluation",
    "FilledReport",
    "ImageSettings",
    "Measured",
    "MethodConfig",
    "Preset",
    "Report",
    "Row",
    "Run",
    "RunConfig",
    "SamplerConfig",
    "Sets",
    "StepBatch",
    "TrainedRun",
    "Validation",
    "draw_report",
    "embed",
    "embed_batches",
    "evaluate",
    "export",
    "find_preset",
    "find_report",
    "load_trained",
    "measured_reports",
    "open_run",
    "presets",
    "report_on",
    "reports",
    "smoke",
    "train",
    "trained_on",
]

if not TYPE_CHECKING:
    _HOMES = {
        "configs": ("Augmentation", "ImageSettings", "MethodConfig", "SamplerConfig"),
        "data": ("Data",),
        "embedding": ("embed", "embed_batches"),
        "evaluating": ("evaluate",),
        "evaluation": ("Evaluation", "Measured"),
        "exporting": ("export",),
        "preset": ("Preset", "smoke"),
        "preset_registry": ("find_preset", "presets"),
        "report": ("Claim", "Column", "Report", "Row"),
        "report.filled": ("FilledReport",),
        "report.picture": ("draw_report",),
        "report.registry": ("find_report", "measured_reports", "report_on", "reports"),
        "runs.run": ("Run",),
        "runs.run_folder": ("open_run",),
        "sets": ("Sets",),
        "trained_run": ("TrainedRun",),
        "step_batches": ("StepBatch", "trained_on"),
        "training.config": ("RunConfig",),
        "training.train": ("train",),
        "validation": ("Validation",),
        "weights": ("load_trained",),
    }
    _NETWORKS = ("embedding", "evaluating", "exporting", "step_batches", "training.train", "weights")

    __getattr__ = lazy_names(__name__, _HOMES, {"torch": _NETWORKS, "lightning": _NETWORKS})

    def __dir__() -> list[str]:
        return sorted(__all__)
