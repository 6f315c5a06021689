"""Contrast with memory banks of past features: one bank per view, whose rows are positives and negatives of the others.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), and its published code.

"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.checks import check_choice
from setsup.errors import SetsupError
from setsup.methods.embeddings import check_temperature
from setsup.methods.rows import RowState
from setsup.methods.rows.exchange import add_up
from setsup.random import stream_key
from setsup_papers.cmc.inputs import both_directions, check_different, check_names
from setsup_papers.cmc.losses import nce_loss, softmax_loss
from setsup_papers.cmc.negatives import draw_features, draw_negatives

__all__ = ["BankContrast", "BankObjective", "Normaliser"]

BankObjective = Literal["nce", "softmax"]
Normaliser = Literal["pair", "anchor"]


class BankContrast(nn.Module):
    """Scores each view's features with the banks of the views that it is paired with, and updates the banks [1]_.

    An anchor's positive is its own row of the other view's bank, that is, the features of an earlier step; its m
    negatives are uniform over all N rows. All pairs of a step share one table of negatives. After scoring, a row
    becomes the normalised momentum · row + (1 - momentum) · z. In evaluation mode nothing is written, and the positive
    of an image that is not a row of the training data, whose number is -1, is its other view's z.

    Under ``torch.distributed`` the banks are divided among ranks, see :class:`~setsup.methods.rows.RowState`; W ranks
    have the losses and banks of one process that gets their draws as one batch.

    Parameters
    ----------
    pairs : sequence of (str, str)
        Pairs of views, each in both directions.
    images : int
        N, rows of the training data.
    features : int
        d.
    objective : {"nce", "softmax"}
        :func:`~setsup_papers.cmc.nce_loss` or :func:`~setsup_papers.cmc.softmax_loss`.
    negatives : int
        m.
    temperature : float
        τ.
    momentum : float
        Share of a bank's row that stays.
    dtype : torch.dtype
        Of banks: ``torch.float16`` for half the memory.
    normaliser : {"pair", "anchor"}
        Whether Z of ``nce`` is estimated for each ordered pair of views, or for each view over all its pairs.
    seed : int
        Of initial banks and negatives.

    Raises
    ------
    SetsupError
        When an argument is out of range.

    Examples
    --------
    >>> contrast = BankContrast([("L", "ab")], images=1000, features=8, negatives=64)
    >>> features = {view: functional.normalize(torch.ones(2, 8), dim=1) for view in ("L", "ab")}
    >>> sorted(contrast(features, torch.tensor([3, 999])))
    [('L', 'ab'), ('ab', 'L')]
    >>> contrast.banks["L"].gather(torch.tensor([3])).norm().round(decimals=4)
    tensor(1.)

    """

    def __init__(
        self,
        pairs: Sequence[tuple[str, str]],
        images: int,
        features: int,
        *,
        objective: BankObjective = "nce",
        negatives: int = 4096,
        temperature: float = 0.07,
        momentum: float = 0.5,
        dtype: torch.dtype = torch.float32,
        normaliser: Normaliser = "pair",
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_choice(objective, get_args(BankObjective), "the objective", SetsupError)
        check_choice(normaliser, get_args(Normaliser), "the normaliser", SetsupError)
        check_temperature(temperature)
        if negatives < 1 or not 0 <= momentum < 1:
            raise SetsupError(
                f"negatives must be 1 or more, and momentum at least 0 and below 1, not {negatives} and {momentum}"
            )
        check_different(pairs)
        check_names(view for pair in pairs for view in pair)
        self.directions = both_directions(pairs)
        self.images, self.negatives, self.temperature, self.momentum = images, negatives, temperature, momentum
        self.objective: BankObjective = objective
        self.normaliser: Normaliser = normaliser
        self._key = stream_key(seed, "negatives")
        self.banks = nn.ModuleDict()
        for view in dict.fromkeys(view for pair in pairs for view in pair):
            initial = partial(draw_features, key=stream_key(seed, f"bank of {view}"), size=features)
            self.banks[view] = RowState(images, features, dtype=dtype, initial=initial)
        self.register_buffer("normalisers", torch.zeros(len(self.directions)))  # 0: not yet
        self.register_buffer("draws", torch.zeros((), dtype=torch.int64))
        self.normalisers: Tensor
        self.draws: Tensor

    def forward(self, features: Mapping[str, Tensor], rows: Tensor) -> dict[tuple[str, str], Tensor]:
        """Losses by (anchor, candidates) of features (n, d) of unit length, and of the rows (n,) of their images."""
        negatives = draw_negatives(self._key, int(self.draws), rows, self.negatives, self.images)
        table = torch.cat([rows[:, None] if self.training else rows[:, None].clamp_min(0), negatives], 1)
        scores = {
            (anchor, other): self.banks[other].scores(features[anchor], table)  # type: ignore[operator]
            for anchor, other in self.directions
        }
        if not self.training and bool((rows < 0).any()):
            scores = {way: _with_own(of_way, features, way, rows < 0) for way, of_way in scores.items()}
        if self.objective == "softmax":
            losses = {way: softmax_loss(of_way, self.temperature) for way, of_way in scores.items()}
        else:
            normalisers = self._normalisers(scores)
            losses = {
                way: nce_loss(of_way, self.images, z, self.temperature)
                for (way, of_way), z in zip(scores.items(), normalisers, strict=True)
            }
        self._update(features, rows)
        return losses

    @torch.no_grad()
    def _normalisers(self, scores: Mapping[tuple[str, str], Tensor]) -> list[float]:
        """Z of each direction, estimated on the first training batch, and constant from then on."""
        if bool(self.normalisers[0]):
            return self.normalisers.tolist()
        ratios = [(of_way / self.temperature).exp() for of_way in scores.values()]
        sums = torch.stack([torch.stack([some.sum(), some.new_tensor(some.numel())]) for some in ratios])
        add_up(sums)  # over ranks
        if self.normaliser == "anchor":
            anchors = [anchor for anchor, _ in self.directions]
            same = torch.tensor([[a == b for b in anchors] for a in anchors], device=sums.device)
            sums = same.to(sums.dtype) @ sums
        normalisers = self.images * sums[:, 0] / sums[:, 1]
        if not bool(normalisers.isfinite().all()):
            anchor, other = self.directions[int((~normalisers.isfinite()).nonzero()[0])]
            z = float(normalisers[~normalisers.isfinite()][0])
            raise SetsupError(
                f"Z of {anchor!r} and {other!r} is {z} on the first batch: features are not finite, or exp(1/τ) is too "
                f"large at τ = {self.temperature}; check the range of values of these views, or raise "
                "--method.temperature"
            )
        if self.training:
            self.normalisers.copy_(normalisers)
        return normalisers.tolist()

    @torch.no_grad()
    def _update(self, features: Mapping[str, Tensor], rows: Tensor) -> None:
        if not self.training:
            return
        for view, bank in self.banks.items():
            before = bank.gather(rows).float()  # type: ignore[operator]
            moved = self.momentum * before + (1 - self.momentum) * features[view].detach()
            bank.update(rows, functional.normalize(moved, dim=1))  # type: ignore[operator]
        self.draws += 1


def _with_own(scores: Tensor, features: Mapping[str, Tensor], way: tuple[str, str], new: Tensor) -> Tensor:
    """Scores (n, 1 + m) whose positives are the products of two views where images are new."""
    own = (features[way[0]] * features[way[1]]).sum(1, keepdim=True)
    return torch.cat([torch.where(new[:, None], own, scores[:, :1]), scores[:, 1:]], 1)
