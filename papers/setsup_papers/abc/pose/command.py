"""Estimate the pose of an object in photographs from the nearest of its renderings."""

import csv
import io
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from setsup.errors import DataError, FactorError, SetsupError, require_modules
from setsup.files.disk import need_writable
from setsup.files.expand_user import expanded
from setsup_cli.output import say, show_json
from setsup_cli.output_paths import Force, free_path, is_missing_or_equal, moved
from setsup_cli.parsing.arguments import Checkpoint, Common, DatasetOptions, Device, Named, OwnPreset, Root, Split
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.source import check_root, open_source
from setsup_cli.runs import check_device, describe_run, opened
from setsup_cli.stopping import sigterm_as_interrupt

if TYPE_CHECKING:
    from setsup.arrays import Rows
    from setsup.datasets import Dataset
    from setsup_papers.abc.pose.estimate import PoseEstimates
    from setsup_papers.abc.pose.photographs import BoxedPhotographs

__all__ = ["HELP", "Options", "run"]

HELP = """\
Example: `setsup render object --models car.obj --views 1800 --out renders`, then `setsup pose
runs/abc/table1-cars-small/seed-0 photos --codebook renders --boxes boxes.csv`. Each photograph, or each box in it, is
assigned the pose of the rendering whose embedding is nearest by cosine similarity. The command writes poses.csv, with
one line per photograph or box (azimuth, elevation and theta in degrees, and the disagreement of the nearest
renderings), and sheet.png, which shows the photographs with their nearest renderings.

Angles follow Pascal3D+. At azimuth 0, the camera is in front of the object; at azimuth 90, it is on the object's left
(the +x side of a model that faces -y with z up). Elevation is the angle of the camera above the ground plane; theta
rotates the image in its plane."""

_POSES, _SHEET = "poses.csv", "sheet.png"
_HEADS = (
    *("file", "left", "top", "right", "bottom"),
    *("azimuth_deg", "elevation_deg", "theta_deg", "disagreement_deg", "cosine", "nearest_row"),
)
_DIGITS = 4  # decimals of angles and cosines


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    run: Annotated[Path, declared("RUN", "Folder of a run of `setsup train`.")] = field(kw_only=False)
    photographs: Annotated[
        tuple[Path, ...], declared("PHOTOGRAPHS ...", "Folder, zip or tar of photographs, or image files.")
    ] = field(kw_only=False)
    codebook: Annotated[
        str,
        declared(
            "DATASET",
            "Renderings with poses: folder written by `setsup render`, .npz file, CSV file, or name listed by `setsup "
            "datasets`, with the modality 'rotation', or the factors 'azimuth' and 'elevation' in degrees.",
        ),
    ]
    boxes: Annotated[
        Path | None,
        declared(
            "FILE.csv",
            "Bounding boxes of objects: columns file, left, top, right and bottom, in pixels from the upper left "
            "corner; a photograph may have several.",
            "whole photographs",
        ),
    ] = None
    root: Root = None
    split: Split = None
    option: DatasetOptions = None
    where: Annotated[
        str | None,
        declared(
            "EXPRESSION",
            "Use only renderings that satisfy an expression, such as \"elevation < 30 and model == 'coupe'\".",
        ),
    ] = None
    nearest: Annotated[int, declared("N", "Number of nearest renderings to compare and show.")] = 5
    shown: Annotated[int, declared("N", "Maximum number of photographs on the sheet.")] = 50
    embedding: Annotated[str | None, declared("NAME", "Name of the embedding, if the method has several.")] = None
    checkpoint: Checkpoint = "last"
    preset: OwnPreset = None
    device: Device = None
    out: Annotated[Path, declared("FOLDER", "Output folder.", alias="-o")] = Path("setsup-pose")
    force: Force = False


def run(options: Options) -> int:
    """Look poses up, write, print."""
    for name in ("nearest", "shown"):
        if getattr(options, name) < 1:
            raise SetsupError(f"--{name} must be 1 or more, not {getattr(options, name)}")
    require_modules("pose needs", "torch", "lightning")
    from setsup.experiments import load_trained
    from setsup_papers.abc.pose.estimate import estimate_poses, image_size
    from setsup_papers.abc.pose.photo_boxes import read_boxes
    from setsup_papers.abc.pose.photographs import open_photographs

    check_root(options.root)
    check_device(options.device)
    out = expanded(options.out)
    for file in (_POSES, _SHEET):
        need_writable(out / file)
    opened_run = opened(options.run, options.preset, options.checkpoint)
    if opened_run.preset.data is None:
        raise SetsupError(
            f"{opened_run.preset.name} does not train a method, so its runs have no embeddings; choose another run"
        )
    boxes = None if options.boxes is None else read_boxes(options.boxes)
    codebook, numbers = _codebook(options)
    trained = load_trained(opened_run, device=options.device)
    size = image_size(trained, codebook)
    photographs = open_photographs(options.photographs, boxes, size)
    if not options.json:
        for line in describe_run(opened_run):
            say(line)
        objects = f"{len(photographs):,} object{'s' * (len(photographs) != 1)}"
        say(f"{objects}, looked up among {len(codebook):,} rendering{'s' * (len(codebook) != 1)}, on {trained.device}")
        if photographs.boxless:
            say(f"omitted, because they have no box: {photographs.boxless:,}")
    try:
        with sigterm_as_interrupt():
            poses = estimate_poses(
                trained, photographs, codebook, options.nearest, size=size, embedding=options.embedding
            )
    except SetsupError:
        raise
    except (RuntimeError, ValueError, LookupError) as error:  # what a network raises for images of another size
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise SetsupError(
            f"the method of {opened_run.folder} could not embed images of {size[0]} × {size[1]} pixels: {reason}"
        ) from error
    lines = _lines(photographs, poses, numbers)
    folder = _write(out, lines, _sheet(photographs, codebook, poses, options), force=options.force)
    about: dict[str, Any] = {
        "run": str(opened_run.folder),
        "checkpoint": opened_run.chosen or "last",
        "codebook": codebook.name,
    }
    about |= {"renderings": len(codebook), "poses": [dict(zip(_HEADS, line, strict=True)) for line in lines]}
    if options.json:
        show_json(about | {"files": {"poses": str(folder / _POSES), "sheet": str(folder / _SHEET)}})
        return 0
    disagreement = statistics.median(poses.disagreement.tolist())
    say(f"the nearest {poses.rows.shape[1]} renderings disagree by {disagreement:.0f}° in the median")
    for text in (*moved(out, folder), str(folder / _SHEET), str(folder / _POSES)):
        say(text)
    return 0


def _codebook(options: Options) -> "tuple[Dataset, Rows]":
    """The renderings, of which some may be left out, and their row numbers in the whole codebook."""
    import numpy as np

    from setsup_papers.abc.pose.poses import read_rotations

    given = Named(options.codebook, root=options.root, split=options.split, option=options.option)
    codebook = open_source(given)
    if not len(codebook):
        raise DataError(f"the codebook {options.codebook} has no renderings; choose another codebook")
    rows = np.arange(len(codebook)) if options.where is None else codebook.factors.rows(options.where)
    if not len(rows):
        raise FactorError(f"--where {options.where!r} selects no renderings; change the expression")
    read_rotations(codebook, rows)  # says what is wrong with them before anything is embedded
    return codebook.select(rows), rows


def _lines(photographs: "BoxedPhotographs", poses: "PoseEstimates", numbers: "Rows") -> list[list[Any]]:
    """Lines of the table, without its head; `numbers` of renderings in the whole codebook."""
    from setsup_papers.abc.pose.rotations import euler_from_rotation

    angles = zip(*(angle.tolist() for angle in euler_from_rotation(poses.rotations[:, 0])), strict=True)
    columns = (photographs.files, photographs.given.tolist(), angles, poses.disagreement.tolist())
    return [
        [file, *edges, *_rounded((*turn, apart, cosine)), row]
        for file, edges, turn, apart, cosine, row in zip(
            *columns, poses.cosines[:, 0].tolist(), numbers[poses.rows[:, 0]].tolist(), strict=True
        )
    ]


def _rounded(numbers: tuple[float, ...]) -> list[float]:
    return [round(number, _DIGITS) + 0.0 for number in numbers]  # no minus before a zero


def _sheet(photographs: "BoxedPhotographs", codebook: "Dataset", poses: "PoseEstimates", options: Options) -> bytes:
    """The first photographs with their nearest renderings, as a PNG."""
    import numpy as np

    from setsup.files.outputs import marked_png
    from setsup_papers.abc.pose.lookup_sheet import draw_lookup

    some = np.arange(min(options.shown, len(photographs)))
    captions = [
        f"{photographs.files[row]}\n{poses.disagreement[row]:.0f}° apart" if poses.rows.shape[1] > 1 else ""
        for row in some.tolist()
    ]
    looked_up = f"Photographs, and their nearest renderings of the codebook {options.codebook}"
    title = f"{looked_up}\nBy the cosine of embeddings of {options.run}"
    sheet = draw_lookup(photographs, some, None, codebook, poses.rows[some], poses.rotations[some], captions, title)
    return marked_png(sheet)


def _write(asked: Path, lines: list[list[Any]], sheet: bytes, *, force: bool) -> Path:
    """Write both files into a folder that holds no other ones, and return it."""
    from contextlib import ExitStack

    from setsup.files import locked, written

    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerows([_HEADS, *lines])
    files = {_POSES: text.getvalue().encode(), _SHEET: sheet}

    def is_free(folder: Path) -> bool:
        return all(is_missing_or_equal(folder / name, content) for name, content in files.items())

    with ExitStack() as stack:
        stack.enter_context(locked(asked))  # two processes would find the same place free
        free_folder = asked if force else free_path(asked, is_free)
        parts = {name: stack.enter_context(written(free_folder / name)) for name in files}
        for name, content in files.items():
            parts[name].write_bytes(content)
    return free_folder
