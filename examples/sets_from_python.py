"""Two sets of images in which the hue of the wall is fixed: rows, levels, arrays and a contact sheet."""

import tempfile
from pathlib import Path

import setsup
from setsup.reports import contact_sheet, describe

shapes = setsup.load("shapes3d-procedural")
sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=32, sets=2, seed=0)
print(sets.report())  # groups, sizes, rows that are never drawn: look at it before you train

draw = sets[17]  # depends only on the arguments and the step, 17
images = shapes.fetch(draw.indices)["image"]  # (2, 32, 64, 64, 3) uint8
shape_codes = shapes.factors.codes("shape", draw.indices)  # (2, 32) int64, a label for a probe

words = describe(shapes.factors, draw)
for number, found in enumerate(words):
    print(f"set {number}: fixed: {found.fixed_words(shapes.factors)}")
picture = Path(tempfile.mkdtemp(), "sets.png")  # or a file of yours
contact_sheet(images, [found.fixed_words(shapes.factors) for found in words], "step 17").save(picture)
print(images.shape, shape_codes.shape, picture)
