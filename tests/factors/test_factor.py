import pytest

from setsup.errors import FactorError
from setsup.factors import Factor, Kind


def test_code_is_the_place_of_a_level():
    factor = Factor("shape", Kind.NOMINAL, ("cube", "ball", "cone"))
    assert [factor.code(level) for level in ("cube", "ball", "cone")] == [0, 1, 2]
    assert len(factor) == 3
    assert not factor.continuous


def test_lists_and_plain_texts_are_accepted_as_files_give_them():
    factor = Factor("size", "ordinal", [1, 2])
    assert factor.kind is Kind.ORDINAL
    assert factor.levels == (1, 2)


@pytest.mark.parametrize(
    "factor",
    [
        Factor("shape", Kind.NOMINAL, ("cube", "ball")),
        Factor("azimuth", Kind.CYCLIC, (0.0, 90.0), unit="deg", period=360.0, within="shape"),
        Factor("angle", Kind.CONTINUOUS, unit="deg", period=360.0),
        Factor("id", Kind.ORDINAL, (3, 7), role="key"),
    ],
)
def test_a_description_comes_back_from_plain_data(factor):
    assert Factor.from_dict(factor.to_dict()) == factor


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "", "kind": "nominal", "levels": ("a",)}, "non-empty"),
        ({"name": "x", "kind": "nomnal", "levels": ("a",)}, "unknown kind 'nomnal'"),
        ({"name": "x", "kind": "nominal"}, "at least one level"),
        ({"name": "x", "kind": "nominal", "levels": "abc"}, "must be a tuple"),
        ({"name": "x", "kind": "nominal", "levels": 5}, "must be a tuple, not 5"),
        ({"name": "x", "kind": "continuous", "period": "360"}, "positive number, not '360'"),
        ({"name": "x", "kind": "continuous", "unit": 5}, "must be strings"),
        ({"name": "x", "kind": "continuous", "within": ["a"]}, "must be strings"),
        ({"name": "x", "kind": "nominal", "levels": ("a", 1)}, "all strings, all numbers or all booleans"),
        ({"name": "x", "kind": "ordinal", "levels": (1, 2, 1)}, "the level 1 is listed twice"),
        ({"name": "x", "kind": "ordinal", "levels": (1.0, float("nan"))}, "finite"),
        ({"name": "x", "kind": "continuous", "levels": (1.0,)}, "cannot have levels"),
        ({"name": "x", "kind": "continuous", "period": -1.0}, "positive"),
        ({"name": "x", "kind": "continuous", "period": 10**400}, "positive"),
        ({"name": "x", "kind": "nominal", "levels": ("a",), "within": "x"}, "within itself"),
        ({"name": "x", "kind": "nominal", "levels": ("a",), "role": "keys"}, "did you mean 'key'"),
    ],
)
def test_contradictions_are_refused(arguments, sentence):
    with pytest.raises(FactorError, match=sentence):
        Factor(**arguments)


def test_a_missing_level_is_answered_with_near_ones():
    with pytest.raises(FactorError, match="no level 'cubr'; did you mean 'cube'"):
        Factor("shape", Kind.NOMINAL, ("cube", "ball")).code("cubr")


@pytest.mark.parametrize("data", [{}, {"name": "x"}, {"name": "x", "kind": "nominal", "colour": 1}, "x", None])
def test_foreign_descriptions_are_refused(data):
    with pytest.raises(FactorError, match="description of a factor must have"):
        Factor.from_dict(data)
