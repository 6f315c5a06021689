"""Which images of a batch are of one group, such as an orbit or a domain, from the codes of their factors."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from setsup.errors import SetsupError
from setsup.factors import FactorTable
from setsup.factors.counting import with_outer
from setsup.loading.batch import Batch

__all__ = ["GroupCodes", "need_members"]


class GroupCodes(nn.Module):
    """Numbers of groups: combinations of levels of some factors.

    ``len`` is the number of groups of the table.

    Parameters
    ----------
    table : FactorTable
        Of the training data.
    factors : sequence of str
        Factors with levels whose combinations are groups; a factor counts within those that it is nested in.
    kind : str
        What a group is, ``"orbit"`` or ``"domain"``, as errors and the option of the command name it.

    Attributes
    ----------
    largest : int
        Rows of the largest group.
    table : str
        Fingerprint of the table.

    Raises
    ------
    SetsupError
        When a factor has no levels, or there are too many combinations.

    Examples
    --------
    >>> import setsup
    >>> table = setsup.load("shapes3d-procedural").factors
    >>> domains = GroupCodes(table, ["shape"], "domain")
    >>> len(domains), domains.codes({"factors": {"shape": torch.tensor([[2, 0]])}}).tolist()
    (4, [[2, 0]])

    """

    known: Tensor

    def __init__(self, table: FactorTable, factors: Sequence[str], kind: str = "orbit") -> None:
        super().__init__()
        endless = [name for name in factors if not table[name].levels]
        self.kind, self.table = kind, table.fingerprint
        self.factors = () if endless else with_outer(table, factors)
        self.sizes = [len(table[name]) for name in self.factors]
        if not self.factors or math.prod(self.sizes) >= 2**62:
            raise SetsupError(
                f"{kind}s must be combinations of one or more factors with levels, fewer than 2⁶² in all, not "
                f"{', '.join(map(repr, endless or self.factors)) or 'none'}; choose other factors with --{kind}"
            )
        codes = {name: torch.as_tensor(table.codes(name)) for name in self.factors}
        numbers = self._number(codes).numpy()
        known, rows = np.unique(numbers[numbers >= 0], return_counts=True)
        self.largest = int(rows.max(initial=0))
        # of the training data, which a run keeps anyway
        self.register_buffer("known", torch.as_tensor(known), persistent=False)

    def __len__(self) -> int:
        return len(self.known)

    def codes(self, batch: Batch) -> Tensor:
        """A number for the group of each image, (sets, size) int64; -1 where a factor is unknown."""
        return self._number(batch["factors"])

    def classes(self, batch: Batch) -> Tensor:
        """Return the class of each image, (sets, size) int64; SetsupError for a group that was not trained on."""
        codes = self.codes(batch)
        classes = torch.searchsorted(self.known, codes).clamp(max=len(self.known) - 1)
        if (self.known[classes] != codes)[batch["mask"]].any():
            raise SetsupError(
                f"a batch has {self.kind}s ({', '.join(self.factors)}) that were not in the training data, but this "
                f"method learned parameters for each {self.kind} of its training data; validate with neighbours or a "
                "probe, --validation.draws 0 --validation.knn FACTOR"
            )
        return classes

    def used(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return which images of a batch have a known group, (sets · size,) bool, and their codes (n,).

        SetsupError when there is none.
        """
        codes = self.codes(batch)
        used = (batch["mask"] & (codes >= 0)).flatten()
        if not used.any():
            raise SetsupError(
                f"the {self.kind} ({', '.join(self.factors)}) is unknown for all images of a batch, so nothing can be "
                f"learned from the batch; exclude images whose {self.kind} is unknown, or draw more images per step"
            )
        return used, codes.flatten()[used]

    def _number(self, codes: "dict[str, Tensor]") -> Tensor:
        """Number of a combination, mixed radix; -1 where a code is."""
        first = codes[self.factors[0]]
        combined, unknown = torch.zeros_like(first, dtype=torch.int64), torch.zeros_like(first, dtype=torch.bool)
        for name, size in zip(self.factors, self.sizes, strict=True):
            combined = combined * size + codes[name].long()
            unknown |= codes[name] < 0
        return torch.where(unknown, -1, combined)


def need_members(batch: Batch, groups: GroupCodes, why: str) -> None:
    """Raise SetsupError for sets of one image, unless a batch has more of them than there are groups.

    `why` says what a method does with two images of a group; the message is its sentence.
    """
    sets, size = batch["mask"].shape
    if size < 2 and sets <= len(groups):
        raise SetsupError(f"{why}; draw at least two images of each {groups.kind}, for example with --sampler.size 2")
