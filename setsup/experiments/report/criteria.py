"""Common criteria for claims of papers, as :class:`~setsup.experiments.Claim` takes them."""

import math
from collections.abc import Callable, Sequence

from setsup.experiments.report import Criterion, Means

__all__ = ["amount", "fall", "has", "rises", "within"]


def within(
    keys: Sequence[str], least: float = -math.inf, most: float = math.inf, *, label: Callable[[str], str] = str
) -> Criterion:
    """Whether values lie between bounds in each row that was run.

    Parameters
    ----------
    keys : sequence of str
        Of columns.
    least, most : float
        Bounds, inclusive.
    label : callable
        Names of columns in the verdict.

    Examples
    --------
    >>> from setsup.experiments.report import Spread
    >>> within(("r2",), least=0.5)({"a": {"r2": Spread(0.4, None, 1)}, "b": {"r2": Spread(0.9, None, 1)}})
    (False, 'a: r2 0.400 (misses by 0.100); b: r2 0.900')

    """

    def words(key: str, value: float) -> str:
        miss = max(least - value, value - most)
        return f"{label(key)} {value:.3f}" + (f" (misses by {amount(miss, 3)})" if miss > 0 else "")

    def test(means: Means) -> tuple[bool | None, str]:
        rows = {row: {key: means[row][key].mean for key in keys} for row in means if has(means, row, keys)}
        if not rows:
            return None, "needs a full run"
        found = (f"{row}: {', '.join(map(words, held, held.values()))}" for row, held in rows.items())
        return all(least <= value <= most for held in rows.values() for value in held.values()), "; ".join(found)

    return test


def rises(keys: Sequence[str], first: str, second: str, *, label: Callable[[str], str] = str) -> Criterion:
    """Whether the mean of each value is larger in the second row than in the first.

    Examples
    --------
    >>> from setsup.experiments.report import Spread
    >>> rises(("r2",), "a", "b")({"a": {"r2": Spread(0.4, None, 1)}, "b": {"r2": Spread(0.9, None, 1)}})
    (True, 'from a to b: r2 0.40 → 0.90')

    """

    def word(key: str, before: float, after: float) -> str:
        return f"{label(key)} {before:.2f} → {after:.2f}{fall(before, after)}"

    def test(means: Means) -> tuple[bool | None, str]:
        if not has(means, first, keys) or not has(means, second, keys):
            return None, f"needs full runs of {first} and {second}"
        pairs = {key: (means[first][key].mean, means[second][key].mean) for key in keys}
        words = "; ".join(word(key, *pair) for key, pair in pairs.items())
        return all(before < after for before, after in pairs.values()), f"from {first} to {second}: {words}"

    return test


def fall(before: float, after: float) -> str:
    """Suffix for a value that should be larger than the one before it, such as ``" (falls by 0.25)"``.

    Examples
    --------
    >>> fall(1.0, 1.5), fall(1.5, 1.25), fall(1.0, 1.0)
    ('', ' (falls by 0.25)', ' (does not rise)')

    """
    if before < after:
        return ""
    return " (does not rise)" if before == after else f" (falls by {amount(before - after, 2)})"


def amount(value: float, decimals: int) -> str:
    """Format a number with so many decimals, or two significant digits if all decimals would be 0.

    Examples
    --------
    >>> amount(0.75, 2), amount(0.00123, 2)
    ('0.75', '0.0012')

    """
    usual = f"{value:.{decimals}f}"
    return usual if float(usual) else f"{value:.2g}"


def has(means: Means, row: str, keys: Sequence[str]) -> bool:
    """Whether a row has all of some values."""
    return row in means and set(keys) <= means[row].keys()
