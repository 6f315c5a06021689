"""A dataset as Hugging Face ``datasets`` saves it, in Croissant: columns of one Arrow file.

Class labels are stored as numbers, and refer to the order of their levels.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from setsup.datasets.croissant.document import document, facts, file_object, generated_by, how_made
from setsup.datasets.croissant.records import (
    column_source,
    describe_modality,
    enumerations,
    factor_field,
    modality_annotations,
    node_id,
    shape_text,
)
from setsup.datasets.croissant.vocabulary import ARROW
from setsup.datasets.dataset import Dataset, Modality
from setsup.datasets.own.huggingface.card import find_manifests
from setsup.files import content_digest

__all__ = ["describe_arrow"]


def describe_arrow(
    dataset: Dataset,
    modalities: Mapping[str, Modality],
    file: Path,
    labels: Sequence[str],
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Document of a dataset that was written to a file; `labels` are factors stored as class labels."""
    factors = dataset.factors.factors
    fields = [
        factor_field(one, "samples", column_source(file.name, one.name), coded=one.name in labels) for one in factors
    ]
    fields += [_content(file.name, name, kind) for name, kind in modalities.items()]
    records = {
        "@type": "cr:RecordSet",
        "@id": "samples",
        "name": "samples",
        "description": "A record for each row.",
        "field": fields,
    }
    made = generated_by(f"setsup {version('setsup')} to_huggingface")
    about = facts(dataset.name, len(dataset), find_manifests(dataset)).adding({**made, **how_made(dataset), **more})
    described = file_object(file.name, ARROW, size=file.stat().st_size, sha256=content_digest(file))
    return document(about, [described], [records, *enumerations(factors)])


def _content(file: str, name: str, kind: Modality) -> dict[str, Any]:
    image = kind.is_eight_bit_image
    source = column_source(file, name)
    if image:
        source["transform"] = {"jsonPath": "bytes"}
    place = node_id("samples", name)
    return {
        "@type": "cr:Field",
        "@id": place,
        "name": name,
        "description": describe_modality(kind),
        "dataType": "sc:ImageObject" if image else "sc:Float",
        **({} if image or not kind.shape else {"isArray": True, "arrayShape": shape_text(kind)}),
        "source": source,
        "annotation": modality_annotations(place, kind),
    }
