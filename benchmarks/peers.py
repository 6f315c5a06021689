"""The peers, each imported on first use and none of them required."""

import importlib
import importlib.metadata
import importlib.util
import sys
import warnings
from functools import cache
from types import ModuleType

__all__ = ["MODULES", "missing", "peer", "report"]

MODULES = {
    "disent": "disent.dataset.util.state_space",
    "wilds": "wilds.common.data_loaders",
    "pytorch-metric-learning": "pytorch_metric_learning.samplers",
    "easyfsl": "easyfsl.samplers.task_sampler",
    "pandas": "pandas",
    "numba": "numba",
    "torch": "torch.utils.data",
    "kornia": "kornia.enhance",
    "torchvision": "torchvision.transforms.v2",
    "albumentations": "albumentations",
    "spdl-io": "spdl.io",
    "lightning": "lightning.pytorch",
    "opencv-python-headless": "cv2",
    "webdataset": "webdataset",
    "datasets": "datasets",
    "litdata": "litdata",
    "pylance": "lance",
    "mosaicml-streaming": "streaming.base",
    "s3fs": "s3fs",
    "scikit-learn": "sklearn.neighbors",
}
"""Distribution to the one module of it that is measured."""


def peer(name: str) -> ModuleType | None:
    """Import the measured module of a peer; None where it is not installed or does not import."""
    return _imported(name)[0]


def report() -> list[str]:
    """One line a peer: its version, or why its rows are left out."""
    lines = []
    for name in MODULES:
        module, why = _imported(name)
        lines.append(f"{name} {importlib.metadata.version(name)}" if module else f"{name} not installed: {why}")
    return lines


def missing() -> dict[str, str]:
    """Peers that are not installed or do not import, and why."""
    return {name: why for name in MODULES if (why := _imported(name)[1])}


@cache
def _imported(name: str) -> tuple[ModuleType | None, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name == "disent":
                _without_init("disent", "dataset")
            if name == "easyfsl":
                _without_init("easyfsl", "datasets")
                few_shot = importlib.import_module("easyfsl.datasets.few_shot_dataset")
                sys.modules["easyfsl.datasets"].__dict__["FewShotDataset"] = few_shot.FewShotDataset
            if name == "mosaicml-streaming":
                _without_init("streaming")
            return importlib.import_module(MODULES[name]), ""
    except Exception as error:  # a peer may fail in any way at import; that must not end the run
        return None, f"{type(error).__name__}: {error}"


def _without_init(package: str, below: str = "") -> None:
    """Make modules of a package, or of a sub-package, importable without running its ``__init__``.

    That of ``disent.dataset`` imports torchvision, which its state space, all that is measured, has no use for; so do
    those of ``easyfsl.datasets`` and ``streaming``.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return
    stand_in = ModuleType(f"{package}.{below}" if below else package)
    stand_in.__path__ = [f"{folder}/{below}" for folder in spec.submodule_search_locations]
    sys.modules.setdefault(stand_in.__name__, stand_in)
