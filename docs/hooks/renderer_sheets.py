"""A model from eight sides, drawn by every renderer, side by side.

``python docs/hooks/renderer_sheets.py MODEL PICTURE`` draws it anew: that of the documentation is of the chair
88382b877be91b2a572f8e1c1caad99e of KeypointNet, whose models are not part of setsup.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from setsup.reports.page import GAP, MARGIN, PADDING, Cell, Page
from setsup.scenes import STUDIO, Camera, Placement, Scene, load_mesh, renderer

SIDES, LABEL = 8, 92
NAMES = ("embree", "gl", "pyrender")
UPRIGHT = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # of ShapeNet's models y is up


def turntable(path: Path, pixels: int = 108) -> tuple[Scene, list[Camera]]:
    """The model, 1 m large about the origin, and cameras around it."""
    mesh = load_mesh(path, top=path.parents[1])
    low, high = mesh.bounds
    scale = 1 / float(np.linalg.norm(high - low))
    placement = Placement(mesh, UPRIGHT, -scale * UPRIGHT @ (low + high) / 2, np.full(3, scale))
    angles = [2 * math.pi * (side + 0.5) / SIDES for side in range(SIDES)]
    eyes = [(1.9 * math.sin(angle), -1.9 * math.cos(angle), 0.8) for angle in angles]
    cameras = [Camera.look_at(eye, (0, 0, 0), height=pixels, width=pixels, field_of_view=0.5) for eye in eyes]
    return Scene((placement,), STUDIO), cameras


def sheet(scene: Scene, cameras: Sequence[Camera], title: str) -> Image.Image:
    """A row for each renderer, a column for each camera."""
    cell = Cell(cameras[0].width, cameras[0].height, max(cameras[0].width, cameras[0].height))
    width, height = LABEL + cell.span(len(cameras)) + 2 * PADDING, cell.rise(len(NAMES)) + 2 * PADDING
    page = Page(width + 2 * MARGIN, height, title, cell)
    page.card(MARGIN, page.top, width, height)
    for row, name in enumerate(NAMES):
        drawing = renderer(name)
        drawing.load(replace(scene))
        top = page.top + PADDING + row * (cell.height + GAP)
        page.write(MARGIN + PADDING, top + cell.height // 2 - 10, [(name, (15, "#1f2933"))])
        for column, camera in enumerate(cameras):
            left = MARGIN + PADDING + LABEL + column * (cell.width + GAP)
            page.place(drawing.render(camera).rgb, left, top)
        drawing.close()
    return page.image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--pixels", type=int, default=108, help="of each of the small pictures")
    given = parser.parse_args()
    drawn = sheet(
        *turntable(given.model, given.pixels), "One model from eight sides\nrenderer(name).render(camera).rgb"
    )
    drawn.quantize(255, dither=Image.Dither.NONE).save(given.picture, optimize=True)


if __name__ == "__main__":
    main()
