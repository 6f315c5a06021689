"""The module of ABC: its losses by the formula, its masks and copies, and its life in a plain Trainer of Lightning."""

import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
lightning = pytest.importorskip("lightning", reason="lightning is not installed")

from torch import Tensor, nn  # noqa: E402

import setsup  # noqa: E402
from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.loading.lightning import LightningBatches  # noqa: E402
from setsup_papers.abc import ABCObjective, mnist_encoder  # noqa: E402
from setsup_papers.abc.method import ABC  # noqa: E402
from tests.experiments.by_hand import abc_loss, directed, draws, looped  # noqa: E402
from tests.experiments.small import FEW, Pooled  # noqa: E402


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """Images of one pixel in three channels, as floats."""
    return torch.rand(*shape, 3, 1, 1, generator=torch.Generator().manual_seed(seed))


def encoder() -> nn.Module:
    """Linear, and far enough from 0 that losses differ: (..., 3, 1, 1) → (..., 2)."""
    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[3.0, 1.0, -2.0], [0.5, -2.0, 4.0]]))
        layer.bias.copy_(torch.tensor([0.3, -0.2]))
    return nn.Sequential(nn.Flatten(-3), layer)


def embedded(images: Tensor) -> Tensor:
    """What the encoder makes of images, written out."""
    weights, bias = torch.tensor([[3.0, 1.0, -2.0], [0.5, -2.0, 4.0]]), torch.tensor([0.3, -0.2])
    return images[..., 0, 0] @ weights.T + bias


def abc(encoder: nn.Module, **options: Any) -> ABC:
    """A method with these settings; its similarity may be a function."""
    function = options.pop("similarity") if callable(options.get("similarity")) else None
    return ABC(ABCObjective(**options), encoder, similarity=function)


def batch_of(images: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
    return {"image": images, "mask": torch.ones(images.shape[:2], dtype=torch.bool) if mask is None else mask}


@pytest.mark.parametrize("sets", [2, 6])
def test_pairs_are_neighbours_in_the_batch(sets: int) -> None:
    images = numbers(sets, 5)
    found = abc(encoder()).loss(batch_of(images))
    e = embedded(images)
    expected = torch.stack([abc_loss(e[at], e[at + 1]) for at in range(0, sets, 2)]).mean()
    torch.testing.assert_close(found, expected)


def test_slots_that_are_masked_take_no_part() -> None:
    images, lengths = numbers(4, 5), (5, 3, 1, 4)
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    found = abc(encoder()).loss(batch_of(images, mask))
    e = [embedded(some)[:length] for some, length in zip(images, lengths, strict=True)]
    torch.testing.assert_close(found, (abc_loss(e[0], e[1]) + abc_loss(e[2], e[3])) / 2)
    images[~mask] = 1e3
    torch.testing.assert_close(abc(encoder()).loss(batch_of(images, mask)), found)


@pytest.mark.parametrize("objective", ["correspondence", "double", "augmentation"])
def test_sets_of_one_image_are_refused(objective: Any) -> None:
    images = numbers(2, 1) if objective == "correspondence" else numbers(2, 1, 2)
    with pytest.raises(DataError, match=r"sets must contain at least two images, .*--sampler\.size 2"):
        abc(encoder(), objective=objective).loss(batch_of(images))


def test_temperature_and_similarity_reach_the_loss() -> None:
    images = numbers(2, 4)
    e = embedded(images)
    # −‖x − y‖²/τ is that of vectors divided by √τ
    found = abc(encoder(), temperature=4.0).loss(batch_of(images))
    torch.testing.assert_close(found, abc_loss(e[0] / 2, e[1] / 2))
    plain = abc(encoder(), similarity=lambda x, y: -((x[:, None] - y) ** 2).sum(-1)).loss(batch_of(images))
    torch.testing.assert_close(plain, abc_loss(e[0], e[1]))
    assert abc(encoder(), similarity="cosine").loss(batch_of(images)) != plain


@pytest.mark.parametrize("neighbours", ["second", "first"])
def test_two_copies_of_pairs(neighbours: Any) -> None:
    images = numbers(4, 3, 2)
    found = abc(encoder(), objective="double", neighbours=neighbours).loss(batch_of(images))
    e, of, losses = embedded(images), 1 if neighbours == "second" else 0, []
    for u, v in ((e[0], e[1]), (e[2], e[3])):
        there = directed(u[:, 1], v[:, of], candidates=u[:, 0])
        losses.append(there + directed(v[:, 1], u[:, of], candidates=v[:, 0]))
    torch.testing.assert_close(found, torch.stack(losses).mean())


@pytest.mark.parametrize("ragged", [False, True])
def test_copies_without_a_second_set(ragged: bool) -> None:
    images = numbers(3, 4, 2)
    lengths = (4, 2, 3) if ragged else (4, 4, 4)
    mask = torch.arange(4) < torch.tensor(lengths)[:, None]
    found = abc(encoder(), objective="augmentation").loss(batch_of(images, mask))
    losses = []
    for some, length in zip(embedded(images), lengths, strict=True):
        asked, among = some[:length, 0], some[:length, 1]
        scores = -((asked[:, None] - among[None]) ** 2).sum(-1)
        losses.append((torch.logsumexp(scores, 1) - scores.diagonal()).mean())
    torch.testing.assert_close(found, torch.stack(losses).mean())


@pytest.mark.parametrize(
    ("objective", "shape"),
    [
        ("correspondence", (3, 4)),  # no pairs
        ("correspondence", (2, 4, 2)),  # copies that it does not take
        ("correspondence", (4,)),
        ("double", (2, 4)),
        ("double", (3, 4, 2)),
        ("double", (2, 4, 3)),
        ("augmentation", (2, 4)),
        ("augmentation", (2, 4, 1)),
        ("augmentation", (2, 4, 2, 2)),
    ],
)
def test_images_that_the_objective_does_not_take(objective: Any, shape: tuple[int, ...]) -> None:
    method = abc(encoder(), objective=objective)
    mask = torch.ones(shape[:2], dtype=torch.bool)
    with pytest.raises(DataError, match=rf"requires images of shape .*, not \({', '.join(map(str, shape))}, 3, 1, 1\)"):
        method.loss({"image": numbers(*shape), "mask": mask})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"objective": "tcc"}, "objective must be one of correspondence, double, augmentation, not 'tcc'"),
        ({"similarity": "l3"}, "unknown similarity 'l3'; choose from l2sq, l2"),
        ({"similarity": "cosin"}, "unknown similarity 'cosin'; did you mean 'cosine'"),
        ({"similarity": None}, "unknown similarity None"),
        *(
            ({"temperature": value}, "temperature must be a positive number, not")
            for value in (0, -1, math.nan, math.inf)
        ),
        ({"neighbours": "third"}, "neighbours must be 'second' or 'first' .*, not 'third'"),
        *(({"halve_every": value}, "halve_every must be 1 or more") for value in (0, -3, 2.5, True)),
        *(({"rate": value}, "rate, a learning rate, must be a fin") for value in (-1.0, 0.0, math.nan, math.inf)),
    ],
)
def test_arguments_that_there_are_not(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SetsupError, match=f"^{sentence}") as caught:
        abc(encoder(), **options)
    assert "\n" not in str(caught.value)


def test_a_function_is_a_similarity_and_a_rate_may_be_halved_at_every_step() -> None:
    method = abc(encoder(), similarity=torch.cdist, halve_every=1, rate=1e-30, neighbours="first", temperature=1e-30)
    assert method.configure_optimizers()["lr_scheduler"]["scheduler"].step_size == 1


@pytest.mark.parametrize("leading", [(2, 5), (1, 7), (3, 4, 2)])
def test_embeddings_have_the_shape_of_the_slots(leading: tuple[int, ...]) -> None:
    images = torch.randint(256, (*leading, 1, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    method = abc(mnist_encoder(torch.Generator().manual_seed(0))).eval()
    found = method.embed({"image": images})
    assert (found.shape, found.dtype) == ((*leading, 8), torch.float32)
    alone = method.encoder(images.flatten(0, len(leading) - 1))
    torch.testing.assert_close(found.flatten(0, -2), alone)


def test_gradients_reach_every_weight() -> None:
    method = abc(mnist_encoder(torch.Generator().manual_seed(0)), temperature=0.01)
    images = torch.rand(2, 4, 1, 28, 28, generator=torch.Generator().manual_seed(1))
    method.loss(batch_of(images)).backward()
    for name, weight in method.named_parameters():
        assert weight.grad is not None
        assert weight.grad.isfinite().all()
        assert weight.grad.abs().max() > 0 or name.endswith("bias"), name


def test_the_rate_is_halved_and_adam_has_the_epsilon_of_keras() -> None:
    made = abc(encoder(), rate=0.8, halve_every=3).configure_optimizers()
    adam, scheduler = made["optimizer"], made["lr_scheduler"]["scheduler"]
    assert made["lr_scheduler"]["interval"] == "step"
    rates = []
    for _ in range(10):
        rates.append(adam.param_groups[0]["lr"])
        adam.step()
        scheduler.step()
    assert rates == pytest.approx([0.8] * 3 + [0.4] * 3 + [0.2] * 3 + [0.1])
    plain = abc(encoder(), rate=0.5).configure_optimizers()
    assert isinstance(plain, torch.optim.Adam)
    assert (plain.defaults["lr"], plain.defaults["eps"]) == (0.5, 1e-7)


def test_a_plain_trainer_of_lightning_trains_it(tmp_path: Path) -> None:
    shapes = setsup.load("shapes3d-procedural")
    sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=4, sets=2, where=FEW, seed=1)

    def made() -> nn.Module:
        layers = nn.Sequential(Pooled(), nn.Linear(192, 4), nn.Tanh(), nn.Linear(4, 2, bias=False))
        with torch.no_grad():
            for number, weight in enumerate(layers.parameters()):
                weight.uniform_(-1, 1, generator=torch.Generator().manual_seed(number))
        return layers

    method, alone = abc(made(), rate=1e-2), made()
    trainer = lightning.Trainer(
        max_steps=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(method, datamodule=LightningBatches(shapes, sets, workers=0))
    losses = looped(alone, draws(shapes, sets), 5, rate=1e-2)
    assert trainer.callback_metrics["loss"].item() == pytest.approx(losses[-1], rel=1e-4)
    for weight, expected in zip(method.encoder.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(weight, expected, rtol=1e-4, atol=1e-5)
