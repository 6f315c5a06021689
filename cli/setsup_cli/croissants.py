"""Descriptions in Croissant: of a dataset, and what subcommands say of one that they wrote."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.errors import DataError, SetsupError
from setsup.files.expand_user import expanded

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.files import Manifest
    from setsup.shards.layout import Catalogue

__all__ = ["croissant_about", "croissant_words", "describe"]

_LARGEST = 1 << 30  # bytes


def describe(source: Path | str, dataset: "Dataset | None", manifest: "Manifest | None", rai: Path | None) -> str:
    """Text of the description of a dataset: that beside its files with what `rai` adds, else a new one."""
    from setsup.datasets.croissant.benchmark import describe_benchmark, known_factors
    from setsup.datasets.croissant.document import facts, to_text
    from setsup.datasets.croissant.rai import read_rai
    from setsup.datasets.own.huggingface.card import find_manifests
    from setsup.shards.croissant import catalogue_facts, describe_shards

    known = read_rai(rai)
    catalogue: Catalogue | None = getattr(dataset, "catalogue", None)
    is_place = manifest is None and ("://" in str(source) or expanded(source).is_dir())
    if is_place and (written := _written(str(source))):
        return to_text({**written, **known})
    if dataset is not None and catalogue is not None:
        about = catalogue_facts(catalogue, find_manifests(dataset))
        return to_text(describe_shards(catalogue, about.adding(known)))
    if manifest is None or manifest.name == "table":
        raise DataError(
            f"{source} cannot be described in Croissant as it is; benchmarks, shards, renderings and saved Hugging "
            "Face datasets can, and `setsup shard` writes any dataset with its croissant.json"
        )
    factors = known_factors(manifest) if dataset is None else list(dataset.factors.factors)
    about = facts(manifest.name, None if dataset is None else len(dataset), [manifest])
    return to_text(describe_benchmark(about.adding(known), manifest, factors))


def croissant_about(url: str | Path) -> dict[str, Any]:
    """Name of the description at an address, and which properties of RAI it lacks."""
    from setsup.datasets.croissant.rai import missing_facts
    from setsup.datasets.croissant.vocabulary import FILE

    return {"file": FILE, "missing": missing_facts(_written(str(url)))}


def croissant_words(about: Mapping[str, Any]) -> Iterator[str]:
    """A line on the description; it warns of what it lacks."""
    lacks = f" lacks {', '.join(about['missing'])}: add them with --rai FILE.yaml" if about["missing"] else ""
    yield f"{about['file']}{lacks or ' describes the dataset'}"


def _written(url: str) -> dict[str, Any]:
    """The description beside files, empty where there is none that can be read."""
    from setsup.datasets.croissant.vocabulary import FILE
    from setsup.shards.stores.opening import open_store

    with suppress(SetsupError, ValueError, RecursionError):
        store = open_store(url)
        described = {} if store.size(FILE) is None else json.loads(store.read(FILE, _LARGEST))
        return described if isinstance(described, dict) else {}
    return {}
