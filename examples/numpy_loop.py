"""Feed any trainer: batches as numpy arrays, resumed where an earlier run stopped."""

import numpy as np

import setsup

shapes = setsup.load("shapes3d-procedural", where="scale == 1.25")
sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=16, sets=2, seed=0)

batches = setsup.loader(shapes, sets, to="numpy")
for _, batch in zip(range(3), batches, strict=False):
    pictures = batch["image"].astype(np.float32) / 255
    print("held wall:", batch["inactive"]["wall_hue"], "mean colour:", pictures.mean(axis=(0, 1, 2, 3)).round(2))

later = setsup.loader(shapes, sets, to="numpy")
later.load_state_dict(batches.state_dict())  # a checkpoint keeps one number
print("goes on with draw", later.state_dict()["delivered"])
