import numpy as np
import pytest

from setsup.scenes.color import LINEAR, encode, linear, to_bytes


def test_linear_light_is_that_of_scikit_image():
    color = pytest.importorskip("skimage.color")
    grey = np.arange(256) / 255
    # of a grey, Y is its linear light: the middle row of the matrix adds up to 1
    expected = color.rgb2xyz(np.repeat(grey[None, :, None], 3, axis=2))[0, :, 1]
    assert np.allclose(LINEAR, expected, atol=1e-6)
    assert np.allclose(linear(grey), LINEAR, atol=0)


def test_the_published_curve():
    # IEC 61966-2-1: the two branches, where they meet, and their ends
    assert linear([0, 0.04045, 1]).tolist() == pytest.approx([0, 0.04045 / 12.92, 1])
    assert linear(0.0404) == pytest.approx(linear(0.0405), rel=5e-3)
    assert to_bytes([0.18, 0.5, 1e-9]).tolist() == [118, 188, 0]  # middle grey; half of the light; next to nothing
    trimesh = pytest.importorskip("trimesh")
    light = np.linspace(0, 1, 1001)
    assert np.allclose(encode(light), trimesh.visual.color.linear_to_srgb(light), atol=1e-9)


def test_every_byte_comes_back():
    assert np.array_equal(to_bytes(LINEAR), np.arange(256))
    assert (np.diff(LINEAR) > 0).all()
    fine = np.linspace(0, 1, 10_001)
    assert np.allclose(linear(encode(fine)), fine, atol=1e-7)  # the two thresholds meet to seven digits


def test_light_is_cut_to_what_a_image_can_show():
    assert to_bytes([-1.0, 0.0, 1.0, 1.5, np.inf]).tolist() == [0, 0, 255, 255, 255]
    assert to_bytes(np.ones((2, 3))).dtype == np.uint8
    assert encode(np.float32(0.5)).dtype == np.float64


def test_halves_are_rounded_up():
    just = linear((10.5 + np.array([-1e-6, 1e-6])) / 255)
    assert to_bytes(just).tolist() == [10, 11]


def test_float32_is_looked_up_in_a_table_with_the_same_result():
    """Around every step between bytes, at one in a thousand of all floats of 0 … 1, and outside."""
    everything = np.arange(-(1 << 31), 1 << 31, 4001).astype(np.int32).view(np.float32)
    steps = linear((np.arange(255) + 0.5) / 255).astype(np.float32).view(np.int32)
    near = (steps[:, None] + np.arange(-500, 501)).astype(np.int32).view(np.float32)
    within = np.arange(0, np.float32(1).view(np.int32), 1009).astype(np.int32).view(np.float32)
    for values in (everything[np.isfinite(everything)], near, within, np.float32([-np.inf, -0.0, 0.0, 1.0, np.inf])):
        assert np.array_equal(to_bytes(values), to_bytes(values.astype(np.float64)))
    assert to_bytes(np.float32(0.5)) == 188
