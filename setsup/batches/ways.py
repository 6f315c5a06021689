"""Ways of drawing batches: which sampler each is, what it asks of labels, and how many batches a pass has."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.checks import check_boolean, check_integer
from setsup.errors import SamplerError, abbreviate, listed
from setsup.factors.grouping import group_by
from setsup.factors.groups import Groups
from setsup.factors.table import FactorTable
from setsup.samplers.arguments import MOST_ROWS, MOST_SETS
from setsup.samplers.domains import DomainSampler
from setsup.samplers.episodes import EpisodeSampler
from setsup.samplers.epochs import EpochSampler
from setsup.samplers.groups.members import check_small
from setsup.samplers.row_arguments import drawable_rows
from setsup.samplers.sampler import Sampler
from setsup.samplers.sets import SetSampler
from setsup.samplers.triplets import TripletSampler

__all__ = ["NUMBERS", "WAYS", "Way", "make_sampler", "read_way"]

WAYS = ("classes", "domains", "batch_size", "pairs", "triplets", "episodes")
"""Arguments of which exactly one says how batches are drawn."""

_ROWS_OF_EACH = {"classes": "per_class", "domains": "per_domain"}
NUMBERS = (*WAYS, *_ROWS_OF_EACH.values())
"""Arguments that say how many rows a batch has."""

_NAMED = {"classes": "class", "domains": "domain"}


@dataclass(frozen=True, slots=True)
class Way:
    """One way of drawing.

    Attributes
    ----------
    option : str
        The argument that chose it.
    columns : tuple or None
        Columns whose values are classes: None for the only one, () where rows need no class.
    numbers : tuple of int
        Classes and rows of each; rows; pairs; triplets; or classes, support and query rows of an episode.

    """

    option: str
    columns: tuple[Any, ...] | None
    numbers: tuple[int, ...]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that say so, as plain data."""
        if self.option == "episodes":
            return {self.option: list(self.numbers)}
        return dict(zip((self.option, _ROWS_OF_EACH.get(self.option, "")), self.numbers, strict=False))

    @property
    def rows(self) -> int:
        """Rows of a batch."""
        if self.option == "episodes":
            return self.numbers[0] * (self.numbers[1] + self.numbers[2])
        return math.prod(self.numbers) * {"pairs": 2, "triplets": 3}.get(self.option, 1)

    @property
    def classes(self) -> int:
        """Classes of which a batch needs rows."""
        return 1 if self.option in ("pairs", "triplets") else self.numbers[0]

    @property
    def each(self) -> int:
        """Rows that a class must have."""
        if self.option == "episodes":
            return self.numbers[1] + self.numbers[2]
        return 2 if self.option in ("pairs", "triplets") else self.numbers[1]

    @property
    def each_name(self) -> str:
        """What requires these rows, as the caller writes it."""
        if self.option in _ROWS_OF_EACH:
            return f"{_ROWS_OF_EACH[self.option]}={self.each}"
        what = {"pairs": "a pair", "triplets": "anchor and positive", "episodes": "support and query"}
        return f"{what[self.option]} ({self.each} rows)"

    @property
    def noun(self) -> str:
        """What groups of rows are called: class or domain."""
        return _NAMED.get(self.option, "class")


def read_way(given: Mapping[str, Any]) -> Way:
    """Find the one way of drawing among the arguments; SamplerError where there is none, or two."""
    chosen = [name for name in WAYS if given.get(name) is not None]
    if not chosen:
        raise SamplerError(
            "batch_sampler requires one way of drawing; pass classes= with per_class=, domains= with per_domain=, "
            "batch_size=, pairs=, triplets= or episodes="
        )
    if len(chosen) > 1:
        both = " and ".join(f"{name}={abbreviate(given[name])}" for name in chosen)
        raise SamplerError(f"{both} are {len(chosen)} ways of drawing a batch; pass only one of them")
    for option, each in _ROWS_OF_EACH.items():
        if given.get(each) is not None and option != chosen[0]:
            raise SamplerError(
                f"{each}={abbreviate(given[each])} applies to {option}=, not to {chosen[0]}=; leave out one of the two"
            )
    option = chosen[0]
    columns, number = _column_of(option, given[option])
    if option == "batch_size":
        return Way(option, (), (check_integer(given[option], option, SamplerError, 1, MOST_ROWS),))
    if option == "episodes":
        return Way(option, columns, _episode(number))
    numbers: tuple[int, ...] = (check_integer(number, option, SamplerError, 1, MOST_SETS),)
    if option in _ROWS_OF_EACH:
        each = _ROWS_OF_EACH[option]
        if given.get(each) is None:
            raise SamplerError(
                f"{option}={abbreviate(given[option])} requires the number of rows per {_NAMED[option]}; pass {each}= "
                "too"
            )
        numbers = (*numbers, check_integer(given[each], each, SamplerError, 1, MOST_ROWS))
    return Way(option, columns, numbers)


def _column_of(option: str, value: Any) -> tuple[tuple[Any, ...] | None, Any]:
    """Columns and number of ``8``, ``{"identity": 8}`` or ``{("identity", "camera"): 8}``."""
    if not isinstance(value, Mapping):
        return None, value
    one, what = ("(5, 1, 15)", "(ways, shots, queries)") if option == "episodes" else ("8", "a number")
    if len(value) != 1:
        raise SamplerError(
            f"{option} must be {what}, or one column with it, such as {{'identity': {one}}}, not {abbreviate(value)}; "
            f"for combinations of columns, pass {{('identity', 'camera'): {one}}}"
        )
    ((name, number),) = value.items()
    columns = name if isinstance(name, tuple) else (name,)
    if not columns:
        raise SamplerError(
            f"{option} contains an empty tuple of columns; pass at least one column, such as {{'identity': {one}}}"
        )
    return columns, number


def _episode(value: Any) -> tuple[int, int, int]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise SamplerError(
            "episodes must be (ways, shots, queries), the numbers of classes and of support and query rows per class, "
            f"such as (5, 1, 15), not {abbreviate(value)}; pass a tuple or list of three integers"
        )
    names = ("the ways of episodes", "the shots of episodes", "the queries of episodes")
    ways, shots, queries = (
        check_integer(number, name, SamplerError, 1, MOST_SETS) for number, name in zip(value, names, strict=True)
    )
    return ways, shots, queries


def make_sampler(
    way: Way,
    table: FactorTable,
    names: tuple[str, ...],
    *,
    shuffle: Any,
    drop_last: Any,
    weights: Any,
    on_small_group: Any,
    seed: Any,
) -> tuple[Sampler, int]:
    """Make the sampler of a way of drawing; also returns the draws of a pass."""
    check_boolean(shuffle, "shuffle", SamplerError)
    check_boolean(drop_last, "drop_last", SamplerError)
    check_small(on_small_group)
    if way.option == "batch_size":
        return _epochs(way, table, shuffle, drop_last, weights, on_small_group, seed)
    if not shuffle:
        raise SamplerError(
            f"shuffle=False applies only to batch_size=, which can draw rows in order; {way.option}= draws at random, "
            "so leave out shuffle="
        )
    if not drop_last:
        raise SamplerError(
            f"drop_last=False applies only to batch_size=, whose passes may end in a smaller batch; {way.option}= has "
            "only whole batches, so leave out drop_last="
        )
    rows = _check_groups(way, table, names, weights, on_small_group)
    options = {"weights": weights, "on_small_group": on_small_group, "seed": seed}
    return _MAKERS[way.option](way, table, names, options), max(rows // way.rows, 1)


def _epochs(
    way: Way, table: FactorTable, shuffle: bool, drop_last: bool, weights: Any, on_small_group: Any, seed: Any
) -> tuple[Sampler, int]:
    if on_small_group != "error":
        raise SamplerError(
            f"on_small_group={on_small_group!r} applies only to ways of drawing with classes; batch_size= draws rows "
            "of any class, so leave out on_small_group="
        )
    mask, _ = drawable_rows(table, None, weights)
    rows = len(table) if mask is None else int(mask.sum())
    if drop_last and 0 < rows < way.numbers[0]:
        raise SamplerError(
            f"batch_size={way.numbers[0]} exceeds the {rows:,} rows that can be drawn; lower batch_size=, or "
            "pass drop_last=False for a smaller batch"
        )
    partial = "drop" if drop_last else "pad"
    sampler = EpochSampler(table, way.numbers[0], shuffle=shuffle, partial=partial, weights=weights, seed=seed)  # type: ignore[arg-type]
    return sampler, sampler.steps_per_epoch


def _check_groups(way: Way, table: FactorTable, names: tuple[str, ...], weights: Any, on_small_group: Any) -> int:
    """Refuse classes that are too few or too small, in the caller's words; returns the rows that can be drawn."""
    mask, _ = drawable_rows(table, None, weights)
    groups = group_by(table, names, mask)
    few = groups.sizes < way.each
    if few.any() and on_small_group == "error":
        raise SamplerError(_small_groups(way, table, groups, few))
    sizes = groups.sizes if on_small_group in ("short", "replace") else groups.sizes[~few]
    of = f"{len(groups):,} {way.noun}{_plural(way.noun, len(groups))} of {', '.join(names)}"
    if not len(sizes):
        raise SamplerError(
            f"none of the {of} has enough rows for {way.each_name}; request fewer rows, or pass labels with more rows "
            f"per {way.noun}"
        )
    if way.option == "triplets" and len(groups) < 2:
        raise SamplerError(
            "triplets= requires negatives of another class, but labels has only one class; pass labels with at least "
            "two classes"
        )
    if len(sizes) < way.classes:
        which = f"the {len(sizes):,} of {of} with enough rows for {way.each_name}" if few.any() else f"the {of}"
        if way.option == "episodes":
            raise SamplerError(f"the {way.classes:,} ways of episodes= exceed {which}; lower its first number")
        raise SamplerError(f"{way.option}={way.classes} exceeds {which}; lower {way.option}=")
    return int(sizes.sum())


def _small_groups(way: Way, table: FactorTable, groups: Groups, few: np.ndarray[Any, Any]) -> str:
    which = np.flatnonzero(few)
    smallest = which[np.argsort(groups.sizes[which], kind="stable")[:5]]
    named = listed(f"{groups.describe(table, int(group))} ({groups.sizes[group]:,})" for group in smallest)
    policies = "'drop' leaves them out"
    if way.option not in ("triplets", "episodes"):
        policies += ", 'short' takes all their rows, 'replace' draws with replacement"
    have = f"{way.noun}{_plural(way.noun, 2)} {'has' if len(which) == 1 else 'have'}"
    return (
        f"{len(which):,} of {len(groups):,} {have} too few rows for {way.each_name}, the smallest: {named}; pass "
        f"on_small_group= ({policies}), or request fewer rows"
    )


def _plural(noun: str, count: int) -> str:
    return "" if count == 1 else "es" if noun.endswith("s") else "s"


Options = Mapping[str, Any]


def _make_domains(way: Way, table: FactorTable, names: tuple[str, ...], options: Options) -> Sampler:
    return DomainSampler(table, _alone(names), *way.numbers, **options)


_MAKERS: dict[str, Callable[[Way, FactorTable, tuple[str, ...], Options], Sampler]] = {
    "classes": _make_domains,
    "domains": _make_domains,
    "pairs": lambda way, table, names, options: SetSampler(table, list(names), size=2, sets=way.numbers[0], **options),
    "triplets": lambda way, table, names, options: TripletSampler(table, _alone(names), *way.numbers, **options),
    "episodes": lambda way, table, names, options: EpisodeSampler(table, _alone(names), *way.numbers, **options),
}


def _alone(names: tuple[str, ...]) -> str | list[str]:
    """One name by itself, as it is shown with the sampler."""
    return names[0] if len(names) == 1 else list(names)
