"""The resume matrix: its cells, its counting on logs written by hand, and a slice of it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.resume import __main__ as command
from benchmarks.resume.count import Seen, announced_copies, compare, read_logs
from benchmarks.resume.data import Item, make_batches
from benchmarks.resume.plan import DRAWS, PASSES, RANKS, WORKERS, Cell, cells

TRUTH = [[(2 * draw, f"a{draw}"), (2 * draw + 1, f"b{draw}")] for draw in range(DRAWS * PASSES)]
NOTHING = {"lost": 0, "twice": 0, "evened": 0, "differ": 0, "moved": 0}


def cell(**values: int) -> Cell:
    return Cell("by hand", "rows", **{"ranks": 2, "workers": 0, "to_ranks": 3, "to_workers": 2, "stop": 4, **values})


def test_every_pair_of_numbers_of_ranks_occurs_once_and_the_run_is_stopped_within() -> None:
    found = cells([("one", "rows"), ("one", "bytes"), ("other", "rows")])
    assert len({each.name for each in found}) == 3 * len(RANKS) * len(WORKERS)
    for way, line in (("one", "rows"), ("one", "bytes"), ("other", "rows")):
        pairs = [(each.ranks, each.to_ranks) for each in found if (each.way, each.line) == (way, line)]
        assert sorted(pairs) == sorted((a, b) for a in RANKS for b in RANKS if a != b)
    assert all(0 < each.draw < DRAWS * PASSES for each in found)
    assert all(each.workers != each.to_workers for each in found)
    assert found == cells([("one", "rows"), ("one", "bytes"), ("other", "rows")])


def log(*draws: int, of_pass: int | None = None) -> list[Seen]:
    """What a rank saw, in a loop that counts no passes unless it says so."""
    return [(of_pass, TRUTH[draw]) for draw in draws]


def test_what_every_rank_trained_on_once_and_in_order_counts_nothing() -> None:
    ranks = [log(*range(rank, len(TRUTH), 3)) for rank in range(3)]
    assert compare(TRUTH, ranks, []) == NOTHING
    assert compare(TRUTH, list(reversed(ranks)), []) == NOTHING, "the order of ranks is no order of batches"
    passes = [log(*range(DRAWS), of_pass=0) + log(*range(DRAWS, 2 * DRAWS), of_pass=1)]
    assert compare(TRUTH, passes, []) == NOTHING


def test_lost_repeated_and_changed_batches_are_counted_in_rows() -> None:
    whole = log(*range(len(TRUTH)))
    assert compare(TRUTH, [whole[:-2]], []) == {**NOTHING, "lost": 4}
    assert compare(TRUTH, [whole, log(5)], []) == {**NOTHING, "twice": 2}
    (row, _), other = TRUTH[0]
    changed: list[Item] = [(row, "other"), other]
    assert compare(TRUTH, [[(None, changed), *whole[1:]]], []) == {**NOTHING, "differ": 1}


def test_rows_in_other_batches_are_lost_and_twice() -> None:
    (a, b), (c, d) = TRUTH[:2]
    regrouped: list[Seen] = [(None, [a, c]), (None, [b, d])]
    assert compare(TRUTH, [[*regrouped, *log(*range(2, len(TRUTH)))]], []) == {**NOTHING, "lost": 4, "twice": 4}


def test_a_batch_that_is_lost_in_a_pass_and_drawn_in_the_next_has_moved() -> None:
    late = [*range(5), *range(6, 30), 5, *range(30, 48)]
    assert compare(TRUTH, [log(*late)], []) == {**NOTHING, "moved": 1}
    behind = log(*range(DRAWS - 1), of_pass=0) + log(*range(DRAWS - 1, 2 * DRAWS), of_pass=1)
    assert compare(TRUTH, [behind], []) == {**NOTHING, "moved": 1}, "in order, but in the pass after its own"
    assert compare(TRUTH, [log(1, 0, *range(2, len(TRUTH)))], []) == {**NOTHING, "moved": 1}


def test_announced_copies_are_counted_apart_and_only_as_often_as_announced() -> None:
    whole, last, copies = log(*range(len(TRUTH))), log(len(TRUTH) - 1), [TRUTH[-1]]
    assert compare(TRUTH, [whole, last], copies) == {**NOTHING, "evened": 2}
    assert compare(TRUTH, [whole, last, last], copies) == {**NOTHING, "evened": 2, "twice": 2}
    assert compare(TRUTH, [whole, log(0)], copies) == {**NOTHING, "twice": 2}


def test_draws_of_the_matrix_differ_so_that_a_batch_has_one_place() -> None:
    batches = make_batches()
    assert len({tuple(batches.rows(draw)) for draw in range(DRAWS * PASSES)}) == DRAWS * PASSES


@pytest.mark.parametrize(
    ("stop", "ranks", "to_ranks", "wanted"),
    [
        (4, 2, 3, [23] * 2),  # 16 draws of the first pass are left for three ranks, and 24 of the second
        (5, 1, 8, [23] * 5),
        (12, 2, 8, []),
        (13, 2, 3, [47] * 2),
        (47, 1, 2, [47]),
    ],
)
def test_the_last_draw_of_a_pass_fills_the_last_round(stop: int, ranks: int, to_ranks: int, wanted: list[int]) -> None:
    found = announced_copies(cell(stop=stop, ranks=ranks, to_ranks=to_ranks), TRUTH)
    assert found == [TRUTH[draw] for draw in wanted]
    assert all(DRAWS % ranks == 0 for ranks in RANKS), "whole passes need none"


def test_batches_behind_the_checkpoint_of_a_killed_run_were_not_trained_on(tmp_path: Path) -> None:
    for part, ranks in ((0, 2), (1, 3)):
        for rank in range(ranks):
            lines = [json.dumps([number, [[10 * part + rank, ""]], part]) for number in range(1, 7)]
            (tmp_path / f"saw-{part}-{rank}.jsonl").write_text("\n".join(lines) + "\n")
    found = read_logs(tmp_path, cell())
    assert found == [[(row // 10, [(row, "")])] * times for row, times in ((0, 4), (1, 4), (10, 6), (11, 6), (12, 6))]


SLICE = [("torch DDP", "bytes", 1), ("numpy loop", "rows", 2)]


@pytest.mark.long("worker processes")
@pytest.mark.parametrize(("way", "line", "few"), SLICE)
def test_a_killed_run_resumes_on_other_ranks_without_loss(
    way: str, line: str, few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    kept = tmp_path / "resume.json"
    words = [sys.executable, "-m", "benchmarks.resume", way, "--line", line, "--limit", str(few), "--json", str(kept)]
    found = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=280)
    assert found.returncode == 0, found.stdout + found.stderr
    filled = json.loads(kept.read_text())["cells"]
    assert len(filled) == few
    for each in filled.values():
        assert (each["lost"], each["twice"], each["differ"], each["moved"]) == (0, 0, 0, 0)


@pytest.mark.long("worker processes")
def test_missing_cells_come_first_then_those_of_an_earlier_count_and_each_has_its_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    planned, kept = cells([("numpy loop", "rows")]), tmp_path / "resume.json"
    earlier = {**planned[3].to_dict(), "lost": 0, "twice": 0, "evened": 8, "differ": 0, "with": 0}
    kept.write_text(json.dumps({"with": [["a machine", "old versions"]], "cells": {planned[3].name: earlier}}))

    def run(*limit: str, **counts: Any) -> list[str]:
        monkeypatch.setattr(command, "_found", lambda cell: counts or NOTHING)
        assert command.main(["numpy loop", "--line", "rows", "--json", str(kept), *limit]) == 0
        return [line.partition(" ->")[0] for line in capsys.readouterr().out.splitlines()]

    names = [each.name for each in planned]
    assert run("--limit", "2") == names[:2]
    filled = json.loads(kept.read_text())
    assert [filled["cells"][name]["with"] for name in (names[3], *names[:2])] == [0, 1, 1]
    assert filled["cells"][names[3]] == earlier
    assert run(missing="no such library")[-1].startswith(f"{names[3]} stays as it was counted elsewhere")
    filled = json.loads(kept.read_text())
    assert filled["cells"][names[3]] == earlier
    assert filled["cells"][names[5]]["missing"] == "no such library"
    assert run() == names[2:], "all have been tried before"
    filled = json.loads(kept.read_text())
    assert {each["with"] for each in filled["cells"].values()} == {1}
    assert filled["with"][0] == ["a machine", "old versions"]
    assert run() == []
