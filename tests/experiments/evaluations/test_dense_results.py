"""Summaries of dense matches over pairs, scenes and bins."""

import csv
import io
import math

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.experiments.evaluations.dense import DenseSettings, bin_values, choose_pixels, summarise
from setsup.experiments.evaluations.dense_results import DenseResults, bin_names, tables


@pytest.mark.parametrize("case", range(20))
def test_spreads_are_those_of_the_means_of_scenes(case: int) -> None:
    dice = np.random.default_rng(case)
    values, scenes = dice.random(30), dice.integers(0, 5, 30)
    values[dice.random(30) < 0.2] = np.nan
    found = summarise(values, scenes)
    known = [value for value in values if value == value]
    means = []
    for scene in range(5):
        of_scene = [value for value, one in zip(values, scenes, strict=True) if one == scene and value == value]
        if of_scene:
            means.append(sum(of_scene) / len(of_scene))
    middle = sum(means) / len(means)
    assert found.mean == pytest.approx(sum(known) / len(known))
    assert found.spread == pytest.approx(math.sqrt(sum((one - middle) ** 2 for one in means) / (len(means) - 1)))
    assert (found.pairs, found.scenes) == (len(known), len(means))


def test_nothing_known_is_not_a_number() -> None:
    found = summarise([np.nan, np.nan], [0, 1])
    assert math.isnan(found.mean)
    assert (found.pairs, found.scenes) == (0, 0)
    assert math.isnan(summarise([0.5, 0.7], [3, 3]).spread), "one scene has no spread"
    with pytest.raises(DataError, match="values and scenes must be 1-D and as many"):
        summarise([0.5], [0, 1])


def test_bins_contain_their_lower_ends_and_the_last_of_overlap_its_upper_one() -> None:
    counts = [
        one.pairs for one in bin_values(np.ones(6), np.arange(6), [0, 30, 59.9, 60, 120, np.nan], (0, 30, 60, 120))
    ]
    assert counts == [1, 2, 1]
    counts = [one.pairs for one in bin_values(np.ones(3), np.arange(3), [0.5, 0.8, 1.0], (0.0, 0.8, 1.0))]
    assert counts == [1, 2]


def test_drawn_pixels_are_different_and_depend_on_the_key() -> None:
    where = np.random.default_rng(0).random((20, 30)) < 0.5
    every = np.flatnonzero(where)
    assert np.array_equal(choose_pixels(where, None, 0), every)
    drawn, other = (choose_pixels(where, 50, key) for key in (0, 1))
    assert len(set(drawn.tolist())) == 50
    assert set(drawn.tolist()) <= set(every.tolist())
    assert set(drawn.tolist()) != set(other.tolist())
    assert sorted(choose_pixels(where, 10**6, 3).tolist()) == every.tolist()


def test_tables_and_csv_have_what_was_measured() -> None:
    values = {"visible: within 5 px": [0.2, 0.4, 0.9], "rejection": [0.5, float("nan"), 0.7]}
    results = DenseResults(
        about={"dataset": "rooms"},
        settings=DenseSettings(),
        rows=[(0, 1), (2, 3), (4, 5)],
        scenes=[0, 0, 1],
        angles=[10.0, 40.0, 45.0],
        overlaps=[float("nan")] * 3,
        measured={"mine": values},
        weights={"mine": "none"},
    )
    lines = {(row["value"], row["bin"]): row for row in csv.DictReader(io.StringIO(results.to_csv()))}
    line = lines["visible: within 5 px", "angle 30–60°"]
    assert float(line["mean"]) == pytest.approx(0.65)
    assert (line["pairs"], line["scenes"]) == ("2", "2")
    by_title = {title: (heads, rows) for title, heads, rows in tables(results)}
    heads, rows = by_title["visible: within 5 px, by angle, with the number of pairs"]
    assert heads == ["encoder", "0–30° (1)", "30–60° (2)", "60–90° (0)", "90–120° (0)"]
    assert rows == [["mine", "0.200", "0.650 ± 0.354", "", ""]]
    assert not any("overlap" in title for title in by_title)
    plain = results.to_dict()["encoders"]["mine"]
    assert plain["values"]["rejection"]["pairs"] == 2
    assert plain["by_pair"]["visible: within 5 px"] == [0.2, 0.4, 0.9]
    assert bin_names("overlap") == ["0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1"]
