"""Every report of every paper is consistent, and opens as words, as JSON and as a page."""

import html
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

from setsup.experiments import Measured, presets, report_on, reports
from setsup.pages import report_page
from setsup_cli.report_printing import print_report
from tests.experiments.report.test_report import measured, trained

PRESETS, REPORTS = presets(), reports()
PAPERS = {
    "abc": "2103.03240",
    "dcodr": "2203.11284",
    "orbits": "1703.04775",
    "cmc": "1906.05849",
    "pixels": "2512.04970",
}


def text_of(page: str) -> str:
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_rows_columns_and_what_stands_beside_agree(name: str) -> None:
    report = REPORTS[name]
    labels, keys = [row.label for row in report.rows], [column.key for column in report.columns]
    assert len(set(labels)) == len(labels)
    own = [set(report.evaluations) & PRESETS[row.preset].evaluations.keys() for row in report.rows]
    assert all(own)  # rows of other data may have other measures
    assert set().union(*own) == set(report.evaluations)
    for said in report.references.values():
        assert {label for label, _ in said} <= set(labels)
        assert {key for _, key in said} <= set(keys)
    assert all(set(claim.rows) <= set(labels) for claim in report.claims)
    assert PAPERS[name.partition("/")[0]] in report.source


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_it_opens_before_anything_was_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = REPORTS[name]
    found = report_on(report, [tmp_path])
    labels = [row.label for row in report.rows]
    assert not any(line.run for line in found.lines)
    assert set(found.commands) == set(labels)
    assert len(found.commands) == len(labels)
    assert all(verdict.holds is None and verdict.found for verdict in found.verdicts)
    asked = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["label"] for row in asked["rows"]] == labels
    assert [claim["says"] for claim in asked["claims"]] == [claim.says for claim in report.claims]
    print_report(found, "nowhere")
    words = " ".join(capsys.readouterr().out.split())
    for text in (words, text_of(report_page([found], name))):
        for said in (report.shows, *found.commands.values(), *(claim.says for claim in report.claims)):
            assert " ".join(said.split()) in text


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("name", ["abc/fig4a", "dcodr/shapes3d-small", "orbits/mnist-small", "cmc/colors-small"])
def test_a_run_stands_in_its_row_and_the_others_were_not_run(name: str, small: bool, tmp_path: Path) -> None:
    report = REPORTS[name]
    row = report.rows[1]
    run = trained(tmp_path, row.preset, small=small)
    for evaluation in set(report.evaluations) & run.preset.evaluations.keys():
        values = {column.key.removeprefix(f"{evaluation}: "): 0.25 for column in report.columns}
        measured(run, evaluation, Measured(values))
    found = report_on(report, [tmp_path])
    own = {other.label for other in report.rows if other.preset == row.preset}
    assert {line.row.label for line in found.lines if line.run} == own < {other.label for other in report.rows}
    assert {line.comparable for line in found.lines if line.run} == {not small}
    assert "0.25" in text_of(report_page([found], name))
