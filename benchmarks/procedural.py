"""Pictures a second of ``shapes3d-procedural`` on one core."""

import time
from collections.abc import Iterator
from itertools import cycle

import numpy as np

import setsup
from benchmarks.measure import Side, Spread, alternate, sized
from benchmarks.rows import Row, at_least, rate

__all__ = ["rows"]

TOPIC = "procedural"
SIZE, LEAST = 256, 3_000
STATES = sized(480, 16)
"""Of scale, shape and orientation: cast once, kept, and coloured for every picture."""


def rows(full: bool) -> Iterator[Row]:
    shapes = setsup.load("shapes3d-procedural")
    start = time.process_time()
    shapes.fetch(np.arange(STATES))
    cast = Spread.of([time.process_time() - start])
    yield Row(TOPIC, f"first picture of each of the {STATES} states", f"{cast.median:.2f} s", "", "", cast, "s")
    sets = cycle(np.random.default_rng(0).integers(0, len(shapes.factors), (512, SIZE)))
    found = alternate({"ours": Side(lambda: shapes.fetch(next(sets)), SIZE)})["ours"]
    figure = Spread.of(1 / found)
    yield Row(TOPIC, f"random rows, {SIZE} a fetch", rate(found, "images"), "", "", figure, "/s", at_least(LEAST))
