"""Batch samplers for a trainer that has the labels: sentence-transformers makes them with its own dataset."""

from collections.abc import Mapping, Sequence
from typing import Any

from setsup.batches.labels import column_names
from setsup.batches.ways import Way, read_way
from setsup.checks import is_integer, refuse_foreign
from setsup.errors import SamplerError, abbreviate, listed

__all__ = ["BatchSamplerFactory"]


class BatchSamplerFactory:
    """Makes a batch sampler of a dataset's label column; made by :meth:`BatchSampler.factory`.

    `make` is the class of batch samplers, which takes labels and these `options`.
    """

    def __init__(self, make: type[Any], options: Mapping[str, Any]) -> None:
        refuse_foreign(make.__init__, options)
        for name in ("labels", "rank", "world"):
            if name in options:
                raise SamplerError(
                    f"a factory of batch samplers does not accept {name}=, because the trainer passes it; leave it out"
                )
        self._way = read_way(options)
        self._make, self._options = make, dict(options)

    def __call__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        drop_last: bool | None = None,
        valid_label_columns: Sequence[str] | None = None,
        generator: Any = None,
        seed: int = 0,
    ) -> Any:
        """Make the batch sampler of a dataset, with the arguments that sentence-transformers passes.

        ``seed`` counts where none was given to the factory, and so does ``drop_last`` with ``batch_size=``;
        ``generator`` is not needed.
        """
        if batch_size is not None and not (is_integer(batch_size) and batch_size == self._way.rows):
            made = f"{_describe(self._way)} makes batches of {self._way.rows:,}"
            raise SamplerError(
                f"the trainer requests batches of {abbreviate(batch_size)} rows, but {made}; set "
                f"per_device_train_batch_size={self._way.rows} (and "
                f"per_device_eval_batch_size={self._way.rows} if you evaluate with labels)"
            )
        options = {"seed": seed, **self._options}
        if self._way.option == "batch_size" and drop_last is not None:
            options = {"drop_last": drop_last, **options}
        labels, named = self._labels(dataset, valid_label_columns or ())
        return self._make(labels, **{**options, **named})

    def _labels(self, dataset: Any, names: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """The whole dataset where arguments name its columns, or rows need no class; else the first label column."""
        if self._way.columns is not None:
            return dataset, {}
        columns = column_names(dataset) or ()
        for name in names:
            if name in columns:
                if isinstance(self._options.get("weights"), str):  # of another column of the dataset
                    return dataset, {self._way.option: {name: self._options[self._way.option]}}
                return dataset[name], {}
        raise SamplerError(
            f"the dataset has none of the label columns {listed(names)} (its columns are "
            f"{listed(columns) or 'none'}); name the label column, as in "
            f"{self._way.option}={{'label': {_number(self._way)}}}"
        )


def _describe(way: Way) -> str:
    """What a batch of a way of drawing is."""
    if way.option in ("classes", "domains"):
        return f"a batch of {way.option}={way.numbers[0]} with {way.each} rows each"
    return f"a batch of {way.option}={_number(way)}"


def _number(way: Way) -> object:
    """What the argument of a way of drawing is, without the name of a column."""
    return way.numbers if way.option == "episodes" else way.numbers[0]
