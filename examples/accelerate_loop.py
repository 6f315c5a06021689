"""Train with Hugging Face accelerate, on one process or several, and resume with another number of them.

Needs: pip install ".[train]". Run it twice: accelerate launch --cpu --num-processes 2 examples/accelerate_loop.py
checkpoint, then alone.
"""

import sys
from itertools import islice
from pathlib import Path

import torch
from accelerate import Accelerator

import setsup

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)  # on GPUs without cpu=, and with to= below
rank, world = accelerator.process_index, accelerator.num_processes
shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
rows = setsup.EpochSampler(shapes.factors, size=64, seed=0)
batches = setsup.loader(shapes, rows, rank=rank, world=world)  # on GPUs: to=str(accelerator.device)
model = torch.nn.Linear(3 * 8 * 8, 10)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
model, optimiser = accelerator.prepare(model, optimiser)  # not the loader, which takes its share already
accelerator.register_for_checkpointing(batches)  # its position, the same on all ranks
checkpoint = Path(sys.argv[1]) if len(sys.argv) > 1 else None
if checkpoint and checkpoint.exists():
    accelerator.load_state(str(checkpoint))
began = batches.state_dict()["delivered"]
for batch in islice(batches, 20):  # every rank gets as many batches
    with accelerator.accumulate(model):
        small = torch.nn.functional.avg_pool2d(batch["image"][0].float() / 255, 8)
        loss = torch.nn.functional.cross_entropy(model(small.flatten(1)), batch["factors"]["wall_hue"][0])
        accelerator.backward(loss)
        optimiser.step()
        optimiser.zero_grad()
if checkpoint:
    accelerator.save_state(str(checkpoint))
print(f"rank {rank} of {world}: 20 batches of draws {began} to {batches.state_dict()['delivered']}, loss {loss:.2f}")
accelerator.end_training()
