"""Factors of variation: names, kinds, levels and units."""

import math
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_instance
from setsup.errors import FactorError, abbreviate, did_you_mean

__all__ = ["PLURAL", "ROLES", "Factor", "Kind", "Level", "check_factors", "level_array", "level_sort", "stored_level"]

Level = str | int | float | bool
"""The value of a discrete factor: a string, a number or a boolean."""

PLURAL = {"number": "numbers", "boolean": "booleans", "string": "strings"}
"""Plurals of the sorts of :func:`level_sort`."""

ROLES = ("variation", "key", "split", "part")
"""What a column is for. Only ``variation`` is a factor that sets fix or vary unless it is named."""

_NOISE = 4  # units in the last place by which two computations of a number differ at most
_ROUNDED = 4  # decimals from which on levels may be rounded ones
_FINER = 8  # decimals that a number has beyond those of a level that is its rounding
_LARGEST_32 = 3.4e38


class Kind(StrEnum):
    """Kind of a factor: how its values relate to each other."""

    NOMINAL = "nominal"
    """Names without an order: shape, identity."""
    ORDINAL = "ordinal"
    """Levels in an order: scale, elevation step."""
    CYCLIC = "cyclic"
    """Levels in an order that closes: hue, azimuth step."""
    CONTINUOUS = "continuous"
    """Any number; cyclic where the factor has a period."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor of variation.

    Parameters
    ----------
    name : str
        Name in expressions and samplers; preferably a Python identifier.
    kind : Kind
        Nominal, ordinal, cyclic or continuous.
    levels : sequence of str, int, float or bool, optional
        Values in order, also as a numpy array; stored as a tuple. None for continuous factors only.
    unit : str
        ``"deg"``, ``"turn"``, ``"m"`` or empty.
    period : float, optional
        Length of the cycle in units: 360.0 for degrees, 1.0 for turns.
    within : str, optional
        Factor in which this one is nested: fixing ``instance`` within ``category`` also fixes the category.
    role : str
        ``variation`` for a factor of variation, ``key`` for identifiers, ``split`` for a column that divides the rows
        into parts, ``part`` for the column that concatenation adds.

    Raises
    ------
    FactorError
        If the description contradicts itself.

    Examples
    --------
    >>> hue = Factor("wall_hue", Kind.CYCLIC, levels=(0.0, 0.25, 0.5, 0.75), unit="turn", period=1.0)
    >>> hue.code(0.5)
    2

    """

    name: str
    kind: Kind
    levels: tuple[Level, ...] | None = None
    unit: str = ""
    period: float | None = None
    within: str | None = None
    role: str = "variation"

    def __post_init__(self) -> None:
        """Check the description; accept lists and plain strings as they come from files."""
        where = f"factor {abbreviate(self.name)}"
        if not isinstance(self.name, str) or not self.name:
            raise FactorError(f"the name of a factor must be a non-empty string, not {abbreviate(self.name)}")
        try:
            object.__setattr__(self, "kind", Kind(self.kind))
        except (ValueError, TypeError):
            raise FactorError(f"{where}: unknown kind {abbreviate(self.kind)}{did_you_mean(self.kind, Kind)}") from None
        if not isinstance(self.role, str) or self.role not in ROLES:
            raise FactorError(f"{where}: unknown role {abbreviate(self.role)}{did_you_mean(self.role, ROLES)}")
        if not isinstance(self.unit, str) or not isinstance(self.within, str | None):
            raise FactorError(
                f"{where}: unit and within must be strings, not {abbreviate(self.unit)} and {abbreviate(self.within)}"
            )
        if self.within == self.name:
            raise FactorError(f"{where} cannot be nested within itself; name another factor in within=")
        if self.period is not None and not (_is_real(self.period) and 0 < self.period <= _LARGEST_32):
            raise FactorError(f"{where}: the period must be a positive number, not {abbreviate(self.period)}")
        if self.period is not None and not isinstance(self.period, int | float):
            object.__setattr__(self, "period", float(self.period))  # a number of numpy's is none to JSON
        if self.kind is Kind.CONTINUOUS:
            if self.levels is not None:
                raise FactorError(
                    f"{where} is continuous and cannot have levels; choose the kind 'ordinal', or leave out the levels"
                )
        else:
            object.__setattr__(self, "levels", _check_levels(self.levels, where))

    def __len__(self) -> int:
        """Count the levels; 0 for a continuous factor."""
        return 0 if self.levels is None else len(self.levels)

    @property
    def continuous(self) -> bool:
        """Whether values are float32 numbers rather than codes of levels."""
        return self.kind is Kind.CONTINUOUS

    def code(self, level: Level) -> int:
        """Return the code of a level, its position among the levels.

        Raises
        ------
        FactorError
            If the factor has no such level; the error suggests close matches.

        """
        if self.levels is None:
            raise FactorError(f"factor {self.name!r} is continuous and has no levels; compare it with < or >=")
        try:
            return self.levels.index(stored_level(level, self.levels))
        except (ValueError, TypeError, RuntimeError):  # arrays and tensors have no truth value
            raise FactorError(
                f"factor {self.name!r} has no level {abbreviate(level)}{did_you_mean(level, self.levels)}"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON and file headers, without attributes at their defaults."""
        about: dict[str, Any] = {"name": self.name, "kind": str(self.kind)}
        if self.levels is not None:
            about["levels"] = list(self.levels)
        for key, default in (("unit", ""), ("period", None), ("within", None), ("role", "variation")):
            if getattr(self, key) != default:
                about[key] = getattr(self, key)
        return about

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Factor":
        """Make a factor from the plain data of :meth:`to_dict`.

        Raises
        ------
        FactorError
            If a key is unknown or missing, or the description contradicts itself.

        """
        known = {"name", "kind", "levels", "unit", "period", "within", "role"}
        if not isinstance(data, Mapping) or not {"name", "kind"} <= data.keys() <= known:
            raise FactorError(
                "the description of a factor must have the keys name and kind, and may have "
                f"{sorted(known - {'name', 'kind'})}, not {abbreviate(data)}"
            )
        return cls(**data)


def check_factors(factors: Any) -> tuple[Factor, ...]:
    """Factors as a tuple; FactorError where one is something else."""
    if isinstance(factors, str) or not isinstance(factors, Iterable):
        raise FactorError(f"factors must be a list of Factor objects, not {abbreviate(factors)}")
    try:
        checked = tuple(factors)
    except TypeError:  # an array or a tensor without an axis
        raise FactorError(f"factors must be a list of Factor objects, not {abbreviate(factors)}") from None
    for factor in checked:
        check_instance(factor, Factor, "each of the factors", FactorError, 'make one with Factor("name", kind, levels)')
    return checked


def _is_real(number: Any) -> bool:
    return isinstance(number, Real) and not isinstance(number, bool)


def level_sort(level: Level) -> str:
    """Sort of a level: ``string``, ``boolean`` or ``number``; values of different sorts never compare."""
    return "string" if isinstance(level, str) else "boolean" if isinstance(level, bool) else "number"


def stored_level(value: Level, levels: Sequence[Level]) -> Level:
    """Find the level that a number stands for, else give the number itself.

    A floating-point number that is no level stands for one when it is the same number by another computation (4 units
    in the last place), or as 32 bits hold it; or when the levels are given to four decimals or more, and it is a number
    of at least eight decimals more that rounds to one of them, such as the published 0.8214285714285714 to 0.8214.
    A number that is merely close, such as 0.82144, stands for none.

    Examples
    --------
    >>> scales = (0.75, 0.8214, 0.8929)
    >>> stored_level(0.8214285714285714, scales), stored_level(0.82144, scales)
    (0.8214, 0.82144)
    >>> stored_level(0.1 + 0.2, (0.1, 0.2, 0.3))
    0.3

    """
    if type(value) is not float or not math.isfinite(value) or value in levels:
        return value
    floats = [level for level in levels if type(level) is float]
    close = [
        level
        for level in floats
        if abs(value - level) <= _NOISE * math.ulp(level) or (abs(level) < _LARGEST_32 and value == _in_32_bits(level))
    ]
    decimals = max(map(_decimals, floats), default=0)
    if not close and decimals >= _ROUNDED and _decimals(value) >= decimals + _FINER:
        close = [level for level in floats if level == round(value, decimals)]
    return close[0] if len(close) == 1 else value


def _in_32_bits(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


def _decimals(number: float) -> int:
    return max(0, -int(Decimal(repr(number)).as_tuple().exponent))


def _check_levels(levels: Any, where: str) -> tuple[Level, ...]:
    if hasattr(levels, "tolist"):  # an array of numpy or pandas, a tensor
        levels = levels.tolist()
    if levels is not None and (isinstance(levels, str | bytes) or not isinstance(levels, Sequence)):
        raise FactorError(f"{where}: levels must be a tuple, not {abbreviate(levels)}")
    if not levels:
        raise FactorError(f"{where} must have at least one level, or be of the kind 'continuous'")
    checked: tuple[Any, ...] = tuple(level.item() if isinstance(level, np.generic) else level for level in levels)
    wrong = next((level for level in checked if not isinstance(level, str | int | float)), None)
    sorts = {level_sort(level) for level in checked}
    if wrong is not None or len(sorts) > 1:
        raise FactorError(
            f"{where}: levels must be all strings, all numbers or all booleans, not "
            + (f"a {type(wrong).__name__}" if wrong is not None else "a mixture")
        )
    if any(isinstance(level, float) and not math.isfinite(level) for level in checked):
        raise FactorError(f"{where}: levels must be finite numbers; leave out unknown values, which are not levels")
    if len(set(checked)) != len(checked):
        twice = Counter(checked).most_common(1)[0][0]
        raise FactorError(f"{where}: the level {twice!r} is listed twice; list it once")
    return checked


def level_array(levels: Sequence[Level]) -> npt.NDArray[Any]:
    """Levels as an array of their own type; integers that numpy would round to floats stay Python's."""
    array = np.asarray(levels)
    if array.dtype.kind != "f":
        return array
    if all(isinstance(level, int) for level in levels):
        return np.array(levels, dtype=np.uint64 if all(0 <= int(level) < 2**64 for level in levels) else object)
    exact = all(level == number for level, number in zip(levels, array.tolist(), strict=True))
    return array if exact else np.array(levels, dtype=object)
