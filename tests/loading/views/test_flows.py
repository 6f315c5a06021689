"""FlowViews beside the formula of the flow of videos, and through crops and flips."""

import numpy as np
import pytest

from setsup.errors import DataError, SetsupError

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("kornia", reason="kornia is not installed")

from setsup.datasets.adapters.clip_flow import LIMIT  # noqa: E402
from setsup.loading.transforms import Augment, Flip  # noqa: E402
from setsup.loading.views import FlowViews  # noqa: E402


def test_flow_has_the_form_of_videos():
    rng = np.random.default_rng(0)
    field = rng.normal(0, 15, (2, 3, 5, 7, 2)).astype(np.float32)
    field[0, 1, 2] = np.nan
    found = FlowViews()({"exact_flow": torch.from_numpy(field), "step": 0})["flow"]
    assert (tuple(found.shape), found.dtype) == ((2, 3, 2, 5, 7), torch.float32)
    assert FlowViews().limit == LIMIT
    wanted = np.where(np.isnan(field), 0, np.clip(field, -20, 20) / 20)
    assert np.abs(found.numpy() - np.moveaxis(wanted, -1, 2)).max() < 1e-6


def test_flips_turn_flow_round():
    field = torch.zeros(1, 1, 4, 6, 2)
    field[..., 0] = torch.arange(6.0)
    batch = FlowViews(limit=10)({"exact_flow": field, "step": 0, "indices": torch.zeros(1, 1, dtype=torch.int64)})
    flipped = Augment([Flip(p=1.0)], modalities={"flow": "flow"})(batch)["flow"]
    assert np.allclose(flipped[0, 0, 0], -batch["flow"][0, 0, 0].flip(-1))
    assert (flipped[0, 0, 1] == 0).all()


@pytest.mark.parametrize(
    ("field", "error"),
    [
        (torch.zeros(1, 1, 2, 4, 4), DataError),
        (torch.zeros(1, 1, 4, 4, 2, dtype=torch.int32), DataError),
        (torch.zeros(1, 4, 4, 2), DataError),
    ],
)
def test_what_is_no_flow(field, error):
    with pytest.raises(error, match="must be floating point of shape"):
        FlowViews()({"exact_flow": field})
    with pytest.raises(SetsupError, match="not found in the batch"):
        FlowViews()({})
    with pytest.raises(SetsupError, match="limit"):
        FlowViews(0)
    with pytest.raises(SetsupError, match="already contains"):
        FlowViews(name="exact_flow")({"exact_flow": torch.zeros(1, 1, 4, 4, 2)})
