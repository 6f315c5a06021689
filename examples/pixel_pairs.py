"""Single-pixel contrast on rooms that setsup makes up: two views, and which pixel of the one is which of the other.

Needs: pip install ".[torch,render]".
"""

import torch

import setsup
from setsup.correspondence import PixelPairSampler
from setsup.loading.views import SpatialPairs
from setsup.scenes.recipes import Room

rooms = setsup.RenderedDataset(Room(rooms=4, pairs=4, size=(60, 80)), renderer="embree")
pairs = PixelPairSampler(rooms, pairs=2, seed=0)
views = SpatialPairs(rooms, size=48, keep=1.0)
batches = setsup.loader(rooms, pairs, modalities=["image"], transform=views, workers=0)

net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 5, padding=2), torch.nn.ReLU(), torch.nn.Conv2d(32, 8, 5, padding=2))
optimiser = torch.optim.Adam(net.parameters(), lr=0.003)
for step, batch in zip(range(20), batches, strict=False):
    one, two = (net(batch[name].float() / 255).flatten(2) for name in ("view_1", "view_2"))  # (pairs, 8, pixels)
    partner = two.gather(2, batch["partner"][:, None].expand_as(two))
    distance = (one - partner).abs().amax(dim=1) / 2  # of each pixel of view 1 to its partner
    positive = batch["positive"]
    loss = (distance[positive] + distance[positive] ** 2).mean() + ((distance[~positive] - 0.5) ** 2).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 10 == 0:
        print(f"step {step}: {positive.float().mean():.0%} of the pixels are positive, loss {loss.item():.2f}")
