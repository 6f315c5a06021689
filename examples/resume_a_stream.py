"""Stop after any step, go on elsewhere, on another number of ranks: the stream is the same."""

import json
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np

import setsup
from setsup.samplers import from_dict

shapes = setsup.load("shapes3d-procedural")
sets = setsup.SetSampler(shapes.factors, inactive=["shape"], size=16, seed=7)

# two ranks train for 50 steps each; 100 draws are delivered, and that number is all there is to save
ranks = [list(islice(sets.shard(rank, world=2), 50)) for rank in range(2)]
delivered = sum(map(len, ranks))
checkpoint = Path(tempfile.mkdtemp(), "checkpoint.json")  # or a file of yours
checkpoint.write_text(json.dumps({"sampler": sets.to_dict(), "delivered": delivered}), encoding="utf-8")

# later, in another process, with three ranks
saved = json.loads(checkpoint.read_text(encoding="utf-8"))
again = from_dict(saved["sampler"], setsup.load("shapes3d-procedural").factors)
resumed = [again.shard(rank, world=3, start=saved["delivered"]) for rank in range(3)]

assert np.array_equal(ranks[1][49].indices, sets[99].indices)
assert all(np.array_equal(resumed[rank][4].indices, sets[100 + 4 * 3 + rank].indices) for rank in range(3))
print("the stream goes on at draw", saved["delivered"])
