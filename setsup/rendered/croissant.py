"""A folder of rendered rows in Croissant: its factor table, and the arrays that have a row for each row of it.

Croissant takes no rows from ``.npy`` files: the record set ``samples`` has the factors alone, and its property
``setsup:arrays`` says which file holds which modality. ``setsup shard`` writes files from which images are records too.
"""

from pathlib import Path
from typing import Any

from setsup.datasets.croissant.document import (
    Facts,
    add_properties,
    document,
    file_object,
    generated_by,
    rendering_text,
    synthetic,
    to_text,
)
from setsup.datasets.croissant.records import column_source, describe_modality, enumerations, factor_field
from setsup.datasets.croissant.vocabulary import FILE, NPY, PARQUET
from setsup.factors import FactorTable
from setsup.files import content_digest, written
from setsup.progress import progress
from setsup.rendered.layout import PROGRESS, TABLE, Layout

__all__ = ["describe_rendered", "write_description"]


def describe_rendered(folder: Path, layout: Layout, factors: FactorTable, more: dict[str, Any]) -> dict[str, Any]:
    """Document of a finished folder."""
    names = [TABLE, *(f"{name}.npy" for name in layout.arrays)]
    size = {name: (folder / name).stat().st_size for name in names}
    with progress(sum(size.values()), f"describing {layout.recipe}", "B") as advance:
        found = {name: content_digest(folder / name, advance=advance) for name in names}
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
        "field": [factor_field(one, "samples", column_source(TABLE, one.name)) for one in factors.factors],
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
    """Write ``croissant.json`` of a folder that is being finished; to that of a finished one, add what is `known`."""
    path = folder / FILE
    finished = not (folder / PROGRESS).exists()
    if finished and not known:
        return
    made = {
        **synthetic(rendering_text(layout.recipe, layout.renderer, seed, rows_seed)),
        **generated_by(f"setsup {layout.setsup} render"),
    }
    described = add_properties(path.read_bytes(), known) if finished and path.is_file() else None
    if described is None:
        described = describe_rendered(folder, layout, factors, {**made, **known})
    with written(path) as fresh:
        fresh.write_text(to_text(described), "utf-8")
