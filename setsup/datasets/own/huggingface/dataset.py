"""Wrapped datasets of Hugging Face ``datasets``: class labels and values are factors, other columns are modalities.

Nothing is downloaded or converted: the factor table is read from the Arrow columns, and images are decoded from Arrow
when their rows are fetched.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setsup.checks import check_arguments, check_strings
from setsup.datasets.adapters.deep_images import Measured
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Modality, of_row
from setsup.datasets.images import check_size
from setsup.datasets.originals import Original
from setsup.datasets.own.huggingface.columns import Arrays, Column, EncodedImages, Leaf, image_column
from setsup.errors import DataError, did_you_mean, imported
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.io.huggingface import from_huggingface as read_factors
from setsup.factors.io.huggingface import is_factor, leaves, read_note
from setsup.files.expand_user import expanded

__all__ = ["HuggingFaceDataset", "from_huggingface"]

Names = str | Iterable[str] | None

_SPLIT = "split"
_COLORS = {1: "grey", 3: "srgb", 4: "srgb"}
_FILES = ("string", "large_string", "binary", "large_binary")
_log = logging.getLogger("setsup")


class HuggingFaceDataset(BaseDataset):
    """A Hugging Face dataset as factors and modalities; made by :func:`from_huggingface`.

    Attributes
    ----------
    skipped : dict of str to str
        Columns that were left out, and why.

    """

    def __init__(self, name: str, factors: FactorTable, columns: Mapping[str, Column], skipped: dict[str, str]) -> None:
        self.name = name
        self.factors = factors
        self.modalities = {label: column.modality for label, column in columns.items()}
        self.cpu_bound = any(isinstance(column, EncodedImages | Measured) for column in columns.values())
        self.skipped = skipped
        self._columns = dict(columns)

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of (n,) rows; None where a column holds arrays, or images of more than 8 bits."""
        column = self._columns[name]
        return column.originals(rows, self.name) if isinstance(column, EncodedImages) else None

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        return self._columns[name].fetch(rows, out)


def from_huggingface(
    dataset: Any,
    *,
    image: Names = None,
    factors: Sequence[Factor] = (),
    kinds: Mapping[str, Kind | str] | None = None,
    size: tuple[int, int] | None = None,
) -> HuggingFaceDataset:
    """Wrap a Hugging Face dataset.

    - ``ClassLabel``: a nominal factor with its names.
    - ``Value`` of strings, numbers, booleans or dates: a factor, inferred as in :func:`setsup.open_table`.
    - A struct: its fields, with names such as ``label.wall_hue``.
    - ``Image``, or a struct of ``bytes`` and ``path``: a modality of uint8 images, or (height, width) where an image
      has one channel of more than 8 bits.
    - ``Array2D`` to ``Array5D``, and lists of numbers of fixed length: a modality; an image where it is uint8 of
      (height, width, 1, 3 or 4).
    - Anything else is left out; ``skipped`` and a warning list these columns and the reasons.

    Datasets that :func:`to_huggingface` wrote come back with equal factors and modalities.

    Parameters
    ----------
    dataset : datasets.Dataset, datasets.DatasetDict, Path or str
        In memory or mapped, or a folder that ``save_to_disk`` wrote. The splits of a dictionary are concatenated, and
        become the levels of the factor ``split``. Load a dataset of the Hub with ``datasets.load_dataset`` first.
    image : str or list of str, optional
        Columns with images, or fields of structs as in ``views.left``; other columns with images are left out. Columns
        may be named whose feature does not declare images: strings are then paths, binary values encoded images, and
        ``Array2D`` of uint8 grayscale images.
    factors : sequence of Factor
        Factors that are known, with their levels.
    kinds : mapping of str to Kind, optional
        Kinds that are known while levels are not: ``{"age": "continuous"}``.
    size : (height, width), optional
        Resize encoded images, antialiased, until they just cover this size, and crop the centre.

    Returns
    -------
    HuggingFaceDataset

    Raises
    ------
    DataError
        When the dataset is not of these types, is a stream, is damaged, or has neither images nor arrays; when a row
        has no image or its file is missing; when ``datasets`` is not installed.
    FactorError
        When no column could be a factor, or a column mixes types.

    Examples
    --------
    >>> import datasets
    >>> from PIL import Image
    >>> features = datasets.Features(
    ...     {"image": datasets.Image(), "label": {"shape": datasets.ClassLabel(names=["cube", "ball"])}}
    ... )
    >>> rows = {"image": [Image.new("L", (4, 3), grey) for grey in (10, 200)], "label": [{"shape": 1}, {"shape": 0}]}
    >>> toys = from_huggingface(datasets.Dataset.from_dict(rows, features=features))
    >>> toys.factors.values("label.shape").tolist(), toys.fetch([1, 0])["image"].shape
    (['ball', 'cube'], (2, 3, 4, 1))

    """
    check_arguments(from_huggingface, locals(), DataError)
    size = check_size(size)
    datasets = imported("datasets", "hf")
    name = "the dataset"
    if isinstance(dataset, str | Path):
        name = str(dataset)
        dataset = _open_folder(datasets, expanded(dataset))
    whole, split = _join_splits(datasets, dataset)
    known = whole.info.dataset_name or (Path(name).name if name != "the dataset" else "huggingface")
    if not len(whole):
        raise DataError(f"{name} has no rows; expected at least one")
    features = leaves(whole.features)
    wanted = _check_wanted(image, features)
    _check(whole, name)
    columns: dict[str, Column] = {}
    skipped: dict[str, str] = {}
    for label, (path, feature) in features.items():
        column = _column(label, Leaf(whole, path, name), feature, wanted, size)
        if column is not None:
            columns[label] = column
        elif not is_factor(label, feature) and not (wanted and _may_be_images(label, feature)):
            skipped[label] = _why(label, feature)
    if not columns:
        raise DataError(
            f"{name} contains neither images nor arrays (columns: {', '.join(features)}); specify the columns of image "
            "paths with image=, or read only the factors with FactorTable.from_huggingface"
        )
    if skipped:
        _log.warning("%s is opened without %s", name, ", ".join(f"{key} ({why})" for key, why in skipped.items()))
    table = _factors(whole, features, set(columns), factors, kinds)
    return HuggingFaceDataset(known, table if split is None else _with_split(table, *split), columns, skipped)


def _open_folder(datasets: Any, path: Path) -> Any:
    if not path.is_dir():
        raise DataError(
            f"the folder {path} does not exist; to open a dataset of the Hub, pass the result of datasets.load_dataset"
        )
    try:
        return datasets.load_from_disk(str(path))
    except Exception as error:
        # its readers raise whatever they stumble over: KeyError, TypeError, ArrowInvalid, JSONDecodeError
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(
            f"{path} was not written by save_to_disk, or is damaged ({why}); open other files with "
            "datasets.load_dataset, and pass the result"
        ) from error


def _join_splits(datasets: Any, dataset: Any) -> tuple[Any, tuple[list[str], list[int]] | None]:
    """One dataset; for a dictionary, also the splits with their numbers of rows."""
    if isinstance(dataset, datasets.Dataset):
        return dataset, None
    if not isinstance(dataset, dict) or not all(isinstance(part, datasets.Dataset) for part in dataset.values()):
        raise DataError(
            "from_huggingface expects a datasets.Dataset, a DatasetDict or a folder that save_to_disk wrote, not "
            f"{type(dataset).__name__}; load it without streaming=True"
        )
    parts = {str(name): part for name, part in dataset.items()}
    if any(_SPLIT in part.column_names for part in parts.values()):
        raise DataError(
            f"the dataset has both splits and a column {_SPLIT!r}; choose one split, as in dataset['train']"
        )
    try:
        whole = datasets.concatenate_datasets(list(parts.values()))
    except ValueError as error:
        why = " ".join(str(error).split())[:200]
        raise DataError(
            f"the splits {', '.join(parts)} cannot be concatenated ({why}); choose one, as in dataset['train']"
        ) from error
    return whole, (list(parts), [len(part) for part in parts.values()])


def _check(dataset: Any, name: str) -> None:
    """Refuse the content of damaged files before it is used."""
    import pyarrow as pa

    try:
        dataset.data.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name} is damaged: {' '.join(str(error).split())[:200]}; write or load it again") from error


def _check_wanted(image: Names, features: Mapping[str, Any]) -> set[str] | None:
    if image is None:
        return None
    names = {image} if isinstance(image, str) else set(check_strings(image, "image", DataError))
    for name in names:
        if name not in features:
            raise DataError(f"the dataset has no column {name!r}{did_you_mean(name, features)}")
        if not _may_be_images(name, features[name][1]):
            raise DataError(f"the column {name!r} contains {features[name][1]}; expected images or paths of images")
    return names


def _factors(
    dataset: Any,
    features: Mapping[str, Any],
    fetched: set[str],
    factors: Sequence[Factor],
    kinds: Mapping[str, Kind | str] | None,
) -> FactorTable:
    if all(name in fetched for name, (_, feature) in features.items() if is_factor(name, feature)):
        raise DataError(
            f"the dataset has no column that can be used as a factor (columns: {', '.join(fetched)}); add a column of "
            "values"
        )
    table = read_factors(dataset, factors, kinds, quiet=True)  # what is left out is said with the other columns
    kept = [factor for factor in table.factors if factor.name not in fetched]
    return FactorTable(kept, {factor.name: table.column(factor.name) for factor in kept})


def _with_split(table: FactorTable, names: Sequence[str], rows: Sequence[int]) -> FactorTable:
    factor = Factor(_SPLIT, Kind.NOMINAL, tuple(names), role=_SPLIT)
    return table.with_factor(factor, np.repeat(np.arange(len(names)), rows))


# -- features ----------------------------------------------------------------------------------------------------------


def _column(
    label: str, leaf: Leaf, feature: Any, wanted: set[str] | None, size: tuple[int, int] | None
) -> Column | None:
    """Column that fetches a feature; None if it is not fetched."""
    modality = _modality(label, feature)
    if modality is not None:
        chosen = wanted is None or label in wanted or not modality.color
        if chosen and (None not in modality.shape or _about(label, feature) is not None):
            return Arrays(leaf, _as_image(modality) if wanted and label in wanted else modality)
        return None
    if _is_encoded(feature) if wanted is None else label in wanted:
        return image_column(leaf, getattr(feature, "mode", None), size, varied=_about(label, feature) is not None)
    return None


def _is_encoded(feature: Any) -> bool:
    """Whether a feature declares encoded images; a struct that is one feature is an encoded file."""
    return isinstance(feature, imported("datasets", "hf").Image | dict)


def _may_be_images(label: str, feature: Any) -> bool:
    modality = _modality(label, feature)
    if modality is not None:
        return bool(_as_image(modality).color)
    return _is_encoded(feature) or getattr(feature, "dtype", "") in _FILES


def _as_image(modality: Modality) -> Modality:
    """Modality of an array of uint8 without channels that the user declares to be a grayscale image."""
    if len(modality.shape) != 2 or modality.dtype != "uint8":
        return modality
    return Modality((*modality.shape, 1), "uint8", modality.unit, "grey")


def _modality(label: str, feature: Any) -> Modality | None:
    """Modality of a feature of arrays, lists of numbers, or numbers written by setsup; None for other features."""
    import pyarrow as pa

    datasets = imported("datasets", "hf")
    about = _about(label, feature)
    shape, inner = _shape_and_values(feature)
    if not isinstance(inner, datasets.Value) or (not shape and about is None):
        return None
    kind = inner.pa_type
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    dtype = np.dtype(kind.to_pandas_dtype()).name
    if about is not None:
        try:
            return Modality(shape, dtype, **about)
        except (TypeError, DataError) as error:
            raise DataError(f"the id of the feature {label!r} does not describe a modality: {error}") from None
    shown = len(shape) == 3 and dtype == "uint8" and shape[2] in _COLORS
    return Modality(shape, dtype, color=_COLORS[shape[2] or 0] if shown else "")


def _about(label: str, feature: Any) -> dict[str, Any] | None:
    """Note that setsup wrote about a modality: in the feature, or for lists in the feature of their values."""
    _, inner = _shape_and_values(feature)
    about = read_note(label, feature) or read_note(label, inner) or {}
    return about.get("modality")


def _shape_and_values(feature: Any) -> tuple[tuple[int | None, ...], Any]:
    """Shape of an array or of lists, as far as the feature declares it, and the feature of their values."""
    datasets = imported("datasets", "hf")
    if isinstance(feature, datasets.Array2D | datasets.Array3D | datasets.Array4D | datasets.Array5D):
        return tuple(feature.shape), datasets.Value(feature.dtype)
    shape: tuple[int | None, ...] = ()
    while (inner := feature[0] if isinstance(feature, list) else getattr(feature, "feature", None)) is not None:
        length = getattr(feature, "length", -1)
        shape, feature = (*shape, length if length > 0 else None), inner
    return shape, feature


def _why(label: str, feature: Any) -> str:
    modality = _modality(label, feature)
    if modality is not None:
        return f"arrays whose shape {modality.shape} differs between rows"
    if getattr(feature, "dtype", "") in _FILES:
        return "binary values; specify it with image= if they are images"
    return f"{type(feature).__name__}, neither a factor nor an array of a fixed shape"
