"""Reports of runs that are written by hand, with numbers that are known."""

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from setsup.errors import DataError, SetsupError

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")

from setsup.experiments import Measured, Run, find_preset, presets, smoke  # noqa: E402
from setsup.experiments.report import Claim, Column, Report, Row, Spread, registry, results  # noqa: E402  # noqa: E402
from setsup.experiments.report.cells import table_rows  # noqa: E402
from setsup.experiments.report.fill import Result, fill  # noqa: E402
from setsup.experiments.report.filled import FilledReport, Line  # noqa: E402
from setsup.experiments.report.picture import draw_report  # noqa: E402
from setsup.experiments.report.registry import find_report, measured_reports, report_on, reports  # noqa: E402
from setsup.experiments.report.report import reference_words  # noqa: E402
from setsup.experiments.runs.run_folder import begin, open_run  # noqa: E402
from setsup.experiments.settings import flatten, put  # noqa: E402
from setsup.pages import report_page  # noqa: E402

FACTORS = ("wall_hue", "object_hue", "floor_hue", "scale", "shape", "orientation")
CONFIG = {"precision": "float32", "devices": 1, "nodes": 1}


def trained(
    folder: Path, name: str, seed: int = 0, *, done: int | None = None, small: bool = False, **asked: Any
) -> Run:
    """A run as training leaves it; settings as in the preset but for those that are asked for."""
    substitute, config = asked.pop("substitute", False), CONFIG | asked.pop("config", {})
    preset = put(find_preset(name), {key.replace("__", "."): value for key, value in asked.items()})
    run = begin(folder, smoke(preset) if small else preset, seed, substitute=substitute, config=config)
    parts = {"state_dict": {}, "optimizer_states": [], "LightningBatches": {}}
    at = run.preset.steps if done is None else done
    torch.save({"global_step": at, "callbacks": {"CheckpointCallback": {"seconds": 1.0}}, **parts}, run.checkpoint)
    return run


def measured(run: Run, name: str, found: Measured, like: str | None = None, **changed: Any) -> Run:
    """What an evaluation keeps."""
    preset = find_preset(like or run.preset.name)
    preset = smoke(preset) if run.preset.shrunk else preset
    run.save(name, found, flatten(preset.evaluations[name]) | changed)
    return run


def nats(*values: float) -> Measured:
    return Measured(dict(zip(FACTORS, values, strict=True)))


def lines_of(found: FilledReport, label: str) -> list[Line]:
    return [line for line in found.lines if line.row.label == label]


def test_what_a_paper_cites_stands_below_the_rows() -> None:
    report = Report(
        name="mine/table",
        shows="x",
        source="",
        evaluations=("oneshot",),
        rows=(Row("abc/fig4a", "ours"),),
        columns=(Column("a"), Column("b")),
        references={"the paper": {("ours", "a"): 0.5}},
        cited={"another <one>": {"b": (0.25, 0.01)}},
    )
    filled = fill(report, [], {"abc/fig4a": 10})
    rows = [["ours", "the paper", "0.50", "", ""], ["", "not run", "", "", "0 of 10"]]
    assert table_rows(filled) == [*rows, ["another <one>", "cited in the paper", "", "0.25 ± 0.01", ""]]
    assert filled.to_dict()["cited"] == {"another <one>": {"b": (0.25, 0.01)}}
    assert '<td>another &lt;one&gt;</td><td data-head="run">cited in the paper</td>' in report_page([filled])
    assert not filled.measured
    draw_report(filled)


class TestMeansAndSpreads:
    def test_by_hand(self, tmp_path: Path) -> None:
        for seed, wall in enumerate((0.1, 0.2, 0.6)):
            run = trained(tmp_path / f"seed-{seed}", "abc/fig4a", seed)
            measured(run, "information", nats(wall, 1, 1, 0, 0, 0))
        line = lines_of(report_on(find_report("abc/fig4a"), [tmp_path]), "both sets curated")[0]
        # mean 0.9 / 3; deviations −0.2, −0.1, 0.3; their squares sum to 0.14, over n − 1 = 2
        assert line.values["wall_hue"] == pytest.approx((0.3, math.sqrt(0.07), 3))
        assert line.values["wall_hue"].words(2) == "0.30 ± 0.26"
        assert line.values["object_hue"] == (1, 0, 3)
        assert line.seeds == (0, 1, 2)
        assert [Path(folder).name for folder in line.folders] == ["seed-0", "seed-1", "seed-2"]

    def test_a_seed_has_no_spread(self, tmp_path: Path) -> None:
        measured(trained(tmp_path, "abc/fig4a"), "information", nats(0.25, 1, 1, 0, 0, -0.001))
        line = report_on(find_report("abc/fig4a"), [tmp_path]).lines[0]
        assert line.values["wall_hue"] == (0.25, None, 1)
        assert [line.values[key].words(2) for key in ("wall_hue", "orientation")] == ["0.25", "0.00"]

    @given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12))
    def test_as_numpy_has_them(self, values: list[float]) -> None:
        runs = [Result("a", seed, str(seed), values={"x": value}) for seed, value in enumerate(values)]
        report = Report(name="r", shows="", source="", evaluations=("e",), rows=(Row("a", "a"),))
        mean, sd, n = fill(report, runs, {"a": 12}).lines[0].values["x"]
        assert mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
        assert sd == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-6)
        assert n == len(values)

    def test_what_is_not_finite_is_said_and_proves_nothing(self, tmp_path: Path) -> None:
        measured(trained(tmp_path, "abc/fig4a"), "information", nats(math.nan, math.inf, 1, 0, 0, 0))
        found = report_on(find_report("abc/fig4a"), [tmp_path])
        assert found.lines[0].values["wall_hue"].words(2) == "nan"
        kept = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert kept["rows"][0]["lines"][0]["values"]["wall_hue"] == {"mean": None, "sd": None, "n": 1}
        assert [claim["holds"] for claim in kept["claims"]] == [None, None, None]
        draw_report(found)

    def test_a_seed_counts_once(self, tmp_path: Path) -> None:
        for name, wall in (("a", 0.1), ("b", 0.5)):
            measured(trained(tmp_path / name, "abc/fig4a", 3), "information", nats(wall, 1, 1, 0, 0, 0))
        trained(tmp_path / "c", "abc/fig3a", 3)  # trains the same, and was not measured for this
        found = report_on(find_report("abc/fig4a"), [tmp_path])
        assert found.lines[0].values["wall_hue"] == (0.1, None, 1)
        assert found.notes == (f"{tmp_path / 'b'} is omitted: {tmp_path / 'a'} already has seed 3",)

    def test_a_folder_that_is_named_twice_counts_once(self, tmp_path: Path) -> None:
        measured(trained(tmp_path / "a", "abc/fig4a"), "information", nats(0, 1, 1, 0, 0, 0))
        found = report_on(find_report("abc/fig4a"), [tmp_path, tmp_path / "a"])
        assert (found.lines[0].seeds, found.notes) == ((0,), ())

    def test_parts_of_one_evaluation(self, tmp_path: Path) -> None:
        run = trained(tmp_path, "abc/mnist")
        picture = Image.new("RGB", (40, 30), "red")
        found = Measured(
            {"trained: withheld_slant": 0.7, "untrained: withheld_slant": 0.35, "pixels: slant": 0.04}
            | {"trained: noisy_accuracy": 0.15, "trained: spread": 5},
            pictures={"nines": picture},
        )
        measured(run, "style", found)
        filled = report_on(find_report("abc/mnist"), [tmp_path])
        by_label = {line.row.label: line for line in filled.lines}
        assert by_label["ABC"].values["withheld_slant"].mean == 0.7
        assert by_label["untrained"].values["withheld_slant"].mean == 0.35
        assert set(by_label["pixels"].values) == {"slant"}
        # images are shown once
        assert [len(line.pictures) for line in filled.lines] == [1, 0, 0]
        assert filled.verdicts[2].on == "1 of 5 seeds"


class TestWhichRunsBelong:
    def test_presets_that_train_the_same_share_runs(self, tmp_path: Path) -> None:
        run = trained(tmp_path, "abc/fig3a")
        measured(run, "information", nats(0, 1, 1, 0, 0, 0), like="abc/fig4a")
        assert report_on(find_report("abc/fig4a"), [tmp_path]).lines[0].seeds == (0,)
        small = trained(tmp_path / "small", "abc/fig3a", small=True)
        measured(small, "information", nats(0, 1, 1, 0, 0, 0), like="abc/fig4a")
        [line] = [line for line in report_on(find_report("abc/fig4a"), [small.folder]).lines if line.run]
        assert (line.seeds, line.differs) == ((0,), ("smoke",))
        # with curves of its own
        found = report_on(find_report("abc/fig3c"), [tmp_path])
        assert found.lines[0].needs == (f"setsup eval {tmp_path} --preset abc/fig3c",)
        assert (found.lines[0].seeds, found.lines[0].run, found.commands) == ((), True, {})

    def test_the_size_of_all_other_figures_stands_among_sizes(self, tmp_path: Path) -> None:
        measured(trained(tmp_path, "abc/fig4a"), "information", nats(0, 1, 1, 0, 0, 0))
        assert lines_of(report_on(find_report("abc/fig4d"), [tmp_path]), "sets of 32")[0].seeds == (0,)

    def test_what_was_changed_into_another_row_belongs_there_only(self, tmp_path: Path) -> None:
        run = trained(tmp_path, "abc/fig4d-4", sampler__size=64)
        measured(run, "information", nats(0, 1, 1, 0, 0, 0))
        found = report_on(find_report("abc/fig4d"), [tmp_path])
        assert [(line.row.label, line.differs) for line in found.lines if line.run] == [("sets of 64", ())]

    def test_settings_that_teach_nothing_else(self, tmp_path: Path) -> None:
        run = trained(tmp_path, "abc/fig4a", checkpoint_every=7, seeds=3)
        measured(run, "information", nats(0, 1, 1, 0, 0, 0))
        assert report_on(find_report("abc/fig4a"), [tmp_path]).lines[0].differs == ()

    @pytest.mark.parametrize(
        ("asked", "about", "words", "comparable"),
        [
            ({"substitute": True}, {}, ["substitute: shapes3d-procedural"], True),
            ({"config": {"precision": "bf16"}}, {}, ["bf16"], True),
            (
                {"substitute": True, "config": {"precision": "bf16"}},
                {},
                ["substitute: shapes3d-procedural", "bf16"],
                True,
            ),
            ({"steps": 4}, {}, ["steps 2,000 → 4"], False),
            ({"method__rate": 1e-3}, {}, ["method.rate 3e-05 → 0.001"], False),
            ({"sampler__inactive": ("scale", "shape")}, {}, ["sampler.inactive wall_hue → scale shape"], False),
            ({"small": True}, {}, ["smoke"], False),
            ({"small": True}, {"samples": 512}, ["smoke", "information.samples 288 → 512"], False),
            ({"small": True, "method__rate": 1e-3}, {}, ["smoke", "method.rate 3e-05 → 0.001"], False),
            ({"small": True, "substitute": True}, {}, ["substitute: shapes3d-procedural", "smoke"], False),
            ({"config": {"devices": 2, "sync_batchnorm": True}}, {}, ["2 draws per step", "sync_batchnorm"], False),
            ({"config": {"sync_batchnorm": True}}, {}, [], True),
            ({"config": {"devices": 2, "nodes": 2}}, {}, ["4 draws per step"], False),
            ({}, {"steps": 5_000}, ["information.steps none → 5,000"], False),
            ({}, {"measure": "Accuracy"}, ["information.measure FactorInformation → Accuracy"], False),
            ({"substitute": True}, {"samples": 9}, [
                "substitute: shapes3d-procedural", "information.samples 249,856 → 9"
            ], False),
        ],
    )  # fmt: skip
    def test_what_differs_stands_in_a_line_of_its_own(
        self, tmp_path: Path, asked: dict[str, Any], about: dict[str, Any], words: list[str], comparable: bool
    ) -> None:
        measured(trained(tmp_path, "abc/fig4a", **asked), "information", nats(0, 1, 1, 0, 0, 0), **about)
        found = report_on(find_report("abc/fig4a"), [tmp_path])
        *before, line = lines_of(found, "both sets curated")
        assert (list(line.differs), line.comparable, line.seeds) == (words, comparable, (0,))
        on_published_data = comparable and not asked.get("substitute")
        assert [other.run for other in before] == ([] if on_published_data else [False])
        assert ("both sets curated" in found.commands) is not on_published_data
        first = found.verdicts[0]
        assert first.holds is (True if comparable else None)
        if asked.get("substitute") and comparable:
            assert first.on.startswith("on the substitute dataset")

    def test_shrunk_runs_of_other_settings_are_not_pooled(self, tmp_path: Path) -> None:
        # as `train abc/fig4a --substitute --smoke` and the same with --sweep method.temperature=0.05,0.1 leave them
        usual = find_preset("abc/fig4a").method.temperature
        kinds = {"usual": {}, "half": {"method__temperature": usual / 2}, "twice": {"method__temperature": usual * 2}}
        for number, (kind, asked) in enumerate(kinds.items()):
            run = trained(tmp_path / kind, "abc/fig4a", small=True, substitute=True, **asked)
            measured(run, "information", nats(number, 0, 0, 0, 0, 0))
        found = report_on(find_report("abc/fig4a"), [tmp_path])
        lines = {Path(line.folders[0]).name: line for line in lines_of(found, "both sets curated") if line.run}
        assert {kind: line.values["wall_hue"].mean for kind, line in lines.items()} == {
            "usual": 0,
            "half": 1,
            "twice": 2,
        }
        assert lines["usual"].differs == ("substitute: shapes3d-procedural", "smoke")
        assert lines["half"].differs[2:] == (f"method.temperature {usual:g} → {usual / 2:g}",)
        assert not found.notes

    def test_several_devices_in_any_of_its_sessions(self, tmp_path: Path) -> None:
        run = trained(tmp_path, "abc/fig4a", done=120)
        begin(tmp_path, run.preset, 0, config=CONFIG | {"devices": 2})
        trained(tmp_path, "abc/fig4a")
        measured(run, "information", nats(0, 1, 1, 0, 0, 0))
        line = lines_of(report_on(find_report("abc/fig4a"), [tmp_path]), "both sets curated")[1]
        assert (line.differs, line.comparable) == (("1 to 2 draws per step",), False)

    def test_measured_before_the_evaluation_had_a_setting(self, tmp_path: Path) -> None:
        run = trained(tmp_path, "abc/fig4a")
        now = flatten(find_preset("abc/fig4a").evaluations["information"])
        run.save("information", nats(0, 1, 1, 0, 0, 0), {key: now[key] for key in ("factors", "estimator")})
        line = report_on(find_report("abc/fig4a"), [tmp_path]).lines[0]
        assert (line.differs, line.seeds) == ((), (0,))

    def test_unfinished(self, tmp_path: Path) -> None:
        run = measured(trained(tmp_path / "a", "abc/fig4a", done=120), "information", nats(0, 1, 1, 0, 0, 0))
        line = lines_of(report_on(find_report("abc/fig4a"), [tmp_path]), "both sets curated")[1]
        assert (line.differs, line.comparable, line.needs) == (("120 of 2,000 steps",), False, ())
        # it went on since
        state = torch.load(run.checkpoint) | {"global_step": 2_000}
        torch.save(state, run.checkpoint)
        line = lines_of(report_on(find_report("abc/fig4a"), [tmp_path]), "both sets curated")[1]
        assert (line.differs, line.comparable) == (("evaluated after 120 of 2,000 steps",), False)
        assert line.needs == (f"setsup eval {tmp_path / 'a'}",)

    def test_nothing_trained_yet(self, tmp_path: Path) -> None:
        begin(tmp_path / "a b", find_preset("abc/fig4a"), 0, config=CONFIG)
        line = lines_of(report_on(find_report("abc/fig4a"), [tmp_path]), "both sets curated")[1]
        assert (line.differs, line.seeds, line.needs) == (("0 of 2,000 steps",), (), ())
        trained(tmp_path / "a b", "abc/fig4a", done=1)
        line = lines_of(report_on(find_report("abc/fig4a"), [tmp_path]), "both sets curated")[1]
        assert line.needs == (f"setsup eval '{tmp_path / 'a b'}'",)

    def test_runs_of_other_presets_are_passed_over(self, tmp_path: Path) -> None:
        measured(trained(tmp_path / "a", "abc/fig4c"), "information", nats(0, 0, 0, 1, 1, 1))
        run = trained(tmp_path / "b", "abc/fig4a")
        description = json.loads((run.folder / "run.json").read_text()) | {"preset": "theirs/unknown"}
        (run.folder / "run.json").write_text(json.dumps(description))
        found = report_on(find_report("abc/fig4a"), [tmp_path])
        assert [line.run for line in found.lines] == [False, False]
        assert found.notes == ()
        assert found.commands == {
            "both sets curated": "setsup train abc/fig4a",
            "one random set": "setsup train abc/fig4a-random",
        }

    @pytest.mark.parametrize(
        ("file", "text", "said"),
        [
            ("run.json", "{", "cannot be read"),
            ("run.json", "{}", "run.json"),
            ("evaluation.json", "[]", "is not a JSON object"),
            ("evaluation.json", '{"information": 3}', "is not the result of an evaluation"),
            (
                "evaluation.json",
                '{"information": {"about": {}, "steps": 9, "values": {"a": "b"}, "curves": {}, "images": []}}',
                "is not the result of an evaluation",
            ),
            (
                "evaluation.json",
                '{"information": {"about": {}, "steps": 9, "values": {}, "curves": {"a": [[1], []]}, "images": []}}',
                "is not the result of an evaluation",
            ),
        ],
    )
    def test_damaged_runs_are_left_out_and_named(self, tmp_path: Path, file: str, text: str, said: str) -> None:
        for seed in (0, 1):
            measured(trained(tmp_path / f"{seed}", "abc/fig4a", seed), "information", nats(0, 1, 1, 0, 0, 0))
        (tmp_path / "0" / file).write_text(text)
        found = report_on(find_report("abc/fig4a"), [tmp_path])
        assert found.lines[0].seeds == (1,)
        (note,) = found.notes
        assert note.startswith(f"{tmp_path / '0'} is omitted: ")
        assert said in note

    def test_a_missing_folder(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="nowhere does not exist"):
            report_on(find_report("abc/fig4a"), [tmp_path / "nowhere"])


class TestCurves:
    def test_means_and_spreads_at_each_point(self, tmp_path: Path) -> None:
        x = [0.01, 0.1, 1.0, 10.0]
        for seed, y in enumerate(([4.0, 3, 2, 1], [6.0, 3, 1, 1])):
            curves = dict.fromkeys(FACTORS, (x, y))
            measured(trained(tmp_path / f"{seed}", "abc/fig3c", seed), "noise", Measured(curves=curves))
        found = report_on(find_report("abc/fig3c"), [tmp_path])
        places, mean, sd = found.lines[0].curves["scale"]
        assert (places, mean) == (x, [5, 3, 1.5, 1])
        assert sd == pytest.approx([math.sqrt(2), 0, math.sqrt(0.5), 0])
        assert found.lines[0].values["scale"] == pytest.approx((1.5, math.sqrt(0.5), 2))
        drawn = np.asarray(draw_report(found))
        assert drawn.std() > 10
        assert json.loads(json.dumps(found.to_dict()))["rows"][0]["lines"][0]["curves"]["scale"]["mean"][0] == 5

    def test_the_axis_is_in_units_of_the_loss(self, tmp_path: Path) -> None:
        # information falls by 1 a decade of σ, and is 1 at σ = √τ
        sigma = np.geomspace(1e-3, 1e2, 40) * math.sqrt(10)
        line = (sigma.tolist(), (1 - np.log10(sigma / math.sqrt(10))).tolist())
        run = trained(tmp_path, "abc/figS2-1-10")
        measured(run, "noise", Measured(curves=dict.fromkeys(FACTORS, line)))
        found = report_on(find_report("abc/figS2"), [tmp_path])
        (filled,) = [line for line in found.lines if line.seeds]
        assert filled.row.label == "the wall's hue inactive, τ = 10"
        assert filled.values["shape"].mean == pytest.approx(1, abs=1e-9)
        assert filled.curves["shape"][0] == pytest.approx(np.geomspace(1e-3, 1e2, 40))
        assert found.verdicts[0].holds is False

    def test_no_value_beyond_the_ends(self) -> None:
        report = replace(find_report("abc/fig3c"), claims=())
        run = Result("abc/fig3c", 0, "a", curves={"scale": ([2.0, 4.0], [1.0, 1.0])})
        assert fill(report, [run], {"abc/fig3c": 1}).lines[0].values == {}

    def test_unequal_axes(self) -> None:
        runs = [
            Result("abc/fig3c", seed, name, curves={"scale": ([1.0, x], [1.0, 1.0])})
            for seed, (name, x) in enumerate((("here", 2.0), ("there", 3.0)))
        ]
        with pytest.raises(DataError, match="'scale' of here and there have different axes"):
            fill(find_report("abc/fig3c"), runs, {"abc/fig3c": 1})


class TestVerdicts:
    def test_published_data_comes_first_and_full_precision(self) -> None:
        rows = {"substitute": 0.5, "": 0.05}
        runs = [
            Result("abc/fig4a", 0, f"{name} {precision}", name, precision, values=nats(wall, 1, 1, 0, 0, 0).values)
            for name, wall in rows.items()
            for precision in ("bf16", "float32")
        ]
        first = fill(find_report("abc/fig4a"), runs, {"abc/fig4a": 1, "abc/fig4a-random": 1}).verdicts[0]
        assert (first.holds, first.on) == (True, "")
        seeds = {"abc/fig4a": 10, "abc/fig4a-random": 10}
        first = fill(find_report("abc/fig4a"), runs[:1], seeds).verdicts[0]
        assert (first.holds, first.on) == (False, "on the substitute dataset, bf16, 1 of 10 seeds")

    def test_data_and_stand_in_are_never_compared(self) -> None:
        runs = [
            Result("abc/fig4a", 0, "a", values=nats(0, 1, 1, 0, 0, 0).values),
            Result("abc/fig4a-random", 0, "b", "shapes3d-procedural", values=nats(0, 1, 1, 0, 0, 0).values),
        ]
        report = find_report("abc/fig4a")
        assert [verdict.holds for verdict in fill(report, runs, {}).verdicts] == [True, True, None]
        runs.append(replace(runs[0], folder="c", substitute="shapes3d-procedural"))
        last = fill(report, runs, {}).verdicts[2]
        assert (last.holds, last.on) == (True, "on the substitute dataset")

    def test_runs_that_diverged_prove_nothing(self) -> None:
        lost = nats(*[math.nan] * 6).values
        runs = [Result(preset, 0, preset, values=lost) for preset in ("abc/fig4a", "abc/fig4a-random")]
        assert [verdict.holds for verdict in fill(find_report("abc/fig4a"), runs, {}).verdicts] == [None] * 3

    def test_seeds_are_those_of_the_rows_it_speaks_of(self) -> None:
        values = nats(0, 1, 1, 0.2, 0.2, 0.2).values
        runs = [Result("abc/fig4d-1024", seed, str(seed), values=values) for seed in range(10)]
        runs.append(Result("abc/fig4d-4", 0, "a", values=values))
        first, *_, last = fill(find_report("abc/fig4d"), runs, dict.fromkeys(presets(), 10)).verdicts
        assert (first.on, last.on) == ("1 of 10 seeds", "")


MINE = """
from dataclasses import dataclass
from setsup.experiments import Data, Measured, Preset, Sets
from setsup.experiments.report import Report, Row

@dataclass(frozen=True)
class Score:
    folds: int = 5

    def build(self, table, generator):
        raise NotImplementedError

    def measure(self, trained):
        raise NotImplementedError

PRESETS = [
    Preset(name=f"mine/{name}", shows="mine", data=Data("mnist"), sampler=Sets(inactive=("digit",)),
           method=Score(), steps=steps, seeds=2,
           evaluations={"score": Score(), "more": Score(folds=2)})
    for steps, name in enumerate(("first", "second", "third"), 1)
]
REPORTS = [Report(name="mine/table1", shows="both", source="my paper", evaluations=("score",),
                  rows=(Row("mine/first", "ours"), Row("mine/second", "theirs")))]
"""


class TestFindingReports:
    def test_by_the_name_of_a_row(self) -> None:
        assert find_report("abc/fig4d-256") is find_report("abc/fig4d")

    def test_a_preset_without_one(self, tmp_path: Path) -> None:
        (tmp_path / "mine.py").write_text(MINE)
        report = find_report(f"{tmp_path / 'mine.py'}:mine/third")
        assert (report.evaluations, report.columns, report.claims) == (("score", "more"), (), ())

    def test_neither(self) -> None:
        with pytest.raises(SetsupError, match="unknown report 'abc/fig4z'; did you mean 'abc/fig"):
            find_report("abc/fig4z")

    def test_in_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("mine.py").write_text(MINE)
        run = trained(tmp_path / "runs", "mine.py:mine/second", 1)
        run.save("score", Measured({"r2": 0.5}), {"folds": 5})
        for name in ("mine.py", "mine.py:mine/table1", "mine.py:mine/second"):
            report = find_report(name)
            assert report.name == "mine/table1"
            found = report_on(report, ["runs"])
            assert [(line.row.label, line.seeds) for line in found.lines] == [("ours", ()), ("theirs", (1,))]
            assert found.columns == (Column("r2"),)
            assert found.commands == {"ours": "setsup train mine.py:mine/first"}

    def test_all_that_evaluations_find(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("all.py").write_text(MINE)
        for seed in (0, 1):
            run = trained(tmp_path / f"runs/{seed}", "all.py:mine/third", seed)
            run.save("score", Measured({"r2": seed / 2}), {"folds": 5})
        run.save("more", Measured({"r2": 9}), {"folds": 3})
        report = find_report("all.py:mine/third")
        found = report_on(report, ["runs"])
        assert report.evaluations == ("score", "more")
        first, second = found.lines
        assert first.values == {"score: r2": (0.0, None, 1)}
        assert first.needs == ("setsup eval runs/0",)  # the run remembers the file of its preset
        assert second.differs == ("more.folds 2 → 3",)
        assert second.values == {"score: r2": (0.5, None, 1), "more: r2": (9, None, 1)}
        assert [column.key for column in found.columns] == ["score: r2", "more: r2"]
        draw_report(found)

    def test_reports_of_other_packages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        theirs = Report(name="their/table", shows="", source="", evaluations=("e",), rows=(Row("their/a", "a"),))
        preset = replace(find_preset("abc/mnist"), name="their/a")
        module = SimpleNamespace(PRESETS=[preset], REPORTS=[theirs])
        entry = SimpleNamespace(name="theirs", value="theirs.experiments", dist=None, load=lambda: module)
        offered = {"setsup.experiments": [entry]}
        monkeypatch.setattr("setsup.packages.entry_points", lambda group: offered.get(group, []))
        assert find_report("their/table") is theirs
        assert report_on(theirs).commands == {"a": "setsup train their/a"}
        module.REPORTS = [preset]
        with pytest.raises(SetsupError, match=r"REPORTS of theirs\.experiments must be"):
            reports()
        module.REPORTS = 3
        with pytest.raises(SetsupError, match="must be a sequence"):
            reports()


class TestThePicture:
    def test_pictures_of_runs_are_shown(self, tmp_path: Path) -> None:
        for seed, color in enumerate(("#ff0000", "#00ff00")):
            found = Measured({"first 2": 0.99}, pictures={"pca": Image.new("RGB", (300, 200), color)})
            measured(trained(tmp_path / f"{seed}", "abc/fig3a", seed), "components", found)
        drawn = draw_report(report_on(find_report("abc/fig3a"), [tmp_path]))
        pixels = np.asarray(drawn).reshape(-1, 3)
        for color in ((255, 0, 0), (0, 255, 0)):
            assert (pixels == color).all(axis=1).sum() >= 300 * 200

    def test_bars_stand_as_high_as_means(self, tmp_path: Path) -> None:
        def blue(wall: float) -> int:
            measured(trained(tmp_path, "abc/fig4a"), "information", nats(wall, 0, 0, 0, 0, 0))
            drawn = draw_report(report_on(find_report("abc/fig4a"), [tmp_path]))
            return int((np.asarray(drawn) == (0x1F, 0x77, 0xB4)).all(axis=2).any(axis=1).sum())

        low, high = blue(1.0), blue(2.0)
        assert 1.8 < high / low < 2.2

    def test_another_unit_has_a_chart_of_its_own(self) -> None:
        def height(unit: str) -> int:
            columns = (Column("x"), Column("y", unit=unit))
            report = Report(name="r", shows="", source="", evaluations=("e",), rows=(Row("a", "a"),), columns=columns)
            drawn = draw_report(fill(report, [Result("a", 0, "a", values={"x": 1.0, "y": 100.0})], {"a": 1}))
            blue = (np.asarray(drawn) == (0x1F, 0x77, 0xB4)).all(axis=2)
            return int(blue[:, : int(np.flatnonzero(blue.any(axis=0))[0]) + 3].any(axis=1).sum())  # of the first bar

        assert height("") < 10
        assert height("metre") > 300

    def test_a_picture_that_cannot_be_read(self, tmp_path: Path) -> None:
        run = trained(tmp_path, "abc/fig3a")
        measured(run, "components", Measured({"first 2": 0.99}, pictures={"pca": Image.new("RGB", (30, 20))}))
        (tmp_path / "components-pca.png").write_text("no image")
        with pytest.raises(DataError, match=r"components-pca\.png cannot be read"):
            draw_report(report_on(find_report("abc/fig3a"), [tmp_path]))

    def test_a_picture_that_is_gone_is_left_out(self, tmp_path: Path) -> None:
        run = trained(tmp_path, "abc/fig3a")
        measured(run, "components", Measured({"first 2": 0.99}, pictures={"pca": Image.new("RGB", (30, 20))}))
        (tmp_path / "components-pca.png").unlink()
        assert report_on(find_report("abc/fig3a"), [tmp_path]).lines[0].pictures == ()

    def test_numbers_beside(self, tmp_path: Path) -> None:
        def drawn(report: Report) -> Image.Image:
            return draw_report(fill(report, [Result("a", 0, "a", values={"x": 0.5})], {"a": 1}))

        report = Report(name="r", shows="", source="", evaluations=("e",), rows=(Row("a", "a"),))
        words = replace(report, references={"paper": {("a", "x"): "high"}})
        numbers = replace(report, references={"paper": {("a", "x"): 0.9}})
        spread = replace(report, references={"paper": {("a", "x"): (0.9, 0.3)}})
        assert drawn(words).tobytes() == drawn(report).tobytes()
        ink = [(np.asarray(drawn(one)).max(axis=2) < 110).sum() for one in (words, numbers, spread)]
        assert ink[0] + 40 < ink[1]  # a mark, and its name
        assert ink[1] + 50 < ink[2]  # and an error bar
        assert [reference_words(value, 2) for value in ("high", 0.9, (0.9, 0.05))] == ["high", "0.90", "0.90 ± 0.05"]


def test_a_claim_sees_only_what_was_run() -> None:
    seen: list[Any] = []

    def criterion(means: Any) -> tuple[bool | None, str]:
        seen.append(means)
        return None, "never enough"

    report = Report(
        name="r",
        shows="",
        source="",
        evaluations=("e",),
        rows=(Row("a", "a"), Row("b", "b")),
        claims=(Claim(says="it is so", tested="so", criterion=criterion),),
    )
    runs = [
        Result("a", 0, "1", values={"x": 1.0, "y": math.nan}),
        Result("b", 0, "2", values={"x": 1.0}, changed=("more",)),
    ]
    (verdict,) = fill(report, runs, {}).verdicts
    assert (verdict.holds, verdict.found, verdict.on) == (None, "never enough", "")
    assert seen == [{"a": {"x": Spread(1.0, None, 1)}}, {}]


def test_all_reports_open_and_read_each_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in (0, 1):
        run = trained(tmp_path / f"abc-{seed}", "abc/fig4a", seed)
        measured(run, "information", nats(0.04, 1.5, 1.4, 0.01, 0.02, 0.03))
    in_two = trained(tmp_path / "in-two", "orbits/mnist-oj-small")
    measured(in_two, "oneshot", Measured({"any member": 0.25}))
    trained(tmp_path / "broken", "abc/fig4a").checkpoint.write_bytes(b"")
    (tmp_path / "unknown").mkdir()
    about = json.loads((in_two.folder / "run.json").read_text()) | {"preset": "elsewhere/other"}
    (tmp_path / "unknown" / "run.json").write_text(json.dumps(about))
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{}")
    some = {name: reports()[name] for name in ("abc/fig4a", "abc/fig4b", "orbits/mnist-small", "orbits/compared-small")}
    monkeypatch.setattr(registry, "reports", lambda: some)
    expected = [found for report in some.values() if (found := report_on(report, [tmp_path])).measured]
    opened: list[str] = []
    read: list[str] = []

    def counted(folder: Path, preset: Any = None) -> Run:
        opened.append(folder.name)
        return open_run(folder, preset)

    whole = Run.results
    monkeypatch.setattr(results, "open_run", counted)
    monkeypatch.setattr(Run, "results", lambda run: (read.append(run.folder.name), whole(run))[1])
    found = measured_reports([tmp_path])
    assert [one.to_dict() for one in found] == [one.to_dict() for one in expected]
    assert len([one for one in found if any("in-two" in folder for line in one.lines for folder in line.folders)]) == 2
    assert sorted(opened) == ["abc-0", "abc-1", "broken", "damaged", "in-two", "unknown"]
    assert sorted(read) == ["abc-0", "abc-1", "broken", "in-two"]
