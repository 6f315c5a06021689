"""Maps of accuracy over labelled images and orbits: what is on them, from runs that are written by hand."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

from setsup.experiments import Measured
from setsup.experiments.report.heat import find_cells, heat
from setsup.experiments.report.picture import draw_report
from setsup.experiments.report.registry import find_report, report_on
from tests.experiments.report.test_report import measured, trained


def save(folder: Path, orbits: int, accuracies: list[float], **changed: object) -> None:
    run = trained(folder, "orbits/video-oj-small", **changed)
    counts = list(range(1, 1 + len(accuracies)))
    measured(run, "samples", Measured({"orbits": orbits}, {"accuracy": (counts, accuracies)}))


@pytest.mark.long("charts")
def test_rows_are_numbers_of_orbits_of_runs_that_differ_in_data_only(tmp_path: Path) -> None:
    save(tmp_path / "a", 500, [0.4, 0.6])
    save(tmp_path / "b", 10, [0.2, 0.3], data__where="track < 10")
    save(tmp_path / "c", 50, [0.9, 0.9], data__where="track < 50", steps=7)
    found = report_on(find_report("orbits/video-small"), [tmp_path])
    assert find_cells(found) == {"OJ": {500: {1: 0.4, 2: 0.6}, 10: {1: 0.2, 2: 0.3}}}


def test_nothing_was_run() -> None:
    assert find_cells(report_on(find_report("orbits/video"))) == {}
    assert find_cells(report_on(find_report("abc/fig4a"))) == {}


@pytest.mark.long("charts")
def test_one_line_a_number_of_orbits_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    save(tmp_path / "a", 500, [0.4, 0.6])
    report = report_on(find_report("orbits/video-small"), [tmp_path])
    assert draw_report(report).mode == "RGB"


def test_equal_limits_give_equal_colors() -> None:
    pytest.importorskip("matplotlib")
    # viridis ends in yellow: 0.9 is there, and 0.1 dark; a cell without a value is white
    drawn = np.asarray(heat({10: {1: 0.1, 2: 0.9}, 20: {1: 0.1}}, (0.1, 0.9))).reshape(-1, 3).astype(int)
    assert (np.abs(drawn - [68, 1, 84]).max(axis=1) < 3).sum() > 2000
    assert ((drawn[:, 0] > 180) & (drawn[:, 2] < 80)).sum() > 1000
