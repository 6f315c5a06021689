"""Hierarchical batches: classes of two categories each, so that negatives are as similar as the category makes them.

Needs: pip install ".[torch]" pytorch-metric-learning.
"""

import torch
from pytorch_metric_learning import losses

import setsup

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
batches = setsup.HierarchicalSampler(shapes.factors, ["shape", "object_hue"], sets=[2, 5], size=4, seed=0)
print(batches.report())
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 5, 4), torch.nn.ReLU(), torch.nn.AvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(400, 32)
)
similar = losses.MultiSimilarityLoss()
optimiser = torch.optim.Adam(net.parameters(), lr=5e-3)


def embedded(batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings (40, 32) of a batch, and the number of each image's class (40,): a shape and a hue."""
    classes = batch["factors"]["shape"] * 10 + batch["factors"]["object_hue"]
    return net(batch["image"].flatten(0, 1).float() / 255), classes.flatten()


@torch.no_grad()
def nearest_right() -> float:
    """Share of images whose nearest neighbour in a batch, which has two shapes only, is of the same class."""
    points, classes = embedded(next(iter(setsup.loader(shapes, batches, start=1000))))
    return (classes[torch.cdist(points, points).fill_diagonal_(torch.inf).argmin(1)] == classes).float().mean().item()


print(f"nearest neighbour of the same class, untrained: {nearest_right():.0%}")
for _, batch in zip(range(100), setsup.loader(shapes, batches), strict=False):
    loss = similar(*embedded(batch))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"after 100 batches: {nearest_right():.0%}")
