"""Reports of the figures on Shapes3D."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from setsup.experiments.report import Claim, Column, Means, Report, Row
from setsup.experiments.report.criteria import amount, fall, has, rises, within
from setsup_papers.abc.presets import FACTORS, INACTIVE, PAPER, WORDS

__all__ = ["AUGMENTATION", "REPORTS"]

_LEVELS = dict(zip(FACTORS, (10, 10, 10, 8, 4, 15), strict=True))
_GEOMETRY = ("scale", "shape", "orientation")
_CURATED, _RANDOM = "both sets curated", "one random set"

_GONE, _HIGH = 0.1, 0.5
"""Nats up to which a factor counts as gone, and from which on as well represented; ln 10 = 2.3 is all of a hue."""
_ALIKE = 0.25
"""Nats up to which two means count as the same: a tenth of a hue."""
_CHANCE = 0.1
"""By how much accuracy may exceed chance."""
_COMPONENTS = {"first 1": "component 1", "first 2": "components 1 and 2", "first 3": "components 1 to 3"}
_SIGMA = "scale of the noise, σ / √τ"


def _label(key: str) -> str:
    return key.replace("_", " ")


def _unchanged(means: Means) -> tuple[bool | None, str]:
    """Whether the means of all factors are the same with one random set."""
    if not has(means, _CURATED, FACTORS) or not has(means, _RANDOM, FACTORS):
        return None, f"needs full runs of {_CURATED} and {_RANDOM}"
    differences = {key: abs(means[_CURATED][key].mean - means[_RANDOM][key].mean) for key in FACTORS}
    most = max(differences, key=lambda key: differences[key])
    miss = differences[most] - _ALIKE
    sentence = f"the largest difference is {differences[most]:.2f}, of {_label(most)}"
    return miss <= 0, sentence + (f" (misses by {amount(miss, 2)})" if miss > 0 else "")


def _columns(levels: bool = True, at: float | None = None) -> tuple[Column, ...]:
    return tuple(Column(key, _label(key), math.log(count) if levels else 1.0, at) for key, count in _LEVELS.items())


def _gone(inactive: Sequence[str], figure: str) -> Claim:
    return Claim(
        says=f"No information on inactive factors remains at the scale of the loss, σ = √τ ({figure}).",
        tested=f"{', '.join(map(_label, inactive))} at most {_GONE} nats in each row that was run",
        criterion=within(inactive, most=_GONE, label=_label),
    )


def _represented(inactive: Sequence[str], figure: str) -> Claim:
    """The claim about active hues, or about the geometry when all hues are inactive."""
    keys = [key for key in ("object_hue", "floor_hue") if key not in inactive]
    if not keys:
        return Claim(
            says=f"Scale, shape and orientation enter when all hues are inactive ({figure}).",
            tested=f"each at least {_GONE} nats in each row that was run",
            criterion=within(_GEOMETRY, least=_GONE, label=_label),
        )
    named = " and ".join(f"the {_label(key)}" for key in keys)
    return Claim(
        says=f"{named[0].upper()}{named[1:]}, active, {'are' if len(keys) > 1 else 'is'} well represented ({figure}).",
        tested=f"at least {_HIGH} nats in each row that was run",
        criterion=within(keys, least=_HIGH, label=_label),
    )


def _references(inactive: Sequence[str], rows: Sequence[str]) -> dict[str, dict[tuple[str, str], float | str]]:
    """What the paper's figures show, in words."""
    active = [key for key in INACTIVE[3] if key not in inactive]
    cells = {key: "high" for key in active} if active else dict.fromkeys(_GEOMETRY, "present")
    cells |= dict.fromkeys(inactive, "≈ 0")
    return {"the paper": {(row, key): cells.get(key, "figure only") for row in rows for key in _LEVELS}}


def _figures_3() -> Iterator[Report]:
    for letter, after, hues in (("a", "c", 1), ("b", "d", 3)):
        row, inactive, figure = f"{WORDS[hues]} inactive", INACTIVE[hues], f"figure 3{after}"
        claim = Claim(
            says="Two components carry more than 0.98 of the variance (figure 3a).",
            tested="the same as the paper's",
            criterion=within(("first 2",), least=0.98, label=_COMPONENTS.__getitem__),
        )
        yield Report(
            name=f"abc/fig3{letter}",
            shows=f"two components of the embeddings, {row}",
            source=f"figure 3{letter} of {PAPER}",
            evaluations=("components",),
            rows=(Row(f"abc/fig3{letter}", row),),
            columns=tuple(Column(key, label) for key, label in _COMPONENTS.items()),
            unit="share of the variance",
            digits=3,
            references={"the paper": {(row, "first 2"): "> 0.98" if hues == 1 else "figure only"}},
            claims=(claim,) if hues == 1 else (),
        )
        yield Report(
            name=f"abc/fig3{after}",
            shows=f"information under noise, {row}",
            source=f"{figure} of {PAPER}",
            evaluations=("noise",),
            rows=(Row(f"abc/fig3{after}", row),),
            columns=_columns(at=1.0),
            unit="nats at σ = √τ",
            references=_references(inactive, (row,)),
            claims=(_gone(inactive, figure), _represented(inactive, figure)),
            x_label=_SIGMA,
            y_label="nats",
            log_x=True,
        )


def _figures_4() -> Iterator[Report]:
    for letter, inactive in zip("abc", INACTIVE.values(), strict=True):
        name, figure = f"abc/fig4{letter}", f"figure 4{letter}"
        yield Report(
            name=name,
            shows=f"information, {WORDS[len(inactive)]} inactive",
            source=f"{figure} of {PAPER}",
            evaluations=("information",),
            rows=(Row(name, _CURATED), Row(f"{name}-random", _RANDOM)),
            columns=_columns(),
            unit="nats",
            references=_references(inactive, (_CURATED, _RANDOM)),
            claims=(
                _gone(inactive, figure),
                _represented(inactive, figure),
                Claim(
                    says=f"It is enough that one of the two sets is curated ({figure}).",
                    tested=f"the means of each factor differ by no more than {_ALIKE} nats",
                    criterion=_unchanged,
                ),
            ),
        )


_SIZES = {size: f"sets of {size}" for size in (4, 16, 32, 64, 256, 1024)}
_ACTIVE = tuple(key for key in _LEVELS if key != "wall_hue")


def _more(means: Means) -> tuple[bool | None, str]:
    """Whether the sum over active factors rises from each size to the next."""
    totals = {row: sum(means[row][key].mean for key in _ACTIVE) for row in _SIZES.values() if has(means, row, _ACTIVE)}
    if len(totals) < 2:
        return None, "needs runs of at least two sizes"
    steps = list(pairwise(totals.values()))
    falls = ["", *(fall(less, more) for less, more in steps)]
    listed = (f"{row}: {total:.2f} nats{falling}" for (row, total), falling in zip(totals.items(), falls, strict=True))
    return all(less < more for less, more in steps), ", ".join(listed)


def _figure_4d() -> Report:
    figure_only = {
        (row, key): "≈ 0" if key == "wall_hue" else "figure only" for row in _SIZES.values() for key in _LEVELS
    }
    return Report(
        name="abc/fig4d",
        shows=f"information by the size of sets, {WORDS[1]} inactive",
        source=f"figure 4d of {PAPER}",
        evaluations=("information",),
        # 32 is the size of all other figures, whose runs serve here too
        rows=tuple(Row("abc/fig4a" if size == 32 else f"abc/fig4d-{size}", label) for size, label in _SIZES.items()),
        columns=_columns(),
        unit="nats",
        references={"the paper": {**figure_only, **{(_SIZES[1024], key): "present" for key in _ACTIVE}}},
        claims=(
            _gone(INACTIVE[1], "figure 4d"),
            Claim(
                says="Larger sets bring more information on the active factors (figure 4d).",
                tested="the sum over the five active factors rises from each size that was run to the next",
                criterion=_more,
            ),
            Claim(
                says="From sets of 4 to sets of 64 the two active hues rise (figure 4d).",
                tested="the mean of each is larger at 64",
                rows=(_SIZES[4], _SIZES[64]),
                criterion=rises(("object_hue", "floor_hue"), _SIZES[4], _SIZES[64], label=_label),
            ),
            Claim(
                says="With sets of 1024 all five active factors are present (figure 4d).",
                tested=f"each at least {_GONE} nats",
                rows=(_SIZES[1024],),
                criterion=within(_ACTIVE, least=_GONE, label=_label),
            ),
        ),
    )


def _figures_s1() -> Iterator[Report]:
    cells = [(row, key) for row in (_CURATED, _RANDOM) for key in _LEVELS]
    for letter, inactive in zip("abc", INACTIVE.values(), strict=True):
        name, figure = f"abc/figS1{letter}", f"figure S1{letter}"
        yield Report(
            name=name,
            shows=f"accuracy of a classifier on noisy embeddings, {WORDS[len(inactive)]} inactive",
            source=f"{figure} of {PAPER}",
            evaluations=("accuracy",),
            rows=(Row(name, _CURATED), Row(f"{name}-random", _RANDOM)),
            columns=_columns(levels=False),
            unit="accuracy",
            references={
                "chance": {(row, key): 1 / _LEVELS[key] for row, key in cells},
                "the paper": {(row, key): "at chance" if key in inactive else "figure only" for row, key in cells},
            },
            claims=(
                Claim(
                    says=f"Inactive factors are predicted no better than by chance ({figure}).",
                    tested=f"{', '.join(map(_label, inactive))} no more than {_CHANCE} above it in each row that was "
                    "run",
                    criterion=within(inactive, most=1 / _LEVELS[inactive[0]] + _CHANCE, label=_label),
                ),
            ),
        )


def _figure_s2() -> Report:
    rows = {f"{WORDS[hues]} inactive, τ = {tau:g}": (hues, tau) for hues in (1, 3) for tau in (0.1, 1.0, 10.0)}
    return Report(
        name="abc/figS2",
        shows="information under noise by temperature",
        source=f"figure S2 of {PAPER}; it does not say which temperatures",
        evaluations=("noise",),
        rows=tuple(
            Row(f"abc/figS2-{hues}-{tau:g}", label, scale=math.sqrt(tau)) for label, (hues, tau) in rows.items()
        ),
        columns=_columns(at=1.0),
        unit="nats at σ = √τ",
        references={
            "the paper": {
                (label, key): "≈ 0" if key in INACTIVE[hues] else "figure only"
                for label, (hues, _) in rows.items()
                for key in _LEVELS
            }
        },
        claims=tuple(
            Claim(
                says=f"The loss removes {WORDS[hues]}, inactive, at the scale √τ, for every τ (appendix S2).",
                tested=f"at most {_GONE} nats at σ = √τ in each row that was run",
                rows=tuple(label for label, (some, _) in rows.items() if some == hues),
                criterion=within(INACTIVE[hues], most=_GONE, label=_label),
            )
            for hues in (1, 3)
        ),
        x_label=_SIGMA,
        y_label="nats",
        log_x=True,
    )


REPORTS = [
    *sorted(_figures_3(), key=lambda report: report.name),
    *_figures_4(),
    _figure_4d(),
    *_figures_s1(),
    _figure_s2(),
]
AUGMENTATION = Report(
    name="abc/augmentation",
    shows="information, augmented hues in place of a second set",
    source=f"a baseline without a second set in the published code of {PAPER}",
    evaluations=("information",),
    rows=(Row("abc/augmentation", "hues augmented, one set"),),
    columns=_columns(),
    unit="nats",
)
"""The text has no number to compare with: values and their ceilings, without a verdict."""
