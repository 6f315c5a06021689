"""``setsup pairs``: renders pairs of views and plots pixel correspondences."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from setsup.errors import DataError
from setsup.files.expand_user import expanded
from setsup_cli.encoders import pixel_matches
from setsup_cli.output import say, show_json, show_table
from setsup_cli.output_paths import Force, moved, write_image
from setsup_cli.parsing import recipes
from setsup_cli.parsing.arguments import option
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.recipes import (
    RecipeOptions,
    build_recipe,
    build_renderer,
    build_table,
    list_recipes,
    need_rendering,
)
from setsup_cli.parsing.values import check_image
from setsup_cli.suggestions import advise_command

if TYPE_CHECKING:
    from setsup.correspondence import PixelPairs
    from setsup.rendered.dataset import RenderedDataset

__all__ = ["HELP", "Options", "resolve_options", "run"]

HELP = """\
Example: `setsup pairs room`. A PixelPairSampler draws every scene equally often and, for each draw, two different
views of the scene. Pixels of the first view are traced to the scene and from there to the second view; occluded
pixels are plotted separately. `setsup render RECIPE --matches N` writes such pairs, and for each pixel its position
in the other view. `setsup pairs --run RUN IMAGE1 IMAGE2` shows the matches that a trained network finds between two
images; `setsup pairs --run --help` lists its options."""

_WITHOUT_FILES = ("room", "shapes3d")
"""Recipes that need no file."""

_STATES = ("visible", "occluded", "outside", "no_surface")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(RecipeOptions):
    """Options of the subcommand, without those of a recipe."""

    draws: Annotated[int, option("N", "Number of pairs of views.", alias="-n")] = 5
    lines: Annotated[int, option("N", "Number of correspondence lines per pair.")] = 24
    out: Annotated[Path, option("FILE", "Output image.", alias="-o")] = Path("setsup-pairs.png")
    force: Force = False


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """Options of learned matches, or those of the recipe that words name."""
    if any(word.partition("=")[0] == "--run" for word in words):
        return pixel_matches.SUBCOMMAND
    return recipes.resolve_options(subcommand, words)


def run(options: Any) -> int:
    """Plot pairs of views and their matches, and print the number of pixels of each status."""
    if isinstance(options, pixel_matches.Options):
        return pixel_matches.run(options)
    if options.recipe is None:
        list_recipes(HELP, options.json)
        advise_command(options, ["setsup", "pairs", "room"])
        return 0
    need_rendering(options, "matches need")
    for name in ("draws", "lines"):
        if getattr(options, name) < 1:
            raise DataError(f"--{name} must be 1 or more, not {getattr(options, name)}")
    out = expanded(options.out)
    check_image(out)
    import numpy as np

    from setsup.correspondence import PixelPairSampler, spatial
    from setsup.rendered.dataset import RenderedDataset
    from setsup.reports import match_sheet

    recipe = build_recipe(options)
    dataset = RenderedDataset(recipe, build_table(recipe, options), build_renderer(options))
    rows = PixelPairSampler(dataset, pairs=options.draws, seed=options.seed)[0].indices
    order = np.argsort(rows[:, 0], kind="stable")  # scenes are built once where their pairs follow one another
    images = dataset.fetch(rows[order], ["image"])["image"]
    pixel_pairs = [
        spatial(dataset.scene(first), dataset.camera(first), dataset.camera(second))
        for first, second in rows[order].tolist()
    ]
    about = [_about(dataset, two, pairs) for two, pairs in zip(rows[order].tolist(), pixel_pairs, strict=True)]
    captions = [_caption(pair) for pair in about]
    title = f"{dataset.name}\nseed {options.seed}, rendered by {dataset.renderer_name}"
    sheet = match_sheet([(pair[0], pair[1]) for pair in images], pixel_pairs, captions, title, shown=options.lines)
    asked, out = out, write_image(sheet, out, force=options.force)
    if options.json:
        show_json({"recipe": recipe.name, "renderer": dataset.renderer_name, "pairs": about, "file": str(out)})
        return 0
    heads = ["scene", "views", *_STATES]
    body = [
        [_words(pair["scene"]), " and ".join(map(_words, pair["views"])), *(f"{pair[state]:,}" for state in _STATES)]
        for pair in about
    ]
    show_table(heads, body, right=list(_STATES))
    say()
    for line in (*moved(asked, out), str(out)):
        say(line)
    words = ["--matches", options.draws, "--seed", options.seed, "--out", f"{options.recipe}-pairs"]
    if options.recipe in _WITHOUT_FILES:
        advise_command(options, ["setsup", "render", options.recipe, *words])
    return 0


def _about(dataset: "RenderedDataset", rows: list[int], pairs: "PixelPairs") -> dict[str, Any]:
    import numpy as np

    values = [dataset.values(row) for row in rows]
    shared = {name: values[0][name] for name in dataset.pair_factors}
    views = [{name: value for name, value in row.items() if name not in shared} for row in values]
    counts = np.bincount(pairs.status, minlength=len(_STATES)).tolist()
    return {"rows": rows, "scene": shared, "views": views, **dict(zip(_STATES, counts, strict=True))}


def _caption(about: dict[str, Any]) -> str:
    return f"{_words(about['scene'])}: {' and '.join(map(_words, about['views']))}"


def _words(values: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )
