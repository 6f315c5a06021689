"""Which images of a batch are of one orbit, from the codes of their factors."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from setsup.errors import SetsupError
from setsup.factors import FactorTable
from setsup.factors.counting import with_outer
from setsup.loading.batch import Batch

__all__ = ["OrbitCodes"]


class OrbitCodes(nn.Module):
    """Numbers of orbits: combinations of levels of some factors.

    ``len`` is the number of orbits of the table.

    Parameters
    ----------
    table : FactorTable
        Of the training data.
    orbit : sequence of str
        Factors with levels whose combinations are orbits; a factor counts within those that it is nested in.

    Attributes
    ----------
    largest : int
        Rows of the largest orbit.

    """

    known: Tensor

    def __init__(self, table: FactorTable, orbit: Sequence[str]) -> None:
        super().__init__()
        endless = [name for name in orbit if not table[name].levels]
        self.orbit = () if endless else with_outer(table, orbit)
        self.sizes = [len(table[name]) for name in self.orbit]
        if not self.orbit or math.prod(self.sizes) >= 2**62:
            raise SetsupError(
                f"orbits are combinations of factors with levels, of fewer than 2⁶² in all, not of "
                f"{', '.join(map(repr, endless or self.orbit)) or 'none'}: name others as --orbit"
            )
        codes = {name: torch.as_tensor(table.codes(name)) for name in self.orbit}
        numbers = self._number(codes).numpy()
        found, rows = np.unique(numbers[numbers >= 0], return_counts=True)
        self.largest = int(rows.max(initial=0))
        # of the training data, which a run keeps anyway
        self.register_buffer("known", torch.as_tensor(found), persistent=False)

    def __len__(self) -> int:
        return len(self.known)

    def codes(self, batch: Batch) -> Tensor:
        """A number for the orbit of each image, (sets, size) int64; -1 where a factor is unknown."""
        return self._number(batch["factors"])

    def classes(self, batch: Batch) -> Tensor:
        """The orbit of each image as a class from 0 on, (sets, size) int64; SetsupError for one not trained on."""
        codes = self.codes(batch)
        found = torch.searchsorted(self.known, codes).clamp(max=len(self.known) - 1)
        if (self.known[found] != codes)[batch["mask"]].any():
            raise SetsupError(
                f"a batch has orbits ({', '.join(self.orbit)}) that were not trained on, and a classifier of orbits "
                "knows no others: validate with neighbours or a probe, --validation.draws 0 --validation.knn FACTOR"
            )
        return found

    def _number(self, codes: "dict[str, Tensor]") -> Tensor:
        """Number of a combination, mixed radix; -1 where a code is."""
        first = codes[self.orbit[0]]
        found, unknown = torch.zeros_like(first, dtype=torch.int64), torch.zeros_like(first, dtype=torch.bool)
        for name, size in zip(self.orbit, self.sizes, strict=True):
            found = found * size + codes[name].long()
            unknown |= codes[name] < 0
        return torch.where(unknown, -1, found)
