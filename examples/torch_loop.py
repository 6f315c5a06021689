"""Train with plain torch: a linear probe that tells the wall's hue from pixels.

Needs: pip install ".[torch]".
"""

import torch

import setsup

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
batches = setsup.loader(shapes, setsup.EpochSampler(shapes.factors, size=128, seed=0), to="torch")

probe = torch.nn.Linear(3 * 8 * 8, 10)
optimiser = torch.optim.Adam(probe.parameters(), lr=0.01)
for _, batch in zip(range(40), batches, strict=False):
    small = torch.nn.functional.avg_pool2d(batch["image"][0].float() / 255, 8)
    loss = torch.nn.functional.cross_entropy(probe(small.flatten(1)), batch["factors"]["wall_hue"][0])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"cross entropy after 40 steps: {loss.item():.2f}")
