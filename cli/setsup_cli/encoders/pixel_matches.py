"""``setsup pairs --run``: pixels of two images that a trained network takes for the same place."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from setsup.errors import DataError, require_modules
from setsup.files.expand_user import expanded
from setsup_cli.output import say, show_json
from setsup_cli.output_paths import Force, moved, write_image
from setsup_cli.parsing.arguments import Common, Device, OwnPreset
from setsup_cli.parsing.arguments import option as declared
from setsup_cli.parsing.parser import Subcommand
from setsup_cli.parsing.values import check_image
from setsup_cli.runs import check_device, opened

__all__ = ["SUBCOMMAND", "Options", "run"]

HELP = """\
Each pixel of a grid over the first image is matched to the pixel with the nearest feature in the second image,
which is matched back to the first image. Matches that return to within two pixels of their starting point are
plotted as lines. Below them, the sheet shows the distance from the feature of one pixel to all features of the
second image. Example: `setsup pairs --run runs/pixels/rooms-small/seed-0 left.png right.png --pixel 120 80`."""


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Options with a run."""

    images: Annotated[tuple[Path, ...], declared("IMAGE1 IMAGE2", "Two images of the same scene or objects.")] = field(
        kw_only=False
    )
    run: Annotated[Path, declared("RUN", "Folder of a run whose method computes features of pixels.")]
    height: Annotated[int, declared("N", "Height to which both images are resized, in pixels; a multiple of 32.")] = 192
    pixel: Annotated[
        tuple[int, int] | None,
        declared("X Y", "Pixel of the resized first image whose distances are shown.", "the centre"),
    ] = None
    lines: Annotated[int, declared("N", "Maximum number of lines.")] = 24
    preset: OwnPreset = None
    device: Device = None
    out: Annotated[Path, declared("FILE", "Output image.", alias="-o")] = Path("setsup-pairs.png")
    force: Force = False


SUBCOMMAND = Subcommand(
    "pairs", Options, HELP, "--run", summary="plot which pixels a trained network matches between two images"
)


def run(options: Options) -> int:
    """Match, print and draw."""
    require_modules("features of pixels need", "torch", "lightning")
    import numpy as np
    from PIL import Image

    from setsup.datasets.images import decode
    from setsup.evaluation.pixels import mutual_pixels
    from setsup.experiments import load_trained
    from setsup.experiments.pixel_features import MULTIPLE, pixel_features, resized_view
    from setsup.reports.pixel_features import pixel_match_sheet

    if len(options.images) != 2:
        raise DataError(f"--run requires two images, not {len(options.images)}: `setsup pairs --run RUN IMAGE1 IMAGE2`")
    if options.lines < 1:
        raise DataError(f"--lines must be 1 or more, not {options.lines}")
    if options.height < MULTIPLE or options.height % MULTIPLE:
        raise DataError(f"--height must be a multiple of {MULTIPLE}, not {options.height}")
    out = expanded(options.out)
    check_image(out)
    check_device(options.device)
    trained = load_trained(opened(options.run, options.preset), device=options.device)
    views = [
        resized_view(Image.fromarray(decode(expanded(path), str(path), 3)), options.height, str(path))
        for path in options.images
    ]
    first, second = (pixel_features(trained, view, str(options.run)) for view in views)
    x, y = options.pixel or (views[0].shape[1] // 2, views[0].shape[0] // 2)
    if not (0 <= x < views[0].shape[1] and 0 <= y < views[0].shape[0]):
        size = f"{views[0].shape[1]} × {views[0].shape[0]}"
        raise DataError(
            f"--pixel {x} {y} is outside the first image, which is resized to {size} pixels; choose x below "
            f"{views[0].shape[1]} and y below {views[0].shape[0]}"
        )
    matches = mutual_pixels(first, second)
    distances = np.linalg.norm(second - first[y, x], axis=-1)
    names = " and ".join(path.name for path in options.images)
    title = f"{names}\nmatched by {options.run}"
    sheet = pixel_match_sheet(views[0], views[1], matches, (x, y), distances, title, shown=options.lines)
    asked, out = out, write_image(sheet, out, force=options.force)
    row, column = np.unravel_index(int(distances.argmin()), distances.shape)
    about: dict[str, Any] = {
        "matches": len(matches),
        "pixel": [x, y],
        "nearest": [int(column), int(row)],
        "points1": matches.points1.tolist(),
        "points2": matches.points2.tolist(),
        "file": str(out),
    }
    if options.json:
        show_json(about)
        return 0
    say(f"{len(matches):,} pixels of a grid are matched both ways; pixel {x} {y} is nearest to {column} {row}")
    for line in (*moved(asked, out), str(out)):
        say(line)
    return 0
