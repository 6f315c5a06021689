"""Appendix A: distances of reconstructions against the definition written out, and what it refuses."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import LightningModule  # noqa: E402

import setsup  # noqa: E402
from setsup.datasets import Modality  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.methods.recipes import recipe  # noqa: E402
from setsup_papers.dcodr.recipes import APPENDIX_A  # noqa: E402
from setsup_papers.dcodr.transforms_study import TRANSFORMS, AutoencoderInvariance  # noqa: E402
from tests.experiments.numbered import Numbered, trained  # noqa: E402


class Half(LightningModule):
    """A reconstruction that is the mean of an image and its mirror image: blind to flips."""

    generator = True

    def distance(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return (one - other).abs().mean((1, 2, 3))

    def reconstruct(self, batch: Any) -> torch.Tensor:
        assert not torch.is_grad_enabled()
        images = batch["image"].float() / 255
        return (images + images.flip(-1)) / 2


@pytest.fixture(scope="module")
def shapes():
    whole = setsup.load("shapes3d-procedural")
    return whole.select(np.arange(0, 480_000, 48_000) + 7)


def test_all_transforms_are_those_of_the_recipes():
    assert sorted(TRANSFORMS) == sorted(APPENDIX_A)
    assert len(TRANSFORMS) == 13


def test_values_are_the_definition(shapes):
    names = ("horizontal-flip", "high-brightness", "crop")
    some = trained(Half(), shapes)
    found = AutoencoderInvariance(samples=10, transforms=names).measure(some).values
    rows = some.sample(10)
    images = torch.from_numpy(shapes.fetch(rows)["image"]).permute(0, 3, 1, 2)
    for name in names:
        # one batch holds all rows, so that what is drawn is what step 0 draws
        changed = recipe(f"dcodr-a/{name}", seed=0)({"image": images[None], "step": 0})["positive_image"][0]
        plain, quotients = [], []
        for one, other in zip(images.float() / 255, changed.float() / 255, strict=True):
            both = [(some + some.flip(-1)) / 2 for some in (one, other)]
            plain.append(float((both[0] - both[1]).abs().mean()))
            quotients.append(plain[-1] / float((one - other).abs().mean()))
        assert found[f"{name}: unnormalised"] == pytest.approx(np.mean(plain), abs=1e-6)
        assert found[f"{name}: normalised"] == pytest.approx(np.mean(quotients), abs=1e-5)
    assert found["horizontal-flip: unnormalised"] == pytest.approx(0, abs=1e-6)
    assert found["high-brightness: normalised"] > 0.5


def test_what_does_not_reconstruct_is_refused(shapes):
    class Plain(LightningModule):
        pass

    with pytest.raises(SetsupError, match="Plain does not reconstruct images"):
        AutoencoderInvariance().measure(trained(Plain(), shapes))
    with pytest.raises(SetsupError, match="transforms must contain one or more transforms of appendix A"):
        AutoencoderInvariance(transforms=("flip",))
    with pytest.raises(SetsupError, match="not an empty list"):
        AutoencoderInvariance(transforms=())
    assert AutoencoderInvariance().shrunk().samples < 100


def test_the_distance_may_be_another(shapes):
    some = trained(Half(), shapes)
    options: Any = {"samples": 4, "transforms": ("vertical-flip",)}
    own = AutoencoderInvariance(**options).measure(some).values
    other = AutoencoderInvariance(distance="pyramid", **options).measure(some).values
    assert own != other


class Wide(Numbered):
    """Numbered images of noise, 16 × 24 pixels."""

    def __init__(self) -> None:
        super().__init__(8)
        self.modalities = {"image": Modality((16, 24, 3), "uint8", color="srgb")}

    def fetch(self, indices: Any, modalities: Any = None) -> dict[str, np.ndarray]:
        noise = np.random.default_rng(0).integers(0, 256, (8, 16, 24, 3), dtype=np.uint8)
        return {"image": noise[np.asarray(indices)]}


def test_transformed_images_keep_their_size():
    found = AutoencoderInvariance(samples=8, transforms=("crop", "affine")).measure(trained(Half(), Wide())).values
    assert min(found.values()) > 0
