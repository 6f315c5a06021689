"""DRNET: partners of images, both losses against loops over pairs, and which networks each of them trains."""

import collections
import itertools

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

import torch
from torch import Tensor
from torch.nn import functional

from setsup.errors import SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.methods.groups import GroupCodes
from setsup_papers.dcodr.baseline_settings import DRNETSettings
from setsup_papers.dcodr.drnet import DRNET, draw_partners
from setsup_papers.dcodr.networks.drnet import DrnetDecoder, DrnetEncoder, SceneDiscriminator, initialise_drnet

TABLE = FactorTable([Factor("toy", Kind.NOMINAL, ("a", "b", "c", "d"))], {"toy": [0, 1, 3, 0]})
CHANNELS = (4, 6, 8, 10)

pytestmark = pytest.mark.filterwarnings("ignore:You are trying to `self.log")


def made(skips: bool = False, **options: object) -> DRNET:
    """A small method in evaluation mode, so that images do not depend on each other; weights are the same."""
    generator = torch.Generator().manual_seed(0)
    content, pose = DrnetEncoder((1, 32, 32), 5, CHANNELS), DrnetEncoder((1, 32, 32), 3, CHANNELS)
    networks = content, pose, DrnetDecoder(content, 3, skips), SceneDiscriminator(3, 11)
    for network in networks:
        initialise_drnet(network, generator)
        for layer in network.modules():  # larger than as published, so that codes differ
            if isinstance(layer, (torch.nn.Conv2d, torch.nn.ConvTranspose2d, torch.nn.Linear)):
                layer.weight.data *= 5
    settings = DRNETSettings(domain=("toy",), **options)  # type: ignore[arg-type]
    return DRNET(settings, *networks, settings.domains(TABLE)).eval()


def drawn() -> dict:
    """Two sets of four images of a, one of d with two images, and one image of b."""
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[2, 2:], mask[3, 1:] = False, False
    toys = torch.tensor([0, 0, 3, 1])[:, None].expand(4, 4)
    images = torch.randint(0, 256, (4, 4, 1, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    return {"image": images, "factors": {"toy": toys}, "mask": mask}


def test_partners_are_of_the_same_group_or_of_another_and_all_of_these_occur() -> None:
    groups = torch.tensor([0, 0, 1, 1, 1, 2])
    torch.manual_seed(0)
    same, other = (collections.Counter() for _ in range(2))
    for _ in range(600):
        for counts, partners in ((same, draw_partners(groups)), (other, draw_partners(groups, other=True))):
            counts.update(enumerate(partners[0].tolist()))
            assert partners[1].tolist() == [True] * 5 + [counts is other]
    expected = {(i, j) for i in range(6) for j in range(6) if i != j and groups[i] == groups[j]} | {(5, 5)}
    assert set(same) == expected
    assert set(other) == {(i, j) for i in range(6) for j in range(6) if groups[i] != groups[j]}
    assert 230 < same[2, 3] < 370  # one of two
    assert 100 < other[0, 2] < 200  # one of four


def test_a_batch_of_one_group_has_no_pair_of_two() -> None:
    partners, found = draw_partners(torch.zeros(3, dtype=torch.int64), other=True)
    assert partners.tolist() == [0, 1, 2]
    assert not found.any()


def by_loops(method: DRNET, batch: dict) -> tuple[Tensor, Tensor]:
    """Loss of the discriminator, and of the other networks, pair after pair."""
    places = [(i, j) for i in range(4) for j in range(4) if batch["mask"][i, j]]
    images = [batch["image"][place] / 255 for place in places]
    toys = torch.stack([batch["factors"]["toy"][place] for place in places])
    partners, paired = draw_partners(toys)
    strangers, _ = draw_partners(toys, other=True)
    assert paired.tolist() == [True] * 10 + [False]
    contents, poses = ([network(one[None]) for one in images] for network in (method.content, method.pose))
    terms: dict[str, list[Tensor]] = collections.defaultdict(list)
    for i, image in enumerate(images):
        code, maps = contents[partners[i]]
        pose, partner, stranger = (poses[number][0] for number in (i, int(partners[i]), int(strangers[i])))
        terms["reconstruction"].append((method.decoder(code, maps, pose)[0] - image).square().mean())
        terms["similarity"].append((code - contents[i][0].detach()).square().mean())
        told = method.discriminator(pose, partner.detach()).sigmoid()
        terms["confusion"].append(-0.5 * told.log() - 0.5 * (1 - told).log())
        if paired[i]:
            same = method.discriminator(pose.detach(), partner.detach()).sigmoid()
            terms["same"].append(functional.binary_cross_entropy(same, torch.ones(1)))
        other = method.discriminator(pose.detach(), stranger.detach()).sigmoid()
        terms["other"].append(functional.binary_cross_entropy(other, torch.zeros(1)))
    means = {name: sum(some) / len(some) for name, some in terms.items()}
    weights = {"reconstruction": 1, "similarity": method.settings.similarity, "confusion": method.settings.adversarial}
    main = sum(weight * means[name] for name, weight in weights.items())
    return (means["same"] + means["other"]) / 2, main


@pytest.mark.parametrize("skips", [False, True])
def test_losses_and_gradients_are_those_of_loops(skips: bool) -> None:
    mine, theirs = (made(skips, similarity=0.7, adversarial=0.3) for _ in range(2))
    batch = drawn()
    torch.manual_seed(3)
    encoded = mine._encode(batch)
    found = mine._discriminator_loss(encoded), mine._main_loss(encoded)
    torch.manual_seed(3)
    expected = by_loops(theirs, batch)
    for one, other in zip(found, expected, strict=True):
        assert one.item() == pytest.approx(other.item(), rel=1e-5)
    networks = [mine.content, mine.pose, mine.decoder], [theirs.content, theirs.pose, theirs.decoder]
    first = torch.autograd.grad(found[0], list(mine.discriminator.parameters()), retain_graph=True)
    for one, other in zip(
        first, torch.autograd.grad(expected[0], list(theirs.discriminator.parameters())), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)
    weights = [[one for network in some for one in network.parameters()] for some in networks]
    gradients = [torch.autograd.grad(loss[1], some) for loss, some in zip((found, expected), weights, strict=True)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def test_the_loss_of_the_discriminator_does_not_train_the_poses() -> None:
    method = made()
    method._discriminator_loss(method._encode(drawn())).backward()
    assert all(one.grad is None for network in (method.pose, method.content) for one in network.parameters())


def test_an_image_of_unknown_domain_takes_no_part() -> None:
    batch, method = drawn(), made()
    without = drawn()
    without["mask"][0, 0] = False
    batch["factors"] = {"toy": batch["factors"]["toy"].clone()}
    batch["factors"]["toy"][0, 0] = -1
    losses = []
    for one in (batch, without):
        torch.manual_seed(0)
        losses.append(method.loss(one).item())
    assert losses[0] == losses[1]


def test_a_batch_of_one_domain_is_an_error() -> None:
    batch = drawn()
    batch["mask"][2:] = False
    with pytest.raises(SetsupError, match=r"all images of a batch come from one domain \(toy\)"):
        made().loss(batch)


def test_embeddings_are_poses() -> None:
    method, batch = made(), drawn()
    found = method.embed(batch)
    assert found.shape == (4, 4, 3)
    torch.testing.assert_close(found[1, 2], method.pose(batch["image"][1, 2][None] / 255)[0][0])


@pytest.mark.parametrize("skips", [False, True])
def test_networks_have_the_parameters_of_the_published_ones(skips: bool) -> None:
    content, pose = DrnetEncoder((3, 64, 64), 128), DrnetEncoder((3, 64, 64), 10)
    decoder = DrnetDecoder(content, 10, skips)
    widths = (3, 64, 128, 256, 512)
    stages = sum(16 * a * b + b + 2 * b for a, b in itertools.pairwise(widths))
    for encoder, size in ((content, 128), (pose, 10)):
        assert count(encoder) == stages + 16 * 512 * size + size + 2 * size
    back = sum((1 + skips) * 16 * b * a + a + 2 * a for a, b in itertools.pairwise(widths)) - 2 * 3
    assert count(decoder) == 16 * 138 * 512 + 512 + 2 * 512 + back
    assert count(SceneDiscriminator(10)) == 21 * 100 + 101 * 100 + 101
    assert decoder(*content(torch.rand(2, 3, 64, 64)), pose(torch.rand(2, 3, 64, 64))[0]).shape == (2, 3, 64, 64)


def test_initial_weights_are_as_published() -> None:
    encoder = DrnetEncoder((3, 64, 64), 128)
    initialise_drnet(encoder, torch.Generator().manual_seed(0))
    convolution, norm, _ = encoder.stages[3]
    assert convolution.weight.std().item() == pytest.approx(0.02, rel=0.01)
    assert norm.weight.mean().item() == pytest.approx(1, abs=0.01)
    assert norm.weight.std().item() == pytest.approx(0.02, rel=0.2)
    assert not convolution.bias.any()
    assert not norm.bias.any()


def test_other_sides_are_an_error() -> None:
    with pytest.raises(SetsupError, match="multiples of 16 for 4 convolutions with stride 2, not 28 × 28"):
        DrnetEncoder((1, 28, 28), 5)


def count(network: torch.nn.Module) -> int:
    return sum(one.numel() for one in network.parameters())


def test_sets_of_one_image_are_refused() -> None:
    batch = drawn()
    single = {"image": batch["image"][1:, :1], "mask": batch["mask"][1:, :1]}
    single["factors"] = {"toy": batch["factors"]["toy"][1:, :1]}
    with pytest.raises(
        SetsupError, match=r"sets of one image contain no other; draw at least two images of each domain"
    ):
        made().loss(single)


def test_a_batch_without_a_known_domain_is_named() -> None:
    batch = drawn()
    batch["factors"]["toy"] = torch.full((4, 4), -1)
    with pytest.raises(SetsupError, match=r"the domain \(toy\) is unknown for all images of a batch"):
        made().loss(batch)


def test_data_of_one_domain_have_no_step_with_two() -> None:
    method = made()
    alone = FactorTable([Factor("toy", Kind.NOMINAL, ("a", "b"))], {"toy": [0, 0, -1]})
    method.domains = GroupCodes(alone, ["toy"], "domain")
    batch = drawn()
    batch["factors"]["toy"] = torch.zeros(4, 4, dtype=torch.int64)
    with pytest.raises(SetsupError, match=r"images of the data come from one domain \(toy\); choose another --domain"):
        method.loss(batch)
