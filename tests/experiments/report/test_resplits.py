"""Rows over re-splits: tests against scipy's own paired one, boxes against quartiles, from numbers written by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
stats = pytest.importorskip("scipy.stats")

from setsup.experiments import Measured  # noqa: E402
from setsup.experiments.report.boxes import boxes  # noqa: E402
from setsup.experiments.report.filled import FilledReport  # noqa: E402
from setsup.experiments.report.picture import draw_report  # noqa: E402
from setsup.experiments.report.registry import find_report, report_on  # noqa: E402
from tests.experiments.report.test_report import measured, trained  # noqa: E402

SPLITS = 10


def some(seed: int, mean: float) -> np.ndarray:
    """Accuracies of a run: re-splits have something in common, and a run something of its own."""
    shared = np.random.default_rng(99).normal(0, 0.03, SPLITS)
    return mean + shared + np.random.default_rng(seed).normal(0, 0.01, SPLITS)


RUNS = {
    ("oj", 0): some(0, 0.27),
    ("oj", 1): some(1, 0.28),
    ("ex", 0): some(2, 0.27),
    ("ot", 0): some(3, 0.20),
    ("ot", 1): some(4, 0.22),
}


def save(folder: Path, preset: str, seed: int, found: np.ndarray, **changed: Any) -> None:
    curves = {"any member": (list(range(len(found))), found.tolist())}
    run = trained(folder / f"{preset.replace('/', '-')}-{seed}", preset, seed, **changed)
    measured(run, "oneshot", Measured({"any member": float(found.mean())}, curves))


def filled(folder: Path, name: str = "mnist", methods: tuple[str, ...] = ("oj", "ex", "ot")) -> FilledReport:
    for (method, seed), found in RUNS.items():
        if method in methods:
            save(folder, f"orbits/{name}-{method}-small", seed, found)
    return report_on(find_report(f"orbits/{name}-small"), [folder])


@pytest.mark.parametrize("name", ["mnist", "even-odd", "norb"])
def test_tests_are_those_of_scipy_on_means_over_seeds(tmp_path: Path, name: str) -> None:
    (found,) = filled(tmp_path, name).compared
    reference = (RUNS["oj", 0] + RUNS["oj", 1]) / 2
    expected = {"EX": RUNS["ex", 0], "OT": (RUNS["ot", 0] + RUNS["ot", 1]) / 2}
    assert set(found.tests) == set(expected)
    for label, other in expected.items():
        t, p = stats.ttest_rel(other, reference)
        test = found.tests[label]
        assert (test.t, test.p) == pytest.approx((t, p))
        assert test.corrected == pytest.approx(min(1, 2 * p))
        assert test.difference == pytest.approx((other - reference).mean())
        assert test.significant is bool(2 * p < 0.05)
        np.testing.assert_allclose(found.accuracies[label], other)
    assert found.stars == {"OT": "*"}
    assert found.seeds == {"OJ": 2, "EX": 1, "OT": 2}


def test_words_and_json_name_the_correction_and_its_limit(tmp_path: Path) -> None:
    report = filled(tmp_path)
    (found,) = report.compared
    head, *lines, caveat = found.lines
    assert "each method less OJ over 10 re-splits" in head
    assert "p times 2 (Bonferroni)" in head
    assert [line.partition(":")[0] for line in lines] == ["EX", "OT"]
    assert [line.endswith(" *") for line in lines] == [False, True]
    assert "not the independent samples" in caveat
    (written,) = json.loads(json.dumps(report.to_dict()))["resplits"]
    assert written["tests"]["OT"]["corrected"] == found.tests["OT"].corrected
    assert written["reference"] == "OJ"
    assert written["caveat"] == caveat


def test_boxes_are_of_the_methods_in_the_order_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    report = filled(tmp_path)
    seen: list[Any] = []

    def spy(samples: Any, **options: Any) -> Any:
        seen.append(samples)
        return boxes(samples, **options)

    monkeypatch.setattr("setsup.experiments.report.picture.boxes", spy)
    draw_report(report)
    ((found),) = seen
    assert list(found) == ["OJ\nn = 2", "EX\nn = 1", "OT*\nn = 2"]
    assert found["EX\nn = 1"] == RUNS["ex", 0].tolist()
    draw_report(report_on(find_report("orbits/mnist-small")))  # nothing was run
    assert len(seen) == 1


def test_without_the_reference_there_are_boxes_and_no_tests(tmp_path: Path) -> None:
    (found,) = filled(tmp_path, methods=("ex", "ot")).compared
    assert not found.tests
    assert found.lines == ["no paired tests: they need runs of OJ and of another method"]
    assert list(found.accuracies) == ["EX", "OT"]


def test_runs_with_other_settings_are_not_compared(tmp_path: Path) -> None:
    save(tmp_path, "orbits/mnist-oj-small", 0, RUNS["oj", 0])
    save(tmp_path, "orbits/mnist-ot-small", 0, RUNS["ot", 0], steps=7)
    (found,) = report_on(find_report("orbits/mnist-small"), [tmp_path]).compared
    assert list(found.accuracies) == ["OJ"]


def test_one_re_split_is_no_test(tmp_path: Path) -> None:
    for method in ("oj", "ot"):
        save(tmp_path, f"orbits/mnist-{method}-small", 0, RUNS[method, 0][:1])
    (found,) = report_on(find_report("orbits/mnist-small"), [tmp_path]).compared
    assert found.lines == [
        "no paired tests: the reference must be a 1-D numeric array with one value for each of at least two "
        "re-splits, not float64 of shape (1,)"
    ]
