"""Words of reports: numbers, counts and sets."""

from collections.abc import Mapping, Sequence

__all__ = ["list_counts", "name_sets", "span", "write_number"]


def span(least: int, most: int) -> str:
    """Write numbers from the least to the most, such as ``3 to 1,000``; one where they are equal."""
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def list_counts(counts: Mapping[str, int]) -> str:
    """Write how many there are of each kind, such as ``3 with an unknown value``; ``none`` without any."""
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "none"


def write_number(log10: float) -> str:
    """Write a number that is given by its decimal logarithm."""
    return f"{10**log10:,.0f}" if log10 < 6 else f"about 10^{log10:.1f}"


def name_sets(numbers: Sequence[int]) -> str:
    """Say which sets of a step an entry is about."""
    return f" (set{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))})" if numbers else ""
