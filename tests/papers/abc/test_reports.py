"""What reports hold against ABC's claims, from numbers that are known."""

import math
from dataclasses import fields
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

from setsup.experiments import find_report, presets, reports
from setsup.experiments.report.fill import Result, fill
from setsup_papers.abc.digits import DigitMeasures

PRESETS, REPORTS = presets(), reports()
FACTORS = ("wall_hue", "object_hue", "floor_hue", "scale", "shape", "orientation")


def verdicts(name: str, rows: dict[str, dict[str, float]], **options: Any) -> list[bool | None]:
    """What becomes of a report's claims, from values by presets."""
    report = find_report(name)
    runs = [Result(preset, 0, preset, values=values, **options) for preset, values in rows.items()]
    return [verdict.holds for verdict in fill(report, runs, dict.fromkeys(PRESETS, 10)).verdicts]


def of(*values: float) -> dict[str, float]:
    return dict(zip(FACTORS, values, strict=True))


STYLE = {"withheld_slant": 0.7, "withheld_thickness": 0.7, "across_slant": 0.6, "across_thickness": 0.6}
LESS = {key: value / 2 for key, value in STYLE.items()}


def style(
    trained_has: dict[str, float], untrained_has: dict[str, float], digit: float, spread: float = 5.0
) -> dict[str, float]:
    found = {f"trained: {key}": value for key, value in trained_has.items()}
    found |= {"trained: noisy_accuracy": digit, "trained: spread": spread}
    return found | {f"untrained: {key}": value for key, value in untrained_has.items()}


class TestClaims:
    @pytest.mark.parametrize(
        ("name", "rows", "expected"),
        [
            ("abc/fig3a", {"abc/fig3a": {"first 2": 0.981}}, [True]),
            ("abc/fig3a", {"abc/fig3a": {"first 2": 0.979}}, [False]),
            ("abc/fig3a", {"abc/fig3a": {"first 1": 0.5}}, [None]),
            ("abc/fig4a", {"abc/fig4a": of(0.09, 0.6, 0.6, 0, 0, 0)}, [True, True, None]),
            ("abc/fig4a", {"abc/fig4a": of(0.11, 0.4, 0.6, 0, 0, 0)}, [False, False, None]),
            (
                "abc/fig4a",
                {"abc/fig4a": of(0, 1, 1, 0, 0, 0), "abc/fig4a-random": of(0, 1.24, 0.76, 0, 0, 0)},
                [True, True, True],
            ),
            (
                "abc/fig4a",
                {"abc/fig4a": of(0, 1, 1, 0, 0, 0), "abc/fig4a-random": of(0.2, 1.26, 1, 0, 0, 0)},
                [False, True, False],
            ),
            ("abc/fig4b", {"abc/fig4b": of(0, 1, 0.09, 0, 0, 0)}, [True, True, None]),
            ("abc/fig4b", {"abc/fig4b": of(0, 1, 0.2, 0, 0, 0)}, [False, True, None]),
            ("abc/fig4c", {"abc/fig4c-random": of(0, 0, 0, 0.2, 0.2, 0.2)}, [True, True, None]),
            ("abc/fig4c", {"abc/fig4c": of(0, 0.2, 0, 0.2, 0.05, 0.2)}, [False, False, None]),
            (
                "abc/fig4d",
                {"abc/fig4d-4": of(0, 0.5, 0.5, 0, 0, 0), "abc/fig4d-64": of(0, 1, 1, 0, 0, 0)},
                [True, True, True, None],
            ),
            (
                "abc/fig4d",
                {
                    "abc/fig4d-4": of(0, 0.5, 0.5, 0, 0, 0),
                    "abc/fig4d-64": of(0, 2, 0.4, 0, 0, 0),
                    "abc/fig4d-1024": of(0, 1, 0.4, 0.2, 0.2, 0.09),
                },
                [True, False, False, False],
            ),
            ("abc/fig4d", {"abc/fig4d-1024": of(0, 1, 1, 0.2, 0.2, 0.2)}, [True, None, None, True]),
            ("abc/figS1a", {"abc/figS1a": of(0.19, 0.9, 0.9, 0, 0, 0)}, [True]),
            ("abc/figS1a", {"abc/figS1a-random": of(0.21, 0.9, 0.9, 0, 0, 0)}, [False]),
            ("abc/figS1c", {"abc/figS1c": of(0.1, 0.1, 0.3, 0, 0, 0)}, [False]),
            ("abc/figS3", {"abc/figS3": {"best of 4": 1, "best of 16": 3, "best of 32": 3}}, [True]),
            ("abc/figS3", {"abc/figS3": {"best of 4": 1, "best of 16": 3, "best of 32": 2}}, [False]),
            ("abc/figS3", {"abc/figS3": {"best of 4": 2, "best of 16": 2}}, [False]),
            ("abc/figS3", {"abc/figS3": {"best of 4": 2}}, [None]),
            ("abc/mnist", {"abc/mnist": style(STYLE, LESS, 0.15)}, [True, True, True]),
            ("abc/mnist", {"abc/mnist": style(LESS, STYLE, 0.25)}, [False, False, False]),
            ("abc/mnist", {"abc/mnist": style({}, STYLE, 0.15)}, [None, None, True]),
            # a network that has collapsed
            ("abc/mnist", {"abc/mnist": style(STYLE, LESS, 0.1, spread=0.04)}, [True, True, False]),
        ],
    )
    def test_hold_fail_or_were_not_run(
        self, name: str, rows: dict[str, dict[str, float]], expected: list[bool | None]
    ) -> None:
        assert verdicts(name, rows) == expected
        assert verdicts(name, rows, changed=("steps 2,000 → 4",)) == [None] * len(expected)

    def test_by_how_much_a_threshold_is_missed(self) -> None:
        runs = [Result("abc/fig4b", 0, "a", values=of(0.22, 0.4, 0.05, 0, 0, 0))]
        gone, high, _ = fill(find_report("abc/fig4b"), runs, {}).verdicts
        assert (gone.holds, high.holds) == (False, False)
        assert gone.found == "both sets curated: wall hue 0.220 (misses by 0.120), floor hue 0.050"
        assert high.found == "both sets curated: object hue 0.400 (misses by 0.100)"

    @pytest.mark.parametrize(
        ("name", "rows", "which", "words"),
        [
            (
                "abc/fig4a",
                {"abc/fig4a": of(0, 1, 1, 0, 0, 0), "abc/fig4a-random": of(0, 1.28, 1, 0, 0, 0)},
                2,
                "the largest difference is 0.28, of object hue (misses by 0.03)",
            ),
            (
                "abc/fig4d",
                {"abc/fig4d-4": of(0, 1, 1, 0, 0, 0), "abc/fig4d-64": of(9, 1.5, 0.25, 0, 0, 0)},
                1,
                "sets of 4: 2.00 nats, sets of 64: 1.75 nats (falls by 0.25)",
            ),
            (
                "abc/fig4d",
                {"abc/fig4d-4": of(0, 1, 1, 0, 0, 0), "abc/fig4d-64": of(9, 1.5, 0.25, 0, 0, 0)},
                2,
                "from sets of 4 to sets of 64: object hue 1.00 → 1.50; floor hue 1.00 → 0.25 (falls by 0.75)",
            ),
            (
                "abc/fig4d",
                {"abc/fig4d-4": of(0, 1, 1, 0, 0, 0), "abc/fig4d-64": of(9, 1, 1, 0, 0, 0)},
                1,
                "sets of 4: 2.00 nats, sets of 64: 2.00 nats (does not rise)",
            ),
            (
                "abc/fig4d",
                {"abc/fig4d-4": of(0, 1, 1, 0, 0, 0), "abc/fig4d-64": of(9, 1, 0.9988, 0, 0, 0)},
                2,
                "from sets of 4 to sets of 64: object hue 1.00 → 1.00 (does not rise); floor hue 1.00 → 1.00 (falls by "
                "0.0012)",
            ),
            (
                "abc/fig4a",
                {"abc/fig4a": of(0, 1, 1, 0, 0, 0), "abc/fig4a-random": of(0, 1.251, 1, 0, 0, 0)},
                2,
                "the largest difference is 0.25, of object hue (misses by 0.001)",
            ),
            (
                "abc/figS3",
                {"abc/figS3": {"best of 4": 1, "best of 16": 3, "best of 32": 2}},
                0,
                "sets of 4: 1, sets of 16: 3, sets of 32: 2 (falls by 1)",
            ),
        ],
    )
    def test_by_how_much_what_should_agree_or_grow_does_not(
        self, name: str, rows: dict[str, dict[str, float]], which: int, words: str
    ) -> None:
        runs = [Result(preset, 0, preset, values=values) for preset, values in rows.items()]
        verdict = fill(find_report(name), runs, {}).verdicts[which]
        assert (verdict.holds, verdict.found) == (False, words)

    @pytest.mark.parametrize("hues", [1, 3])
    def test_noise_at_which_what_is_inactive_is_gone(self, hues: int) -> None:
        held = FACTORS[:hues]
        for tau in (0.1, 10.0):
            for factor, nats_there in (("wall_hue", 0.05), ("wall_hue", 0.5), ("orientation", 0.5)):
                x = [math.sqrt(tau) / 10, math.sqrt(tau), math.sqrt(tau) * 10]
                curves = {key: (x, [2, nats_there if key == factor else 0, 0]) for key in FACTORS}
                runs = [Result(f"abc/figS2-{hues}-{tau:g}", 0, "a", curves=curves)]
                verdicts = fill(find_report("abc/figS2"), runs, dict.fromkeys(PRESETS, 10)).verdicts
                holds = factor not in held or nats_there < 0.1
                assert [verdict.holds for verdict in verdicts] == ([holds, None] if hues == 1 else [None, holds])


class TestTheReportsOfABC:
    @pytest.mark.parametrize("name", ["abc/fig3c", "abc/fig4a", "abc/fig4d", "abc/figS2"])
    def test_ceilings_are_those_of_the_data(self, name: str) -> None:
        from setsup.datasets import load

        table = load("shapes3d-procedural").factors
        report = REPORTS[name]
        evaluation: Any = PRESETS[report.rows[0].preset].evaluations[report.evaluations[0]]
        assert tuple(column.key for column in report.columns) == evaluation.factors
        for column in report.columns:
            assert column.ceiling == pytest.approx(math.log(len(table[column.key].levels)))

    def test_every_figure_with_a_preset_has_one(self) -> None:
        shown = {row.preset for report in REPORTS.values() for row in report.rows}
        # table 5 has no column of Edges2Shoes; what LORD's first stage takes is measured all the same
        lacking = {"dcodr/edges2shoes-lord-latent"}
        lacking |= {"multiview/shapes3d", "multiview/3dident"}  # the paper's tables are of other data
        lacking |= {"cmc/frames-small"}  # table 6 contrasts videos of people
        assert {name for name, preset in PRESETS.items() if preset.evaluations} == shown | lacking

    def test_a_baseline_of_which_nothing_is_said_has_values_and_no_verdict(self) -> None:
        report = find_report("abc/augmentation")
        found = fill(report, [Result("abc/augmentation", 0, "a", values=of(2.1, 0.1, 0.1, 0.5, 0.6, 0.7))], {})
        assert found.verdicts == ()
        assert found.lines[0].values["wall_hue"].mean == 2.1
        assert [column.name for column in found.columns][:2] == ["wall hue", "object hue"]

    def test_measures_of_style_are_those_that_are_made(self) -> None:
        made = {member.name for member in fields(DigitMeasures)}
        assert {column.key for column in find_report("abc/mnist").columns} <= made
