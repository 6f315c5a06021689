"""What DCoDR's paper says of its tables, with criteria; the thresholds are ours, where the paper names no number."""

from setsup.experiments.report import Claim, Criterion, Means
from setsup.experiments.report.criteria import has
from setsup_papers.dcodr.tables import INVARIANCE as PUBLISHED

__all__ = ["CROP", "FLIP", "INVARIANCE", "NEGATIVES", "SPEED", "compared", "faster", "without_negatives"]

_BASELINES = ("LORD", "DRNET", "ML-VAE")
_OWN = ("DCoDR-norec", "DCoDR")

_DOMAIN, _ATTRIBUTES = "domain", "informativeness"
_LOST = 0.1
"""Accuracy of the domain that is more than noise of a probe, and of the attributes."""
_NEAR = 0.05
"""Attributes that are read nearly as well."""


def compared(datasets: tuple[str, ...]) -> tuple[Claim, ...]:
    """Claims on the invariance and the information of DCoDR beside baselines.

    Labels of rows are ``<dataset>, <method>``, or methods alone for the dataset ``""``.
    """
    rows = tuple(_label(dataset, method) for dataset in datasets for method in (*_BASELINES, *_OWN))
    return (
        Claim(
            says="The domain can be read less well from DCoDR than from LORD, DRNET and ML-VAE (table 2).",
            tested="accuracy of the domain, with and without reconstruction, is below that of each baseline",
            rows=rows,
            criterion=_below(datasets, f"probes: {_DOMAIN}"),
        ),
        Claim(
            says="DCoDR is as informative as LORD about the attributes, or more (table 2).",
            tested=f"accuracy of the attributes is at most {_NEAR:g} below that of LORD",
            rows=rows,
            criterion=_informed(datasets, f"probes: {_ATTRIBUTES}"),
        ),
    )


def _label(dataset: str, method: str) -> str:
    return f"{dataset}, {method}" if dataset else method


def _below(datasets: tuple[str, ...], key: str) -> Criterion:
    def test(means: Means) -> tuple[bool | None, str]:
        words, holds = [], []
        for dataset in datasets:
            own = [label for method in _OWN if has(means, label := _label(dataset, method), (key,))]
            others = [label for method in _BASELINES if has(means, label := _label(dataset, method), (key,))]
            if own and others:
                most = max(means[label][key].mean for label in own)
                holds.append(most < min(means[label][key].mean for label in others))
                words.append(", ".join(f"{label} {means[label][key].words(3)}" for label in (*own, *others)))
        if not holds:
            return None, "needs a run of DCoDR and one of a baseline, on one dataset"
        return all(holds), "; ".join(words)

    return test


def _informed(datasets: tuple[str, ...], key: str) -> Criterion:
    def test(means: Means) -> tuple[bool | None, str]:
        words, holds = [], []
        for dataset in datasets:
            own, lord = (_label(dataset, method) for method in ("DCoDR", "LORD"))
            if has(means, own, (key,)) and has(means, lord, (key,)):
                holds.append(means[own][key].mean >= means[lord][key].mean - _NEAR)
                words.append(", ".join(f"{label} {means[label][key].words(3)}" for label in (own, lord)))
        if not holds:
            return None, "needs runs of DCoDR and LORD on one dataset"
        return all(holds), "; ".join(words)

    return test


def _rises_without(pairs: tuple[tuple[str, str], ...], key: str = _DOMAIN) -> Criterion:
    """Whether the domain is read better in the second row of each pair that was run, by more than noise."""

    def test(means: Means) -> tuple[bool | None, str]:
        found = [pair for pair in pairs if all(has(means, label, (key,)) for label in pair)]
        if not found:
            return None, f"needs runs of {' and '.join(pairs[0])}"
        rises = [means[without][key].mean - means[whole][key].mean for whole, without in found]
        words = (
            f"{whole} {means[whole][key].words(3)}, {without} {means[without][key].words(3)} ({rise:+.3f})"
            for (whole, without), rise in zip(found, rises, strict=True)
        )
        return all(rise >= _LOST for rise in rises), "; ".join(words).replace("-0.", "−0.")

    return test


def without_negatives(pairs: tuple[tuple[str, str], ...], key: str = _DOMAIN) -> Claim:
    """Claim on negatives of the domain, by labels of rows with and without them."""
    return Claim(
        says="Negatives of the image's own domain make the code invariant: without them the domain can be read "
        "(table 3).",
        tested=f"accuracy of the domain is at least {_LOST:g} higher with negatives of all domains",
        rows=tuple(label for pair in pairs for label in pair),
        criterion=_rises_without(pairs, key),
    )


def _flip(means: Means) -> tuple[bool | None, str]:
    """Whether attributes are lost with flips, and not the invariance."""
    blur, flip = "Gaussian blur", "horizontal flip"
    if not all(has(means, label, (_DOMAIN, _ATTRIBUTES)) for label in (blur, flip)):
        return None, f"needs runs of {blur} and {flip}"
    lost = means[blur][_ATTRIBUTES].mean - means[flip][_ATTRIBUTES].mean
    words = (
        f"{label}: attributes {means[label][_ATTRIBUTES].words(3)}, domain {means[label][_DOMAIN].words(3)}"
        for label in (blur, flip)
    )
    return lost >= _LOST, "; ".join(words)


def _crop(means: Means) -> tuple[bool | None, str]:
    """Whether attributes are read best with crops."""
    found = {label: row[_ATTRIBUTES] for label, row in means.items() if _ATTRIBUTES in row}
    if "crop" not in found or len(found) < 3:
        return None, "needs runs of the crop and of two other augmentations"
    best = max(found, key=lambda label: found[label].mean)
    return best == "crop", f"crop {found['crop'].words(3)}, best {best} {found[best].words(3)}"


def faster(datasets: tuple[str, ...]) -> Claim:
    """Claim on the duration of an epoch."""

    def test(means: Means) -> tuple[bool | None, str]:
        words, holds = [], []
        for dataset in datasets:
            labels = [_label(dataset, end) for end in ("LORD, first stage", "LORD, second stage", *_OWN)]
            if all(has(means, label, ("seconds per epoch",)) for label in labels):
                first, second, short, whole = (means[label]["seconds per epoch"].mean for label in labels)
                holds.append(short < whole < first + second)
                front = f"{dataset}: " if dataset else ""
                words.append(
                    f"{front}LORD {first:.1f} + {second:.1f} s, DCoDR-norec {short:.1f} s, DCoDR {whole:.1f} s"
                )
        if not holds:
            return None, "needs runs of both stages of LORD, of DCoDR and of DCoDR-norec on one dataset"
        return all(holds), "; ".join(words)

    return Claim(
        says="DCoDR trains faster than LORD, and faster still without reconstruction (table 5).",
        tested="an epoch of DCoDR-norec takes less time than one of DCoDR, and this less than one of both stages of "
        "LORD together",
        criterion=test,
    )


INVARIANCE = compared(tuple(PUBLISHED))
"""Of table 2."""

NEGATIVES = without_negatives(tuple((f"{method}, complete", f"{method}, no domain negatives") for method in _OWN))
"""Of table 3."""

FLIP = Claim(
    says="An augmentation that changes attributes harms: with flips in place of blur, DCoDR-norec loses the pose "
    "(table 1).",
    tested=f"accuracy of the attributes falls by at least {_LOST:g}",
    criterion=_flip,
)

CROP = Claim(
    says="Of single augmentations the crop is best (figure 4).",
    tested="accuracy of the attributes is highest with it, among at least three",
    criterion=_crop,
)

SPEED = faster(("Cars3D", "SmallNORB", "Shapes3D", "CelebA"))
"""Of table 5."""
