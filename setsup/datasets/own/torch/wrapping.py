"""A map-style torch dataset as a dataset of setsup."""

import logging
from collections.abc import Mapping
from typing import Any

from setsup.checks import check_arguments
from setsup.datasets.dataset import Modality
from setsup.datasets.images import check_size
from setsup.datasets.own.factor_sources import Kinds
from setsup.datasets.own.torch.dataset import ItemDataset, find_modalities, sample_items
from setsup.datasets.own.torch.fields import CHANNELS, field_keys
from setsup.datasets.own.torch.targets import find_factors, innermost
from setsup.errors import DataError

__all__ = ["from_torch"]

_log = logging.getLogger("setsup")


def from_torch(
    dataset: Any,
    factors: Any = None,
    *,
    kinds: Kinds = None,
    size: tuple[int, int] | None = None,
    name: str | None = None,
) -> ItemDataset:
    """Wrap a map-style torch dataset, or any other object with ``__getitem__`` and ``__len__``.

    Items are an image, a tuple that begins with one, or a mapping. Images are Pillow images, numpy arrays of uint8
    (height, width) or (height, width, channels), or tensors of uint8 (height, width) or (channels, height, width);
    other arrays of numbers are modalities that are not images. The fields of a tuple are called ``image`` and
    ``target``, or ``image``, ``item1``, ``item2`` … where there are more than two.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Such as the datasets of torchvision, or torch's ``Subset``, ``ConcatDataset`` and ``TensorDataset``.
    factors : FactorTable, mapping, pandas.DataFrame, str, int, or list of str or int, optional
        Values by name, one per item; or the fields of items that are factors: their names or positions, or a mapping
        of the names of factors to these. By default the factor ``target`` of the attribute ``targets`` (or
        ``labels``), whose levels are ``classes`` where it has them, as in torchvision; of a ``TensorDataset`` its
        further tensors of one axis; else all single values of the items, which takes one pass over all of them.
    kinds : mapping of str to Kind, optional
        Kinds of factors, in place of those inferred from the values.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre.
    name : str, optional
        Name in messages and reports; by default the name of the dataset's class.

    Returns
    -------
    ItemDataset

    Raises
    ------
    DataError
        When the object is not a map-style dataset or is empty; when its items contain no images or other arrays, or
        floating-point images as ``ToTensor`` makes them; when an item raises an error.
    FactorError
        When no field could be a factor, or the values mix types.

    Notes
    -----
    Transforms of the dataset itself apply to fetched images. A random transform therefore makes batches that are not
    reproducible, and images that differ between two fetches: use the transforms of :mod:`setsup.loading` instead. A
    ``target_transform`` does not apply to ``targets``. Shapes are inferred from at most 8 items.

    Each process reads items in one thread; a loader uses worker processes, which receive the dataset by pickling.

    Examples
    --------
    >>> import numpy as np
    >>> digits = [(np.full((8, 8), 9 * k, np.uint8), k % 2) for k in range(6)]
    >>> wrapped = from_torch(digits)
    >>> wrapped.factors, wrapped.fetch([5, 0])["image"][:, 0, 0, 0].tolist()
    (FactorTable(6 rows: target 2), [45, 0])

    """
    check_arguments(from_torch, locals(), DataError)
    _check(dataset)
    size = check_size(size)
    label = type(innermost(dataset)).__name__ if name is None else name
    if not _count(dataset):
        raise DataError(f"{label} has no items; expected at least one")
    samples = sample_items(dataset, label)
    first = samples[0]
    table, used = find_factors(dataset, factors, label, first, kinds)
    keys = {field: key for field, key in field_keys(first).items() if field not in used}
    modalities, skipped = find_modalities(keys, samples, label, size)
    if not modalities:
        raise DataError(
            f"items of {label} contain neither images nor other arrays: {', '.join(_describe(first))}; expected "
            "Pillow images or uint8 arrays"
        )
    _refuse_floats(modalities, label)
    if skipped:
        _log.warning("%s is opened without %s", label, ", ".join(f"{key} ({what})" for key, what in skipped.items()))
    return ItemDataset(label, dataset, table, keys, modalities, size, skipped)


def _check(dataset: Any) -> None:
    """Refuse objects that are not map-style datasets, and name the function that opens them."""
    kind = type(dataset)
    where = f"{kind.__module__}.{kind.__name__}"
    openers = {"datasets.": "from_huggingface", "pandas.": "from_pandas", "numpy.": "from_arrays"}
    for module, opener in openers.items():
        if where.startswith(module):
            raise DataError(f"from_torch expects a map-style torch dataset, not {where}; use setsup.{opener}")
    if hasattr(dataset, "detach"):
        raise DataError("from_torch expects a map-style torch dataset, not a tensor; use setsup.from_arrays")
    if isinstance(dataset, str | bytes | Mapping) or not (hasattr(kind, "__getitem__") and hasattr(kind, "__len__")):
        raise DataError(
            f"from_torch expects a map-style torch dataset, with __getitem__ and __len__, not {kind.__name__}; "
            "collect the items of an iterable-style dataset in a list first"
        )


def _count(dataset: Any) -> int:
    try:
        return len(dataset)
    except Exception as error:  # such as a TypeError of torch's own classes without a length
        raise DataError(
            f"the length of {type(dataset).__name__} cannot be determined: {error}; from_torch expects a map-style "
            "dataset with __len__"
        ) from error


def _describe(item: Any) -> list[str]:
    return [f"{field} ({type(item if key is None else item[key]).__name__})" for field, key in field_keys(item).items()]


def _refuse_floats(modalities: Mapping[str, Modality], name: str) -> None:
    """Refuse items whose only images are floats of ``ToTensor``, since sheets and augmentations need uint8."""
    if any(modality.color for modality in modalities.values()):
        return
    for label, modality in modalities.items():
        shape = modality.shape
        if modality.dtype.startswith("float") and len(shape) == 3 and {shape[0], shape[-1]} & set(CHANNELS):
            raise DataError(
                f"{label} of {name} has dtype {modality.dtype} and shape {shape}; expected uint8 images; remove "
                "ToTensor(), ToDtype() and Normalize() from the dataset's transform, and apply them to batches"
            )
