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
rows, table = np.arange(len(shapes)), shapes.factors
every = 25  # steps between two refreshes
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 5, 4), torch.nn.ReLU(), torch.nn.AvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(800, 32)
)
optimiser = torch.optim.Adam(net.parameters(), lr=5e-3)


def embedded(images: torch.Tensor) -> torch.Tensor:
    """Embeddings of unit length (…, 32) of images (…, 3, 64, 64)."""
    points = net(images.reshape(-1, *images.shape[-3:]).float() / 255)
    return torch.nn.functional.normalize(points, dim=1).unflatten(0, images.shape[:-3])


@torch.no_grad()
def all_embedded() -> np.ndarray:
    """Embeddings of all rows (rows, 32)."""
    return embedded(torch.from_numpy(shapes.fetch(rows)["image"]).permute(0, 3, 1, 2)).numpy()


def rank_1(points: np.ndarray) -> float:
    """Share of images whose nearest image of another object's hue and another wall shows the same shape."""
    factors = np.stack([table.codes(name) for name in ("object_hue", "wall_hue")], axis=1)
    never, shape = [shared_keys(factors, factors, [column]) for column in (0, 1)], table.codes("shape")
    found, _ = nearest(points, points, never=never)
    return (shape[found[:, 0]] == shape).mean()


points = all_embedded()
print(f"rank 1 untrained: {rank_1(points):.0%}")
for start in range(0, 100, every):
    neighbours, _ = nearest(points, points, 20, own=rows)
    triplets = setsup.NeighbourSampler(
        table,
        {start: neighbours},
        positive="shape == anchor.shape and object_hue != anchor.object_hue and wall_hue != anchor.wall_hue",
        negative="shape != anchor.shape",
        ranks={"negative": (1, 20)},  # the positive is any row that satisfies its constraint
        every=every,
    )
    for batch in itertools.islice(setsup.loader(shapes, triplets, start=start), every):
        loss = torch.nn.functional.triplet_margin_loss(*embedded(batch["image"]).unbind(1), margin=0.3)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    points = all_embedded()
print(f"after 100 steps: {rank_1(points):.0%}")
