"""``setsup pairs``: draw two views of scenes, and lines between the pixels that show the same point."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional

from setsup.errors import DataError
from setsup_cli.arguments import Json, MaybeNumber, MaybeText, MaybeWords, option
from setsup_cli.output import say, show_json, show_table
from setsup_cli.recipes import listed, made, recipes, shows, table, with_recipe
from setsup_cli.usage import words_given

if TYPE_CHECKING:
    from setsup.correspondence import PixelPairs
    from setsup.datasets.rendered import RenderedDataset

__all__ = ["HELP", "Options", "asked", "run"]

HELP = """\
To begin with: `setsup pairs room`. Views are drawn by a PairSampler: each scene equally often, and two different views
of it. Pixels of the first view are traced to the scene and on to the second; what the second does not see is drawn
apart. `setsup render RECIPE --matches N` keeps such pairs with the partner of every pixel."""

_STATES = ("visible", "occluded", "outside", "no_surface")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb, without those of a recipe."""

    recipe: Annotated[Positional[MaybeText], option("[RECIPE]", "What is drawn: object, room or shapes3d.")] = None
    draws: Annotated[int, option("N", "Pairs of views.", "(default: 5)")] = 5
    lines: Annotated[int, option("N", "Lines in each picture.", "(default: 24)")] = 24
    rows: Annotated[
        MaybeNumber, option("N", "Rows at random in place of the grid: every factor uniform over its levels.")
    ] = None
    ranges: Annotated[
        MaybeWords,
        option("FACTOR=LOW:HIGH ...", "With --rows, factors that are uniform over a range of numbers instead."),
    ] = None
    where: Annotated[MaybeText, option("EXPRESSION", "Rows that are drawn from, such as \"shape != 'cube'\".")] = None
    seed: Annotated[int, option("N", "Seed of all that is random.", "(default: 0)")] = 0
    renderer: Annotated[
        str, option("NAME", "What draws: embree, gl, pyrender, or the best that works here.", "(default: auto)")
    ] = "auto"
    out: Annotated[Path, option("FILE", "Picture that is written.", "(default: ./setsup-pairs.png)")] = Path(
        "setsup-pairs.png"
    )
    json: Json = False


def asked(words: Sequence[str]) -> tuple[type, str]:
    """Options of the recipe that words name, and help; the verb's own where none is named."""
    given = words_given(Options, words)[""]
    if not given:
        # what they show would have to be imported
        return Options, f"{HELP}\n\nRecipes: {', '.join(recipes())} (`setsup pairs` says what each of them shows)."
    return with_recipe(Options, given[0])


def run(options: Any) -> int:
    """Draw pairs of views and their matches, and say how many pixels of each kind there are."""
    if options.recipe is None:
        if options.json:
            show_json([{"recipe": name, "shows": shows(name)} for name in recipes()])
        else:
            say(f"{listed()}\n\n{HELP}")
        return 0
    for name in ("draws", "lines"):
        if getattr(options, name) < 1:
            raise DataError(f"--{name} must be 1 or more, not {getattr(options, name)}")
    import numpy as np

    from setsup.correspondence import PairSampler, spatial
    from setsup.datasets.rendered import RenderedDataset
    from setsup.files import written
    from setsup.reports import match_sheet

    recipe = made(options)
    dataset = RenderedDataset(recipe, table(recipe, options), options.renderer)
    rows = PairSampler(dataset, pairs=options.draws, seed=options.seed)[0].indices
    order = np.argsort(rows[:, 0], kind="stable")  # scenes are built once where their pairs follow one another
    images = dataset.fetch(rows[order], ["image"])["image"]
    found = [spatial(dataset.scene(one), dataset.camera(one), dataset.camera(two)) for one, two in rows[order].tolist()]
    about = [_about(dataset, one, two, pairs) for (one, two), pairs in zip(rows[order].tolist(), found, strict=True)]
    captions = [_caption(one) for one in about]
    title = f"{dataset.name}\nseed {options.seed}, drawn by {dataset.renderer_name}"
    sheet = match_sheet([(pair[0], pair[1]) for pair in images], found, captions, title, shown=options.lines)
    with written(options.out) as temporary:
        sheet.save(temporary, "PNG")
    if options.json:
        show_json({"recipe": recipe.name, "renderer": dataset.renderer_name, "pairs": about, "file": str(options.out)})
        return 0
    heads = ["scene", "views", *_STATES]
    body = [
        [_words(one["scene"]), " and ".join(map(_words, one["views"])), *(f"{one[state]:,}" for state in _STATES)]
        for one in about
    ]
    show_table(heads, body, right=list(_STATES))
    say()
    say(str(options.out))
    return 0


def _about(dataset: "RenderedDataset", one: int, two: int, pairs: "PixelPairs") -> dict[str, Any]:
    import numpy as np

    values = [dataset.values(row) for row in (one, two)]
    shared = {name: values[0][name] for name in dataset.pair_factors}
    views = [{name: value for name, value in row.items() if name not in shared} for row in values]
    counts = np.bincount(pairs.status, minlength=len(_STATES)).tolist()
    return {"rows": [one, two], "scene": shared, "views": views, **dict(zip(_STATES, counts, strict=True))}


def _caption(about: dict[str, Any]) -> str:
    return f"{_words(about['scene'])}: {' and '.join(map(_words, about['views']))}"


def _words(values: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
    )
