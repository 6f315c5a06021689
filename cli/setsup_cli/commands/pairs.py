"""``setsup pairs``: plots pixel correspondences of pairs of views, rendered or of a dataset."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from setsup.errors import DataError
from setsup_cli import dataset_pairs
from setsup_cli.encoders import pixel_matches
from setsup_cli.output import say, show_json
from setsup_cli.output_paths import Force, moved, write_image
from setsup_cli.pair_sheets import check_options, count_statuses, show_pairs
from setsup_cli.parsing import recipes
from setsup_cli.parsing.arguments import names_and_paths, option
from setsup_cli.parsing.parser import Subcommand, parse_known
from setsup_cli.parsing.recipes import (
    RecipeOptions,
    build_recipe,
    build_renderer,
    build_table,
    list_recipes,
    need_rendering,
)
from setsup_cli.suggestions import advise_command

if TYPE_CHECKING:
    from setsup.arrays import Rows
    from setsup.correspondence import PixelPairs
    from setsup.rendered.dataset import RenderedDataset

__all__ = ["HELP", "Options", "resolve_options", "run"]

_SHOWN = 5  # frames of a strip of tracks

HELP = """\
Examples: `setsup pairs room`, `setsup pairs rooms --overlap .3-.8`. For each draw, a PixelPairSampler draws a scene
uniformly, and two different views of it; with --overlap, an OverlapSampler draws views that overlap. For a recipe,
pixels of the first view are traced to the scene and from there to the second view; occluded pixels are plotted
separately. `setsup pairs room --frames 0 8` matches two frames of a room in which objects move. `setsup render RECIPE
--matches N` writes such pairs, and for each pixel its position in the other view. For a dataset, pixels are matched
by its scenes, the matches stored by `setsup render --matches`, its depth, or the tracks of a COLMAP model; `setsup
pairs DATASET --help` lists the options. `setsup pairs --run RUN IMAGE1 IMAGE2` shows the matches that a trained
network finds between two images; `setsup pairs --run --help` lists its options."""

_WITHOUT_FILES = ("room", "shapes3d")
"""Recipes that need no file."""


def _complete(context: Any) -> list[str]:
    return [*recipes.recipes(), *names_and_paths(context)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(RecipeOptions):
    """Options of the subcommand, without those of a recipe."""

    recipe: Annotated[
        str | None,
        option(
            "[RECIPE|DATASET]",
            "Recipe to render (object, room or shapes3d), or a dataset: its name, file, folder or address.",
            name="RECIPE|DATASET",
            completer=_complete,
        ),
    ] = field(default=None, kw_only=False)
    draws: Annotated[int, option("N", "Number of pairs of views.", alias="-n")] = 5
    lines: Annotated[int, option("N", "Number of correspondence lines per pair.")] = 24
    out: Annotated[Path, option("FILE", "Output image.", alias="-o")] = Path("setsup-pairs.png")
    force: Force = False


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """Options of learned matches, of the recipe that words name, or of a dataset."""
    if any(word.partition("=")[0] == "--run" for word in words):
        return pixel_matches.SUBCOMMAND
    name = parse_known(subcommand, words).recipe
    if name is not None and name not in recipes.recipes():
        return dataset_pairs.subcommand(name)
    return recipes.resolve_options(subcommand, words)


def run(options: Any) -> int:
    """Plot pairs of views and their matches, and print the number of pixels of each status."""
    if isinstance(options, pixel_matches.Options):
        return pixel_matches.run(options)
    if isinstance(options, dataset_pairs.Options):
        return dataset_pairs.run(options)
    if options.recipe is None:
        list_recipes(HELP, options.json)
        advise_command(options, ["setsup", "pairs", "room"])
        return 0
    need_rendering(options, "matches need")
    check_options(options)
    if getattr(options, "tracks", None) is not None:
        return _show_tracks(options)
    import numpy as np

    from setsup.correspondence import PixelPairSampler
    from setsup.rendered.dataset import RenderedDataset

    recipe = build_recipe(options)
    dataset = RenderedDataset(recipe, build_table(recipe, options), build_renderer(options))
    frames = getattr(options, "frames", None)
    if frames is None:
        rows = PixelPairSampler(dataset, pairs=options.draws, seed=options.seed)[0].indices
    else:
        rows = _videos(dataset, frames, options.draws, options.seed)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]  # scenes are built once where their pairs follow one another
    pixel_pairs = [_match(dataset, first, second) for first, second in rows.tolist()]
    about = [_about(dataset, two, pairs) for two, pairs in zip(rows.tolist(), pixel_pairs, strict=True)]
    columns = {
        "scene": [_words(pair["scene"]) for pair in about],
        "views": [" and ".join(map(_words, pair["views"])) for pair in about],
    }
    captions = [f"{scene}: {views}" for scene, views in zip(*columns.values(), strict=True)]
    title = f"{dataset.name}\nseed {options.seed}, rendered by {dataset.renderer_name}"
    head = {"recipe": recipe.name, "renderer": dataset.renderer_name}
    show_pairs(options, dataset, pixel_pairs, about, columns, captions, title, head)
    words = [] if frames is None else ["--frames", max(frames) + 1]
    words += ["--matches", options.draws, "--seed", options.seed, "--out", f"{options.recipe}-pairs"]
    if options.recipe in _WITHOUT_FILES:
        advise_command(options, ["setsup", "render", options.recipe, *words])
    return 0


def _show_tracks(options: Any) -> int:
    """Plot points of videos, followed from a frame to another, on some of the frames between them."""
    import numpy as np

    from setsup.correspondence import RenderedFrames
    from setsup.random import permute, stream_key
    from setsup.reports import track_sheet

    if options.tracks < 1:
        raise DataError(f"--tracks must be 1 or more, not {options.tracks}")
    recipe = build_recipe(options)
    dataset = RenderedFrames(recipe, build_table(recipe, options), build_renderer(options), modalities=["image"])
    first, last = options.frames
    numbers = np.rint(np.linspace(first, last, min(_SHOWN, abs(last - first) + 1))).astype(int)
    height, width = recipe.size
    chosen = permute(stream_key(options.seed, "tracks"), height * width, np.arange(options.tracks))
    pixels = np.stack(np.divmod(chosen, width)[::-1], axis=1).astype(np.float64)
    videos, points, status, about = [], [], [], []
    for rows in _videos(dataset, numbers.tolist(), options.draws, options.seed).tolist():
        places, states = dataset.tracks(rows[0], pixels)
        scene = {name: dataset.values(rows[0])[name] for name in dataset.pair_factors}
        videos.append(list(dataset.fetch(rows, ["image"])["image"]))
        points.append(places[:, numbers])
        status.append(states[:, numbers])
        visible = (states[:, numbers] == 0).sum(axis=0).tolist()
        about.append({"row": rows[0], "scene": scene, "frames": numbers.tolist(), "visible": visible})
    labels = [_words(video["scene"]) for video in about]
    title = f"{dataset.name}\nseed {options.seed}, {options.tracks} points of frame {first}; a ring: hidden or outside"
    sheet = track_sheet(videos, points, status, labels, [f"frame {number}" for number in numbers], title)
    asked = check_options(options)
    out = write_image(sheet, asked, force=options.force)
    if options.json:
        show_json({"recipe": recipe.name, "videos": about, "file": str(out)})
        return 0
    for line in (*moved(asked, out), str(out)):
        say(line)
    return 0


def _videos(dataset: "RenderedDataset", frames: Sequence[int], draws: int, seed: int) -> "Rows":
    """Rows of some frames, (n, frames), of as many different scenes; fewer if fewer have them all."""
    import numpy as np

    from setsup.random import permute, stream_key

    if min(frames) < 0 or frames[0] == frames[-1]:
        raise DataError(f"--frames must be the numbers of two different frames, from 0, not {frames[0]} {frames[-1]}")
    table = dataset.factors
    number = table.values("frame")
    groups = table.group_by(list(dataset.pair_factors))
    found = np.full((len(frames), len(groups)), -1)
    for row_of_scene, frame in zip(found, frames, strict=True):
        rows = np.flatnonzero(number == frame)
        row_of_scene[groups.find(table, rows)[0]] = rows
    complete = found[:, (found >= 0).all(axis=0)]
    count = complete.shape[1]
    if not count:
        raise DataError(f"no scene has the frames {', '.join(map(str, frames))}; change --where or --rows")
    chosen = permute(stream_key(seed, "pairs of frames"), count, np.arange(min(draws, count)))
    return complete[:, np.sort(chosen)].T


def _match(dataset: "RenderedDataset", first: int, second: int) -> "PixelPairs":
    """Partners in one row of the pixels of another."""
    from setsup.correspondence import spatial

    one, two = dataset.scene(first), dataset.scene(second)
    moved = None if two.digest == one.digest else two
    return spatial(one, dataset.camera(first), dataset.camera(second), scene2=moved)


def _about(dataset: "RenderedDataset", rows: list[int], pairs: "PixelPairs") -> dict[str, Any]:
    values = [dataset.values(row) for row in rows]
    shared = {name: values[0][name] for name in dataset.pair_factors}
    views = [{name: value for name, value in row.items() if name not in shared} for row in values]
    return {"rows": rows, "scene": shared, "views": views, **count_statuses(pairs)}


def _words(values: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )
