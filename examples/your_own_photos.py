"""Sets from a CSV of your own images: one column of paths, one column a factor."""

import tempfile
from pathlib import Path

from PIL import Image

import setsup

# stands for your own folder: four lights on three people
folder = Path(tempfile.mkdtemp())
lines = ["image,subject,light"]
for subject, red in [("ann", 40), ("bob", 120), ("cem", 200)]:
    for light in range(4):
        name = f"{subject}_{light}.png"
        Image.new("RGB", (48, 64), (red, 60 * light, 90)).save(folder / name)
        lines.append(f"{name},{subject},{light}")
(folder / "photos.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

photos = setsup.open_table(folder / "photos.csv", kinds={"light": "nominal"}, size=(32, 32))
print(photos.factors, photos.modalities["image"].shape)

sets = setsup.SetSampler(photos.factors, inactive=["subject"], size=3, sets=2, values="different")
draw = sets[0]
images = photos.fetch(draw.indices)["image"]  # (2, 3, 32, 32, 3) uint8, resized and cut to the centre
print(photos.factors.values("subject", draw.indices), images.shape)
