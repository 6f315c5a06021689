import numpy as np
import pytest

from setsup.factors import Factor, FactorTable, Kind
from setsup.reports import Variation, describe, describe_pairs, describe_triplets, value_words
from setsup.samplers import Draw

TABLE = FactorTable(
    [
        Factor("hue", Kind.CYCLIC, (0.0, 0.25, 0.5, 0.75), unit="turn", period=1.0),
        Factor("shape", Kind.NOMINAL, ("cube", "ball")),
        Factor("angle", Kind.CONTINUOUS, unit="deg"),
        Factor("path", Kind.NOMINAL, tuple("abcdef"), role="key"),
    ],
    {
        "hue": [1, 1, 1, 2, -1, 1],
        "shape": [0, 1, 1, 0, 0, -1],
        "angle": np.float32([10, 20, np.nan, 40, 50, 12.5]),
        "path": [0, 1, 2, 3, 4, 5],
    },
)


def test_held_and_varying_factors_in_words() -> None:
    found = describe(TABLE, Draw(np.array([[0, 1, 2]]), {"hue": np.array([1])}))[0]
    assert found.fixed == {"hue": 0.25}
    assert found.members == 3
    assert found.varies == {"shape": Variation(2, 2), "angle": Variation(2, None, (10.0, 20.0))}
    assert found.fixed_words(TABLE) == "hue = 0.25 turn"
    assert found.varying_words(TABLE) == "shape 2 of 2, angle 10 to 20 deg"


def test_levels_that_cannot_be_written_have_their_numbers() -> None:
    found = describe(TABLE, Draw(np.array([[1, 2]]), {"hue": np.array([1]), "shape": np.array([1])}))[0]
    assert found.fixed_words(TABLE, legible=lambda text: text != "ball") == "hue = 0.25 turn, shape = ball (level 1)"
    near = describe(TABLE, Draw(np.array([[0, 5]]), {"angle": np.float32([12.5])}))[0]
    assert near.fixed_words(TABLE, {"angle": 5.0}, lambda text: False) == "angle = 12.5 deg ± 5"


def test_padding_and_unknown_values_do_not_count() -> None:
    mask = np.array([[True, True, False]])
    found = describe(TABLE, Draw(np.array([[0, 5, 1]]), {"hue": np.array([1])}, mask))[0]
    assert found.members == 2
    assert found.varies["shape"] == Variation(1, 2)
    assert describe(TABLE, Draw(np.array([[2]]), {}))[0].varies["angle"] == Variation(0)
    assert "angle unknown" in describe(TABLE, Draw(np.array([[2]]), {}))[0].varying_words(TABLE)


def test_what_has_one_value_does_not_vary() -> None:
    found = describe(TABLE, Draw(np.array([[0, 5]]), {"hue": np.array([1])}))[0]
    assert found.varies["shape"] == Variation(1, 2)
    assert "shape" not in found.varying_words(TABLE)


def test_a_set_that_does_not_hold_a_factor_varies_by_it() -> None:
    draw = Draw(np.array([[0, 1], [3, 4]]), {"hue": np.array([1, -1])})
    held, free = describe(TABLE, draw)
    assert held.fixed == {"hue": 0.25}
    assert free.fixed == {}
    assert free.fixed_words(TABLE) == "nothing"
    assert free.varies["hue"] == Variation(1, 4)


def test_a_value_within_a_tolerance() -> None:
    draw = Draw(np.array([[0, 5], [3, 4]]), {"angle": np.float32([12.5, np.nan])})
    near, free = describe(TABLE, draw)
    assert near.fixed_words(TABLE, {"angle": 5.0}) == "angle = 12.5 deg ± 5"
    assert "angle" in free.varies


def test_triplets_are_described_by_anchor_and_positive() -> None:
    found = describe_triplets(TABLE, Draw(np.array([[1, 2, 3]])), ["hue", "shape"])[0]
    assert found.fixed == {"hue": 0.25, "shape": "ball"}
    assert found.members == 2
    assert list(found.varies) == ["angle"]


def test_pairs_are_described_by_what_changes() -> None:
    fixed = {"hue": np.array([1, -1, 2]), "shape": np.array([-1, 0, 0])}
    labels = {"hue": np.array([False, True, False]), "shape": np.array([True, False, False])}
    one, other, same = describe_pairs(TABLE, Draw(np.array([[0, 1], [0, 3], [3, 3]]), fixed, pair_labels=labels))
    assert (one.changed_words(TABLE), one.fixed_words(TABLE)) == ("shape cube → ball", "hue = 0.25 turn")
    assert (other.changed_words(TABLE), other.fixed_words(TABLE)) == ("hue 0.25 → 0.5 turn", "shape = cube")
    assert (same.changed_words(TABLE), list(same.fixed)) == ("nothing", ["hue", "shape"])
    ranked = Draw(np.array([[0, 3], [3, 0]]), pair_labels={"hue": np.array([False, True])})
    assert [pair.changed_words(TABLE) for pair in describe_pairs(TABLE, ranked)] == [
        "hue 0.25 < 0.5 turn",
        "hue 0.5 ≥ 0.25 turn",
    ]
    assert len(describe_pairs(TABLE, ranked, 1)) == 1


def test_pairs_without_labels_are_compared_in_all_factors() -> None:
    same, unknown = describe_pairs(TABLE, Draw(np.array([[1, 2], [0, 4]])))
    assert (same.fixed, same.changed_words(TABLE)) == ({"hue": 0.25, "shape": "ball"}, "angle 20 → unknown")
    assert unknown.fixed == {"shape": "cube"}
    assert unknown.changed_words(TABLE) == "hue 0.25 → unknown, angle 10 → 50 deg"
    assert describe_pairs(TABLE, Draw(np.array([[1, 2]])), without=["angle"])[0].changed_words(TABLE) == "nothing"


def test_what_rows_are_weighted_by_may_be_left_out() -> None:
    found = describe(TABLE, Draw(np.array([[0, 1]])), without=["hue"])[0]
    assert list(found.varies) == ["shape", "angle"]


@pytest.mark.parametrize(
    ("value", "words"), [(0.30000000000000004, "0.3 turn"), (2, "2 turn"), ("red", "red turn"), (None, "unknown")]
)
def test_values_in_words(value: float | str | None, words: str) -> None:
    assert value_words(TABLE["hue"], value) == words
