"""``setsup pairs DATASET``: pairs of views of a dataset, drawn by its scenes or by their overlap, and their matches."""

import math
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import DataError, advised_for_command, close_matches, suggest
from setsup.files.expand_user import expanded
from setsup_cli.output_paths import Force
from setsup_cli.pair_sheets import check_options, count_statuses, show_pairs
from setsup_cli.parsing.arguments import SOURCES, Named, names_and_paths, option
from setsup_cli.parsing.notations import NOTATIONS
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.source import open_source, rows_where, source_words
from setsup_cli.parsing.values import split_names
from setsup_cli.parsing.view_bands import ANGLE, DIRECTION, SCALE

if TYPE_CHECKING:
    from setsup.correspondence.matching import Match
    from setsup.datasets import Dataset
    from setsup.samplers import Draw, OverlapSampler, Sampler
    from setsup.samplers.overlap.table import OverlapTable

__all__ = ["Options", "matched_by", "run", "subcommand"]

_HELP = """\
For each draw, the image shows two views of a scene, with lines between pixels that show the same point. Pixels are
matched by the first of these that the dataset has: its method `pixel_pairs`; keypoints; scenes; the matches stored by
`setsup render --matches`; depth with poses and intrinsics; or the tracks of a COLMAP model, which match only pixels at
the points of the model. --overlap .3-.8 draws pairs of views whose overlap lies in this band. Without a file,
the command first measures the overlap of all pairs, at most 20,000, and does not store it; `setsup overlap DATASET
--out FILE` measures any number of pairs, and --overlap FILE:.3-.8 reads the result."""

_MOST = 20_000  # ordered pairs that are measured by this subcommand

_WITH_OVERLAP = ("angle", "scale", "direction")
_OPTIONS = ("scene", "where", "overlap", "seed", *_WITH_OVERLAP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Named):
    """Options with a dataset."""

    dataset: Annotated[str, option("DATASET", SOURCES, completer=names_and_paths)] = field(kw_only=False)
    overlap: Annotated[
        str | None,
        option(
            "LOW-HIGH|FILE:LOW-HIGH",
            "Draw pairs of views whose overlap lies in a band, such as .3-.8; the overlap is measured first, or read "
            "from a file written by `setsup overlap`.",
        ),
    ] = None
    angle: Annotated[str | None, option("LOW-HIGH", f"With --overlap, {ANGLE}")] = None
    scale: Annotated[str | None, option("LOW-HIGH", f"With --overlap, {SCALE}")] = None
    direction: Annotated[
        Literal["forward", "both", "either"],
        option(
            "forward|both|either",
            f"With --overlap, {DIRECTION} forward, from the first to the second view; both; or either.",
        ),
    ] = "forward"
    scene: Annotated[
        tuple[str, ...] | None,
        option(
            "FACTOR ...", "Factors in which the views of a scene agree.", "those recorded in a rendering or capture"
        ),
    ] = None
    where: Annotated[str | None, option("EXPRESSION", "Draw only from rows that satisfy an expression.")] = None
    draws: Annotated[int, option("N", "Number of pairs of views.", alias="-n")] = 5
    lines: Annotated[int, option("N", "Number of correspondence lines per pair.")] = 24
    seed: Annotated[int, option("N", "Random seed.")] = 0
    out: Annotated[Path, option("FILE", "Output image.", alias="-o")] = Path("setsup-pairs.png")
    force: Force = False


def subcommand(name: str) -> Subcommand:
    """The subcommand with the options of a dataset."""
    about = "plot pixel correspondences between two views of a scene of a dataset"
    return Subcommand("pairs", Options, _HELP, name, summary=about)


def run(options: Options) -> int:
    """Draw, match, print and plot."""
    check_options(options)
    _check_name(str(options.dataset))
    if options.overlap is None:
        for name in _WITH_OVERLAP:
            if getattr(options, name) != Options.__dataclass_fields__[name].default:
                raise DataError(f"--{name} requires --overlap LOW-HIGH, the band of the overlap")
    dataset = open_source(options)
    from setsup.correspondence.matching import Window, find_match, matched, view_size
    from setsup.reports import describe_pairs

    way = matched_by(find_match(dataset))
    by_overlap: OverlapSampler | None = None
    notes: list[str] = []
    with advised_for_command({name: f"--{name}" for name in _OPTIONS} | {"overlaps": "--overlap"}):
        if options.overlap is None:
            draw = _sampler(options, dataset)[0]
        else:
            by_overlap, notes = _overlap_sampler(options, dataset)
            draw = by_overlap[0]
    rows = draw.indices.tolist()
    sizes = [[view_size(dataset, row) for row in pair] for pair in rows]
    pairs = [
        matched(dataset, pair[0], pair[1], Window(0, 0, *size[0]), Window(0, 0, *size[1]), 1.0, 0)
        for pair, size in zip(rows, sizes, strict=True)
    ]
    table, words = dataset.factors, describe_pairs(dataset.factors, draw)
    columns = {
        "rows": [f"{first}, {second}" for first, second in rows],
        "both have": [pair.fixed_words(table) for pair in words],
        "first and second": [pair.changed_words(table) for pair in words],
    }
    captions = [f"rows {columns['rows'][at]}: {columns['first and second'][at]}" for at in range(len(rows))]
    about: list[dict[str, Any]] = [
        {"rows": pair, **asdict(said), **count_statuses(found, unknown=True)}
        for pair, said, found in zip(rows, words, pairs, strict=True)
    ]
    if by_overlap is not None:
        measured, texts = _measured(by_overlap, draw)
        columns["measured"] = texts
        captions = [f"{caption}; {text}" for caption, text in zip(captions, texts, strict=True)]
        about = [{**pair, **values} for pair, values in zip(about, measured, strict=True)]
    drawn = f"pairs that agree in {', '.join(sorted(draw.inactive))}" if by_overlap is None else by_overlap.words
    title = f"{dataset.name}\nseed {options.seed}, {drawn}, pixels matched by {way}"
    head = {"dataset": dataset.name, "matched_by": way}
    show_pairs(options, dataset, pairs, about, columns, captions, title, head, notes)
    return 0


def _check_name(name: str) -> None:
    """Refuse a name that is neither a recipe, nor a dataset, nor a path or address."""
    from setsup.datasets import names
    from setsup_cli.parsing.recipes import recipes

    known = names()
    if name in known or not name.isidentifier() or expanded(name).exists():
        return
    close = close_matches(name, [*recipes(), *known])
    raise DataError(
        f"unknown recipe or dataset {name!r}{suggest(close) if close else ''} (`setsup pairs` lists recipes, `setsup "
        "datasets` datasets)"
    )


def matched_by(match: "Match") -> str:
    """How pixels are matched."""
    ways = {
        "given": "the dataset",
        "keypoints": "its keypoints",
        "traced": "its scenes",
        "stored": "its stored partners",
        "recorded": "depth",
        "tracked": "tracks of a COLMAP model",
    }
    return ways[match.__name__]


def _sampler(options: Options, dataset: "Dataset") -> "Sampler":
    from setsup.correspondence import PixelPairSampler

    names, draws = split_names(options.scene), options.draws
    return PixelPairSampler(dataset, names, pairs=draws, where=options.where, seed=options.seed)


def _overlap_sampler(options: Options, dataset: "Dataset") -> "tuple[OverlapSampler, list[str]]":
    """The sampler, and lines about the overlaps."""
    from setsup.samplers import OverlapSampler

    word = options.overlap or ""
    source: Any
    notes: list[str] = []
    if ":" in word:
        source, band = NOTATIONS["Overlaps"].read(word, "--overlap")
    else:
        band = NOTATIONS["Band"].read(word, "--overlap")
        source, notes = _measure(options, dataset)
    others: dict[str, Any] = {
        name: NOTATIONS["Band"].read(value, f"--{name}")
        for name in ("angle", "scale")
        if (value := getattr(options, name)) is not None
    }
    sampler = OverlapSampler(
        dataset.factors,
        source,
        overlap=band,
        sets=options.draws,
        direction=options.direction,
        where=options.where,
        seed=options.seed,
        **others,
    )
    return sampler, notes


def _measure(options: Options, dataset: "Dataset") -> "tuple[OverlapTable, list[str]]":
    """Measure overlaps in memory, and describe them in lines."""
    from setsup.correspondence import overlap
    from setsup.correspondence.overlaps.views import choose_source

    names = split_names(options.scene)
    rows = None if options.where is None else rows_where(dataset.factors, options.where)
    chosen = ["--scene", *names] if names else []
    chosen += [] if options.where is None else ["--where", options.where]
    words = [str(options.dataset), *source_words(options), *chosen]
    command = shlex.join(["setsup", "overlap", *words, "--out", "FILE"])
    source = choose_source(dataset, None)
    pairs = _count_pairs(dataset, names, options.where)
    if source != "tracks" and pairs > _MOST:
        raise DataError(
            f"{dataset.name} has {pairs:,} ordered pairs of views, more than the {_MOST:,} that are measured in "
            f"memory; run `{command}` and pass --overlap FILE:{options.overlap}, or choose fewer rows with --where"
        )
    table = overlap(dataset, scene=names, rows=rows)
    listed = f"measured the overlap of {int(table.counts[:, 2].sum()):,} pairs from {source}, in memory"
    return table, [f"{listed}; `{command}` keeps it"]


def _count_pairs(dataset: "Dataset", names: list[str] | None, where: str | None) -> int:
    """Number of ordered pairs of views of a scene."""
    agree = names or list(getattr(dataset, "pair_factors", ()))
    if not agree:
        return 0  # measuring says what is missing
    sizes = dataset.factors.group_by(agree, where).sizes
    return int((sizes * (sizes - 1)).sum())


def _measured(sampler: "OverlapSampler", draw: "Draw") -> tuple[list[dict[str, float]], list[str]]:
    """What was measured of each pair: values by name, and text."""
    from setsup.reports.overlap_words import describe_overlaps

    table = sampler.overlaps
    first, second = draw.indices.T
    there, back = table.find(first, second).tolist(), table.find(second, first).tolist()
    values = [
        {
            "overlap": float(table.overlap[at]) if at >= 0 else math.nan,
            "overlap_back": float(table.overlap[other]) if other >= 0 else math.nan,
            "angle": float(table.angle[at]) if at >= 0 else math.nan,
            "scale": float(table.scale[at]) if at >= 0 else math.nan,
        }
        for at, other in zip(there, back, strict=True)
    ]
    return values, describe_overlaps(sampler, draw)
