"""ABC's tables 1 and 2 and its figures S4 and S5, beside what is measured; and the same for the small runs."""

from collections.abc import Iterator
from dataclasses import dataclass

from setsup.experiments.report import Chart, Claim, Column, Criterion, Means, Report, Row
from setsup.experiments.report.criteria import has
from setsup.experiments.report.report import Reference
from setsup_papers.abc.pose.ablations import CHANGES
from setsup_papers.abc.pose.presets import CATEGORIES, TABLE_1, TABLE_2
from setsup_papers.abc.presets import PAPER

__all__ = ["REPORTS"]

_MEDIAN, _SHARE = "median error", "Acc@30"
_ABC, _RANDOM = "ABC", "random network"
_SIZE = "; ABC's encoder for 64 × 64 pixels without pretraining, 1,500 steps of one pair of sets: not the paper's size"

_Numbers = dict[str, tuple[float, float]]

_PUBLISHED_1: dict[str, _Numbers] = {
    "cars": {
        "-features": (16.1, 0.66),
        "-cc-vae": (54.8, 0.26),
        "-ml-vae": (75.6, 0.27),
        "-tcc": (22.1, 0.57),
        "-augmentation": (85.4, 0.33),
        "-no-real": (14.7, 0.66),
        "": (12.8, 0.72),
    },
    "chairs": {
        "-features": (43.9, 0.41),
        "-cc-vae": (79.5, 0.19),
        "-ml-vae": (87.2, 0.16),
        "-tcc": (63.9, 0.38),
        "-augmentation": (80.0, 0.20),
        "-no-real": (22.6, 0.59),
        "": (15.6, 0.75),
    },
}
"""Table 1: median error in degrees, and share of errors below 30 degrees."""

_PUBLISHED_2: dict[str, _Numbers] = {
    "cars": {"-regression": (12.3, 0.85), "-no-real": (11.0, 0.79), "": (9.3, 0.87)},
    "chairs": {"-regression": (30.8, 0.49), "-no-real": (28.1, 0.52), "": (26.0, 0.55)},
}
"""Table 2."""

_LOOKUP = (
    Column(_MEDIAN, "median error (°)", unit="degrees"),
    Column(f"{_MEDIAN}: s.e.m.", "median error: s.e.m. over codebooks (°)", unit="degrees"),
    Column("Acc@15"),
    Column(_SHARE),
    Column(f"{_SHARE}: s.e.m.", "Acc@30: s.e.m. over codebooks"),
    Column("front-back", "front and back exchanged"),
)
_REGRESSION = (
    Column(_MEDIAN, "median error (°)", unit="degrees"),
    Column("Acc@15"),
    Column(_SHARE),
    Column("front-back", "front and back exchanged"),
)
_CHARTS = (
    Chart("median error over azimuth", "median error (°)", "azimuth (°)"),
    Chart("front-back over azimuth", "front and back exchanged", "azimuth (°)"),
)


def _more_precise(better: str, worse: tuple[str, ...]) -> Criterion:
    """Whether one row has a lower median error, and a larger share below 30 degrees, than each of the others run."""

    def test(means: Means) -> tuple[bool | None, str]:
        keys = (_MEDIAN, _SHARE)
        others = [row for row in worse if has(means, row, keys)]
        if not has(means, better, keys) or not others:
            other = worse[0] if len(worse) == 1 else f"one of: {', '.join(worse)}"
            return None, f"needs runs of {better}, and of {other}"
        ours = {key: means[better][key].mean for key in keys}
        listed, holds = [f"{better} {ours[_MEDIAN]:.1f}°, {ours[_SHARE]:.2f}"], []
        for row in others:
            median, share = (means[row][key].mean for key in keys)
            holds.append(ours[_MEDIAN] < median and ours[_SHARE] > share)
            misses = [f"{ours[_MEDIAN] - median:.1f}° above"] if ours[_MEDIAN] >= median else []
            misses += [f"{share - ours[_SHARE]:.2f} below"] if ours[_SHARE] <= share else []
            missed = f" ({better} is {' and '.join(misses)})" if misses else ""
            listed.append(f"{row} {median:.1f}°, {share:.2f}{missed}")
        return all(holds), "; ".join(listed)

    return test


def _claim(says: str, better: str, worse: tuple[str, ...]) -> Claim:
    return Claim(
        says=says,
        tested="the median error is lower, and Acc@30 larger",
        rows=(better, *worse),
        criterion=_more_precise(better, worse),
    )


def _claims_1() -> tuple[Claim, ...]:
    labels = _labels(TABLE_1)
    baselines = ("-features", "-cc-vae", "-ml-vae", "-tcc", "-augmentation")
    return (
        _claim("ABC is more precise than the methods it is compared with (table 1).", _ABC, _pick(labels, baselines)),
        _claim("Real images without annotations make ABC more precise (table 1).", _ABC, (labels["-no-real"],)),
        _claim(
            "Both parts of ABC are needed: alone, sets with the TCC loss, or augmentation, do less (table 1).",
            labels["-no-real"],
            _pick(labels, ("-tcc", "-augmentation")),
        ),
        Claim(
            says="Training makes estimates of poses more precise (not in the paper).",
            tested="the median error of ABC is lower, and Acc@30 larger, than with its initial weights",
            rows=(_ABC, _RANDOM),
            criterion=_more_precise(_ABC, (_RANDOM,)),
        ),
    )


def _claims_2() -> tuple[Claim, ...]:
    rows = tuple(_labels(TABLE_2).values())
    return (
        Claim(
            says="With ABC the median error of regression is lower, and with real images lower still (table 2).",
            tested="the median error falls from row to row",
            rows=rows,
            criterion=_falls(rows),
        ),
    )


def _falls(rows: tuple[str, ...]) -> Criterion:
    """Whether the median error falls from each row to the next."""

    def test(means: Means) -> tuple[bool | None, str]:
        if not all(has(means, row, (_MEDIAN,)) for row in rows):
            return None, "needs runs of all rows"
        medians = [means[row][_MEDIAN].mean for row in rows]
        listed = ", ".join(f"{row} {median:.1f}°" for row, median in zip(rows, medians, strict=True))
        return medians == sorted(medians, reverse=True) and len(set(medians)) == len(rows), listed

    return test


def _labels(table: dict[str, str]) -> dict[str, str]:
    """Labels of rows by the ends of presets' names."""
    return {end: title[0].upper() + title[1:] for end, title in table.items()}


def _pick(labels: dict[str, str], ends: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(labels[end] for end in ends)


def _references(labels: dict[str, str], published: _Numbers) -> dict[tuple[str, str], Reference]:
    references: dict[tuple[str, str], Reference] = {}
    for end, (median, share) in published.items():
        references[labels[end], _MEDIAN], references[labels[end], _SHARE] = median, share
    return references


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the paper, and the figure that changes one thing in it."""

    name: str
    figure: str
    ends: dict[str, str]
    published: dict[str, _Numbers]
    what: str
    how: str
    evaluation: str
    columns: tuple[Column, ...]
    claims: tuple[Claim, ...]
    untrained: bool = False


_LOOK_UP = _Table(
    name="table1",
    figure="figS4",
    ends=TABLE_1,
    published=_PUBLISHED_1,
    what="without annotations of poses",
    how="look-up",
    evaluation="lookup",
    columns=_LOOKUP,
    claims=_claims_1(),
    untrained=True,
)
_REGRESS = _Table(
    name="table2",
    figure="figS5",
    ends=TABLE_2,
    published=_PUBLISHED_2,
    what="with annotations of renderings",
    how="regression",
    evaluation="regression",
    columns=_REGRESSION,
    claims=_claims_2(),
)


def _table(table: _Table, plural: str, small: bool) -> Report:
    front, end = f"abc/{table.name}-{plural}", "-small" if small else ""
    labels = _labels(table.ends)
    rows = [Row(f"{front}{row_end}{end}", label) for row_end, label in labels.items()]
    if table.untrained:
        rows.append(Row(f"{front}{end}", _RANDOM, "untrained: "))
    paper = "the paper, full size" if small else "the paper"
    return Report(
        name=f"{front}{end}",
        shows=f"poses of {plural} in photographs, {table.what}{', small' if small else ''}",
        source=f"table {table.name.removeprefix('table')} of {PAPER}{_SIZE if small else ''}",
        evaluations=(table.evaluation,),
        rows=tuple(rows),
        columns=table.columns,
        digits=2,
        references={paper: _references(labels, table.published[plural])},
        claims=table.claims,
        charts=_CHARTS,
    )


def _ablation(table: _Table, small: bool) -> Report:
    figure, end = table.figure, "-small" if small else ""
    return Report(
        name=f"abc/{figure}{end}",
        shows=f"poses of cars by {table.how}, one setting changed{', small' if small else ''}",
        source=f"figure {figure.removeprefix('fig')} of {PAPER}, which has no numbers{_SIZE if small else ''}",
        evaluations=(table.evaluation,),
        rows=tuple(Row(f"abc/{figure}-{change.end}{end}", change.words) for change in CHANGES),
        columns=table.columns,
        digits=2,
    )


def _reports() -> Iterator[Report]:
    for small in (False, True):
        for table in (_LOOK_UP, _REGRESS):
            yield from (_table(table, plural, small) for plural in CATEGORIES)
    yield from (_ablation(table, False) for table in (_LOOK_UP, _REGRESS))
    yield _ablation(_LOOK_UP, True)


REPORTS = list(_reports())
"""All of them."""
