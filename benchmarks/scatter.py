"""Frames of the scatter of ``setsup explore`` in a browser: so many points, moved between frames."""

import re
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Spread, sized
from benchmarks.rows import Row, at_most, duration
from setsup.pages.shell import static

__all__ = ["AS_A_GPU", "BROWSER", "SOFTWARE", "frame_times", "points"]

TOPIC = "explore"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SOFTWARE = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
"""Options of a Chromium that has WebGL by software."""
AS_A_GPU = """const asked = WebGL2RenderingContext.prototype.getParameter;
WebGL2RenderingContext.prototype.getParameter = function (name) {
  return name === 37446 ? 'as if it were a GPU' : asked.call(this, name);
};"""
"""Script of a page on which WebGL by software draws, where the scatter would take a 2D canvas."""

_FRAMES = """async count => {
  const points = new Float32Array(2 * count), codes = new Uint8Array(count);
  const canvas = document.querySelector('canvas').cloneNode();
  for (let at = 0; at < count; at++) {
    const far = Math.sqrt(-2 * Math.log(1 - Math.random())), turn = 2 * Math.PI * Math.random();
    points[2 * at] = far * Math.cos(turn); points[2 * at + 1] = far * Math.sin(turn); codes[at] = at % 10;
  }
  document.body.replaceChildren(canvas);
  const plot = eval('scatter')(canvas, points);
  plot.recolour(codes, Array.from({length: 40}, (_, at) => (at % 4 === 3 ? 255 : 20 * (at % 11))));
  const gl = plot.name === 'WebGL2' ? canvas.getContext('webgl2') : null, pixel = new Uint8Array(4), times = [];
  for (let frame = 0; frame < 11; frame++) {
    const begun = performance.now();
    plot.pan(3, 1);
    plot.draw();
    if (gl) gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel); // until all is drawn
    times.push((performance.now() - begun) / 1000);
  }
  plot.close();
  return [times.slice(2), plot.name];
}"""


def frame_times(page: Any, count: int) -> tuple[list[float], str]:
    """Seconds of some frames of so many points, 800 × 600 pixels, on a page of playwright; and what drew them."""
    page.set_content("<canvas style='width:800px;height:600px'></canvas>")
    if not page.evaluate("typeof scatter === 'function'"):
        page.add_script_tag(content=static("scatter.js").decode())
    seconds, name = page.evaluate(_FRAMES, count)
    return seconds, name


def points() -> Iterator[Row]:
    """Frames without a GPU: as the page draws them, and by WebGL in software."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    if BROWSER is None:
        return
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=list(SOFTWARE))
        for script in ("", AS_A_GPU):
            context = opened.new_context()
            if script:
                context.add_init_script(script)
            page = context.new_page()
            page.goto("about:blank")
            for count, most in ((sized(100_000, 1000), 1 / 15), (sized(1_000_000, 2000), 1.0)):
                seconds, name = frame_times(page, count)
                said = re.sub("WebGL2", "WebGL2 by software", name)
                found = np.array(seconds)
                what = f"a frame of {count:,} points, {said}"
                yield Row(TOPIC, what, duration(found), "", "", Spread.of(found), "s", at_most(most))
            context.close()
        opened.close()
