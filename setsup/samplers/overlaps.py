"""Pairs and sets of views by their overlap: what 3D matching and multi-view pre-training draw.

Local features [1]_, [2]_ and networks that predict geometry from pairs [3]_ are trained with pairs of views that share
some of what they show, but not all of it; networks of several views, with sets of them.

References
----------
.. [1] M. Dusmanu et al., "D2-Net: a trainable CNN for joint description and detection of local features", CVPR 2019
   (arXiv 1905.03561).
.. [2] J. Sun, Z. Shen, Y. Wang, H. Bao, X. Zhou, "LoFTR: detector-free local feature matching with transformers",
   CVPR 2021 (arXiv 2104.00680).
.. [3] S. Wang, V. Leroy, Y. Cabon, B. Chidlovskii, J. Revaud, "DUSt3R: geometric 3D vision made easy", CVPR 2024
   (arXiv 2312.14132).

"""

from typing import Any, Literal, get_args

import numpy as np

from setsup.arrays import Reals, Rows, Steps, Words
from setsup.checks import check_choice, check_integer
from setsup.errors import SamplerError
from setsup.factors.grouping import group_by
from setsup.factors.table import FactorTable
from setsup.html import counted
from setsup.random import fold, fold_integers, mix, spread
from setsup.samplers.arguments import check_draw_memory, check_sets
from setsup.samplers.coverage import Reach, ReachedGroups, Reason, SetReach
from setsup.samplers.draw import Draw
from setsup.samplers.groups.reach_chances import at_least_one
from setsup.samplers.groups.within import GROUP, Keys, spread_words, word
from setsup.samplers.overlap.bands import (
    MEASURES,
    Band,
    Direction,
    check_bands,
    check_together,
    describe_bands,
)
from setsup.samplers.overlap.chances import Chances, find_chances
from setsup.samplers.overlap.first_pairs import ChoosePairs, bins_of, choose_first_pairs
from setsup.samplers.overlap.forms import Form, draw_sets
from setsup.samplers.overlap.graph import pairs_in_bands
from setsup.samplers.overlap.negatives import find_negatives
from setsup.samplers.overlap.search import pairs_with_sets
from setsup.samplers.overlap.sources import Overlaps, read_overlaps, shared_factors, without_nan
from setsup.samplers.overlap_report import OverlapEntry
from setsup.samplers.report import Report
from setsup.samplers.row_arguments import Weights, Where
from setsup.samplers.sampler import Sampler, check_step
from setsup.samplers.spelling import spell_name

__all__ = ["OverlapSampler"]

_SHOWN = 64  # rows whose chances a report lists
_ATTEMPT = 24  # bits of a position within the key word of an attempt


class OverlapSampler(Sampler):
    """Draws pairs of views, or larger sets, whose overlap lies in a band; optionally their angle and scale, too.

    A pair (a, b) is in the bands if the measured overlap of a with b is, and the angle and scale are. All views of a
    set are of one scene.

    The *first pair* of each set is chosen as ``choose`` says, among the pairs that begin a set. Then come further
    views, one after the other, each uniform over the views that may follow and are not in the set: in a *chain*, the
    partners of the view before; in a *star*, those of the first view; in a *clique*, the common partners of all. If no
    view may follow, the attempt is over, and another one begins with another first pair. Sets thus have the sequential
    distribution, given that the attempt succeeds. After 64 attempts, the set is the one that begins with the last first
    pair and that a search found; :meth:`report` gives the probability of that. Stars and pairs never need a second
    attempt.

    Whether a first pair begins a set is decided once, at construction, by a depth-first search through the views in the
    order of their rows, which adds at most 10,000 views. Pairs for which it finds no set are never first pairs, and the
    report counts them. A draw from any number of pairs takes O(rows drawn · log pairs); for cliques, and with
    `weights`, each further view takes time proportional to the number of partners.

    Parameters
    ----------
    overlaps : OverlapTable or path
        Overlaps of the views of this dataset, or the file of them. :func:`setsup.correspondence.overlap` measures them.
        Their digest is one of the key words: another table gives other draws.
    overlap : (float, float)
        Band of the overlap, from 0 to 1. Both ends belong to the band. An unknown overlap is in none.
    size : int
        Views per set, from 2.
    form : str
        Which pairs of a set must lie in the bands. ``chain``: each view and the next one; ``star``: the first view and
        each of the others; ``clique``: all pairs. A clique requires `direction` ``both`` or ``either``.
    sets : int
        Sets per step.
    angle : (float, float), optional
        Band of the angle between the two views of a pair, in degrees.
    scale : (float, float), optional
        Band of the ratio of scales of a pair, which is above 1 if the second view shows the surface more coarsely.
    direction : str
        Directions in which a pair of views must lie in the bands: ``forward``, from the first to the second view;
        ``both``, which must have been measured; or ``either``.
    choose : str
        How the first pair of a set is chosen. ``pairs``: uniformly from all pairs; ``scenes``: a scene, then one of its
        pairs, each uniformly; ``overlap`` or ``angle``: a bin of that band, then a pair in it, each uniformly. Scenes
        and bins without such a pair are ignored.
    bins : int
        Number of bins of equal width for `choose` ``overlap`` or ``angle``. A value between two bins belongs to the
        upper one. Without `angle`, bins of the angle divide 0 to 180 degrees. With ``direction="either"``, a pair has
        the larger value of the directions that lie in the bands.
    negatives : int
        Number of negatives to append to each set: views that certainly overlap none of its views, because they are of
        other scenes, or have a measured overlap of 0 or frustums that do not meet, in both directions. They are uniform
        and do not repeat; a pair that was not tried, or is unknown, is no negative. Where there are fewer, the other
        positions are masked.
    weights : str or (rows,) float, optional
        Relative probability of each row, or the factor that has it: the first pair is drawn from its scene, bin or all
        pairs by the product of its weights, further views by weight. Rows of weight 0 are never drawn. Negatives are
        uniform over the others.
    table, where, seed, stream
        As for every sampler, see :class:`Sampler`.

    Raises
    ------
    SamplerError, FactorError, DataError
        If the arguments contradict each other, the overlaps are of another dataset, or no pair lies in the bands.

    Examples
    --------
    Pairs of views of one scene, neither alike nor apart, and chains of three:

    >>> import setsup
    >>> from setsup.correspondence import overlap
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = setsup.RenderedDataset(Shapes3D(size=(32, 32)))
    >>> overlaps = overlap(shapes, rows=range(15))  # one scene, from 15 directions
    >>> pairs = setsup.OverlapSampler(shapes.factors, overlaps, overlap=(0.3, 0.8), sets=64)
    >>> first, second = pairs[0].indices.T
    >>> found = overlaps.overlap[overlaps.find(first, second)]
    >>> bool((found >= 0.3).all() and (found <= 0.8).all())
    True
    >>> setsup.OverlapSampler(shapes.factors, overlaps, overlap=(0.3, 0.8), size=3)[0].indices.shape
    (8, 3)

    """

    def __init__(
        self,
        table: FactorTable,
        overlaps: Overlaps,
        *,
        overlap: Band,
        size: int = 2,
        form: Literal["chain", "star", "clique"] = "chain",
        sets: int = 8,
        angle: Band | None = None,
        scale: Band | None = None,
        direction: Literal["forward", "both", "either"] = "forward",
        choose: Literal["pairs", "scenes", "overlap", "angle"] = "pairs",
        bins: int = 10,
        negatives: int = 0,
        weights: Weights | None = None,
        where: Where | None = None,
        seed: int = 0,
        stream: str = "OverlapSampler",
    ) -> None:
        self._drawable, row_weight = self._read({**locals(), "overlaps": None})
        check_choice(form, get_args(Form), "form", SamplerError)
        check_choice(direction, get_args(Direction), "direction", SamplerError)
        check_choice(choose, get_args(ChoosePairs), "choose", SamplerError)
        bins = check_integer(bins, "bins", SamplerError, 1, 1 << 20)
        self.sets = check_sets(sets)
        self.size = check_integer(size, "size", SamplerError, 2, (1 << _ATTEMPT) - 1)
        self.negatives = check_integer(negatives, "negatives", SamplerError, 0, (1 << _ATTEMPT) - 1)
        check_draw_memory((self.size + self.negatives) * self.sets, "a draw", "size or sets")
        check_together(form, direction)
        if choose == "angle" and angle is None:
            angle = MEASURES["angle"]
        self._bands = check_bands(overlap, angle, scale)
        measured, plain = read_overlaps(overlaps)
        self.overlaps = measured
        """The overlap table."""
        measured.check_dataset(table)
        self.arguments = {**self.arguments, "overlaps": plain}
        self._form, self._direction, self._choose = form, direction, choose
        binned = "angle" if choose == "angle" else "overlap"
        found = pairs_in_bands(measured, self._bands, direction, binned, self._drawable, row_weight)
        self._graph = found.graph
        begins = pairs_with_sets(found.graph, form, self.size)
        if not begins.any():
            raise SamplerError(
                f"none of the {len(begins):,} pairs with {describe_bands(self._bands, direction)} begins a {form} of "
                f"{self.size:,} views; lower {spell_name('size')}, or widen the bands"
            )
        numbers = bins_of(found.values, self._bands[binned], bins)
        self._first = choose_first_pairs(found.graph, begins, choose, numbers)
        self._negatives = find_negatives(measured, found.graph, self._drawable, self.negatives)
        self._counts = {
            "measured": int(measured.counts[:, 2].sum()),
            "unknown": int(np.isnan(measured.overlap).sum()),
            "pairs": len(begins),
            **{"one_way": found.one_way, "untried": found.untried},
            "without_set": len(begins) - int(begins.sum()),
        }
        self.shared = shared_factors(measured, table)
        """Factors that the views of a set share, negatives left out."""
        self._table_key = fold_integers(self._key, int(measured.digest[:16], 16))
        self._spread = spread_words(self.sets, self.size)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which :func:`from_dict` makes an equal sampler; unknown measures are None."""
        described = super().to_dict()
        arguments = described["arguments"]
        return {**described, "arguments": {**arguments, "overlaps": without_nan(arguments["overlaps"])}}

    def draws(self, steps: Steps) -> Draw:
        """Return the draws of any steps as one block; indices (steps, sets, size + negatives)."""
        keys, shape = fold(self._table_key, steps), (len(steps), self.sets)

        def words(some: Rows, attempt: int) -> Words:
            if not attempt:
                return mix(keys[:, None, None], self._spread).reshape(-1, self.size)
            slots = (attempt << _ATTEMPT) + np.arange(self.size)
            step, number = np.divmod(some, self.sets)
            return mix(keys[step, None], spread(word(number[:, None], GROUP, slots)))

        members = draw_sets(self._graph, self._first, self._form, self.size, len(steps) * self.sets, words)
        rows = self._graph.rows
        if self._negatives is None:
            indices = rows[members].reshape(*shape, self.size)
            return Draw(
                indices, {name: self.table.codes(name, indices[..., 0]).astype(np.int64) for name in self.shared}
            )
        others, there = self._negatives.draw(Keys(keys, np.arange(self.sets, dtype=np.uint64)), members)
        indices = rows[np.concatenate([members, others], axis=1)].reshape(*shape, -1)
        mask = None
        if not there.all():
            mask = np.concatenate([np.ones(members.shape, dtype=bool), there], axis=1).reshape(indices.shape)
        return Draw(indices, mask=mask)

    @property
    def words(self) -> str:
        """What is drawn, in few words."""
        bands = describe_bands(self._bands, self._direction)
        return bands if self.size == 2 else f"{self._form} of views with {bands}"

    def _chances(self) -> tuple[Chances, Reals]:
        """Chances of a set, and the chance that it has each row, (rows,) float64; NaN where it is not known."""
        found = find_chances(self._graph, self._first, self._form, self.size, self._negatives)
        of_rows = np.zeros(len(self.table))
        of_rows[self._graph.rows] = found.views
        return found, of_rows

    def reach(self, step: int = 0) -> Reach:
        """Return the groups and rows that a step can draw, with their chances, and why others are never drawn."""
        check_step(self, step)
        (found, chance), graph = self._chances(), self._graph
        groups = group_by(self.table, self.shared, self._drawable)
        of_rows = groups.of_rows()
        of_scenes = np.maximum.reduceat(of_rows[graph.rows], graph.scenes[:-1])  # those that are left out have none
        share = np.zeros(len(groups))
        np.add.at(share, of_scenes[of_scenes >= 0], found.scenes[of_scenes >= 0])
        drawn = np.bincount(of_rows[(of_rows >= 0) & (chance != 0)], minlength=len(groups)) > 0
        of_step = at_least_one(share, self.sets) if self._negatives is None else np.where(drawn, np.nan, 0.0)
        reason = Reason("none of its views is in a set", "widen overlap=, or lower size=")
        unreached = int(((of_rows >= 0) & (chance == 0) & drawn[of_rows]).sum())
        parts = ReachedGroups.drawn_or_never(groups, of_step, drawn, reason, unreached)
        sets = SetReach(tuple(range(self.sets)), lambda rows: chance[rows])
        notes = ["views that none of the sets drawn for the estimate has are left without a chance"]
        return self._reach(parts, sets, notes if np.isnan(chance).any() else [], found.estimated)

    def _title(self) -> str:
        units = (
            counted(self.sets, "pair") if self.size == 2 else f"{counted(self.sets, self._form)} of {self.size} views"
        )
        negatives = f", each with {counted(self.negatives, 'negative')}" if self.negatives else ""
        return f"OverlapSampler: {units}{negatives}"

    def report(self) -> Report:
        """Report what is drawn, and what never is, before any training."""
        found, of_set = self._chances()
        chance = at_least_one(of_set, self.sets)
        rows = np.ones(len(self.table), dtype=bool) if self._drawable is None else self._drawable
        compared = np.zeros(len(self.table), dtype=bool)
        compared[self._graph.rows] = True
        drawn = np.flatnonzero(chance > 0)
        groups = len(self._first.starts) - 1
        bins = f"{counted(groups, f'{self._choose} bin')}, then pairs"
        over = {"pairs": "pairs", "scenes": "scenes, then pairs"}.get(self._choose, bins)
        starts = np.unique(self._graph.scene_of(self._graph.views(self._first.pairs)[:, 0]))
        entry = OverlapEntry(
            bands=describe_bands(self._bands, self._direction),
            units="pairs" if self.size == 2 else f"{self._form}s of {self.size} views",
            **self._counts,
            sets=[],
            first_pairs=len(self._first.pairs),
            scenes=len(self._graph.scenes) - 1,
            drawable=len(starts),
            choose=f"uniform over {over}",
            unreachable=int((compared & rows & (chance == 0)).sum()),
            uncompared=int((rows & ~compared).sum()),
            excluded=int((~rows).sum()),
            least=float(chance[drawn].min()),
            largest=float(chance[drawn].max()),
            fallback=found.fallback,
            estimated=found.estimated,
            views={int(row): float(chance[row]) for row in drawn} if len(drawn) <= _SHOWN else {},
        )
        return self._report([entry], [f"the overlap table with the digest {self.overlaps.digest}"])
