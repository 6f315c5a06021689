"""From the options that were given to a sampler."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.errors import FactorError, SamplerError, did_you_mean
from setsup.files.expand_user import expanded
from setsup_cli.parsing.own_samplers import build_own
from setsup_cli.parsing.source import assignments, check_factors, numbers

if TYPE_CHECKING:
    from setsup.factors import Factor, FactorTable
    from setsup.factors.factor import Level
    from setsup.samplers import Entry, Sampler

__all__ = ["build_sampler", "check_factor_lists", "choose_sampler", "fill_defaults", "sample_command"]

Given = Mapping[str, Any]
"""Options that were given, by name; a sampler has its own defaults for the others."""

_TAKES = {
    "set": (
        *("size", "sets", "unconstrained", "random", "choose", "values", "small", "tolerance", "weights", "where"),
        "seed",
    ),
    "domain": ("size", "sets", "domains", "small", "weights", "where", "seed"),
    "orbit": ("size", "sets", "members", "canonical", "choose", "values", "small", "weights", "where", "seed"),
    "triplets": ("sets", "positive", "negative", "choose", "small", "weights", "where", "seed"),
    "episode": ("ways", "shots", "queries", "across", "within", "small", "weights", "where", "seed"),
    "hierarchy": ("size", "small", "weights", "where", "seed"),
    "sequence": ("sets", "time", "window", "weights", "where", "seed"),
    "sampler": ("argument", "size", "sets", "weights", "where", "seed"),
    "neighbours": ("sets", "positive", "negative", "ranks", "weights", "where", "seed"),
    "pairs": ("sets", "among", "differ", "radius", "weights", "where", "seed"),
}
"""Which options go with which sampler."""

_LISTS = (
    "inactive",
    "active",
    "domain",
    "orbit",
    "triplets",
    "episode",
    "hierarchy",
    "sequence",
    "change",
    "share",
    "rank",
)
"""Options that name factors, of which each chooses a sampler."""

_CHOOSING = (*_LISTS, "pairs", "neighbours", "sampler")
"""Options that choose a sampler."""

_FACTORS = (*_LISTS, "across", "within", "among")
"""Options that name factors."""

_CONSTRAINTS = ("positive", "negative")
"""Options that choose triplets without naming factors."""

_KINDS = {
    **dict.fromkeys(("inactive", "active"), "set"),
    **dict.fromkeys(("change", "share", "rank"), "pairs"),
    **dict.fromkeys(_CONSTRAINTS, "triplets"),
}
"""Samplers of options that are not named as they are."""

_SHOWN = {
    "set": "--inactive, --active",
    "triplets": "--triplets, --positive and --negative",
    "pairs": "--pairs, --change, --share, --rank",
    "neighbours": "--neighbours",
    "sampler": "--sampler",
    **{kind: f"--{kind}" for kind in ("domain", "orbit", "episode", "hierarchy", "sequence")},
}

_LEVEL = re.compile(r"[^=!<>]*=(?!=)")
"""A level such as ``camera=051``, and no comparison of an expression."""

_BY_STEP = re.compile(r"(\d+):(.+)")
"""A file from a step on, such as ``100:second.npy``."""

_SIZE = 32
_SETS = {"domain": 4, "orbit": 8}
_WAYS, _QUERIES = 5, 15
"""Defaults of the samplers; the number of sets, or ways, must not exceed that of the groups."""


def choose_sampler(given: Given) -> str | None:
    """The sampler that options choose, by its key in ``_TAKES``; None when they choose none."""
    for name in ("size", "random"):
        _by_step_or_set(given.get(name, 1), name)
    named = [name for name in _CHOOSING if name in given]
    named = named or [name for name in _CONSTRAINTS if name in given][:1]
    if len(named) > 1:
        raise SamplerError(f"give only one of --{' and --'.join(named)}")
    if not named:
        return None
    kind = _KINDS.get(named[0], named[0])
    for name in dict.fromkeys(option for takes in _TAKES.values() for option in takes):
        if name in given and name not in _TAKES[kind]:
            goes = ", ".join(_SHOWN[other] for other, takes in _TAKES.items() if name in takes)
            raise SamplerError(f"--{name} goes with {goes}, not with --{named[0]}")
    return kind


def check_factor_lists(given: Given) -> None:
    """Refuse a dataset or a table among the factors of an option."""
    if given.keys() & {"dataset", "table"}:
        return
    from setsup.datasets import names
    from setsup.opening import is_table

    for option in _FACTORS:
        for name in given.get(option, ()):
            if is_table(name) or name in names():
                others = " ".join(other for other in given[option] if other != name) or "FACTOR ..."
                raise FactorError(
                    f"{name!r} was taken for a factor of --{option}; name it before the options: `setsup sample {name} "
                    f"--{option} {others}`"
                )


def build_sampler(kind: str, given: Given, table: "FactorTable", card: str) -> "Sampler":
    """Build the sampler that options describe; errors name options."""
    from setsup.samplers.spelling import spelled_as_options

    with spelled_as_options({name: f"--{name}" for takes in _TAKES.values() for name in takes}):
        return _build(kind, given, table, card)


def _build(kind: str, given: Given, table: "FactorTable", card: str) -> "Sampler":
    from setsup.samplers import (
        DomainSampler,
        EpisodeSampler,
        HierarchicalSampler,
        OrbitSampler,
        SequencePairSampler,
        SetSampler,
    )

    arguments: dict[str, Any] = {name: given[name] for name in _TAKES[kind] if name in given}
    if "weights" in arguments and kind != "sampler":
        check_factors([arguments["weights"]], table, card)
    if kind == "pairs":
        return _pairs(given, arguments, table, card)
    if kind == "sampler":
        return build_own(given, arguments, table)
    if kind == "neighbours":
        return _neighbours(given, arguments, table)
    arguments |= {name: _by_step_or_set(arguments[name], name) for name in ("size", "random") if name in arguments}
    if kind == "triplets":
        return _triplets(given, arguments, table, card)
    option = next(name for name in _LISTS if name in given)
    counts = _counts(given[option]) if kind == "hierarchy" else {}
    named = list(counts or given[option])
    check_factors(named, table, card)
    if kind == "domain":
        return DomainSampler(table, named, **arguments)
    if kind == "sequence":
        if "time" not in arguments:
            raise SamplerError("--sequence needs --time FACTOR, the factor that says when a row was taken")
        check_factors([arguments["time"]], table, card)
        return SequencePairSampler(
            table, named, **{"pairs" if key == "sets" else key: arguments[key] for key in arguments}
        )
    if kind == "hierarchy":
        return HierarchicalSampler(table, named, list(counts.values()), **arguments)
    if kind == "episode":
        for name in ("across", "within"):
            check_factors(given.get(name, ()), table, card)
        return EpisodeSampler(table, named, **arguments)
    if kind == "orbit":
        if "canonical" in arguments:
            arguments["canonical"] = _canonical(arguments["canonical"], table, card)
        return OrbitSampler(table, named, **arguments)
    if "tolerance" in arguments:
        arguments["tolerance"] = numbers(assignments(arguments["tolerance"], "--tolerance", "number"), "--tolerance")
        check_factors(arguments["tolerance"], table, card)
    return SetSampler(table, **{**arguments, option: named})


def _counts(words: Iterable[str]) -> dict[str, int]:
    """Read how many groups of each level of a hierarchy are drawn, such as ``subject=4``."""
    found = numbers(assignments(words, "--hierarchy", "number"), "--hierarchy")
    for name, number in found.items():
        if not number.is_integer():
            raise SamplerError(f"--hierarchy {name}={number:g}: expected an integer after the =")
    return {name: int(number) for name, number in found.items()}


def _triplets(given: Given, arguments: dict[str, Any], table: "FactorTable", card: str) -> "Sampler":
    from setsup.samplers import TripletSampler

    if "triplets" in given:
        arguments["orbit"] = list(given["triplets"])
        check_factors(arguments["orbit"], table, card)
    if "sets" in arguments:
        arguments["triplets"] = arguments.pop("sets")
    return TripletSampler(table, **arguments)


def _pairs(given: Given, arguments: dict[str, Any], table: "FactorTable", card: str) -> "Sampler":
    from setsup.samplers import FactorPairSampler

    for name in ("among", "change", "share", "rank"):
        if name in given:
            arguments[name] = list(given[name])
            check_factors(arguments[name], table, card)
    if "pairs" in given:
        arguments["k"] = _span(given["pairs"])
    if "differ" in arguments:
        arguments["differ"] = arguments["differ"] == "yes"
    if "radius" in arguments:
        words = arguments["radius"]
        if len(words) == 1 and words[0].isdecimal():
            arguments["radius"] = int(words[0])
        else:
            steps = numbers(assignments(words, "--radius", "number of steps"), "--radius")
            check_factors(steps, table, card)
            arguments["radius"] = {name: int(step) if step == int(step) else step for name, step in steps.items()}
    return FactorPairSampler(table, **{"pairs" if key == "sets" else key: arguments[key] for key in arguments})


def _neighbours(given: Given, arguments: dict[str, Any], table: "FactorTable") -> "Sampler":
    from setsup.samplers import NeighbourSampler

    found: dict[int, str] = {}
    for word in given["neighbours"]:
        step, path = match.groups() if (match := _BY_STEP.match(word)) else ("0", word)
        if int(step) in found:
            raise SamplerError(f"--neighbours has two tables for step {step}: write 0:FILE 100:FILE, or one FILE")
        found[int(step)] = str(expanded(Path(path)))
    if "ranks" in arguments:
        words = arguments["ranks"]
        if len(words) == 1 and "=" not in words[0]:
            arguments["ranks"] = _ranks(words[0])
        else:
            spans = assignments(words, "--ranks", "1-20")
            arguments["ranks"] = {name: _ranks(word) for name, word in spans.items()}
    return NeighbourSampler(table, found, **arguments)


def _ranks(word: str) -> list[int]:
    """Read ``1-20``."""
    low, _, high = word.partition("-")
    if not (low.isdecimal() and high.isdecimal()):
        raise SamplerError(f"--ranks must be the first and the last rank, such as 1-20, not {word!r}")
    return [int(low), int(high)]


def _span(word: str) -> Any:
    """Read ``2``, ``1-3``, ``any``, or one of these from each of some steps on, ``0:1,100:1-3``."""
    low, _, high = word.partition("-")
    if ":" in word:
        steps = [part.partition(":") for part in word.split(",")]
        found = {int(step): _span(value) for step, _, value in steps if step.isdecimal() and ":" not in value}
        if len(found) < len(steps):
            raise SamplerError(f"--pairs by step is such as 0:1,100:1-3, with each step once, not {word!r}")
        return found
    if word == "any":
        return None
    if not low.isdecimal() or ("-" in word and not high.isdecimal()):
        raise SamplerError(
            f"--pairs must be a number of factors, such as 2, a range, such as 1-3, or any, not {word!r}"
        )
    return [int(low), int(high)] if high else int(low)


def fill_defaults(
    kind: str, given: Given, table: "FactorTable", card: str, *, own: bool
) -> tuple[dict[str, Any], list[str]]:
    """Add the size and the number of sets that suit the data, with notes for the user.

    There are at most as many sets as groups. Sets of the user's own data have the size of the smallest group, up to 32.
    """
    if kind == "episode":
        return _fill_episode(given, table, card, own=own)
    # a choice for small groups, or for how sets relate, goes with the defaults of the sampler
    size = own and not given.keys() & {"size", "small"} and kind in ("set", "domain")
    sets = not given.keys() & {"sets", "values", "domains"} and kind in _SETS
    if not (size or sets):
        return dict(given), []
    least = {**given, **({"size": 1} if size else {}), **({"sets": 1} if sets else {})}
    sampler = build_sampler(kind, least, table, card)
    entries = _entries(sampler)
    found: dict[str, int] = {}
    notes: list[str] = []
    if size:
        together = int(sampler.arguments["sets"]) if given.get("values") == "equal" else 1
        most = min(entry.smallest for entry in entries) // together
        if most >= _SIZE:
            notes.append(f"size {_SIZE}: the default; every group has enough rows (--size changes it)")
        elif most < 2:  # a set of one row fixes nothing: the error of the sampler lists the groups that are too small
            found["size"] = 2
        else:
            found["size"] = most
            shared = f", shared by {together} sets" if together > 1 else ""
            notes.append(f"size {most}: the number of rows of the smallest group{shared} (--size changes it)")
    if sets and entries[0].drawable < _SETS[kind]:
        found["sets"] = entries[0].drawable
        notes.append(f"sets {found['sets']}: the number of groups (--sets changes it)")
    return {**given, **found}, notes


def _entries(sampler: "Sampler") -> "list[Entry]":
    """Entries of a report that are about groups."""
    from setsup.samplers import Entry

    return [entry for entry in sampler.report().entries if isinstance(entry, Entry)]


def _fill_episode(given: Given, table: "FactorTable", card: str, *, own: bool) -> tuple[dict[str, Any], list[str]]:
    """Add as many classes as there are, up to 5; of the user's own data as many queries as each class has, up to 15."""
    if given.keys() & {"across", "within", "small"}:
        return dict(given), []
    found: dict[str, int] = {}
    notes: list[str] = []
    (entry,) = _entries(build_sampler("episode", {"ways": 1, "queries": 1, **given}, table, card))
    most = entry.smallest - int(given.get("shots", 1))
    if own and "queries" not in given and 1 <= most < _QUERIES:
        found["queries"] = most
        notes.append(f"queries {most}: the rows that the smallest class has besides the shots (--queries changes it)")
    if "ways" not in given and entry.drawable < _WAYS:
        found["ways"] = entry.drawable
        notes.append(f"ways {found['ways']}: the number of classes (--ways changes it)")
    return {**given, **found}, notes


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


def _by_step_or_set(word: int | str, option: str) -> int | dict[int, int] | list[int]:
    """Read ``8``, a number for each set, ``4,12``, or one from each of some steps on, ``0:4,100:8``."""
    if isinstance(word, int):
        return word
    parts = [part.split(":") for part in word.split(",")]
    if len(parts) == 1 and len(parts[0]) == 1:
        raise SamplerError(f"--{option} must be an integer, not {word!r}")
    if not all(number.isascii() and number.isdigit() for part in parts for number in part) or {
        *map(len, parts)
    } not in (
        {1},
        {2},
    ):
        raise SamplerError(
            f"--{option} must be an integer, one for each set, such as 4,12, or one from each of some steps on, such "
            f"as 0:4,100:8, not {word!r}"
        )
    if len(parts[0]) == 1:
        return [int(number) for (number,) in parts]
    found = {int(step): int(number) for step, number in parts}
    if len(found) < len(parts):
        raise SamplerError(f"--{option} {word} names a step twice")
    return found


def _canonical(words: tuple[str, ...], table: "FactorTable", card: str) -> "str | Mapping[str, Level]":
    """Read ``first``, ``argmin:FACTOR``, an expression, or levels such as ``camera=051``."""
    if len(words) == 1 and not _LEVEL.match(words[0]):
        name = words[0].removeprefix("argmin:")
        if name != words[0]:
            check_factors([name], table, card)
        return words[0]
    found = assignments(words, "--canonical", "level")
    check_factors(found, table, card)
    return {name: _level(table[name], word) for name, word in found.items()}


def _level(factor: "Factor", word: str) -> "Level":
    """Find the level that a word of the command line names."""
    for level in factor.levels or ():
        if str(level) == word or (not isinstance(level, str) and _same_number(level, word)):
            return level
    if factor.levels is None:
        raise FactorError(
            f'factor {factor.name!r} is continuous: use --canonical "{factor.name} == {word}", the first row of an '
            f"orbit that satisfies it, or --canonical argmin:{factor.name}"
        )
    known = did_you_mean(word, [str(level) for level in factor.levels])
    raise FactorError(f"factor {factor.name!r} has no level {word!r}{known}")


def _same_number(level: float, word: str) -> bool:
    try:
        return float(word) == float(level)
    except ValueError:
        return False
