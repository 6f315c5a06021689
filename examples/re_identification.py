"""Re-identification: the positive is the same object from another camera, the negative another object of its colour.

Needs: pip install ".[torch]".
"""

import torch

import setsup

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
same = "shape == anchor.shape and object_hue == anchor.object_hue"  # an object is a shape of one hue
camera = "orientation != anchor.orientation"
other = "object_hue == anchor.object_hue and shape != anchor.shape"
triplets = setsup.TripletSampler(shapes.factors, positive=f"{same} and {camera}", negative=other, seed=0)
pairs = setsup.OrbitSampler(shapes.factors, ["object_hue", "shape"], sets=40, size=2, members=camera, seed=1)
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 5, 2), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 5, 2), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(1024, 64),
)  # fmt: skip
optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)


def embedded(batch: dict) -> torch.Tensor:
    """Embeddings of unit length of all images of each set: (sets, size, 64)."""
    images = batch["image"]
    return torch.nn.functional.normalize(net(images.flatten(0, 1).float() / 255)).unflatten(0, images.shape[:2])


@torch.no_grad()
def rank_1() -> float:
    """Share of queries, the anchors, whose nearest image from another camera shows the same object; chance is 1/40."""
    points = torch.stack([embedded(batch) for _, batch in zip(range(4), setsup.loader(shapes, pairs), strict=False)])
    query, gallery = points.unbind(2)
    return (torch.cdist(query, gallery).argmin(2) == torch.arange(40)).float().mean().item()


print(f"rank 1 untrained: {rank_1():.0%}")
for _, batch in zip(range(100), setsup.loader(shapes, triplets), strict=False):
    loss = torch.nn.functional.triplet_margin_loss(*embedded(batch).unbind(1), margin=0.3)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"after 100 steps: {rank_1():.0%}")
