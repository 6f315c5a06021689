"""What a data set has of its own: methods and attributes beside the protocol."""

from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.files import Manifest

__all__ = ["found_beside"]

_KNOWN = ("name", "factors", "modalities", "computes", "prepare")
"""What every data set has, or has a verb for."""


def found_beside(dataset: "Dataset", manifest: "Manifest | None") -> dict[str, Any]:
    """List what is open to the user of this data set and not of every one."""
    from setsup.datasets import Dataset, Selection

    whole = dataset.source if isinstance(dataset, Selection) else dataset
    names = dict.fromkeys([*vars(whole), *(name for part in type(whole).__mro__ for name in vars(part))])
    own = sorted(name for name in names if not (name.startswith("_") or name in _KNOWN or hasattr(Dataset, name)))
    adapter = manifest.adapter if manifest is not None else None
    return {"beside": [_words(whole, name) for name in own], "module": adapter or type(whole).__module__}


def _words(dataset: "Dataset", name: str) -> str:
    # of the class, so that no property is computed
    found = getattr(type(dataset), name, None)
    if not callable(found):
        return name
    needed = [given.name for given in signature(found).parameters.values() if given.default is Parameter.empty]
    return f"{name}({', '.join(needed[1:])})"
