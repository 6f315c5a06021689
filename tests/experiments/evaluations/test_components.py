"""Principal components of embeddings beside numpy's singular values, and what stands at the axes of their images."""

from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import LightningModule  # noqa: E402

from setsup.experiments.evaluations import Components  # noqa: E402
from tests.experiments.numbered import Numbered, OneHot, trained  # noqa: E402

FACTORS = ("shape", "colour", "size")


class Mixed(LightningModule):
    """Embeds all factors, mixed by a matrix."""

    def embed(self, batch: Any) -> torch.Tensor:
        codes = torch.stack([batch["factors"][name].float() for name in FACTORS], -1)
        return codes @ torch.tensor([[3.0, 1, 0, 0, 2], [0, 1, 1, 0, 0], [0, 0, 0.5, 0, 1]])


def test_shares_of_components_are_those_of_the_singular_values() -> None:
    some = trained(Mixed(), Numbered(900))
    found = Components(factors=FACTORS, samples=500, shown=100).measure(some)
    embedded = some.embed(rows=some.sample(500)).astype(np.float64)
    lengths = np.linalg.svd(embedded - embedded.mean(0), compute_uv=False)
    shares = np.cumsum(lengths**2) / (lengths**2).sum()
    assert list(found.values) == ["first 1", "first 2", "first 3"]
    np.testing.assert_allclose(list(found.values.values()), shares[:3], rtol=1e-6)
    assert found.values["first 3"] == pytest.approx(1)
    (picture,) = found.pictures.values()
    assert picture.size[0] > picture.size[1] > 100, "panels of three factors beside each other"


def test_shares_of_few_dimensions() -> None:
    found = Components(factors=("colour",), samples=200).measure(trained(OneHot("colour", 2), Numbered(200)))
    assert list(found.values) == ["first 1", "first 2"]
    assert found.values["first 1"] == pytest.approx(1)  # two codes lie on a line


def test_axes_say_how_much_of_the_variance_they_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def panels(points: Any, factors: Any, values: Any, **labels: str) -> Image.Image:
        drawn.append((points, labels))
        return Image.new("RGB", (1, 1))

    monkeypatch.setattr("setsup.reports.points.scatter_panels", panels)
    monkeypatch.setattr(
        "setsup.experiments.evaluations.components._MAPS", {"umap": ("UMAP", lambda some, seed: some[:, :2])}
    )
    some = trained(Mixed(), Numbered(900))
    Components(factors=FACTORS, samples=500, shown=100, maps=("pca", "umap")).measure(some)
    embedded = some.embed(rows=some.sample(500)).astype(np.float64)
    lengths = np.linalg.svd(embedded - embedded.mean(0), compute_uv=False)
    first, second = (f"{100 * share:.0f} %" for share in (lengths**2 / (lengths**2).sum())[:2])
    (points, labels), (_, of_map) = drawn
    assert labels == {"x_label": f"component 1 ({first})", "y_label": f"component 2 ({second})"}
    assert points.shape == (100, 2)
    assert of_map == {"x_label": "UMAP 1", "y_label": "UMAP 2"}
