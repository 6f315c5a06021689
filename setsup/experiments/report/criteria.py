"""Common criteria for claims of papers, as :class:`~setsup.experiments.Claim` takes them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from setsup.experiments.report import Criterion, Means

__all__ = ["Comparison", "amount", "compare", "fall", "has", "highest", "rises", "within"]


def within(
    keys: Sequence[str], least: float = -math.inf, most: float = math.inf, *, label: Callable[[str], str] = str
) -> Criterion:
    """Check that values are within bounds in each row that was run.

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
        sentences = (f"{row}: {', '.join(map(words, held, held.values()))}" for row, held in rows.items())
        return all(least <= value <= most for held in rows.values() for value in held.values()), "; ".join(sentences)

    return test


def rises(keys: Sequence[str], first: str, second: str, *, label: Callable[[str], str] = str) -> Criterion:
    """Check that the mean of each value is larger in the second row than in the first.

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
        changes = "; ".join(word(key, *pair) for key, pair in pairs.items())
        return all(before < after for before, after in pairs.values()), f"from {first} to {second}: {changes}"

    return test


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison: each of some rows has a smaller, or larger, value than each of others.

    Attributes
    ----------
    rows : tuple of str
        Labels of the former.
    relation : {"<", ">"}
        How their values compare with those of the others.
    others : tuple of str
        Labels of the latter.
    key : str
        Of the column.
    by : float
        Least difference; 0 for any. Below 0 the relation may be reversed by that much.

    """

    rows: tuple[str, ...]
    relation: Literal["<", ">"]
    others: tuple[str, ...]
    key: str
    by: float = 0.0

    def change(self, means: Means) -> float | None:
        """Change from `rows` to `others`, of the two of those run that are least apart; None where none were run."""
        values, others = self._values(means, self.rows), self._values(means, self.others)
        if not values or not others:
            return None
        return min(others) - max(values) if self.relation == "<" else max(others) - min(values)

    def holds(self, change: float) -> bool:
        """Whether a change is as the relation says, and large enough."""
        difference = change if self.relation == "<" else -change
        return difference >= self.by if self.by else difference > 0

    def words(self, means: Means, change: float) -> str:
        """Values of the rows that were run, and the change where it has to be of some size."""
        run = [row for row in self.rows + self.others if has(means, row, (self.key,))]
        values = ", ".join(f"{row} {means[row][self.key].words(3)}" for row in run)
        return values + (f" ({change:+.3f})".replace("-", "−") if self.by > 0 else "")

    def _values(self, means: Means, rows: Sequence[str]) -> list[float]:
        return [means[row][self.key].mean for row in rows if has(means, row, (self.key,))]


def compare(comparisons: Iterable[Comparison], *, needs: str) -> Criterion:
    """Check the comparisons whose rows were run.

    Parameters
    ----------
    comparisons : iterable of Comparison
        What is compared.
    needs : str
        What there has to be for one of them.

    Examples
    --------
    >>> from setsup.experiments.report import Spread
    >>> test = compare([Comparison(("a",), "<", ("b",), "r2", by=0.1)], needs="runs of a and b")
    >>> test({"a": {"r2": Spread(0.4, None, 1)}, "b": {"r2": Spread(0.9, None, 1)}})
    (True, 'a 0.400, b 0.900 (+0.500)')
    >>> test({})
    (None, 'needs runs of a and b')

    """
    comparisons = tuple(comparisons)

    def test(means: Means) -> tuple[bool | None, str]:
        changes = {comparison: comparison.change(means) for comparison in comparisons}
        run = {comparison: change for comparison, change in changes.items() if change is not None}
        if not run:
            return None, f"needs {needs}"
        sentences = "; ".join(comparison.words(means, change) for comparison, change in run.items())
        return all(comparison.holds(change) for comparison, change in run.items()), sentences

    return test


def highest(row: str, key: str, *, least: int, needs: str) -> Criterion:
    """Check that no other row has a larger value, among at least `least` rows that were run.

    Examples
    --------
    >>> from setsup.experiments.report import Spread
    >>> test = highest("a", "r2", least=2, needs="runs of a and another row")
    >>> test({"a": {"r2": Spread(0.4, None, 1)}, "b": {"r2": Spread(0.9, None, 1)}})
    (False, 'a 0.400, best b 0.900')

    """

    def test(means: Means) -> tuple[bool | None, str]:
        values = {label: means[label][key] for label in means if has(means, label, (key,))}
        if row not in values or len(values) < least:
            return None, f"needs {needs}"
        best = max(values, key=lambda label: values[label].mean)
        sentence = f"{row} {values[row].words(3)}, best {best} {values[best].words(3)}"
        return values[row].mean == values[best].mean, sentence

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
    """Return whether a row has all of the given values."""
    return row in means and set(keys) <= means[row].keys()
