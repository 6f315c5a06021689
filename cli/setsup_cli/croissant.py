"""Descriptions in Croissant: of a dataset, and what subcommands say of one that they wrote."""

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

__all__ = ["croissant_about", "croissant_lines", "describe"]


def describe(source: Path | str, dataset: "Dataset | None", manifest: "Manifest | None", rai: Path | None) -> str:
    """Text of the description of a dataset: that beside its files with what `rai` adds, else a new one."""
    from setsup.datasets.croissant.benchmark import describe_benchmark, known_factors
    from setsup.datasets.croissant.document import add_properties, facts, to_text
    from setsup.datasets.croissant.rai import read_rai
    from setsup.datasets.own.huggingface.card import find_manifests
    from setsup.shards.croissant import catalogue_facts, describe_shards

    known = read_rai(rai)
    catalogue: Catalogue | None = getattr(dataset, "catalogue", None)
    is_place = manifest is None and ("://" in str(source) or expanded(source).is_dir())
    written = _content(str(source)) if is_place else None
    described = None if written is None else add_properties(written, known)
    if described is not None:
        return to_text(described)
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
    """Name of the description at an address, and which properties of RAI it lacks; None where there is none."""
    from setsup.datasets.croissant.document import add_properties
    from setsup.datasets.croissant.rai import missing_properties
    from setsup.datasets.croissant.vocabulary import FILE

    content = _content(str(url))
    described = None if content is None else add_properties(content, {})
    return {"file": FILE, "missing": None if described is None else missing_properties(described)}


def croissant_lines(about: Mapping[str, Any]) -> Iterator[str]:
    """A line on the description; it warns of what it lacks."""
    if about["missing"] is None:
        yield f"no {about['file']}: write it with --rai FILE.yaml"
    elif about["missing"]:
        yield f"{about['file']} lacks {', '.join(about['missing'])}: add them with --rai FILE.yaml"
    else:
        yield f"{about['file']} describes the dataset"


def _content(url: str) -> bytes | None:
    """The description beside files, None where there is none that can be read."""
    from setsup.datasets.croissant.document import LARGEST
    from setsup.datasets.croissant.vocabulary import FILE
    from setsup.shards.stores.opening import open_store

    with suppress(SetsupError):
        store = open_store(url)
        return None if store.size(FILE) is None else store.read(FILE, LARGEST)
    return None
