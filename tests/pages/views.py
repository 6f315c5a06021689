"""Two views of a scene in which a pixel of either is visible, occluded, outside or of nothing in the other."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from setsup.correspondence import Photographs, open_photographs
from setsup.factors import Factor, FactorTable, Kind
from setsup.rendered.dataset import RenderedDataset
from setsup.scenes import Camera, Mesh, Placement, Scene
from setsup.scenes.recipes import FunctionRecipe
from tests.pages.sources import HOSTILE

__all__ = ["HEIGHT", "WIDTH", "color_run", "shifted", "views"]

HEIGHT, WIDTH = 24, 32
SCENES = (HOSTILE[0], HOSTILE[2])


def _square(size: float, distance: float, color: tuple[int, int, int]) -> Placement:
    corners = [(-size, distance, -size), (size, distance, -size), (size, distance, size), (-size, distance, size)]
    mesh = Mesh(corners, [(0, 1, 2), (0, 2, 3)], colors=np.array([color] * 4, np.uint8))
    return Placement(mesh)


@cache
def views() -> RenderedDataset:
    """A small square before a large one, seen from the left and from the right; two scenes."""

    def build(values: dict) -> Scene:
        size = 0.6 if values["scene"] == SCENES[0] else 1.6
        return Scene((_square(4.5, 6.0, (200, 80, 40)), _square(size, 4.0, (40, 90, 210))))

    def look(values: dict, scene: Scene) -> Camera:
        place = float(values["place"])
        return Camera.look_at((place, 0, 0), (place, 1, 0), height=HEIGHT, width=WIDTH, focal_length=24.0)

    factors = [Factor("scene", Kind.NOMINAL, SCENES), Factor("place", Kind.ORDINAL, (-1.0, 1.0, 4.0))]
    recipe = FunctionRecipe("squares", factors, build, look, ["scene"], (HEIGHT, WIDTH), "1")
    return RenderedDataset(recipe, FactorTable(factors), "embree")


@dataclass(frozen=True)
class Colors:
    """Features are colours, so that pixels of one colour are matched."""

    def build(self, table: Any, generator: Any) -> Any:
        import lightning
        import torch

        class Method(lightning.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(()))

            def embed(self, batch: dict) -> Any:
                return batch["image"].float().movedim(-3, -1) * self.weight

            def training_step(self, batch: dict, number: int) -> Any:
                return self.weight**2

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), 0.0)

        return Method()


def shifted(folder: Path) -> Photographs:
    """Two photographs of random colours, the second of which starts 32 pixels to the right."""
    image = np.random.default_rng(0).integers(0, 256, (64, 128, 3), dtype=np.uint8)
    Image.fromarray(image[:, :96]).save(folder / "1.png")
    Image.fromarray(image[:, 32:]).save(folder / "2.png")
    (folder / "H_1_2").write_text("1 0 -32\n0 1 0\n0 0 1\n")
    return open_photographs(folder)


def color_run(folder: Path) -> Any:
    """A run whose features are colours."""
    from setsup.experiments import train
    from tests.experiments.small import PLAIN

    return train(replace(PLAIN, name="small/colors", method=Colors(), steps=1), folder / "seed-0")
