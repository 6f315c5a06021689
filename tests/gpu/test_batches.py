"""Batches of samplers on a GPU: the numbers that numpy gets, also in buffers that are reused, and after resuming."""

from itertools import islice
from typing import Any

import numpy as np
import pytest

import setsup
from setsup.loading import Loader

torch = pytest.importorskip("torch", reason="torch is not installed")

FEW = "orientation == 0 and scale == 0.75 and floor_hue == 0"
SHAPES = setsup.load("shapes3d-procedural")
SAMPLERS = {
    "sets": setsup.SetSampler(SHAPES.factors, inactive=["wall_hue"], size=4, sets=2, where=FEW),
    "domains": setsup.DomainSampler(SHAPES.factors, "shape", sets=2, size=4, where=FEW),
    "pairs": setsup.FactorPairSampler(SHAPES.factors, pairs=4, k=1),
}
HELD = 12
"""Batches that are kept: more than a loader has buffers."""


def equal(found: Any, wanted: Any, device: str) -> None:
    """The same numbers, on the device; images have their channels first."""
    assert found.keys() == wanted.keys()
    for name, one in wanted.items():
        if isinstance(one, dict):
            equal(found[name], one, device)
        elif isinstance(one, np.ndarray):
            assert found[name].device.type == device.partition(":")[0]
            here = found[name].cpu().numpy()
            assert np.array_equal(here if name != "image" else np.moveaxis(here, -3, -1), one), name
        else:
            assert found[name] == one


@pytest.mark.parametrize("name", SAMPLERS)
def test_batches_are_those_of_numpy(device: str, name: str) -> None:
    wanted = list(islice(Loader(SHAPES, SAMPLERS[name], to="numpy", workers=0), HELD))
    found = list(islice(Loader(SHAPES, SAMPLERS[name], to=device, workers="thread"), HELD))
    for one, other in zip(found, wanted, strict=True):
        equal(one, other, device)


def test_a_stream_resumes_on_the_device(device: str) -> None:
    loader = Loader(SHAPES, SAMPLERS["sets"], to=device, workers="thread")
    list(islice(loader, 3))
    other = Loader(SHAPES, SAMPLERS["sets"], to="numpy", workers=0)
    other.load_state_dict(loader.state_dict())
    equal(next(iter(loader)), next(iter(other)), device)


def test_transforms_are_applied_on_the_device(device: str) -> None:
    seen = []

    def transform(batch: dict[str, Any]) -> dict[str, Any]:
        seen.append(batch["image"].device.type)
        return batch | {"image": 255 - batch["image"]}

    wanted = next(iter(Loader(SHAPES, SAMPLERS["sets"], to="numpy", workers=0)))["image"]
    found = next(iter(Loader(SHAPES, SAMPLERS["sets"], to=device, workers=0, transform=transform)))["image"]
    assert set(seen) == {device.partition(":")[0]}
    assert np.array_equal(255 - found.cpu().numpy(), np.moveaxis(wanted, -1, -3))
