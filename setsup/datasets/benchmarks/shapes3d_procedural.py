"""shapes3d-procedural: the six Shapes3D factors, drawn on demand by a small ray caster.

These are not the published images. Factors, levels and row order are those of the published set, so draws are the same
for both; the images are rendered by setsup, fitted to published frames but without the faint texture of their walls and
floor.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Modality
from setsup.factors.table import FactorTable
from setsup.scenes.shapes3d import factors
from setsup.scenes.shapes3d_caster import SIDE, compose, planes

__all__ = ["ProceduralShapes3D", "open"]


class ProceduralShapes3D(BaseDataset):
    """Images in the style of Shapes3D: the grid of its six factors, 480,000 rows.

    Not the published data (that is ``shapes3d``) but a substitute with the same factors, levels and row numbers, which
    needs no download. The only modality is ``image``, (64, 64, 3) uint8 sRGB; its bytes depend on the row alone, on any
    machine. Each of the 480 combinations of scale, shape and orientation is rendered when it is first needed and then
    cached (41 MB for all, not pickled; the process also caches 6 MB of empty rooms); hues are added afterwards.
    """

    name = "shapes3d-procedural"

    def __init__(self) -> None:
        self.factors = FactorTable(factors())
        self.modalities = {"image": Modality((SIDE, SIDE, 3), "uint8", color="srgb")}
        # Threads may cast a state twice, with the same bytes: so no lock is needed, which a fork might copy locked.
        self._states: list[npt.NDArray[np.uint8] | None] = [None] * 480

    def __repr__(self) -> str:
        """Show the class and the number of rows."""
        return f"ProceduralShapes3D({len(self):,} rows)"

    def __reduce__(self) -> tuple[type["ProceduralShapes3D"], tuple[()]]:
        """Pickle as the call that makes it."""
        return ProceduralShapes3D, ()

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        hues, states = np.divmod(rows, len(self._states))
        for image, hue, state in zip(out, hues.tolist(), states.tolist(), strict=True):
            image[:] = compose(self._state(state), hue // 100, hue // 10 % 10, hue % 10)
        return out

    def _state(self, number: int) -> npt.NDArray[np.uint8]:
        state = self._states[number]
        if state is None:
            state = self._states[number] = planes(number // 60, number // 15 % 4, number % 15)
        return state


def open(root: Path | None = None) -> ProceduralShapes3D:
    """Open shapes3d-procedural."""
    return ProceduralShapes3D()
