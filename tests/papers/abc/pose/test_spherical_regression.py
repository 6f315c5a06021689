"""Pose by regression: the loss image by image, what is left out of it, and ABC's loss beside it."""

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402
from setsup.methods.networks import convolutional, glorot_  # noqa: E402
from setsup_papers.abc import correspondence_loss, double_augmentation_loss  # noqa: E402
from setsup_papers.abc.pose import (  # noqa: E402  # noqa: E402
    AngleTargets,
    PretrainedFeatures,
    SphericalHead,
    SphericalRegression,
    SphericalRegressionSettings,
    decode_angles,
    geodesic_error,
    rotation_from_euler,
    spherical_losses,
)

pytestmark = pytest.mark.filterwarnings("ignore:You are trying to `self.log")

AXES = ("azimuth", "elevation", "theta")
TABLE = FactorTable([Factor(name, Kind.CONTINUOUS, unit="deg") for name in AXES], {name: [0.0] for name in AXES})


def _seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def _made(names=AXES[:2], objective="double", **options):
    encoder = convolutional((3, 8, 8), [(4, 2)], [6], _seeded())
    head = glorot_(SphericalHead(6, len(names), 5), _seeded(1))
    settings = SphericalRegressionSettings(angles=names, objective=objective, **options)
    return SphericalRegression(settings, encoder, head, AngleTargets(TABLE, names))


def _batch(copies=True):
    """Two pairs of sets of four images; a quarter is not annotated, and one set has padding."""
    shape = (4, 4, 2, 3, 8, 8) if copies else (4, 4, 3, 8, 8)
    factors = {name: 360 * torch.rand(4, 4, generator=_seeded(place)) for place, name in enumerate(AXES)}
    for values in factors.values():
        values[1] = torch.nan
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[2, 3] = False
    images = torch.randint(256, shape, dtype=torch.uint8, generator=_seeded(9))
    return {"image": images, "mask": mask, "factors": factors}


@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize(("names", "weight", "magnitude"), [(AXES[:2], 1.0, "cosine"), (AXES, 4.0, "log")])
def test_the_loss_is_that_of_annotated_images_one_by_one(copies, names, weight, magnitude):
    method, batch = _made(names, magnitude=magnitude, magnitude_weight=weight), _batch(copies)
    expected, annotated = 0.0, [(s, i) for s in (0, 2, 3) for i in range(4) if (s, i) != (2, 3)]
    for s, i in annotated:
        angles = torch.deg2rad(torch.stack([batch["factors"][name][s, i] for name in names]))
        views = batch["image"][s, i] if copies else batch["image"][s, i][None]
        for view in views:
            losses = spherical_losses(method.head(method.abc.encoder(view)), angles, magnitude)
            expected += (weight * losses[0].sum() + losses[1].sum()) / (len(annotated) * len(views))
    torch.testing.assert_close(method.loss(batch), expected)


def test_abc_is_a_further_loss_of_all_images():
    batch, method = _batch(), _made(contrast=0.3)
    embedded = method.abc.encoder(batch["image"])
    u, v, mask = embedded[0::2], embedded[1::2], batch["mask"]
    contrast = double_augmentation_loss(
        (u[:, :, 0], u[:, :, 1]), (v[:, :, 0], v[:, :, 1]), "cosine", 0.05, u_mask=mask[0::2], v_mask=mask[1::2]
    )
    torch.testing.assert_close(method.loss(batch), _made().loss(batch) + 0.3 * contrast)
    single, batch = _made(contrast=1.0, objective="correspondence"), _batch(copies=False)
    embedded = single.abc.encoder(batch["image"])
    contrast = correspondence_loss(embedded[0::2], embedded[1::2], "cosine", 0.05, u_mask=mask[0::2], v_mask=mask[1::2])
    torch.testing.assert_close(single.loss(batch), _made().loss(batch) + contrast)


def test_images_without_annotation_cost_nothing():
    batch = _batch()
    batch["factors"] = {name: torch.full((4, 4), torch.nan) for name in AXES}
    method = _made()
    loss = method.loss(batch)
    loss.backward()
    assert loss.item() == 0
    assert all(one.grad is None or one.grad.isfinite().all() for one in method.parameters())


def test_rotations_are_those_of_the_likeliest_angles():
    batch = _batch(copies=False)
    for names in (AXES[:2], AXES):
        method = _made(names)
        found = method.predict_rotation(batch)
        angles = torch.rad2deg(decode_angles(method.head(method.abc.embed(batch)))).detach().numpy()
        expected = rotation_from_euler(*(angles[..., place] for place in range(len(names))))
        assert found.shape == (4, 4, 3, 3)
        assert geodesic_error(found.detach(), expected).max() < 1e-3
        embedded = method.embed(batch)
        assert {name: tuple(one.shape) for name, one in embedded.items()} == {
            "embedding": (4, 4, 6),
            "rotation": (4, 4, 9),
        }
        torch.testing.assert_close(embedded["rotation"].reshape(4, 4, 3, 3), found)


@pytest.mark.long("a training")
def test_it_learns_the_angle_of_a_gradient():
    """Images whose brightness rises towards an angle: after a few steps, the error is a few degrees."""
    torch.manual_seed(0)
    azimuth = torch.arange(0, 360, 15.0)
    y, x = torch.meshgrid(torch.linspace(-1, 1, 8), torch.linspace(-1, 1, 8), indexing="ij")
    turn = torch.deg2rad(azimuth)[:, None, None]
    images = (0.5 + 0.35 * (turn.cos() * x + turn.sin() * y))[:, None].expand(-1, 3, -1, -1)
    elevation = torch.full_like(azimuth, 20.0)
    batch = {
        "image": images[None],
        "mask": torch.ones(1, 24, dtype=torch.bool),
        "factors": {"azimuth": azimuth[None], "elevation": elevation[None]},
    }
    method = _made()
    adam = torch.optim.Adam(method.parameters(), 1e-2)
    for _ in range(150):
        adam.zero_grad()
        method.loss(batch).backward()
        adam.step()
    with torch.no_grad():
        errors = geodesic_error(method.predict_rotation(batch)[0], rotation_from_euler(azimuth, elevation))
    assert sorted(errors)[12] < 8


def test_what_is_no_pose_is_refused():
    for names in (("elevation", "azimuth"), ("azimuth",), ("azimuth", "theta")):
        with pytest.raises(SetsupError, match="azimuth, elevation, and optionally theta"):
            _made(names)
    for name in ("contrast", "magnitude_weight"):
        for wrong in (-1.0, math.nan, math.inf):
            with pytest.raises(SetsupError, match=f"^the weight {name} must be a finite number of at least 0, not "):
                _made(**{name: wrong})
    with pytest.raises(DataError, match="images must have the shape"):
        _made().loss(_batch() | {"image": torch.zeros(4, 4, 3, 2, 3, 8, 8)})
    with pytest.raises(DataError, match="objective 'double'"):
        _made(contrast=1.0).loss(_batch(copies=False))


def test_rate_and_schedule_are_those_of_abc():
    encoder = convolutional((3, 8, 8), [(4, 2)], [6], _seeded())
    settings = SphericalRegressionSettings(rate=2e-4, halve_every=3)
    method = SphericalRegression(settings, encoder, SphericalHead(6, 2), AngleTargets(TABLE, AXES[:2]))
    found = method.configure_optimizers()
    (group,) = found["optimizer"].param_groups
    assert group["lr"] == 2e-4
    assert {id(one) for one in group["params"]} == {id(one) for one in method.parameters()}
    assert found["lr_scheduler"]["scheduler"].step_size == 3


def test_features_are_what_the_network_gives():
    encoder = convolutional((3, 8, 8), [(4, 2)], [6], _seeded())
    method, batch = PretrainedFeatures(encoder), _batch(copies=False)
    torch.testing.assert_close(method.embed(batch), encoder(batch["image"]))
    assert not any(one.requires_grad for one in method.parameters())
    other = PretrainedFeatures(convolutional((3, 8, 8), [(4, 2)], [6], _seeded(5)))
    other.load_initial(method.state_dict())
    torch.testing.assert_close(other.embed(batch), method.embed(batch))
