"""``setsup overlap``: measures which views of a scene show the same surfaces, and resumes."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import DataError, advised_for_command
from setsup.files.expand_user import expanded
from setsup_cli.output import say, show_result
from setsup_cli.parsing.arguments import Named, names_and_paths, option
from setsup_cli.parsing.notations import NOTATIONS
from setsup_cli.parsing.source import open_source, rows_where, source_words
from setsup_cli.parsing.values import split_names
from setsup_cli.parsing.view_bands import ANGLE, DIRECTION, SCALE
from setsup_cli.parsing.workers import On, RayAddress, RayGpus, cluster
from setsup_cli.stopping import sigterm_as_interrupt
from setsup_cli.suggestions import advise

if TYPE_CHECKING:
    from setsup.samplers.overlap.table import OverlapTable

__all__ = ["HELP", "Options", "run"]

HELP = """\
Example: `setsup render room --rooms 20 --out rooms`, then `setsup overlap rooms --scene room --out rooms.overlap`. For
ordered pairs of views of each scene, the command measures the share of the surface in the first view that the second
view shows: in renderings and recordings by depth, in captures with a COLMAP model by the points that both views
observe. `setsup sample rooms --overlap rooms.overlap:.3-.8` draws pairs in a band of overlap; `--export FOLDER --layout
loftr` also writes them in the file format of another project. If a command is interrupted, run it again: it resumes,
and the output is identical for any number of processes or machines."""

_BAND = ".3-.8"
_BANDS = ("overlap", "angle", "scale")
_OF_PAIRS = ("layout", "angle", "scale", "direction")  # options that only --export has a use for
_OPTIONS = ("scene", "pixels", "candidates", "source", "tolerance", "absolute", "seed", "processes", "on")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Named):
    """Options of the subcommand."""

    dataset: Annotated[
        str,
        option(
            "DATASET",
            "Folder written by `setsup render`; capture with a COLMAP model; dataset of `setsup datasets` with depth, "
            "poses and intrinsics; or shards of these.",
            completer=names_and_paths,
        ),
    ] = field(kw_only=False)
    out: Annotated[
        Path | None,
        option("FILE", "Output file; must be new or written by the same command, which then reads it.", alias="-o"),
    ] = None
    scene: Annotated[
        tuple[str, ...] | None,
        option(
            "FACTOR ...", "Factors in which the views of a scene agree.", "those recorded in a rendering or capture"
        ),
    ] = None
    where: Annotated[
        str | None,
        option("EXPRESSION", "Compare only rows that satisfy an expression; they keep their numbers."),
    ] = None
    source: Annotated[
        Literal["scenes", "depth", "tracks"] | None,
        option(
            "scenes|depth|tracks",
            "Trace scenes, compare depths, or compare the 3D points of a COLMAP model.",
            "the first that the dataset has",
        ),
    ] = None
    pixels: Annotated[int, option("N", "Number of sample pixels per view, at least 16.")] = 192
    candidates: Annotated[
        int,
        option(
            "N",
            "In scenes of more than 200 views, number of views to choose for comparison with each view: half of them "
            "the nearest, the others random. In smaller scenes, all pairs are measured.",
        ),
    ] = 128
    tolerance: Annotated[
        float,
        option(
            "SHARE",
            "With the source depth, largest difference between the depth of a point and the depth measured there at "
            "which the point counts as visible, as a share of the depth of the point.",
        ),
    ] = 0.01
    absolute: Annotated[float, option("METRES", "The same limit in metres; the larger of the two applies.")] = 0.0
    seed: Annotated[int, option("N", "Random seed of sample pixels and candidates.")] = 0
    overlap: Annotated[
        str,
        option(
            "LOW-HIGH",
            "Band of overlap of the pairs to count and, with --export, to write. The output file does not depend on "
            "it.",
        ),
    ] = _BAND
    export: Annotated[
        Path | None,
        option("FOLDER", "Also write the pairs, with images, depth and cameras; must be new. Requires --layout."),
    ] = None
    layout: Annotated[
        Literal["d2-net", "loftr", "dust3r", "superglue", "hloc"] | None,
        option("LAYOUT", "Project that reads these files: d2-net, loftr, dust3r, superglue or hloc."),
    ] = None
    angle: Annotated[str | None, option("LOW-HIGH", f"With --export, {ANGLE}")] = None
    scale: Annotated[str | None, option("LOW-HIGH", f"With --export, {SCALE}")] = None
    direction: Annotated[
        Literal["either", "both"] | None,
        option("either|both", f"With --export, {DIRECTION} either or both.", "either"),
    ] = None
    processes: Annotated[int, option("N", "Number of worker processes.")] = 1
    on: On = None
    ray_address: RayAddress = None
    ray_gpus: RayGpus = 0.0


def run(options: Options) -> int:
    """Measure, and print what was measured."""
    on = cluster(options.on, options.ray_address, options.ray_gpus)
    if options.out is None:
        raise DataError(f"--out is required: `{shlex.join(['setsup', 'overlap', options.dataset])} --out FILE`")
    bands = _read_bands(options)
    _check_export(options)
    dataset = open_source(options)
    rows = None if options.where is None else rows_where(dataset.factors, options.where)
    from setsup.correspondence import overlap, write_pairs
    from setsup.correspondence.pair_files.writing import need_free

    if options.export is not None:
        need_free(expanded(options.export))
    out = expanded(options.out)
    units = out.with_name(f"{out.name}.units")
    if units.exists() and not options.json:
        say(f"resuming from {units}")
    with sigterm_as_interrupt(), advised_for_command({name: f"--{name}" for name in _OPTIONS} | {"path": "--out"}):
        try:
            table = overlap(
                dataset,
                scene=split_names(options.scene),
                rows=rows,
                pixels=options.pixels,
                candidates=options.candidates,
                source=options.source,
                tolerance=options.tolerance,
                absolute=options.absolute,
                seed=options.seed,
                processes=options.processes,
                on=on,
                path=out,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt("while measuring; run the same command to resume") from None
    command = ["setsup", "sample", options.dataset, *source_words(options), "--overlap", f"{out}:{options.overlap}"]
    about = _about(table, out, bands["overlap"], shlex.join(command))
    if options.export is not None and options.layout is not None:
        with sigterm_as_interrupt(), advised_for_command({name: f"--{name}" for name in _BANDS}):
            written = write_pairs(
                dataset,
                table,
                expanded(options.export),
                options.layout,
                direction=options.direction or "either",
                overlap=bands["overlap"],
                angle=bands.get("angle"),
                scale=bands.get("scale"),
            )
        about["written"] = {"layout": options.layout, **written._asdict(), "folder": str(written.folder)}
    show_result(options.json, about, _words(about))
    advise(options, about["next"])
    return 0


def _read_bands(options: Options) -> dict[str, tuple[float, float]]:
    """The bands of options such as ``.3-.8``."""
    from setsup.samplers.overlap.bands import check_bands

    read = {
        name: None if word is None else NOTATIONS["Band"].read(word, f"--{name}")
        for name in _BANDS
        for word in [getattr(options, name)]
    }
    with advised_for_command({name: f"--{name}" for name in _BANDS}):
        return check_bands(**read)


def _check_export(options: Options) -> None:
    """Refuse options of pairs without a place for these, and the reverse, before long work."""
    if options.export is None:
        given = [f"--{name}" for name in _OF_PAIRS if getattr(options, name) is not None]
        if given:
            raise DataError(f"{' and '.join(given)} require{'s' * (len(given) == 1)} --export FOLDER")
        return
    if options.layout is None:
        raise DataError("--export requires --layout: d2-net, loftr, dust3r, superglue or hloc")


# -- output ------------------------------------------------------------------------------------------------------------


def _about(table: "OverlapTable", file: Path, band: tuple[float, float], command: str) -> dict[str, Any]:
    """The output of --json for a table."""
    import numpy as np

    from setsup.samplers.overlap.bands import in_bands
    from setsup.samplers.overlap.table import COUNTS

    return {
        "file": str(file),
        "dataset": table.about["dataset"],
        "source": table.source,
        "settings": dict(table.about["settings"]),
        "scenes": len(table.counts),
        "views": len(table.views),
        "pairs": dict(zip(COUNTS, table.counts.sum(axis=0).tolist(), strict=True)),
        "listed": len(table),
        "unknown": int(np.isnan(table.overlap).sum()),
        "in_band": int(in_bands(table, {"overlap": band}).sum()),
        "band": list(band),
        "digest": table.digest,
        "next": command,
    }


def _words(about: Mapping[str, Any]) -> Iterator[str]:
    pairs, (low, high) = about["pairs"], about["band"]
    views = f"{about['views']:,} views of {about['scenes']:,} scene{'s' * (about['scenes'] != 1)}"
    yield (
        f"{about['file']}: {pairs['measured']:,} of {pairs['possible']:,} pairs of {views} measured from "
        f"{about['source']}; {about['in_band']:,} overlap by {low:g} to {high:g}, {about['unknown']:,} unknown; "
        f"{pairs['excluded']:,} excluded, {pairs['not_tried']:,} not tried"
    )
    if written := about.get("written"):
        yield (
            f"{written['folder']}: {written['pairs']:,} pairs of {written['views']:,} views of {written['scenes']:,} "
            f"scene{'s' * (written['scenes'] != 1)}, in the layout {written['layout']}"
        )
