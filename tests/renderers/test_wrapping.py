"""How textures and holes go on outside 0 … 1, beside textures that hold what is there."""

import itertools

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


def decoded(encoded):
    """Linear light of sRGB, 0 … 1."""
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def encoded(light):
    """Get sRGB of linear light, 0 … 1."""
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def texel(number, count, wrap):
    """Number within a texture of a texel that may lie outside."""
    if wrap == "repeat":
        return number % count
    if wrap == "clamp":
        return min(max(number, 0), count - 1)
    number %= 2 * count
    return min(number, 2 * count - 1 - number)


def bilinear(texels, u, v, wrap):
    """Texture (h, w, 3), of which row 0 is at the top, at places u (w,) across and v (h,) upwards."""
    height, width = texels.shape[:2]
    across, down = u * width - 0.5, (1 - v) * height - 0.5
    found = texels
    for axis, places, count, way in ((0, down, height, wrap[1]), (1, across, width, wrap[0])):
        before = np.floor(places).astype(int)
        share = np.expand_dims(places - before, (1, 2) if axis == 0 else (0, 2))
        first, second = ([texel(number + more, count, way) for number in before.tolist()] for more in (0, 1))
        found = found.take(first, axis=axis) * (1 - share) + found.take(second, axis=axis) * share
    return found


@pytest.mark.parametrize("name", ["embree", "gl", "pyrender"])
@pytest.mark.parametrize(
    "shape",
    [
        (5, 7),
        *(pytest.param(shape, marks=pytest.mark.long("renderings")) for shape in [(4, 4), (1, 6), (3, 1), (16, 8)]),
    ],
)
def test_every_pixel_has_the_color_of_the_texture_at_its_centre(request, name, shape):
    if name != "embree":
        request.getfixturevalue("gl")
    texture = np.random.default_rng(sum(shape)).integers(0, 256, (*shape, 3)).astype(np.uint8)
    camera = Camera.look_at((0, 0, 4), (0, 0, 0), height=150, width=170, focal_length=280, up=(0, 1, 0))
    x = (np.arange(170) - camera.k[0, 2]) * 4 / 280
    y = (camera.k[1, 2] - np.arange(150)) * 4 / 280
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    inside = np.ix_(np.abs(y) < 0.98, np.abs(x) < 0.98)
    u, v = (1.5 * place[np.abs(place) < 0.98] + 0.5 for place in (x, y))
    # the shader of pyrender filters bytes, and decodes what it gets
    to_texels, to_bytes, most = (np.array, np.array, 1.6) if name == "pyrender" else (decoded, encoded, 1.0)
    drawing = renderer(name)
    try:
        for wrap in itertools.product(PADS, repeat=2):
            mesh = Mesh(
                np.pad(corners, [(0, 0), (0, 1)]).astype(float),
                [[0, 1, 2], [0, 2, 3]],
                uv=1.5 * corners + 0.5,  # from −1 to 2
                materials=(Material((255, 255, 255), texture, None, wrap),),
            )
            drawing.load(Scene((Placement(mesh),), (Ambient((1, 1, 1)),)))
            found = drawing.render(camera).rgb[..., :3][inside]
            expected = 255 * to_bytes(bilinear(to_texels(texture / 255), u, v, wrap))
            assert np.abs(found - expected).max() < most, wrap
    finally:
        drawing.close()


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
