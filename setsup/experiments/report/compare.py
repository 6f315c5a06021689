"""Comparing the rows of a report over the re-splits that they share."""

from collections.abc import Mapping, Sequence

from setsup.errors import SetsupError
from setsup.evaluation.paired import PairedTest, paired_tests
from setsup.experiments.report.filled import Line
from setsup.experiments.report.report import Resplits
from setsup.experiments.report.resplits import LEVEL, Compared

__all__ = ["compare"]


def compare(resplits: Resplits, lines: Sequence[Line]) -> list[Compared]:
    """Compare comparable lines over their re-splits: those of the published setting, then of each substitute."""
    compared = []
    for differs in dict.fromkeys(line.differs for line in lines if line.comparable):
        own = {line.row.label: line for line in lines if line.differs == differs and resplits.key in line.curves}
        accuracies = {label: list(line.curves[resplits.key][1]) for label, line in own.items()}
        if accuracies:
            tests, without = _test(resplits.reference, accuracies)
            compared.append(
                Compared(
                    resplits=resplits,
                    on=", ".join(differs),
                    accuracies=accuracies,
                    seeds={label: len(line.seeds) for label, line in own.items()},
                    tests=tests,
                    without=without,
                )
            )
    return compared


def _test(reference: str, accuracies: Mapping[str, list[float]]) -> tuple[dict[str, PairedTest], str]:
    """Tests, or why there are none."""
    if not reference:
        return {}, ""
    others = {label: values for label, values in accuracies.items() if label != reference}
    if reference not in accuracies or not others:
        return {}, f"they need runs of {reference} and of another method"
    try:
        return paired_tests(accuracies[reference], others, level=LEVEL), ""
    except SetsupError as error:  # a single re-split, or scipy is not installed: the other numbers stand
        return {}, str(error)
