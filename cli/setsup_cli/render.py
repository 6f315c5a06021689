"""``setsup render``: draw a recipe to a folder, or go on where that was stopped."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from tyro.conf import Positional

from setsup.errors import DataError, FactorError, near
from setsup_cli.arguments import Json, MaybeFolders, MaybeNumber, MaybePath, MaybeText, MaybeWords, option
from setsup_cli.output import say, show_json
from setsup_cli.settings import Setting, changed, helps, setting_fields
from setsup_cli.source import assignments
from setsup_cli.usage import words_given

if TYPE_CHECKING:
    from setsup.datasets.rendered import RenderedDataset
    from setsup.datasets.rendered_folder import RenderedFolder
    from setsup.factors import FactorTable
    from setsup.scenes import Mesh, Recipe

__all__ = ["HELP", "Options", "asked", "run"]

HELP = """\
To begin with: `setsup render shapes3d --out shapes --rows 500`. The full grid of a recipe's factors is drawn where
neither --rows nor --where asks for less. All options of a recipe: `setsup render shapes3d --help`. Stopped and started
again, by Ctrl-C or whatever else, the same command goes on; the bytes in the folder are the same for any number of
processes. Afterwards the folder is a data set: `setsup sample shapes --inactive shape`."""

_OUTPUTS = "image|depth|normals|instances|triangles ..."


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb, without those of a recipe."""

    recipe: Annotated[Positional[MaybeText], option("[RECIPE]", "What is drawn: object, room or shapes3d.")] = None
    out: Annotated[MaybePath, option("FOLDER", "Folder of the pictures: new, or one that was begun so.")] = None
    modalities: Annotated[MaybeWords, option(_OUTPUTS, "What is kept beside the cameras.", "(default: all)")] = None
    rows: Annotated[
        MaybeNumber, option("N", "Rows at random in place of the grid: every factor uniform over its levels.")
    ] = None
    ranges: Annotated[
        MaybeWords,
        option("FACTOR=LOW:HIGH ...", "With --rows, factors that are uniform over a range of numbers instead."),
    ] = None
    where: Annotated[MaybeText, option("EXPRESSION", "Rows that are drawn, such as \"shape != 'cube'\".")] = None
    seed: Annotated[int, option("N", "Seed of all that is random.", "(default: 0)")] = 0
    renderer: Annotated[
        str, option("NAME", "What draws: embree, gl, pyrender, or the best that works here.", "(default: auto)")
    ] = "auto"
    processes: Annotated[int, option("N", "Processes that draw.", "(default: 1)")] = 1
    json: Json = False


def asked(words: Sequence[str]) -> tuple[type, str]:
    """Options of the recipe that words name, and help; the verb's own where none is named."""
    given = words_given(Options, words)[""]
    if not given:
        # what they show would have to be imported
        return Options, f"{HELP}\n\nRecipes: {', '.join(_recipes())} (`setsup render` says what each of them shows)."
    kind = _kind(given[0])
    added = [*_model_fields(kind), *setting_fields(_usual(kind), _left_out(kind))]
    if hasattr(kind, "sampled"):
        about = option("N", "Random views of each model in place of the grid, even over the half sphere.")
        views: Setting = ("views", Annotated[MaybeNumber, about], _absent())
        added.append(views)
    return make_dataclass("Options", added, bases=(Options,), frozen=True), f"{given[0]}: {_shows(kind)}"


def run(options: Any) -> int:
    """Draw and say how it is opened, or list the recipes."""
    if options.recipe is None:
        if options.json:
            show_json([{"recipe": name, "shows": _shows(_kind(name))} for name in _recipes()])
        else:
            say(f"{_listed()}\n\n{HELP}")
        return 0
    if options.out is None:
        raise DataError(f"say where the pictures go: `setsup render {options.recipe} --out FOLDER`")
    from setsup.datasets.rendered import RenderedDataset
    from setsup.datasets.rendered_folder import drawn_rows
    from setsup.datasets.rendered_writing import render

    recipe = _made(options)
    dataset = RenderedDataset(recipe, _table(recipe, options), options.renderer)
    before, _ = drawn_rows(options.out)
    if not options.json:
        for line in _what(dataset, options.out, before):
            say(line)
    try:
        found = render(dataset, options.out, options.modalities, processes=options.processes)
    except KeyboardInterrupt:
        done, rows = drawn_rows(options.out)
        raise KeyboardInterrupt(f"at {done:,} of {rows or len(dataset):,} pictures; the same command goes on") from None
    about = _about(found, before)
    if options.json:
        show_json(about)
    else:
        for line in _words(about):
            say(line)
    return 0


# -- recipes and their options -----------------------------------------------------------------------------------------


def _recipes() -> Mapping[str, str]:
    from setsup.scenes.recipes import RECIPES

    return RECIPES


def _kind(name: str) -> type:
    from setsup.scenes import recipes

    if name not in recipes.RECIPES:
        raise DataError(f"there is no recipe {name!r}{near(name, recipes.RECIPES)} (`setsup render` lists them)")
    found: type = getattr(recipes, recipes.RECIPES[name])
    return found


def _shows(kind: type) -> str:
    return (kind.__doc__ or "").partition("\n")[0].partition(";")[0].rstrip(".")


def _listed() -> str:
    """Recipes with a line each."""
    return "\n".join(["recipes:", *(f"  {name:<9} {_shows(_kind(name))}" for name in _recipes())])


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

        return f"{identity(self.path)} with all textures"


def _made(options: Any) -> "Recipe":
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


def _table(recipe: "Recipe", options: Any) -> "FactorTable | None":
    """Rows that options ask for; None for the grid of the recipe."""
    from setsup.datasets.rendered_table import sampled
    from setsup.factors import FactorTable

    views = getattr(options, "views", None)
    if views is not None and options.rows is not None:
        raise FactorError("give --rows or --views, not both: each is a way to draw views of its own")
    if options.ranges is not None and options.rows is None:
        raise FactorError("--ranges goes with --rows N, the number of rows that are drawn from them")
    table = None
    if options.rows is not None:
        table = sampled(recipe, options.rows, ranges=_ranges(options.ranges or ()), seed=options.seed)
    elif views is not None:
        table = recipe.sampled(views)  # type: ignore[attr-defined]
    if options.where is None:
        return table
    found = (FactorTable(recipe.factors) if table is None else table).where(options.where)
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


# -- what is said ------------------------------------------------------------------------------------------------------


def _what(dataset: "RenderedDataset", folder: Path, before: int) -> Iterator[str]:
    height, width = dataset.recipe.size
    done = f", of which {before:,} are there" if before else ""
    yield f"{dataset.recipe.name}: {len(dataset):,} pictures of {height} × {width} pixels{done}, to {folder}"


def _about(found: "RenderedFolder", before: int) -> dict[str, Any]:
    """What is said of a finished folder, for machines."""
    discrete = [one.name for one in found.factors.factors if not one.continuous]
    varied = [name for name in discrete if (found.factors.counts(name) > 1).sum() > 1]
    held, folder = (varied or discrete)[:1], str(found.folder)
    return {
        "folder": folder,
        "recipe": found.name.removeprefix("rendered "),
        "renderer": found.renderer_name,
        "rows": len(found),
        "drawn_now": len(found) - before,
        "factors": {one.name: len(one) or None for one in found.factors.factors},
        "modalities": {
            name: {"shape": list(one.shape), "dtype": one.dtype, "unit": one.unit, "file": f"{name}.npy"}
            for name, one in found.modalities.items()
        },
        "open": f"setsup.load({folder!r})",
        "next": shlex.join(["setsup", *(["sample", folder, "--inactive", *held] if held else ["info", folder])]),
    }


def _words(about: Mapping[str, Any]) -> Iterator[str]:
    yield f"drawn by {about['renderer']}, {about['drawn_now']:,} now"
    factors = [f"{name} {levels or '~'}" for name, levels in about["factors"].items()]
    yield f"factors: {', '.join(factors)}"
    yield f"modalities: {', '.join(about['modalities'])}; cameras, and names of instances"
    yield about["open"]
    yield about["next"]
