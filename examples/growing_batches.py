"""Larger batches in place of a lower learning rate (Smith et al. 2018): the size of a batch by step, as plain data.

Needs: pip install ".[torch]".
"""

import torch

import setsup

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25 and floor_hue == 0.5")
sizes = {0: 16, 40: 32, 70: 64, 90: 128}
growing = setsup.SetSampler(shapes.factors, [], sets=1, size=sizes)
print(growing.to_dict()["arguments"]["size"], [len(list(growing[step])) for step in (0, 39, 40, 99)])

torch.manual_seed(0)
probe = torch.nn.Linear(3 * 8 * 8, 10)
optimiser = torch.optim.SGD(probe.parameters(), lr=0.05, momentum=0.9)
for step, batch in zip(range(100), setsup.loader(shapes, growing, to="torch"), strict=False):
    counts = batch["mask"]  # (1, 128): False at the positions beyond the size of the step
    images, labels = batch["image"][counts].float() / 255, batch["factors"]["wall_hue"][counts]
    small = torch.nn.functional.avg_pool2d(images, 8).flatten(1)
    loss = torch.nn.functional.cross_entropy(probe(small), labels)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step in (0, 39, 69, 99):
        print(f"step {step}: {len(images)} images, cross entropy {loss.item():.2f}")
