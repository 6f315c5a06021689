"""The papers' experiments as presets, from the data set to what is measured; and runs of them.

A ``preset`` says what is trained, a ``run`` is a folder that ``training`` fills and ``evaluating`` measures. All that
belongs to one paper stands in a folder of its name, such as ``abc``: presets, measurements, reports. ``report`` puts
runs beside what a paper says.

Presets are plain settings: they are found and listed without torch. Names are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from setsup.errors import need

if TYPE_CHECKING:
    from setsup.experiments.drawing import Sets
    from setsup.experiments.evaluating import evaluate
    from setsup.experiments.preset import (
        Augmentation,
        Data,
        Evaluation,
        Measured,
        MethodConfig,
        Preset,
        SamplerConfig,
        smoke,
    )
    from setsup.experiments.registry import find_preset, presets
    from setsup.experiments.report import Claim, Column, Report, Row
    from setsup.experiments.report.findings import Findings
    from setsup.experiments.report.picture import draw_report
    from setsup.experiments.report.registry import find_report, report_on, reports
    from setsup.experiments.run import Run, open_run
    from setsup.experiments.trained import TrainedRun, embed, load_trained
    from setsup.experiments.training import RunConfig, train

__all__ = [
    "Augmentation",
    "Claim",
    "Column",
    "Data",
    "Evaluation",
    "Findings",
    "Measured",
    "MethodConfig",
    "Preset",
    "Report",
    "Row",
    "Run",
    "RunConfig",
    "SamplerConfig",
    "Sets",
    "TrainedRun",
    "draw_report",
    "embed",
    "evaluate",
    "find_preset",
    "find_report",
    "load_trained",
    "open_run",
    "presets",
    "report_on",
    "reports",
    "smoke",
    "train",
]

if not TYPE_CHECKING:
    _HOMES = {
        "drawing": ("Sets",),
        "evaluating": ("evaluate",),
        "preset": (
            "Augmentation",
            "Data",
            "SamplerConfig",
            "Evaluation",
            "MethodConfig",
            "Measured",
            "Preset",
            "smoke",
        ),
        "registry": ("find_preset", "presets"),
        "report": ("Claim", "Column", "Report", "Row"),
        "report.findings": ("Findings",),
        "report.picture": ("draw_report",),
        "report.registry": ("find_report", "report_on", "reports"),
        "run": ("Run", "open_run"),
        "trained": ("TrainedRun", "embed", "load_trained"),
        "training": ("RunConfig", "train"),
    }
    _NETWORKS = ("evaluating", "trained", "training")

    def __getattr__(name: str) -> object:
        for home, names in _HOMES.items():
            if name in names:
                if home in _NETWORKS:
                    need("experiments need", "torch", "lightning")
                found = globals()[name] = getattr(import_module(f"setsup.experiments.{home}"), name)
                return found
        raise AttributeError(f"module 'setsup.experiments' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted(__all__)
