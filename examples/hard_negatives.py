"""Hard negatives: of the images nearest to an anchor, one of another shape; the neighbours are found again as it learns.

Needs: pip install ".[torch]".
"""

import itertools

import numpy as np
import torch

import setsup
from setsup.evaluation import nearest, shared_keys

shapes = setsup.load(
    "shapes3d-procedural", where="scale == 1.25 and floor_hue in (0.0, 0.5) and wall_hue in (0.2, 0.7)"
)
rows, table = np.arange(len(shapes)), shapes.factors
every = 25  # steps between two refreshes
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 5, 2), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 5, 2), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(1024, 64),
)  # fmt: skip
optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)


def embedded(images: torch.Tensor) -> torch.Tensor:
    """Embeddings of unit length (…, 64) of images (…, 3, 64, 64)."""
    points = net(images.reshape(-1, *images.shape[-3:]).float() / 255)
    return torch.nn.functional.normalize(points, dim=1).unflatten(0, images.shape[:-3])


@torch.no_grad()
def all_embedded() -> np.ndarray:
    """Embeddings of all rows (rows, 64)."""
    images = shapes.fetch(rows)["image"]
    return torch.cat(
        [embedded(torch.from_numpy(part).permute(0, 3, 1, 2)) for part in np.array_split(images, 8)]
    ).numpy()


def rank_1(points: np.ndarray) -> float:
    """Share of images whose nearest image of an object of another hue shows the same shape; chance is 1/4."""
    hue, shape = table.codes("object_hue")[:, None], table.codes("shape")
    found, _ = nearest(points, points, never=[shared_keys(hue, hue, [0])])
    return (shape[found[:, 0]] == shape).mean()


points = all_embedded()
print(f"rank 1 untrained: {rank_1(points):.0%}")
for start in range(0, 100, every):
    neighbours, _ = nearest(points, points, 50, own=rows)
    triplets = setsup.NeighbourSampler(
        table,
        {start: neighbours},
        positive="shape == anchor.shape and object_hue != anchor.object_hue",
        negative="shape != anchor.shape",
        ranks={"negative": (1, 50)},  # the positive is any row that satisfies its constraint
        every=every,
    )
    for batch in itertools.islice(setsup.loader(shapes, triplets, start=start), every):
        loss = torch.nn.functional.triplet_margin_loss(*embedded(batch["image"]).unbind(1), margin=0.3)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    points = all_embedded()
print(f"after 100 steps: {rank_1(points):.0%}")
