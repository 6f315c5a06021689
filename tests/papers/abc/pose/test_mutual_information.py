"""Both stages of Sanchez et al.: the published networks, losses pair by pair, and what each step trains."""

import copy
import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")

from torch.nn import functional  # noqa: E402

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup_papers.abc.pose import (  # noqa: E402
    ExclusiveInformation,
    ExclusiveInformationSettings,
    SharedInformation,
    SharedInformationSettings,
    jensen_shannon_loss,
    pair_images,
)
from setsup_papers.abc.pose.information_networks import MapEncoder, StatisticsNetworks, discriminator  # noqa: E402
from tests.papers.abc.pose.steps import Steps  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:You are trying to `self.log")

SHARED, EXCLUSIVE = 3, 2


def _count(network):
    return sum(parameter.numel() for parameter in network.parameters())


def test_parameters_are_those_of_the_published_layers():
    encoder = MapEncoder((3, 28, 28), 8)
    convolutions = (3 * 16 + 1) * 64 + (64 * 16 + 1) * 128 + (128 * 16 + 1) * 256
    assert _count(encoder) == convolutions + 2 * 128 + 2 * 256 + (16 * 256 + 1) * 8
    assert encoder.maps == (256, 4, 4)
    of_stage_2 = StatisticsNetworks((512, 4, 4), 64 + 8)
    assert _count(of_stage_2.whole) == (16 * 512 + 72 + 1) * 512 + 513 * 512 + 513
    assert _count(of_stage_2.places) == (512 + 72 + 1) * 512 + 513 * 512 + 513
    assert _count(discriminator(72)) == 73 * 1000 + 1001 * 200 + 201


def test_an_image_passes_the_published_layers_one_by_one():
    torch.manual_seed(0)
    encoder = MapEncoder((1, 28, 28), 5, filters=3).eval()
    images = torch.rand(2, 1, 28, 28)
    first, _, second, second_norm, third, third_norm, _ = encoder.layers
    found = functional.leaky_relu(functional.conv2d(images, first.weight, first.bias), 0.01)
    found = second_norm(functional.conv2d(found, second.weight, second.bias, 2))
    found = third_norm(functional.conv2d(found, third.weight, third.bias, 2))
    found = functional.leaky_relu(found, 0.01)
    code, maps = encoder(images)
    torch.testing.assert_close(maps, found)
    torch.testing.assert_close(code, found.flatten(1) @ encoder.code.weight.T + encoder.code.bias)


def test_statistics_of_places_see_the_code_at_each():
    torch.manual_seed(0)
    networks = StatisticsNetworks((4, 2, 3), 5, width=7)
    maps, codes = torch.rand(2, 4, 2, 3), torch.rand(2, 5)
    whole, places = networks(maps, codes)
    assert (whole.shape, places.shape) == ((2, 1), (2, 1, 2, 3))
    found = torch.cat([maps[1, :, 1, 2], codes[1]])
    for place in (0, 2, 4):
        layer = networks.places[place]
        found = layer.weight[:, :, 0, 0] @ found + layer.bias
        found = found.relu() if place < 4 else found
    torch.testing.assert_close(places[1, :, 1, 2], found)
    torch.testing.assert_close(whole[:1], networks.whole(torch.cat([maps[0].flatten(), codes[0]])[None]))


def test_the_loss_is_least_where_statistics_are_log_ratios():
    """For two distributions, the minimum over T is 2 ln 2 − 2 JSD, at T = ln(p / q)."""
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.1, 0.2, 0.7])
    middle = (p + q) / 2
    divergence = ((p * (p / middle).log()).sum() + (q * (q / middle).log()).sum()) / 2
    best = (p / q).log()
    # samples in the proportions of the distributions
    samples = [torch.repeat_interleave(torch.arange(3), (10 * share).round().long()) for share in (p, q)]
    found = jensen_shannon_loss(best[samples[0]], best[samples[1]])
    torch.testing.assert_close(found, 2 * math.log(2) - 2 * divergence)
    assert jensen_shannon_loss(1.1 * best[samples[0]], 1.1 * best[samples[1]]) > found
    with pytest.raises(DataError, match="at least one statistic"):
        jensen_shannon_loss(torch.zeros(0), torch.zeros(2))


def _encoders(size, count):
    return [MapEncoder((1, 12, 12), size, filters=2, convolutions=2) for _ in range(count)]


def _stage_1(count=1, **options):
    torch.manual_seed(0)
    encoders = _encoders(SHARED, count)
    statistics = [StatisticsNetworks(one.maps, SHARED, 5) for one in encoders]
    return SharedInformation(SharedInformationSettings(**options), encoders, statistics).eval()


def _stage_2(count=1, **options):
    torch.manual_seed(1)
    shared, encoders = _encoders(SHARED, count), _encoders(EXCLUSIVE, count)
    channels, height, width = encoders[0].maps
    size = SHARED + EXCLUSIVE
    found = ExclusiveInformation(
        ExclusiveInformationSettings(**options),
        shared,
        encoders,
        [StatisticsNetworks((2 * channels, height, width), size, 5) for _ in encoders],
        [discriminator(size, (6, 4)) for _ in encoders],
    ).eval()
    found.load_initial(_stage_1(count).state_dict())
    return found


def _batch(sets=3, size=4):
    images = torch.randint(256, (sets, size, 1, 12, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(3))
    return {"image": images, "mask": torch.ones(sets, size, dtype=torch.bool)}


def _softplus(x):
    return math.log1p(math.exp(x.item() if isinstance(x, torch.Tensor) else x))


def _information(statistics, maps, codes):
    """Of one image of all pairs: the mean over pairs, and over pairs and places, one number at a time."""
    whole, places = 0.0, 0.0
    for place, code in enumerate(codes):
        joint = statistics(maps[place][None], code[None])
        marginal = statistics(maps[(place + 1) % len(maps)][None], code[None])
        whole += _softplus(-joint[0]) + _softplus(marginal[0])
        points = list(zip(joint[1].flatten(), marginal[1].flatten(), strict=True))
        places += sum(_softplus(-one) + _softplus(other) for one, other in points) / len(points)
    return whole / len(codes), places / len(codes)


@pytest.mark.parametrize("count", [1, 2])
def test_the_loss_of_the_first_stage_is_that_of_loops(count):
    method, batch = _stage_1(count, global_weight=0.5, local_weight=2.0, distance_weight=0.3), _batch()
    expected, encoded = 0.0, []
    for place, images in enumerate(pair_images(batch)):
        encoded.append([method.encoders[place % count](image[None]) for image in images])
    for place in range(2):
        maps = [maps[0] for _, maps in encoded[place]]
        codes = [code[0] for code, _ in encoded[1 - place]]  # those of the other image
        whole, places = _information(method.statistics[place % count], maps, codes)
        expected += 0.5 * whole + 2.0 * places
    distances = [(one[0] - other[0]).abs().mean().item() for one, other in zip(encoded[0], encoded[1], strict=True)]
    expected += 0.3 * sum(distances) / len(distances)
    assert method.loss(batch).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("count", [1, 2])
def test_losses_of_the_second_stage_are_those_of_loops(count):
    method, batch = _stage_2(count, global_weight=0.5, local_weight=2.0, independence_weight=0.3), _batch()
    pairs = pair_images(batch)
    shared = [[method.shared[place % count](one[None]) for one in images] for place, images in enumerate(pairs)]
    own = [[method.encoders[place % count](one[None]) for one in images] for place, images in enumerate(pairs)]
    expected, discriminated = 0.0, 0.0
    for place in range(2):
        maps = [torch.cat([of_shared[1][0], of_own[1][0]]) for of_shared, of_own in zip(shared[place], own[place])]  # noqa: B905
        codes = [torch.cat([other[0][0], one[0][0]]) for other, one in zip(shared[1 - place], own[place])]  # noqa: B905
        apart = [
            torch.cat([shared[1 - place][(number + 1) % len(codes)][0][0], own[place][number][0][0]])
            for number in range(len(codes))
        ]
        whole, places = _information(method.statistics[place % count], maps, codes)
        logits = [method.discriminators[place % count](one).item() for one in codes]
        others = [method.discriminators[place % count](one).item() for one in apart]
        expected += 0.5 * whole + 2.0 * places + 0.3 * sum(_softplus(-one) for one in logits) / len(logits)
        told = [_softplus(one) + _softplus(-other) for one, other in zip(logits, others, strict=True)]
        discriminated += 0.3 * sum(told) / len(told)
    assert method.loss(batch).item() == pytest.approx(expected, rel=1e-5)
    _, of_shared, exclusive = method._encode(batch)
    assert method._discriminator_loss(of_shared, exclusive).item() == pytest.approx(discriminated, rel=1e-5)


def test_a_step_of_the_second_stage_trains_all_but_the_first():
    method, batch = _stage_2(rate=1e-2), _batch()
    before = copy.deepcopy(method.state_dict())
    method.train()
    with Steps(method) as steps:
        steps.run(batch)
    assert not method.shared.training
    moved = {
        name.partition(".")[0] for name, value in method.state_dict().items() if not torch.equal(value, before[name])
    }
    assert {name.partition(".")[0] for name in moved} == {"encoders", "statistics", "discriminators"}
    assert steps.logged.keys() >= {"loss", "discriminator", "global", "local", "independence"}
    assert {id(one) for adam in steps.optimisers for group in adam.param_groups for one in group["params"]} == {
        id(one) for one in method.parameters() if one.requires_grad
    }


@pytest.mark.long("a training")
def test_the_discriminator_learns_to_tell_pairs_apart():
    """Where exclusive codes are those of the partner, both stages of the game have something to do."""
    method, batch = _stage_2(rate=1e-2, independence_weight=1.0), _batch(sets=8)
    _, shared, exclusive = method._encode(batch)
    shared = [100 * (one - one.mean(0)).detach() for one in shared]
    exclusive = [one[:, :EXCLUSIVE] for one in shared[::-1]]
    method.discriminators[0] = discriminator(SHARED + EXCLUSIVE, (64, 32))
    adam = method.configure_optimizers()[1]
    first = method._discriminator_loss(shared, exclusive).item()
    for _ in range(100):
        adam.zero_grad()
        method._discriminator_loss(shared, exclusive).backward()
        adam.step()
    assert method._discriminator_loss(shared, exclusive).item() < first / 2


@pytest.mark.long("a training")
def test_the_first_stage_learns_what_the_images_of_a_set_share():
    """Sets of one brightness each: no more than 2 ln 2 a loss is due to it, and codes tell it."""
    torch.manual_seed(0)
    levels = torch.linspace(0.1, 0.9, 16)
    encoder = MapEncoder((1, 12, 12), SHARED, filters=4, convolutions=2)
    settings = SharedInformationSettings(rate=3e-3)
    method = SharedInformation(settings, [encoder], [StatisticsNetworks(encoder.maps, SHARED, 32)])
    adam = method.configure_optimizers()
    for _ in range(150):
        images = levels[:, None, None, None, None] + 0.2 * (torch.rand(16, 2, 1, 12, 12) - 0.5)
        adam.zero_grad()
        loss = method.loss({"image": images.clamp(0, 1), "mask": torch.ones(16, 2, dtype=torch.bool)})
        loss.backward()
        adam.step()
    assert loss < 0.8 * 3 * 2 * math.log(2)


def test_the_second_stage_starts_from_the_encoders_of_the_first():
    first, second, batch = _stage_1(2), _stage_2(2), _batch()
    second.load_initial(first.state_dict())
    for one, other in zip(first.encoders, second.shared, strict=True):
        images = batch["image"][0] / 255
        torch.testing.assert_close(one(images), other(images))
    assert second.started
    whole = _stage_2(2)
    whole.load_initial(second.state_dict())
    torch.testing.assert_close(whole.embed(batch), second.embed(batch))
    with pytest.raises(SetsupError, match="no shared encoders"):
        second.load_initial({"encoder.weight": torch.zeros(2)})


def test_embeddings_are_shared_or_exclusive_codes():
    batch = _batch()
    for method, size in ((_stage_1(2), SHARED), (_stage_2(2), EXCLUSIVE)):
        found = method.embed(batch)
        assert found.shape == (3, 4, size)
        torch.testing.assert_close(found[2, 1], method.encoders[0](batch["image"][2, 1][None] / 255)[0][0])


def test_what_does_not_fit_is_refused():
    for method in (_stage_1(), _stage_2()):
        for sets, size in ((1, 4), (2, 3)):
            with pytest.raises(DataError, match="at least two sets of an even size"):
                method.loss(_batch(sets, size))
    with pytest.raises(SetsupError, match=r"or 2 \(one per image\), not 2 and 1"):
        SharedInformation(SharedInformationSettings(), _encoders(3, 2), [StatisticsNetworks((4, 4, 4), 3)])
    with pytest.raises(SetsupError, match="not 3 and 3"):
        SharedInformation(SharedInformationSettings(), _encoders(3, 3), [StatisticsNetworks((4, 4, 4), 3)] * 3)
    with pytest.raises(SetsupError, match="too small for 4 convolutions"):
        MapEncoder((1, 20, 28), 8, convolutions=4)
    for made in (_stage_1, _stage_2):
        with pytest.raises(SetsupError, match="learning rate"):
            made(rate=0.0)
