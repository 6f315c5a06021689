"""The gl renderer on a GPU by EGL, against embree on the processor."""

import numpy as np
import pytest

from benchmarks.scenes import simple_room, views
from setsup.errors import DataError

pytest.importorskip("moderngl", reason="moderngl is not installed")
pytest.importorskip("embreex", reason="embreex is not installed")

from setsup_renderers.embree import EmbreeRenderer
from setsup_renderers.gl import GLRenderer

APART = 0.01
"""Share of the pixels, those at edges, that may show another object or triangle."""
DEPTH, ANGLE, LEVELS = 1e-4, 0.5, 3
"""Of the other pixels: relative difference of depths, degrees between normals, levels of 8 bits between colors."""


@pytest.mark.parametrize("kind", [{}, {"smooth": True, "textures": True}], ids=["flat", "smooth and textured"])
def test_a_room_looks_as_embree_traces_it(device: str, kind: dict[str, bool]) -> None:
    try:
        drawn_on = GLRenderer.check()
    except DataError as error:
        pytest.skip(str(error))
    if device != "cpu" and "software" in drawn_on:
        pytest.skip(f"OpenGL draws in software, on {drawn_on}")
    scene, camera = simple_room(**kind), views(160, 160)[0]
    gl, embree = GLRenderer(), EmbreeRenderer()
    for one in (gl, embree):
        one.load(scene)
    found, wanted = gl.render(camera), embree.render(camera)
    gl.close()
    same = (found.instance == wanted.instance) & (found.triangle == wanted.triangle) & (wanted.instance >= 0)
    assert same.mean() > 1 - APART
    depth = np.abs(found.depth[same] / wanted.depth[same] - 1)
    assert np.quantile(depth, 0.999) < DEPTH
    cosines = (found.normal[same] * wanted.normal[same]).sum(-1).clip(-1, 1)
    assert np.degrees(np.arccos(np.quantile(cosines, 0.001))) < ANGLE
    levels = np.abs(found.rgb[same].astype(int) - wanted.rgb[same]).max(-1)
    assert np.quantile(levels, 0.99) <= LEVELS
