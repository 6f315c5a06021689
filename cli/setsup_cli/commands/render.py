"""``setsup render``: draw a recipe to a folder, or go on where that was stopped."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from setsup.errors import DataError
from setsup.files import readable_size
from setsup_cli.output import say, show_json
from setsup_cli.parsing import recipes
from setsup_cli.parsing.arguments import Json, MaybeNumber, MaybePath, MaybeWords, option
from setsup_cli.parsing.recipes import Drawn, list_recipes, made, need_drawing, table
from setsup_cli.parsing.workers import On, RayAddress, RayGpus, cluster
from setsup_cli.stopping import terminated

if TYPE_CHECKING:
    from setsup.rendered.folder import RenderedFolder
    from setsup.rendered.layout import Layout

__all__ = ["HELP", "Options", "asked", "run"]

HELP = """\
To begin with: `setsup render shapes3d --out shapes --rows 500`. The full grid of a recipe's factors is drawn where
neither --rows nor --where asks for less. All options of a recipe: `setsup render shapes3d --help`. Stopped and started
again, by Ctrl-C, SIGTERM or whatever else, the same command goes on; the bytes in the folder are the same for any
number of processes or machines. Afterwards the folder is a data set: `setsup sample shapes --inactive shape`."""

_OUTPUTS = "image|depth|normals|instances|triangles|partners|status ..."
_LARGE = 1_000_000_000  # bytes, of which it is said how to have fewer


@dataclass(frozen=True, slots=True)
class Options(Drawn):
    """Options of the verb, without those of a recipe."""

    out: Annotated[MaybePath, option("FOLDER", "Folder of the pictures: new, or one that was begun so.")] = None
    modalities: Annotated[MaybeWords, option(_OUTPUTS, "What is kept beside the cameras.", "(default: all)")] = None
    matches: Annotated[
        MaybeNumber,
        option("N", "Pairs of views of one scene in place of single ones, with the partner of every pixel."),
    ] = None
    skip_broken: Annotated[
        bool, option(None, "Finish without rows that cannot be drawn; FOLDER/failed.json lists them.")
    ] = False
    processes: Annotated[int, option("N", "Processes that draw.", "(default: 1)")] = 1
    on: On = None
    ray_address: RayAddress = None
    ray_gpus: RayGpus = 0.0
    json: Json = False


def asked(words: Sequence[str]) -> tuple[type, str]:
    """Options and help; with those of the recipe that words name."""
    return recipes.asked("render", Options, HELP, words)


def run(options: Any) -> int:
    """Draw and say how it is opened, or list the recipes."""
    if options.recipe is None:
        list_recipes(HELP, options.json)
        return 0
    if options.out is None:
        raise DataError(f"say where the pictures go: `setsup render {options.recipe} --out FOLDER`")
    from setsup.rendered.dataset import RenderedDataset
    from setsup.rendered.folder import drawn_rows
    from setsup.rendered.writing import render

    on = cluster(options.on, options.ray_address, options.ray_gpus)
    need_drawing(options, None if options.matches is None else "matches need")
    recipe = made(options)
    rows = table(recipe, options)
    if options.matches is None:
        dataset = RenderedDataset(recipe, rows, options.renderer)
    else:
        from setsup.correspondence import RenderedPairs, pair_table

        views = pair_table(recipe, options.matches, factors=rows, seed=options.seed)
        dataset = RenderedPairs(recipe, views, options.renderer)
    before = 0

    def begun(layout: "Layout", there: int) -> None:
        # not earlier: what is refused is not announced, and whoever waited for another process counts what is left
        nonlocal before
        before = there
        if not options.json:
            say(_what(layout, there, options.out))

    try:
        with terminated():
            found = render(
                dataset,
                options.out,
                options.modalities,
                processes=options.processes,
                on=on,
                skip_broken=options.skip_broken,
                begun=begun,
            )
    except KeyboardInterrupt:
        done, total = drawn_rows(options.out)
        raise KeyboardInterrupt(
            f"at {done:,} of {total or len(dataset):,} pictures; the same command goes on"
        ) from None
    about = _about(found, before)
    if options.json:
        show_json(about)
    else:
        for line in _words(about):
            say(line)
    return 0


# -- what is said ------------------------------------------------------------------------------------------------------


def _what(layout: "Layout", there: int, folder: Path) -> str:
    height, width = layout.size
    done = f", of which {there:,} are there" if there else ""
    size, rest = layout.size_on_disk, ""
    if size > _LARGE and there < layout.rows and "image" in layout.modalities and len(layout.modalities) > 1:
        images = replace(layout, modalities={"image": layout.modalities["image"]}).size_on_disk
        rest = f"; `--modalities image` keeps {readable_size(images)}"
    pictures = f"{layout.rows:,} pictures of {height} × {width} pixels"
    return f"{layout.recipe}: {pictures}, {readable_size(size)}{done}, to {folder}{rest}"


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
        "left_out": found.left_out,
        "drawn_now": len(found) - before,
        "factors": {one.name: len(one) or None for one in found.factors.factors},
        "modalities": {
            name: {"shape": list(one.shape), "dtype": one.dtype, "unit": one.unit, "file": f"{name}.npy"}
            for name, one in found.modalities.items()
        },
        "open": f"setsup.open({folder!r})",
        "next": shlex.join(["setsup", *(["sample", folder, "--inactive", *held] if held else ["info", folder])]),
    }


def _words(about: Mapping[str, Any]) -> Iterator[str]:
    yield f"drawn by {about['renderer']}, {about['drawn_now']:,} now"
    if about["left_out"]:
        yield f"{about['left_out']:,} rows cannot be drawn and are left out: {about['folder']}/failed.json lists them"
    factors = [f"{name} {levels or '~'}" for name, levels in about["factors"].items()]
    yield f"factors: {', '.join(factors)}"
    yield f"modalities: {', '.join(about['modalities'])}; cameras, and names of instances"
    yield about["open"]
    yield about["next"]
