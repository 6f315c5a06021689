"""Optimisers and schedules as settings do what torch's own do, at every step, for each group, and after resuming."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from torch import nn  # noqa: E402
from torch.optim import lr_scheduler  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments.optimisation import (  # noqa: E402
    SGD,
    Adam,
    AdamW,
    Constant,
    OneCycle,
    Optimiser,
    ParameterGroup,
    Schedule,
    StepDecay,
    WarmupCosine,
    optimise,
)

TOTAL = 100
Seen = list[tuple[tuple[float, float], ...]]


def weights(count: int = 1) -> list[nn.Parameter]:
    return [nn.Parameter(torch.ones(2)) for _ in range(count)]


def followed(optimiser: Any, schedule: Any, steps: int) -> Seen:
    """The rate and the momentum of each group at each step."""
    found = []
    for _ in range(steps):
        groups = optimiser.param_groups
        found.append(
            tuple((group["lr"], group["betas"][0] if "betas" in group else group["momentum"]) for group in groups)
        )
        optimiser.step()
        schedule.step()
    return found


def ours(optimiser: Optimiser, schedule: Schedule, steps: int = TOTAL) -> Seen:
    built = optimise(weights(), optimiser, schedule, steps=TOTAL)
    assert built["lr_scheduler"]["interval"] == "step"
    return followed(built["optimizer"], built["lr_scheduler"]["scheduler"], steps)


def sequence(optimiser: Any) -> Any:
    rising = lr_scheduler.LinearLR(optimiser, 0.01, total_iters=20)
    falling = lr_scheduler.CosineAnnealingLR(optimiser, TOTAL - 20, eta_min=0.03 * 0.002)
    return lr_scheduler.SequentialLR(optimiser, [rising, falling], [20])


@pytest.mark.filterwarnings("ignore:The epoch parameter in:UserWarning")  # torch's own, of SequentialLR
@pytest.mark.parametrize(
    ("schedule", "theirs"),
    [
        (StepDecay(factor=0.5, every=7), lambda optimiser: lr_scheduler.StepLR(optimiser, 7, 0.5)),
        (StepDecay(factor=0.33, at=(60, 30)), lambda optimiser: lr_scheduler.MultiStepLR(optimiser, [30, 60], 0.33)),
        (WarmupCosine(end=0.1), lambda optimiser: lr_scheduler.CosineAnnealingLR(optimiser, TOTAL, eta_min=0.003)),
        (WarmupCosine(warmup=0.2, start=0.01, end=0.002), sequence),
        (OneCycle(), lambda optimiser: lr_scheduler.OneCycleLR(optimiser, 0.03, TOTAL)),
        (
            OneCycle(warmup=0.05, start=0.1, end=1e-4, momentum=()),
            lambda optimiser: lr_scheduler.OneCycleLR(
                optimiser, 0.03, TOTAL, pct_start=0.05, cycle_momentum=False, div_factor=10, final_div_factor=1e3
            ),
        ),
        (
            OneCycle(warmup=0.004, momentum=(0.8, 0.9)),
            lambda optimiser: lr_scheduler.OneCycleLR(
                optimiser, 0.03, TOTAL, pct_start=0.004, base_momentum=0.8, max_momentum=0.9
            ),
        ),
    ],
)
@pytest.mark.parametrize("optimiser", [SGD(rate=0.03, momentum=0.9), AdamW(rate=0.03, betas=(0.7, 0.99))])
def test_rates_and_momenta_are_those_of_torch(
    optimiser: Optimiser, schedule: Schedule, theirs: Callable[[Any], Any]
) -> None:
    built = optimiser.build([{"params": weights(), **optimiser.options()}])
    for found, expected in zip(ours(optimiser, schedule), followed(built, theirs(built), TOTAL), strict=True):
        assert found[0] == pytest.approx(expected[0], rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "theirs"),
    [
        (Adam(rate=0.02, betas=(0.5, 0.99), eps=1e-7, weight_decay=0.1), torch.optim.Adam),
        (AdamW(rate=0.02, betas=(0.5, 0.99)), torch.optim.AdamW),
        (SGD(rate=0.02, momentum=0.9, nesterov=True, weight_decay=0.1), torch.optim.SGD),
    ],
)
def test_optimisers_are_those_of_torch(settings: Any, theirs: Any) -> None:
    options = {name: getattr(settings, name) for name in settings.__dataclass_fields__ if name != "rate"}
    found = []
    for made in (lambda some: optimise(some, settings)["optimizer"], lambda some: theirs(some, lr=0.02, **options)):
        (weight,) = some = weights()
        optimiser = made(some)
        for _ in range(5):
            optimiser.zero_grad()
            (weight**3).sum().backward()
            optimiser.step()
        assert type(optimiser) is theirs
        found.append(weight.detach())
    assert torch.equal(*found)
    assert AdamW().options()["weight_decay"] == torch.optim.AdamW(weights()).defaults["weight_decay"]


def groups(some: list[nn.Parameter]) -> list[ParameterGroup]:
    base = SGD(rate=0.01, momentum=0.5)
    return [
        ParameterGroup(some[:1], base, OneCycle()),
        ParameterGroup(some[1:2], replace(base, weight_decay=0.1), Constant()),
        ParameterGroup(some[2:]),
    ]


def test_groups_have_rates_and_schedules_of_their_own() -> None:
    base = SGD(rate=0.1, momentum=0.9)
    built = optimise(groups(weights(4)), base, StepDecay(every=10), steps=TOTAL)
    assert [(len(group["params"]), group["weight_decay"]) for group in built["optimizer"].param_groups] == [
        (1, 0),
        (1, 0.1),
        (2, 0),
    ]
    found = followed(built["optimizer"], built["lr_scheduler"]["scheduler"], 30)
    assert [first for first, _, _ in found] == [one for (one,) in ours(SGD(rate=0.01, momentum=0.5), OneCycle(), 30)]
    assert {second for _, second, _ in found} == {(0.01, 0.5)}
    assert [third for *_, third in found] == [one for (one,) in ours(base, StepDecay(every=10), 30)]


@pytest.mark.parametrize("stopped", [1, 29, 30, 50])
def test_a_schedule_resumes(stopped: int) -> None:
    def made() -> tuple[Any, Any]:
        built = optimise(groups(weights(3)), SGD(rate=0.1, momentum=0.9), WarmupCosine(warmup=0.1), steps=TOTAL)
        return built["optimizer"], built["lr_scheduler"]["scheduler"]

    whole = followed(*made(), TOTAL)
    before, after = made(), made()
    assert followed(*before, stopped) == whole[:stopped]
    for one, other in zip(before, after, strict=True):
        other.load_state_dict(one.state_dict())
    assert followed(*after, TOTAL - stopped) == whole[stopped:]
    assert all(isinstance(value, int | float | bool | list) for value in before[1].state_dict().values())


@pytest.mark.parametrize("total", [1, 2, 4, 20])
def test_a_run_of_few_steps(total: int) -> None:
    """As ``--smoke`` makes: torch's OneCycleLR would divide by 0 where the warm-up is one step."""
    for schedule in (OneCycle(warmup=1 / total if total > 1 else 0.3), OneCycle(), WarmupCosine(warmup=0.05)):
        scales = [schedule.scale_at(step, total) for step in range(total + 1)]
        assert all(0 <= scale <= 1 for scale in scales)


def test_only_some_schedules_need_the_number_of_steps() -> None:
    needs = {
        type(one).__name__: one.needs_total for one in (Constant(), StepDecay(every=1), WarmupCosine(), OneCycle())
    }
    assert needs == {"Constant": False, "StepDecay": False, "WarmupCosine": True, "OneCycle": True}
    assert optimise(weights(), Adam(), StepDecay(every=1))["lr_scheduler"]["interval"] == "step"
    assert optimise(weights(), Adam()).keys() == optimise(weights(), Adam(), Constant()).keys() == {"optimizer"}
    for steps in (None, -1, 0, float("inf")):
        with pytest.raises(SetsupError, match=r"^OneCycle requires a finite number of steps, not .*stepping_batches"):
            optimise(weights(), Adam(), OneCycle(), steps=steps)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: Adam(rate=-1.0), "rate of Adam must be 0 or more, not -1.0"),
        (lambda: AdamW(rate=float("nan")), "rate of AdamW must be 0 or more, not nan"),
        (lambda: Adam(betas=(0.9, 1.0)), "betas of Adam must be at least 0 and below 1"),
        (lambda: Adam(betas=(0.9,)), "setting betas must be tuple"),
        (lambda: SGD(rate="fast"), "setting rate must be float, not 'fast'"),
        (lambda: SGD(rate=0.1, momentum=1.0), "momentum of SGD must be at least 0 and below 1, not 1.0"),
        (lambda: SGD(rate=0.1, nesterov=True), "Nesterov momentum requires momentum > 0"),
        (lambda: StepDecay(), r"StepDecay requires either every=N or at="),
        (lambda: StepDecay(every=3, at=(4,)), r"StepDecay requires either every=N or at="),
        (lambda: StepDecay(every=0), "StepDecay must decay at step 1 or later, not at 0"),
        (lambda: StepDecay(factor=0.0, every=1), "factor of StepDecay must be above 0"),
        (
            lambda: OneCycle(warmup=1.0),
            "warmup of OneCycle must be a fraction of all steps, at least 0 and below 1, not 1.0",
        ),
        (lambda: OneCycle(momentum=(0.9,)), r"momentum of OneCycle must be \(\) or two numbers"),
        (lambda: WarmupCosine(end=-0.1), "the first and last rates of WarmupCosine must be fractions"),
        (
            lambda: optimise([ParameterGroup(weights(), SGD(rate=0.1))], Adam()),
            "a parameter group of Adam cannot use SGD",
        ),
        (lambda: optimise([ParameterGroup(weights()), *weights()], Adam()), "put all parameters into groups"),
    ],
)
def test_settings_that_do_not_fit(made: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        made()
    assert "\n" not in str(caught.value)
