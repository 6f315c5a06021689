"""The tables of the sampler audit: shares, places and versions, from what a run keeps."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("hooks")

PROMISES = {
    "theirs": {"says": "``k`` rows", "where": "peer.sampler", "means": "k rows", "short": "rows"},
    "ours": {"says": "Draws rows", "where": "setsup.Sampler", "means": "rows, none twice", "short": "distinct rows"},
}


def entry(name: str, own: str, **cells: Any) -> dict[str, Any]:
    version = f"{name.split()[0]} 1.2"
    about = {
        "name": name,
        "ranks": "rank, world",
        "version": version,
        "family": "Sets",
        "own": [own],
        "dependency": "wrapper 3" if name.startswith("peer") else "",
        "counted": [["2030-01-02", "Python 3.11"], ["2030-01-03", "Python 3.11"]],
    }
    return {**about, "cells": {cell.replace("_", " ").strip(): counts for cell, counts in cells.items()}}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    lines = [
        entry("setsup Sampler", "ours", _2_uniform_4_1=[1000, 250, 0], _2_single_4_2=[3000, 1, 0]),
        entry("peer Sampler", "theirs", _2_uniform_4_1=[10, 10, 0], _2_single_4_2="ValueError: too few rows"),
        entry("other Sampler", "theirs", _2_uniform_4_1="ValueError: too few rows"),
    ]
    kept = {"promises": PROMISES, "families": {"Sets": ["theirs", "ours"]}, "lines": lines}
    path = tmp_path / "audit.json"
    path.write_text(json.dumps({**kept, "left_out": {"third": "it does not load | here"}}), encoding="utf-8")
    return path


def test_results_become_tables(results: Path) -> None:
    import audits

    rows = {name: make(results).splitlines() for name, make in audits.BLOCKS.items()}
    assert rows["own"][2:] == [
        "| peer `Sampler` | rank, world | [rows](#promise-theirs) | 100 % | 2, uniform, 4, 1 | 100 % | 1 |",
        "| other `Sampler` | rank, world | [rows](#promise-theirs) |  |  |  | all |",
        "| setsup `Sampler` | rank, world | [distinct rows](#promise-ours) | 0 |  | 0 |  |",
    ]
    assert rows["ours"][2:] == ["| setsup `Sampler` | [rows](#promise-theirs) | 25 % | 2, uniform, 4, 1 | 12.5 % |  |"]
    assert rows["matrix"] == [
        "### Sets",
        "",
        "| sampler | ranks | rows | distinct rows |",
        "| --- | --- | --: | --: |",
        "| peer `Sampler` | rank, world | 100 % | 0 |",
        "| other `Sampler` | rank, world | refused | refused |",
        "| setsup `Sampler` | rank, world | 25 % / 12.5 % | 0 |",
    ]
    assert rows["promises"][2].endswith("“`k` rows”</span> | peer 1.2: peer.sampler | k rows |")
    assert rows["made"] == [
        *(
            f"- {name}, counted on 2030-01-02 and 2030-01-03"
            for name in ("other 1.2", "peer 1.2, wrapper 3", "setsup 1.2")
        ),
        "- Python 3.11",
    ]
    assert rows["left_out"] == ["- third: it does not load | here"]


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0"), (1e-4, "< 0.1 %"), (0.0123, "1.23 %"), (0.5, "50 %"), (0.9996, "> 99.9 %"), (1.0, "100 %")],
)
def test_shares_are_0_or_100_percent_only_where_they_are(share: float, words: str) -> None:
    import audits

    assert audits.percent(share) == words
