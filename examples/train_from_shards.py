"""Write a set of shards, open it where it lies, and train from it: sets by factor, at random, by range reads.

Needs: pip install ".[torch]"; for addresses of stores also the extra shards.
"""

import tempfile

import torch

import setsup

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25").select(range(0, 58_000, 29))
address = tempfile.mkdtemp()  # or "s3://bucket/shapes", with credentials in the environment
setsup.write_shards(shapes, address, order="by:shape", per_shard=500, format="png")

shards = setsup.open_shards(address)
sets = setsup.SetSampler(shards.factors, inactive=["shape"], size=16, sets=4, values="different", seed=0)
batches = setsup.loader(shards, sets, workers=0)  # the default decodes in processes, which pays for long runs
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(768, 4))
optimiser = torch.optim.Adam(net.parameters(), lr=0.003)
for step, batch in zip(range(60), batches, strict=False):
    scores = net(batch["image"].flatten(0, 1).float() / 255)
    shape = batch["factors"]["shape"].flatten()
    loss = torch.nn.functional.cross_entropy(scores, shape)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 20 == 19:
        print(f"step {step + 1}: loss {loss.item():.2f}, {(scores.argmax(1) == shape).float().mean():.0%} right")
print(len(shards), "samples in", [shard.name for shard in shards.catalogue.shards], "go on at", batches.state_dict())
