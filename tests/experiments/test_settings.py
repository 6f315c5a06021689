"""Settings become flat values and settings again, and nothing that is not a setting gets in."""

import json
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SetsupError
from setsup.experiments import Data, Preset, presets, smoke
from setsup.experiments.sets import Sets
from setsup.experiments.settings import check, describe, difference, fill_defaults, flatten, put
from setsup_papers.abc import ABCSettings


@dataclass(frozen=True)
class Inner:
    """Settings of the user's own."""

    word: str = "a"
    pairs: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Outer:
    """Settings within settings."""

    count: int = 1
    share: float = 0.5
    yes: bool = False
    name: str | None = None
    kind: Literal["one", "two", 3] = "one"
    words: tuple[str, ...] = ()
    pair: tuple[int, str] = (1, "a")
    loose: Any = None
    plain: tuple = ()
    inner: Inner = field(default_factory=Inner)


reals = st.floats(allow_nan=False)
inners = st.builds(Inner, st.text(), st.lists(st.tuples(st.integers(), reals)).map(tuple))
outers = st.builds(
    Outer,
    count=st.integers(),
    share=reals | st.integers(-9, 9),
    yes=st.booleans(),
    name=st.none() | st.text(),
    kind=st.sampled_from(["one", "two", 3]),
    words=st.lists(st.text()).map(tuple),
    pair=st.tuples(st.integers(), st.text()),
    loose=st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner).map(tuple)),
    inner=inners,
)


def by_hand(settings: Any, before: str = "") -> dict[str, Any]:
    """Flat values, with tuples as they are."""
    found = {}
    for member in fields(settings):
        value = getattr(settings, member.name)
        if is_dataclass(value):
            found |= {before + member.name: type(value).__name__, **by_hand(value, f"{before}{member.name}.")}
        else:
            found[before + member.name] = value
    return found


def plain(value: Any) -> Any:
    return [plain(part) for part in value] if isinstance(value, tuple) else value


@pytest.mark.long("trainings")
@given(outers, outers)
def test_flat_values_survive_json_and_make_the_settings_again(settings: Outer, others: Outer) -> None:
    values = flatten(settings)
    assert values == {name: plain(value) for name, value in by_hand(settings).items()}
    kept = json.loads(json.dumps(values))
    assert kept == values
    assert put(others, kept) == settings
    assert put(settings, {}) == settings
    assert not difference(values, kept)


@pytest.mark.long("trainings")
@given(outers, outers)
def test_changes_are_what_differs_and_make_one_the_other(settings: Outer, others: Outer) -> None:
    before, after = flatten(settings), flatten(others)
    found = difference(before, after)
    assert found.keys() == {name for name in before if before[name] != after[name]}
    assert put(settings, {name: new for name, (_, new) in found.items()}) == others
    assert difference(after, before) == {name: (new, old) for name, (old, new) in found.items()}


def test_changes_name_what_only_one_has() -> None:
    assert difference({"a": 1, "b": 2}, {"b": 2, "c": None, "d": 4}) == {"a": (1, None), "d": (None, 4)}


def test_every_preset_survives_json() -> None:
    for name, preset in presets().items():
        for some in (preset, smoke(preset)):
            values = flatten(some)
            assert put(preset, json.loads(json.dumps(values))) == replace(some, **words(preset)), name
            assert not {"name", "shows", "evaluations", "shrunk"} & values.keys(), name
        for evaluation in preset.evaluations.values():
            assert put(evaluation, json.loads(json.dumps(flatten(evaluation)))) == evaluation, name


def words(preset: Preset) -> dict[str, Any]:
    """What of a preset does not change what is trained."""
    return {name: getattr(preset, name) for name in ("name", "shows", "evaluations", "shrunk")}


@dataclass(frozen=True)
class Twin:
    """Another class with the same settings."""

    word: str = "a"
    pairs: tuple[tuple[int, float], ...] = ()


def test_the_class_of_settings_is_a_part_of_them() -> None:
    one, other = Outer(), Outer(inner=Twin())  # type: ignore[arg-type]
    assert difference(flatten(one), flatten(other)) == {"inner": ("Inner", "Twin")}
    with pytest.raises(SetsupError, match="setting inner must be a Inner, not 'Twin'"):
        put(one, flatten(other))
    kept = {name: value for name, value in flatten(one).items() if name != "inner"}  # as an earlier version kept it
    assert put(one, kept) == one
    assert describe(Inner()) == {"measure": "Inner", "word": "a", "pairs": []}
    assert describe(Inner()) != describe(Twin())


def test_settings_that_an_earlier_version_did_not_have_are_filled_in_with_their_defaults() -> None:
    now = Outer(count=7, words=("b",), inner=Inner(word="c"))
    assert fill_defaults(now, {}) == flatten(Outer())
    assert fill_defaults(now, {"count": 3, "inner.word": "d"}) == flatten(Outer(count=3, inner=Inner("d")))
    data = {"split": None, "substitute": None, "where": None, "options": [], "modalities": None}
    assert fill_defaults(Data("mnist"), {}) == data, "there is none of a name"


ABC = Preset(
    name="some",
    shows="nothing",
    data=Data("shapes3d"),
    sampler=Sets(inactive=("shape",)),
    method=ABCSettings(encoder="shapes3d"),
    steps=10,
)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("stepps", 3, "unknown setting 'stepps'; did you mean 'steps'"),
        ("method.ratte", 3, "unknown setting 'method.ratte'; did you mean 'method.rate'"),
        ("method", "abc", "setting method must be a ABCSettings, not 'abc'"),
        ("augmentation", 3, "setting augmentation must be"),
        ("method.rate.start", 1.0, "unknown setting 'method.rate.start'"),
        ("augmentation.size", 3, "unknown setting 'augmentation.size'"),
        ("", 1, "unknown setting ''"),
        (".", 1, "unknown setting '.'"),
        ("__class__", 1, "unknown setting '__class__'"),
        ("name", "other", "unknown setting 'name'"),
        ("evaluations", {}, "unknown setting 'evaluations'"),
        ("steps", "many", "setting steps must be int, not 'many'"),
        ("steps", 2.0, r"setting steps must be int, not 2\.0"),
        ("steps", True, "setting steps must be int, not True"),
        ("method.rate", "1e-3", "setting rate must be float, not '1e-3'"),
        ("method.halve_every", "x", "setting halve_every must be int | None, not 'x'"),
        ("method.similarity", "l3", "setting similarity must be 'l2sq' or 'l2' or"),
        ("sampler.inactive", "shape", "setting inactive must be"),
        ("sampler.inactive", ["shape", 3], "setting inactive must be"),
        ("data.split", 3, "setting split must be"),
    ],
)
def test_what_is_no_setting_is_refused(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        put(ABC, {name: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        ({"share": 2, "count": 3, "kind": 3, "loose": object(), "plain": (1, "a")}, True),
        ({"pair": (2, "b"), "inner": "not looked at"}, True),
        ({"pair": (2,)}, False),
        ({"pair": ("b", 2)}, False),
        ({"plain": [1]}, False),
        ({"kind": "three"}, False),
        ({"yes": 1}, False),
        ({"yes": None}, False),
        ({"name": None}, True),
    ],
)
def test_values_are_compared_with_what_fields_are_declared_as(values: dict[str, Any], fits: bool) -> None:
    if fits:
        check(Outer(), values)
    else:
        with pytest.raises(SetsupError, match=r"^setting "):
            check(Outer(), values)


@pytest.mark.parametrize("value", [Path("here"), {"a": 1}, {1}, b"a", 1j, Inner, (1, (object(),))])
def test_what_json_would_not_keep_is_refused(value: object) -> None:
    with pytest.raises(SetsupError, match=r"setting loose must be a number, .* so that run.json can store it"):
        flatten(Outer(loose=value))
