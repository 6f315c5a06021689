"""Metric learning: losses of pytorch-metric-learning on batches with equally many images of every domain.

Needs: pip install ".[torch]" pytorch-metric-learning.
"""

import torch
from pytorch_metric_learning import losses

import setsup

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
domains = setsup.DomainSampler(shapes.factors, "object_hue", sets=8, size=8, seed=0)  # 8 hues, 8 images of each
batches = setsup.loader(shapes, domains)
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 5, 4), torch.nn.ReLU(), torch.nn.AvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(784, 16)
)
contrast = losses.NTXentLoss(temperature=0.2)
optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)


def embedded(batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings (64, 16) of a batch, and the code of each image's hue (64,)."""
    return net(batch["image"].flatten(0, 1).float() / 255), batch["factors"]["object_hue"].flatten()


def nearest_right(batch: dict) -> float:
    """Share of images whose nearest neighbour in the batch has the same hue."""
    points, labels = embedded(batch)
    nearest = torch.cdist(points, points).fill_diagonal_(torch.inf).argmin(1)
    return (labels[nearest] == labels).float().mean().item()


print(f"nearest neighbour of the same hue, untrained: {nearest_right(next(iter(batches))):.0%}")
for _, batch in zip(range(60), batches, strict=False):
    loss = contrast(*embedded(batch))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"after 60 steps: {nearest_right(next(iter(batches))):.0%}")
