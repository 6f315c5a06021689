"""From options to a sampler."""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from setsup.errors import FactorError, SamplerError, near
from setsup_cli.parsing.source import assignments, check_factors, is_table, numbers

if TYPE_CHECKING:
    from setsup.factors import Factor, FactorTable
    from setsup.factors.factor import Level
    from setsup.samplers import Sampler
    from setsup_cli.parsing.sample_options import Options

__all__ = ["build_sampler", "check_places", "chosen_sampler"]

_TAKES = {
    "set": ("size", "sets", "unconstrained", "random", "choose", "values", "small", "tolerance", "where", "seed"),
    "domain": ("size", "sets", "domains", "small", "where", "seed"),
    "orbit": ("size", "sets", "canonical", "choose", "values", "small", "where", "seed"),
    "triplets": ("sets", "choose", "small", "where", "seed"),
}
"""Which options go with which sampler."""

_LISTS = ("inactive", "active", "domain", "orbit", "triplets")
"""Options that name factors."""

_SHOWN = {"set": "--inactive, --active", "domain": "--domain", "orbit": "--orbit", "triplets": "--triplets"}


def chosen_sampler(options: "Options") -> str | None:
    """Name the sampler that options ask for: set, domain, orbit or triplets; None when they ask for none."""
    asked = [name for name in _LISTS if getattr(options, name) is not None]
    if len(asked) > 1:
        raise SamplerError(f"give one of --{' and --'.join(asked)}: each is a way to draw of its own")
    if not asked:
        return None
    kind = "set" if asked[0] in ("inactive", "active") else asked[0]
    defaults = {field.name: field.default for field in fields(options)}
    for name in dict.fromkeys(option for takes in _TAKES.values() for option in takes):
        if getattr(options, name) != defaults[name] and name not in _TAKES[kind]:
            goes = ", ".join(_SHOWN[other] for other, takes in _TAKES.items() if name in takes)
            raise SamplerError(f"--{name} goes with {goes}, not with --{asked[0]}")
    return kind


def check_places(options: "Options") -> None:
    """Refuse a data set or a table that stands among the factors of an option."""
    if options.dataset is not None or options.table is not None:
        return
    from setsup.datasets import names

    for option, named in zip(_LISTS, _factor_lists(options), strict=True):
        for name in named or ():
            others = " ".join(other for other in named or () if other != name) or "FACTOR ..."
            if is_table(name):
                right = f"give it as `setsup sample --table {name} --{option} {others}`"
            elif name in names():
                right = f"name it before the options: `setsup sample {name} --{option} {others}`"
            else:
                continue
            raise FactorError(f"{name!r} was taken for a factor of --{option}; {right}")


def build_sampler(kind: str, options: "Options", table: "FactorTable", card: str) -> "Sampler":
    """Make the sampler that options ask for."""
    from setsup.samplers import DomainSampler, OrbitSampler, SetSampler, TripletSampler

    named = next(found for found in _factor_lists(options) if found is not None)
    check_factors(named, table, card)
    given = _given(kind, options)
    if kind == "domain":
        return DomainSampler(table, named, **given)
    if kind == "triplets":
        return TripletSampler(table, named, **{"triplets" if key == "sets" else key: given[key] for key in given})
    if kind == "orbit":
        if options.canonical:
            given["canonical"] = _canonical(options.canonical, table, card)
        return OrbitSampler(table, named, **given)
    if options.tolerance:
        given["tolerance"] = numbers(assignments(options.tolerance, "--tolerance", "number"), "--tolerance")
        check_factors(given["tolerance"], table, card)
    if options.inactive is not None:
        return SetSampler(table, inactive=named, **given)
    return SetSampler(table, active=named, **given)


def _factor_lists(options: "Options") -> list[list[str] | None]:
    """Factors named by each of the options that name some, None for those left out."""
    return [None if getattr(options, name) is None else list(getattr(options, name)) for name in _LISTS]


def _given(kind: str, options: "Options") -> dict[str, Any]:
    """Arguments as given; what was left out has the sampler's own default."""
    plain = [name for name in _TAKES[kind] if name not in ("tolerance", "canonical")]
    return {name: getattr(options, name) for name in plain if getattr(options, name) is not None}


def _canonical(words: tuple[str, ...], table: "FactorTable", card: str) -> "str | Mapping[str, Level]":
    """Read ``first``, ``argmin:FACTOR``, or levels such as ``camera=051``."""
    if len(words) == 1 and "=" not in words[0]:
        name = words[0].removeprefix("argmin:")
        if name != words[0]:
            check_factors([name], table, card)
        return words[0]
    found = assignments(words, "--canonical", "level")
    check_factors(found, table, card)
    return {name: _level(table[name], word) for name, word in found.items()}


def _level(factor: "Factor", word: str) -> "Level":
    """Find the level that a word on the command line means."""
    for level in factor.levels or ():
        if str(level) == word or (not isinstance(level, str) and _same_number(level, word)):
            return level
    if factor.levels is None:
        raise FactorError(f"factor {factor.name!r} is continuous: use --canonical argmin:{factor.name}")
    known = near(word, [str(level) for level in factor.levels])
    raise FactorError(f"factor {factor.name!r} has no level {word!r}{known}")


def _same_number(level: float, word: str) -> bool:
    try:
        return float(word) == float(level)
    except ValueError:
        return False
