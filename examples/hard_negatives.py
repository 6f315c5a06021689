"""Hard negatives: one of the images nearest to the anchor, of another shape; they are found again every 25 steps.

Needs: pip install ".[torch]".
"""

import itertools

import numpy as np
import torch

import setsup
from setsup.evaluation import nearest, shared_keys

few = "orientation in (-30.0, 0.0, 30.0) and floor_hue in (0.0, 0.5) and wall_hue in (0.2, 0.7)"
shapes = setsup.load("shapes3d-procedural", where=f"scale == 1.25 and {few}")
rows, factors = np.arange(len(shapes)), {name: shapes.factors.codes(name) for name in shapes.factors.names}
positive = "shape == anchor.shape and object_hue != anchor.object_hue and wall_hue != anchor.wall_hue"
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 5, 4), torch.nn.ReLU(), torch.nn.AvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(800, 32)
)
optimiser = torch.optim.Adam(net.parameters(), lr=2e-3)


def embedded(images: torch.Tensor) -> torch.Tensor:
    """Embeddings of unit length (…, 32) of images (…, 3, 64, 64)."""
    return torch.nn.functional.normalize(net(images.flatten(0, -4).float() / 255)).unflatten(0, images.shape[:-3])


def rank_1(points: np.ndarray) -> float:
    """Share of images whose nearest image with another object's hue and another wall's shows the same shape."""
    never = [shared_keys(factors[name][:, None], factors[name][:, None], [0]) for name in ("object_hue", "wall_hue")]
    return (factors["shape"][nearest(points, points, never=never)[0][:, 0]] == factors["shape"]).mean()


for start in range(0, 125, 25):
    with torch.no_grad():
        points = embedded(torch.from_numpy(shapes.fetch(rows)["image"]).permute(0, 3, 1, 2)).numpy()
    print(f"rank 1 after {start} steps: {rank_1(points):.0%}")
    tables = {start: nearest(points, points, 20, own=rows)[0]}
    ranks = {"negative": (1, 20)}  # the positive is any row that satisfies its constraint
    hard = setsup.NeighbourSampler(shapes.factors, tables, positive, "shape != anchor.shape", ranks=ranks, every=25)
    for batch in itertools.islice(setsup.loader(shapes, hard, start=start), 25 if start < 100 else 0):
        loss = torch.nn.functional.triplet_margin_loss(*embedded(batch["image"]).unbind(1), margin=0.3)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
