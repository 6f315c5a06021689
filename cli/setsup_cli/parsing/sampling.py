"""From the options that were given to a sampler."""

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from setsup.errors import FactorError, SamplerError
from setsup_cli.parsing.notations import find_levels
from setsup_cli.parsing.own_samplers import build_own
from setsup_cli.parsing.sampler_options import FAMILIES, OPTIONS, option_notations, parameter_names, taken_options
from setsup_cli.parsing.source import check_factors

if TYPE_CHECKING:
    from setsup.factors import FactorTable
    from setsup.samplers import Entry, Sampler

__all__ = [
    "build_sampler",
    "check_factor_lists",
    "choose_family",
    "fill_defaults",
    "read_options",
    "sample_command",
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
        raise SamplerError(f"give only one of --{' and --'.join(choosing)}")
    if not choosing:
        return None
    key = families[choosing[0]]
    takes = {family: taken_options(family) for family in FAMILIES}
    for name in given:
        if name not in takes[key]:
            goes = ", ".join(_describe(other) for other in FAMILIES if name in takes[other])
            raise SamplerError(f"--{name} goes with {goes}, not with --{choosing[0]}")
    return key


def _describe(key: str) -> str:
    """The options that choose a sampler."""
    names = [f"--{name}" for name in FAMILIES[key].choosing if name not in _CONSTRAINTS]
    return ", ".join([*names, "--positive and --negative"] if key == "triplets" else names)


def read_options(options: Any) -> dict[str, Any]:
    """Values of samplers' arguments by the options that are given; each has another value than by default."""
    given = {name: getattr(options, name) for name in OPTIONS}
    notations = option_notations()
    return {
        name: notations[name].read(value, f"--{name}") for name, value in given.items() if value != OPTIONS[name].usual
    }


def check_factor_lists(values: Given) -> None:
    """Refuse a dataset or a table among the factors of an option."""
    from setsup.datasets import names
    from setsup.opening import is_table

    for option, value in values.items():
        factors = list(option_notations()[option].factors(value))
        for name in factors:
            if is_table(name) or name in names():
                others = " ".join(other for other in factors if other != name) or "FACTOR ..."
                raise FactorError(
                    f"{name!r} was taken for a factor of --{option}; name it before the options: `setsup sample {name} "
                    f"--{option} {others}`"
                )


def build_sampler(key: str, values: Given, table: "FactorTable", card: str) -> "Sampler":
    """Build the sampler of a family from values that were read; errors name options."""
    from setsup import samplers
    from setsup.samplers.spelling import spelled_as_options

    family = FAMILIES[key]
    parameters = parameter_names(family)
    names = {parameter: f"--{name}" for name, parameter in parameters.items()}
    if not family.sampler:
        with spelled_as_options(names):
            return build_own(values, table)
    for name, value in values.items():
        check_factors(option_notations()[name].factors(value), table, card)
    arguments = {parameters[name]: value for name, value in values.items()}
    if isinstance(arguments.get("canonical"), Mapping):
        arguments["canonical"] = find_levels(arguments["canonical"], table, "--canonical")
    if "hierarchy" in values:
        arguments |= {"factors": list(values["hierarchy"]), "sets": list(values["hierarchy"].values())}
        names["sets"] = "the numbers of --hierarchy"
    if "sequence" in values and "time" not in values:
        raise SamplerError("--sequence needs --time FACTOR, the factor that says when a row was taken")
    with spelled_as_options(names):
        sampler: Sampler = getattr(samplers, family.sampler)(table, **arguments)
    return sampler


# -- defaults that suit the data ---------------------------------------------------------------------------------------


def fill_defaults(
    key: str, values: Given, table: "FactorTable", card: str, *, own: bool
) -> tuple[dict[str, Any], list[str]]:
    """Add the size and the number of sets that suit the data, with notes for the user.

    There are at most as many sets as groups. Sets of the user's own data have the size of the smallest group, up to the
    sampler's default.
    """
    if key == "episodes":
        return _fill_episode(values, table, card, own=own)
    fitted, taken = FAMILIES[key].fitted, taken_options(key)
    # a choice for small groups, or for how sets relate, goes with the defaults of the sampler
    size = own and "size" in fitted and not values.keys() & {"size", "small"}
    sets = "sets" in fitted and not values.keys() & {"sets", "values", "domains"}
    if not (size or sets):
        return dict(values), []
    least = {**values, **({"size": 1} if size else {}), **({"sets": 1} if sets else {})}
    sampler = build_sampler(key, least, table, card)
    entries = _group_entries(sampler)
    filled: dict[str, int] = {}
    notes: list[str] = []
    if size:
        default = int(str(taken["size"].default))
        together = int(sampler.arguments["sets"]) if values.get("values") == "equal" else 1
        most = min(entry.smallest for entry in entries) // together
        if most >= default:
            notes.append(f"size {default}: the default; every group has enough rows (--size changes it)")
        elif most < 2:  # a set of one row fixes nothing: the error of the sampler lists the groups that are too small
            filled["size"] = 2
        else:
            filled["size"] = most
            shared = f", shared by {together} sets" if together > 1 else ""
            notes.append(f"size {most}: the number of rows of the smallest group{shared} (--size changes it)")
    if sets and entries[0].drawable < int(str(taken["sets"].default)):
        filled["sets"] = entries[0].drawable
        notes.append(f"sets {filled['sets']}: the number of groups (--sets changes it)")
    return {**values, **filled}, notes


def _group_entries(sampler: "Sampler") -> "list[Entry]":
    """Entries of a report that are about groups."""
    from setsup.samplers import Entry

    return [entry for entry in sampler.report().entries if isinstance(entry, Entry)]


def _fill_episode(values: Given, table: "FactorTable", card: str, *, own: bool) -> tuple[dict[str, Any], list[str]]:
    """Add as many classes as there are, up to the default; of own data as many queries as each class has, likewise."""
    if values.keys() & {"across", "within", "small"}:
        return dict(values), []
    ways, queries = (int(str(taken_options("episodes")[name].default)) for name in ("ways", "queries"))
    filled: dict[str, int] = {}
    notes: list[str] = []
    (entry,) = _group_entries(build_sampler("episodes", {"ways": 1, "queries": 1, **values}, table, card))
    most = entry.smallest - int(values.get("shots", 1))
    if own and "queries" not in values and 1 <= most < queries:
        filled["queries"] = most
        notes.append(f"queries {most}: the rows that the smallest class has besides the shots (--queries changes it)")
    if "ways" not in values and entry.drawable < ways:
        filled["ways"] = entry.drawable
        notes.append(f"ways {filled['ways']}: the number of classes (--ways changes it)")
    return {**values, **filled}, notes


def sample_command(
    source: str,
    table: "FactorTable",
    preferred: Sequence[str] = (),
    index: str | None = None,
    words: Sequence[str] = (),
) -> str:
    """A command that draws sets from a folder: by factors of which every group has two rows; else one that shows it."""
    places, more = ([], words) if "--table" in words else ([source], words)
    discrete = [one.name for one in table.factors if not one.continuous and one.role == "variation"]
    varied = [name for name in discrete if (table.counts(name) > 1).sum() > 1]
    for fixed in (preferred, *([name] for name in (*varied, *discrete))):
        if fixed and not any(table[name].continuous for name in fixed):
            counts = table.joint_counts(fixed)
            if counts[counts > 0].min(initial=len(table)) > 1:
                command = ["sample", *places, "--inactive", *fixed]
                break
    else:
        command = ["info", *places]
    return shlex.join(["setsup", *command, *(["--index", index] if index else []), *more])
