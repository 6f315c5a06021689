"""Batches of row numbers from labels, for the trainer that a user already has.

:class:`BatchSampler`, which ``setsup.batch_sampler`` is, uses these modules: ``labels`` (any container as a factor
table) and ``columns`` (one of its columns), ``ways`` (which sampler draws), ``passes`` (arithmetic of passes and
ranks), ``trainers`` (which process this is), ``state`` (the position, and that of a checkpoint) and ``factory`` (for a
trainer that has the labels).
"""

from setsup.batches.batch_sampler import BatchSampler

__all__ = ["BatchSampler"]
