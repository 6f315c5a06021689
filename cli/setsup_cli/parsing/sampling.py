"""From the options that were given to a sampler."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from setsup.errors import FactorError, SamplerError, advised_for_command
from setsup_cli.parsing.notations import find_levels
from setsup_cli.parsing.own_samplers import build_own
from setsup_cli.parsing.sampler_options import FAMILIES, all_options, sampler_options
from setsup_cli.parsing.source import check_factors

if TYPE_CHECKING:
    from setsup.factors import FactorTable
    from setsup.samplers import Sampler

__all__ = [
    "build_sampler",
    "check_factor_lists",
    "choose_family",
    "fill_defaults",
    "read_options",
]

Given = Mapping[str, Any]
"""Values of options that were given, by name; a sampler has its own defaults for the others."""

_CONSTRAINTS = ("positive", "negative")
"""Options that choose triplets where no other option chooses a sampler."""


def choose_family(given: Given) -> str | None:
    """The key of the family that options choose; None when they choose none."""
    families = {name: key for key, family in FAMILIES.items() for name in family.choosing}
    choosing = [name for name in families if name in given and name not in _CONSTRAINTS]
    choosing = choosing or [name for name in _CONSTRAINTS if name in given][:1]
    if len(choosing) > 1:
        raise SamplerError(f"--{' and --'.join(choosing)} are mutually exclusive; use only one of them")
    if not choosing:
        return None
    key = families[choosing[0]]
    taken = {family: sampler_options(family).keys() for family in FAMILIES}
    for name in given:
        if name not in taken[key]:
            goes = ", ".join(_describe(family) for family in FAMILIES if name in taken[family])
            raise SamplerError(f"--{name} cannot be combined with --{choosing[0]}; --{name} is an option of {goes}")
    return key


def _describe(key: str) -> str:
    """The options that choose a sampler."""
    names = [f"--{name}" for name in FAMILIES[key].choosing if name not in _CONSTRAINTS]
    return ", ".join([*names, "--positive and --negative"] if key == "triplets" else names)


def read_options(options: Any) -> dict[str, Any]:
    """Values of samplers' arguments by the options that are given."""
    known = all_options()
    given = {name: value for name in known if (value := getattr(options, name)) != known[name].absent}
    return {name: known[name].notation.read(value, f"--{name}") for name, value in given.items()}


def check_factor_lists(values: Given) -> None:
    """Refuse a dataset or a table among the factors of an option."""
    from setsup.datasets import names
    from setsup.opening import is_table

    for option, value in values.items():
        factors = all_options()[option].notation.factors(value)
        for name in factors:
            if is_table(name) or name in names():
                others = " ".join(other for other in factors if other != name) or "FACTOR ..."
                raise FactorError(
                    f"{name!r} was parsed as a factor of --{option}; put the dataset before the options: `setsup "
                    f"sample {name} --{option} {others}`"
                )


def build_sampler(key: str, values: Given, table: "FactorTable", card: str) -> "Sampler":
    """Build the sampler of a family from values that were read; errors name options."""
    from setsup import samplers

    options = sampler_options(key)
    names = {option.argument: f"--{name}" for name, option in options.items()}
    if key == "mixtures":
        with advised_for_command(names):
            return build_own(values, table)
    for name, value in values.items():
        check_factors(options[name].notation.factors(value), table, card)
    arguments = {options[name].argument: value for name, value in values.items()}
    if isinstance(arguments.get("canonical"), Mapping):
        arguments["canonical"] = find_levels(arguments["canonical"], table, "--canonical")
    if key == "hierarchies":
        arguments |= {"factors": list(values["hierarchy"]), "sets": list(values["hierarchy"].values())}
        names["sets"] = "the numbers of --hierarchy"
    if key == "overlap":
        arguments["overlaps"], arguments["overlap"] = values["overlap"]
        names["overlap"] = names["overlaps"]
    if key == "time" and "time" not in values:
        raise SamplerError("--sequence requires --time FACTOR, the factor that contains the time of each row")
    with advised_for_command(names):
        sampler: Sampler = getattr(samplers, FAMILIES[key].sampler)(table, **arguments)
    return sampler


# -- defaults that suit the data ---------------------------------------------------------------------------------------

_FITTED = {"sets": ["size"], "domains": ["size", "sets"], "orbits": ["sets"], "episodes": ["queries", "ways"]}
"""Options that are fitted to the data, by families."""

_RELATED = {"size": {"small"}, "sets": {"values", "domains"}, "queries": {"small", "across", "within"}}
_RELATED["ways"] = _RELATED["queries"]
"""Choices for small groups, or for how sets relate, which go with the defaults of the sampler."""


def fill_defaults(
    key: str, values: Given, table: "FactorTable", card: str, *, own: bool
) -> tuple[dict[str, Any], list[str]]:
    """Add numbers that suit the data, with notes for the user.

    There are at most as many sets or classes as there are groups. Sets of the user's own data have the size of the
    smallest group, and episodes as many queries as each class has, up to the sampler's defaults.
    """
    fitted = [
        name
        for name in _FITTED.get(key, [])
        if not values.keys() & {name, *_RELATED[name]} and (own or name in ("sets", "ways"))
    ]
    if not fitted:
        return dict(values), []
    fewest = {"queries": 1, **values} if key == "episodes" else values
    sampler = build_sampler(key, {**fewest, **dict.fromkeys(fitted, 1)}, table, card)
    filled: dict[str, int] = {}
    notes: list[str] = []
    for name in fitted:
        default = sampler_options(key)[name].default
        fit, why = _find_fit(name, values, sampler)
        if name == "size" and fit < 2:  # one row fixes nothing: the sampler's error lists the groups that are too small
            filled["size"] = 2
        elif 1 <= fit < default:
            filled[name] = fit
            notes.append(f"{name} {fit}: {why} (--{name} changes it)")
        elif name == "size":
            notes.append(f"size {default}: the default, since every group has enough rows (--size changes it)")
    return {**values, **filled}, notes


def _find_fit(name: str, values: Given, sampler: "Sampler") -> tuple[int, str]:
    """The greatest number that the data allow for an option, and what it is."""
    from setsup.samplers import Entry

    entries = [entry for entry in sampler.report().entries if isinstance(entry, Entry)]  # those about groups
    if name == "size":
        together = int(sampler.arguments["sets"]) if values.get("values") == "equal" else 1
        shared = f", shared by {together} sets" if together > 1 else ""
        smallest = min(entry.smallest for entry in entries)
        return smallest // together, f"the number of rows of the smallest group{shared}"
    if name == "queries":
        spare = entries[0].smallest - int(values.get("shots", 1))
        return spare, "the rows that the smallest class has besides the shots"
    return entries[0].drawable, f"the number of {'classes' if name == 'ways' else 'groups'}"
