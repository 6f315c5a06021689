"""Train on several processes, and resume with another number of them.

Needs: pip install ".[torch]". Name a file for its checkpoint, and run it twice, the second time without torchrun:
torchrun --nproc-per-node 2 examples/torchrun_gloo.py checkpoint.pt
"""

import os
import sys
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist

import setsup

rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
store = None if "RANK" in os.environ else dist.HashStore()  # torchrun's ranks find each other by its environment
dist.init_process_group("gloo", rank=rank, world_size=world, store=store)  # on GPUs: "nccl", and to="cuda:…" below

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
rows = setsup.EpochSampler(shapes.factors, size=64, seed=0)
batches = setsup.loader(shapes, rows, rank=rank, world=world)
probe = torch.nn.Linear(3 * 8 * 8, 10)
checkpoint = Path(sys.argv[1]) if len(sys.argv) > 1 else None
if checkpoint and checkpoint.exists():
    saved = torch.load(checkpoint)
    probe.load_state_dict(saved["model"])
    batches.load_state_dict(saved["batches"])  # one position, whatever the number of ranks was
began = batches.state_dict()["delivered"]
model = torch.nn.parallel.DistributedDataParallel(probe)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
for batch in islice(batches, 20):  # every rank gets as many batches
    small = torch.nn.functional.avg_pool2d(batch["image"][0].float() / 255, 8)
    loss = torch.nn.functional.cross_entropy(model(small.flatten(1)), batch["factors"]["wall_hue"][0])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
if checkpoint and rank == 0:
    torch.save({"model": probe.state_dict(), "batches": batches.state_dict()}, checkpoint)
print(f"rank {rank} of {world}: 20 batches of draws {began} to {batches.state_dict()['delivered']}, loss {loss:.2f}")
dist.destroy_process_group()
