"""What DCoDR's paper says of its tables, with criteria; the thresholds are ours, where the paper names no number."""

from collections.abc import Mapping, Sequence

from setsup.experiments.report import Claim, Means
from setsup.experiments.report.criteria import Comparison, compare, has, highest

__all__ = ["CROP", "FLIP", "compared", "faster", "without_negatives"]

_BASELINES = ("LORD", "DRNET", "ML-VAE")
_OWN = ("DCoDR-norec", "DCoDR")

_DOMAIN, _ATTRIBUTES = "domain", "informativeness"
_LOST = 0.1
"""Accuracy of the domain that is more than noise of a probe, and of the attributes."""
_NEAR = 0.05
"""Attributes that are read nearly as well."""


def compared(datasets: Sequence[str]) -> tuple[Claim, ...]:
    """Claims on the invariance and the information of DCoDR beside baselines.

    Labels of rows are ``<dataset>, <method>``, or methods alone for the dataset ``""``.
    """
    own, baselines = ([_labels(dataset, methods) for dataset in datasets] for methods in (_OWN, _BASELINES))
    rows = tuple(label for both in zip(baselines, own, strict=True) for labels in both for label in labels)
    less = [Comparison(ours, "<", theirs, f"probes: {_DOMAIN}") for ours, theirs in zip(own, baselines, strict=True)]
    informed = [
        Comparison(_labels(dataset, ("DCoDR",)), ">", _labels(dataset, ("LORD",)), f"probes: {_ATTRIBUTES}", by=-_NEAR)
        for dataset in datasets
    ]
    return (
        Claim(
            says="The domain is predicted less accurately from DCoDR than from LORD, DRNET and ML-VAE (table 2).",
            tested="accuracy of the domain, with and without reconstruction, is below that of each baseline",
            rows=rows,
            criterion=compare(less, needs="a run of DCoDR and one of a baseline, on one dataset"),
        ),
        Claim(
            says="DCoDR is as informative as LORD about the attributes, or more (table 2).",
            tested=f"accuracy of the attributes is at most {_NEAR:g} below that of LORD",
            rows=rows,
            criterion=compare(informed, needs="runs of DCoDR and LORD on one dataset"),
        ),
    )


def without_negatives(rows: Mapping[str, str], key: str = _DOMAIN) -> Claim:
    """Claim on negatives of the domain: labels of rows without them, by those with them."""
    pairs = [Comparison((whole,), "<", (without,), key, by=_LOST) for whole, without in rows.items()]
    return Claim(
        says="Negatives of the image's own domain make the code invariant: without them it contains the domain "
        "(table 3).",
        tested=f"accuracy of the domain is at least {_LOST:g} higher with negatives of all domains",
        rows=tuple(label for pair in rows.items() for label in pair),
        criterion=compare(pairs, needs=f"runs of {' and '.join(next(iter(rows.items())))}"),
    )


def faster(datasets: tuple[str, ...]) -> Claim:
    """Claim on the duration of an epoch."""

    def test(means: Means) -> tuple[bool | None, str]:
        sentences, holds = [], []
        for dataset in datasets:
            labels = _labels(dataset, ("LORD, first stage", "LORD, second stage", *_OWN))
            if all(has(means, label, ("seconds per epoch",)) for label in labels):
                first, second, short, whole = (means[label]["seconds per epoch"].mean for label in labels)
                holds.append(short < whole < first + second)
                front = f"{dataset}: " if dataset else ""
                sentences.append(
                    f"{front}LORD {first:.1f} + {second:.1f} s, DCoDR-norec {short:.1f} s, DCoDR {whole:.1f} s"
                )
        if not holds:
            return None, "needs runs of both stages of LORD, of DCoDR and of DCoDR-norec on one dataset"
        return all(holds), "; ".join(sentences)

    return Claim(
        says="DCoDR trains faster than LORD, and faster still without reconstruction (table 5).",
        tested="an epoch of DCoDR-norec takes less time than one of DCoDR, and this less than one of both stages of "
        "LORD together",
        criterion=test,
    )


FLIP = Claim(
    says="An augmentation that changes attributes harms: with flips in place of blur, DCoDR-norec loses the pose "
    "(table 1).",
    tested=f"accuracy of the attributes falls by at least {_LOST:g}",
    criterion=compare(
        [Comparison(("Gaussian blur",), ">", ("horizontal flip",), _ATTRIBUTES, by=_LOST)],
        needs="runs of Gaussian blur and horizontal flip",
    ),
)

CROP = Claim(
    says="Of single augmentations the crop is best (figure 4).",
    tested="accuracy of the attributes is highest with it, among at least three",
    criterion=highest("crop", _ATTRIBUTES, least=3, needs="runs of the crop and of two other augmentations"),
)


def _labels(dataset: str, methods: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{dataset}, {method}" if dataset else method for method in methods)
