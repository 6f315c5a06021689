"""Small releases of all that ABC's pose experiment is made of, each in a folder of its name."""

from pathlib import Path

from tests.kept import kept
from tests.true_files import cars196, compcars, imagenet_a, pascal3d, shapenet_renderings

HELD = "category"


@kept
def write(folder: Path) -> None:
    """Write the five releases; renderings have the records that codebooks are made of."""
    for name, module in (("compcars", compcars), ("cars196", cars196), ("imagenet-a", imagenet_a)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        module.write(folder / name)
    (folder / "pascal3d").mkdir(exist_ok=True)
    pascal3d.write(folder / "pascal3d")
    for plural, numbers in (("cars", (0, 1, 182, 183)), ("chairs", (2, 3, 47, 48))):
        files = shapenet_renderings.release(plural, numbers)
        shapenet_renderings.pack(files, folder / "shapenet-renderings" / f"{plural}_with_keypoints")
