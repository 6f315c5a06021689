"""shapes3d-procedural: the six Shapes3D factors, drawn on demand by a small ray caster.

These are not the published pictures. Factors, levels and row order are those of the published set, so that draws carry
over; the pictures are setsup's own, fitted to published frames but without the faint texture of their walls and floor.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Dataset, Modality, fetch_request
from setsup.factors.table import FactorTable
from setsup.scenes.shapes3d import factors
from setsup.scenes.shapes3d_caster import SIDE, compose, planes, trace

__all__ = ["ProceduralShapes3D", "open"]


class ProceduralShapes3D(Dataset):
    """Pictures in the manner of Shapes3D: the grid of its six factors, 480,000 rows.

    Not the published data (that is ``shapes3d``) but a substitute with the same factors, levels and row numbers, which
    needs no download. The one modality is ``image``, (64, 64, 3) uint8 sRGB; its bytes depend on the row alone, on any
    machine. Each of the 480 states of scale, shape and orientation is cast when a row first needs it and kept (41 MB
    for all, not pickled); hues are added afterwards.
    """

    name = "shapes3d-procedural"

    def __init__(self) -> None:
        self.factors = FactorTable(factors())
        self.modalities = {"image": Modality((SIDE, SIDE, 3), "uint8", color="srgb")}
        # Threads may cast a state twice, with the same bytes: so no lock is needed, which a fork might copy locked.
        self._states: list[npt.NDArray[np.uint8] | None] = [None] * 480

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, npt.NDArray[Any]]:
        """Pictures of the given rows; see :meth:`setsup.datasets.Dataset.fetch`."""
        rows, names = fetch_request(self, indices, modalities)
        return {name: self._images(rows) for name in names}

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, npt.NDArray[Any]]) -> None:
        """Draw pictures into arrays; see :meth:`setsup.datasets.Dataset.fetch_into`."""
        rows, names = fetch_request(self, indices, tuple(out))
        for name in names:
            self._images(rows, out[name])

    def __repr__(self) -> str:
        """Show the class and the number of rows."""
        return f"ProceduralShapes3D({len(self):,} rows)"

    def __reduce__(self) -> tuple[type["ProceduralShapes3D"], tuple[()]]:
        """Pickle as the call that makes it."""
        return ProceduralShapes3D, ()

    def _images(self, rows: npt.NDArray[np.int64], out: npt.NDArray[Any] | None = None) -> npt.NDArray[np.uint8]:
        # a reshape of what is not contiguous would be a copy, and what is written there lost
        fits = out is not None and out.flags.c_contiguous
        found = out if out is not None and fits else np.empty((*rows.shape, SIDE, SIDE, 3), np.uint8)
        images = found.reshape(-1, SIDE, SIDE, 3)
        hues, states = np.divmod(rows.ravel(), len(self._states))
        for image, hue, state in zip(images, hues.tolist(), states.tolist(), strict=True):
            image[:] = compose(self._state(state), hue // 100, hue // 10 % 10, hue % 10)
        if out is not None and not fits:
            out[...] = found
        return found

    def _state(self, number: int) -> npt.NDArray[np.uint8]:
        state = self._states[number]
        if state is None:
            state = self._states[number] = planes(trace(number // 60, number // 15 % 4, number % 15))
        return state


def open(root: Path | None = None) -> ProceduralShapes3D:
    """Open shapes3d-procedural."""
    return ProceduralShapes3D()
