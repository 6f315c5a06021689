"""``setsup report``: words, JSON and a picture of runs that are written by hand."""

import base64
import hashlib
import html
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")

from setsup.experiments import Measured, find_preset  # noqa: E402
from setsup.experiments.runs.run_folder import begin  # noqa: E402
from setsup.experiments.settings import flatten  # noqa: E402
from tests.cli.refusals import refused  # noqa: E402

Run = Callable[..., Any]
FACTORS = ("wall_hue", "object_hue", "floor_hue", "scale", "shape", "orientation")


def measured(folder: Path, name: str, seed: int, values: dict[str, float], substitute: bool = False) -> None:
    preset = find_preset(name)
    config = {"precision": "float32", "devices": 1, "nodes": 1}
    run = begin(folder, preset, seed, substitute=substitute, config=config)
    parts = {"state_dict": {}, "optimizer_states": [], "LightningBatches": {}}
    torch.save(
        {"global_step": preset.steps, "callbacks": {"CheckpointCallback": {"seconds": 1.0}}, **parts}, run.checkpoint
    )
    for evaluation, settings in preset.evaluations.items():
        run.save(evaluation, Measured(values), flatten(settings))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """./runs: figure 4a with two seeds of the published data, and one random set with one of the substitute dataset."""
    for seed, wall in enumerate((0.02, 0.06)):
        values = dict(zip(FACTORS, (wall, 1.5, 1.4, 0.01, 0.02, 0.03), strict=True))
        measured(tmp_path / f"runs/abc/fig4a/seed-{seed}", "abc/fig4a", seed, values)
    values = dict(zip(FACTORS, (0.2, 1.5, 1.4, 0.01, 0.02, 0.03), strict=True))
    measured(tmp_path / "runs/abc/fig4a-random/seed-0", "abc/fig4a-random", 0, values, substitute=True)
    return tmp_path / "runs"


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def test_the_paper_beside_ours(setsup: Run, runs: Path) -> None:
    found = setsup("report", "abc/fig4a")
    assert found.code == 0
    lines = found.out.splitlines()
    assert lines[0] == "abc/fig4a: information, the wall's hue inactive"
    assert "arXiv 2103.03240" in lines[1]
    at = next(number for number, line in enumerate(lines) if line.startswith("both sets curated"))
    words = ["figure only"] * 3
    assert cells(lines[at]) == ["both sets curated", "the paper", "≈ 0", "high", "high", *words]
    numbers = ["0.04 ± 0.03", "1.50 ± 0.00", "1.40 ± 0.00", "0.01 ± 0.00", "0.02 ± 0.00", "0.03 ± 0.00"]
    assert cells(lines[at + 1]) == ["ours", *numbers, "2 of 10"]
    assert cells(lines[at + 3]) == ["not run", "0 of 10"]
    assert cells(lines[at + 4])[:3] == ["substitute: shapes3d-procedural", "0.20", "1.50"]
    assert cells(lines[at + 5]) == ["ceiling", "2.30", "2.30", "2.30", "2.08", "1.39", "2.71"]
    assert "not run as in the paper:\n  setsup train abc/fig4a-random\n" in found.out
    assert "  holds (2 of 10 seeds): No information on inactive factors" in found.out
    assert "found: both sets curated: wall hue 0.040\n" in found.out
    assert "  not tested: It is enough that one of the two sets is curated" in found.out


def test_json(setsup: Run, runs: Path) -> None:
    found = setsup("report", "abc/fig4a", runs, "--json").json
    assert (found["report"], found["unit"], found["picture"]) == ("abc/fig4a", "nats", None)
    assert [column["key"] for column in found["columns"]] == list(FACTORS)
    first, second = found["rows"]
    assert (first["preset"], first["seeds"], first["command"]) == ("abc/fig4a", 10, None)
    assert first["references"]["the paper"]["wall_hue"] == "≈ 0"
    (line,) = first["lines"]
    assert (line["seeds"], line["differs"], line["needs"]) == ([0, 1], [], [])
    # deviations of 0.02 on both sides of the mean
    assert line["values"]["wall_hue"] == pytest.approx({"mean": 0.04, "sd": 0.02 * 2**0.5, "n": 2})
    assert second["command"] == "setsup train abc/fig4a-random"
    assert [(line["substitute"], line["comparable"]) for line in second["lines"]] == [("shapes3d-procedural", True)]
    assert [claim["holds"] for claim in found["claims"]] == [True, True, None]
    assert {"says", "tested", "holds", "found", "on"} == found["claims"][0].keys()


@pytest.mark.long("trainings")
def test_a_picture(setsup: Run, runs: Path, tmp_path: Path) -> None:
    found = setsup("report", "abc/fig4a", "--out", tmp_path / "made" / "fig4a.png")
    assert found.out.splitlines()[-1] == str(tmp_path / "made" / "fig4a.png")
    with Image.open(tmp_path / "made" / "fig4a.png") as picture:
        assert picture.format == "PNG"
        pixels = np.asarray(picture.convert("RGB"))
    # bars of both charts
    assert (pixels == (0x1F, 0x77, 0xB4)).all(axis=2).sum() > 5_000
    assert setsup("report", "abc/fig4a", "--out", "a.png", "--json").json["picture"] == "a.png"


def test_a_page(setsup: Run, runs: Path, tmp_path: Path) -> None:
    found = setsup("report", "abc/fig4a", "--out", tmp_path / "fig4a.html", "--json")
    assert (found.json["page"], found.json["picture"]) == (str(tmp_path / "fig4a.html"), None)
    page = (tmp_path / "fig4a.html").read_text(encoding="utf-8")
    assert "<h2>abc/fig4a: information, the wall&#x27;s hue inactive</h2>" in page
    assert "holds (2 of 10 seeds)" in page
    styles = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in styles]
    policy = html.unescape(re.findall('http-equiv="Content-Security-Policy" content="(.*?)"', page)[0])
    hashed = " ".join(f"'sha256-{one}'" for one in digests)
    assert policy.startswith(f"default-src 'none'; script-src 'none'; style-src {hashed}; img-src data:;")
    plots = re.findall('<img src="data:image/png;base64,([^"]*)" width="[0-9]+" alt="Plot', page)
    assert len(plots) >= 2
    for plot in plots:
        with Image.open(io.BytesIO(base64.b64decode(plot))) as picture:
            assert picture.width > 100
    assert str(tmp_path) not in page


def test_what_has_many_values_stands_upright(setsup: Run, tmp_path: Path) -> None:
    keys = [column["key"] for column in setsup("report", "abc/mnist", "--json").json["columns"]]
    values = {f"trained: {key}": number / 10 for number, key in enumerate(keys)}
    measured(tmp_path / "runs/abc/mnist/seed-0", "abc/mnist", 0, values)
    found = setsup("report", "abc/mnist")
    lines = found.out.splitlines()
    assert cells(next(line for line in lines if line.startswith("nines: R² of slant"))) == [
        "nines: R² of slant",
        "0.100",
    ]
    assert "pixels: ours, 1 of 5 seeds" in lines


def test_words_stay_whole_on_narrow_terminals(setsup: Run, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for width in (60, 80, 100, 140, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        shown = re.sub("\x1b\\[[0-9;]*m", "", setsup("report", "abc/fig4a").out)
        table = shown.partition("seeds.\n")[2].partition("not run as")[0]
        assert max(map(len, table.splitlines())) <= width
        words = set(re.findall(r"\S+", table))
        assert {"shapes3d-procedural", "orientation", "ceiling", "2.71", "0.20"} <= words


def test_nothing_run(setsup: Run) -> None:
    found = setsup("report", "abc/figS3")
    assert found.code == 0
    missing = "not run as in the paper:\n  setsup train abc/figS3\n"
    named = "pass other folders: setsup report abc/figS3 FOLDER\n"
    assert f"{missing}./runs does not exist; {named}" in found.out
    Path("runs").mkdir()
    assert f"{missing}searched ./runs; {named}" in setsup("report", "abc/figS3").out
    assert "looked" not in setsup("report", "abc/figS3", "runs").out
    assert "  not tested: The number of dimensions" in found.out


def test_a_table_without_runs_has_no_empty_line(setsup: Run) -> None:
    printed = setsup("report", "abc/table1-cars-small").out
    cells = [re.split(r" {3,}", line) for line in printed.splitlines()]
    heads = "median error", "Acc@", "front and back", "seeds"
    values = [line for line in cells if line[0].startswith(heads)]
    assert ["median error (°)", "16.10"] in [line[:2] for line in values]
    assert {line[0] for line in values} == {"median error (°)", "Acc@30"}
    assert "needs runs of ABC, and of ABC without real images\n" in printed
    names = [column["label"] for column in setsup("report", "abc/table1-cars-small", "--json").json["columns"]]
    assert len(set(names)) == len(names)


def test_not_measured(setsup: Run, runs: Path) -> None:
    found = setsup("report", "abc/fig3c")
    assert "ours, not measured" in found.out
    listed = [f"  setsup eval runs/abc/fig4a/seed-{seed} --preset abc/fig3c" for seed in (0, 1)]
    assert "\n".join(["not measured:", *listed]) in found.out


def test_a_page_has_what_the_terminal_has(setsup: Run, runs: Path, tmp_path: Path) -> None:
    found = setsup("report", "abc/fig3c", "--out", tmp_path / "page.html").out
    text = html.unescape(re.sub("<[^>]+>", "\n", (tmp_path / "page.html").read_text(encoding="utf-8")))
    claims, commands = re.findall("  not tested: (.*)", found), re.findall("  (setsup .*)", found)
    assert claims
    assert commands
    for words in (*(f"not tested: {claim}" for claim in claims), *commands):
        assert words in text
    setsup("report", "abc/fig3c", runs.absolute(), "--out", tmp_path / "absolute.html")
    assert str(runs.absolute()) not in (tmp_path / "absolute.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("has_runs", [False, True])
def test_the_list(setsup: Run, tmp_path: Path, has_runs: bool) -> None:
    if has_runs:
        (tmp_path / "runs").mkdir()
    words = setsup("report").out
    listed = setsup("report", "--json").json
    assert {"abc/fig3a", "abc/fig4d", "abc/figS2", "abc/mnist"} <= {report["name"] for report in listed}
    for paper in {report["name"].partition("/")[0] for report in listed}:
        of_paper = [report for report in listed if report["name"].partition("/")[0] == paper]
        assert f"{paper}: {len(of_paper)}" in words
        shown = setsup("report", paper).out
        assert all(report["name"] in shown and report["shows"] in shown for report in of_paper)
        assert len(shown.splitlines()) == len(of_paper)
    # the preset for own data that is called as its paper: any further word reports on its runs
    if has_runs:
        assert "setsup train cmc" in setsup("report", "cmc", "runs").out


class TestAll:
    def test_every_table_with_a_measured_value(self, setsup: Run, runs: Path) -> None:
        measured(runs / "orbits/mnist-oj-small/seed-0", "orbits/mnist-oj-small", 0, {"any member": 0.25})
        found = setsup("report", "--all").out
        assert "abc/fig4a: information, the wall's hue inactive" in found
        assert "orbits/mnist-small: " in found
        assert "abc/figS2" not in found
        assert "not run as in the paper" not in found
        assert "  not tested" not in found
        named = [one["report"] for one in setsup("report", "--all", runs / "orbits", "--json").json["reports"]]
        assert named == ["orbits/mnist-small", "orbits/compared-small"]

    @pytest.mark.long("charts")
    def test_one_page(self, setsup: Run, runs: Path, tmp_path: Path) -> None:
        found = setsup("report", "--all", "--out", tmp_path / "page.html")
        assert found.out.splitlines()[-1] == str(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        rows = [re.sub("<[^>]+>", "|", row).strip("|").split("||") for row in re.findall("<tr.*?</tr>", page)]
        ours = next(row for row in rows if "ours" in row)
        numbers = ["0.04 ± 0.03", "1.50 ± 0.00", "1.40 ± 0.00", "0.01 ± 0.00", "0.02 ± 0.00", "0.03 ± 0.00"]
        assert ours == ["ours", *numbers, "2 of 10"]
        assert "substitute: shapes3d-procedural" in page
        assert "holds (2 of 10 seeds)" in page
        assert not re.search('<script|src="(?!data:image/png;base64,)|url[(]|<link (?!rel="icon" href="data:,")', page)
        assert setsup("report", "--all", "--out", tmp_path / "page.html").code == 0
        assert not (tmp_path / "page-2.html").exists()

    def test_nothing_measured(self, setsup: Run) -> None:
        assert "./runs does not exist; pass folders of runs" in setsup("report", "--all").err
        Path("runs").mkdir()
        assert setsup("report", "--all").out == (
            "no report has a measured value in ./runs; measure a run: setsup eval RUN\n"
        )
        assert "must be a file with the suffix .html" in setsup("report", "--all", "--out", "a.png").err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["abc/fig4"], "unknown report 'abc/fig4'; did you mean 'abc/fig"),
        (["abc/fig4a", "nowhere"], "nowhere does not exist"),
        (["abc/fig4a", "--out", "a.pdf"], "--out must be a file with the suffix .png, not a.pdf"),
        (["nowhere.py"], "does not exist"),
    ],
)
def test_what_cannot_be_done(setsup: Run, words: list[str], sentence: str) -> None:
    found = setsup("report", *words)
    refused(found, sentence)


def test_a_damaged_run_is_named(setsup: Run, runs: Path) -> None:
    (runs / "abc/fig4a/seed-0/evaluation.json").write_text(json.dumps({"information": None}))
    found = setsup("report", "abc/fig4a")
    assert found.code == 0
    assert "1 of 10" in found.out
    assert "runs/abc/fig4a/seed-0 is omitted: 'information' in" in found.out


def test_paths_of_runs_instead_of_a_report(setsup: Run, runs: Path) -> None:
    for path in ("runs/abc/fig4a/seed-0", "runs/abc/fig4a/seed-0/config.yaml"):
        found = setsup("report", path)
        assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
        assert found.err.startswith(f"setsup: {path} is a run of abc/fig4a, not a report; ")
        meant = re.findall("`setsup (.*?)`", found.err)
        assert meant == ["report abc/fig4a runs/abc/fig4a/seed-0"]
        assert "1 of 10" in setsup(*meant[0].split()).out
    found = setsup("report", "runs")
    refused(found, "`setsup report REPORT runs`")
    assert "abc/fig4a" in setsup(*re.findall("`setsup (report --all .*?)`", found.err)[0].split()).out


def test_a_report_goes_before_a_folder_of_its_name(setsup: Run) -> None:
    Path("abc/fig4a").mkdir(parents=True)
    assert setsup("report", "abc/fig4a").code == 0
