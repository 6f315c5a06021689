"""Features of pixels as images."""

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.reports.pixel_features import component_images, place_colors


def test_colors_are_the_first_components_of_all_images_together() -> None:
    decomposition = pytest.importorskip("sklearn.decomposition")
    dice = np.random.default_rng(0)
    maps = [dice.normal(size=(h, w, 7)) @ np.diag([9, 5, 3, 1, 1, 1, 0.1]) for h, w in ((20, 30), (16, 24))]
    found = np.concatenate([image.reshape(-1, 3) for image in component_images(maps)]).astype(float)
    flat = np.concatenate([one.reshape(-1, 7) for one in maps])
    expected = decomposition.PCA(3).fit_transform(flat)
    low, high = np.quantile(expected, [0.01, 0.99], axis=0)
    for axis in range(3):
        shown = ((expected[:, axis] - low[axis]) / (high[axis] - low[axis])).clip(0, 1) * 255
        either = min(np.abs(found[:, axis] - shown).max(), np.abs(found[:, axis] - (255 - shown)).max())
        assert either <= 2


def test_few_channels_and_constant_features_are_drawn() -> None:
    one, two = np.zeros((4, 5, 1)), np.arange(20.0).reshape(4, 5, 1)
    assert component_images([one])[0].max() == 0
    ramp = component_images([two])[0]
    assert ramp[0, 0].tolist() in ([0, 0, 0], [255, 0, 0])
    assert len(np.unique(ramp[..., 0])) > 15
    with pytest.raises(DataError, match=r"\(h, w, D\) with the same D"):
        component_images([one, np.zeros((4, 5, 2))])


def test_places_beyond_the_image_have_the_colors_of_its_rim() -> None:
    inside, beyond = place_colors([[9, 4], [30, 4]], 5, 10)
    assert inside.tolist() == beyond.tolist() == [240, 240, 160]
