"""Records of a Croissant description as ``mlcroissant`` gives them, extracted in a folder of their own."""

import io
import logging
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from setsup.datasets import Dataset


def validated(path: Path) -> Any:
    """The description as mlcroissant reads it; its issues are only what nobody knows."""
    mlcroissant = pytest.importorskip("mlcroissant")
    with warnings.catch_warnings(action="ignore"):  # deprecations of rdflib and pandas in their code
        dataset = mlcroissant.Dataset(jsonld=path)
    said = [str(one) for one in dataset.metadata.ctx.issues.warnings]
    assert not dataset.metadata.ctx.issues.errors
    unknown = ("datePublished", "version", "license", "citeAs")
    assert all("is recommended" in one and any(name in one for name in unknown) for one in said), said
    return dataset


def records(path: Path, record_set: str, cache: Path) -> list[dict[str, Any]]:
    """All records of a record set; mlcroissant keeps what it extracts by address alone, so each test has a cache."""
    pytest.importorskip("mlcroissant")
    from mlcroissant._src.operation_graph.operations import download, extract

    with (
        warnings.catch_warnings(action="ignore"),
        mock.patch.object(extract, "EXTRACT_PATH", type(extract.EXTRACT_PATH)(cache / "extract")),
        mock.patch.object(download.constants, "DOWNLOAD_PATH", type(extract.EXTRACT_PATH)(cache / "download")),
    ):
        logging.getLogger("absl").setLevel(logging.ERROR)
        return list(validated(path).records(record_set))


def plain(value: Any) -> Any:
    """A value of mlcroissant's as setsup has it: text, a number, or None."""
    return value.decode() if isinstance(value, bytes) else value


def array(content: Any) -> np.ndarray:
    """Array of a member: an image, or the content of a ``.npy`` file."""
    return np.load(io.BytesIO(content)) if isinstance(content, bytes) else np.asarray(content)


def same_value(dataset: Dataset, row: int, name: str, value: Any) -> bool:
    """Whether a value is that of a factor in a row, unknown ones as None."""
    ours = dataset.factors.row(row)[name]
    if ours is None or ours != ours:
        return value is None
    return type(plain(value)) is type(ours) and plain(value) == ours
