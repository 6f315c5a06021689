"""Recipes on the command line: which there are, their options, and the recipe and rows that options describe.

Options that all verbs of recipes have stand here once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from tyro.conf import Positional

from setsup.errors import DataError, FactorError, near
from setsup_cli.output import say, show_json
from setsup_cli.parsing.arguments import MaybeFolders, MaybeNumber, MaybePath, MaybeText, MaybeWords, option
from setsup_cli.parsing.settings import Setting, changed, helps, setting_fields
from setsup_cli.parsing.source import assignments
from setsup_cli.parsing.usage import words_given

if TYPE_CHECKING:
    from setsup.factors import FactorTable
    from setsup.scenes import Mesh, Recipe

__all__ = ["Drawn", "asked", "list_recipes", "made", "need_drawing", "table"]

_RecipeName = Annotated[Positional[MaybeText], option("[RECIPE]", "What is drawn: object, room or shapes3d.")]

_Rows = Annotated[
    MaybeNumber, option("N", "Rows at random in place of the grid: every factor uniform over its levels.")
]

_Ranges = Annotated[
    MaybeWords,
    option("FACTOR=LOW:HIGH ...", "With --rows, factors that are uniform over a range of numbers instead."),
]

_Where = Annotated[MaybeText, option("EXPRESSION", "Only rows such as \"shape != 'cube'\".")]

_Seed = Annotated[int, option("N", "Seed of all that is random.", "(default: 0)")]

_PARTS = {"size": "HEIGHT WIDTH", "count": "LEAST MOST"}

_RendererName = Annotated[
    str, option("NAME", "What draws: embree, gl, pyrender, or the best that works here.", "(default: auto)")
]


@dataclass(frozen=True)
class Drawn:
    """Options of verbs that draw recipes."""

    recipe: _RecipeName = None
    rows: _Rows = None
    ranges: _Ranges = None
    where: _Where = None
    seed: _Seed = 0
    renderer: _RendererName = "auto"


def asked(verb: str, base: type, about: str, words: Sequence[str]) -> tuple[type, str]:
    """Options of a verb with those of the recipe that words name, and help; the verb's own where none is named."""
    given = words_given(base, words)[""]
    if not given:
        # what they show would have to be imported
        return base, f"{about}\n\nRecipes: {', '.join(recipes())} (`setsup {verb}` says what each of them shows)."
    return with_recipe(base, given[0])


def list_recipes(about: str, json: bool) -> None:
    """Say what recipes there are, and what to do with them."""
    if json:
        show_json([{"recipe": name, "shows": shows(name)} for name in recipes()])
        return
    lines = [f"  {name:<9} {shows(name)}" for name in recipes()]
    say("\n".join(["recipes:", *lines, "", about]))


def with_recipe(base: type, name: str) -> tuple[type, str]:
    """Options of a verb together with those of a recipe, and the recipe's line for the help."""
    kind = _kind(name)
    added = [*_model_fields(kind), *map(_in_words, setting_fields(_usual(kind), _left_out(kind)))]
    if hasattr(kind, "sampled"):
        about = option("N", "Random views of each model in place of the grid, even over the half sphere.")
        views: Setting = ("views", Annotated[MaybeNumber, about], _absent())
        added.append(views)
    return make_dataclass("Options", added, bases=(base,), frozen=True), f"{name}: {shows(name)}"


def recipes() -> Mapping[str, str]:
    """Names of the recipes, and of their classes."""
    from setsup.scenes.recipes import RECIPES

    return RECIPES


def _kind(name: str) -> type:
    from setsup.scenes import recipes as known

    if name not in known.RECIPES:
        raise DataError(f"there is no recipe {name!r}{near(name, known.RECIPES)} (`setsup render` lists them)")
    found: type = getattr(known, known.RECIPES[name])
    return found


def shows(name: str) -> str:
    """What a recipe shows, in a line."""
    return (_kind(name).__doc__ or "").partition("\n")[0].partition(";")[0].rstrip(".")


def _usual(kind: type) -> Any:
    """A recipe that has all options at their defaults and was never checked, for what must be given is missing."""
    found: Any = object.__new__(kind)
    for member in fields(kind):
        usual = None if member.default is MISSING else member.default
        made = usual if member.default_factory is MISSING else member.default_factory()
        object.__setattr__(found, member.name, made)
    return found


def _left_out(kind: type) -> list[str]:
    """Options that are given otherwise."""
    return ["seed", *_models(kind)]


def _models(kind: type) -> dict[str, bool]:
    """Options that are models by name, and whether they must be given."""
    needed = {member.name: member.default is MISSING for member in fields(kind)}
    found: dict[str, bool] = {}
    for name, hint in get_type_hints(kind).items():
        if name in needed and any(get_origin(part) is Mapping for part in (hint, *get_args(hint))):
            found[name] = needed[name]
    return found


def _model_fields(kind: type) -> Iterator[Setting]:
    described = helps(kind)
    for name, needed in _models(kind).items():
        about = f"Mesh files (OBJ, glTF, PLY …). {described.get(name, '').partition('. ')[0].rstrip('.')}."
        hint = "" if needed else "(default: made up)"
        yield name, Annotated[MaybeFolders, option("FILE ...", about, hint)], _absent()
    if _models(kind):
        about = "Folder in which materials and textures may lie, where some lie above the mesh, as ShapeNet's."
        yield "top", Annotated[MaybePath, option("FOLDER", about, "(default: that of each mesh)")], _absent()


def _in_words(setting: Setting) -> Setting:
    """Call the numbers of a setting what they are, where they are more than one."""
    name, kind, usual = setting
    if name not in _PARTS:
        return setting
    inner, about = get_args(kind)
    return name, Annotated[inner, replace(about, metavar=_PARTS[name])], usual


def _absent() -> "Field[Any]":
    return field(default=None)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _MeshFile:
    """A mesh whose textures may lie anywhere below a folder."""

    path: Path
    top: Path

    def __call__(self) -> "Mesh":
        from setsup.scenes import load_mesh

        return load_mesh(self.path, top=self.top)

    @property
    def key(self) -> str:
        """Tells the content of its files, as for a plain path."""
        from setsup.scenes.recipes.models import identity

        return f"{identity(self.path, self.top)} with all textures"


def made(options: Any) -> "Recipe":
    """The recipe that options describe."""
    from setsup.scenes.recipes import named_models

    kind = _kind(options.recipe)
    given = changed(options, _usual(kind), _left_out(kind))
    for name, needed in _models(kind).items():
        files = getattr(options, name)
        if files is not None:
            named = named_models(files)
            top = options.top
            given[name] = named if top is None else {each: _MeshFile(path, top) for each, path in named.items()}
        elif needed:
            raise DataError(f"{options.recipe} draws meshes of yours: --{name} chair.obj table.glb")
    if any(member.name == "seed" for member in fields(kind)):
        given["seed"] = options.seed
    recipe: Recipe = kind(**given)
    return recipe


def need_drawing(options: Any, rays: str | None = None) -> None:
    """Refuse to begin where nothing draws; `rays` says what needs them beside the recipe."""
    from setsup.scenes.renderers import need_rays, need_renderer

    if rays or options.recipe == "room":
        need_rays(rays or "rooms need")  # what stands in them is put there by rays
    need_renderer(options.renderer)


def table(recipe: "Recipe", options: Any) -> "FactorTable | None":
    """Rows that options ask for; None for the grid of the recipe."""
    from setsup.factors import FactorTable
    from setsup.rendered.table import sampled

    views = getattr(options, "views", None)
    if views is not None and options.rows is not None:
        raise FactorError("give --rows or --views, not both: each is a way to draw views of its own")
    if options.ranges is not None and options.rows is None:
        raise FactorError("--ranges goes with --rows N, the number of rows that are drawn from them")
    found = None
    if options.rows is not None:
        found = sampled(recipe, options.rows, ranges=_ranges(options.ranges or ()), seed=options.seed)
    elif views is not None:
        found = recipe.sampled(views)  # type: ignore[attr-defined]
    if options.where is None:
        return found
    found = (FactorTable(recipe.factors) if found is None else found).where(options.where)
    if not len(found):
        raise FactorError(f"--where {options.where!r} leaves no row")
    return found


def _ranges(words: Sequence[str]) -> dict[str, tuple[float, float]]:
    found = {}
    for name, word in assignments(words, "--ranges", "range").items():
        low, _, high = word.partition(":")
        try:
            found[name] = float(low), float(high)
        except ValueError:
            raise FactorError(f"--ranges {name}={word}: expected LOW:HIGH, as in {name}=0:60") from None
    return found
