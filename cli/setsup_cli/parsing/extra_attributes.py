"""Methods and attributes of a dataset in addition to the protocol."""

from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.files import Manifest

__all__ = ["find_extra_attributes"]

_KNOWN = ("name", "factors", "modalities", "cpu_bound", "previews", "prepare", "skipped", "manifest", "originals")
"""Attributes that every dataset has, that have a subcommand or an option of the loader, or that a warning says."""


def find_extra_attributes(dataset: "Dataset", manifest: "Manifest | None") -> dict[str, Any]:
    """List the public methods and attributes that are specific to a dataset."""
    from setsup.datasets import Dataset, Selection

    whole = dataset.source if isinstance(dataset, Selection) else dataset
    names = dict.fromkeys([*vars(whole), *(name for part in type(whole).__mro__ for name in vars(part))])
    own = sorted(name for name in names if not (name.startswith("_") or name in _KNOWN or hasattr(Dataset, name)))
    adapter = manifest.adapter if manifest is not None else None
    return {"beside": [_words(whole, name) for name in own], "module": adapter or type(whole).__module__}


def _words(dataset: "Dataset", name: str) -> str:
    # from the class: properties are not computed
    attribute = getattr(type(dataset), name, None)
    if not callable(attribute):
        return name
    needed = [given.name for given in signature(attribute).parameters.values() if given.default is Parameter.empty]
    return f"{name}({', '.join(needed[1:])})"
