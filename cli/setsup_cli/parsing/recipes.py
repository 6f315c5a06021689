"""Recipes on the command line: their options, and the recipe and rows that options describe."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from cyclopts import Parameter

from setsup.errors import DataError, FactorError, did_you_mean
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import Common, option
from setsup_cli.parsing.model_files import log_left_out, model_files, search_models
from setsup_cli.parsing.parser import Subcommand, parse_known
from setsup_cli.parsing.settings import Setting, changed, helps, setting_fields
from setsup_cli.parsing.source import assignments, rows_where

if TYPE_CHECKING:
    from setsup.factors import FactorTable
    from setsup.scenes import Recipe, Renderer
    from setsup.scenes.recipes.model_folders import FoundModels

__all__ = [
    "RecipeOptions",
    "build_recipe",
    "build_renderer",
    "build_table",
    "list_recipes",
    "model_settings",
    "need_rendering",
    "resolve_options",
]

_METAVARS = {"size": "HEIGHT WIDTH", "count": "MIN MAX"}


def _recipes(context: object) -> Iterable[str]:
    return recipes()


@dataclass(frozen=True, kw_only=True)
class RecipeOptions(Common):
    """Options of subcommands that render recipes."""

    recipe: Annotated[
        str | None, option("[RECIPE]", "Recipe to render: object, room or shapes3d.", completer=_recipes)
    ] = field(default=None, kw_only=False)
    rows: Annotated[
        int | None,
        option("N", "Render N random rows instead of the grid; every factor is uniform over its levels."),
    ] = None
    ranges: Annotated[
        tuple[str, ...] | None,
        option("FACTOR=LOW:HIGH ...", "With --rows, draw these factors uniformly from numeric ranges."),
    ] = None
    where: Annotated[
        str | None, option("EXPRESSION", "Render only rows that satisfy an expression, such as \"shape != 'cube'\".")
    ] = None
    seed: Annotated[int, option("N", "Random seed.")] = 0
    renderer: Annotated[
        str, option("NAME", "Renderer: embree, gl, pyrender, or auto for the fastest on this machine.")
    ] = "auto"
    supersample: Annotated[
        int, option("N", "Average colors over N x N samples per pixel; other modalities are sampled at pixel centres.")
    ] = 1


def resolve_options(subcommand: Subcommand, words: Sequence[str]) -> Subcommand:
    """Add the options of the recipe that words name, or a list of the recipes."""
    recipe = parse_known(subcommand, words).recipe
    if recipe is None:
        # their descriptions would have to be imported
        listed = f"Recipes: {', '.join(recipes())} (`{subcommand.command}` describes them)."
        return subcommand._replace(help=f"{subcommand.help}\n\n{listed}")
    return _with_recipe(subcommand, recipe, any(word.partition("=")[0] == "--frames" for word in words))


def list_recipes(about: str, json: bool) -> None:
    """Print the recipes, and how to use them."""
    if json:
        show_json([{"recipe": name, "shows": shows(name)} for name in recipes()])
        return
    lines = [f"  {name:<9} {shows(name)}" for name in recipes()]
    say("\n".join(["recipes:", *lines, "", about]))


def _with_recipe(subcommand: Subcommand, name: str, in_frames: bool) -> Subcommand:
    kind = _kind(name, in_frames)
    # a subcommand may have another option of this name, and sets the number of frames itself
    own = {member.name for member in fields(subcommand.options)} | ({"frames"} if subcommand.name == "pairs" else set())
    settings = setting_fields(_usual(kind), [*_left_out(kind), *own.intersection({"frames"})])
    added = [*_model_fields(kind), *map(_with_metavar, settings)]
    if in_frames and subcommand.name == "pairs":
        about = option("FIRST SECOND", "Numbers of the two frames of a video to match; frame 0 is the first.")
        added.append(("frames", Annotated[tuple[int, int] | None, about], _absent()))
        about = option("N", "Plot N points, followed from the first of these frames to the second, instead of matches.")
        added.append(("tracks", Annotated[int | None, about], _absent()))
    if hasattr(kind, "sampled"):
        about = option("N", "Render N random views of each model from the upper hemisphere, instead of the grid.")
        views: Setting = ("views", Annotated[int | None, about], _absent())
        added.append(views)
    options = make_dataclass("Options", added, bases=(subcommand.options,), frozen=True, kw_only=True)
    lines = [f"{name}: {shows(name, in_frames)}"]
    if not in_frames and _in_frames(name):
        word = "FIRST SECOND" if subcommand.name == "pairs" else "N"
        more = f"`{subcommand.command} {name} --frames {word} --help` lists the options"
        does = "two frames of a video are matched" if subcommand.name == "pairs" else "videos are rendered"
        lines.append(f"With --frames {word}, {does}: {more}.")
    return Subcommand(subcommand.name, options, "\n\n".join(lines), name)


def _in_frames(name: str) -> str | None:
    """Class of a recipe's frames, if it has some."""
    from setsup.scenes.recipes import IN_FRAMES

    return IN_FRAMES.get(name)


def recipes() -> Mapping[str, str]:
    """Names of the recipes, and of their classes."""
    from setsup.scenes.recipes import RECIPES

    return RECIPES


def _kind(name: str, in_frames: bool = False) -> type:
    from setsup.scenes import recipes as known

    if name not in known.RECIPES:
        raise DataError(f"unknown recipe {name!r}{did_you_mean(name, known.RECIPES)} (`setsup render` lists them)")
    moving = _in_frames(name)
    if in_frames and moving is None:
        raise DataError(f"{name} has no frames; use --frames with {' or '.join(known.IN_FRAMES)}")
    kind: type = getattr(known, moving if in_frames and moving is not None else known.RECIPES[name])
    return kind


def _kind_of(options: Any) -> type:
    """Class of the recipe that options name."""
    return _kind(options.recipe, hasattr(options, "frames"))


def shows(name: str, in_frames: bool = False) -> str:
    """What a recipe shows, in a line."""
    return (_kind(name, in_frames).__doc__ or "").partition("\n")[0].partition(";")[0].rstrip(".")


def _usual(kind: type) -> Any:
    """A recipe with default settings, without validation, since required settings are missing."""
    recipe: Any = object.__new__(kind)
    for member in fields(kind):
        usual = None if member.default is MISSING else member.default
        made = usual if member.default_factory is MISSING else member.default_factory()
        object.__setattr__(recipe, member.name, made)
    return recipe


def _left_out(kind: type) -> list[str]:
    """Settings that have options of their own."""
    return ["seed", *_models(kind)]


def _models(kind: type) -> dict[str, bool]:
    """Settings that are models by name, and whether they are required."""
    needed = {member.name: member.default is MISSING for member in fields(kind)}
    models: dict[str, bool] = {}
    for name, hint in get_type_hints(kind).items():
        if name in needed and any(get_origin(part) is Mapping for part in (hint, *get_args(hint))):
            models[name] = needed[name]
    return models


def _model_fields(kind: type) -> Iterator[Setting]:
    described = helps(kind)
    for name, needed in _models(kind).items():
        which = described.get(name, "").partition(". ")[0].rstrip(".").removeprefix("Meshes ")
        about = f"Mesh files (OBJ, glTF, PLY …) {which}, or folders that are searched for them."
        hint = "" if needed else "generated"
        yield name, Annotated[tuple[Path, ...] | None, option("FILE|FOLDER ...", about, hint)], _absent()
    if _models(kind):
        about = "Top folder of materials and textures, if some are above the folder of the mesh, as in ShapeNet."
        yield "top", Annotated[Path | None, option("FOLDER", about, "the folder of each mesh")], _absent()


def _with_metavar(setting: Setting) -> Setting:
    """Name the numbers of a setting that has two."""
    name, kind, usual = setting
    if name not in _METAVARS:
        return setting
    inner, about = get_args(kind)
    return name, Annotated[inner, Parameter.combine(about, Parameter(metavar=_METAVARS[name]))], usual


def _absent() -> "Field[Any]":
    return field(default=None)  # type: ignore[arg-type]


def model_settings(options: Any) -> dict[str, tuple[Path, ...]]:
    """Files and folders that options give for settings of models."""
    given = {name: getattr(options, name) for name in _models(_kind_of(options))}
    return {name: paths for name, paths in given.items() if paths is not None}


def build_recipe(options: Any, found: "Mapping[str, FoundModels] | None" = None) -> "Recipe":
    """The recipe that options describe; `found` is what :func:`search_models` gives for them."""
    kind = _kind_of(options)
    given = changed(options, _usual(kind), _left_out(kind))
    if isinstance(given.get("frames"), tuple):  # the numbers of two frames
        given["frames"] = max(*given["frames"], 0) + 1
    if found is None:
        found = search_models(model_settings(options))
        log_left_out(found)
    for name, needed in _models(kind).items():
        if name in found:
            given[name] = model_files(found[name].models, options.top)
        elif needed:
            raise DataError(
                f"{options.recipe} renders your own meshes and requires --{name}: files, such as `--{name} chair.obj "
                f"table.glb`, or a folder of them"
            )
    if any(member.name == "seed" for member in fields(kind)):
        given["seed"] = options.seed
    recipe: Recipe = kind(**given)
    return recipe


def need_rendering(options: Any, rays: str | None = None) -> None:
    """Raise an error if no renderer works; `rays` says what else needs ray casting."""
    from setsup.scenes.renderers import need_rays, need_renderer

    if rays or options.recipe == "room":
        need_rays(rays or "rooms need")  # furniture is placed by rays
    need_renderer(options.renderer)


def build_renderer(options: Any) -> "str | Renderer":
    """Renderer that options name: a name, which other processes look up, or an object where it has options."""
    from setsup.scenes import renderer

    name: str = options.renderer
    return name if options.supersample == 1 else renderer(name, supersample=options.supersample)


def build_table(recipe: "Recipe", options: Any) -> "FactorTable | None":
    """Rows that options select; None for the grid of the recipe."""
    from setsup.factors import FactorTable
    from setsup.rendered.table import sampled

    views = getattr(options, "views", None)
    if views is not None and options.rows is not None:
        raise FactorError("--rows and --views are mutually exclusive; use only one of them")
    if options.ranges is not None and options.rows is None:
        raise FactorError("--ranges requires --rows N, the number of rows to draw from the ranges")
    table = None
    if options.rows is not None:
        table = sampled(
            recipe,
            options.rows,
            ranges=assignments(options.ranges or (), "--ranges", "low:high", _range),
            seed=options.seed,
        )
    elif views is not None:
        table = recipe.sampled(views)  # type: ignore[attr-defined]
    if options.where is None:
        return table
    table = FactorTable(recipe.factors) if table is None else table
    return table.select(rows_where(table, options.where))


def _range(word: str) -> tuple[float, float]:
    low, high = word.split(":")
    return float(low), float(high)
