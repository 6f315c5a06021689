"""Colour spaces, beside scikit-image's converters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from setsup.errors import DataError, SetsupError

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("kornia", reason="kornia is not installed")
skimage_color = pytest.importorskip("skimage.color", reason="scikit-image is not installed")

from setsup.loading.views.colors import SPACES, color_space, in_color_space  # noqa: E402

CORNERS = np.stack(np.meshgrid(*3 * [[0, 255]], indexing="ij"), axis=-1).reshape(-1, 3)
GREYS = np.repeat(np.arange(256)[:, None], 3, axis=1)
CUBE = np.stack(np.meshgrid(*3 * [np.linspace(0, 255, 18)], indexing="ij"), axis=-1).reshape(-1, 3)
RANDOM = np.random.default_rng(0).integers(0, 256, (20_000, 3))
DARK = np.random.default_rng(1).integers(0, 12, (2_000, 3))  # where lightness and linear sRGB have their straight parts
COLORS = {"corners": CORNERS, "greys": GREYS, "cube": CUBE, "random": RANDOM, "dark": DARK}


def published(space, colors):
    """What scikit-image makes of colours (n, 3): float64 for float64, and for uint8."""
    return getattr(skimage_color, f"rgb2{space}")(colors[None])[0]


def converted(space, colors, **options):
    """What setsup makes of colours (n, 3), as an image of one row."""
    images = torch.from_numpy(np.ascontiguousarray(colors.T[:, None]))
    return in_color_space(images, space, **options)[:, 0].T.numpy()


def distance(space, ours, theirs):
    """Differences; those of hue around the circle."""
    apart = np.abs(ours.astype(np.float64) - theirs)
    if space == "hsv":
        apart[:, 0] = np.minimum(apart[:, 0], 1 - apart[:, 0])
    return apart


def widths(space):
    """Width of each channel's range over all sRGB colours."""
    return np.ptp(published(space, CUBE / 255), axis=0)


@pytest.mark.parametrize("colors", COLORS.values(), ids=COLORS)
@pytest.mark.parametrize("space", SPACES)
def test_values_are_those_of_scikit_image(space, colors):
    theirs, limit = published(space, colors / 255), 1e-5 * widths(space)
    assert (distance(space, converted(space, (colors / 255).astype(np.float32)), theirs) < limit).all()
    eight_bit = np.rint(colors).astype(np.uint8)
    assert (distance(space, converted(space, eight_bit), published(space, eight_bit)) < limit).all()


@pytest.mark.long("large or genuine files")
@given(colors=arrays(np.float32, (4, 3), elements=st.floats(0, 1, width=32)), space=st.sampled_from(sorted(SPACES)))
@settings(max_examples=200, deadline=None)
def test_values_of_any_colors_are_those_of_scikit_image(colors, space):
    theirs = published(space, colors.astype(np.float64))
    # the hue of what is nearly grey, or nearly black, hangs on the last bit
    apart = distance(space, converted(space, colors), theirs)
    if space == "hsv":
        apart[np.ptp(colors, axis=1) < 1e-4, 0] = 0
        apart[colors.max(axis=1) < 1e-4, 1] = 0
    assert (apart < 1e-3 * widths(space)).all()


@pytest.mark.parametrize(
    ("space", "white"),
    [("lab", (100, 0, 0)), ("luv", (100, 0, 0)), ("ycbcr", (235, 128, 128)), ("hsv", (0, 0, 1)), ("hed", (0, 0, 0))]
    + [(space, (1, 0, 0)) for space in ("yuv", "ydbdr", "ypbpr", "yiq")]
    + [("xyz", (0.95047, 1, 1.08883))],
)
def test_white(space, white):
    assert converted(space, np.full((1, 3), 255, np.uint8))[0] == pytest.approx(white, abs=0.01)


def test_published_constants():
    assert (color_space("lab").mean, color_space("lab").std) == ((50, 6.025, -6.6895), (50, 92.208, 101.1675))
    assert color_space("ycbcr").mean == (116.151, 121.080, 132.342)
    assert color_space("ycbcr").std == (109.500, 111.855, 111.964)


@pytest.mark.parametrize("space", SPACES)
def test_normalised_values_are_those_of_scikit_image_less_mean_by_std(space):
    found = color_space(space)
    wanted = (published(space, RANDOM / 255) - found.mean) / found.std
    ours = converted(space, (RANDOM / 255).astype(np.float32), normalize=True)
    apart = np.abs(ours - wanted)
    if space == "hsv":
        apart[:, 0] = np.minimum(apart[:, 0], 2 - apart[:, 0])
    assert apart.max() < 1e-4


@pytest.mark.parametrize("space", sorted(set(SPACES) - {"ycbcr"}))
def test_normalised_channels_lie_between_minus_one_and_one(space):
    normalised = converted(space, (CUBE / 255).astype(np.float32), normalize=True)
    assert normalised.min(axis=0) == pytest.approx([-1, -1, -1], abs=1e-3)
    highest = normalised.max(axis=0)
    if space == "hsv":  # the hue goes round: it comes close to one turn, and never there
        assert 0.95 < highest[0] < 1
        highest[0] = 1
    assert highest == pytest.approx([1, 1, 1], abs=1e-3)


def test_any_leading_axes_any_strides_any_float():
    interleaved = torch.from_numpy(RANDOM[:240].astype(np.uint8).reshape(2, 3, 5, 8, 3))
    images = interleaved.movedim(-1, -3)
    assert not images.is_contiguous()
    found = in_color_space(images, "lab")
    assert found.shape == images.shape
    assert found.dtype == torch.float32
    assert np.abs(found.movedim(-3, -1).numpy() - skimage_color.rgb2lab(interleaved.numpy())).max() < 1e-3
    for dtype, limit in ((torch.float64, 1e-4), (torch.float16, 1)):
        other = in_color_space((images / 255).to(dtype), "lab")
        assert other.dtype == torch.float32
        assert (other - found).abs().max() < limit


@pytest.mark.parametrize("space", SPACES)
def test_images_are_left_alone_and_none_depends_on_its_neighbours(space):
    images = torch.from_numpy((RANDOM[:192] / 255).astype(np.float32).reshape(3, 8, 8, 3)).movedim(-1, -3)
    before = images.clone()
    together = in_color_space(images, space, normalize=True)
    assert torch.equal(images, before)
    assert torch.equal(together, torch.stack([in_color_space(image, space, normalize=True) for image in images]))


def test_names_of_channels_and_views():
    assert {name: space.views for name, space in SPACES.items()} == {
        **{"lab": ("L", "ab"), "luv": ("L", "uv"), "hsv": ("H", "SV"), "hed": ("H", "ED"), "xyz": ("X", "YZ")},
        **{"ycbcr": ("Y", "CbCr"), "ypbpr": ("Y", "PbPr"), "ydbdr": ("Y", "DbDr"), "yuv": ("Y", "UV")},
        **{"yiq": ("Y", "IQ"), "rgbcie": ("R", "GB")},
    }


def test_an_unknown_space_names_near_ones():
    with pytest.raises(SetsupError, match="unknown color space 'lba'; did you mean 'lab'"):
        color_space("lba")
    with pytest.raises(SetsupError, match="unknown color space 'cmyk'; choose from lab, ycbcr"):
        in_color_space(torch.zeros(3, 1, 1), "cmyk")


@pytest.mark.parametrize("shape", [(1, 8, 8), (4, 8, 8), (2, 8, 8, 3), (3,), (8, 3)])
def test_what_is_not_red_green_and_blue_is_refused(shape):
    with pytest.raises(DataError, match=r"\(…, 3, height, width\)"):
        in_color_space(torch.zeros(shape), "lab")


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.int8])
def test_integers_but_uint8_are_refused(dtype):
    with pytest.raises(DataError, match="must be uint8, or floating point in 0 … 1, not torch"):
        in_color_space(torch.zeros((3, 2, 2), dtype=dtype), "lab")
