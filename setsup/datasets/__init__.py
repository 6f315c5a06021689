"""Benchmarks and a user's own data, each as a factor table plus a fetch."""

from setsup.datasets.dataset import Dataset, Modality, fetch_request, gather, of_row
from setsup.datasets.own.huggingface.dataset import HuggingFaceDataset, from_huggingface
from setsup.datasets.own.huggingface.writer import to_huggingface
from setsup.datasets.own.image_folder import open_images
from setsup.datasets.own.table import open_table
from setsup.datasets.registry import load, names
from setsup.datasets.selections import Concat, Selection, concat

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
    "open_images",
    "open_table",
    "to_huggingface",
]
