"""``setsup report dense``: how well features of pixels match two views of a scene, of any encoder and run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import DataError, advised_for_command, require_modules
from setsup.files.disk import need_writable
from setsup.files.expand_user import expanded
from setsup_cli.dataset_pairs import matched_by
from setsup_cli.encoders.options import DatasetName, Embedding, check_named, open_reported
from setsup_cli.encoders.pixel_encoders import PixelEncoder, open_pixel_encoders
from setsup_cli.output import say, say_prose, show_json, show_table
from setsup_cli.output_paths import Force, moved
from setsup_cli.parsing.arguments import Common, DatasetOptions, Device, Image, Kinds, OwnPreset, Root, Split
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.values import split_names

if TYPE_CHECKING:
    from setsup.arrays import Rows
    from setsup.datasets import Dataset
    from setsup.experiments.evaluations.dense import DenseSettings
    from setsup.experiments.evaluations.dense_results import DenseResults
    from setsup.experiments.evaluations.view_pairs import ViewPair
    from setsup_cli.encoders.dense_benchmarks import Benchmark

__all__ = ["NAME", "SHOWS", "SUBCOMMAND", "Options", "run"]

NAME = "dense"
SHOWS = "how well features of pixels match two views of a scene: setsup report dense --help"

HELP = """\
Pairs of views of a scene are drawn, whose pixels the dataset matches exactly, as `setsup pairs DATASET` does: by its
stored matches, its scenes, its depth or its method `pixel_pairs`. Two protocols are measured. visible: each visible
pixel is matched to the nearest feature of all pixels of view 2; the table shows the share of matches within a number
of pixels of the true place, and of centimetres of the true point. ratio: of a grid of pixels with a surface, visible
or not, the best matches by the ratio test count, as in probe3d. Benchmarks with a protocol of their own are measured by
it: published pairs of images with keypoints (SPair-71k, PF-PASCAL, PF-WILLOW) by PCK; photographs with homographies
(HPatches) by mean matching accuracy and estimated homographies; videos with tracks of points (TAP-Vid) by AJ, δ and
occlusion accuracy. Examples: `setsup report dense rooms-test runs/pixels/rooms-small/seed-0 --encoder
hf:facebook/dinov2-small --encoder daisy --encoder colors --out dense`, `setsup report dense spair-71k --encoder
hf:facebook/dinov2-small --longest 840`."""

_FORMS = (
    "Encoder of pixels: hf:NAME (in the cache of the Hugging Face hub), hf:./FOLDER or timm:NAME, also with layers, as "
    "in hf:NAME@6,12; FILE.py:FUNCTION (which returns a module); daisy, sift, colors or random; may be repeated."
)
_DRAWN = 3  # pairs of a sheet
_PAIRS = 200  # of views


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the report."""

    report: Annotated[Literal["dense"], declared("dense", "Name of the report.")] = field(kw_only=False)
    dataset: DatasetName = field(kw_only=False)
    runs: Annotated[
        tuple[Path, ...] | None, declared("[RUNS ...]", "Folders of runs whose method computes features of pixels.")
    ] = field(default=None, kw_only=False)
    encoder: Annotated[
        tuple[str, ...] | None, declared("ENCODER", _FORMS, consume_multiple=False, allow_repeating=True)
    ] = None
    root: Root = None
    split: Split = None
    option: DatasetOptions = None
    image: Image = None
    kinds: Kinds = None
    scene: Annotated[
        tuple[str, ...] | None,
        declared(
            "FACTOR ...", "Factors in which the views of a scene agree.", "those recorded in a rendering or capture"
        ),
    ] = None
    spread: Annotated[
        tuple[str, ...] | None,
        declared(
            "FACTOR ...",
            "Factors whose combinations are the scenes over which ± is taken, such as room.",
            "all that both views have in common",
        ),
    ] = None
    where: Annotated[
        str | None,
        declared(
            "EXPRESSION", "Draw only from rows, or of a benchmark from published pairs, that satisfy an expression."
        ),
    ] = None
    pairs: Annotated[
        int | None,
        declared(
            "N",
            "Maximum number of pairs (of videos with tracks: of videos), drawn by the seed.",
            "200; all of a benchmark",
            alias="-n",
        ),
    ] = None
    longest: Annotated[
        int | None,
        declared(
            "N", "Of benchmarks: resize images to N pixels along their longer side to encode them.", "as they are"
        ),
    ] = None
    queries: Annotated[
        str, declared("N|all", "Number of visible pixels to match per pair, and of occluded pixels to reject.")
    ] = "1024"
    features: Annotated[
        Literal["pixels", "grid"],
        declared("pixels|grid", "Interpolate features of patches to pixels, or match patches at their centres."),
    ] = "pixels"
    step: Annotated[
        int, declared("N", "Distance in pixels of the grid of the protocol ratio, and of HPatches and TAP-Vid.")
    ] = 4
    overlaps: Annotated[
        Path | None, declared("FILE", "File written by `setsup overlap`; recall is also shown by bins of the overlap.")
    ] = None
    embedding: Embedding = None
    preset: OwnPreset = None
    device: Device = None
    seed: Annotated[int, declared("N", "Random seed for drawing pairs and pixels, and for random weights.")] = 0
    out: Annotated[
        Path | None,
        declared(
            "FOLDER",
            "Write a page, a sheet per encoder, tables (CSV, JSON) and, for resuming, the values of each encoder.",
            alias="-o",
        ),
    ] = None
    force: Force = False


SUBCOMMAND = Subcommand("report", Options, HELP, NAME, summary=f"measure {SHOWS.partition(':')[0]}")


def run(options: Options) -> int:
    """Measure, print and write."""
    require_modules("this report needs", "torch", "lightning")
    for name in ("pairs", "step", "longest"):
        if (number := getattr(options, name)) is not None and number < 1:
            raise DataError(f"--{name} must be 1 or more, not {number}")
    queries = _queries(options.queries)
    if options.out is not None:
        need_writable(expanded(options.out) / "index.html")
    dataset, _, source = open_reported(options)
    from setsup.experiments.data import image_modality
    from setsup_cli.encoders.dense_benchmarks import find_benchmark, refuse_options

    image_modality(dataset)  # raises its errors before anything is computed
    benchmark = find_benchmark(dataset)
    if benchmark is not None:
        refuse_options(options, dataset, benchmark)
        return _run_benchmark(options, dataset, benchmark)
    if options.longest is not None:
        raise DataError(f"--longest applies only to benchmarks with their own protocol, not to {dataset.name}")
    check_named([*(split_names(options.scene) or ()), *(split_names(options.spread) or ())], dataset, source)
    return _run_views(options, dataset, queries)


def _run_views(options: Options, dataset: "Dataset", queries: int | None) -> int:
    """Measure views of scenes."""
    from setsup.experiments.evaluations.dense import DenseSettings
    from setsup.experiments.evaluations.dense_results import tables
    from setsup_cli.encoders.dense_benchmarks import name_source

    settings = DenseSettings(queries=queries, step=options.step)
    rows = _rows(options, dataset)
    grid = options.features == "grid"
    encoders = list(open_pixel_encoders(options, dataset, grid=grid))  # all, before anything is measured
    results, pairs = _measure(options, dataset, rows, settings, encoders)
    lines = [*name_source(options, dataset), *_lines(results)]
    files: list[tuple[Path, Path]] = []
    if options.out is not None:
        maps = {encoder.label: encoder.maps(dataset) for encoder in encoders}
        from setsup_cli.encoders.dense_files import write_results

        files = write_results(expanded(options.out), results, dataset, pairs, maps, lines, _DRAWN, force=options.force)
    return _show(options, results.to_dict(), tables(results), encoders, lines, files)


def _run_benchmark(options: Options, dataset: "Dataset", benchmark: "Benchmark") -> int:
    """Measure a benchmark by its own protocol."""
    from setsup_cli.encoders.dense_benchmarks import measure_benchmark
    from setsup_cli.encoders.dense_files import write_benchmark

    found = measure_benchmark(options, dataset, benchmark)
    files: list[tuple[Path, Path]] = []
    if options.out is not None:
        examples = {encoder.label: partial(found.examples, encoder, _DRAWN) for encoder in found.encoders}
        files = write_benchmark(expanded(options.out), found.results, examples, found.lines, force=options.force)
    results = found.results
    return _show(options, results.to_dict(), results.tables(), found.encoders, found.lines, files)


def _show(
    options: Options,
    values: dict[str, Any],
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]],
    encoders: Sequence[PixelEncoder],
    lines: Sequence[str],
    files: Sequence[tuple[Path, Path]],
) -> int:
    """Print results, and the names of files."""
    if options.json:
        show_json({**values, "files": [str(file) for _, file in files]})
        return 0
    for encoder in encoders:
        say(f"{encoder.label}: {encoder.described}")
    for line in lines:
        say_prose(line)
    for title, heads, cells in tables:
        say()
        say_prose(title)
        show_table(heads, cells, right=heads[1:])
    if files:
        say()
        for asked, file in files:
            for line in (*moved(asked, file), str(file)):
                say(line)
    return 0


def _queries(word: str) -> int | None:
    if word == "all":
        return None
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise DataError(f"--queries must be a number of pixels, 1 or more, or all, not {word!r}")
    return int(word)


def _rows(options: Options, dataset: "Dataset") -> "Rows":
    """Rows (n, 2) of the pairs of views."""
    from setsup.correspondence.matching import find_match
    from setsup.experiments.evaluations.view_pairs import draw_view_pairs

    find_match(dataset)  # raises its errors before anything is drawn
    with advised_for_command({"scene": "--scene", "where": "--where", "seed": "--seed"}):
        return draw_view_pairs(
            dataset, options.pairs or _PAIRS, options.seed, scene=split_names(options.scene), where=options.where
        )


def _measure(
    options: Options,
    dataset: "Dataset",
    rows: "Rows",
    settings: "DenseSettings",
    encoders: Sequence[PixelEncoder],
) -> "tuple[DenseResults, Callable[[int], ViewPair]]":
    """Results, and the function that returns a pair by its number."""
    from setsup.correspondence.matching import find_match
    from setsup.experiments.evaluations.dense import METHOD, describe_settings, measure_pairs
    from setsup.experiments.evaluations.dense_results import DenseResults
    from setsup.experiments.evaluations.view_pairs import content, remembered_pairs, scene_codes
    from setsup.experiments.result_cache import PartStore, digest, digest_arrays
    from setsup.progress import progress
    from setsup.random import stream_key

    spread = split_names(options.spread) or split_names(options.scene)
    overlaps = _overlaps(options.overlaps, dataset, rows)
    pairs = remembered_pairs(dataset, rows)
    key = int(stream_key(options.seed, "dense pairs"))
    data: dict[str, Any] = {"dataset": dataset.name, "table": dataset.factors.fingerprint, "rows": rows, "key": key}
    if options.out is not None:
        data["content"] = digest_arrays(content(dataset, rows, pairs))
    measured = {}
    with progress(len(encoders) * len(rows), "matching features", "pair") as advance:
        for encoder in encoders:

            def compute(items: Sequence[str], encoder: PixelEncoder = encoder) -> dict[str, Any]:
                maps = encoder.maps(dataset)
                return {items[0]: measure_pairs(pairs, rows, maps, settings, key, lambda _: advance())}

            if options.out is None:
                measured[encoder.label] = compute(["values"])["values"]
            else:
                store = PartStore(expanded(options.out) / "parts", encoder.about | {"method": METHOD})
                known = data | dict(describe_settings(settings)) | {"encoder": digest(encoder.about)}
                measured[encoder.label] = store.parts("dense", known, ["values"], compute)["values"]
    results = DenseResults(
        about={
            "dataset": dataset.name,
            "source": str(options.dataset),
            "split": options.split,
            "where": options.where,
            "matched_by": matched_by(find_match(dataset)),
            "features": options.features,
            "seed": options.seed,
        },
        settings=settings,
        rows=[(first, second) for first, second in rows.tolist()],
        scenes=scene_codes(dataset, rows, spread).tolist(),
        angles=[pairs(number).angle for number in range(len(rows))],
        overlaps=overlaps,
        measured=measured,
        weights={encoder.label: encoder.described.removeprefix("weights: ") for encoder in encoders},
    )
    return results, pairs


def _overlaps(path: Path | None, dataset: "Dataset", rows: "Rows") -> list[float]:
    """The overlap of view 1 with view 2 of each pair; NaN where the table has none."""
    if path is None:
        return [float("nan")] * len(rows)
    import numpy as np

    from setsup.samplers.overlap.table import OverlapTable

    table = OverlapTable.open(expanded(path))
    table.check_dataset(dataset.factors)
    found = table.find(rows[:, 0], rows[:, 1])
    overlaps = np.full(len(rows), np.nan)
    overlaps[found >= 0] = table.overlap[found[found >= 0]]
    return list(map(float, overlaps))


def _lines(results: "DenseResults") -> list[str]:
    """Lines of the report."""
    count, scenes = len(results.rows), len(set(results.scenes))
    queries = "all" if results.settings.queries is None else f"up to {results.settings.queries:,}"
    features = "interpolated to pixels" if results.about["features"] == "pixels" else "at patches, matched at centres"
    lines = [
        f"{count:,} pairs of views of {scenes:,} scenes of {results.about['dataset']}, pixels matched by "
        f"{results.about['matched_by']}, {queries} visible pixels of each; features of patches: {features}; "
        "± standard deviation of the means of scenes"
    ]
    known = sum(overlap == overlap for overlap in results.overlaps)
    if 0 < known < count:
        lines.append(f"{count - known:,} pairs are not in the table of overlaps, and are in none of its bins")
    return lines
