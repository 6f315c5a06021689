"""Repeated augmentation: four copies of each image in a batch, each cropped and jittered on its own.

Needs: pip install ".[torch]".
"""

import torch

import setsup
from setsup.loading.transforms import Augment, Flip, Jitter, ResizedCrop

shapes = setsup.load("shapes3d-procedural", where="scale > 1 and orientation in (-30.0, 0.0, 30.0)")
batches = setsup.EpochSampler(shapes.factors, size=64, repeats=4, where="wall_hue < 0.5", seed=0)
test = setsup.EpochSampler(shapes.factors, size=256, where="wall_hue >= 0.5", seed=1)
augment = Augment([ResizedCrop(64, area=(0.5, 1)), Flip(), Jitter(brightness=0.4)])
print(batches.report())
rows = batches[0].indices[0]
print("copies are adjacent:", rows[:8].tolist())
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 5, 4), torch.nn.ReLU(), torch.nn.AvgPool2d(3), torch.nn.Flatten(), torch.nn.Linear(400, 10)
)
optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)


def accuracy() -> float:
    """Share of 256 images with walls of other hues in which the hue of the object is recognised."""
    batch = next(iter(setsup.loader(shapes, test)))
    with torch.no_grad():
        return (
            (net(batch["image"][0].float() / 255).argmax(1) == batch["factors"]["object_hue"][0]).float().mean().item()
        )


print(f"hues recognised, untrained: {accuracy():.0%}")
for _, batch in zip(range(100), setsup.loader(shapes, batches, transform=augment), strict=False):
    loss = torch.nn.functional.cross_entropy(net(batch["image"][0]), batch["factors"]["object_hue"][0].long())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"after 100 batches of 16 images: {accuracy():.0%}")
