"""Contrast in time: an image and a later one of its sequence are a positive pair, all other images negatives.

Needs: pip install ".[torch]".
"""

import torch

import setsup

# a sequence for each object, which grows; the colours of the room change all the time
shapes = setsup.load("shapes3d-procedural", where="orientation == 0.0 and shape in ('cube', 'sphere')")
pairs = setsup.SequencePairSampler(shapes.factors, ["object_hue", "shape"], "scale", window=0.2, pairs=32)
print(pairs.report())
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 5, 4), torch.nn.ReLU(), torch.nn.AvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(400, 32)
)
optimiser = torch.optim.Adam(net.parameters(), lr=5e-3)


def embedded(batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings of unit length of the first and of the second images (pairs, 32)."""
    points = net(batch["image"].flatten(0, 1).float() / 255).unflatten(0, batch["image"].shape[:2])
    return torch.nn.functional.normalize(points, dim=-1).unbind(1)


@torch.no_grad()
def found() -> float:
    """Share of images whose nearest neighbour among the second images of a batch shows an object of the same hue."""
    batch = next(iter(setsup.loader(shapes, pairs, start=1000)))
    (first, second), hue = embedded(batch), batch["factors"]["object_hue"]
    return (hue[:, 1][(first @ second.T).argmax(1)] == hue[:, 0]).float().mean().item()


print(f"neighbour with the same object, untrained: {found():.0%}")
for _, batch in zip(range(100), setsup.loader(shapes, pairs), strict=False):
    first, second = embedded(batch)
    loss = torch.nn.functional.cross_entropy(first @ second.T / 0.1, torch.arange(len(first)))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"after 100 steps: {found():.0%}")
