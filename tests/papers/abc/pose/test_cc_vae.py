"""CC-VAE: both cycles image by image, and which networks each trains."""

import copy
import itertools

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")

from torch.distributions import Normal, kl_divergence  # noqa: E402

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup_papers.abc.pose import CCVAE, CCVAESettings, pair_images  # noqa: E402
from setsup_papers.abc.pose.cc_vae_networks import cycle_vae  # noqa: E402
from tests.papers.abc.pose.steps import Steps  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:You are trying to `self.log")


def _seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def _made(**options):
    return CCVAE(CCVAESettings(**options), *cycle_vae((1, 12, 12), 3, 2, (4, 6), generator=_seeded()))


def _batch(sets=3, size=4):
    images = torch.randint(256, (sets, size, 1, 12, 12), dtype=torch.uint8, generator=_seeded(1))
    return {"image": images, "mask": torch.ones(sets, size, dtype=torch.bool)}


def test_pairs_are_neighbours_in_their_set():
    batch = _batch()
    batch["mask"][1, 3] = False
    first, second = pair_images(batch)
    wanted = {(0, 0), (1, 0), (2, 0), (0, 2), (2, 2)}  # the pair with padding is left out
    assert set(_pairs_of(batch, first)) == wanted
    assert torch.equal(second, torch.stack([batch["image"][s, i + 1] / 255 for s, i in _pairs_of(batch, first)]))
    batch["mask"][1, 3] = True
    found = _pairs_of(batch, pair_images(batch)[0])
    assert found == [(s, i) for i in (0, 2) for s in range(3)]


def _pairs_of(batch, images):
    """Set and place in it of each image."""
    given = batch["image"] / 255
    return [
        next((s, i) for s in range(len(given)) for i in range(given.shape[1]) if torch.equal(given[s, i], one))
        for one in images
    ]


def test_neighbours_are_of_different_sets_whatever_is_padding():
    """All masks of a few pairs, against all orders of them."""
    for sets, pairs in ((2, 2), (3, 2), (2, 3)):
        batch = _batch(sets, 2 * pairs)
        for bits in itertools.product((False, True), repeat=sets * pairs):
            batch["mask"] = torch.tensor(bits).reshape(sets, pairs).repeat_interleave(2, dim=1)
            owners = [place // pairs for place, bit in enumerate(bits) if bit]
            if any(_apart(order) for order in itertools.permutations(owners)) and len(owners) > 1:
                found = _pairs_of(batch, pair_images(batch)[0])
                assert len(set(found)) == len(owners)
                assert _apart([s for s, _ in found])
            else:
                with pytest.raises(DataError, match=r"at least two pairs of images|come from one set"):
                    pair_images(batch)


def _apart(owners):
    return all(one != other for one, other in zip(owners, (*owners[1:], owners[0]), strict=True)) if owners else False


@pytest.mark.parametrize(("sets", "size"), [(1, 4), (2, 3)])
def test_what_is_no_pairs_is_refused(sets, size):
    with pytest.raises(DataError, match=r"at least two sets of an even size, not .*; draw such sets"):
        _made().loss(_batch(sets, size))
    batch = _batch()
    batch["mask"][:] = False
    with pytest.raises(DataError, match="at least two pairs"):
        _made().loss(batch)
    with pytest.raises(DataError, match="at least two sets"):
        _made().loss(batch | {"image": batch["image"][:, :, None].expand(-1, -1, 2, -1, -1, -1)})


@pytest.mark.long("both cycles")
def test_losses_are_those_of_loops_over_pairs():
    method, batch = _made(reconstruction=2.0, divergence=3.0, cycle=10.0), _batch()
    reference = copy.deepcopy(method)
    firsts, seconds = pair_images(batch)
    count, values = len(firsts), firsts[0].numel()
    torch.manual_seed(7)
    found = method.loss(batch)
    torch.manual_seed(7)
    noises, reverse = [torch.randn(count, 3), torch.randn(count, 3)], torch.randn(count, 3)
    expected = torch.zeros(())
    for place in range(count):
        pair = firsts[place][None], seconds[place][None]
        codes = [reference.encoder(image) for image in pair]
        for one in range(2):
            posterior, image = codes[one][0], pair[one]
            spread = (posterior.log_variance / 2).exp()
            divergence = kl_divergence(Normal(posterior.mean, spread), Normal(0.0, 1.0)).sum()
            decoded = reference.decoder(posterior.mean + spread * noises[one][place], codes[1 - one][1])
            error = (decoded - image).square().sum() / values
            expected = expected + (3.0 * divergence / values + 2.0 * error) / count
        other = reference.encoder(seconds[(place + 1) % count][None])[1]
        means = [
            reference.encoder(reference.decoder(reverse[place][None], specified))[0].mean
            for specified in (codes[0][1], other)
        ]
        expected = expected + 10.0 * (means[0] - means[1]).abs().mean() / count
    torch.testing.assert_close(found, expected)


@pytest.mark.long("both cycles")
def test_a_step_trains_both_then_the_encoder():
    method, batch = _made(rate=1e-3), _batch()
    expected = copy.deepcopy(method)
    with Steps(method) as steps:
        steps.run(batch)
    both = [*expected.encoder.parameters(), *expected.decoder.parameters()]
    adams = [torch.optim.Adam(some, 1e-3, fused=True) for some in (both, expected.encoder.parameters())]
    torch.manual_seed(0)
    pair = pair_images(batch)
    for adam, loss in zip(adams, (expected._forward_loss, expected._reverse_loss), strict=True):
        adam.zero_grad()
        loss(*pair).backward()
        adam.step()
    for found, wanted in zip(method.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(found, wanted)


def test_the_reverse_cycle_has_no_gradient_for_the_decoder():
    method, pair = _made(), pair_images(_batch())
    method._reverse_loss(*pair).backward()
    assert all(one.grad is None for one in method.decoder.parameters())
    assert method.encoder.unspecified_mean.weight.grad.abs().sum() > 0
    assert method.encoder.specified.weight.grad is None


@pytest.mark.long("both cycles")
def test_the_rate_decays_with_both_optimisers():
    method = _made(decay_every=2, decay=0.5, rate=0.1)
    with Steps(method) as steps:
        for _ in range(4):
            steps.run(_batch())
        assert [group["lr"] for adam in steps.optimisers for group in adam.param_groups] == [0.025, 0.025]


def test_embeddings_are_means_of_the_unspecified_code():
    method, batch = _made().eval(), _batch()
    found = method.embed(batch)
    assert found.shape == (3, 4, 3)
    torch.testing.assert_close(found[1, 2], method.encoder(batch["image"][1, 2][None] / 255)[0].mean[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "learning rate"),
        ({"decay_every": 0}, "decay_every must be 1 or more"),
        ({"decay": 1.5}, "decay must be above 0 and at most 1, not 1.5"),
    ],
)
def test_what_is_no_setting_is_refused(options, message):
    with pytest.raises(SetsupError, match=message):
        _made(**options)
