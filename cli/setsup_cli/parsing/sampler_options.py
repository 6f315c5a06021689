"""Options that choose a sampler and give its arguments: names, types, defaults and help come from its signature."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Annotated, Any, NamedTuple, cast

from cyclopts import Group, Parameter

from setsup_cli.parsing.arguments import option
from setsup_cli.parsing.notations import NOTATIONS, Notation, choose_from
from setsup_cli.parsing.settings import Setting
from setsup_cli.parsing.signatures import Argument, read_arguments, read_constant

__all__ = [
    "FAMILIES",
    "OPTIONS",
    "group_fields",
    "option_fields",
    "option_notations",
    "parameter_names",
    "taken_options",
]


class Family(NamedTuple):
    """A sampler of the command.

    ``choosing`` are the options that choose it, ``names`` its arguments by the options that have other names than they,
    besides those of :data:`NAMES`. ``without`` are arguments that have no option, though options are called so.
    ``fitted`` says what an option is by default, of which ``{}`` is the sampler's default, where data may have less.
    """

    about: str
    module: str
    sampler: str
    choosing: Sequence[str]
    names: Mapping[str, str] = {}
    without: Sequence[str] = ()
    fitted: Mapping[str, str] = {}


class Option(NamedTuple):
    """An option: what it has besides its argument's signature.

    ``text`` replaces what the docstring says, ``absent`` is what the help gives as default where the signature has
    None, and ``notation`` replaces the type. An option that has the value ``usual`` is as one that is not given.
    """

    text: str = ""
    absent: str = ""
    notation: str = ""
    usual: int | None = None


NAMES = {option: argument for argument, option in read_constant("spelling", "OPTION_NAMES").items()}
"""Arguments of options that have other names than they, in all samplers: the table of the samplers' messages."""

_SMALLEST = "{}; for your own data the size of the smallest group, up to {}"

FAMILIES: Mapping[str, Family] = {
    "sets": Family(
        "sets in which some factors are fixed", "sets", "SetSampler", ["inactive", "active"], fitted={"size": _SMALLEST}
    ),
    "domains": Family(
        "batches of several domains", "domains", "DomainSampler", ["domain"],
        fitted={"size": _SMALLEST, "sets": "up to {}"},
    ),
    "orbits": Family(
        "whole orbits, or some of their members", "orbits", "OrbitSampler", ["orbit"], fitted={"sets": "up to {}"}
    ),
    "triplets": Family(
        "anchor, positive and negative", "triplets", "TripletSampler", ["triplets", "positive", "negative"],
        {"triplets": "orbit", "sets": "triplets"},
    ),
    "pairs": Family(
        "pairs that differ in some factors", "factor_pairs", "FactorPairSampler", ["pairs", "change", "share", "rank"],
        {"pairs": "k", "sets": "pairs"},
    ),
    "episodes": Family(
        "few-shot tasks", "episodes", "EpisodeSampler", ["episode"], {"episode": "label"},
        fitted={"ways": "up to {}", "queries": "{}; for your own data up to what each class has"},
    ),
    "hierarchies": Family(
        "groups within groups", "hierarchies", "HierarchicalSampler", ["hierarchy"], {"hierarchy": "factors"}, ["sets"]
    ),
    "time": Family(
        "pairs of rows near in time", "sequence_pairs", "SequencePairSampler", ["sequence"], {"sets": "pairs"}
    ),
    "neighbours": Family("rows near in an embedding", "neighbours", "NeighbourSampler", ["neighbours"]),
    "mixtures": Family("your own sampler, such as a mixture, from a file", "", "", ["sampler"]),
}  # fmt: skip
"""The samplers of the command, by the words after --help that show their options."""

OPTIONS: Mapping[str, Option] = {
    "inactive": Option("Draw sets within which these factors are fixed."),
    "active": Option("Draw sets within which all factors but these are fixed."),
    "domain": Option("Draw batches of several domains, one for each combination of these factors."),
    "orbit": Option("Draw orbits, one for each combination of these factors; whole ones unless --size is given."),
    "triplets": Option("Draw triplets: anchor and positive share the values of these factors, the negative does not."),
    "positive": Option(
        'Draw triplets whose positive satisfies "id == anchor.id and camera != anchor.camera"; with --negative.'
    ),
    "negative": Option('Constraint on the negative, such as "id != anchor.id".'),
    "pairs": Option(
        "Draw pairs that differ in K factors, chosen for each pair: a number, a range such as 1-3, or any; "
        "0:1,100:1-3 gives K = 1 to 3 from step 100 on."
    ),
    "change": Option("Draw pairs that differ in exactly these factors."),
    "share": Option("Draw pairs that are equal in these factors and differ in all others."),
    "rank": Option("Draw pairs of any rows, and say which has the higher level of these ordinal factors."),
    "episode": Option("Draw few-shot episodes, whose classes are the combinations of these factors."),
    "hierarchy": Option(
        "Draw sets within several levels of groups, the outermost first: N values of each factor within each of the "
        "factor before."
    ),
    "sequence": Option("Draw pairs of rows near in time, from one combination of these factors each."),
    "neighbours": Option(
        "Draw rows with some of their nearest neighbours, from a table of `setsup embed --neighbours`; 0:FILE 100:FILE "
        "gives one from step 0 and one from step 100 on."
    ),
    "sampler": Option("Draw with your own sampler, from a Python file or a module (MODULE:CLASS).", notation="sampler"),
    "size": Option(absent="whole orbits"),
    "sets": Option(),
    "ways": Option(),
    "shots": Option(),
    "queries": Option(),
    "unconstrained": Option(usual=0),
    "random": Option(),
    "choose": Option(
        "Distribution of a set's fixed values: uniform over each factor's levels, over groups, or over rows."
    ),
    "values": Option(),
    "domains": Option(),
    "small": Option(),
    "tolerance": Option(),
    "canonical": Option(
        "Canonical member of each orbit: first, argmin:FACTOR, FACTOR=LEVEL ..., or the first row that satisfies an "
        "expression, as for --where."
    ),
    "members": Option("Constraint on the members of an orbit relative to the first, its anchor, as for --positive."),
    "among": Option(absent="all factors"),
    "radius": Option(),
    "differ": Option("yes: pairs differ in every changed factor; no: it is drawn again, and may coincide."),
    "across": Option(),
    "within": Option(),
    "time": Option(notation="factor"),
    "window": Option(),
    "ranks": Option(
        "First and last rank of --neighbours, such as 1-20; negative=1-20 draws the positive from all rows that "
        "satisfy --positive.",
        "all of the table",
    ),
    "argument": Option("Arguments of your own --sampler, as JSON values or strings.", notation="argument"),
    "weights": Option("Numeric factor: the relative probability of each row within its group."),
    "where": Option("Draw only from rows such as \"scale >= 1.0 and shape != 'cube'\"."),
    "seed": Option("Random seed.", usual=0),
}
"""The one table of options: those that are listed here exist."""

_OF_OWN = {
    "sampler": Argument("sampler", None, ""),
    "argument": Argument("argument", None, ""),
    "size": Argument("Scheduled | Sequence[Scheduled]", None, "Set size, if the sampler has it."),
    "sets": Argument("int", None, "Sets per step, if the sampler has it."),
    "weights": Argument("Weights", None, ""),
    "where": Argument("Where", None, ""),
    "seed": Argument("int", None, ""),
}
"""Arguments that a sampler of the user's own may have."""


def parameter_names(family: Family) -> dict[str, str]:
    """Names of a sampler's arguments by the options that give them, those that choose it first."""
    known = _read_family(family)
    renamed = {parameter: name for name, parameter in (NAMES | dict(family.names)).items() if parameter in known}
    by_option = {renamed.get(name, name): name for name in known if name not in family.without}
    ordered = {name: by_option[name] for name in family.choosing} | by_option
    return {name: parameter for name, parameter in ordered.items() if name in OPTIONS}


@cache
def taken_options(key: str) -> dict[str, Argument]:
    """Arguments of a family's sampler by their options."""
    known = _read_family(FAMILIES[key])
    return {name: known[parameter] for name, parameter in parameter_names(FAMILIES[key]).items()}


def _read_family(family: Family) -> dict[str, Argument]:
    return read_arguments(family.module, family.sampler) if family.sampler else _OF_OWN


def _notation(name: str, argument: Argument) -> Notation:
    """How an option writes an argument."""
    if argument.choices:
        return choose_from(argument.choices)
    return NOTATIONS[OPTIONS[name].notation or argument.annotation]


@cache
def option_notations() -> dict[str, Notation]:
    """How each option is written: as the first sampler has it, with the choices of all."""
    found = {}
    for name in OPTIONS:
        arguments = [taken[name] for taken in map(taken_options, FAMILIES) if name in taken]
        choices = tuple(dict.fromkeys(choice for argument in arguments for choice in argument.choices))
        found[name] = choose_from(choices) if choices else _notation(name, arguments[0])
    return found


def option_fields() -> list[Setting]:
    """Fields of a class of options: all options of all samplers."""
    found: list[Setting] = []
    for name, notation in option_notations().items():
        key = next(key for key in FAMILIES if name in taken_options(key))
        usual = OPTIONS[name].usual
        kind = notation.kind | None if usual is None else notation.kind
        found.append((name, Annotated[kind, _declare(key, name, notation)], cast(Any, field(default=usual))))
    return found


def group_fields(key: str) -> Iterator[Setting]:
    """Fields with the help of the options of one sampler."""
    group = Group(key.capitalize(), sort_key=1)
    for name, argument in taken_options(key).items():
        yield name, Annotated[Any, _declare(key, name, _notation(name, argument), group=group)], field(default=None)  # type: ignore[arg-type]


def _declare(key: str, name: str, notation: Notation, **more: Any) -> Parameter:
    """An option as a sampler has it."""
    argument, fitted = taken_options(key)[name], FAMILIES[key].fitted.get(name, "{}")
    default = ("yes" if argument.default else "no") if argument.annotation == "bool" else argument.default
    if default is not None:
        shown = fitted.replace("{}", str(default))
    else:
        shown = OPTIONS[name].absent if FAMILIES[key].sampler else ""  # that of your own sampler is not known
    return option(notation.metavar, _help(name, argument, notation), shown, **more)


def _help(name: str, argument: Argument, notation: Notation) -> str:
    """What the table says of an option, or the docstring: all of it for choices, else its first clause."""
    text = OPTIONS[name].text or argument.text
    if text == argument.text and not argument.choices:
        text = f"{text.partition('. ')[0].partition('; ')[0].rstrip('.')}."
    return f"{text} {notation.note[:1].upper()}{notation.note[1:]}".strip()
