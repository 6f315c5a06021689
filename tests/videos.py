"""Videos for tests: frames that carry their own number, and a stick figure that moves."""

import io

import numpy as np
from PIL import Image, ImageDraw

BITS = 12


def encoded(frames, codec="mpeg4", container="avi", rate=25, pix_fmt="yuv420p", **options):
    """A video file of (height, width, 3) uint8 frames, as its bytes; ``x264="…"`` stands for ``x264-params``."""
    import av

    named = {"x264": "x264-params", "x265": "x265-params"}
    made = io.BytesIO()
    with av.open(made, "w", format=container) as file:
        stream = None
        for frame in frames:
            if stream is None:
                stream = file.add_stream(codec, rate=rate)
                stream.height, stream.width = frame.shape[:2]
                stream.pix_fmt = pix_fmt
                stream.options = {named.get(name, name): str(value) for name, value in options.items()}
            file.mux(stream.encode(av.VideoFrame.from_ndarray(frame)))
        file.mux(stream.encode())
    return made.getvalue()


def numbered(number, height=48, width=96, picture=None):
    """A picture, grey by default, with a number in blocks along its lower edge: white for 1, black for 0."""
    frame = np.full((height, width, 3), 128, np.uint8) if picture is None else np.array(picture)
    side = frame.shape[1] // BITS
    for bit in range(BITS):
        frame[-side:, bit * side : (bit + 1) * side] = 255 * (number >> bit & 1)
    return frame


def number_of(frames):
    """Numbers that frames (..., height, width, 3) of :func:`numbered` carry."""
    side = frames.shape[-2] // BITS
    middle = frames[..., -side // 2, side // 2 : BITS * side : side, 1] > 128
    return (middle * (1 << np.arange(BITS))).sum(-1)


def actor(action, time, ground, shirt, shift=0, height=240, width=320):
    """A stick figure at a time in s: jumping, standing on its hands, or clapping."""
    picture = Image.new("RGB", (width, height), ground)
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, height * 0.72, width, height), fill=tuple(part * 2 // 3 for part in ground))
    swing = np.sin(2 * np.pi * time)
    x, y = width / 2 + shift, height * 0.45
    turn = -1 if action == "handstand" else 1
    if action == "jump":
        y -= 18 * abs(swing)

    def limb(points, color="black"):
        pen.line([(x + right, y - turn * up) for right, up in points], fill=color, width=8, joint="curve")

    spread = {"jump": 20 + 25 * abs(swing), "handstand": 14, "clap": 14}[action]
    reach = {"jump": 60 * swing, "handstand": 70, "clap": 10}[action]
    apart = {"jump": 50, "handstand": 25, "clap": 6 + 38 * abs(swing)}[action]
    for side in (-1, 1):
        limb([(0, -30), (side * spread, -75)])
        limb([(0, 25), (side * apart, 25 + reach if action != "handstand" else 70 - 20 * abs(swing))])
    pen.line([(x, y + turn * 35), (x, y - turn * 30)], fill=shirt, width=22)
    head = y - turn * 48
    pen.ellipse((x - 17, head - 17, x + 17, head + 17), fill=(235, 190, 150), outline="black")
    return np.asarray(picture)
