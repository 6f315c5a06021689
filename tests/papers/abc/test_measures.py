"""Figure 5a: where images of the digit that was withheld stand, beside numpy's singular vectors."""

from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch", reason="torch is not installed")

from setsup_papers.abc.measures import DigitStyle


def test_components_of_the_picture_are_those_of_the_images_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[Any, Any, dict[str, str]]] = []

    def scatter(points: Any, images: Any, **labels: str) -> Image.Image:
        drawn.append((points, images, labels))
        return Image.new("RGB", (1, 1))

    monkeypatch.setattr("setsup.reports.image_points.image_scatter", scatter)
    dice = np.random.default_rng(0)
    embedded = dice.normal(size=(900, 8)) * np.arange(8, 0, -1)
    embedded[400:] = embedded[400:, ::-1]  # those that are not shown spread the other way
    images = np.zeros((900, 28, 28, 1), np.uint8)
    DigitStyle()._scatter(embedded, images)
    ((points, pictures, labels),) = drawn
    centred = embedded[:400] - embedded[:400].mean(0)
    _, lengths, directions = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(np.abs(points), np.abs(centred @ directions[:2].T), atol=1e-9)
    assert len(pictures) == 400
    shares = 100 * lengths**2 / (lengths**2).sum()
    assert labels == {"x_label": f"component 1 ({shares[0]:.0f} %)", "y_label": f"component 2 ({shares[1]:.0f} %)"}
