"""The sampler audit: what it counts on batches whose answer is known, and that a run keeps and resumes its cells."""

import inspect
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import setsup
from benchmarks import sampler_audit
from benchmarks.audit import counters
from benchmarks.audit.counters import Drawn
from benchmarks.audit.lines import ACCELERATE, OWN, TRAINER, Line
from benchmarks.audit.our_lines import our_lines
from benchmarks.audit.peer_lines import peer_lines
from benchmarks.audit.promises import CLASSES, FAMILIES, PASSES, PROMISES, missing_words
from benchmarks.audit.summary import share
from benchmarks.audit.tasks import CELLS, Cell, Task, labels_of

LABELS = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3]
"""Labels of twelve rows: class 3 has a single one; 0 and 2 are of one super class, 1 and 3 of the other."""


class Twelve(Task):
    """Batches of 2 × 2 rows, or of two super classes with one class of two rows each, from these labels."""

    labels = np.array(LABELS)
    weights = np.array([0.0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])


def drawn(*batches: Sequence[int], epochs: Sequence[int] = (), ranks: Sequence[int] = ()) -> Drawn:
    return Drawn.of(zip(epochs or [0] * len(batches), ranks or [0] * len(batches), batches, strict=True))


TASK = Twelve(Cell(4, "single", 4, 2), 0, len(LABELS))
PAIRS, COPY, ONE_LABEL, SMALL, SHORT = [0, 1, 4, 5], [0, 0, 4, 5], [0, 1, 2, 3], [4, 5, 11, 11], [4, 5, 11]


@pytest.mark.parametrize(
    ("count", "broken"),
    [
        (counters.per_class, [ONE_LABEL, SHORT]),
        (counters.per_class_distinct, [COPY, ONE_LABEL, SMALL, SHORT]),
        (counters.per_class_of_small, [COPY, ONE_LABEL, SMALL]),
        (counters.per_class_replaced, [COPY, ONE_LABEL, SHORT]),
        (counters.several_labels, [COPY, ONE_LABEL, SMALL, SHORT]),
        (counters.pairs_of_labels, [COPY, SMALL, SHORT]),
        (counters.distinct_rows, [COPY, SMALL]),
        (counters.no_weightless_rows, [PAIRS, COPY, ONE_LABEL]),
        (counters.tree, [ONE_LABEL, SMALL, SHORT]),
        (counters.tree_distinct, [COPY, ONE_LABEL, SMALL, SHORT]),
        (counters.distinct_values, [PAIRS, COPY, ONE_LABEL, SMALL, SHORT]),
    ],
)
def test_promises_about_a_single_batch(count: Any, broken: list[list[int]]) -> None:
    for batch in (PAIRS, COPY, ONE_LABEL, SMALL, SHORT):
        assert count(drawn(batch), TASK) == (batch in broken), batch
    assert count(drawn(PAIRS, COPY, ONE_LABEL, SMALL, SHORT), TASK) == len(broken)


def test_texts_may_differ_in_every_batch_and_two_levels_hold() -> None:
    assert counters.distinct_values(drawn([0, 4, 8, 11], [1, 5, 9]), TASK) == 0
    assert counters.tree(drawn([0, 1, 4, 5], [8, 9, 6, 7]), TASK) == 0
    # two classes of one super class; three rows of one class
    assert counters.tree(drawn([0, 1, 8, 9], [0, 1, 2, 4]), TASK) == 2


def test_only_the_last_batch_of_a_rank_may_be_short() -> None:
    batches = ([0, 1, 2, 3], [4, 5], [6, 7], [8], [9, 10, 11])
    assert counters.full_size(drawn(*batches, ranks=[0, 0, 1, 0, 1]), TASK) == 2
    assert counters.full_size(drawn(*batches, ranks=[0, 0, 1, 0, 1], epochs=[0, 0, 0, 1, 1]), TASK) == 0


def test_a_class_comes_once_per_epoch() -> None:
    first, second, again = [0, 1, 4, 5], [8, 9, 11, 11], [2, 3, 8, 9]
    assert counters.classes_once(drawn(first, second), TASK) == 0
    assert counters.classes_once(drawn(first, second, again), TASK) == 1
    assert counters.classes_once(drawn(first, second, again, epochs=[0, 0, 1]), TASK) == 0
    assert counters.classes_once(drawn(first, again, second, ranks=[0, 1, 0]), TASK) == 2, "the last has class 2 again"


def test_promises_about_ranks_and_epochs() -> None:
    batches = ([0, 1], [2, 3], [1, 4], [2, 5], [6, 6])
    apart = drawn(*batches, ranks=[0, 0, 1, 0, 1])
    assert counters.exclusive_to_rank(apart, TASK) == 2, "row 1 is on both ranks"
    assert counters.once_per_rank(apart, TASK) == 3, "row 2 is in two batches of a rank, row 6 twice in one"
    assert counters.drawn_once(apart, TASK) == 4, "rows 1 and 2 are each in two batches"
    for count in (counters.exclusive_to_rank, counters.drawn_once):
        assert count(drawn(*batches, ranks=[0, 0, 1, 0, 1], epochs=range(5)), TASK) == 0


@pytest.mark.parametrize(
    ("skew", "sizes"),
    [("uniform", [4, 3, 3, 3, 3, 3]), ("zipf", [8, 4, 3, 2, 1, 1]), ("single", [4, 4, 4, 3, 3, 1])],
)
def test_labels_of_each_skew(skew: str, sizes: list[int]) -> None:
    labels = labels_of(6, skew, 19, 3)
    assert np.bincount(labels).tolist() == sizes
    assert labels.tolist() != sorted(labels)


def test_cells_are_those_of_the_page() -> None:
    assert len(CELLS) == len(set(CELLS)) == 5 * 3 * 4 * 3
    for cell in CELLS:
        task = Task(cell, 0)
        assert task.sizes.sum() == task.rows
        assert task.sizes.min() >= 1
        assert 2 <= task.ways <= cell.classes
        assert task.ways * task.per_class == np.prod(task.tree) == cell.batch


def test_what_is_quoted_of_setsup_stands_in_its_docstrings() -> None:
    for name, promise in PROMISES.items():
        if name.startswith("ours"):
            sampler = re.match(r"setsup\.(\w+)", promise.where)[1]
            assert missing_words(name, inspect.getsource(getattr(setsup, sampler))) == "", name
    assert missing_words("ours-texts", "no step\n    repeats a  domain.") == ""
    assert missing_words("ours-texts", "no step repeats it.") == "no step repeats a domain."
    assert {name for names in FAMILIES.values() for name in names} == {*PROMISES}


def constant(*batches: Sequence[int], version: str = "peer 1") -> Line:
    def draw(task: Task) -> Iterator[tuple[int, int, Sequence[int]]]:
        if task.cell.batch == 128:
            raise ValueError("too large\nfor this")
        return ((0, 0, batch) for batch in batches)

    return Line("peer Sampler", "none", PASSES, ("torch",), version, draw)


def test_the_digest_of_the_code_is_of_what_it_counts_and_not_of_how_it_is_described(tmp_path: Path) -> None:
    def digest(counters: str, summary: str = "") -> str:
        (tmp_path / "counters.py").write_text(counters, encoding="utf-8")
        (tmp_path / "summary.py").write_text(summary, encoding="utf-8")
        return sampler_audit.code_digest(tmp_path)

    first = digest('"""Count."""\ndef count(drawn):\n    """Rows."""\n    return len(drawn)\n')
    assert digest("# rows\ndef count(drawn):\n    return len(drawn)  # all\n", "SHOWN = 3") == first
    assert digest("def count(drawn):\n    return len(drawn) - 1\n") != first


def test_cells_of_other_code_or_of_another_wrapper_are_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler_audit, "CELLS", (Cell(2, "uniform", 4, 1),))
    path, line = tmp_path / "audit.json", constant([0, 1], [1, 2])

    def counted(line: Line) -> tuple[list[int], list[list[str]]]:
        """Counts of the one cell, after another count was written into the file."""
        kept = json.loads(path.read_text(encoding="utf-8"))
        for entry in kept["lines"]:
            entry["cells"]["2 uniform 4 1"][1], entry["counted"] = 7, [["2030-01-02", "Python 9"]]
        path.write_text(json.dumps(kept), encoding="utf-8")
        found = sampler_audit.audit(path, [line], {}, lambda text: None)["lines"][0]
        return found["cells"]["2 uniform 4 1"][:2], found["counted"]

    sampler_audit.audit(path, [line], {}, lambda text: None)
    assert counted(line) == ([10, 7], [["2030-01-02", "Python 9"]])
    wrapped = line._replace(depends_on="wrapper 2")
    counts, when = counted(wrapped)
    assert (counts, len(when)) == ([10, 0], 1)
    assert when[0][1].startswith("Python 3")
    monkeypatch.setattr(sampler_audit, "code_digest", lambda: "corrected")
    assert counted(wrapped)[0] == [10, 0]


def test_a_wrapper_for_ranks_is_part_of_what_was_counted() -> None:
    from importlib.metadata import version

    line = constant([0, 1])
    assert [line._replace(ranks=ranks).dependency for ranks in (OWN, ACCELERATE, TRAINER)] == [
        "",
        *[f"accelerate {version('accelerate')}"] * 2,
    ]
    (ours, *_) = our_lines()
    assert re.fullmatch(r"draws [0-9a-f]{8}", ours.dependency)


def test_cells_are_kept_and_only_others_are_counted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, path, said = (Cell(2, "uniform", 4, 1), Cell(2, "uniform", 128, 2)), tmp_path / "audit.json", []
    monkeypatch.setattr(sampler_audit, "CELLS", cells)
    line = constant([0, 1], [1, 2])
    sampler_audit.audit(path, [line], {"other": "it is not installed"}, said.append)
    kept = json.loads(path.read_text(encoding="utf-8"))
    (entry,) = kept["lines"]
    # ten batches over five seeds; of passes: no row of another rank, a row twice on a rank, a row in two batches
    assert entry["cells"] == {"2 uniform 4 1": [10, 0, 10, 10], "2 uniform 128 2": "ValueError: too large"}
    assert kept["left_out"] == {"other": "it is not installed"}
    assert said[1:3] == [
        "  torch (its own): worst 0.0% (2 uniform 4 1), median 0.0% of 1 cells, 1 refused",
        "  ra: worst 100.0% (2 uniform 4 1), median 100.0% of 1 cells, 1 refused",
    ]
    assert share(entry, 2) == (1.0, "2 uniform 4 1", 1.0, 1, 1)

    entry["cells"]["2 uniform 4 1"][1] = 7
    path.write_text(json.dumps(kept), encoding="utf-8")
    line = constant([0, 1], [1, 2])
    found = sampler_audit.audit(path, [line], {}, said.append)
    assert found["lines"][0]["cells"]["2 uniform 4 1"][1] == 7
    newer = constant([0, 1], [1, 2], version="peer 2")
    sampler_audit.audit(path, [newer._replace(name="another")], {}, said.append)
    names = [entry["name"] for entry in json.loads(path.read_text(encoding="utf-8"))["lines"]]
    assert names == ["another", "peer Sampler"], "one that does not load now is kept"
    found = sampler_audit.audit(path, [newer], {}, said.append, only=["nothing"])
    assert [(entry["name"], len(entry["cells"])) for entry in found["lines"]] == [("peer Sampler", 0), ("another", 2)]
    found = sampler_audit.audit(path, [newer], {}, said.append)
    assert [entry["version"] for entry in found["lines"]] == ["peer 2", "peer 2"]
    assert found["lines"][0]["cells"]["2 uniform 4 1"][1] == 0


@pytest.mark.long("samplers of other libraries")
def test_samplers_of_setsup_keep_their_own_promises_and_peers_run() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers, about others still
        lines, left_out = peer_lines()
        found = sampler_audit.audit(None, [*our_lines(), *lines], left_out, lambda text: None, shrunk=True)
    assert {line.name.split()[0] for line in lines} >= {"torch"}
    assert all(left_out.values())
    for entry in found["lines"]:
        if entry["name"].startswith("setsup"):
            for name in {*entry["own"]} - {"ours-pass"}:  # a rank without a draw left repeats the last one
                counted = share(entry, 1 + FAMILIES[entry["family"]].index(name))
                assert not counted.worst > 0, (entry["name"], name)
    names = [entry["name"] for entry in found["lines"]]
    assert len(set(zip(names, (entry["ranks"] for entry in found["lines"]), strict=True))) == len(names)


@pytest.mark.parametrize("cell", [Cell(10, "zipf", 8, 2), Cell(5, "single", 4, 1)], ids=str)
def test_batch_sampler_draws_what_is_audited(cell: Cell) -> None:
    task, lines = Task(cell, 3, 509), {line.name.removeprefix("setsup "): line for line in our_lines()}
    ways = {
        "DomainSampler, drop": {"classes": task.ways, "per_class": task.per_class, "on_small_group": "drop"},
        "EpisodeSampler, drop": {"episodes": (task.ways, 1, task.per_class - 1), "on_small_group": "drop"},
        "EpochSampler": {"batch_size": task.size},
        "EpochSampler, weights": {"batch_size": task.size, "weights": task.weights},
    }
    for name, way in ways.items():
        audited = [[list(batch) for _, of, batch in lines[name].draw(task) if of == rank] for rank in range(task.ranks)]
        steps = None if "batch_size" in way else task.steps
        shards = [
            setsup.batch_sampler(task.labels, **way, steps=steps, rank=rank, world=task.ranks, seed=task.seed)
            for rank in range(task.ranks)
        ]
        assert [list(shard) for shard in shards] == audited, name


def test_the_page_shows_the_promises_that_are_counted() -> None:
    kept = json.loads(sampler_audit.KEPT.read_text(encoding="utf-8"))
    assert kept["promises"] == {name: sampler_audit._plain(promise) for name, promise in PROMISES.items()}
    assert {name: tuple(names) for name, names in kept["families"].items()} == FAMILIES
    assert {entry["family"] for entry in kept["lines"]} == {*FAMILIES}
    assert all(len(entry["cells"]) == len(CELLS) for entry in kept["lines"])
    assert any(entry["family"] == CLASSES for entry in kept["lines"])
