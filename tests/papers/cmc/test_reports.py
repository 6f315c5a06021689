"""Reports on contrastive multiview coding: published numbers, and claims on values that are known."""

import pytest
from scipy.stats import spearmanr

pytest.importorskip("torch")

from setsup.experiments import find_report, report_on, reports
from setsup.experiments.report.cells import table_rows
from setsup.experiments.report.fill import Result, fill
from setsup_papers.cmc.claims import rank_correlation

NAMES = [name for name in reports() if name.startswith("cmc/")]


def test_published_and_cited_numbers() -> None:
    rows = table_rows(report_on(find_report("cmc/table1")))
    assert ["CMC", "the paper", "0.184", "0.335", "0.381", "0.404", "0.426", ""] in rows
    assert ["AET", "cited in the paper", "0.193", "0.328", "0.406", "0.397", "0.377", ""] in rows
    rows = table_rows(report_on(find_report("cmc/table3")))
    assert [row for row in rows if row[1] == "the paper"] == [
        ["random", "the paper", "0.455", "0.214", ""],
        ["core view", "the paper", "0.571", "0.341", ""],
        ["full graph", "the paper", "0.570", "0.344", ""],
        ["supervised", "the paper", "0.578", "0.359", ""],
    ]
    rows = table_rows(report_on(find_report("cmc/table6")))
    assert ["Cross and Learn", "cited in the paper", "0.587", "0.272", "", "", ""] in rows
    assert report_on(find_report("cmc/table7")).to_dict()["rows"][1]["references"]["the paper"]["ab: mIoU"] == 0.261


def verdicts(name: str, values: dict[str, dict[str, float]]) -> list[bool | None]:
    """Verdicts on the claims of a report, from values by preset."""
    report = find_report(name)
    results = [Result(preset, 0, f"run-{preset}", values=found) for preset, found in values.items()]
    return [verdict.holds for verdict in fill(report, results, {row.preset: 1 for row in report.rows}).verdicts]


def test_claims_on_rooms() -> None:
    views = {f"cmc/rooms-{count}-views-small": {"L: mIoU": 0.2 + 0.01 * count} for count in range(1, 5)}
    full = {"L: mIoU": 0.36, "untrained: L: mIoU": 0.2, "supervised: L: mIoU": 0.4}
    assert verdicts("cmc/rooms-small", {**views, "cmc/rooms-full-small": full}) == [True, True]
    falling = {name: {"L: mIoU": -found["L: mIoU"]} for name, found in views.items()}
    assert verdicts("cmc/rooms-small", {**falling, "cmc/rooms-full-small": full | {"L: mIoU": 0.3}}) == [False, False]
    assert verdicts("cmc/rooms-small", {}) == [None, None]


def test_claims_on_colors_and_digits() -> None:
    spaces = [row.preset for row in find_report("cmc/colors-small").rows]
    for sign in (-1, 1):
        values = {
            name: {"information: nats": float(at), "probe: conv3: accuracy": 0.5 + sign * at / 100}
            for at, name in enumerate(spaces)
        }
        assert verdicts("cmc/colors-small", values) == [sign < 0]
    digits = {f"cmc/digits-nce-m{count}-small": {"out: accuracy": count / 5000} for count in (16, 64, 256, 1024, 4096)}
    assert verdicts("cmc/digits-small", digits | {"cmc/digits-softmax-m4096-small": {"out: accuracy": 0.9}}) == [
        False,
        True,
    ]


@pytest.mark.parametrize("second", [[1, 2, 2, 5, 3], [5, 4, 3, 2, 1], [0.1, 0.1, 0.2, 0.3, 0.1]])
def test_rank_correlation_is_spearmans(second: list[float]) -> None:
    first = [0.3, 0.1, 0.4, 0.1, 0.5]
    assert rank_correlation(first, second) == pytest.approx(spearmanr(first, second).statistic)
