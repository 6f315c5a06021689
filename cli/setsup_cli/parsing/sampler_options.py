"""Options that choose a sampler and give its arguments: names, types, defaults and help come from its signature."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Annotated, Any, NamedTuple, cast

from setsup_cli.parsing.arguments import option
from setsup_cli.parsing.notations import NOTATIONS, Notation, choose_from
from setsup_cli.parsing.settings import Setting, name_options
from setsup_cli.parsing.signatures import Argument, read_arguments, read_constant

__all__ = ["FAMILIES", "SamplerOption", "all_options", "option_fields", "sampler_options"]


class Family(NamedTuple):
    """A sampler of the command.

    ``choosing`` are the options that choose it, ``names`` its options by the arguments that have other names than they,
    besides those of :data:`NAMES`. ``without`` are arguments without an option. ``defaults`` says in the help what an
    option is by default where the signature does not; ``{}`` is the sampler's default, where data may have less.
    ``metavars`` are the letters by which help calls the values of options, where these have one.
    """

    about: str
    module: str
    sampler: str
    choosing: Sequence[str]
    names: Mapping[str, str] = {}
    without: Sequence[str] = ("stream", "every")
    defaults: Mapping[str, str] = {}
    metavars: Mapping[str, str] = {}


class SamplerOption(NamedTuple):
    """An option of a sampler: the argument that it gives, how it is written, and what help says of it."""

    argument: str
    default: Any
    choices: tuple[str, ...]
    notation: Notation
    text: str
    shown_default: str

    @property
    def absent(self) -> int | None:
        """Its value where it is not given: 0, where this is the sampler's default, is none."""
        return 0 if self.default == 0 else None


NAMES: Mapping[str, str] = read_constant("spelling", "OPTION_NAMES")
"""Options by the arguments that have other names than they, in all samplers: the table of the samplers' messages."""

_SMALLEST = "{}; for your own data, the number of rows of the smallest group or domain, up to {}"

FAMILIES: Mapping[str, Family] = {
    "sets": Family(
        "sets in which some factors are fixed", "sets", "SetSampler", ["inactive", "active"],
        defaults={"size": _SMALLEST},
    ),
    "domains": Family(
        "batches of several domains", "domains", "DomainSampler", ["domain"],
        defaults={"size": _SMALLEST, "sets": "up to {}"}, metavars={"sets": "P", "size": "K"},
    ),
    "orbits": Family(
        "whole orbits, or some of their members", "orbits", "OrbitSampler", ["orbit"],
        defaults={"size": "whole orbits", "sets": "up to {}"},
    ),
    "triplets": Family(
        "anchor, positive and negative", "triplets", "TripletSampler", ["triplets", "positive", "negative"],
        {"orbit": "triplets", "triplets": "sets"},
    ),
    "pairs": Family(
        "pairs that differ in some factors", "factor_pairs", "FactorPairSampler", ["pairs", "change", "share", "rank"],
        {"k": "pairs", "pairs": "sets"}, defaults={"among": "all factors"},
    ),
    "episodes": Family(
        "few-shot tasks", "episodes", "EpisodeSampler", ["episode"], {"label": "episode"},
        defaults={
            "ways": "up to {}",
            "queries": "{}; for your own data, at most the number of rows that each class has left",
        },
        metavars={"ways": "N", "shots": "K", "queries": "Q"},
    ),
    "hierarchies": Family(
        "groups within groups", "hierarchies", "HierarchicalSampler", ["hierarchy"], {"factors": "hierarchy"},
        ["stream", "sets"],
    ),
    "time": Family(
        "pairs of rows close in time", "sequence_pairs", "SequencePairSampler", ["sequence"], {"pairs": "sets"}
    ),
    "neighbours": Family(
        "rows that are close to each other in an embedding", "neighbours", "NeighbourSampler", ["neighbours"],
        defaults={"ranks": "the whole table"},
    ),
    "overlap": Family(
        "views of a scene, selected by their overlap", "overlaps", "OverlapSampler", ["overlap"],
        {"overlaps": "overlap"}, ["stream", "overlap"],
    ),
    "mixtures": Family("your own sampler, such as a mixture, from a file", "", "", ["sampler"]),
}  # fmt: skip
"""The samplers of the command, by the words after --help that show their options."""

_TEXTS = {
    "k": "Number of factors that differ: a number, a range such as 1-3, or any.",
    "must_differ": "Whether the two rows must differ in each of the K factors; with no, each of these factors is drawn "
    "again and may coincide.",
    "overlaps": "File written by `setsup overlap`, and a band.",
    "weights": "Numeric factor that contains the relative probability of each row.",
    "where": "Draw only from rows that satisfy an expression, such as \"scale >= 1.0 and shape != 'cube'\".",
    "positive": 'Constraint that a positive satisfies, such as "id == anchor.id and camera != anchor.camera".',
    "negative": 'Constraint that a negative satisfies, such as "id != anchor.id".',
    "seed": "Random seed.",
}
"""What help says of options whose docstrings are about Python, by arguments."""

_OWN = {
    "sampler": Argument("sampler", text="Your own sampler, from a Python file or a module (MODULE:CLASS)."),
    "argument": Argument("argument", text="Arguments of your own --sampler, as JSON values or strings."),
    "size": Argument("Scheduled | Sequence[Scheduled]", text="Set size, if the sampler takes this argument."),
    "sets": Argument("int", text="Sets per step, if the sampler takes this argument."),
    "weights": Argument("Weights"),
    "where": Argument("Where"),
    "seed": Argument("int"),
}
"""Arguments that a sampler of the user's own may have."""


@cache
def sampler_options(key: str) -> dict[str, SamplerOption]:
    """Options of a family's sampler by name, those that choose it first."""
    family = FAMILIES[key]
    options = {}
    for name, argument in (read_arguments(family.module, family.sampler) if family.sampler else _OWN).items():
        if name not in family.without:
            shown = family.names.get(name, NAMES.get(name, name))
            options[shown] = _option(name, shown, argument, family)
    spelled = {declared.argument: f"--{shown}" for shown, declared in options.items()}
    options = {
        shown: declared._replace(text=name_options(declared.text, spelled)) for shown, declared in options.items()
    }
    return {name: options[name] for name in family.choosing} | options


def _option(name: str, shown: str, argument: Argument, family: Family) -> SamplerOption:
    """The option of an argument: help is all that the docstring says of choices, else its first clause."""
    default = family.defaults.get(shown, "{}")
    if argument.choices:
        notation, text = choose_from(argument.choices), argument.text
    else:
        notation = NOTATIONS.get(shown) or NOTATIONS[argument.annotation]
        notation = notation._replace(metavar=family.metavars.get(shown, notation.metavar))
        text = _TEXTS.get(name) or f"{argument.text.partition('. ')[0].partition('; ')[0].rstrip('.')}."
        text = f"{text} {notation.note}".strip()
    usual = "" if argument.default is None else str(argument.default)
    usual = ("yes" if argument.default else "no") if argument.annotation == "bool" else usual
    return SamplerOption(name, argument.default, argument.choices, notation, text, default.replace("{}", usual))


@cache
def all_options() -> dict[str, SamplerOption]:
    """Options of all samplers, as the first sampler has each, with the choices of all."""
    options: dict[str, SamplerOption] = {}
    for name, candidate in (pair for key in FAMILIES for pair in sampler_options(key).items()):
        first = options.setdefault(name, candidate)
        if candidate.choices:
            choices = tuple(dict.fromkeys((*first.choices, *candidate.choices)))
            options[name] = first._replace(choices=choices, notation=choose_from(choices))
    return options


def option_fields(options: Mapping[str, SamplerOption], **more: Any) -> list[Setting]:
    """Fields of a class of options; `more` is as for :func:`~setsup_cli.parsing.arguments.option`."""
    return [
        (
            name,
            Annotated[
                declared.notation.kind | None,
                option(declared.notation.metavar, declared.text, declared.shown_default, **more),
            ],
            cast(Any, field(default=declared.absent)),
        )
        for name, declared in options.items()
    ]
