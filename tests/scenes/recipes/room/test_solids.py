"""A profile that is turned about an axis gives a closed solid with the volume of its formula."""

import numpy as np
import pytest

from setsup.scenes import Material
from setsup.scenes.recipes.room.solids import turned


@pytest.mark.parametrize("segments", [3, 24])
def test_a_turned_rectangle_is_a_prism(segments: int) -> None:
    radius, height = 0.4, 0.7
    part = turned([(0, 0), (radius, 0), (radius, height), (0, height)], Material(), segments=segments)
    first, second, third, fourth = part.corners.transpose(1, 0, 2)
    volume = sum(
        np.linalg.det(np.stack(corners, axis=1)).sum() / 6
        for corners in ((first, second, third), (first, third, fourth))
    )
    assert abs(volume) == pytest.approx(segments / 2 * np.sin(2 * np.pi / segments) * radius**2 * height, rel=1e-12)
    ends = {tuple(point) for point in part.corners.reshape(-1, 3).round(12) + 0.0}
    assert len(ends) == 2 * segments + 2, "the seam closes to the last bit"
