"""The report of a batch sampler: figures against counts by hand, in the words of the call."""

import json
import math
from typing import Any

import pytest

import setsup

SIZES = [4, 5, 9, 12, 1]
LABELS = [label for label, size in enumerate(SIZES) for _ in range(size)] + [None, float("nan")]


def report(**call: Any) -> str:
    return str(setsup.batch_sampler(LABELS, **call).report())


def test_classes_and_domains_are_called_as_in_the_call() -> None:
    choices = sum(math.comb(size, 3) for size in SIZES if size >= 3)
    for many, one in (("classes", "class"), ("domains", "domain")):
        call: dict[str, Any] = {many: 3, f"per_{one}": 3, "on_small_group": "drop"}
        assert report(**call).splitlines() == [
            f"BatchSampler: {many}=3, per_{one}=3, drawn by DomainSampler",
            f"{many} of label: 5, of 1 to 12 rows each; 4 can be drawn",
            f"  rows never drawn: 1 of {many} with too few rows, 2 with an unknown label",
            f"  distinct choices of 3 rows of one {one}: {choices:,}",
            f"note: each {one} is drawn equally often in every 4 batches",  # 4 classes, 3 of them in each
            f"note: a pass has {30 // 9} batches",
        ]


def test_pairs_triplets_and_episodes() -> None:
    pairs = sum(math.comb(size, 2) for size in SIZES)
    triplets = sum(size * (size - 1) * (sum(SIZES) - size) for size in SIZES)
    episodes = sum(math.comb(size, 4) for size in SIZES)
    for call, lines in (
        ({"pairs": 2}, ["BatchSampler: pairs=2, drawn by SetSampler", f"  distinct pairs: {pairs};"]),
        (
            {"triplets": 2},
            [
                "BatchSampler: triplets=2, drawn by TripletSampler",
                f"  distinct triplets: {triplets:,}\n",
                "4 have anchors",
            ],
        ),
        (
            {"episodes": (2, 1, 3)},
            [
                "BatchSampler: episodes=(2, 1, 3), drawn by EpisodeSampler",
                f"choices of 4 rows of one class: {episodes}",
            ],
        ),
    ):
        found = report(**call, on_small_group="drop")
        for line in lines:
            assert line in found
    assert "rows never drawn: 2 with an unknown label\n" in report(triplets=2, on_small_group="drop"), "as negatives"


@pytest.mark.parametrize(
    ("call", "never", "notes"),
    [
        ({"batch_size": 10}, "none", ["each pass leaves out 3 rows, different ones each time", "a pass has 3 batches"]),
        (
            {"batch_size": 10, "shuffle": False},
            "3 at the end of a pass",
            ["each pass leaves out 3 rows, the last ones", "a pass has 3 batches"],
        ),
        (
            {"batch_size": 10, "drop_last": False},
            "none",
            ["each pass has every row once; the last batch of a pass has 3 rows", "a pass has 4 batches"],
        ),
        ({"batch_size": 11}, "none", ["each pass has every row once", "a pass has 3 batches"]),
        (
            {"batch_size": 10, "steps": 1},
            "none",
            ["every 3 batches leave out 3 rows, different ones each time", "a pass has 1 batch"],
        ),
        (
            {"batch_size": 10, "weights": [0.0] * 3 + [1.0] * 30},
            "3 of weight 0 or of unknown weight",
            [
                "rows are drawn by weight: a number for each row",
                "each batch is drawn independently, so a pass may have a row several times, or not at all",
                "a pass has 3 batches",
            ],
        ),
    ],
)
def test_rows(call: dict[str, Any], never: str, notes: list[str]) -> None:
    made = setsup.batch_sampler(LABELS, **call).report()
    assert made.notes == notes
    title, rows, lost, *_ = str(made).splitlines()
    assert title == "BatchSampler: batch_size=" + f"{call['batch_size']}, drawn by EpochSampler"
    assert rows == f"rows that can be drawn: {30 if 'weights' in call else 33}"
    assert lost == f"  rows never drawn: {never}"


def test_no_report_has_words_of_the_samplers_behind_and_all_are_plain_data() -> None:
    labels = [number % 5 for number in range(40)]
    for call in (
        {"classes": 2, "per_class": 2},
        {"batch_size": 4},
        {"pairs": 2},
        {"triplets": 2},
        {"episodes": (2, 1, 1)},
    ):
        made = setsup.batch_sampler(labels, **call, weights=[1.0] * 40).report()
        assert not {"inactive", "where=", "domain", "sets"} & {word.strip(":;,") for word in str(made).split()}
        assert json.loads(json.dumps(made.to_dict()))["entries"][0]["groups"] == (1 if "batch_size" in call else 5)
