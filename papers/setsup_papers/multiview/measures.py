"""Which latents each block tells: R² of regressions of each factor on each block.

References
----------
.. [1] D. Yao et al., "Multi-view causal representation learning with partial observability", ICLR 2024
   (arXiv 2311.04056), section 5: R² of nonlinear and linear regressions, by block and latent.

"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_array, check_choice
from setsup.errors import DataError, SetsupError, imported
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations.rows import SMOKE_ROWS, draw_sample
from setsup.experiments.trained_run import TrainedRun
from setsup.factors import Factor, Kind

__all__ = ["BlockRegressions", "explained_variance"]

_PENALTY = 1e-3  # per row, for inputs of variance 1


def explained_variance(
    embeddings: npt.ArrayLike, targets: npt.ArrayLike, *, kernel: Literal["linear", "rbf"] = "rbf"
) -> float:
    """R² of a regression on the second half of the rows, fitted to the first half.

    R² = 1 − Σ (y − ŷ)² / Σ (y − ȳ)² over all columns of the targets, with ȳ of the rows of the fit. The regression is
    ridge regression on standardised inputs, or kernel ridge regression with exp(−‖a − b‖² / d) for d dimensions; both
    have the penalty n / 1000 for n rows.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image.
    targets : (n, t) numbers
        What is predicted.
    kernel : {"linear", "rbf"}
        See above.

    Returns
    -------
    float
        At most 1; 0 or less where nothing is told.

    Raises
    ------
    DataError
        When shapes disagree, an entry is not finite, or the targets of a half are all equal.
    LibraryError
        When scikit-learn is not installed.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> round(explained_variance(x, x @ [[2.0], [-1.0]], kernel="linear"), 3)
    1.0

    """
    check_choice(kernel, ("linear", "rbf"), "kernel", SetsupError)
    inputs, wanted = (
        np.asarray(check_array(given, name, DataError), np.float64)
        for name, given in (("embeddings", embeddings), ("targets", targets))
    )
    if inputs.ndim != 2 or wanted.ndim != 2 or len(inputs) != len(wanted) or len(inputs) < 4:
        raise DataError(
            f"embeddings and targets must have shapes (n, d) and (n, t) with 4 rows or more, not {inputs.shape} and "
            f"{wanted.shape}"
        )
    if not (np.isfinite(inputs).all() and np.isfinite(wanted).all()):
        raise DataError("embeddings and targets must be finite; leave out rows of unknown values")
    half = len(inputs) // 2
    deviation = inputs[:half].std(axis=0)
    inputs = (inputs - inputs[:half].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    middle = wanted[:half].mean(axis=0)
    spread = np.square(wanted[half:] - middle).sum()
    if not spread or not np.ptp(wanted[:half], axis=0).any():
        raise DataError("the targets of a half are all equal, so R² is undefined; pass more rows")
    model = imported("sklearn.kernel_ridge", "train").KernelRidge(
        alpha=_PENALTY * half, kernel=kernel, gamma=1 / inputs.shape[1] if kernel == "rbf" else None
    )
    found = model.fit(inputs[:half], wanted[:half] - middle).predict(inputs[half:]) + middle
    return float(1 - np.square(wanted[half:] - found).sum() / spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRegressions:
    """R² of each factor from each block of the embedding, by ridge and kernel ridge regression on held-out rows.

    The targets are the values of continuous and ordinal factors, cosine and sine of cyclic ones, and a column of 0 and
    1 for each level of nominal ones.

    Attributes
    ----------
    blocks : tuple of str
        Names of the blocks.
    factors : tuple of str
        Factors to predict.
    samples : int
        Number of rows to embed; the regressions are fitted to half of them.

    """

    version: ClassVar[int] = 1

    blocks: tuple[str, ...]
    factors: tuple[str, ...]
    samples: int = 3_000

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of its regressions."""
        return ("sklearn",)

    def shrunk(self) -> "BlockRegressions":
        """Return the evaluation shrunk to few rows."""
        return replace(self, samples=SMOKE_ROWS)

    def measure(self, trained: TrainedRun) -> Measured:
        """``block: factor`` by kernel ridge regression, and ``block: factor, linear`` by ridge regression."""
        values: dict[str, float] = {}
        for block in self.blocks:
            sample = draw_sample(trained, self.factors, self.samples, embedding=block)

            def compute(some: Any, sample: Any = sample) -> dict[str, Any]:
                found = {}
                for name in some:
                    factor, column = sample.dataset.factors[name], sample.columns[name]
                    targets = regression_targets(factor, column)
                    known = np.isfinite(targets).all(axis=1)
                    inputs = sample.embedded[known]
                    found[name] = {
                        kernel: explained_variance(inputs, targets[known], kernel=kernel)
                        for kernel in ("rbf", "linear")
                    }
                return found

            results = sample.parts("R²", {}, self.factors, compute)
            for name in self.factors:
                values[f"{block}: {name}"] = results[name]["rbf"]
                values[f"{block}: {name}, linear"] = results[name]["linear"]
        return Measured(values=values)


def regression_targets(factor: Factor, codes: npt.NDArray[Any]) -> Reals:
    """What a regression predicts of a factor, (n, t) float64, NaN where unknown.

    `codes` (n,): codes of levels, -1 where unknown, or values of a continuous factor.
    """
    if factor.kind is Kind.NOMINAL:
        known = np.where(codes < 0, np.nan, 0.0)[:, None]
        return np.asarray(known + (codes[:, None] == np.arange(len(factor.levels or ()))))
    values = codes.astype(np.float64)
    if factor.levels is not None:
        values = np.where(codes < 0, np.nan, np.array(factor.levels, np.float64)[codes])
    if factor.period is None:
        return values[:, None]
    turn = 2 * np.pi * values / factor.period
    return np.stack([np.cos(turn), np.sin(turn)], axis=1)
