"""Help of ``setsup sample``: the first options and the names of the others, or the options of one group."""

from collections.abc import Iterable, Sequence
from dataclasses import field, fields, make_dataclass
from itertools import pairwise
from typing import Annotated, Any, get_args

from cyclopts import Group, Parameter

from setsup.errors import SetsupError, did_you_mean
from setsup_cli.parsing.arguments import OUTPUT, SOURCE, Common, Source
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.sampler_options import FAMILIES, all_options, option_fields, sampler_options
from setsup_cli.parsing.settings import Setting

__all__ = ["select_help"]

_FIRST = ("inactive", "size", "sets", "steps", "out")
"""Options that most users need first."""


def select_help(subcommand: Subcommand, words: Sequence[str], output: type) -> Subcommand:
    """The options that help shows: those of the group that words name, or the first ones.

    `output` is the class of the options of what is drawn and written.
    """
    samplers = {key: option_fields(sampler_options(key), group=Group(key.capitalize(), sort_key=1)) for key in FAMILIES}
    groups = {"source": _own_fields(Source, group=SOURCE), **samplers, "output": _own_fields(output, group=OUTPUT)}
    key = next((word for word in words if word in groups), None)
    if key is None:
        _check_group(words, groups, subcommand)
        known = {setting[0]: setting for setting in (*option_fields(all_options()), *_own_fields(output))}
        shown = _options([known[name] for name in _FIRST], _dataset())
        return subcommand._replace(options=shown, more=_list_groups(groups))
    about = f"Options for {key}: {FAMILIES[key].about}." if key in FAMILIES else f"Options for the {key}."
    more = [("", f"`{subcommand.command} --help` lists all groups.")]
    return subcommand._replace(options=_options(groups[key], _dataset(show=key == "source")), help=about, more=more)


def _check_group(words: Sequence[str], groups: Iterable[str], subcommand: Subcommand) -> None:
    """Refuse a word after ``--help`` that is not a group of options."""
    for before, word in pairwise(words):
        if before in ("-h", "--help") and not word.startswith("-"):
            raise SetsupError(
                f"unknown group of options {word!r}{did_you_mean(word, groups)} (`{subcommand.command} --help` lists "
                "them)"
            )


def _list_groups(groups: dict[str, list[Setting]]) -> list[tuple[str, str]]:
    """Lines with the options of each group that no group before has."""
    lines = [("", "Options by group; `setsup sample --help pairs` shows those of one group:")]
    listed = {*_FIRST}
    for key, settings in groups.items():
        names = [setting[0] for setting in settings if setting[0] not in listed]
        listed.update(names)
        about = f"{FAMILIES[key].about}: " if key in FAMILIES else ""
        lines.append((key, about + " ".join(f"--{name.replace('_', '-')}" for name in names)))
    return lines


def _options(shown: Sequence[Setting], dataset: Setting) -> type:
    return make_dataclass("Options", [dataset, *shown], bases=(Common,), frozen=True, kw_only=True)


def _own_fields(kind: type, **more: Any) -> list[Setting]:
    """Options of a class but those of all subcommands and the dataset, with more about them."""
    common = {member.name for member in fields(Common)}
    members = [member for member in fields(kind) if member.kw_only and member.name not in common]
    return [(member.name, _annotate(member.type, **more), field(default=member.default)) for member in members]


def _dataset(*, show: bool = True) -> Setting:
    member = next(member for member in fields(Source) if member.name == "dataset")
    return member.name, _annotate(member.type, show=show), field(default=None, kw_only=False)  # type: ignore[arg-type]


def _annotate(declared: Any, **more: Any) -> Any:
    """A declared option with more about it."""
    kind, about = get_args(declared)
    return Annotated[kind, Parameter.combine(about, Parameter(**more))]
