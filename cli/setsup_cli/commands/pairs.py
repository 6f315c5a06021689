"""``setsup pairs``: draw two views of scenes, and lines between the pixels that show the same point."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from setsup.errors import DataError
from setsup.files.expand_user import expanded
from setsup_cli.output import check_picture, say, show_json, show_table
from setsup_cli.parsing import recipes
from setsup_cli.parsing.arguments import Json, option
from setsup_cli.parsing.recipes import Drawn, list_recipes, made, need_drawing, table

if TYPE_CHECKING:
    from setsup.correspondence import PixelPairs
    from setsup.rendered.dataset import RenderedDataset

__all__ = ["HELP", "Options", "asked", "run"]

HELP = """\
To begin with: `setsup pairs room`. Views are drawn by a PixelPairSampler: each scene equally often, and two
different views
of it. Pixels of the first view are traced to the scene and on to the second; what the second does not see is drawn
apart. `setsup render RECIPE --matches N` keeps such pairs with the partner of every pixel."""

_STATES = ("visible", "occluded", "outside", "no_surface")


@dataclass(frozen=True, slots=True)
class Options(Drawn):
    """Options of the verb, without those of a recipe."""

    draws: Annotated[int, option("N", "Pairs of views.", "(default: 5)")] = 5
    lines: Annotated[int, option("N", "Lines in each picture.", "(default: 24)")] = 24
    out: Annotated[Path, option("FILE", "Picture that is written.", "(default: ./setsup-pairs.png)")] = Path(
        "setsup-pairs.png"
    )
    json: Json = False


def asked(words: Sequence[str]) -> tuple[type, str]:
    """Options and help; with those of the recipe that words name."""
    return recipes.asked("pairs", Options, HELP, words)


def run(options: Any) -> int:
    """Draw pairs of views and their matches, and say how many pixels of each kind there are."""
    if options.recipe is None:
        list_recipes(HELP, options.json)
        return 0
    need_drawing(options, "matches need")
    for name in ("draws", "lines"):
        if getattr(options, name) < 1:
            raise DataError(f"--{name} must be 1 or more, not {getattr(options, name)}")
    out = expanded(options.out)
    check_picture(out)
    import numpy as np

    from setsup.correspondence import PixelPairSampler, spatial
    from setsup.files import written
    from setsup.rendered.dataset import RenderedDataset
    from setsup.reports import match_sheet

    recipe = made(options)
    dataset = RenderedDataset(recipe, table(recipe, options), options.renderer)
    rows = PixelPairSampler(dataset, pairs=options.draws, seed=options.seed)[0].indices
    order = np.argsort(rows[:, 0], kind="stable")  # scenes are built once where their pairs follow one another
    images = dataset.fetch(rows[order], ["image"])["image"]
    found = [spatial(dataset.scene(one), dataset.camera(one), dataset.camera(two)) for one, two in rows[order].tolist()]
    about = [_about(dataset, one, two, pairs) for (one, two), pairs in zip(rows[order].tolist(), found, strict=True)]
    captions = [_caption(one) for one in about]
    title = f"{dataset.name}\nseed {options.seed}, drawn by {dataset.renderer_name}"
    sheet = match_sheet([(pair[0], pair[1]) for pair in images], found, captions, title, shown=options.lines)
    with written(out) as temporary:
        sheet.save(temporary, "PNG")
    if options.json:
        show_json({"recipe": recipe.name, "renderer": dataset.renderer_name, "pairs": about, "file": str(out)})
        return 0
    heads = ["scene", "views", *_STATES]
    body = [
        [_words(one["scene"]), " and ".join(map(_words, one["views"])), *(f"{one[state]:,}" for state in _STATES)]
        for one in about
    ]
    show_table(heads, body, right=list(_STATES))
    say()
    say(str(out))
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
