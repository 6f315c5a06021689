"""Other libraries in the resume matrix: counting on logs written by hand, and two cells of libraries that are here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from benchmarks.resume.count import Seen, compare_passes, read_logs
from benchmarks.resume.data import ROWS
from benchmarks.resume.plan import LINES, PASSES, PEER_STEPS, RANKS, WORKERS, Cell, peer_cells
from benchmarks.resume.run import Peer, run_peer

WHOLE: list[Seen] = [(number, [(row, f"{number}/{row}")]) for number in range(PASSES) for row in range(ROWS)]


def test_cells_change_all_numbers_of_ranks_or_keep_them_and_stop_within_the_run() -> None:
    found = peer_cells("one")
    assert len({cell.name for cell in found}) == len(LINES) * len(RANKS) * len(WORKERS)
    changed = [(cell.ranks, cell.to_ranks) for cell in found if cell.line == "changed"]
    assert sorted(changed) == sorted((a, b) for a in RANKS for b in RANKS if a != b)
    same = [cell for cell in found if cell.line == "same"]
    assert all((cell.ranks, cell.workers) == (cell.to_ranks, cell.to_workers) for cell in same)
    assert all(0 < cell.stop < PASSES * PEER_STEPS for cell in found)
    assert all(ROWS % (PEER_STEPS * ranks) == 0 for ranks in RANKS), "all ranks get equally many rows"


def test_every_row_once_per_pass_in_any_order_counts_nothing() -> None:
    assert compare_passes(list(reversed(WHOLE)), WHOLE) == {"lost": 0, "twice": 0, "differ": 0}
    assert compare_passes(WHOLE, None) == {"lost": 0, "twice": 0}


def test_a_row_lost_in_one_pass_and_seen_twice_in_another_is_both() -> None:
    (first, items), *others = WHOLE
    moved = [*others, (first + 1, items)]
    assert compare_passes(moved, None) == {"lost": 1, "twice": 1}


def test_changed_images_count_where_the_row_was_seen() -> None:
    (first, ((row, _),)), *others = WHOLE
    assert compare_passes([(first, [(row, "other")]), *others], WHOLE) == {"lost": 0, "twice": 0, "differ": 1}
    assert compare_passes(others, WHOLE) == {"lost": 1, "twice": 0, "differ": 0}
    assert compare_passes([*WHOLE, (first, [(row, "other")])], WHOLE) == {"lost": 0, "twice": 1, "differ": 0}


def test_passes_that_an_endless_stream_begins_do_not_count() -> None:
    assert compare_passes([*WHOLE, (PASSES, [(3, "")])], WHOLE) == {"lost": 0, "twice": 0, "differ": 0}


def test_logs_have_the_pass_of_each_batch_and_end_at_the_checkpoint(tmp_path: Path) -> None:
    for part, lines in ((0, [[1, [[5, "a"]], 0], [2, [[6, "b"]], 0]]), (1, [[1, [[6, "b"]], 0], [2, [[5, "c"]], 1]])):
        (tmp_path / f"saw-{part}-0.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    cell = Cell("by hand", "same", 1, 0, 1, 0, stop=1)
    assert read_logs(tmp_path, cell) == [[(0, [(5, "a")])], [(0, [(6, "b")]), (1, [(5, "c")])]]
    assert read_logs(tmp_path, cell, whole=1) == [[]]


def test_what_is_not_offered_has_a_reason_and_no_counts() -> None:
    def never(_: Any) -> None:
        raise AssertionError("it must not run")

    changed, same = (Cell("by hand", line, 1, 0, 2, 0, stop=1) for line in LINES)
    assert run_peer(changed, Peer("x", never, never, ranks="one rank only")) == {"not offered": "one rank only"}
    for cell in (changed, same):
        assert run_peer(cell, Peer("x", never, state="no state")) == {"not offered": "no state"}


@pytest.mark.long("worker processes")
@pytest.mark.parametrize(
    ("name", "module", "line"),
    [("torchdata StatefulDataLoader", "torchdata", "same"), ("grain", "grain", "changed")],
)
def test_a_library_that_is_installed_fills_a_cell(name: str, module: str, line: str, tmp_path: Path) -> None:
    """In a process of its own, whose interpreter says nothing of what libraries warn about."""
    tried = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"{module} is not installed: {tried.stderr.splitlines()[-1]}")
    kept = tmp_path / "resume.json"
    command = [sys.executable, "-m", "benchmarks.resume", name, "--line", line, "--limit", "1", "--json", str(kept)]
    found = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=280)
    assert found.returncode == 0, found.stdout + found.stderr
    (cell,) = json.loads(kept.read_text())["cells"].values()
    assert (cell["lost"], cell["twice"], cell["differ"]) == (0, 0, 0)
