"""Prototypical networks: 5-way 1-shot episodes, then episodes of classes never seen, with queries of other shapes.

Needs: pip install ".[torch]".
"""

import torch

import setsup

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25 and orientation in (-30.0, 0.0, 30.0)")
seen = setsup.EpisodeSampler(shapes.factors, "object_hue", shots=1, queries=5, where="object_hue < 0.5")
new = setsup.EpisodeSampler(shapes.factors, "object_hue", queries=5, across="shape", where="object_hue >= 0.5", seed=1)
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 5, 4), torch.nn.ReLU(), torch.nn.AvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(400, 32)
)
optimiser = torch.optim.Adam(net.parameters(), lr=5e-3)


def classified(batch: dict, shots: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Minus squared distance of each query to each prototype (queries, ways), and its class (queries,)."""
    ways, size = batch["image"].shape[:2]  # a class is a set: its first rows are the support
    points = net(batch["image"].flatten(0, 1).float() / 255).unflatten(0, (ways, size))
    prototypes, queries = points[:, :shots].mean(1), points[:, shots:].flatten(0, 1)
    return -torch.cdist(queries, prototypes).square(), torch.arange(ways).repeat_interleave(size - shots)


@torch.no_grad()
def accuracy(episodes: setsup.EpisodeSampler) -> float:
    """Share of the queries of 20 episodes that are nearest to the prototype of their class."""
    batches = [batch for _, batch in zip(range(20), setsup.loader(shapes, episodes), strict=False)]
    found = [classified(batch, episodes.shots) for batch in batches]
    return sum((logits.argmax(1) == labels).float().mean().item() for logits, labels in found) / len(found)


print(f"new classes, queries of another shape, untrained: {accuracy(new):.0%}")
for _, batch in zip(range(100), setsup.loader(shapes, seen), strict=False):
    loss = torch.nn.functional.cross_entropy(*classified(batch, seen.shots))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"after 100 episodes of other classes: {accuracy(new):.0%}")
