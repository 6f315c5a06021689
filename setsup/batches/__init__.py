"""Batches of row numbers from labels, for the trainer that a user already has.

:class:`BatchSampler`, which ``setsup.batch_sampler`` is, uses these modules: ``labels`` (any container as a
factor table), ``ways`` (which sampler draws), ``passes`` (arithmetic of passes and ranks), ``trainers`` (which process
this is, and who divides batches) and ``factory`` (for a trainer that has the labels).
"""

from setsup.batches.batch_sampler import BatchSampler

__all__ = ["BatchSampler"]
