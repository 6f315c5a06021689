"""``setsup export RENDERS FOLDER``: a folder of renders in a layout that other projects read."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from setsup.errors import DataError, advised_for_command
from setsup_cli.output import show_result
from setsup_cli.parsing.arguments import Common, option
from setsup_cli.parsing.model_files import MODELS, model_files, search_models
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.stopping import sigterm_as_interrupt

if TYPE_CHECKING:
    from setsup.scenes.recipes.models import Model

__all__ = ["SUBCOMMAND", "Options", "is_source", "run"]

_HELP = """\
Examples: `setsup export views coco --layout coco`, `setsup export frames flow --layout sintel`. coco: boxes, masks and
amodal masks. bop: scenes with poses, masks and models, in millimetres. transforms: transforms.json for nerfstudio and
instant-ngp. tap-vid: videos with tracks of points. sintel: exact flow as .flo. kitti: exact flow as PNG. FOLDER appears
when all files are written. An error names the modalities that a layout needs and the folder lacks."""

_OBJECTS = ("rendered object", "rendered object-frames")
_OPTIONS = ("layout", "scene", "names", "models", "points", "seed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    """Options with a folder of renders."""

    renders: Annotated[Path, option("RENDERS", "Folder of `setsup render`.")] = field(kw_only=False)
    folder: Annotated[Path, option("FOLDER", "Folder to write; must be new or empty.")] = field(kw_only=False)
    layout: Annotated[
        Literal["bop", "coco", "kitti", "sintel", "tap-vid", "transforms"],
        option("bop|coco|kitti|sintel|tap-vid|transforms", "Layout of the files."),
    ]
    scene: Annotated[
        tuple[str, ...] | None,
        option(
            "FACTOR ...",
            "Factors in which the views of a scene, or the frames of a video, agree.",
            "those of the rendering",
        ),
    ] = None
    names: Annotated[
        tuple[str, ...] | None,
        option("NAME ...", "With coco and bop, names of the instances to annotate, such as chair table.", "all"),
    ] = None
    models: Annotated[
        tuple[Path, ...] | None,
        option(
            "FILE|FOLDER ...",
            "With bop, meshes that were rendered by `setsup render object --models`.",
            f"those that RENDERS/{MODELS} lists",
        ),
    ] = None
    top: Annotated[Path | None, option("FOLDER", "With bop, top folder of textures, as for `setsup render`.")] = None
    points: Annotated[int, option("N", "With tap-vid, number of tracks of each video.")] = 256
    seed: Annotated[int, option("N", "With tap-vid, random seed of the points.")] = 0


SUBCOMMAND = Subcommand(
    "export",
    Options,
    _HELP,
    "--layout",
    summary="write a folder of renders in the files of COCO, BOP, nerfstudio, TAP-Vid, Sintel or KITTI",
)


def is_source(path: str) -> bool:
    """Whether a path is a folder of renders."""
    from setsup.rendered.folder import is_rendered

    return is_rendered(path)


def run(options: Options) -> int:
    """Write and print."""
    from setsup.exports import export_renders
    from setsup.rendered.folder import open_rendered

    dataset = open_rendered(options.renders)
    models = _models(options, dataset) if options.layout == "bop" else None
    with sigterm_as_interrupt(), advised_for_command({name: f"--{name}" for name in _OPTIONS}):
        done = export_renders(
            dataset,
            options.folder,
            options.layout,
            scene=options.scene,
            names=options.names,
            models=models,
            points=options.points,
            seed=options.seed,
        )
    about = {
        "renders": str(dataset.folder),
        "folder": str(done.folder),
        "layout": options.layout,
        "rows": done.rows,
        "files": done.files,
    }
    if models is not None:
        about["models"] = len(models)
    show_result(options.json, about, _words(about))
    return 0


def _words(about: Mapping[str, Any]) -> list[str]:
    models = f", {about['models']:,} models" if "models" in about else ""
    return [f"{about['layout']}: {about['rows']:,} images, {about['files']:,} files{models}", about["folder"]]


def _models(options: Options, dataset: Any) -> "dict[str, Model]":
    """Meshes of single objects, in the size in which they were rendered; of rooms none."""
    if dataset.name not in _OBJECTS:
        if options.models is not None:
            raise DataError(f"--models are those of `setsup render object`, not of {dataset.name}; leave it out")
        return {}
    from setsup.exports.bop import object_model

    if options.models is not None:
        files = search_models({"models": options.models})["models"].models
    else:
        files = _listed(dataset.folder / MODELS)
    known = set(dataset.factors["model"].levels)
    models = model_files({name: path for name, path in files.items() if name in known}, options.top)
    if files and not models:
        raise DataError(
            f"none of the meshes is a model of {dataset.folder}, such as {dataset.factors['model'].levels[0]!r}; pass "
            "--models as for `setsup render`"
        )
    return {name: partial(object_model, model) for name, model in models.items()}


def _listed(path: Path) -> dict[str, Path]:
    """Models of a table that `setsup render` wrote; none where there is none."""
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["rendered"] == "True"]
        return {row["model"]: Path(row["file"]) for row in rows}
    except (OSError, ValueError, KeyError, csv.Error) as error:
        raise DataError(f"{path} is damaged ({error}); pass --models") from None
