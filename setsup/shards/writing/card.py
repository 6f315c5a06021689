"""The data card of a set of shards, README.md for the Hugging Face Hub, and what their catalogue keeps of it."""

from collections.abc import Sequence
from typing import Any

from setsup.datasets.croissant.document import facts
from setsup.datasets.croissant.vocabulary import DESCRIBED
from setsup.datasets.dataset import Dataset
from setsup.datasets.own.huggingface.card import card
from setsup.factors import Factor
from setsup.files import Manifest
from setsup.shards.layout import VIEW, Member
from setsup.shards.writing.plan import ShardPlan

__all__ = ["about", "shards_card"]

_PLAIN = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
}
_OPENED = (
    "The files are tars as the webdataset library reads them: `KEY.<extension>` for each column above, and `KEY.json` "
    "for the factors. `datasets.load_dataset` opens them as well; `setsup.open_shards` draws sets of rows that share "
    "factors out of them, by the index beside them. " + DESCRIBED + " There are"
)
_VIEWS = (
    "`KEY.camera.json` has the camera of each view (`k` in pixels; x to the right, y down, z forward; `rotation` and "
    "`translation`, in metres, from the world to the camera) and what its instances are called."
)


def about(manifests: Sequence[Manifest | None], order: str, seed: int = 0) -> dict[str, str]:
    """What a catalogue says of a dataset: title, description, licence, citation, homepage, order, seed of a shuffle."""
    known = facts("", None, manifests)
    texts = {
        "title": known.title,
        "description": known.description,
        "licence": "; ".join(licence.name for licence in known.licences),
        "licence_url": " ".join(licence.url for licence in known.licences if licence.url),
        "citation": known.citation,
        "homepage": " ".join(known.homepages),
        "order": order,
        "seed": str(seed) if order == "shuffle" else "",
    }
    return {name: text for name, text in texts.items() if text}


def shards_card(dataset: Dataset, plan: ShardPlan, manifests: Sequence[Manifest | None]) -> str:
    """Text of the README.md beside shards, with which ``datasets.load_dataset`` opens their folder."""
    columns = {member.extension: member.modality for member in plan.members.values() if member != VIEW}
    metadata: dict[str, Any] = {
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "data-*.tar"}]}]
    }
    if all(feature.dtype in _PLAIN for feature in columns.values()):  # else it is left to the library to find out
        features = [*map(_feature, plan.members.values())]
        features.append({"name": "json", "struct": [_value(factor) for factor in dataset.factors.factors]})
        features += [{"name": name, "dtype": "string"} for name in ("__key__", "__url__")]
        metadata["dataset_info"] = {"features": features}
    count = f"{plan.shards:,} tar{'s' if plan.shards > 1 else ''}, in the order `{plan.order}`."
    views = f" {_VIEWS}" if len(columns) < len(plan.members) else ""
    return card(dataset, columns, opened=f"{_OPENED} {count}{views}", metadata=metadata, manifests=manifests)


def _feature(member: Member) -> dict[str, Any]:
    """Column of a modality, as the Hub's metadata describes it."""
    if member == VIEW:
        numbers: dict[str, Any] = {name: {"dtype": "int64"} for name in ("height", "width")}
        numbers |= {name: {"sequence": {"sequence": "float64"}} for name in ("k", "rotation")}
        numbers |= {"translation": {"sequence": "float64"}, "instances": {"sequence": "int64"}}
        numbers["names"] = {"sequence": "string"}
        return {"name": member.extension, "struct": [{"name": name, **kind} for name, kind in numbers.items()]}
    shape, dtype, named = member.modality.shape, member.modality.dtype, {"name": member.extension}
    if member.format != "npy":
        return {**named, "dtype": "image"}
    if 2 <= len(shape) <= 5 and None not in shape[1:]:
        return {**named, "dtype": {f"array{len(shape)}_d": {"shape": list(shape), "dtype": dtype}}}
    if not shape:
        return {**named, "dtype": dtype}
    each: Any = dtype
    for _ in shape[1:]:
        each = {"sequence": each}
    return {**named, "sequence": each}


def _value(factor: Factor) -> dict[str, str]:
    """Type of a factor's values in the JSON."""
    return {"name": factor.name, "dtype": _type(factor)}


def _type(factor: Factor) -> str:
    if factor.levels is None:
        return "float32"
    if isinstance(factor.levels[0], str):
        return "string"
    if isinstance(factor.levels[0], bool):
        return "bool"
    return "int64" if all(isinstance(level, int) for level in factor.levels) else "float64"
