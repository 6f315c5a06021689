"""FixMatch (Sohn et al. 2020): 40 labelled images and 4,760 unlabelled ones, seven of these for each labelled one.

Needs: pip install ".[torch]".
"""

import numpy as np
import torch
from torch.nn import functional as F

import setsup

shapes = setsup.load("shapes3d-procedural", where="wall_hue == 0.5 and floor_hue == 0.5")
table = shapes.factors
known = setsup.SetSampler(table, ["shape"], size=10, sets=4, values="different")[0].indices.ravel()
unknown = np.setdiff1d(np.arange(len(table)), known)
labelled = setsup.SetSampler(table, [], sets=1, size=16, where=known)
unlabelled = setsup.SetSampler(table, [], sets=7, size=16, where=unknown)
steps = setsup.Zip(labelled, unlabelled)  # 8 sets of 16: the first one has labels

torch.manual_seed(0)
layers = [layer for a, b in ((3, 16), (16, 32), (32, 64)) for layer in (torch.nn.Conv2d(a, b, 3, 2), torch.nn.ReLU())]
net = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(576, 4))
optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)


def weak(images: torch.Tensor) -> torch.Tensor:
    """Mirror a random half of the images."""
    return torch.where(torch.rand(len(images), 1, 1, 1) < 0.5, images.flip(-1), images)


def strong(images: torch.Tensor) -> torch.Tensor:
    """Mirror, and change the contrast and brightness of each channel."""
    gain, shift = 0.5 + torch.rand(len(images), 3, 1, 1), 0.5 * torch.rand(len(images), 3, 1, 1) - 0.25
    return weak(images) * gain + shift


for step, batch in zip(range(100), setsup.loader(shapes, steps, to="torch"), strict=False):
    images = F.avg_pool2d(batch["image"].flatten(0, 1).float() / 255, 2)
    label, others = batch["factors"]["shape"][0], images[16:]
    sure, guess = net(weak(others)).detach().softmax(-1).max(-1)
    agree = F.cross_entropy(net(strong(others)), guess, reduction="none")[sure >= 0.95].sum() / len(others)
    loss = F.cross_entropy(net(weak(images[:16])), label) + agree
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 33 == 0:
        right = (guess == batch["factors"]["shape"][1:].flatten()).float().mean()
        print(f"step {step}: {(sure >= 0.95).float().mean():.0%} pseudo-labels, {right:.0%} of all guesses right")
