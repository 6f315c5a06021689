import itertools
import pathlib

import numpy as np
import pytest
from PIL import Image

from setsup.errors import FactorError
from setsup.factors.factor import Kind
from setsup.scenes import shapes3d
from setsup.scenes.shapes3d_caster import FLOOR, HUE_FIFTHS, OBJECT, SKY, WALL, compose, planes, trace
from setsup.scenes.shapes3d_rays import meet
from setsup.scenes.shapes3d_views import view

FRAMES = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data" / "shapes3d" / "3dshapes.gif"


def test_factors_are_the_published_ones() -> None:
    factors = shapes3d.factors()
    assert [factor.name for factor in factors] == [
        *("floor_hue", "wall_hue", "object_hue"),
        *("scale", "shape", "orientation"),
    ]
    assert [len(factor) for factor in factors] == [10, 10, 10, 8, 4, 15]
    assert [factor.kind for factor in factors] == [*[Kind.CYCLIC] * 3, Kind.ORDINAL, Kind.NOMINAL, Kind.ORDINAL]
    assert [(factor.unit, factor.period) for factor in factors] == [
        *[("turn", 1.0)] * 3,
        ("", None),
        ("", None),
        ("deg", None),
    ]
    assert factors[4].levels == ("cube", "cylinder", "sphere", "capsule")


def test_levels_are_equally_spaced_and_print_well() -> None:
    np.testing.assert_allclose(shapes3d.SCALES, np.linspace(0.75, 1.25, 8), atol=5.1e-5)
    np.testing.assert_allclose(shapes3d.ORIENTATIONS, np.linspace(-30, 30, 15), atol=5.1e-5)
    np.testing.assert_allclose(shapes3d.HUES, np.arange(10) / 10, atol=1e-15)
    for level in (*shapes3d.SCALES, *shapes3d.ORIENTATIONS, *shapes3d.HUES):
        assert len(repr(level)) <= len("-25.7143")


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("floor_hue", np.linspace(0, 0.9, 10)),
        ("wall_hue", np.arange(10) * 0.1),
        ("scale", np.linspace(0.75, 1.25, 8).astype(np.float32)),
        ("shape", np.arange(4.0)),
        ("orientation", np.linspace(-30, 30, 15)),
    ],
)
def test_codes_of_published_labels(name: str, published: np.ndarray) -> None:
    np.testing.assert_array_equal(shapes3d.codes(name, published), np.arange(len(published)))


def test_codes_keep_the_shape_and_mark_what_is_no_level() -> None:
    labels = [[0.0, 0.05], [np.nan, 1.0], [-np.inf, 0.9004]]
    assert shapes3d.codes("object_hue", labels).tolist() == [[0, -1], [-1, -1], [-1, 9]]
    assert shapes3d.codes("shape", 4.0) == -1


def test_codes_name_near_factors() -> None:
    with pytest.raises(FactorError, match=r"no factor 'shap'.*did you mean 'shape'"):
        shapes3d.codes("shap", [0])


def test_hue_table_is_hsv() -> None:
    import colorsys

    table = [colorsys.hsv_to_rgb(hue / 10, 1, 1) for hue in range(10)]
    np.testing.assert_allclose(HUE_FIFTHS / 5, table, atol=1e-12)


def _ray(origin: tuple[float, float, float], target: tuple[float, float, float]) -> tuple[tuple, tuple]:
    start, end = np.array(origin), np.array(target)
    return tuple(start[:, None]), tuple((end - start)[:, None])


@pytest.mark.parametrize("shape", shapes3d.SHAPES)
@pytest.mark.parametrize("scale", [0.75, 1.25])
def test_rays_meet_the_surface_of_a_solid(shape: str, scale: float) -> None:
    """Distances against marching along the ray through a solid that is written as an inequality."""
    framing, rng = shapes3d.FRAMING, np.random.default_rng(3)
    angle, height = rng.uniform(0, 2 * np.pi, 200), rng.uniform(0.01, 2, 200)
    origin = np.stack([2 * np.cos(angle), 2 * np.sin(angle), height])
    target = np.stack([*rng.uniform(-0.3, 0.3, (2, 200)), rng.uniform(0, 1.3, 200)])
    hit = meet(shape, scale, framing, tuple(origin), tuple(target - origin))
    steps = np.linspace(0, 2, 8001)
    x, y, z = (a[:, None] + steps * (b - a)[:, None] for a, b in zip(origin, target, strict=True))
    inside = _solid(shape, scale, x, y, z)
    expected = np.where(inside.any(axis=1), steps[inside.argmax(axis=1)], np.inf)
    both = np.isfinite(expected) & np.isfinite(hit.distance)
    assert np.mean(np.isfinite(expected) == np.isfinite(hit.distance)) >= 0.985  # marching misses grazing rays
    assert 40 < both.sum() < 200
    np.testing.assert_allclose(hit.distance[both], expected[both], atol=2.6e-4)
    # a little way along the normal one is outside, against it inside
    at = origin + hit.distance * (target - origin)
    normal = np.stack(np.broadcast_arrays(*hit.normal))
    step = 1e-6 * normal / np.sqrt((normal**2).sum(axis=0), where=both, out=np.ones(200))
    assert not _solid(shape, scale, *(at + step)[:, both]).any()
    assert _solid(shape, scale, *(at - step)[:, both]).all()


def _solid(shape: str, scale: float, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    f = shapes3d.FRAMING
    if shape == "cube":
        a = f.cube_half_side * scale
        return (np.abs(x) <= a) & (np.abs(y) <= a) & (z >= 0) & (z <= 2 * a)
    if shape == "cylinder":
        return (np.hypot(x, y) <= f.cylinder_radius * scale) & (z >= 0) & (z <= f.cylinder_height * scale)
    r, length = (f.sphere_radius, 0.0) if shape == "sphere" else (f.capsule_radius, f.capsule_straight)
    axis = np.clip(z, r * scale, (r + length) * scale)
    return x**2 + y**2 + (z - axis) ** 2 <= (r * scale) ** 2


def test_a_ray_from_above_straight_down_meets_the_top() -> None:
    for shape, height in (("cube", 0.6166), ("cylinder", 0.669), ("sphere", 0.75), ("capsule", 1.138)):
        hit = meet(shape, 1.0, shapes3d.FRAMING, *_ray((0.01, 0.01, 2.0), (0.01, 0.01, 1.0)))
        assert hit.distance[0] == pytest.approx(2 - height, abs=4e-4)
        assert hit.normal[2][0] > 0


def test_middle_view_shows_what_plane_geometry_says() -> None:
    samples = trace(0, 2, 7)
    f = shapes3d.FRAMING
    centre = samples.surface[4]  # the samples in the middle of the pixels
    depth = f.room_half_side + f.camera_radius
    top = 31.5 - f.focal_length * (f.wall_height - f.camera_height) / depth
    foot = 31.5 + f.focal_length * f.camera_height / depth
    assert np.flatnonzero(centre[:, 0] == SKY).max() == int(np.floor(top))
    assert np.flatnonzero(centre[:, 0] == FLOOR).min() == int(np.ceil(foot))
    assert (centre[int(np.ceil(top)) : int(np.ceil(foot)), 0] == WALL).all()
    np.testing.assert_array_equal(centre == OBJECT, (centre == OBJECT)[:, ::-1])
    shadow = (centre == FLOOR) & np.isclose(samples.light[4], f.ambient_light)
    assert 20 < shadow.sum() < 400
    assert np.nonzero(shadow)[1].mean() > 32  # to the right


@pytest.mark.parametrize(("scale", "shape", "orientation"), [(0, 0, 14), (3, 1, 0), (7, 2, 5), (7, 3, 14), (1, 3, 7)])
def test_only_rays_that_meet_nothing_are_left_out(scale: int, shape: int, orientation: int) -> None:
    """Rays of all samples, and from all of the floor to the lamp: a state casts those where it expects the object."""
    samples, seen, f = trace(scale, shape, orientation), view(orientation), shapes3d.FRAMING
    form = shapes3d.SHAPES[shape], shapes3d.SCALES[scale], f
    met = np.isfinite(meet(*form, seen.eye, seen.rays).distance).reshape(9, 64, 64)
    np.testing.assert_array_equal(samples.surface == OBJECT, met)
    with np.errstate(divide="ignore"):
        ground = np.where(seen.rays[2] < 0, -seen.eye[2] / seen.rays[2], 0)
    x, y, z = (start + ground * step for start, step in zip(seen.eye, seen.rays, strict=True))
    dark = np.isfinite(meet(*form, (x, y, z), tuple(a - b for a, b in zip(f.lamp, (x, y, z), strict=True))).distance)
    floor = samples.surface == FLOOR
    np.testing.assert_array_equal((samples.light == f.ambient_light)[floor], dark.reshape(9, 64, 64)[floor])


def test_larger_levels_cover_more() -> None:
    for shape in range(4):
        covered = [np.mean(trace(scale, shape, 3).surface == OBJECT) for scale in range(8)]
        assert all(small * 1.05 < large for small, large in itertools.pairwise(covered))


def test_planes_of_any_hues_never_overflow() -> None:
    for scale, shape, orientation in ((7, 3, 14), (0, 0, 0), (4, 1, 5), (6, 2, 9)):
        state = planes(scale, shape, orientation).astype(int)
        brightest = state[0:6].max(0) + state[6:12].max(0) + state[12:18].max(0) + state[18:].max(0)
        assert brightest.max() <= 255


def test_planes_agree_with_averaging_the_colors_of_all_samples() -> None:
    for hues, scale, shape, orientation in (((0, 6, 3), 0, 0, 14), ((1, 2, 7), 7, 3, 0), ((9, 5, 4), 3, 2, 8)):
        samples = trace(scale, shape, orientation)
        table = np.array([shapes3d.FRAMING.sky, *(HUE_FIFTHS[hue] / 5 for hue in hues)])
        light = np.where(samples.surface == SKY, 1, samples.light)
        colors = np.minimum(table[samples.surface] * light[..., None] + samples.gloss[..., None], 1)
        picture = compose(planes(scale, shape, orientation), *hues).astype(float)
        difference = picture - 255 * colors.mean(axis=0)
        edge = (samples.surface != samples.surface[0]).any(axis=0)
        assert np.abs(difference[~edge]).max() <= 0.5 + 1e-9
        assert -4 < difference[edge].min()
        assert difference[edge].max() < 1e-9


def _published() -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Frames of the published animation, scaled back to 64 × 64, and the codes that they show."""
    seen = [(0, 6, 3, 0, 0, orientation) for orientation in range(15)]
    seen += [(0, 6, 3, 0, shape, 14) for shape in (1, 2, 3)]
    seen += [(0, 6, 3, scale, 3, 14) for scale in range(1, 8)]
    seen += [(0, 6, hue, 7, 3, 14) for hue in (4, 5, 6, 7, 8, 9, 0, 1, 2)]
    seen += [(0, hue, 2, 7, 3, 14) for hue in (7, 8, 9, 0, 1, 5)]
    seen += [(hue, 5, 2, 7, 3, 14) for hue in (1, 2, 3)]
    seen += [(0, hue, 2, 7, 3, 14) for hue in (2, 3, 4, 5)]
    seen += [(hue, 5, 2, 7, 3, 14) for hue in (4, 5, 6, 7, 8, 9)]
    columns = np.floor(1.05 + 3.512 * np.arange(65) + 0.5).astype(int)
    rows = np.floor(0.1 + 3.512 * np.arange(65) + 0.5).astype(int)
    rows[0] = columns[0] = 1  # a white frame surrounds the picture
    pixels = np.diff(rows)[:, None, None] * np.diff(columns)[:, None]
    pairs = []
    with Image.open(FRAMES) as film:
        for number, codes in enumerate(seen):
            film.seek(number)
            frame = np.asarray(film.convert("RGB"), dtype=float)[: rows[-1], : columns[-1]]
            total = np.add.reduceat(np.add.reduceat(frame, rows[:-1], axis=0), columns[:-1], axis=1)
            pairs.append((codes, total / pixels))
    return pairs


@pytest.mark.long("renderings")
@pytest.mark.skipif(not FRAMES.exists(), reason="the published frames are not beside this checkout")
def test_images_resemble_the_published_frames() -> None:
    """Pictures against published frames: on average 3.3 of 255, of which some are the animation's own dithering."""
    pairs = _published()
    states = {codes[3:]: planes(*codes[3:]) for codes, _ in pairs}
    shown = np.array([frame for _, frame in pairs])
    drawn = np.array([compose(states[codes[3:]], *codes[:3]) for codes, _ in pairs], dtype=float)
    differences = np.abs(drawn - shown).mean(axis=(1, 2, 3))
    assert differences.mean() < 3.6
    assert differences.max() < 6
    # of all frames the one with the same codes is the nearest, but for two that show the same
    distances = np.abs(drawn[:, None] - shown[None]).mean(axis=(2, 3, 4))
    nearest = [pairs[index][0] for index in distances.argmin(axis=1)]
    assert nearest == [codes for codes, _ in pairs]
