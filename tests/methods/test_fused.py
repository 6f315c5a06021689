"""One pass over all weights gives what torch's own passes give, also where gradients are scaled."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.methods.fused import fuse  # noqa: E402

BUILD = {
    "adam": lambda weights: torch.optim.Adam(weights, 0.01, weight_decay=0.1),
    "adamw": lambda weights: torch.optim.AdamW(weights, 0.01, weight_decay=0.1),
    "sgd": lambda weights: torch.optim.SGD(weights, 0.01, momentum=0.9, nesterov=True),
}


def trained(name: str, fused: bool, scaled: bool, stop: int = 20) -> "torch.Tensor":
    """Weights after some steps; at step `stop` the optimiser is saved and loaded."""
    generator = torch.Generator().manual_seed(0)
    layer = torch.nn.Linear(5, 3)
    layer.load_state_dict({"weight": torch.randn(3, 5, generator=generator), "bias": torch.zeros(3)})
    make = lambda: fuse(BUILD[name](layer.parameters())) if fused else BUILD[name](layer.parameters())  # noqa: E731
    optimiser, scaler = make(), torch.amp.GradScaler("cpu", enabled=scaled)
    for step in range(20):
        if step == stop:
            state, optimiser = optimiser.state_dict(), make()
            optimiser.load_state_dict(state)
        optimiser.zero_grad()
        scaler.scale(layer(torch.randn(8, 5, generator=generator)).square().mean()).backward()
        scaler.unscale_(optimiser)
        torch.nn.utils.clip_grad_value_(layer.parameters(), 0.1)  # of the gradients, not of the scaled ones
        scaler.step(optimiser)
        scaler.update()
    return torch.cat([layer.weight.flatten(), layer.bias]).detach()


@pytest.mark.parametrize("name", BUILD)
def test_a_fused_optimiser_is_the_optimiser(name: str) -> None:
    expected = trained(name, fused=False, scaled=False)
    torch.testing.assert_close(trained(name, fused=True, scaled=False), expected)
    torch.testing.assert_close(trained(name, fused=True, scaled=True), expected)
    assert torch.equal(trained(name, fused=True, scaled=False, stop=7), trained(name, fused=True, scaled=False))
