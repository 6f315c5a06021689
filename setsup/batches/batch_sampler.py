"""Labels in, batches of row numbers out: the samplers behind one call, for the trainer that a user already has."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from setsup.batches.columns import plain_weights
from setsup.batches.differences import describe_labels
from setsup.batches.factory import BatchSamplerFactory
from setsup.batches.labels import label_table
from setsup.batches.passes import Passes, rounds, share
from setsup.batches.report import describe_batches
from setsup.batches.state import Progress, plain_arguments, read_state
from setsup.batches.trainers import check_rank, find_ranks, warn_of_lone_ranks
from setsup.batches.ways import make_sampler, read_way
from setsup.checks import check_integer, explains_foreign
from setsup.errors import SamplerError
from setsup.samplers.callers import (
    epoch_of_lightning,
    epoch_of_skipping,
    is_announced_by_accelerate,
    is_announced_by_lightning,
    refuse_cut_batches,
    refuse_sampler_of_rows,
)
from setsup.samplers.report import Report
from setsup.samplers.row_arguments import row_weights, weight_words
from setsup.samplers.sampler import Sampler
from setsup.samplers.steps import LAST

__all__ = ["BatchSampler", "batch_sampler"]

_BLOCK = 64  # draws at a time, but no more than so many rows
_ROWS = 1 << 18

Number = int | Mapping[Any, int]


class BatchSampler:
    """Batches of row numbers from labels: the ``batch_sampler`` of torch's ``DataLoader``, or of your own loop.

    Exactly one of ``classes``, ``domains``, ``batch_size``, ``pairs``, ``triplets`` and ``episodes`` says how a batch
    is drawn. Each is one of the samplers, with the same draws as its class for the same seed:

    - ``classes=P, per_class=K``: K rows of each of P classes [1]_, :class:`setsup.DomainSampler`. Of D classes, each is
      drawn P/g times in a round of D/g batches, where g = gcd(D, P), and the rows of a class equally often over its
      draws, or by ``weights``. A single pass need not have every row.
    - ``domains=P, per_domain=K``: the same for domains.
    - ``batch_size=B``: every row once per pass, :class:`setsup.EpochSampler`; with ``drop_last``, all but the last rows
      of the pass; with ``weights``, rows by weight, some several times and some never.
    - ``pairs=N``: N pairs of two rows of one class, :class:`setsup.SetSampler` with sets of two; classes are uniform
      and may coincide. For pairs of different classes, use ``classes=N, per_class=2``.
    - ``triplets=N``: N triplets, :class:`setsup.TripletSampler`. The anchor is uniform over the rows of classes of two
      or more, the positive over the other rows of its class, the negative over the rows of all other classes, including
      classes of one row; or each by ``weights``.
    - ``episodes=(N, K, Q)``: N classes with K support and Q query rows each, class after class, support first
      [2]_, :class:`setsup.EpisodeSampler`.

    An item is a list of row numbers in the order of the draw, set after set, without padding. Rows with an unknown
    label (None, NaN, masked or an empty string) belong to no class; the report counts them.

    **Passes.** Each ``iter`` is one pass. Pass p has the global steps p·n to (p + 1)·n − 1 of the sampler, where n is
    ``steps`` times the number of ranks if ``steps`` is given, the length of the epoch for ``batch_size``, and otherwise
    ⌊drawable rows of large enough classes/rows of a batch⌋, at least 1. Only ``batch_size`` without ``weights`` covers
    all rows in each pass. The next ``iter`` does not continue a pass that was left early; a batch sampler that loads
    its state does. :meth:`set_epoch` selects a pass.

    **Ranks.** Without ``rank`` and ``world``, each ``iter`` reads them from torch's process group, if one is
    initialised; else there is one rank. Rank r takes the draws r, r + world, … of a pass, as whole draws, and all ranks
    get ⌈n/world⌉ draws: in the last round, −n mod world ranks repeat the last draw of the pass, as :meth:`report` says.
    Under accelerate, Hugging Face's Trainer and sentence-transformers, the sampler yields the draws of all ranks,
    because these give whole batches to their processes in turn; ``split_batches`` and ``dispatch_batches``, which cut
    batches, raise an error. Lightning needs ``use_distributed_sampler=False``; Ray Train's ``prepare_data_loader``
    needs ``add_dist_sampler=False``, without which it silently drops the batch sampler.

    **Resuming.** :meth:`state_dict` contains the position as a number of draws of all ranks together, so a run resumes
    on any number of ranks. It counts requested batches, which is exact with ``num_workers=0`` and in torchdata's
    ``StatefulDataLoader``; a DataLoader with workers requests batches ahead, so pass :meth:`state_dict` the number of
    batches that arrived.

    Parameters
    ----------
    labels : (rows,) list, array, tensor or column; mapping, data frame or FactorTable of several
        One label per row: strings, numbers, booleans, dates or times. Columns may be of pandas, polars, Arrow or
        Hugging Face. If there are several columns, a number is given with the name of its column:
        ``classes={"identity": 8}``, or ``{("identity", "camera"): 8}`` for combinations; other columns are not read.
        ``batch_size`` needs only their number, so anything with a length will do, such as the dataset.
    classes, domains : int or mapping, optional
        Classes, or domains, per batch.
    per_class, per_domain : int, optional
        Rows per class, or per domain.
    batch_size : int, optional
        Rows per batch.
    shuffle : bool
        For ``batch_size``: whether each pass has a different random order, or the order of the rows. Other ways of
        drawing are random, so False is an error there.
    drop_last : bool
        For ``batch_size``: leave out the last rows of a pass that do not fill a batch; otherwise its last batch is
        smaller. Other ways of drawing have no partial batches, so False is an error there.
    weights : (rows,) float or str, optional
        Relative probability of each row within its class, or among all rows; or the column that contains it, which is
        stored as 32-bit floats. Rows of weight 0, and of unknown weight, are never drawn.
    pairs, triplets : int or mapping, optional
        Pairs, or triplets, per batch.
    episodes : (int, int, int) or mapping, optional
        Classes, support rows and query rows of an episode.
    on_small_group : str
        What to do with classes that have too few rows: ``error`` raises an error, ``drop`` leaves them out, ``short``
        takes all their rows, so that batches differ in size and a pair may be a single row, ``replace`` draws with
        replacement. Triplets and episodes accept only ``error`` and ``drop``, which leaves out only anchors of
        triplets.
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

    In torch: ``DataLoader(dataset, batch_sampler=batches)``, with or without ``batches.set_epoch(epoch)`` in the loop.

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
        weights = plain_weights(weights)
        table, self._names = label_table(labels, way.option, way.columns, column)
        options = {"shuffle": shuffle, "drop_last": drop_last, "on_small_group": on_small_group, "seed": seed}
        self._sampler, draws = make_sampler(way, table, self._names, weights=weights, **options)
        self._way, self._weights = way, weight_words(weights)
        self._rank, self._world = check_rank(rank, world)
        most = (LAST - 1) // (self._world or 1)
        self._passes = Passes(draws, None if steps is None else check_integer(steps, "steps", SamplerError, 1, most))
        self._arguments = plain_arguments(way, self._names, options, self._passes.steps, row_weights(table, weights))
        self._labels: dict[str, Any] | None = None  # what a state says of them
        epochs = None if epochs is None else check_integer(epochs, "epochs", SamplerError, 1)
        start = check_integer(start, "start", SamplerError, 0, LAST // draws * draws - 1)
        self._progress = Progress(self._passes, start, epochs)
        self._block = max(min(_BLOCK, _ROWS // way.rows), 1)
        vars(self._sampler)["set_epoch"] = self.set_epoch  # Lightning calls it there, and not here

    def __copy__(self) -> "BatchSampler":
        """Copy with a position of its own; labels are shared."""
        return copy.deepcopy(self, {id(self._sampler.table): self._sampler.table})

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
        refuse_sampler_of_rows(self)
        ranks = find_ranks(self._rank, self._world)
        if self._rank is None and ranks.processes == 1:
            warn_of_lone_ranks()
        live = self._progress.begin(ranks, epoch_of_lightning(), epoch_of_skipping())
        if live is None:
            return
        begin, end = live.begin, self._passes.end(live.begin, ranks.processes)
        # the last round is full, also where a trainer divides it among its processes
        count = rounds(end - begin.draw, ranks.processes) * ranks.processes // ranks.world
        for first in range(0, count, self._block):
            stop = min(first + self._block, count)
            draws = self._sampler.draws(share(begin.draw, end, ranks.rank, ranks.world, first, stop))
            for number in range(stop - first):
                live.requested += 1
                yield list(draws.at(number))
        live.ended = True

    def __len__(self) -> int:
        """Number of this rank's batches in a whole pass, also where a position leaves only the rest of one."""
        refuse_sampler_of_rows(self)
        ranks = find_ranks(self._rank, self._world)
        return rounds(self._passes.length(ranks.processes), ranks.processes) * ranks.processes // ranks.world

    def __bool__(self) -> bool:
        """True: whether there are batches does not depend on the length."""
        return True

    def __repr__(self) -> str:
        """Show the sampler."""
        return f"BatchSampler({self._sampler!r})"

    def set_epoch(self, epoch: int) -> None:
        """Select the pass that the next ``iter`` begins, counted from 0.

        A position within that pass, from ``start`` or a loaded state, stays as it is until a pass has begun. Twice has
        no further effect, so trainers may call it here, at ``sampler``, or both.
        """
        live = self._progress.live
        if live is not None and live.epoch == epoch and is_announced_by_lightning():
            return  # again, after worker processes requested its first batches
        if not is_announced_by_accelerate():  # its own count, which knows nothing of a resumed run; passes go on anyway
            self._progress.select(epoch, find_ranks(self._rank, self._world).processes)

    def state_dict(self, delivered: int | None = None) -> dict[str, Any]:
        """Position for a checkpoint: plain integers and strings, the same on every rank.

        It stays in the pass that began last until another one is selected or begins: saved after a loop was left, it
        resumes that pass, and the next ``iter`` of this batch sampler begins another one.

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
            ``fingerprint``, a digest of the labels; ``arguments``, those that draws depend on, weights as a digest.

        Raises
        ------
        SamplerError
            If more batches are said to have arrived than were requested, or none after a pass has ended.

        """
        place = self._progress.place(delivered, find_ranks(self._rank, self._world).processes)
        position = {"delivered": place.draw, "pass": place.number, "steps": place.done}
        if self._labels is None:
            self._labels = describe_labels(self._sampler.table, self._names)
        about = {"fingerprint": self._sampler.table.fingerprint, "labels": copy.deepcopy(self._labels)}
        return {**position, **about, "arguments": dict(self._arguments)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to the position of a checkpoint: the next ``iter`` has the rest of its pass, on any number of ranks.

        At the end of a pass, this rest is empty if the state was saved within the loop, and the next pass if it was
        saved after it. So a loop over epochs continues with the epoch in which it was saved.

        Raises
        ------
        SamplerError
            If it is not a state of a batch sampler, or was saved with other labels or arguments.

        """
        self._progress.load(read_state(state, self._sampler.table, self._names, self._arguments, self._passes))

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
        processes = find_ranks(self._rank, self._world).processes
        return describe_batches(self._sampler, self._way, self._passes, processes, self._weights)

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
        return BatchSamplerFactory(BatchSampler, options)


batch_sampler = BatchSampler
