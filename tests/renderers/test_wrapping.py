"""How textures and holes go on outside 0 … 1, beside textures that hold what is there."""

import numpy as np
import pytest

from setsup.scenes import Ambient, Camera, Material, Mesh, Placement, Scene, load_scene, renderer, save_scene
from setsup.scenes.meshes.primitives import plane

DICE = np.random.default_rng(3)
TEXTURE = DICE.integers(0, 256, (5, 7, 3)).astype(np.uint8)
MASK = DICE.random((5, 7)) < 0.7
FROM, TO = np.array([-0.9, -0.8]), np.array([1.9, 1.85])  # within the tiles around the first
PADS = {"repeat": "wrap", "clamp": "edge", "mirror": "symmetric"}
CAMERA = Camera.look_at((0.01, -0.3, 3), (0, 0, 0), height=90, width=120, field_of_view=0.6)


def sheet(material, uv):
    mesh = plane((2, 2))
    return Mesh(mesh.vertices, mesh.faces, uv=uv, materials=(material,))


def scene(mesh):
    floor = Placement(plane((9, 9), material=Material((90, 90, 90))), translation=(0, 0, -0.5), instance=7)
    return Scene((Placement(mesh), floor), (Ambient((1, 1, 1)),))


def laid_out(array, wrap):
    """The image with its eight neighbours."""
    height, width = array.shape[:2]
    rest = [(0, 0)] * (array.ndim - 2)
    found = np.pad(array, [(0, 0), (width, width), *rest], mode=PADS[wrap[0]])
    return np.pad(found, [(height, height), (0, 0), *rest], mode=PADS[wrap[1]])


@pytest.mark.parametrize("name", ["embree", "gl", "pyrender"])
@pytest.mark.parametrize("wrap", [("clamp", "mirror"), ("mirror", "clamp"), ("repeat", "mirror"), ("clamp", "repeat")])
@pytest.mark.parametrize("holes", [False, True])
def test_textures_go_on_as_their_material_says(request, name, wrap, holes):
    if name != "embree":
        request.getfixturevalue("gl")
    uv = FROM + plane((2, 2)).uv * (TO - FROM)
    wrapped = Material((255, 200, 255), TEXTURE, MASK if holes else None, wrap)
    whole = Material((255, 200, 255), laid_out(TEXTURE, wrap), laid_out(MASK, wrap) if holes else None)
    repeated = Material((255, 200, 255), TEXTURE, MASK if holes else None)
    drawing = renderer(name)
    frames = []
    try:
        for mesh in (sheet(wrapped, uv), sheet(whole, (uv + 1) / 3), sheet(repeated, uv)):
            drawing.load(scene(mesh))
            frames.append(drawing.render(CAMERA))
    finally:
        drawing.close()
    found, expected, other = frames
    same = found.instance == expected.instance
    assert same.mean() > 0.998  # rounding at the borders of holes
    assert np.abs(found.rgb.astype(int) - expected.rgb)[same].max() <= 2
    assert np.abs(found.rgb.astype(int) - other.rgb).max() > 50


def test_the_wrap_is_part_of_a_material(tmp_path):
    plain = Material((255, 255, 255), TEXTURE)
    found = [Material((255, 255, 255), TEXTURE, mask, wrap) for mask in (None, MASK) for wrap in WRAPS]
    assert found[0].digest == plain.digest
    assert len({one.digest for one in found}) == len(found)
    for number, one in enumerate(found):
        path = tmp_path / f"{number}.scene"
        before = scene(sheet(one, plane((2, 2)).uv))
        save_scene(before, path)
        again = load_scene(path)
        assert again.digest == before.digest
        assert again.placements[0].mesh.materials[0].wrap == one.wrap


WRAPS = [("repeat", "repeat"), ("clamp", "repeat"), ("repeat", "clamp"), ("mirror", "mirror")]
