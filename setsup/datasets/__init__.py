"""Benchmarks and a user's own data, each as a factor table plus a fetch."""

from setsup.datasets.dataset import Dataset, Modality, fetch_request, gather, of_row
from setsup.datasets.derived import Concat, Selection, concat
from setsup.datasets.huggingface import HuggingFaceDataset, from_huggingface
from setsup.datasets.huggingface_writer import to_huggingface
from setsup.datasets.registry import load, names
from setsup.datasets.table import open_table

__all__ = [
    "Concat",
    "Dataset",
    "HuggingFaceDataset",
    "Modality",
    "Selection",
    "concat",
    "fetch_request",
    "from_huggingface",
    "gather",
    "load",
    "names",
    "of_row",
    "open_table",
    "to_huggingface",
]
