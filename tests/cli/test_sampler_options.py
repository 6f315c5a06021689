"""Options of ``setsup sample``: they are what the samplers' constructors take, and help shows them by groups."""

import inspect
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from setsup import samplers
from setsup_cli.parsing.sampler_options import FAMILIES, OPTIONS, parameter_names, taken_options

Run = Callable[..., Any]

WITHOUT_OPTION = {"stream", "every"}
KEYS = [key for key in FAMILIES if FAMILIES[key].sampler]


@pytest.mark.parametrize("key", KEYS)
def test_options_are_the_arguments_of_the_sampler(key: str) -> None:
    family = FAMILIES[key]
    signature = inspect.signature(getattr(samplers, family.sampler))
    given = {name for name in signature.parameters if name != "table"}
    assert set(parameter_names(family).values()) == given - WITHOUT_OPTION - {*family.without}
    for name, argument in taken_options(key).items():
        parameter = signature.parameters[parameter_names(family)[name]]
        assert argument.default == (None if parameter.default is parameter.empty else parameter.default)


@pytest.mark.parametrize("key", KEYS)
def test_choices_are_those_of_the_signature(key: str) -> None:
    family = FAMILIES[key]
    hints = get_type_hints(getattr(samplers, family.sampler).__init__)
    for name, argument in taken_options(key).items():
        hint = hints[parameter_names(family)[name]]
        assert argument.choices == (get_args(hint) if get_origin(hint) is Literal else ())


def test_every_option_is_one_of_a_sampler() -> None:
    assert set(OPTIONS) == {name for key in FAMILIES for name in taken_options(key)}


def test_help_shows_one_group(setsup: Run) -> None:
    shown = " ".join(setsup("sample", "--help", "pairs").out.replace("│", " ").split())
    assert "--sets N Pairs per step. [default: 32]" in shown
    assert "--among FACTOR ..." in shown
    assert "--ways" not in shown
    assert setsup("help", "sample", "pairs").out == setsup("sample", "--help", "pairs").out
    for key, name in (("source", "--table FILE"), ("output", "--title TEXT"), ("mixtures", "--sampler FILE.py:CLASS")):
        assert name in " ".join(setsup("sample", "--help", key).out.replace("│", " ").split())


def test_help_begins_with_five_options_and_names_the_groups(setsup: Run) -> None:
    shown = setsup("sample", "--help").out
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("│ --")][:5] == [
        "--inactive",
        "--size",
        "--sets",
        "--steps",
        "--out",
    ]
    groups = [line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line[2] != " "]
    assert groups == ["source", *FAMILIES, "output"]
    assert len(shown.splitlines()) < 60
