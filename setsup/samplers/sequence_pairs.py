"""Pairs of rows that are near in time: one, and one that follows it in the same sequence.

SlowVAE [1]_ learns from pairs of frames whose factors change sparsely; contrastive losses in time use such pairs as
positives.

References
----------
.. [1] D. Klindt et al., "Towards nonlinear disentanglement in natural data with temporal sparse coding", ICLR 2021
   (arXiv 2007.10930).

"""

import math
from collections.abc import Sequence

import numpy as np

from setsup.arrays import Reals, Rows, Steps, Words
from setsup.checks import check_number, check_string
from setsup.errors import SamplerError
from setsup.factors.factor import Kind
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.random import fold, mix, randint_below
from setsup.samplers.arguments import check_draw_memory, check_names, check_sets
from setsup.samplers.coverage import Reach, ReachedGroups, Reason, SetReach
from setsup.samplers.draw import Draw, by_factor
from setsup.samplers.groups.reach_chances import at_least_one
from setsup.samplers.groups.within import pick_by_weight, spread_words
from setsup.samplers.report import Entry, Report
from setsup.samplers.report_words import span
from setsup.samplers.row_arguments import Weights, Where, both
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell, spell_name

__all__ = ["SequencePairSampler"]

_RESOLVED = 16  # no more than this part of a window is left to rounding


class SequencePairSampler(Sampler):
    """Draws pairs of rows of one sequence, in which the second row is later than the first by at most a window.

    For each pair, independently: the first row is uniform over the rows with a later row within the window; the offset
    is uniform over the offsets that are present, that is, the distinct times of the sequence in (t, t + window]; the
    second row is uniform over the rows at that time.

    Parameters
    ----------
    sequence : str or list of str
        Factors whose combinations are the sequences.
    time : str
        Numeric factor that contains the time of each row; it may be continuous, but not cyclic.
    window : float
        Maximum time by which the second row is later than the first, in the unit of `time`; for numbered frames, ``1``
        is the next frame. Rounding of continuous times to float32 is allowed for, up to a sixteenth of the window.
    pairs : int
        Pairs per step.
    weights : str or (rows,) float, optional
        Relative probability of each row, or the factor that has it: the first row is drawn by weight among the rows
        with a later one, the second by weight among the rows at its time. Rows of weight 0 are never drawn.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Raises
    ------
    SamplerError, FactorError
        If the arguments contradict the table, or no row has a later one within the window.

    Examples
    --------
    >>> import setsup
    >>> table = setsup.FactorTable.from_values({"video": ["a"] * 5 + ["b"] * 3, "frame": [0, 1, 2, 5, 6, 0, 1, 2]})
    >>> pairs = setsup.SequencePairSampler(table, "video", "frame", window=2, pairs=64)
    >>> frames = table.values("frame", pairs[0].indices)
    >>> sorted({(int(first), int(second)) for first, second in frames})
    [(0, 1), (0, 2), (1, 2), (5, 6)]

    """

    def __init__(
        self,
        table: FactorTable,
        sequence: str | Sequence[str],
        time: str,
        window: float = 1,
        pairs: int = 32,
        *,
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "SequencePairSampler",
    ) -> None:
        rows, row_weight = self._read(locals())
        self.pairs = check_sets(pairs, "pairs")
        check_draw_memory(2 * self.pairs, "a draw", "pairs")
        names = check_names(sequence, "sequence")
        self._window = check_number(window, "window", SamplerError, 0)
        if self._window == 0:
            raise SamplerError(
                f"{spell_name('window')} must be above 0, not 0, because the second row of a pair is later than the "
                "first"
            )
        times = _times(table, check_string(time, "time", SamplerError))
        known = ~np.isnan(times)
        self._groups = group_by(table, names, both(rows, known))
        timeless = int((~known if rows is None else rows & ~known).sum())
        self._unknown, self._excluded = self._groups.unknown + timeless, self._groups.excluded - timeless
        self._index(times, table[time].continuous, window)
        self._weigh(row_weight)
        self._time = time
        self._spread = spread_words(self.pairs, 3)

    def _index(self, times: Reals, continuous: bool, window: float) -> None:
        """Sort the rows by sequence and time; a cell is the rows of a sequence at one time."""
        of_rows = self._groups.of_rows()
        order = np.lexsort((times, of_rows))
        self._order = order[len(order) - self._groups.rows :]  # rows in no sequence come first, as -1
        sequence, time = of_rows[self._order], times[self._order]
        fresh = np.ones(len(time), dtype=bool)
        fresh[1:] = (sequence[1:] != sequence[:-1]) | (time[1:] != time[:-1])
        self._cell, self._start = np.cumsum(fresh) - 1, np.flatnonzero(fresh)
        self._sizes = np.diff(np.append(self._start, len(time)))
        sequence, time = sequence[self._start], time[self._start]
        until = time + self._window
        if continuous:
            lost = np.spacing(np.abs(until).astype(np.float32)).astype(np.float64)
            until += np.minimum(lost, self._window / _RESOLVED)
        # one line for all sequences: ranks of times, shifted by that of the sequence
        ranks = np.unique(time)
        line = sequence * len(ranks) + np.searchsorted(ranks, time)
        last = np.searchsorted(line, sequence * len(ranks) + np.searchsorted(ranks, until, side="right")) - 1
        self._later = last - np.arange(len(time))  # cells of the sequence that are within the window
        self._sequence = sequence
        self._anchors = np.flatnonzero(self._later[self._cell] > 0)
        if not len(self._anchors):
            gaps = np.diff(time)[np.diff(sequence) == 0]
            reason = f"the smallest gap is {gaps.min():g}" if len(gaps) else "no sequence has rows at two times"
            raise SamplerError(
                f"no row has a later row in its sequence of {', '.join(self._groups.names)} within "
                f"{spell(window=window)}: {reason}; widen {spell_name('window')}, or choose another factor"
            )

    def _weigh(self, weight: Reals | None) -> None:
        """Sums of weights over the anchors, and over the rows of each cell; each row's share of its cell."""
        self._anchor_ends = self._ends = None
        row_weights = np.ones(len(self._order)) if weight is None else weight[self._order]
        self._totals = np.add.reduceat(row_weights, self._start)
        self._shares = row_weights / self._totals[self._cell]
        if weight is not None:
            # those of a cell add up to 1, so that heavy cells cost light ones no digits
            self._ends = np.cumsum(self._shares)
            self._anchor_ends = np.cumsum(row_weights[self._anchors])

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block; indices (steps, pairs, 2)."""
        bits = mix(fold(self._key, steps)[:, None, None], self._spread)
        first, many = np.zeros(bits.shape[:2], dtype=np.int64), np.full(bits.shape[:2], len(self._anchors))
        anchor = self._anchors[_pick(bits[..., 0], self._anchor_ends, first, many)]
        cell = self._cell[anchor]
        other = cell + 1 + randint_below(bits[..., 1], self._later[cell])
        second = self._start[other] + _pick(bits[..., 2], self._ends, self._start[other], self._sizes[other])
        codes = by_factor(self._groups.names, self._groups.keys(self._sequence[cell]))
        return Draw(self._order[np.stack([anchor, second], axis=-1)], codes)

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        check_step(self, step)
        cells, later = len(self._later), self._later
        anchor = np.where(later > 0, self._totals, 0.0)  # of the rows of a cell together
        anchor /= anchor.sum()
        passed = anchor / np.maximum(later, 1)  # to each of the cells within the window
        edges, reached = np.zeros(cells + 1), np.zeros(cells + 1, dtype=np.int64)
        begin, end = np.arange(cells) + 1, np.minimum(np.arange(cells) + 1 + later, cells)
        for sums, values in ((edges, passed), (reached, (later > 0).astype(np.int64))):
            np.add.at(sums, begin, values)
            np.add.at(sums, end, -values)
        # differences of sums leave rounding where nothing is reached
        second = np.where(np.cumsum(reached)[:-1] > 0, np.maximum(np.cumsum(edges)[:-1], 0.0), 0.0)
        of_cells = anchor + second
        order = np.argsort(self._order)

        def of_rows(rows: Rows) -> Reals:
            position = order[np.minimum(np.searchsorted(self._order[order], rows), len(order) - 1)]
            return np.where(self._order[position] == rows, of_cells[self._cell[position]] * self._shares[position], 0.0)

        first = self._sequence
        is_drawn = np.bincount(first[of_cells > 0], minlength=len(self._groups)) > 0
        in_pair = np.bincount(first, of_cells / 2, minlength=len(self._groups))
        reason = Reason("none of its rows has a later one within the window", "widen window=")
        lost = int(self._sizes[of_cells == 0].sum()) - int(self._groups.sizes[~is_drawn].sum())
        of_groups = np.where(is_drawn, at_least_one(np.asarray(in_pair, dtype=np.float64), self.pairs), 0.0)
        groups = ReachedGroups.drawn_or_never(self._groups, of_groups, is_drawn, reason, lost)
        return self._reach(groups, SetReach(tuple(range(self.pairs)), of_rows))

    def _title(self) -> str:
        return f"SequencePairSampler: {self.pairs} pairs"

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        later, first = self._later, self._sequence
        reached = later > 0
        reached[1:] |= (later[:-1] > 0) & (first[1:] == first[:-1])  # whoever reaches anything reaches the next cell
        ends = np.concatenate([[0], np.cumsum(self._sizes)])
        within = ends[np.arange(len(later)) + 1 + later] - ends[1:]
        entry = Entry(
            ", ".join(self._groups.names),
            len(self._groups),
            len(np.unique(first[later > 0])),
            int(self._groups.sizes.min()),
            int(self._groups.sizes.max()),
            unreachable=int(self._sizes[~reached].sum()),
            unknown=self._unknown,
            excluded=self._excluded,
            log10_sets=math.log10(float(self._sizes @ within.astype(np.float64))),
        )
        unit = f" {self.table[self._time].unit}" if self.table[self._time].unit else ""
        anchors = f"{len(self._anchors):,} rows have later ones within {self._window:g}{unit} of {self._time}"
        notes = [f"{anchors}, at {span(int(later[later > 0].min()), int(later.max()))} times"]
        return self._report([entry], notes)


def _pick(bits: Words, ends: Reals | None, start: Rows, sizes: Rows) -> Rows:
    """Positions in groups of rows that begin at ``start``: by weight, given sums of weights, or uniform."""
    return randint_below(bits, sizes) if ends is None else pick_by_weight(bits, ends, start, sizes)


def _times(table: FactorTable, name: str) -> Reals:
    """Numbers of a factor in every row, (rows,) float64; NaN where unknown."""
    factor = table[name]
    if factor.kind == Kind.CYCLIC or factor.period is not None:
        raise SamplerError(f"{spell(time=name)} is cyclic, so no row is later than another; choose another factor")
    if factor.levels is None:
        return table.column(name).astype(np.float64)
    if any(isinstance(level, str) for level in factor.levels):
        raise SamplerError(
            f"{spell(time=name)} is a factor whose levels are strings, but times must be numbers; name a factor of "
            "numbers, or store the times as numbers, such as seconds, and open the data again"
        )
    return np.append(np.array(factor.levels, dtype=np.float64), np.nan)[table.codes(name)]
