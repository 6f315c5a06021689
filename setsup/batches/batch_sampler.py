"""Labels in, batches of row numbers out: the samplers behind one call, for the trainer that a user already has."""

import hashlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from setsup.arrays import Reals
from setsup.batches.factory import BatchSamplerFactory
from setsup.batches.labels import label_table, plain_weights
from setsup.batches.passes import Passes, Position, repeated, rounds, share
from setsup.batches.state import BegunPass, read_state
from setsup.batches.trainers import (
    announced_by_accelerate,
    check_rank,
    epoch_of_skipping,
    find_deal,
    refuse_cut_batches,
    warn_of_lone_ranks,
)
from setsup.batches.ways import make_sampler, read_way
from setsup.checks import check_integer, explains_foreign, is_integer, refuse_foreign
from setsup.errors import SamplerError, abbreviate
from setsup.html import counted
from setsup.samplers.report import Report
from setsup.samplers.resharding import epoch_of_lightning
from setsup.samplers.row_arguments import row_weights
from setsup.samplers.sampler import Sampler
from setsup.samplers.steps import LAST

__all__ = ["BatchSampler", "batch_sampler"]

_log = logging.getLogger("setsup")
_BLOCK = 64  # draws at a time, but no more than so many rows
_ROWS = 1 << 18

Number = int | Mapping[Any, int]


def _digest(drawn: tuple[Any, ...], weights: Reals | None) -> str:
    """Digest of all that draws depend on but the labels: weights by their values, so that 2 and 2.0 are the same."""
    found = hashlib.blake2b(repr(drawn).encode(), digest_size=8)
    if weights is not None:
        found.update(np.ascontiguousarray(weights, np.float64).tobytes())
    return found.hexdigest()


class BatchSampler:
    """Batches of row numbers from labels: the ``batch_sampler`` of torch's ``DataLoader``, or of your own loop.

    Exactly one of ``classes``, ``domains``, ``batch_size``, ``pairs``, ``triplets`` and ``episodes`` says how a batch
    is drawn. Each is one of the samplers, with the same draws as its class for the same seed:

    - ``classes=P, per_class=K``: K rows of each of P classes [1]_, :class:`setsup.DomainSampler`. Every class is drawn
      equally often, and every row of a class equally often, over passes; a single pass need not have every row.
    - ``domains=P, per_domain=K``: the same for domains.
    - ``batch_size=B``: every row once per pass, :class:`setsup.EpochSampler`; with ``drop_last``, all but the last rows
      of the pass; with ``weights``, rows by weight, some several times and some never.
    - ``pairs=N``: N pairs of two rows of one class, :class:`setsup.SetSampler` with sets of two; classes are uniform
      and may coincide. For pairs of different classes, use ``classes=N, per_class=2``.
    - ``triplets=N``: N triplets of an anchor, a positive of its class and a negative of another class,
      :class:`setsup.TripletSampler`.
    - ``episodes=(N, K, Q)``: N classes with K support and Q query rows each, class after class, support first
      [2]_, :class:`setsup.EpisodeSampler`.

    An item is a list of row numbers in the order of the draw, set after set, without padding. Rows with an unknown
    label (None, NaN or an empty string) belong to no class; the report counts them.

    **Passes.** Each ``iter`` is one pass. Pass p has the global steps p·n to (p + 1)·n − 1 of the sampler, where n is
    ``steps`` times the number of ranks if ``steps`` is given, the length of the epoch for ``batch_size``, and otherwise
    ⌊drawable rows/rows of a batch⌋, at least 1. Only ``batch_size`` without ``weights`` covers all rows in each pass.
    The next ``iter`` does not continue a pass that was left early. :meth:`set_epoch` selects a pass.

    **Ranks.** Without ``rank`` and ``world``, each ``iter`` reads them from torch's process group, if one is
    initialised; else there is one rank. Rank r takes the draws r, r + world, … of a pass, as whole draws, and all ranks
    get the same number of draws: ⌈n/world⌉. In the last round, −n mod world ranks have no draw left and repeat the last
    draw of the pass; :meth:`report` gives the number of these ranks. With accelerate's ``prepare``, Hugging Face's
    Trainer and sentence-transformers, the sampler yields the draws of all ranks, because these libraries give whole
    batches to their processes in turn; ``split_batches`` and ``dispatch_batches``, which cut batches, raise an error.
    Lightning needs ``use_distributed_sampler=False``; Ray Train's ``prepare_data_loader`` needs
    ``add_dist_sampler=False``, without which it silently drops the batch sampler.

    **Resuming.** :meth:`state_dict` contains the position as a number of draws of all ranks together, so a run resumes
    on any number of ranks. It counts requested batches, which is exact with ``num_workers=0`` and in torchdata's
    ``StatefulDataLoader``; a DataLoader with workers requests batches ahead, so pass :meth:`state_dict` the number of
    batches that arrived.

    Parameters
    ----------
    labels : (rows,) list, array, tensor or column; mapping, data frame or FactorTable of several
        One label per row: strings, numbers or booleans. Columns may be of pandas, polars, Arrow or Hugging Face. If
        there are several columns, a number is given with the name of its column: ``classes={"identity": 8}``, or
        ``{("identity", "camera"): 8}`` for combinations; other columns are not read.
    classes, domains : int or mapping, optional
        Classes, or domains, per batch.
    per_class, per_domain : int, optional
        Rows per class, or per domain.
    batch_size : int, optional
        Rows per batch.
    shuffle : bool
        For ``batch_size``: whether each pass has a different random order, or the order of the rows.
    drop_last : bool
        For ``batch_size``: leave out the last rows of a pass that do not fill a batch; otherwise its last batch is
        smaller. Other ways of drawing do not have partial batches.
    weights : (rows,) float or str, optional
        Relative probability of each row within its class, or among all rows; or the column that contains it. Rows of
        weight 0, and of unknown weight, are never drawn.
    pairs, triplets : int or mapping, optional
        Pairs, or triplets, per batch.
    episodes : (int, int, int) or mapping, optional
        Classes, support rows and query rows of an episode.
    on_small_group : str
        What to do with classes that have too few rows: ``error`` raises an error, ``drop`` leaves them out, ``short``
        takes all their rows, so that batches differ in size, ``replace`` draws with replacement. Triplets and episodes
        accept only ``error`` and ``drop``.
    epochs : int, optional
        Number of passes: iterating pass ``epochs`` ends at once, with one warning in the log. With None, passes never
        end.
    steps : int, optional
        Batches per rank in a pass.
    start : int
        First draw, counted over all ranks and passes: the pass that contains it begins there.
    rank, world : int, optional
        This rank, and the number of ranks; both or neither.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Attributes
    ----------
    sampler : Sampler
        The sampler that draws the batches; Lightning calls its ``set_epoch``, which is that of the batches.

    Raises
    ------
    SamplerError, FactorError
        If no way of drawing is given, or several; if there is not one label per row; if there are too few classes or
        rows.

    References
    ----------
    .. [1] A. Hermans, L. Beyer, B. Leibe, "In defense of the triplet loss for person re-identification", 2017
       (arXiv 1703.07737): batches of P classes with K rows each.
    .. [2] J. Snell, K. Swersky, R. Zemel, "Prototypical networks for few-shot learning", NeurIPS 2017
       (arXiv 1703.05175): episodes.

    Examples
    --------
    >>> import setsup
    >>> labels = ["cat", "dog", "cat", "owl", "dog", "owl", None]
    >>> batches = setsup.batch_sampler(labels, classes=2, per_class=2, seed=0)
    >>> len(batches), [sorted(labels[row] for row in rows) for rows in batches]
    (1, [['cat', 'cat', 'dog', 'dog']])
    >>> resumed = setsup.batch_sampler(labels, classes=2, per_class=2, seed=0)
    >>> resumed.load_state_dict(batches.state_dict())
    >>> next(iter(resumed)) == batches.rows(1)
    True

    In torch: ``DataLoader(dataset, batch_sampler=batches)``, and ``batches.set_epoch(epoch)`` or nothing in the loop
    over epochs.

    """

    @explains_foreign("pass it to the DataLoader that takes these batches as its batch_sampler")
    def __init__(
        self,
        labels: Any,
        *,
        classes: Number | None = None,
        per_class: int | None = None,
        domains: Number | None = None,
        per_domain: int | None = None,
        batch_size: int | None = None,
        shuffle: bool = True,
        drop_last: bool = True,
        weights: Any = None,
        pairs: Number | None = None,
        triplets: Number | None = None,
        episodes: Any = None,
        on_small_group: str = "error",
        epochs: int | None = None,
        steps: int | None = None,
        start: int = 0,
        rank: int | None = None,
        world: int | None = None,
        seed: int = 0,
    ) -> None:
        way = read_way(locals())
        column = weights if isinstance(weights, str) else None
        table, names = label_table(labels, way.option, way.columns, column)
        self._sampler, draws = make_sampler(
            way,
            table,
            names,
            shuffle=shuffle,
            drop_last=drop_last,
            weights=plain_weights(weights),
            on_small_group=on_small_group,
            seed=seed,
        )
        self._rank, self._world = check_rank(rank, world)
        most = (LAST - 1) // (self._world or 1)
        self._passes = Passes(draws, None if steps is None else check_integer(steps, "steps", SamplerError, 1, most))
        drawn = (way, names, bool(shuffle), bool(drop_last), str(on_small_group), int(seed), self._passes.steps)
        self._arguments = _digest(drawn, row_weights(table, plain_weights(weights)))
        self._epochs = None if epochs is None else check_integer(epochs, "epochs", SamplerError, 1)
        self._warned = False
        self._start = check_integer(start, "start", SamplerError, 0, LAST // draws * draws - 1)
        self._block = max(min(_BLOCK, _ROWS // way.rows), 1)
        self._known: Position | None = None  # a place in the stream, from which passes are counted; None: start
        self._selected: int | None = None  # the pass that comes next, unless the known place is in it
        self._live: BegunPass | None = None
        vars(self._sampler)["set_epoch"] = self.set_epoch  # Lightning calls it there, and not here

    @property
    def sampler(self) -> Sampler:
        """The sampler behind the batches."""
        refuse_cut_batches()
        return self._sampler

    @property
    def batch_size(self) -> int:
        """Not offered: trainers that look for it cut batches, or fill them with rows of others."""
        refuse_cut_batches()
        raise AttributeError("setsup's batch samplers have no batch_size, because each batch is a whole draw")

    def __iter__(self) -> Iterator[list[int]]:
        """Row numbers of this rank's batches in the next pass, which begins at the first ``next``."""
        # a DataLoader with workers makes two iterators and uses one, so an iterator alone changes nothing
        epoch = epoch_of_lightning()
        if epoch is not None and self._live is not None and self._live.epoch == epoch:  # Lightning makes two as well
            self._known, self._selected = self._live.begin, None
            announced = []
        else:
            announced = [epoch, epoch_of_skipping()]
        for number in announced:
            if number is not None:
                self._select(number)
        deal = find_deal(self._rank, self._world)
        if self._rank is None and deal.processes == 1:
            warn_of_lone_ranks()
        begin = self._next(deal.processes)
        if self._epochs is not None and begin.number >= self._epochs:
            self._warn_of_end()
            return
        live = self._live = BegunPass(begin, deal.world, deal.processes, epoch)
        self._known, self._selected = begin, begin.number + 1
        end = self._passes.end(begin, deal.processes)
        # the last round is full, also where a trainer divides it among its processes
        count = rounds(end - begin.draw, deal.processes) * deal.processes // deal.world
        for first in range(0, count, self._block):
            stop = min(first + self._block, count)
            draws = self._sampler.draws(share(begin.draw, end, deal.rank, deal.world, first, stop))
            for number in range(stop - first):
                live.requested += 1
                yield list(draws.at(number))
        live.ended = True

    def __len__(self) -> int:
        """Number of this rank's batches in a whole pass."""
        deal = find_deal(self._rank, self._world)
        return rounds(self._passes.length(deal.processes), deal.processes) * deal.processes // deal.world

    def __bool__(self) -> bool:
        """True: whether there are batches does not depend on the length."""
        return True

    def __repr__(self) -> str:
        """Show the sampler."""
        return f"BatchSampler({self._sampler!r})"

    def set_epoch(self, epoch: int) -> None:
        """Select the pass that the next ``iter`` begins, counted from 0.

        A position within that pass, from ``start`` or a loaded state, stays as it is. Twice has no further effect, so
        trainers may call it here, at ``sampler``, or both.
        """
        if self._live is not None and self._live.epoch == epoch:
            return  # Lightning announces an epoch again after worker processes requested its first batches
        if not announced_by_accelerate():  # its own count, which knows nothing of a resumed run; passes go on anyway
            self._select(epoch)

    def _select(self, epoch: Any) -> None:
        processes = find_deal(self._rank, self._world).processes
        check_integer(epoch, "the number of a pass", SamplerError, 0, self._passes.most(processes))
        begin = self._next(processes)
        if begin.number != epoch:
            if self._live is None and self._selected is None and epoch < begin.number:
                self._warn_of_position(begin, int(epoch))
            self._selected = int(epoch)
        if self._live is not None and (self._live.ended or self._live.begin.number != epoch):
            self._live = None

    def state_dict(self, delivered: int | None = None) -> dict[str, Any]:
        """Position for a checkpoint: plain integers and strings, the same on every rank.

        Parameters
        ----------
        delivered : int, optional
            Batches of the present loop that arrived at this rank, such as ``number`` in ``for number, batch in
            enumerate(loader, 1)``. None: those that were requested of the batch sampler, which a DataLoader with
            workers does ahead.

        Returns
        -------
        dict
            ``delivered``, the draws of all ranks and passes; ``pass``; ``steps``, the batches per rank in the pass;
            ``fingerprint``, a digest of the labels; ``arguments``, one of the way of drawing,
            the weights, ``steps`` and the seed.

        Raises
        ------
        SamplerError
            If more batches are said to have arrived than were requested.

        """
        live = self._live
        if live is None:
            if delivered is not None and not (is_integer(delivered) and delivered == 0):
                raise SamplerError(
                    f"delivered={abbreviate(delivered)} is impossible, because no batches were requested since this "
                    "pass was selected or loaded; count only the batches of the present loop"
                )
            place = self._next(find_deal(self._rank, self._world).processes)
        else:
            place = live.place(self._passes, delivered)
        position = {"delivered": place.draw, "pass": place.number, "steps": place.done}
        return {**position, "fingerprint": self._sampler.table.fingerprint, "arguments": self._arguments}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to the position of a checkpoint: the next ``iter`` has the rest of its pass, on any number of ranks.

        At the end of a pass, this rest is empty if the state was saved within the loop, and the next pass if it was
        saved after it. So a loop over epochs continues with the epoch in which it was saved.

        Raises
        ------
        SamplerError
            If it is not a state of a batch sampler, or was saved with other labels or arguments.

        """
        draw, number, done = read_state(state)
        if not self._sampler.table.has_fingerprint(state["fingerprint"]):
            raise SamplerError(
                f"the state was saved for labels with the fingerprint {state['fingerprint']}, but the labels of this "
                f"batch sampler have {self._sampler.table.fingerprint}; load the state into a batch sampler of the "
                "same labels, in the same order"
            )
        if state["arguments"] != self._arguments:
            raise SamplerError(
                f"the state at draw {draw:,} was saved with different arguments (way of drawing, seed, weights or "
                f"steps); create the batch sampler with those arguments, or pass start={draw} to begin there"
            )
        passes = self._passes
        if passes.steps is None and not number * passes.draws <= draw <= (number + 1) * passes.draws:
            raise SamplerError(
                f"the state is damaged: draw {draw:,} lies outside pass {number:,}, which has {passes.draws:,} draws; "
                f"load the state of another checkpoint, or pass start={draw}"
            )
        self._known, self._selected, self._live = Position(number, draw, done), None, None

    def rows(self, step: int) -> list[int]:
        """Return the row numbers of a global step: of draw ``step`` of the sampler, without padding.

        Raises
        ------
        RowError
            If the step is negative or not below 2⁶³.

        """
        return list(self._sampler[step])

    def report(self) -> Report:
        """Report what is drawn, what never is, and how passes are divided among the ranks there are now."""
        report, deal = self._sampler.report(), find_deal(self._rank, self._world)
        draws, ranks = self._passes.length(deal.processes), deal.processes
        each = f", {rounds(draws, ranks):,} for each of {ranks:,} ranks" if ranks > 1 else ""
        notes = [f"a pass has {counted(draws, 'draw')}{each}"]
        if idle := repeated(draws, ranks):
            last = "rank has" if idle == 1 else "ranks have"
            notes.append(f"{idle:,} {last} no draw left in the last round of a pass, and repeat{'s' * (idle == 1)} one")
        return replace(report, notes=[*report.notes, *notes])

    @staticmethod
    def factory(**options: Any) -> BatchSamplerFactory:
        """Return a callable that makes a batch sampler of a dataset's labels, for sentence-transformers.

        Parameters
        ----------
        **options
            Arguments of :func:`setsup.batch_sampler`, except labels. The label column is the first of those that the
            trainer knows (``label``, ``labels``, ``score``, ``scores``), unless a column is named, as in
            ``classes={"topic": 8}``. Without a ``seed``, the trainer's is used. Its batch size must be that of a
            batch.

        Raises
        ------
        SamplerError
            If no way of drawing is given, or two; in the call, if the dataset has no label column, or the trainer asks
            for batches of another size.

        Examples
        --------
        >>> import setsup
        >>> make = setsup.batch_sampler.factory(classes=8, per_class=4)

        ``SentenceTransformerTrainingArguments(…, batch_sampler=make, per_device_train_batch_size=32)`` then trains with
        eight classes of four rows per batch.

        """
        refuse_foreign(BatchSampler.__init__, options)
        for name in ("labels", "rank", "world"):
            if name in options:
                raise SamplerError(
                    f"a factory of batch samplers does not accept {name}=, because the trainer passes it; leave it out"
                )
        return BatchSamplerFactory(BatchSampler, options)

    def _next(self, processes: int) -> Position:
        """Where the next ``iter`` begins."""
        known = self._passes.at(self._start, processes) if self._known is None else self._known
        return known if self._selected is None else self._passes.start(known, self._selected, processes)

    @staticmethod
    def _warn_of_position(position: Position, epoch: int) -> None:
        _log.warning(
            "pass %d was selected, so the position in pass %d, which was loaded or given as start=, is ignored; begin "
            "the loop over epochs with epoch %d",
            epoch,
            position.number,
            position.number,
        )

    def _warn_of_end(self) -> None:
        if not self._warned:
            _log.warning(
                "all epochs=%d passes are over, so this loop has no batches; pass a larger epochs=, or None for passes "
                "without end",
                self._epochs,
            )
        self._warned = True


batch_sampler = BatchSampler
