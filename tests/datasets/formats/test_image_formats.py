"""Which endings are images here, with and without plug-ins of Pillow; stand-ins take the place of real plug-ins."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image, features

from setsup.datasets.formats import image_formats
from setsup.datasets.formats.image_formats import (
    ENDINGS,
    ending_pattern,
    image_endings,
    missing_plugins,
    pillow_formats,
)
from setsup.datasets.images import decode, header

TORCHVISION = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
needs_avif = pytest.mark.skipif(not features.check_module("avif"), reason="this Pillow was built without AVIF")


@pytest.fixture(autouse=True)
def _as_new() -> Iterator[None]:
    image_formats._registered.cache_clear()
    yield
    image_formats._registered.cache_clear()


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Stand-in for pillow-heif: registers a reader of PNG files as HEIF."""
    from PIL.PngImagePlugin import PngImageFile

    monkeypatch.setattr(Image, "OPEN", dict(Image.OPEN))
    module = ModuleType("pillow_heif")
    module.register_heif_opener = lambda: Image.OPEN.update(HEIF=(PngImageFile, None))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pillow_heif", module)
    return module


def test_what_torchvision_takes_for_an_image_is_one_here() -> None:
    assert set(TORCHVISION) <= set(ENDINGS) <= set(image_endings())


def test_every_ending_is_that_of_a_format_that_pillow_is_allowed() -> None:
    Image.init()
    formats = {ending: name for ending, name in Image.EXTENSION.items() if name in pillow_formats()}
    assert set(image_endings()) <= formats.keys()


def test_endings_match_in_any_case() -> None:
    names = pa.array(["a.JPG", "b.Jpeg", "c.jpgx", "jpg", "d.png.txt"], pa.large_string())
    found = pa.compute.match_substring_regex(names, ending_pattern() + "$")
    assert found.to_pylist() == [True, True, False, False, False]


def test_heic_needs_a_plugin_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_formats, "installed", lambda name: False)
    assert ".heic" not in image_endings()
    names = pa.array(["IMG_1.HEIC", "b.heif", "c.png"], pa.large_string())
    assert missing_plugins(names) == (
        "2 files end in .heic or .heif or .hif, which Pillow cannot decode without a plug-in: pip install pillow-heif"
    )
    assert missing_plugins(names[2:]) == missing_plugins(names[:0]) == ""


def test_an_installed_plugin_is_registered(plugin: ModuleType) -> None:
    assert {".heic", ".heif"} <= set(image_endings())
    assert "HEIF" in pillow_formats()
    assert missing_plugins(pa.array(["a.heic"], pa.large_string())) == ""


def test_a_plugin_that_fails_is_none(plugin: ModuleType) -> None:
    def fail() -> None:
        raise RuntimeError("built for another Pillow")

    plugin.register_heif_opener = fail  # type: ignore[attr-defined]
    assert ".heic" not in image_endings()


@needs_avif
@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_avif_is_decoded_upright(orientation: int, tmp_path: Path) -> None:
    image = Image.new("RGB", (48, 32), (200, 0, 0))
    image.paste((0, 0, 200), (0, 0, 24, 16))
    note = Image.Exif()
    note[0x0112] = orientation
    content = io.BytesIO()
    image.save(content, "AVIF", quality=95, exif=note)
    turn = {1: None, 3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_270, 8: Image.Transpose.ROTATE_90}
    expected = image if turn[orientation] is None else image.transpose(turn[orientation])
    found = decode(content.getvalue(), "a.avif", 3)
    assert (found.shape[1], found.shape[0]) == expected.size
    assert (header(content.getvalue(), "a").height, header(content.getvalue(), "a").width) == found.shape[:2]
    assert np.abs(found.astype(int) - np.asarray(expected)).mean() < 4
