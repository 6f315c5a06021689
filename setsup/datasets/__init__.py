"""Benchmarks and a user's own data, each as a factor table plus a fetch."""

from setsup.datasets.base import BaseDataset
from setsup.datasets.concatenation import Concat, concat
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Dataset, Modality, Selection, fetch_request, of_row
from setsup.datasets.own.arrays.dataset import ArrayDataset
from setsup.datasets.own.arrays.files import open_arrays
from setsup.datasets.own.arrays.memory import from_arrays
from setsup.datasets.own.bop.dataset import BopFrames
from setsup.datasets.own.bop.models import ObjectModel
from setsup.datasets.own.bop.opening import open_bop
from setsup.datasets.own.captures.colmap import ColmapFrames
from setsup.datasets.own.captures.frames import CaptureFrames
from setsup.datasets.own.captures.opening import open_capture
from setsup.datasets.own.croissant.opening import open_croissant
from setsup.datasets.own.frame import from_pandas
from setsup.datasets.own.huggingface.dataset import HuggingFaceDataset, from_huggingface
from setsup.datasets.own.huggingface.hub import open_hub
from setsup.datasets.own.huggingface.writer import to_huggingface
from setsup.datasets.own.image_folder import open_images
from setsup.datasets.own.table import open_table
from setsup.datasets.own.torch.dataset import ItemDataset
from setsup.datasets.own.torch.wrapping import from_torch
from setsup.datasets.registry import load, names

__all__ = [
    "ArrayDataset",
    "BaseDataset",
    "BopFrames",
    "CaptureFrames",
    "ColmapFrames",
    "Concat",
    "Dataset",
    "HuggingFaceDataset",
    "ItemDataset",
    "Modality",
    "ObjectModel",
    "Selection",
    "concat",
    "fetch_request",
    "from_arrays",
    "from_huggingface",
    "from_pandas",
    "from_torch",
    "gather",
    "load",
    "names",
    "of_row",
    "open_arrays",
    "open_bop",
    "open_capture",
    "open_croissant",
    "open_hub",
    "open_images",
    "open_table",
    "to_huggingface",
]
