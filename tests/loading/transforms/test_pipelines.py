"""What the page on transforms states of pipelines: how far the two ways are from each other, and from exact values."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from setsup.loading.transforms.by_image import cv2
from tests.loading.transforms.pipelines import measure

pytestmark = [
    pytest.mark.skipif(cv2 is None, reason="OpenCV is not installed"),
    pytest.mark.long("pipelines of transforms"),
]

COUNT = 10


@pytest.mark.parametrize("kind", ["waves", "noise"])
@pytest.mark.parametrize("groups", [["unrounded", "smooth"], ["unrounded", "rounded", "smooth"]], ids="+".join)
def test_without_8_bits_torch_is_exact_and_opencv_but_for_its_coordinates(groups: list[str], kind: str) -> None:
    found = measure(groups, kind, False, COUNT)
    assert found.torch < 0.002
    assert found.opencv < {"waves": 0.1, "noise": 0.6}[kind]
    assert found.worst.max() < {"waves": 6, "noise": 16}[kind]


@pytest.mark.parametrize("kind", ["waves", "noise"])
@pytest.mark.parametrize("groups", [["unrounded", "smooth"], ["unrounded", "rounded", "smooth"]], ids="+".join)
def test_with_8_bits_either_is_less_than_a_level_from_the_exact_value_on_average(groups: list[str], kind: str) -> None:
    found = measure(groups, kind, True, COUNT)
    assert max(found.opencv, found.torch) < 1
    assert found.apart < 0.6
    assert found.worst.max() > 1  # no bound of a level holds for pipelines
    if "rounded" not in groups:
        assert found.beyond < 0.02
