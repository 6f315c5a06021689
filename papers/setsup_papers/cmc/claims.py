"""What the paper on contrastive multiview coding says about its tables and figures, and the criteria for it."""

from collections.abc import Sequence

from setsup.experiments.report import Claim, Means
from setsup.experiments.report.criteria import has

__all__ = [
    "above",
    "between_random_and_supervised",
    "less_information_is_better",
    "less_information_over_distance",
    "rank_correlation",
    "rising",
]

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


def above(says: str, key: str, higher: Sequence[str], lower: Sequence[str], tested: str) -> Claim:
    """In each pair of rows that was run, the value of the first is above that of the second."""

    def test(means: Means) -> tuple[bool | None, str]:
        pairs = [
            (one, other)
            for one, other in zip(higher, lower, strict=True)
            if has(means, one, (key,)) and has(means, other, (key,))
        ]
        if not pairs:
            return None, f"needs full runs, such as those of {higher[0]} and {lower[0]}"
        found = [(one, means[one][key], other, means[other][key]) for one, other in pairs]
        words = "; ".join(f"{one} {a.words(3)}, {other} {b.words(3)}" for one, a, other, b in found)
        return all(a.mean > b.mean for _, a, _, b in found), words

    return Claim(says=says, tested=tested, rows=tuple(dict.fromkeys((*higher, *lower))), criterion=test)


def rising(says: str, key: str, rows: Sequence[str], tested: str, least: float) -> Claim:
    """The value grows from row to row: its rank correlation with their order is at least so high."""

    def test(means: Means) -> tuple[bool | None, str]:
        known = [row for row in rows if has(means, row, (key,))]
        if len(known) < 3:
            return None, f"needs full runs of three or more of {', '.join(rows)}"
        values = [means[row][key].mean for row in known]
        found = rank_correlation(range(len(known)), values)
        words = ", ".join(f"{row} {means[row][key].words(3)}" for row in known)
        return found >= least, f"rank correlation {found:.2f}: {words}"

    return Claim(says=says, tested=tested, rows=tuple(rows), criterion=test)


def less_information_over_distance(offsets: Sequence[int]) -> Claim:
    """Of patches, figure 5."""
    return rising(
        "Patches tell less of each other the farther they are apart (figure 5).",
        "nats",
        [f"{offset} px" for offset in reversed(offsets)],
        "the rank correlation of nearness and information is .8 or more",
        0.8,
    )


def less_information_is_better(keys: tuple[str, str], rows: Sequence[str]) -> Claim:
    """Of colour spaces, figure 5: the rank correlation of two values over rows, information and accuracy, is low."""

    def test(means: Means) -> tuple[bool | None, str]:
        known = [row for row in rows if has(means, row, keys)]
        if len(known) < 5:
            return None, "needs full runs of five rows or more"
        found = rank_correlation(*([means[row][key].mean for row in known] for key in keys))
        return found <= _LOW, f"rank correlation {found:.2f} over {len(known)} rows"

    return Claim(
        says="The less the views of a colour space tell of each other, the better are the features (figure 5).",
        tested="the rank correlation of information and accuracy is −.5 or less",
        rows=tuple(rows),
        criterion=test,
    )


def between_random_and_supervised(key: str, own: str, random: str, supervised: str, place: str) -> Claim:
    """The value of an unsupervised row is near that of the supervised one."""

    def test(means: Means) -> tuple[bool | None, str]:
        if not all(has(means, row, (key,)) for row in (own, random, supervised)):
            return None, f"needs full runs of {own}, {random} and {supervised}"
        low, middle, high = (means[row][key].mean for row in (random, own, supervised))
        words = f"{random} {low:.3f}, {own} {middle:.3f}, {supervised} {high:.3f}"
        return low < middle and middle - low >= _NEAR * (high - low), words

    return Claim(
        says=f"Contrastive features come close to those of supervised training ({place}).",
        tested=f"{own} is above {random} by {_NEAR:.0%} or more of what {supervised} is: {key}",
        rows=(own, random, supervised),
        criterion=test,
    )
