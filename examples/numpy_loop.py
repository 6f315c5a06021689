"""Train with JAX, or with numpy alone: a linear probe that tells the wall's hue from pixels; torch is not needed.

Needs: pip install .; and jax, if you want it: without it, numpy does the same.
"""

import sys

import setsup

try:
    import jax.numpy as xp
except ImportError:
    import numpy as xp

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
batches = setsup.loader(shapes, setsup.EpochSampler(shapes.factors, size=128, seed=0), to="numpy")

weights = xp.zeros((8 * 8 * 3, 10))
for _, batch in zip(range(100), batches, strict=False):
    images = xp.asarray(batch["image"][0]) / 255  # (128, 64, 64, 3) uint8
    features = images.reshape(-1, 8, 8, 8, 8, 3).mean((2, 4)).reshape(-1, 8 * 8 * 3)
    wanted = xp.eye(10)[batch["factors"]["wall_hue"][0]]
    scores = xp.exp(features @ weights)
    shares = scores / scores.sum(1, keepdims=True)
    weights = weights + 2 * features.T @ (wanted - shares) / len(features)

right = (shares.argmax(1) == wanted.argmax(1)).mean()
print(f"{xp.__name__}: {right:.0%} of the last batch is right")
print("position to save with the weights:", batches.state_dict())
print("torch was imported:", "torch" in sys.modules)
