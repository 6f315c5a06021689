"""What "Learning ABCs: Approximate Bijective Correspondence" (arXiv 2103.03240) found, as reports.

The paper shows its results on Shapes3D and MNIST as figures, without tables: what stands beside ours are its words. Its
claims name almost no thresholds either. Those tested here are ours, and every claim says so.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

from setsup.experiments.abc.measures import LossOverDimensions
from setsup.experiments.abc.presets import FACTORS, HELD, WORDS
from setsup.experiments.report import Claim, Column, Means, Report, Row
from setsup.experiments.report.judges import amount, fall, has, rises, within

__all__ = ["REPORTS"]

_PAPER = '"Learning ABCs: Approximate Bijective Correspondence", arXiv 2103.03240'
_LEVELS = dict(zip(FACTORS, (10, 10, 10, 8, 4, 15), strict=True))
_GEOMETRY = ("scale", "shape", "orientation")
_CURATED, _RANDOM = "both sets curated", "one random set"
_TRAINED, _UNTRAINED, _PIXELS = "ABC", "untrained", "pixels"

_GONE, _HIGH = 0.1, 0.5
"""Nats up to which a factor counts as gone, and from which on as well represented; ln 10 = 2.3 is all of a hue."""
_ALIKE = 0.25
"""Nats up to which two means count as the same: a tenth of a hue."""
_CHANCE = 0.1
"""By how much accuracy may exceed chance."""
_HARDLY = 0.2
"""Accuracy up to which one digit of ten counts as hardly known."""
_NOISE = math.sqrt(8)
"""How far noise of σ = √τ = 1 spreads in the 8 dimensions of MNIST's embeddings."""

_STYLE = {
    "withheld_variance": "nines: 2 components' share",
    "withheld_slant": "nines: R² of slant",
    "withheld_thickness": "nines: R² of thickness",
    "slant": "all digits: R² of slant",
    "thickness": "all digits: R² of thickness",
    "across_slant": "neighbours: slant",
    "across_thickness": "neighbours: thickness",
    "noisy_accuracy": "digit of 25 noisy neighbours",
    "accuracy": "digit of nearest neighbour",
    "spread": "spread of embeddings",
}
_NAMES = {"first 1": "component 1", "first 2": "components 1 and 2", "first 3": "components 1 to 3"} | _STYLE
"""Of values, where they are other than their keys without underscores."""


def _label(key: str) -> str:
    return _NAMES.get(key, key.replace("_", " "))


_within, _rises = partial(within, label=_label), partial(rises, label=_label)


def _left_out(means: Means) -> tuple[bool | None, str]:
    """Whether noise hides digits, and not all that there is: a network that has collapsed tells nothing."""
    hidden, words = _within(("noisy_accuracy",), most=_HARDLY)(means)
    far, how_far = _within(("spread",), least=_NOISE)(means)
    return (None, words) if hidden is None or far is None else (hidden and far, f"{words}; {how_far}")


def _unchanged(means: Means) -> tuple[bool | None, str]:
    if not has(means, _CURATED, FACTORS) or not has(means, _RANDOM, FACTORS):
        return None, f"needs measured runs of {_CURATED} and {_RANDOM}"
    differences = {key: abs(means[_CURATED][key].mean - means[_RANDOM][key].mean) for key in FACTORS}
    most = max(differences, key=lambda key: differences[key])
    miss = differences[most] - _ALIKE
    words = f"the largest difference is {differences[most]:.2f}, of {_label(most)}"
    return miss <= 0, words + (f" (misses by {amount(miss, 2)})" if miss > 0 else "")


def _columns(levels: bool = True, at: float | None = None) -> tuple[Column, ...]:
    return tuple(Column(key, _label(key), math.log(count) if levels else 1.0, at) for key, count in _LEVELS.items())


def _gone(held: Sequence[str], place: str) -> Claim:
    return Claim(
        says=f"Nothing of what is inactive is left at the scale of the loss, σ = √τ ({place}).",
        tested=f"{', '.join(map(_label, held))} at most {_GONE} nats in each row that was run",
        judge=_within(held, most=_GONE),
    )


def _high(keys: Sequence[str], place: str) -> Claim:
    words = " and ".join(f"the {_label(key)}" for key in keys)
    return Claim(
        says=f"{words[0].upper()}{words[1:]}, active, {'are' if len(keys) > 1 else 'is'} well represented ({place}).",
        tested=f"at least {_HIGH} nats in each row that was run",
        judge=_within(keys, least=_HIGH),
    )


def _present(place: str) -> Claim:
    return Claim(
        says=f"Scale, shape and orientation enter when all hues are inactive ({place}).",
        tested=f"each at least {_GONE} nats in each row that was run",
        judge=_within(_GEOMETRY, least=_GONE),
    )


def _words(held: Sequence[str], rows: Sequence[str]) -> dict[tuple[str, str], float | str]:
    """What the paper's figures show, in words."""
    active = [key for key in HELD[3] if key not in held]
    words = {key: "high" for key in active} if active else dict.fromkeys(_GEOMETRY, "present")
    words |= dict.fromkeys(held, "≈ 0")
    return {(row, key): words.get(key, "figure only") for row in rows for key in _LEVELS}


def _figures_3() -> Iterator[Report]:
    for letter, after, hues in (("a", "c", 1), ("b", "d", 3)):
        first = f"{WORDS[hues]} inactive"
        yield Report(
            name=f"abc/fig3{letter}",
            shows=f"two components of embeddings, {first}",
            source=f"figure 3{letter} of {_PAPER}",
            evaluations=("components",),
            rows=(Row(f"abc/fig3{letter}", first),),
            columns=tuple(Column(key, _label(key)) for key in ("first 1", "first 2", "first 3")),
            unit="share of the variance",
            digits=3,
            beside={"the paper": {(first, "first 2"): "> 0.98" if hues == 1 else "figure only"}},
            claims=()
            if hues == 3
            else (
                Claim(
                    says="Two components carry more than 0.98 of the variance (figure 3a).",
                    tested="the same",
                    judge=_within(("first 2",), least=0.98),
                ),
            ),
        )
        held, place = HELD[hues], f"figure 3{after}"
        yield Report(
            name=f"abc/fig3{after}",
            shows=f"information under noise, {first}",
            source=f"{place} of {_PAPER}",
            evaluations=("noise",),
            rows=(Row(f"abc/fig3{after}", first),),
            columns=_columns(at=1.0),
            unit="nats at σ = √τ",
            beside={"the paper": _words(held, (first,))},
            claims=(_gone(held, place), _high(("object_hue", "floor_hue"), place) if hues == 1 else _present(place)),
            x_label="scale of the noise, σ / √τ",
            y_label="nats",
            log_x=True,
        )


def _figures_4() -> Iterator[Report]:
    for letter, hues in (("a", 1), ("b", 2), ("c", 3)):
        name, place, held = f"abc/fig4{letter}", f"figure 4{letter}", HELD[hues]
        active = tuple(key for key in ("object_hue", "floor_hue") if key not in held)
        yield Report(
            name=name,
            shows=f"information, {WORDS[hues]} inactive",
            source=f"{place} of {_PAPER}",
            evaluations=("information",),
            rows=(Row(name, _CURATED), Row(f"{name}-random", _RANDOM)),
            columns=_columns(),
            unit="nats",
            beside={"the paper": _words(held, (_CURATED, _RANDOM))},
            claims=(
                _gone(held, place),
                _high(active, place) if active else _present(place),
                Claim(
                    says=f"It is enough that one of the two sets is curated ({place}).",
                    tested=f"the means of each factor differ by no more than {_ALIKE} nats",
                    judge=_unchanged,
                ),
            ),
        )


def _figure_4d() -> Report:
    rows = {size: f"sets of {size}" for size in (4, 16, 32, 64, 256, 1024)}
    active = tuple(key for key in _LEVELS if key != "wall_hue")

    def more(means: Means) -> tuple[bool | None, str]:
        totals = {row: sum(means[row][key].mean for key in active) for row in rows.values() if has(means, row, active)}
        if len(totals) < 2:
            return None, "needs runs of at least two sizes"
        found = list(totals.values())
        falls = ["", *(fall(less, more) for less, more in pairwise(found))]
        words = (
            f"{row}: {total:.2f} nats{falling}" for (row, total), falling in zip(totals.items(), falls, strict=True)
        )
        return all(less < more for less, more in pairwise(found)), ", ".join(words)

    return Report(
        name="abc/fig4d",
        shows=f"information by the size of sets, {WORDS[1]} inactive",
        source=f"figure 4d of {_PAPER}",
        evaluations=("information",),
        # 32 is the size of all other figures: their runs serve
        rows=tuple(Row("abc/fig4a" if size == 32 else f"abc/fig4d-{size}", label) for size, label in rows.items()),
        columns=_columns(),
        unit="nats",
        beside={
            "the paper": {
                (row, key): "≈ 0" if key == "wall_hue" else "figure only" for row in rows.values() for key in _LEVELS
            }
            | {(rows[1024], key): "present" for key in active}
        },
        claims=(
            _gone(HELD[1], "figure 4d"),
            Claim(
                says="Larger sets bring more information on the active factors (figure 4d).",
                tested="the sum over the five active factors rises from each size that was run to the next",
                judge=more,
            ),
            Claim(
                says="From sets of 4 to sets of 64 the two active hues rise (figure 4d).",
                tested="the mean of each is larger at 64",
                rows=(rows[4], rows[64]),
                judge=_rises(("object_hue", "floor_hue"), rows[4], rows[64]),
            ),
            Claim(
                says="With sets of 1024 all five active factors are present (figure 4d).",
                tested=f"each at least {_GONE} nats",
                rows=(rows[1024],),
                judge=_within(active, least=_GONE),
            ),
        ),
    )


def _figures_s1() -> Iterator[Report]:
    for letter, hues in (("a", 1), ("b", 2), ("c", 3)):
        name, place, held = f"abc/figS1{letter}", f"figure S1{letter}", HELD[hues]
        yield Report(
            name=name,
            shows=f"accuracy of a classifier on noisy embeddings, {WORDS[hues]} inactive",
            source=f"{place} of {_PAPER}",
            evaluations=("accuracy",),
            rows=(Row(name, _CURATED), Row(f"{name}-random", _RANDOM)),
            columns=_columns(levels=False),
            unit="accuracy",
            beside={
                "chance": {(row, key): 1 / count for row in (_CURATED, _RANDOM) for key, count in _LEVELS.items()},
                "the paper": {
                    (row, key): "at chance" if key in held else "figure only"
                    for row in (_CURATED, _RANDOM)
                    for key in _LEVELS
                },
            },
            claims=(
                Claim(
                    says=f"What is inactive is found no better than by chance ({place}).",
                    tested=f"{', '.join(map(_label, held))} no more than {_CHANCE} above it in each row that was run",
                    judge=_within(held, most=1 / _LEVELS[held[0]] + _CHANCE),
                ),
            ),
        )


def _figure_s2() -> Report:
    held = {f"{WORDS[hues]} inactive, τ = {tau:g}": (hues, tau) for hues in (1, 3) for tau in (0.1, 1.0, 10.0)}
    return Report(
        name="abc/figS2",
        shows="information under noise by temperature",
        source=f"figure S2 of {_PAPER}; it does not say which temperatures",
        evaluations=("noise",),
        rows=tuple(
            Row(f"abc/figS2-{hues}-{tau:g}", label, scale=math.sqrt(tau)) for label, (hues, tau) in held.items()
        ),
        columns=_columns(at=1.0),
        unit="nats at σ = √τ",
        beside={
            "the paper": {
                (label, key): "≈ 0" if key in HELD[hues] else "figure only"
                for label, (hues, _) in held.items()
                for key in _LEVELS
            }
        },
        claims=tuple(
            Claim(
                says=f"The loss takes away {WORDS[hues]}, inactive, at the scale √τ, whatever τ is (appendix S2).",
                tested=f"at most {_GONE} nats at σ = √τ in each row that was run",
                rows=tuple(label for label, (some, _) in held.items() if some == hues),
                judge=_within(HELD[hues], most=_GONE),
            )
            for hues in (1, 3)
        ),
        x_label="scale of the noise, σ / √τ",
        y_label="nats",
        log_x=True,
    )


def _figure_s3() -> Report:
    sizes = LossOverDimensions().sizes
    row = "random points"

    def grows(means: Means) -> tuple[bool | None, str]:
        best = {size: means.get(row, {}).get(f"best of {size}") for size in sizes}
        known = [(size, spread.mean) for size, spread in best.items() if spread is not None]
        if len(known) < 2:
            return None, "needs at least two sizes"
        found = [dimensions for _, dimensions in known]
        falls = [0.0, *(before - after for before, after in pairwise(found))]
        words = (
            f"sets of {size}: {dimensions:g}" + (f" (falls by {less:g})" if less > 0 else "")
            for (size, dimensions), less in zip(known, falls, strict=True)
        )
        return max(falls) <= 0 and found[0] < found[-1], ", ".join(words)

    return Report(
        name="abc/figS3",
        shows="simulation: the loss of random points over their dimensions, by the size of sets",
        source=f"figure S3 of {_PAPER}",
        evaluations=("simulation",),
        rows=(Row("abc/figS3", row),),
        columns=tuple(Column(f"best of {size}", f"sets of {size}") for size in sizes),
        unit="number of dimensions with the least loss",
        digits=0,
        beside={"the paper": {(row, f"best of {size}"): "figure only" for size in sizes}},
        claims=(
            Claim(
                says="The number of dimensions with the least loss grows with the size of sets (figure S3).",
                tested="it never falls from a size to the next, and ends higher than it begins",
                judge=grows,
            ),
        ),
        x_label="dimensions",
        y_label="least loss, by that of one dimension",
    )


def _augmentation() -> Report:
    """No number of the text stands beside it: values and their ceilings, without a verdict."""
    return Report(
        name="abc/augmentation",
        shows="information, augmented hues in place of a second set",
        source=f"a baseline without a second set in the published code of {_PAPER}",
        evaluations=("information",),
        rows=(Row("abc/augmentation", "hues augmented, one set"),),
        columns=_columns(),
        unit="nats",
    )


def _mnist() -> Report:
    return Report(
        name="abc/mnist",
        shows="style across digits, and of a digit never trained on",
        source=f"figures 5 and S7 of {_PAPER}: pictures only, the measures are ours; R² is from 2 components",
        evaluations=("style",),
        rows=(
            Row("abc/mnist", _TRAINED, "trained: "),
            Row("abc/mnist", _UNTRAINED, "untrained: "),
            Row("abc/mnist", _PIXELS, "pixels: "),
        ),
        columns=tuple(Column(key, words, unit="σ" if key == "spread" else "") for key, words in _STYLE.items()),
        digits=3,
        claims=(
            Claim(
                says="A digit that was never trained on, the nine, is laid out by its style (figure 5).",
                tested="two components of the nines tell slant and thickness better than without training",
                rows=(_TRAINED, _UNTRAINED),
                judge=_rises(("withheld_slant", "withheld_thickness"), _UNTRAINED, _TRAINED),
            ),
            Claim(
                says="The nearest neighbours among other digits have the same style (figures 5 and S7).",
                tested="slant and thickness of query and neighbour agree better than without training",
                rows=(_TRAINED, _UNTRAINED),
                judge=_rises(("across_slant", "across_thickness"), _UNTRAINED, _TRAINED),
            ),
            Claim(
                says="What is inactive, the digit, is left out (figure 5).",
                tested=f"25 neighbours under noise of σ = √τ name no more than {_HARDLY} of the digits, "
                "where embeddings spread further than the noise",
                rows=(_TRAINED,),
                judge=_left_out,
            ),
        ),
    )


REPORTS = [
    *sorted(_figures_3(), key=lambda report: report.name),
    *_figures_4(),
    _figure_4d(),
    *_figures_s1(),
    _figure_s2(),
    _figure_s3(),
    _augmentation(),
    _mnist(),
]
"""All of them."""
