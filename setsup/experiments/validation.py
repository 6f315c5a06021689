"""Settings of the validation during training: what is measured, how often, and on which rows."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from setsup.errors import SetsupError

if TYPE_CHECKING:
    from setsup.experiments.data import Data

__all__ = ["Validation"]

_SMOKE = {"every": 2, "draws": 2, "rows": 256}


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Loss and evaluations at regular steps during training, on the data that `split`, `where` and `dataset` select.

    Validation does not change the weights: it has random numbers of its own, and afterwards torch's random state, the
    modes of the method's modules and its buffers are as before. So it is not part of what identifies a run, and may
    differ when the run resumes.

    Results are metrics of their step, ``validation/loss``, ``validation/knn/FACTOR`` and ``validation/probe/FACTOR``,
    and ``validation/NAME`` for all that the method logs in ``loss(batch)``. Draws, augmentation and noise of the loss
    are the same at each validation, for all seeds.

    Attributes
    ----------
    every : int
        Number of steps between validations; 0 for no validation.
    split : str, optional
        Split of the preset's data to evaluate on; by default the split that is used for training. Without `split`,
        `where` and `dataset`, the loss is measured on training rows. Neighbours and probes never fit the rows that they
        predict.
    where : str, optional
        Expression over the factors, which replaces ``data.where``.
    dataset : str, optional
        One of the preset's ``datasets`` to evaluate on, instead of the training data.
    draws : int
        Number of draws, with the preset's sampler and augmentation, over which ``loss(batch)`` is averaged; 0 for none.
    knn : tuple of str
        Discrete factors to predict by a vote of the nearest neighbours among training rows.
    probe : tuple of str
        Discrete factors to predict by a linear classifier fitted to training rows.
    embedding : str, optional
        Name of the embedding for neighbours and probes, if the method returns several; by default the one named
        ``all``, if it exists.
    rows : int
        Maximum number of training rows for neighbours and probes, and maximum number of test rows.
    k : int
        Number of neighbours that vote.
    metric : {"l2sq", "cosine"}
        Distance between embeddings, as in :func:`setsup.evaluation.nearest`.

    Examples
    --------
    >>> Validation(every=100, split="test", probe=("shape",)).draws
    8

    """

    every: int = 0
    split: str | None = None
    where: str | None = None
    dataset: str | None = None
    draws: int = 8
    knn: tuple[str, ...] = ()
    probe: tuple[str, ...] = ()
    embedding: str | None = None
    rows: int = 2_000
    k: int = 10
    metric: Literal["l2sq", "cosine"] = "l2sq"

    def __post_init__(self) -> None:
        """Check that there is something to measure."""
        if min(self.every, self.draws) < 0 or min(self.rows, self.k) < 1:
            raise SetsupError(
                f"validation requires every >= 0, draws >= 0, rows >= 1 and k >= 1, not every={self.every}, "
                f"draws={self.draws}, rows={self.rows} and k={self.k}"
            )
        if self.every and not (self.draws or self.knn or self.probe):
            raise SetsupError(
                "validation has nothing to compute; set draws= (for the loss), factors= (for knn or probe) or every=0"
            )

    def shrunk(self) -> "Validation":
        """Return the validation shrunk to few draws and rows."""
        fewer: dict[str, Any] = {name: min(getattr(self, name), most) for name, most in _SMOKE.items()}
        return replace(self, **fewer)

    def data(self, trained: "Data") -> "Data":
        """Return the validation data, given the training data."""
        return replace(trained, split=self.split or trained.split, where=self.where or trained.where)
