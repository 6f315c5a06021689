"""Options of ``setsup sample``: they are what the samplers' constructors take, and help shows them by groups."""

import inspect
import re
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from setsup import samplers
from setsup_cli.parsing.notations import NOTATIONS
from setsup_cli.parsing.sampler_options import FAMILIES, all_options, sampler_options
from setsup_cli.parsing.view_bands import ANGLE, DIRECTION, SCALE

Run = Callable[..., Any]

WITHOUT_OPTION = {"stream", "every"}
KEYS = [key for key in FAMILIES if FAMILIES[key].sampler]


@pytest.mark.parametrize("key", KEYS)
def test_options_are_the_arguments_of_the_sampler(key: str) -> None:
    signature = inspect.signature(getattr(samplers, FAMILIES[key].sampler))
    options = sampler_options(key)
    # the numbers of a hierarchy's groups are given with its factors, and the band of the overlap with the file
    elsewhere = {"hierarchies": ["sets"], "overlap": ["overlap"]}
    without = {"table", *WITHOUT_OPTION, *elsewhere.get(key, [])}
    assert {option.argument for option in options.values()} == signature.parameters.keys() - without
    for option in options.values():
        default = signature.parameters[option.argument].default
        assert option.default == (None if default is inspect.Parameter.empty else default)


@pytest.mark.parametrize("key", KEYS)
def test_choices_are_those_of_the_signature(key: str) -> None:
    hints = get_type_hints(getattr(samplers, FAMILIES[key].sampler).__init__)
    for option in sampler_options(key).values():
        hint = hints[option.argument]
        assert option.choices == (get_args(hint) if get_origin(hint) is Literal else ())


def test_every_option_has_a_line_of_help() -> None:
    assert set(all_options()) == {name for key in FAMILIES for name in sampler_options(key)}
    for key in FAMILIES:
        for name, option in sampler_options(key).items():
            assert re.match(r"\S.*\.$", option.text), (key, name)


def test_help_shows_one_group(setsup: Run) -> None:
    shown = " ".join(setsup("sample", "--help", "pairs").out.replace("│", " ").split())
    assert "--sets N Pairs per step. [default: 32]" in shown
    assert "--among FACTOR ..." in shown
    assert "--ways" not in shown
    assert setsup("help", "sample", "pairs").out == setsup("sample", "--help", "pairs").out
    for key, name in (("source", "--table FILE"), ("output", "--title TEXT"), ("mixtures", "--sampler FILE.py:CLASS")):
        assert name in " ".join(setsup("sample", "--help", key).out.replace("│", " ").split())


def test_help_names_options_and_not_arguments(setsup: Run) -> None:
    def shown(key: str) -> str:
        return " ".join(setsup("sample", "--help", key).out.replace("│", " ").split())

    assert "A clique requires --direction both or either." in shown("overlap")
    assert "in the unit of --time." in shown("time")
    episodes = shown("episodes")
    assert "too few in a domain with --across or --within" in episodes
    for name in ("--ways N", "--shots K", "--queries Q"):
        assert f"{name} Number of" in episodes
    for key in FAMILIES:
        assert all(quoted.startswith("setsup ") for quoted in re.findall("`(.*?)`", shown(key)))


def test_bands_and_canonical_members_have_one_wording(setsup: Run) -> None:
    bands = [
        " ".join(setsup(*words, "--help").out.replace("│", " ").split()).lower()
        for words in (["sample", "--help", "overlap"], ["overlap"], ["pairs", "shapes3d-procedural"])
    ]
    for text in (ANGLE, SCALE, DIRECTION):
        assert all(text in shown for shown in bands), text
    members = NOTATIONS["str | Mapping[str, Level]"].note
    for words in (["sample", "--help", "orbits"], ["report", "orbits", "shapes3d-procedural", "--help"]):
        assert members in " ".join(setsup(*words).out.replace("│", " ").split())


def test_help_refuses_a_group_that_does_not_exist(setsup: Run) -> None:
    refused = setsup("sample", "--help", "domain")
    assert refused.code == 2
    assert "unknown group of options 'domain'; did you mean 'domains'?" in refused.err
    assert "Options by group" in setsup("sample", "shapes3d", "--help").out


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
