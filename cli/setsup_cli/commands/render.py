"""``setsup render``: renders a recipe to a folder, and resumes."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import DataError, advised_for_command
from setsup.files import readable_size
from setsup.files.expand_user import expanded
from setsup_cli.croissant import croissant_about, croissant_lines
from setsup_cli.output import say, show_result, show_table
from setsup_cli.parsing.arguments import Rai, flag, option
from setsup_cli.parsing.model_files import MODELS, has_folder, model_problems, search_models, write_models
from setsup_cli.parsing.notations import NOTATIONS
from setsup_cli.parsing.recipes import (
    RecipeOptions,
    build_recipe,
    build_renderer,
    build_table,
    list_recipes,
    model_settings,
    need_rendering,
    resolve_options,
)
from setsup_cli.parsing.values import split_names
from setsup_cli.parsing.workers import On, RayAddress, RayGpus, cluster
from setsup_cli.stopping import sigterm_as_interrupt
from setsup_cli.suggestions import advise, sample_command

if TYPE_CHECKING:
    from setsup.factors import FactorTable
    from setsup.jobs import Ray
    from setsup.rendered.folder import RenderedFolder
    from setsup.rendered.layout import Layout
    from setsup.scenes import Recipe

__all__ = ["HELP", "Options", "resolve_options", "run"]

HELP = """\
Example: `setsup render shapes3d --out shapes --rows 500`. By default, the full grid of the recipe's factors is
rendered; --rows and --where reduce it. `setsup render object --models FOLDER --views 12 --out views` renders all meshes
in a folder. `setsup render room --frames 24 --out videos` renders videos with exact flow. `setsup render shapes3d
--help` lists the options of a recipe. If a command is interrupted, run it again: it resumes, and the output is
identical for any number of processes or machines. The finished folder is a dataset: `setsup sample shapes --inactive
shape`."""

_LARGE = 1_000_000_000  # bytes
_SHOWN = 20  # models in a table


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(RecipeOptions):
    """Options of the subcommand, without those of a recipe."""

    rows: Annotated[
        int | None,
        option("N", "Render N random rows instead of the grid; every factor is uniform over its levels.", alias="-n"),
    ] = None
    out: Annotated[
        Path | None,
        option("FOLDER", "Output folder; must be new or written by the same command, which then resumes.", alias="-o"),
    ] = None
    modalities: Annotated[
        tuple[str, ...] | None,
        option(
            "NAME ...",
            "Modalities to write; by default image, depth, normals, instances, triangles and, for generated rooms, "
            "labels, with --matches also partners and status, with --frames also exact_flow, exact_flow_back, "
            "flow_status and flow_back_status. Others are nocs, object_coordinates, uv, barycentrics, albedo, "
            "material, mask, pose, intrinsics and object_poses, with --frames also scene_flow.",
        ),
    ] = None
    matches: Annotated[
        int | None,
        option(
            "N",
            "Render N pairs of views instead of single views, and write which pixel of the other view corresponds to "
            "each pixel.",
        ),
    ] = None
    overlap: Annotated[
        str | None,
        option("LOW-HIGH", "With --matches, draw pairs of views with an overlap in a band, such as .3-.8."),
    ] = None
    direction: Annotated[
        Literal["forward", "both", "either"] | None,
        option(
            "forward|both|either",
            "With --overlap, directions in which the overlap of a pair of views must lie in the band: forward, from "
            "the first to the second view; both; or either.",
            "forward",
        ),
    ] = None
    candidates: Annotated[
        int | None,
        option(
            "N",
            "With --overlap, maximum number of candidates to try for each pair; if none lies in the band, the one "
            "nearest to it is used.",
            "64",
        ),
    ] = None
    skip_broken: Annotated[
        bool,
        flag(
            "Leave out rows that cannot be rendered; FOLDER/failed.json lists them. Always on if a folder of meshes is "
            "searched."
        ),
    ] = False
    processes: Annotated[int, option("N", "Number of worker processes.")] = 1
    on: On = None
    ray_address: RayAddress = None
    ray_gpus: RayGpus = 0.0
    rai: Rai = None


def run(options: Any) -> int:
    """Render and print how to open the folder, or list the recipes."""
    if options.recipe is None:
        list_recipes(HELP, options.json)
        advise(options, "setsup render shapes3d --rows 500 --out shapes")
        return 0
    if options.out is None:
        raise DataError(f"--out is required: `setsup render {options.recipe} --out FOLDER`")
    from setsup.rendered.dataset import RenderedDataset
    from setsup.rendered.folder import rendered_rows
    from setsup.rendered.writing import render

    band = _band(options)
    on = cluster(options.on, options.ray_address, options.ray_gpus)
    need_rendering(options, None if options.matches is None else "matches need")
    if not hasattr(options, "frames"):
        _refuse_flow(options)
    given = model_settings(options)
    found = search_models(given)
    recipe = build_recipe(options, found)
    rows = build_table(recipe, options)
    dataset: RenderedDataset
    if options.matches is None and hasattr(options, "frames"):
        from setsup.correspondence import RenderedFrames

        dataset = RenderedFrames(recipe, rows, build_renderer(options))
    elif options.matches is None:
        dataset = RenderedDataset(recipe, rows, build_renderer(options))
    else:
        from setsup.correspondence import RenderedPairs

        dataset = RenderedPairs(recipe, _draw_pairs(options, band, recipe, rows, on), build_renderer(options))
    before = 0

    def on_start(layout: "Layout", there: int) -> None:
        # not earlier: the lock may have been waited for while another process rendered
        nonlocal before
        before = there
        if not options.json:
            say(_what(layout, there, options.out))

    try:
        with sigterm_as_interrupt():
            rendered = render(
                dataset,
                options.out,
                split_names(options.modalities),
                processes=options.processes,
                on=on,
                skip_broken=options.skip_broken or has_folder(given),
                on_start=on_start,
                rows_seed=None if options.rows is None and options.matches is None else options.seed,
                rai=options.rai,
            )
    except KeyboardInterrupt:
        done, total = rendered_rows(options.out)
        raise KeyboardInterrupt(
            f"at {done:,} of {total or len(dataset):,} images; run the same command to resume"
        ) from None
    shutil.rmtree(_measured(options), ignore_errors=True)
    about = _about(rendered, before)
    if has_folder(given):
        about["models"] = model_problems(found, options.top, rendered.folder / "failed.json")
        write_models(rendered.folder / MODELS, found, about["models"])
    if band is not None:
        about["overlap"] = _count_in_band(rendered, band, options.direction or "forward")
    if not options.json:
        _show_problems(about)
    show_result(options.json, about, _words(about, rendered))
    advise(options, about["next"])
    return 0


def _refuse_flow(options: Any) -> None:
    """Refuse modalities of frames where nothing moves."""
    from setsup.correspondence.rendered_frames import FLOWS, SCENE_FLOW

    for name in split_names(options.modalities) or ():
        if name == SCENE_FLOW or any(name in names for names in FLOWS.values()):
            raise DataError(f"--modalities {name} requires --frames N, the number of frames of each video")


# -- pairs by overlap --------------------------------------------------------------------------------------------------


def _band(options: Any) -> tuple[float, float] | None:
    """Ends of the band of overlap, if there is one."""
    if options.overlap is None:
        for name in ("direction", "candidates"):
            if getattr(options, name) is not None:
                raise DataError(f"--{name} requires --overlap LOW-HIGH, a band of overlap such as .3-.8")
        return None
    if options.matches is None:
        raise DataError("--overlap requires --matches N, the number of pairs of views to render")
    notation = NOTATIONS["Band"]._replace(expected="the ends of a band, such as .3-.8")
    low, high = notation.read(options.overlap, "--overlap")
    return low, high


def _measured(options: Any) -> Path:
    """Folder that keeps overlaps until the rendering is finished."""
    out = expanded(options.out)
    return out.with_name(f"{out.name}.pairs")


def _draw_pairs(
    options: Any,
    band: tuple[float, float] | None,
    recipe: "Recipe",
    rows: "FactorTable | None",
    on: "Ray | None",
) -> "FactorTable":
    """Rows of pairs of views."""
    from setsup.correspondence import pair_table

    if band is None:
        return pair_table(recipe, options.matches, factors=rows, seed=options.seed)
    from setsup.rendered.create import refuse_other_files

    refuse_other_files(expanded(options.out))
    names = ("overlap", "direction", "candidates", "seed", "processes", "on")
    with sigterm_as_interrupt(), advised_for_command({name: f"--{name}" for name in names} | {"pairs": "--matches"}):
        try:
            return pair_table(
                recipe,
                options.matches,
                factors=rows,
                overlap=band,
                direction=options.direction or "forward",
                candidates=64 if options.candidates is None else options.candidates,
                seed=options.seed,
                processes=options.processes,
                on=on,
                folder=_measured(options),
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt("while choosing pairs; run the same command to resume") from None


def _count_in_band(rendered: "RenderedFolder", band: tuple[float, float], direction: Any) -> dict[str, Any]:
    """How many of the pairs lie in the band, for machines."""
    import numpy as np

    from setsup.correspondence.pairs_in_band import distance_to_band
    from setsup.correspondence.rendered_pairs import OVERLAP, OVERLAP_BACK

    overlap = np.stack([rendered.factors.codes(name)[::2] for name in (OVERLAP, OVERLAP_BACK)], axis=-1)
    inside = int((distance_to_band(overlap, band, direction) == 0).sum())
    return {"band": list(band), "direction": direction, "pairs": len(overlap), "in_band": inside}


# -- output ------------------------------------------------------------------------------------------------------------


def _what(layout: "Layout", there: int, folder: Path) -> str:
    height, width = layout.size
    done = f", of which {there:,} exist" if there else ""
    size, rest = layout.size_on_disk, ""
    if size > _LARGE and there < layout.rows and "image" in layout.modalities and len(layout.modalities) > 1:
        small = replace(layout, modalities={"image": layout.modalities["image"]}).size_on_disk
        rest = f"; `--modalities image` writes {readable_size(small)}"
    images = f"{layout.rows:,} images of {height} × {width} pixels"
    return f"{layout.recipe}: {images}, {readable_size(size)}{done}, to {folder}{rest}"


def _about(rendered: "RenderedFolder", before: int) -> dict[str, Any]:
    """The output of --json for a finished folder."""
    folder = str(rendered.folder)
    return {
        "folder": folder,
        "recipe": rendered.name.removeprefix("rendered "),
        "renderer": rendered.renderer_name,
        "rows": len(rendered),
        "left_out": rendered.left_out,
        "drawn_now": len(rendered) - before,
        "factors": {factor.name: len(factor) or None for factor in rendered.factors.factors},
        "modalities": {
            name: {"shape": list(modality.shape), "dtype": modality.dtype, "unit": modality.unit, "file": f"{name}.npy"}
            for name, modality in rendered.modalities.items()
        },
        "croissant": croissant_about(folder),
        "open": f"setsup.open({folder!r})",
        "next": sample_command(folder, rendered.factors),
    }


def _show_problems(about: Mapping[str, Any]) -> None:
    """Print a table of the models that are left out or incomplete."""
    problems = about.get("models", ())
    if not problems:
        return
    shown = [(one["model"] or one["file"], "yes" if one["rendered"] else "no", one["problem"]) for one in problems]
    show_table(("model", "rendered", "problem"), shown[:_SHOWN])
    if len(shown) > _SHOWN:
        say(f"… and {len(shown) - _SHOWN:,} more")
    say(f"{about['folder']}/{MODELS} lists all models")


def _levels(table: "FactorTable", name: str, levels: int | None) -> str:
    """Number of levels of a factor, and of those with rows if some have none."""
    import numpy as np

    if levels is None:
        return f"{name} ~"
    drawn = len(np.unique(table.codes(name)))
    return f"{name} {levels}" if drawn == levels else f"{name} {drawn} of {levels}"


def _words(about: Mapping[str, Any], rendered: "RenderedFolder") -> Iterator[str]:
    yield f"rendered by {about['renderer']}, {about['drawn_now']:,} now"
    if about["left_out"]:
        yield f"{about['left_out']:,} rows could not be rendered and are omitted; see {about['folder']}/failed.json"
    if "overlap" in about:
        found = about["overlap"]
        yield "overlap {:g} to {:g}: {:,} of {:,} pairs".format(*found["band"], found["in_band"], found["pairs"])
    yield f"factors: {', '.join(_levels(rendered.factors, *each) for each in about['factors'].items())}"
    yield f"modalities: {', '.join(about['modalities'])}; cameras, and names of instances"
    yield from croissant_lines(about["croissant"])
    yield about["open"]
