"""The resume matrix: its cells, its counting on logs written by hand, and a slice of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.resume.count import compare, evened, read_logs
from benchmarks.resume.plan import DRAWS, PASSES, RANKS, WORKERS, Cell, cells

TRUTH = [[(2 * draw, f"a{draw}"), (2 * draw + 1, f"b{draw}")] for draw in range(DRAWS * PASSES)]


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


def test_what_was_trained_on_once_counts_nothing() -> None:
    assert compare(TRUTH, list(reversed(TRUTH)), []) == {"lost": 0, "twice": 0, "evened": 0, "differ": 0}


def test_lost_repeated_and_changed_rows_are_counted() -> None:
    lost = compare(TRUTH, TRUTH[:-2], [])
    assert lost == {"lost": 4, "twice": 0, "evened": 0, "differ": 0}
    twice = compare(TRUTH, [*TRUTH, TRUTH[5]], [])
    assert twice == {"lost": 0, "twice": 2, "evened": 0, "differ": 0}
    changed = [[(row, "other") for row, _ in TRUTH[0]], *TRUTH[1:]]
    assert compare(TRUTH, changed, []) == {"lost": 0, "twice": 0, "evened": 0, "differ": 2}


def test_announced_copies_are_counted_apart_and_only_as_often_as_announced() -> None:
    copies = [TRUTH[-1]]
    assert compare(TRUTH, [*TRUTH, TRUTH[-1]], copies) == {"lost": 0, "twice": 0, "evened": 2, "differ": 0}
    assert compare(TRUTH, [*TRUTH, TRUTH[-1], TRUTH[-1]], copies)["twice"] == 2
    assert compare(TRUTH, [*TRUTH, TRUTH[0]], copies) == {"lost": 0, "twice": 2, "evened": 0, "differ": 0}


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
    assert evened(cell(stop=stop, ranks=ranks, to_ranks=to_ranks), TRUTH) == [TRUTH[draw] for draw in wanted]


def test_batches_behind_the_checkpoint_of_a_killed_run_were_not_trained_on(tmp_path: Path) -> None:
    for part, ranks in ((0, 2), (1, 3)):
        for rank in range(ranks):
            lines = [json.dumps([number, [[10 * part + rank, ""]]]) for number in range(1, 7)]
            (tmp_path / f"saw-{part}-{rank}.jsonl").write_text("\n".join(lines) + "\n")
    found = read_logs(tmp_path, cell())
    assert sorted(row for ((row, _),) in found) == [*[0] * 4, *[1] * 4, *[10] * 6, *[11] * 6, *[12] * 6]


SLICE = [("torch DDP", "rows", 2), ("numpy loop", "rows", 4), ("numpy loop", "bytes", 1), ("torch DDP", "bytes", 1)]
SLICE += [("Lightning", "rows", 1), ("Hugging Face Trainer", "rows", 1)]


@pytest.mark.long("worker processes")
@pytest.mark.parametrize(("way", "line", "few"), SLICE)
def test_a_killed_run_resumes_on_other_ranks_without_loss(
    way: str, line: str, few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    kept = tmp_path / "resume.json"
    command = [sys.executable, "-m", "benchmarks.resume", way, "--line", line, "--limit", str(few), "--json", str(kept)]
    found = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=280)
    assert found.returncode == 0, found.stdout + found.stderr
    filled = json.loads(kept.read_text())["cells"]
    assert len(filled) == few
    for each in filled.values():
        assert (each["lost"], each["twice"], each["differ"]) == (0, 0, 0)
