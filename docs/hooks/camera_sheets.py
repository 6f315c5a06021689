"""Figure of the one convention for cameras: axes, pixels, and the axes of other conventions.

It is projected by a :class:`setsup.scenes.Camera` of its own, and shows what two others say.
"""

from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from setsup.reports.text_layout import draw_text, text_width
from setsup.scenes.camera import Camera

WIDTH, HEIGHT, FINER = 980, 440, 3  # lines are drawn finer, and smoothed
INK, GREY, PALE, PAPER = "#303030", "#9a9a9a", "#dcdcdc", "#ffffff"
AXES = {"x": "#c0392b", "y": "#2e8b57", "z": "#2460a7"}
SIZE, LABEL, TITLE = (60, 80), 15, 16
Point = Any


class Sheet:
    """Lines and words in pixels of the finished figure."""

    def __init__(self) -> None:
        self.image = Image.new("RGB", (FINER * WIDTH, FINER * HEIGHT), PAPER)
        self.draw = ImageDraw.Draw(self.image)
        self.words: list[tuple[tuple[float, float], str, int, str]] = []

    def line(self, *points: Point, color: str = INK, width: float = 1.5) -> None:
        flat = [tuple(FINER * np.asarray(point, float)) for point in points]
        self.draw.line(flat, fill=color, width=round(FINER * width), joint="curve")

    def polygon(self, points: Point, fill: str) -> None:
        self.draw.polygon([tuple(FINER * np.asarray(point, float)) for point in points], fill=fill)

    def dot(self, at: Point, radius: float = 4, fill: str = INK) -> None:
        x, y = FINER * np.asarray(at, float)
        self.draw.ellipse((x - FINER * radius, y - FINER * radius, x + FINER * radius, y + FINER * radius), fill=fill)

    def arrow(self, start: Point, end: Point, color: str = INK, width: float = 2.5) -> None:
        start, end = np.asarray(start, float), np.asarray(end, float)
        way = (end - start) / max(np.linalg.norm(end - start), 1e-9)
        side = np.array([-way[1], way[0]])
        self.line(start, end - 6 * way, color=color, width=width)
        self.polygon([end, end - 11 * way + 5 * side, end - 11 * way - 5 * side], color)

    def write(
        self, at: Point, text: str, color: str = INK, size: int = LABEL, by: Point = (0, 0), middle: bool = False
    ) -> None:
        x, y = np.add(at, by)
        self.words.append(((x - text_width(text, size) / 2 if middle else x, y), text, size, color))

    def finished(self) -> Image.Image:
        small = self.image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
        draw = ImageDraw.Draw(small)
        for (x, y), text, size, color in self.words:
            draw_text(draw, round(x), round(y), text, (size, color))
        return small


def camera() -> Image.Image:
    """The whole figure."""
    sheet = Sheet()
    _world(sheet)
    _pixels(sheet)
    _others(sheet)
    return sheet.finished()


def _world(sheet: Sheet) -> None:
    """A camera in the world, its axes, and a point that it sees."""
    shown = Camera.look_at((-0.6, -4.4, 3.0), (1.1, 1.2, 0.45), height=400, width=580, focal_length=840)
    one = Camera.look_at((0.1, 0.85, 1.1), (2.0, 1.75, 0.55), height=SIZE[0], width=SIZE[1], focal_length=75)

    def at(point: Point) -> Point:
        return shown.project(np.asarray(point, float))[0] + [6, 28]

    for step in np.linspace(0, 2.4, 5):
        sheet.line(at((step, 0, 0)), at((step, 2.4, 0)), color=PALE, width=1)
        sheet.line(at((0, step, 0)), at((2.4, step, 0)), color=PALE, width=1)
    for axis, way in zip("xyz", np.eye(3), strict=True):
        sheet.arrow(at((0, 0, 0)), at(0.55 * way), AXES[axis], 1.5)
        sheet.write(at(0.64 * way), axis.upper(), AXES[axis], by=(-4, -9))
    sheet.write(at((0, 0, 0)), "world", GREY, by=[-52, 4])

    height, width = SIZE
    corners = np.array([[-0.5, -0.5], [width - 0.5, -0.5], [width - 0.5, height - 0.5], [-0.5, height - 0.5]])
    plane = one.centre + 0.9 * one.rays(corners)
    sheet.polygon([at(corner) for corner in plane], "#eef2f8")
    for corner in plane:
        sheet.line(at(one.centre), at(corner), color=GREY, width=1)
    sheet.line(*(at(corner) for corner in (*plane, plane[0])), color=INK, width=1.5)
    point = np.array([2.2, 1.5, 0.45])
    pixel = one.project(point)[0]
    on_plane = one.centre + 0.9 * one.rays(pixel[None])[0]
    sheet.line(at(one.centre), at(point), color=GREY, width=1.5)
    sheet.line(at(point), at(point * [1, 1, 0]), color=PALE, width=1.5)
    sheet.dot(at(point), 5)
    sheet.write(at(point), "world point X", by=[10, -12])
    sheet.dot(at(on_plane), 4)
    sheet.write(at(on_plane), "pixel", by=[-8, 4])
    for axis, way in zip("xyz", one.rotation, strict=True):  # rows are the camera's axes in the world
        end = one.centre + (0.5 if axis != "z" else 0.62) * way
        sheet.arrow(at(one.centre), at(end), AXES[axis], 3)
        offset = {"x": (-6, 4), "y": (-18, -2), "z": (-12, -28)}[axis]
        sheet.write(at(end), axis, AXES[axis], by=offset)
    sheet.dot(at(one.centre), 4)
    sheet.write((24, 14), "camera: x right, y down, z forward into the scene", INK, TITLE)
    sheet.write((24, 36), "pixel ~ K (R X + t);  pose = camera to world", GREY)


def _pixels(sheet: Sheet) -> None:
    """The upper left of an image."""
    left, top, side = 640, 76, 44
    sheet.write((610, 14), "pixels: centres are integers", INK, TITLE)
    for column in range(6):
        sheet.line((left + column * side, top), (left + column * side, top + 3 * side), color=GREY, width=1)
    for row in range(4):
        sheet.line((left, top + row * side), (left + 5 * side, top + row * side), color=GREY, width=1)
    for row in range(3):
        for column in range(5):
            sheet.dot((left + (column + 0.5) * side, top + (row + 0.5) * side), 2, GREY)
    centre = np.array([left + side / 2, top + side / 2])
    sheet.arrow(centre, centre + np.array([5.1 * side, 0]), AXES["x"])
    sheet.arrow(centre, centre + np.array([0, 3.1 * side]), AXES["y"])
    sheet.write(centre, "x", AXES["x"], by=[5.1 * side + 6, -10])
    sheet.write(centre, "y", AXES["y"], by=[-4, 3.1 * side + 2])
    sheet.dot(centre, 4)
    sheet.write(centre, "(0, 0)", by=[4, 2])
    sheet.dot((left, top), 4, AXES["z"])
    sheet.write((left - 36, top - 25), "(-0.5, -0.5)", AXES["z"])
    at = np.array([left + 3.5 * side, top + 1.5 * side])
    sheet.dot(at, 4)
    sheet.write(at, "(3, 1)", by=[-16, 3])
    sheet.write((left + 120, top + 3 * side + 8), "array[1, 3]", GREY)


def _others(sheet: Sheet) -> None:
    """Axes of the camera in other conventions."""
    sheet.write((610, 274), "axes of the camera elsewhere", INK, TITLE)
    for left, head, up in ((668, "OpenCV, COLMAP, setsup", False), (852, "OpenGL, NeRF, Blender", True)):
        origin = np.array([left, 358.0])
        sheet.write((left + 8, 406), head, GREY, 13, middle=True)
        sheet.arrow(origin, origin + np.array([58, 0]), AXES["x"])
        sheet.write(origin, "x", AXES["x"], by=[62, -10])
        down = np.array([0, -48 if up else 40])
        sheet.arrow(origin, origin + down, AXES["y"])
        sheet.write(origin + down, "y", AXES["y"], by=[6, -10 if up else -8])
        forward = np.array([-34, 24]) if up else np.array([34, -40])
        sheet.arrow(origin, origin + forward, AXES["z"])
        sheet.write(origin + forward, "z", AXES["z"], by=([-16, -6] if up else [6, -14]))
        sheet.dot(origin, 4)


SHEETS = {"camera": camera}
"""What makes the picture of each name."""
