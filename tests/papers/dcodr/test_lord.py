"""LORD: both losses against loops over images, updates of codes against Adam, and what a second stage takes over."""

import math
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

import torch
from torch import Tensor, nn

from setsup.errors import SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.methods.groups import GroupCodes
from setsup.methods.rows import UnseenRows
from setsup_papers.dcodr.baseline_settings import AmortisedLORDSettings, LORDSettings
from setsup_papers.dcodr.lord import LORD, AmortisedLORD
from setsup_papers.dcodr.networks.domain_encoders import ResNetEncoder
from setsup_papers.dcodr.networks.generator import AdaINGenerator, class_embedding

CONTENT, STYLE, SIDE, ROWS = 3, 4, 16, 9
TOYS = [0, 1, 3, 0, 3, 1, 1, 0, 3]  # no row shows c
TABLE = FactorTable([Factor("toy", Kind.NOMINAL, ("a", "b", "c", "d"))], {"toy": TOYS})

pytestmark = pytest.mark.filterwarnings("ignore:You are trying to `self.log", "ignore:You called `self.log")


class Errors(nn.Module):
    """Mean absolute error of each image."""

    def forward(self, images: Tensor, targets: Tensor) -> Tensor:
        return (images - targets).abs().flatten(1).mean(1)


def parts() -> tuple:
    torch.manual_seed(0)
    domains = GroupCodes(TABLE, ["toy"], "domain")
    return AdaINGenerator((1, SIDE, SIDE), CONTENT, STYLE, 8), class_embedding(3, STYLE), domains, Errors()


def first_settings(**options: object) -> LORDSettings:
    return LORDSettings(domain=("toy",), **{"content": CONTENT, **options})  # type: ignore[arg-type]


def second_settings(**options: object) -> AmortisedLORDSettings:
    return AmortisedLORDSettings(domain=("toy",), content=CONTENT, **options)  # type: ignore[arg-type]


def first(**options: object) -> LORD:
    return LORD(first_settings(**options), *parts(), rows=ROWS)


def encoder(size: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, size))


def second(**options: object) -> AmortisedLORD:
    generator, *others = parts()
    encoders = encoder(CONTENT), encoder(STYLE)
    return AmortisedLORD(second_settings(**options), *encoders, generator, *others, rows=ROWS)


def drawn(*rows: int) -> dict:
    """A set of these rows; images are a function of the row."""
    images = torch.stack([torch.randint(0, 256, (1, SIDE, SIDE), generator=dice(row)) for row in rows])
    toys = torch.tensor([[TOYS[row] for row in rows]])
    mask = torch.ones(1, len(rows), dtype=torch.bool)
    return {"image": images.byte()[None], "indices": torch.tensor([rows]), "factors": {"toy": toys}, "mask": mask}


def dice(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("noise", "penalty"), [(1.0, 1e-4), (0.3, 0.5), (0.0, 0.0)])
def test_the_loss_of_the_first_stage_is_that_of_a_loop(noise: float, penalty: float) -> None:
    method, rows = first(noise=noise, penalty=penalty), (2, 5, 0, 3)
    codes = method.codes.state_dict()["codes.values"]
    assert codes.abs().max() <= 0.05
    assert codes.std().item() == pytest.approx(0.05 / math.sqrt(3), rel=0.2)
    torch.manual_seed(4)
    found = method.loss(drawn(*rows))
    torch.manual_seed(4)
    noises = torch.randn(4, CONTENT)
    terms = []
    for number, row in enumerate(rows):
        code = codes[row] + noise * noises[number]
        style = method.classes.weight[[0, 1, 3].index(TOYS[row])]
        image = drawn(row)["image"][0] / 255
        rebuilt = method.generator(code[None], style[None])
        terms.append((rebuilt - image).abs().mean() + penalty * (code**2).sum())
    assert found.item() == pytest.approx((sum(terms) / 4).item(), rel=1e-5)


def test_padding_and_images_of_unknown_domain_take_no_part() -> None:
    method = first(noise=0.0)
    batch = drawn(2, 5, 0, 3)
    batch["mask"][0, 1] = False
    batch["factors"]["toy"][0, 3] = -1
    assert method.loss(batch).item() == pytest.approx(method.loss(drawn(2, 0)).item(), rel=1e-6)


def test_codes_follow_adam_along_half_a_cosine(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are in every step, where Adam at the rows of a step is Adam at all of them; networks are fixed."""
    steps, last = 6, 1e-3
    method, batch = first(noise=0.0, penalty=0.1, latent_rate=0.05, last_rate=last), drawn(*range(ROWS))
    monkeypatch.setattr(LORD, "trainer", SimpleNamespace(estimated_stepping_batches=steps))
    found = method.configure_optimizers()
    method.codes.eps = 1e-20  # which SparseAdam adds before the correction of the moments, and Adam after it
    codes = nn.Parameter(method.codes.state_dict()["codes.values"].clone())
    adam = torch.optim.Adam([codes], 0.05, (0.5, 0.999), eps=1e-20)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps, eta_min=last)
    images, styles = batch["image"][0] / 255, method.classes.weight[method.domains.classes(batch)[0]].detach()
    for _ in range(steps):
        rates = [group["lr"] for group in found["optimizer"].param_groups]
        assert rates[1] == pytest.approx(schedule.get_last_lr()[0], rel=1e-6)
        assert (rates[0] - last) / (3e-4 - last) == pytest.approx((rates[1] - last) / (0.05 - last), rel=1e-6)
        method.loss(batch).backward()
        method.on_before_optimizer_step(found["optimizer"])
        adam.zero_grad()
        errors = method.distance(method.generator(codes, styles), images)
        (errors.mean() + 0.1 * codes.square().sum(1).mean()).backward()
        adam.step()
        schedule.step()
        found["optimizer"].zero_grad()
        found["optimizer"].step()  # nothing, without gradients
        found["lr_scheduler"]["scheduler"].step()
    torch.testing.assert_close(method.codes.state_dict()["codes.values"], codes.data, rtol=1e-4, atol=1e-6)


def test_codes_of_images_that_a_step_did_not_use_move_as_by_adam_where_that_is_asked_for() -> None:
    """The published code has one Adam for the embedding of all images: momentum moves those that were used before."""
    method = first(noise=0.0, lazy_codes=False)
    codes = nn.Parameter(method.codes.state_dict()["codes.values"].clone())
    adam = torch.optim.Adam([codes], 3e-3, (0.5, 0.999))
    for rows in ((0, 1), (2, 3), (2, 3)):
        batch = drawn(*rows)
        method.loss(batch).backward()
        method.codes.step()
        styles = method.classes.weight[method.domains.classes(batch)[0]].detach()
        adam.zero_grad()
        errors = method.distance(method.generator(codes[list(rows)], styles), batch["image"][0] / 255)
        (errors.mean() + 1e-4 * codes[list(rows)].square().sum(1).mean()).backward()
        adam.step()
    torch.testing.assert_close(method.codes.state_dict()["codes.values"], codes.data, rtol=1e-4, atol=1e-6)
    lazy = first(noise=0.0)
    before = lazy.codes.state_dict()["codes.values"][0].clone()
    lazy.loss(drawn(2, 3)).backward()
    lazy.codes.step()
    assert torch.equal(lazy.codes.state_dict()["codes.values"][0], before)


def test_a_second_stage_is_of_codes_that_were_updated_as_it_says() -> None:
    for lazy in (True, False):
        second(lazy_codes=lazy).load_initial(first(lazy_codes=lazy).state_dict())
        with pytest.raises(SetsupError, match=f"pass --method.lazy-codes {lazy}".lower()):
            second(lazy_codes=not lazy).load_initial(first(lazy_codes=lazy).state_dict())
    earlier = {name: one for name, one in first().state_dict().items() if name != "lazy"}
    second().load_initial(earlier)
    first().load_state_dict(earlier)
    with pytest.raises(SetsupError, match="train the first stage again"):
        second(lazy_codes=False).load_initial(earlier)


def test_the_code_of_an_image_that_was_never_drawn_is_an_error() -> None:
    method = first()
    method.loss(drawn(2, 5)).backward()
    method.codes.step()
    method.eval()
    assert method.embed(drawn(5, 2)).shape == (1, 2, CONTENT)
    with pytest.raises(UnseenRows):
        method.embed(drawn(5, 3))


def started(**options: object) -> tuple[LORD, AmortisedLORD]:
    """A second stage from a first one that has seen rows 2, 5 and 0."""
    before = first()
    before.loss(drawn(2, 5, 0)).backward()
    before.codes.step()
    with torch.no_grad():
        for weights in before.parameters():
            weights += 0.01 * torch.randn(weights.shape, generator=dice(3))
    after = second(**options)
    after.load_initial(before.state_dict())
    return before, after


def test_the_second_stage_takes_over_the_generator_and_all_codes() -> None:
    before, after = started()
    for name, weights in before.generator.state_dict().items():
        assert torch.equal(after.generator.state_dict()[name], weights)
    assert torch.equal(after.classes.weight, before.classes.weight)
    assert torch.equal(after.targets.gather(torch.arange(ROWS)), before.codes.state_dict()["codes.values"])
    assert after.targets.seen(torch.tensor([2, 3, -1])).tolist() == [True, False, False]
    trained = {name.partition(".")[0] for name, one in after.named_parameters() if one.requires_grad}
    assert trained == {"content", "style", "generator"}
    again = second()
    again.load_state_dict(after.state_dict())
    assert again.loss(drawn(2, 0)).item() == after.loss(drawn(2, 0)).item(), "a checkpoint needs no first stage"


@pytest.mark.parametrize("weights", [(10.0, 10.0), (0.5, 2.0)])
def test_the_loss_of_the_second_stage_is_that_of_a_loop(weights: tuple[float, float]) -> None:
    before, after = started(weights=weights)
    codes, rows = before.codes.state_dict()["codes.values"], (5, 0, 3)  # row 3 has no code
    found = after.loss(drawn(*rows))
    distances, contents, styles = [], [], []
    for row in rows:
        image = drawn(row)["image"][0] / 255
        content, style = after.content(image), after.style(image)
        distances.append((after.generator(content, style) - image).abs().mean())
        styles.append((style[0] - before.classes.weight[[0, 1, 3].index(TOYS[row])]).square().mean())
        if row != 3:
            contents.append((content[0] - codes[row]).square().mean())
    means = [sum(some) / len(some) for some in (distances, contents, styles)]
    expected = means[0] + weights[0] * means[1] + weights[1] * means[2]
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_rows_of_other_data_have_an_embedding_and_a_loss() -> None:
    _, after = started()
    batch = drawn(2, 5)
    inside = after.embed(batch)
    batch["indices"][:] = -1
    assert torch.equal(after.embed(batch), inside)
    assert after.loss(batch).isfinite()


@pytest.mark.long("networks")
def test_both_encoders_start_from_a_file_of_moco(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    few = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1])
    content, style, source = (ResNetEncoder(size, few) for size in (CONTENT, STYLE, CONTENT))
    head = {f"fc.0.{name}": one for name, one in source.first.state_dict().items()}
    torch.save({**source.backbone.state_dict(), **head}, tmp_path / "moco.pt")
    generator, *others = parts()
    settings = second_settings(encoder_weights=str(tmp_path / "moco.pt"))
    after = AmortisedLORD(settings, content, style, generator, *others, rows=ROWS)
    assert not torch.equal(content.first.weight, source.first.weight), "the file is read with the first stage"
    after.load_initial(first().state_dict())
    for one in (content, style):
        assert torch.equal(one.first.weight, source.first.weight)
        for name, weights in source.backbone.state_dict().items():
            assert torch.equal(one.backbone.state_dict()[name], weights)
    with pytest.raises(SetsupError, match="only ResNet encoders can load MoCo-v2"):
        second(encoder_weights=str(tmp_path / "moco.pt")).load_initial(first().state_dict())


def test_a_second_stage_without_a_first_is_an_error() -> None:
    with pytest.raises(SetsupError, match="pass a run of that stage as --initial-run"):
        second().loss(drawn(2))


def test_a_first_stage_of_other_sizes_does_not_fit() -> None:
    other = LORD(first_settings(content=CONTENT + 1), *parts(), rows=ROWS)
    with pytest.raises(RuntimeError):
        second().load_initial(other.state_dict())


def of_other_data(toys: list[int], factors: tuple[str, ...] = ("toy",)) -> AmortisedLORD:
    """A second stage for other data of as many rows and domains."""
    nominal = [Factor(name, Kind.NOMINAL, ("a", "b", "c", "d")) for name in ("toy", "hue")]
    table = FactorTable(nominal, {"toy": toys, "hue": TOYS})
    generator, classes, _, distance = parts()
    domains = GroupCodes(table, factors, "domain")
    encoders = encoder(CONTENT), encoder(STYLE)
    return AmortisedLORD(second_settings(), *encoders, generator, classes, domains, distance, rows=ROWS)


def test_a_first_stage_of_other_rows_or_domains_is_refused() -> None:
    of_toys = of_other_data(TOYS[1:] + TOYS[:1])
    before = LORD(first_settings(), *parts()[:2], of_toys.domains, Errors(), rows=ROWS)
    of_toys.load_initial(before.state_dict())
    of_hue = of_other_data(TOYS[1:] + TOYS[:1], ("hue",))
    for after in (second(), of_other_data(TOYS), of_hue):
        with pytest.raises(SetsupError, match="belong to other rows or other domains"):
            after.load_initial(before.state_dict())
        assert not after.started


def test_weights_that_do_not_name_their_rows_are_taken() -> None:
    before = first()
    weights = {name: one for name, one in before.state_dict().items() if name != "table"}
    second().load_initial(weights)
    again = first()
    again.load_state_dict(weights)
    assert torch.equal(again.table, before.table)


def test_weights_of_another_method_are_no_first_stage() -> None:
    for weights in ({}, {"encoder.weight": torch.zeros(3)}, second().state_dict()):
        with pytest.raises(SetsupError, match="not from a first stage of LORD"):
            second().load_initial(weights)


def test_a_batch_without_a_known_domain_is_named() -> None:
    _, after = started()
    for method in (first(), after):
        batch = drawn(2, 5)
        batch["factors"]["toy"][:] = -1
        with pytest.raises(SetsupError, match=r"the domain \(toy\) is unknown for all images of a batch"):
            method.loss(batch)
