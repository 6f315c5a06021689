"""A small Multi-PIE in the published tree: drawn heads of three subjects, turned as each camera would see them."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from tests.kept import kept

HELD = "subject"

YAW = {
    **{"24_0": -90, "01_0": -75, "20_0": -60, "19_0": -45, "04_1": -30, "05_0": -15, "05_1": 0},
    **{"14_0": 15, "13_0": 30, "08_0": 45, "09_0": 60, "12_0": 75, "11_0": 90, "19_1": -45, "08_1": 45},
}
ABOVE = ("19_1", "08_1")
# session, subject, recording: shots
TAKEN = {
    ("01", "001", "01"): ("00", "07", "19"),
    ("01", "002", "01"): ("00", "07", "19"),
    ("01", "005", "01"): ("00", "07", "19"),
    ("01", "001", "02"): ("00",),
    ("02", "001", "03"): ("00", "18"),
}
SKIN = {"001": (236, 188, 150), "002": (150, 100, 70), "005": (205, 160, 120)}
HAIR = {"001": (90, 50, 20), "002": (20, 20, 20), "005": (210, 180, 60)}
MOUTH = {("01", "01"): "flat", ("01", "02"): "smile", ("02", "03"): "flat"}
HEIGHT, WIDTH = 480, 640


def head(subject: str, mouth: str, yaw: float, above: bool) -> Image.Image:
    """A ball with a face, whose nose points to the side that the yaw says."""
    picture = Image.new("RGB", (WIDTH, HEIGHT), (90, 110, 140))
    pen = ImageDraw.Draw(picture)
    x, y, radius = WIDTH / 2, HEIGHT / 2, 150
    pen.ellipse((x - 110, y + 90, x + 110, HEIGHT + 200), fill=tuple(255 - part for part in HAIR[subject]))
    pen.ellipse((x - radius, y - radius - 10, x + radius, y + radius + 10), fill=SKIN[subject])
    pen.pieslice((x - radius, y - radius - 12, x + radius, y + radius), 180, 360, fill=HAIR[subject])
    pen.ellipse((x - radius + 6, y - 90, x + radius - 6, y + 60), fill=SKIN[subject])
    tilt = 25 if above else 0

    def spot(across: float, up: float) -> tuple[float, float] | None:
        a, e = np.deg2rad([across + yaw, up - tilt])
        return None if np.cos(a) < 0.05 else (x + radius * np.sin(a) * np.cos(e), y - radius * np.sin(e))

    for across, size, color in ((-22, 15, "white"), (22, 15, "white"), (-22, 7, "black"), (22, 7, "black")):
        if at := spot(across, 8):
            pen.ellipse((at[0] - size, at[1] - size * 0.8, at[0] + size, at[1] + size * 0.8), fill=color)
    nose = spot(0, -8)
    tip = (x + radius * 1.2 * np.sin(np.deg2rad(yaw)), y + radius * np.sin(np.deg2rad(8 + tilt)))
    if nose and (bridge := spot(0, 6)):
        pen.line((*bridge, *tip, *nose), fill=(120, 60, 40), width=6)
    curve = [spot(across, -34 + (0.02 * across**2 if mouth == "smile" else 0)) for across in range(-24, 25, 4)]
    pen.line([at for at in curve if at], fill=(170, 20, 40), width=9)
    return picture


def lit(picture: Image.Image, shot: str) -> Image.Image:
    """Room light, and a flash from the left (low numbers) to the right, which brightens that side."""
    if shot in ("00", "19"):
        return picture
    across = np.linspace(-1, 1, WIDTH)
    gain = np.exp(-((across - (int(shot) - 9) / 9) ** 2)) * 0.8 + 0.6
    return Image.fromarray((np.asarray(picture) * gain[:, None]).clip(0, 255).astype(np.uint8))


def name(session: str, subject: str, recording: str, camera: str, shot: str) -> str:
    """Path of a picture in the tree."""
    file = f"{subject}_{session}_{recording}_{camera.replace('_', '')}_{shot}.png"
    return f"session{session}/multiview/{subject}/{recording}/{camera}/{file}"


@kept
def write(folder: Path) -> None:
    """Write ``Multi-Pie/data/session0S/…`` below a folder, with one high-resolution picture, which is no part of it."""
    data = folder / "Multi-Pie" / "data"
    for (session, subject, recording), shots in TAKEN.items():
        for camera, yaw in YAW.items():
            picture = head(subject, MOUTH[session, recording], yaw, camera in ABOVE)
            for shot in shots:
                path = data / name(session, subject, recording, camera, shot)
                path.parent.mkdir(parents=True, exist_ok=True)
                lit(picture, shot).save(path, compress_level=1)
    high = data / "session01" / "highres" / "001" / "01" / "001_01_01.png"
    high.parent.mkdir(parents=True)
    Image.new("RGB", (64, 48)).save(high)
