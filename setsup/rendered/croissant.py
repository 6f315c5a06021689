"""A folder of rendered rows in Croissant: its factor table, and the arrays that have a row for each row of it.

Croissant takes no rows from ``.npy`` files: the record set ``samples`` has the factors alone, and its property
``setsup:arrays`` says which file holds which modality. ``setsup shard`` writes files from which images are records too.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from setsup.datasets.croissant.document import Facts, document, file_object, rendering_text, to_text
from setsup.datasets.croissant.records import describe_modality, enumerations, factor_field, reference
from setsup.datasets.croissant.vocabulary import FILE, NPY, PARQUET
from setsup.factors import FactorTable
from setsup.files import content_digest, written
from setsup.progress import progress
from setsup.rendered.layout import PROGRESS, TABLE, Layout

__all__ = ["describe_rendered", "write_description"]


def describe_rendered(
    folder: Path, layout: Layout, factors: FactorTable, more: dict[str, Any], texts: dict[str, str] | None = None
) -> dict[str, Any]:
    """Document of a finished folder; `texts` are SHA-256 of its files that are known."""
    digests = {} if texts is None else texts
    names = [TABLE, *(f"{name}.npy" for name in layout.arrays)]
    size = {name: (folder / name).stat().st_size for name in names}
    with progress(sum(size.values()), f"describing {layout.recipe}", "B") as advance:
        found = {name: digests.get(name) or content_digest(folder / name, advance=advance) for name in names}
    described = {
        f"{name}.npy": f"Row i is the {name} of record i: {describe_modality(modality)}"
        for name, modality in layout.modalities.items()
    }
    files = [file_object(TABLE, PARQUET, size=size[TABLE], sha256=found[TABLE], description="Factors of all rows.")]
    files += [
        file_object(name, NPY, size=size[name], sha256=found[name], description=described.get(name))
        for name in names[1:]
    ]
    records = {
        "@type": "cr:RecordSet",
        "@id": "samples",
        "name": "samples",
        "description": "The factors of each row; row i of each array belongs to record i.",
        "field": [
            factor_field(one, "samples", {**reference("fileObject", TABLE), "extract": {"column": one.name}})
            for one in factors.factors
        ],
        "setsup:arrays": [
            {"name": name, "file": f"{name}.npy", **modality.to_dict()} for name, modality in layout.modalities.items()
        ],
    }
    height, width = layout.size
    about = Facts(
        name=f"rendered {layout.recipe}",
        description=f"{layout.rows:,} views of {height} × {width} pixels, rendered from the recipe {layout.recipe!r}.",
        more=more,
    )
    return document(about, files, [records, *enumerations(factors.factors)])


def write_description(
    folder: Path, layout: Layout, factors: FactorTable, known: dict[str, Any], seed: int | None, rows_seed: int | None
) -> None:
    """Write ``croissant.json`` of a folder that is being finished, or of a finished one to which a person adds more."""
    path = folder / FILE
    if not known and not (folder / PROGRESS).exists():
        return
    made = {
        "rai:dataCollection": rendering_text(layout.recipe, layout.renderer, seed, rows_seed),
        "rai:dataCollectionType": "Software Collection",
        "prov:wasGeneratedBy": {"@type": "prov:Activity", "prov:label": f"setsup {layout.setsup} render"},
    }
    described = describe_rendered(folder, layout, factors, {**made, **known}, _digests(path))
    with written(path) as fresh:
        fresh.write_text(to_text(described), "utf-8")


def _digests(path: Path) -> dict[str, str]:
    """SHA-256 of files in an earlier description that have kept their size."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        files = json.loads(path.read_bytes())["distribution"]
        return {
            one["@id"]: one["sha256"]
            for one in files
            if one["contentSize"] == f"{(path.parent / one['contentUrl']).stat().st_size} B"
        }
    return {}
