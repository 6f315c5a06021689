"""Losses and their gradients in float32 on a GPU, against float64 on the processor; halves; CUDA graphs."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.nn.functional import normalize  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from setsup_papers.abc import augmentation_loss, correspondence_loss, double_augmentation_loss  # noqa: E402
from setsup_papers.cmc.losses import in_batch_loss, nce_loss, patch_loss, softmax_loss  # noqa: E402
from setsup_papers.dcodr import domain_contrast_loss  # noqa: E402
from setsup_papers.orbits import triplet_loss  # noqa: E402
from setsup_papers.orbits.losses import rectification_loss  # noqa: E402
from setsup_papers.pixels import between_loss, within_loss  # noqa: E402
from setsup_papers.pixels.losses import match_loss  # noqa: E402

VALUE, GRADIENT, HALF = 1e-5, 1e-4, 2e-2
"""Relative errors of a value, of a gradient in the units of its largest entry, and of a value of 16 bits."""

N, D = 48, 32
Loss = Callable[[Any, Any, Any], Any]


def pixels(values: Any) -> Any:
    """(N, D) as (4, 8, 48): features of 48 pixels in four images."""
    return values.reshape(4, 8, N)


def places(groups: Any) -> Any:
    """A partner for each of these pixels."""
    return (torch.arange(4 * N, device=groups.device) * 7 % N).reshape(4, N)


def some(groups: Any, every: int) -> Any:
    return (torch.arange(4 * N, device=groups.device) % every > 0).reshape(4, N)


FIXED: dict[str, Loss] = {
    "abc, l2sq": lambda x, y, g: correspondence_loss(x, y, "l2sq", 16.0),
    "abc, cosine": lambda x, y, g: correspondence_loss(x, y, "cosine", 0.1),
    "abc, double": lambda x, y, g: double_augmentation_loss((x[:24], x[24:]), (y[:24], y[24:]), "l2sq", 16.0),
    "abc, augmentation": lambda x, y, g: augmentation_loss(x, y, "l2sq", 16.0),
    "dcodr": lambda x, y, g: domain_contrast_loss(x, y, g),
    "dcodr, decoupled": lambda x, y, g: domain_contrast_loss(x, y, g, decoupled=True),
    "cmc, nce": lambda x, y, g: nce_loss(normalize(x, dim=1) @ normalize(y, dim=1).T, 10_000, 1e4),
    "cmc, softmax": lambda x, y, g: softmax_loss(normalize(x, dim=1) @ normalize(y, dim=1).T),
    "cmc, in batch": lambda x, y, g: in_batch_loss(normalize(x, dim=1), normalize(y, dim=1)),
    "cmc, patches": lambda x, y, g: patch_loss(x[:12] / 8, y.reshape(12, 4, D).mT.reshape(12, D, 2, 2) / 8),
    "orbits, rectification": lambda x, y, g: rectification_loss(x.reshape(N, 2, 4, 4), y.reshape(N, 2, 4, 4)),
    "pixels, within": lambda x, y, g: within_loss(pixels(x), pixels(y), places(g), some(g, 4), some(g, 5)),
    "pixels, within, l2": lambda x, y, g: within_loss(
        pixels(x), pixels(y), places(g), some(g, 4), norm="l2", balance="per_part"
    ),
    "pixels, between": lambda x, y, g: between_loss(pixels(x), pixels(y), places(g), some(g, 5)),
    "pixels, between, l1": lambda x, y, g: between_loss(pixels(x), pixels(y), places(g), norm="l1"),
    "pixels, matches": lambda x, y, g: match_loss(x, y, torch.arange(N, device=g.device)),
}
"""Losses whose shapes do not depend on values, so that a CUDA graph can hold them."""
MINED: dict[str, Loss] = {
    "orbits, triplets": lambda x, y, g: triplet_loss(normalize(x, dim=1), g),
    "dcodr, replace": lambda x, y, g: domain_contrast_loss(x, y, g, short="replace"),
}


def given(device: str, dtype: Any) -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(3)
    x, y = (torch.randn(N, D, generator=generator).to(dtype) for _ in range(2))
    leaves = [(x + k * y).detach().to(device).requires_grad_() for k in (0, 1)]
    return leaves[0], leaves[1], (torch.arange(N) % 6).to(device)


@pytest.mark.parametrize("name", [*FIXED, *MINED])
def test_values_and_gradients_are_those_of_float64_on_the_processor(device: str, name: str) -> None:
    loss = (FIXED | MINED)[name]
    x, y, groups = given("cpu", torch.float64)
    exact = loss(x, y, groups)
    exact.backward()
    u, v, there = given(device, torch.float64)
    u, v = (leaf.detach().float().requires_grad_() for leaf in (u, v))
    found = loss(u, v, there)
    found.backward()
    assert found.device.type == device.partition(":")[0]
    torch.testing.assert_close(found.detach().cpu().double(), exact.detach().double(), rtol=VALUE, atol=VALUE)
    pairs = [(leaf.grad, one.grad) for leaf, one in ((u, x), (v, y)) if one.grad is not None]
    assert pairs
    for one, other in pairs:
        scale = float(other.abs().max())
        torch.testing.assert_close(one.cpu().double(), other, rtol=0, atol=GRADIENT * max(scale, 1e-6))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("name", ["abc, l2sq", "dcodr", "cmc, in batch", "pixels, within", "orbits, triplets"])
def test_losses_of_halves_under_autocast(device: str, name: str, dtype: Any) -> None:
    loss = (FIXED | MINED)[name]
    x, y, groups = given("cpu", dtype)
    exact = loss(x.detach().double(), y.detach().double(), groups)
    u, v, there = given(device, dtype)
    with torch.autocast(device.partition(":")[0], dtype):
        found = loss(u, v, there)
    torch.testing.assert_close(found.detach().cpu().double(), exact, rtol=HALF, atol=HALF)
    found.backward()
    assert u.grad.isfinite().all()


class NoWaiting(TorchDispatchMode):
    """Refuses operations that wait for values, which a CUDA graph cannot hold."""

    WAITING = ("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::bincount")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func.name().partition(".")[0] not in self.WAITING, f"{func.name()} waits for values"
        return func(*args, **(kwargs or {}))


def replayed(device: str, compute: Callable[[], Any]) -> Any:
    """The result of a computation that is recorded as a CUDA graph and replayed; without a GPU, checked not to wait."""
    if device == "cpu":
        with NoWaiting():
            return compute()
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            compute()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compute()
    graph.replay()
    torch.cuda.synchronize()
    return result


@pytest.mark.parametrize("name", FIXED)
def test_a_cuda_graph_gives_the_same_value_and_gradient(device: str, name: str) -> None:
    u, v, groups = given(device, torch.float32)
    value = FIXED[name](u, v, groups)
    wanted = torch.autograd.grad(value, (u, v))
    u, v, groups = given(device, torch.float32)  # leaves that no other stream knows, for which a graph would wait

    def compute() -> Any:
        loss = FIXED[name](u, v, groups)
        return loss, *torch.autograd.grad(loss, (u, v))

    found = replayed(device, compute)
    for one, other in zip(found, (value, *wanted), strict=True):
        torch.testing.assert_close(one.detach(), other.detach(), rtol=1e-5, atol=1e-6)


def test_what_waits_is_noticed() -> None:
    with pytest.raises(AssertionError, match="_local_scalar_dense waits"), NoWaiting():
        bool(torch.ones(()) > 0)
