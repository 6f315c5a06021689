"""DCoDR on batches of a loader: its terms, passes, ablations and optimiser."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("lightning")

import torch
from torch import Tensor, nn
from torch.nn import functional

import setsup
from setsup.errors import SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.methods.groups import GroupCodes
from setsup.methods.recipes import recipe
from setsup_papers.dcodr import (
    AdaINGenerator,
    DCoDR,
    DCoDRSettings,
    PyramidDistance,
    contrast_head,
    domain_contrast_loss,
    small_encoder,
)

TABLE = FactorTable([Factor("toy", Kind.NOMINAL, ("a", "b", "c", "d"))], {"toy": [0, 1, 3, 0]})  # no row shows c
SIDE, CODE = 16, 6

pytestmark = pytest.mark.filterwarnings("ignore:You are trying to `self.log")


def made(reconstruct: bool = False, encoder: nn.Module | None = None, **options: Any) -> DCoDR:
    torch.manual_seed(0)
    if encoder is None:
        encoder = small_encoder((3, SIDE, SIDE), CODE, (4, 4, 4, 4))
    parts = {name: options.pop(name) for name in ("head", "distance") if name in options}
    if reconstruct:
        parts = {"generator": AdaINGenerator((3, SIDE, SIDE), CODE, 5, 8), "distance": PyramidDistance(), **parts}
    settings = DCoDRSettings(domain=("toy",), style=5, **options)
    return DCoDR(settings, encoder, settings.domains(TABLE), **parts)


def drawn(copies: int | None = None) -> dict[str, Any]:
    """Three domains of four images, one of them short."""
    dice = torch.Generator().manual_seed(1)
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[1, 2:] = False
    shape = (3, 4, *(() if copies is None else (copies,)), 3, SIDE, SIDE)
    return {
        "image": torch.randint(0, 256, (3, 4, 3, SIDE, SIDE), dtype=torch.uint8, generator=dice),
        "positive_image": torch.randint(0, 256, shape, dtype=torch.uint8, generator=dice),
        "factors": {"toy": torch.tensor([0, 3, 1])[:, None].expand(3, 4)},
        "mask": mask,
    }


def kept(batch: dict[str, Any], name: str) -> Tensor:
    """Images that count, in [0, 1]."""
    return batch[name][batch["mask"]].float() / 255


DOMAINS = torch.tensor([0] * 4 + [2] * 2 + [1] * 4)


@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("options", [{}, {"negatives": "batch"}, {"decoupled": True, "temperature": 0.7}])
def test_the_contrast_is_of_images_and_their_copies(options: dict[str, Any], head: bool) -> None:
    method, batch = made(head=contrast_head(CODE) if head else None, **options), drawn()

    def codes(images: Tensor) -> Tensor:
        found = method.encoder(images)
        return method.head(found) if method.head is not None else found

    near, far = codes(kept(batch, "image")), codes(kept(batch, "positive_image"))
    torch.testing.assert_close(method.loss(batch), domain_contrast_loss(near, far, DOMAINS, **options))


def test_sets_of_one_image_are_refused_where_negatives_are_of_the_domain() -> None:
    batch = drawn()
    single = {name: value[:, :1] for name, value in batch.items() if name != "factors"}
    single["factors"] = {"toy": batch["factors"]["toy"][:, :1]}
    with pytest.raises(
        SetsupError, match=r"sets of one image contain no others; draw at least two images of each domain"
    ):
        made().loss(single)
    codes = [made().encoder(kept(single, name)) for name in ("image", "positive_image")]
    wanted = domain_contrast_loss(*codes, torch.tensor([0, 3, 1]), negatives="batch")
    torch.testing.assert_close(made(negatives="batch").loss(single), wanted)


def test_without_positives_no_copy_is_needed() -> None:
    method, batch = made(positives=False), drawn()
    del batch["positive_image"]
    wanted = domain_contrast_loss(method.encoder(kept(batch, "image")), None, DOMAINS)
    torch.testing.assert_close(method.loss(batch), wanted)


def test_of_two_copies_the_first_is_the_anchor() -> None:
    method, batch = made(), drawn(2)
    copies = kept(batch, "positive_image")
    wanted = domain_contrast_loss(method.encoder(copies[:, 0]), method.encoder(copies[:, 1]), DOMAINS)
    torch.testing.assert_close(method.loss(batch), wanted)
    with pytest.raises(SetsupError, match="one or two augmented copies, not 3"):
        method.loss(drawn(3))


def test_reconstruction_is_of_the_image_from_its_normalised_code_and_domain() -> None:
    method, batch = made(reconstruct=True, reconstruction=0.4), drawn()
    images = kept(batch, "image")
    code = functional.normalize(method.encoder(images))
    assert method.generator is not None
    assert method.styles is not None
    assert method.styles.num_embeddings == 3  # domains that the data show
    generated = method.generator(code, method.styles(DOMAINS))
    distance = PyramidDistance()(generated, images).mean()
    contrast = domain_contrast_loss(code, method.encoder(kept(batch, "positive_image")), DOMAINS)
    torch.testing.assert_close(method.loss(batch), contrast + 0.4 * distance)
    again = method.reconstruct(batch)
    assert again.shape == batch["image"].shape
    torch.testing.assert_close(again[batch["mask"]], generated)


def test_reconstruction_trains_the_encoder_too() -> None:
    method, batch = made(reconstruct=True), drawn()
    codes = method.encoder(kept(batch, "image"))
    codes.retain_grad()
    method._generated(functional.normalize(codes), DOMAINS).sum().backward()
    assert codes.grad is not None
    assert codes.grad.any()


def test_images_and_copies_are_normalised_apart_and_without_padding() -> None:
    """Batch normalisation sees ten images twice, not twenty, and no padding."""
    seen: list[Tensor] = []
    encoder = nn.Sequential(nn.BatchNorm2d(3), small_encoder((3, SIDE, SIDE), CODE, (4, 4, 4, 4)))
    encoder[0].register_forward_hook(lambda _, given, __: seen.append(given[0]))
    batch = drawn()
    made(encoder=encoder).loss(batch)
    assert len(seen) == 2
    for one, name in zip(seen, ("image", "positive_image"), strict=True):
        torch.testing.assert_close(one, kept(batch, name))


def test_embeddings_have_length_1_and_batches_of_any_shape() -> None:
    method, batch = made(), drawn()
    found = method.embed(batch)
    torch.testing.assert_close(found.norm(dim=-1), torch.ones(3, 4))
    flat = {"image": batch["image"].reshape(12, 1, 3, SIDE, SIDE)}
    torch.testing.assert_close(method.embed(flat).reshape(3, 4, -1), found)


def test_a_loader_gives_what_it_takes() -> None:
    shapes = setsup.load("shapes3d-procedural")
    sampler = setsup.DomainSampler(shapes.factors, "shape", sets=4, size=2)
    batch = next(iter(setsup.loader(shapes, sampler, transform=recipe("dcodr"), workers=0)))
    torch.manual_seed(0)
    settings = DCoDRSettings(domain=("shape",))
    method = DCoDR(settings, small_encoder(size=CODE, channels=(4, 4, 4, 4)), settings.domains(shapes.factors))
    assert method.loss(batch).item() > 0
    assert np.array_equal(method.domains.codes(batch)[:, 0], shapes.factors.codes("shape")[batch["indices"][:, 0]])


def test_rates_and_decay_are_those_of_the_parts() -> None:
    method = made(
        reconstruct=True, head=contrast_head(CODE), rate=1.0, generator_rate=2.0, style_rate=3.0, decay_every=2
    )
    found = method.configure_optimizers()
    adam, schedule = found["optimizer"], found["lr_scheduler"]["scheduler"]
    assert found["lr_scheduler"]["interval"] == "step"
    assert adam.defaults["betas"] == (0.5, 0.999)
    assert [group["weight_decay"] for group in adam.param_groups] == [0, 0, 0]
    parts = [(method.encoder, method.head), (method.generator,), (method.styles,)]
    for group, modules in zip(adam.param_groups, parts, strict=True):
        assert {id(one) for one in group["params"]} == {id(one) for module in modules for one in module.parameters()}  # type: ignore[union-attr]
    rates = []
    for _ in range(5):
        rates.append([group["lr"] for group in adam.param_groups])
        adam.step()
        schedule.step()
    scales = [1, 1, 0.33, 0.33, 0.33**2]
    assert rates == [pytest.approx([scale, 2 * scale, 3 * scale]) for scale in scales]
    assert len(made().configure_optimizers().param_groups) == 1


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(SetsupError, match="set distance"):
        made(reconstruct=True, distance=None)
    with pytest.raises(SetsupError, match=r"^reconstruction, the weight of the distance, .* above 0, not 0"):
        made(reconstruct=True, reconstruction=0)
    with pytest.raises(SetsupError, match=r"^generator_rate, a learning rate, must be a finite number above 0, not -1"):
        made(generator_rate=-1)
    with pytest.raises(SetsupError, match=r"^decay, a factor of rates, must be a finite number of at least 0, not -1"):
        made(decay=-1)
    with pytest.raises(SetsupError, match="decay_every must be 1 or more"):
        made(decay_every=0)
    with pytest.raises(SetsupError, match="has no generator"):
        made().reconstruct(drawn())
    batch = drawn()
    batch["factors"]["toy"] = torch.full((3, 4), 2)
    with pytest.raises(SetsupError, match=r"a batch has domains \(toy\) that were not in the training data"):
        made(reconstruct=True).loss(batch)
    made().loss(batch)  # only the generator knows domains
    del batch["positive_image"]
    with pytest.raises(SetsupError, match="--augmentation dcodr"):
        made().loss(batch)


def test_initial_weights_are_those_of_another_dcodr_and_not_of_a_resnet() -> None:
    first, second = made(reconstruct=True), made(reconstruct=True)
    with torch.no_grad():
        for one in first.parameters():
            one.add_(1)
    second.load_initial(first.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    with pytest.raises(SetsupError, match="cannot load the weights of a ResNet"):
        second.load_initial({"module.encoder_q.conv1.weight": torch.zeros(1)})


@pytest.mark.parametrize("negatives", ["domain", "batch"])
def test_images_of_unknown_domain_are_not_reconstructed(negatives: Any) -> None:
    method = made(reconstruct=True, negatives=negatives).eval()
    batch = drawn()
    batch["factors"] = {"toy": batch["factors"]["toy"].clone()}
    batch["factors"]["toy"][0, 1] = batch["factors"]["toy"][2, 3] = -1
    known = torch.ones(10, dtype=torch.bool)
    known[[1, 9]] = False
    domains = torch.where(known, DOMAINS, -1)
    images = kept(batch, "image")
    codes, near = (functional.normalize(method.encoder(kept(batch, f"{kind}image"))) for kind in ("", "positive_"))
    assert method.styles is not None
    generated = method.generator(codes[known], method.styles(DOMAINS[known]))
    distance = PyramidDistance()(generated, images[known]).mean()
    contrast = domain_contrast_loss(codes, near, domains, negatives=negatives)
    assert method.loss(batch).item() == pytest.approx((contrast + 0.3 * distance).item(), rel=1e-5)


def test_what_has_no_negative_is_refused() -> None:
    alone = FactorTable([Factor("toy", Kind.NOMINAL, ("a", "b", "c"))], {"toy": [0, 1, 2, -1]})
    domains, encoder = GroupCodes(alone, ["toy"], "domain"), small_encoder((3, SIDE, SIDE), CODE, (4, 4))
    with pytest.raises(SetsupError, match=r"each domain \(toy\) has at most one image"):
        DCoDR(DCoDRSettings(domain=("toy",)), encoder, domains)
    whole = DCoDR(DCoDRSettings(domain=("toy",), negatives="batch"), encoder, domains)
    batch = {name: value[:, :1] for name, value in drawn().items() if name != "factors"}
    batch["factors"] = {"toy": torch.tensor([[0], [2], [1]])}
    assert whole.loss(batch) > 0
    with pytest.raises(
        SetsupError, match=r"sets of one image contain no others; draw at least two .* with --sampler\.size 2"
    ):
        made().loss(batch)
