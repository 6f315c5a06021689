"""A sampler as a user has it in a file."""

import numpy as np

import setsup
from setsup.random import fold, randint_below, stream_key

__all__ = ["Followers"]


class Followers(setsup.samplers.Sampler):
    """Pairs of rows a step apart; it has no report."""

    def __init__(self, table: setsup.FactorTable, sets: int = 4, apart: int = 1, seed: int = 0) -> None:
        self.table, self.arguments = table, {"sets": sets, "apart": apart, "seed": seed}
        self._key, self._sets, self._apart = stream_key(seed, "Followers"), sets, apart

    def draws(self, steps: "np.ndarray") -> setsup.Draw:
        words = fold(fold(self._key, steps)[:, None], np.arange(self._sets))
        first = randint_below(words, len(self.table) - self._apart)
        return setsup.Draw(np.stack([first, first + self._apart], axis=-1))
