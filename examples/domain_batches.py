"""Batches balanced over domains: every domain equally often, every row of a domain equally often."""

import numpy as np

import setsup

# sessions of very different lengths, as recordings have them
lengths = {"monday": 40, "tuesday": 90, "friday": 25}
sessions = [name for name, length in lengths.items() for _ in range(length)]
table = setsup.FactorTable.from_values({"session": sessions, "frame": list(range(len(sessions)))})

batches = setsup.DomainSampler(table, "session", sets=2, size=8)
print(batches.report())

round_ = batches.block(0, 3)  # 3 domains, 2 a batch: a round has 3 steps
print(table.values("session", round_.indices[:, :, 0]))
visits = np.bincount(round_.inactive["session"].ravel())
print("visits of each session in a round:", visits.tolist())
