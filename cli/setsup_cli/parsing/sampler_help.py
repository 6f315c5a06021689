"""Help of ``setsup sample``: the first options and the names of the others, or the options of one group."""

from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields, make_dataclass
from typing import Annotated, Any, get_args

from cyclopts import Group, Parameter

from setsup_cli.parsing.arguments import OUTPUT, SOURCE, Common, Source
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.sampler_options import FAMILIES, group_fields, option_fields, taken_options
from setsup_cli.parsing.settings import Setting

__all__ = ["select_help"]

_FIRST = ("inactive", "size", "sets", "steps", "out")
"""Options that most users need first."""


def select_help(subcommand: Subcommand, words: Sequence[str], output: type) -> Subcommand:
    """The options that help shows: those of the group that words name, or the first ones.

    `output` is the class of the options of what is drawn and written.
    """
    own = {"source": _declared(Source), "output": _declared(output)}
    groups = ("source", *FAMILIES, "output")
    key = next((word for word in words if word in groups), None)
    if key is None:
        known = {one[0]: one for one in (*option_fields(), *own["output"])}
        shown = [known[name] for name in _FIRST]
        return subcommand._replace(options=_options(shown, _dataset()), more=_list_groups(groups, own))
    group = OUTPUT if key == "output" else SOURCE
    shown = list(group_fields(key)) if key in FAMILIES else [_grouped(one, group) for one in own[key]]
    about = f"Options of {key}: {FAMILIES[key].about}." if key in FAMILIES else f"Options of the {key}."
    more = [("", f"`{subcommand.command} --help` lists all groups.")]
    return subcommand._replace(options=_options(shown, _dataset(hidden=key != "source")), help=about, more=more)


def _list_groups(groups: Sequence[str], own: Mapping[str, Sequence[Setting]]) -> list[tuple[str, str]]:
    """Lines with the options of each group that no group before has."""
    lines = [("", "Options by groups; `setsup sample --help pairs` shows those of one:")]
    listed = set(_FIRST)
    for key in groups:
        names = [one[0] for one in own[key]] if key in own else taken_options(key)
        fresh = [name for name in names if name not in listed]
        listed |= {*fresh}
        about = f"{FAMILIES[key].about}: " if key in FAMILIES else ""
        lines.append((key, about + " ".join(f"--{name.replace('_', '-')}" for name in fresh)))
    return lines


def _options(shown: Sequence[Setting], dataset: Setting) -> type:
    return make_dataclass("Options", [dataset, *shown], bases=(Common,), frozen=True, kw_only=True)


def _declared(kind: type) -> list[Setting]:
    """Options of a class but those of all subcommands and the dataset."""
    common = {member.name for member in fields(Common)}
    return [_setting(one) for one in fields(kind) if one.kw_only and one.name not in common]


def _setting(member: "Field[Any]") -> Setting:
    return member.name, member.type, field(default=member.default)


def _dataset(*, hidden: bool = False) -> Setting:
    member = next(one for one in fields(Source) if one.name == "dataset")
    kind, about = get_args(member.type)
    note = Parameter.combine(about, Parameter(show=not hidden))
    return "dataset", Annotated[kind, note], field(default=None, kw_only=False)  # type: ignore[arg-type]


def _grouped(setting: Setting, group: Group) -> Setting:
    name, declared, default = setting
    kind, about = get_args(declared)
    return name, Annotated[kind, Parameter.combine(about, Parameter(group=group))], default
