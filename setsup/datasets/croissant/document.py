"""A Croissant document: what is known of a dataset, its files, and its records."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from setsup.datasets.concatenation import sources
from setsup.datasets.croissant.licences import licence_nodes
from setsup.datasets.croissant.vocabulary import CONFORMS, CONTEXT
from setsup.datasets.dataset import Dataset
from setsup.files import Licence, Manifest

__all__ = [
    "LARGEST",
    "Facts",
    "add_properties",
    "content_size",
    "document",
    "facts",
    "file_object",
    "generated_by",
    "how_made",
    "rendering_text",
    "synthetic",
    "to_text",
]

LARGEST = 1 << 28
"""Bytes of a document."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a dataset as a whole.

    Parameters
    ----------
    name : str
        Its name.
    title, description : str
        From its manifest, or about its rows.
    licences : tuple of Licence
        Those of all datasets that it was made from.
    homepages : tuple of str
        Their addresses.
    citation : str
        BibTeX.
    more : mapping
        Further properties of the document, such as ``rai:dataCollection``; those that a person gave come last.

    """

    name: str
    title: str = ""
    description: str = ""
    licences: tuple[Licence, ...] = ()
    homepages: tuple[str, ...] = ()
    citation: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    def adding(self, more: Mapping[str, Any]) -> "Facts":
        """The same with further properties."""
        return replace(self, more={**self.more, **more})


def facts(name: str, rows: int | None, manifests: Sequence[Manifest | None]) -> Facts:
    """Facts from the manifests of the datasets that one was made from."""
    known = [manifest for manifest in manifests if manifest]
    published = [{"@id": one.homepage} for one in known if one.files and one.homepage]
    count = [] if rows is None else [f"{rows:,} rows of {name}."]
    return Facts(
        name=name,
        title=" + ".join(manifest.title for manifest in known),
        description="\n\n".join([*(manifest.description.strip() for manifest in known), *count]),
        licences=tuple(manifest.licence for manifest in known),
        homepages=tuple(manifest.homepage for manifest in known if manifest.homepage),
        citation="\n\n".join(manifest.citation.strip() for manifest in known if manifest.citation),
        more={**({"prov:wasDerivedFrom": published} if published else {}), **_computed(known)},
    )


def _computed(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """What is known of images that setsup computes, of which no file is published."""
    texts = [f"Synthetic images of {one.title!r}, computed by setsup." for one in manifests if _is_procedural(one)]
    return synthetic(" ".join(texts)) if texts else {}


def _is_procedural(manifest: Manifest) -> bool:
    """Whether setsup computes the images of a benchmark."""
    return manifest.name.endswith("-procedural") and not manifest.files


def how_made(dataset: Dataset) -> dict[str, Any]:
    """What is known of how the images of a dataset were made: those of a rendering are synthetic."""
    texts: dict[str, None] = {}
    for source in sources(dataset):
        renderer = getattr(source, "renderer_name", None)
        if renderer is not None:
            seed = getattr(getattr(source, "recipe", None), "seed", None)
            texts[rendering_text(source.name.removeprefix("rendered "), renderer, seed)] = None
    return synthetic(" ".join(texts)) if texts else {}


def synthetic(text: str) -> dict[str, Any]:
    """Properties of computed images; `text` says how they are computed."""
    return {"rai:dataCollection": text, "rai:dataCollectionType": "Software Collection"}


def generated_by(how: str) -> dict[str, Any]:
    """Property that says which command or function wrote the files."""
    return {"prov:wasGeneratedBy": {"@type": "prov:Activity", "prov:label": how}}


def rendering_text(recipe: str, renderer: str, seed: int | None = None, rows_seed: int | None = None) -> str:
    """Sentences on a rendering: its recipe, its renderer and its seeds."""
    seeds = [f"the recipe with seed {seed}"] if seed is not None else []
    seeds += [f"the rows with seed {rows_seed}"] if rows_seed is not None else []
    drawn = f" Drawn at random: {' and '.join(seeds)}." if seeds else ""
    return f"Synthetic images, rendered by setsup from the recipe {recipe!r} with the renderer {renderer!r}.{drawn}"


def document(
    about: Facts, distribution: Sequence[Mapping[str, Any]], record_sets: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The whole document; properties that are not known are absent."""
    known: dict[str, Any] = {
        "name": about.name,
        "alternateName": about.title if about.title != about.name else "",
        "description": about.description or about.name,
        "license": licence_nodes(about.licences),
        "url": about.homepages[0] if about.homepages else None,
        "sameAs": list(about.homepages[1:]),
        "citeAs": about.citation,
        **about.more,
        "distribution": list(distribution),
        "recordSet": list(record_sets),
    }
    head = {"@context": CONTEXT, "@type": "sc:Dataset", "conformsTo": list(CONFORMS)}
    return {**head, **{key: value for key, value in known.items() if value not in (None, "", [])}}


def file_object(
    name: str, kind: str, *, size: int | None = None, sha256: str | None = None, **more: Any
) -> dict[str, Any]:
    """A file, by default with its name as its relative address."""
    known = {"name": name, "contentUrl": name, "contentSize": content_size(size), "encodingFormat": kind}
    known |= {"sha256": sha256, **more}
    return {"@type": "cr:FileObject", "@id": name, **{key: value for key, value in known.items() if value is not None}}


def content_size(size: int | None) -> str | None:
    """Bytes as Croissant states them."""
    return None if size is None else f"{size} B"


def add_properties(content: bytes, more: Mapping[str, Any]) -> dict[str, Any] | None:
    """A document as it was written, with further properties, which replace those of the same names; None if damaged."""
    try:
        written = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(written, dict):
        return None
    last = {key: written[key] for key in ("distribution", "recordSet") if key in written}
    return {**{key: value for key, value in written.items() if key not in last}, **more, **last}


def to_text(described: Mapping[str, Any]) -> str:
    """Text of ``croissant.json``."""
    return json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
