"""Kinds of claims of the paper on contrastive multiview coding, and the criteria for them."""

from collections.abc import Sequence

from setsup.experiments.report import Claim, Means
from setsup.experiments.report.criteria import Comparison, compare, has

__all__ = ["above", "between_random_and_supervised", "falling_together", "rank_correlation", "rising"]

_NEAR = 0.75
_LOW = -0.5


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 where all values are equal.

    Examples
    --------
    >>> rank_correlation([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    >>> rank_correlation([1, 2, 3], [1, 1, 1])
    0.0

    """
    from scipy.stats import spearmanr  # not where presets are listed

    if min(map(len, map(set, (first, second)))) < 2:
        return 0.0
    return round(float(spearmanr(first, second).statistic), 12)


def above(says: str, tested: str, key: str, pairs: Sequence[tuple[str, str]]) -> Claim:
    """In each pair of rows that was run, the value of the first is above that of the second."""
    higher, lower = zip(*pairs, strict=True)
    return Claim(
        says=says,
        tested=tested,
        rows=tuple(dict.fromkeys((*higher, *lower))),
        criterion=compare(
            [Comparison((row,), ">", (other,), key) for row, other in pairs],
            needs=f"full runs, such as those of {higher[0]} and {lower[0]}",
        ),
    )


def rising(says: str, tested: str, key: str, rows: Sequence[str], *, least: float) -> Claim:
    """The value grows from row to row: its rank correlation with their order is at least so high."""

    def test(means: Means) -> tuple[bool | None, str]:
        known = [row for row in rows if has(means, row, (key,))]
        if len(known) < 3:
            return None, f"needs full runs of three or more of {', '.join(rows)}"
        correlation = rank_correlation(range(len(known)), [means[row][key].mean for row in known])
        listed = ", ".join(f"{row} {means[row][key].words(3)}" for row in known)
        return correlation >= least, f"rank correlation {correlation:.2f}: {listed}"

    return Claim(says=says, tested=tested, rows=tuple(rows), criterion=test)


def falling_together(says: str, tested: str, keys: tuple[str, str], rows: Sequence[str]) -> Claim:
    """The less one value is in a row, the more is the other: their rank correlation over rows is low."""

    def test(means: Means) -> tuple[bool | None, str]:
        known = [row for row in rows if has(means, row, keys)]
        if len(known) < 5:
            return None, "needs full runs of five rows or more"
        correlation = rank_correlation(*([means[row][key].mean for row in known] for key in keys))
        return correlation <= _LOW, f"rank correlation {correlation:.2f} over {len(known)} rows"

    return Claim(says=says, tested=tested, rows=tuple(rows), criterion=test)


def between_random_and_supervised(key: str, own: str, random: str, supervised: str, place: str) -> Claim:
    """The value of an unsupervised row is near that of the supervised one."""

    def test(means: Means) -> tuple[bool | None, str]:
        if not all(has(means, row, (key,)) for row in (own, random, supervised)):
            return None, f"needs full runs of {own}, {random} and {supervised}"
        low, middle, high = (means[row][key].mean for row in (random, own, supervised))
        listed = f"{random} {low:.3f}, {own} {middle:.3f}, {supervised} {high:.3f}"
        return low < middle and middle - low >= _NEAR * (high - low), listed

    return Claim(
        says=f"Contrastive features come close to those of supervised training ({place}).",
        tested=f"{own} is above {random} by {_NEAR:.0%} or more of what {supervised} is: {key}",
        rows=(own, random, supervised),
        criterion=test,
    )
