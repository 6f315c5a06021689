"""Convert any dataset to Hugging Face ``datasets``: images as PNG, factors as class labels and values, and a card.

Convention
----------
Each factor and each modality is a column of the same name. Images are uint8 with a color space; all other modalities
are arrays, lists or numbers. A folder has the layout of ``save_to_disk``.
"""

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.checks import check_arguments
from setsup.datasets.croissant.document import to_text
from setsup.datasets.croissant.rai import read_rai
from setsup.datasets.croissant.vocabulary import DESCRIBED, FILE
from setsup.datasets.dataset import Dataset, Modality, check_modalities
from setsup.datasets.images import parallel
from setsup.datasets.own.huggingface.card import OPENED, card, dataset_info
from setsup.datasets.own.huggingface.croissant import describe_arrow
from setsup.errors import DataError, imported
from setsup.factors.io.huggingface import columns_and_features, write_note
from setsup.files import content_digest, written_folder
from setsup.files.expand_user import expanded
from setsup.progress import progress

__all__ = ["to_huggingface"]


_BLOCK = 32 << 20  # bytes of arrays that are held at once, roughly
_RAGGED = 1 << 20  # values of an array whose shape differs between rows, roughly
_NUMBERS = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)


def to_huggingface(
    dataset: Dataset,
    folder: Path | str | None = None,
    *,
    modalities: Iterable[str] | None = None,
    rai: Path | str | None = None,
) -> Any:
    """Convert a dataset to a ``datasets.Dataset`` with one column per factor and per modality.

    :func:`setsup.from_huggingface` returns equal factors and arrays, bit for bit: string levels are class labels,
    numbers and booleans are values, and other properties are stored in the ``id`` of a feature. Images are PNG.
    ``info`` contains the licence, citation and description of a benchmark.

    Parameters
    ----------
    dataset : Dataset
        Any dataset; choose rows with ``dataset.where`` or ``dataset.select``.
    folder : Path or str, optional
        New folder to write, in the layout of ``save_to_disk`` and with a card, README.md, and a description in
        Croissant, croissant.json; only a block of rows is in memory at a time. Without it, the whole dataset is in
        memory.
    modalities : iterable of str, optional
        Names of the modalities to include; all by default.
    rai : Path or str, optional
        YAML file of what only a person knows, for ``croissant.json``: limits, biases, uses, social impact; see
        :func:`setsup.datasets.croissant.rai.read_rai`.

    Returns
    -------
    datasets.Dataset
        In memory, or mapped from the files in the folder.

    Raises
    ------
    DataError
        When the folder already exists; when a modality does not exist, does not contain numbers, or has the name of a
        factor; when ``datasets`` is not installed.

    Examples
    --------
    >>> import setsup
    >>> cubes = setsup.load("shapes3d-procedural").where("shape == 'cube'").select([0, 700])
    >>> written = to_huggingface(cubes)
    >>> written.features["shape"], written.features["image"], written[1]["scale"]
    (ClassLabel(names=['cube', 'cylinder', 'sphere', 'capsule']), Image(mode=None, decode=True), 1.1786)
    >>> written.info.license
    'Apache-2.0'

    """
    check_arguments(to_huggingface, locals(), DataError)
    datasets = imported("datasets", "hf")
    known = read_rai(rai)
    chosen = _chosen(dataset, modalities)
    columns, features = columns_and_features(dataset.factors)
    features |= {name: _feature(datasets, name, kind) for name, kind in chosen.items()}
    info = datasets.DatasetInfo(**dataset_info(dataset), features=datasets.Features(features))
    if folder is None:
        import pyarrow as pa

        stream = pa.BufferOutputStream()
        _write(dataset, chosen, columns, info.features, stream=stream)
        return datasets.Dataset.from_buffer(stream.getvalue(), info=info)
    folder = expanded(folder)
    if folder.exists():
        raise DataError(f"{folder} already exists; remove it, or choose another folder")
    with written_folder(folder) as part:
        file = part / "data-00000-of-00001.arrow"
        _write(dataset, chosen, columns, info.features, path=str(file))
        info.write_to_directory(str(part))
        (part / "state.json").write_text(json.dumps(_state(file), indent=2), encoding="utf-8")
        (part / "README.md").write_text(card(dataset, chosen, opened=f"{OPENED} {DESCRIBED}"), encoding="utf-8")
        labels = [name for name, feature in features.items() if isinstance(feature, datasets.ClassLabel)]
        described = describe_arrow(dataset, chosen, file, labels, known)
        (part / FILE).write_text(to_text(described), encoding="utf-8")
    return datasets.load_from_disk(str(folder))


def _chosen(dataset: Dataset, modalities: Iterable[str] | None) -> dict[str, Modality]:
    if not len(dataset):
        raise DataError(f"{dataset.name} has no rows; expected at least one row to write")
    names = check_modalities(dataset, modalities)
    for name in names:
        if name in dataset.factors:
            others = [other for other in names if other not in dataset.factors]
            raise DataError(
                f"{dataset.name} has a factor and a modality with the same name {name!r}, but column names must be "
                f"unique; leave out the modality with modalities={others}"
            )
    return {name: dataset.modalities[name] for name in names}


def _feature(datasets: Any, name: str, kind: Modality) -> Any:
    if kind.is_eight_bit_image:
        return datasets.Image(id=write_note({"modality": {}}) if None in kind.shape else None)
    if kind.dtype not in _NUMBERS:
        raise DataError(
            f"the modality {name!r} has the dtype {kind.dtype}; expected numbers; leave it out with modalities="
        )
    about = {key: value for key in ("unit", "color") if (value := getattr(kind, key))}
    note = write_note({"modality": about})
    if 2 <= len(kind.shape) <= 5 and None not in kind.shape[1:]:
        array = (datasets.Array2D, datasets.Array3D, datasets.Array4D, datasets.Array5D)[len(kind.shape) - 2]
        return array(kind.shape, kind.dtype, id=note)
    feature = datasets.Value(kind.dtype, id=note)  # the id of a list is not kept
    for length in reversed(kind.shape):
        feature = datasets.Sequence(feature, length=-1 if length is None else length)
    return feature


def _write(
    dataset: Dataset, chosen: dict[str, Modality], columns: dict[str, Any], features: Any, **target: Any
) -> None:
    from datasets.arrow_writer import ArrowWriter

    with ArrowWriter(features=features, **target) as writer, progress(len(dataset), "writing", "rows") as advance:
        for rows in _blocks(len(dataset), chosen):
            batch = {name: column.slice(rows[0], len(rows)) for name, column in columns.items()}
            writer.write_batch({**batch, **_cells(dataset, rows, chosen)}, writer_batch_size=len(rows))
            advance(len(rows))
        writer.finalize(close_stream="path" in target)


def _blocks(rows: int, chosen: dict[str, Modality]) -> Iterator[npt.NDArray[np.int64]]:
    bytes_ = [
        int(np.prod([64 if length is None else length for length in kind.shape])) * np.dtype(kind.dtype).itemsize
        for kind in chosen.values()
    ]
    ragged = any(None in kind.shape for kind in chosen.values())
    length = max(1, min(1024, _BLOCK // max(1, sum(bytes_), _RAGGED * ragged)))
    for first in range(0, rows, length):
        yield np.arange(first, min(first + length, rows))


def _cells(dataset: Dataset, rows: npt.NDArray[np.int64], chosen: dict[str, Modality]) -> dict[str, Any]:
    whole = [name for name, kind in chosen.items() if None not in kind.shape]
    cells: dict[str, Any] = dict(dataset.fetch(rows, whole)) if whole else {}
    if ragged := [name for name in chosen if name not in cells]:
        each = parallel(lambda row: dataset.fetch(row, ragged), rows.tolist())
        cells |= {name: [arrays[name] for arrays in each] for name in ragged}
    return {
        name: parallel(_png, list(cells[name])) if kind.is_eight_bit_image else _list(cells[name], kind)
        for name, kind in chosen.items()
    }


def _png(image: Array) -> dict[str, bytes | None]:
    from PIL import Image

    stream = io.BytesIO()
    pixels = np.ascontiguousarray(image[..., 0] if image.shape[2] == 1 else image)
    Image.fromarray(pixels).save(stream, "PNG")
    return {"bytes": stream.getvalue(), "path": None}


def _list(array: Any, kind: Modality) -> Any:
    return array.tolist() if not kind.shape else list(array)


def _state(file: Path) -> dict[str, Any]:
    """State of a dataset as ``save_to_disk`` writes it; ``datasets`` names its caches by the fingerprint."""
    return {
        "_data_files": [{"filename": file.name}],
        "_fingerprint": content_digest(file)[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
