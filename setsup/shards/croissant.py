"""A set of shards in Croissant: its tars, the members in them, and the factors in its index.

Convention
----------
Each modality is a file set of members of all tars; a further one of the same tars under other identifiers, since
``mlcroissant`` 1.1 reads one file set of a file. The record set ``samples`` has the key of each sample, its factors,
and the first modality; each further modality is a record set of its own. Keys join members with the rows of
``index.parquet``, of which no other column is described.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from setsup.datasets.croissant.document import Facts, content_size, document, facts, file_object, generated_by, to_text
from setsup.datasets.croissant.records import (
    column_source,
    describe_modality,
    enumerations,
    factor_field,
    modality_annotations,
    node_id,
    reference,
)
from setsup.datasets.croissant.vocabulary import BYTES, FORMATS, PARQUET, TAR
from setsup.errors import DataError
from setsup.files import Licence, Manifest
from setsup.shards.index import KEY
from setsup.shards.layout import CRC32C, VIEW, Catalogue, Member, Shard, key_digits

__all__ = ["catalogue_facts", "describe_shards", "with_index"]


def describe_shards(catalogue: Catalogue, about: Facts) -> dict[str, Any]:
    """Document of a set of shards that setsup wrote; all files have their names as relative addresses."""
    if catalogue.check != CRC32C:
        raise DataError(
            f"{catalogue.name} was written by another program, and the SHA-256 of its tars is not known; write it "
            "again with `setsup shard` to describe it in Croissant"
        )
    main, *further = catalogue.arrays
    tars = [file_object(shard.name, TAR, size=shard.size, sha256=shard.digest) for shard in catalogue.shards]
    tars += [_repeat_tar(shard, name) for name in further for shard in catalogue.shards]
    index = catalogue.index
    described = "Key and factors of each sample, and where the members of its modalities lie."
    table = file_object(index.name, PARQUET, size=index.size, sha256=index.digest, description=described)
    others = [name for name in catalogue.members if name not in catalogue.arrays]
    # the set that is read comes last of those in the same files
    sets = [_file_set(name, catalogue, again=name in further) for name in (*others, main, *further)]
    factors = catalogue.factors
    records = [*_record_sets(catalogue), *enumerations(factors)]
    return document(about.adding({**generated_by(_how(catalogue)), **about.more}), [*tars, table, *sets], records)


def with_index(content: bytes, index: Shard) -> bytes | None:
    """Text of a description with another index of the same rows; None where it does not describe one."""
    with suppress(ValueError, RecursionError, TypeError, KeyError, AttributeError):
        described = json.loads(content)
        for one in described["distribution"]:
            if one["@id"] == index.name:
                one |= {"contentSize": content_size(index.size), "sha256": index.digest}
                return to_text(described).encode()
    return None


def catalogue_facts(catalogue: Catalogue, manifests: Sequence[Manifest | None]) -> Facts:
    """What is known of a set: from manifests where there are some, else from what its catalogue says."""
    known = facts(catalogue.name, catalogue.rows, manifests)
    told = catalogue.about
    if any(manifests) or not told.get("title", told.get("description")):
        return known
    licence = Licence(told["licence"], told.get("licence_url")) if "licence" in told else None
    return Facts(
        name=catalogue.name,
        title=told.get("title", ""),
        description="\n\n".join(filter(None, [told.get("description", ""), known.description])),
        licences=() if licence is None else (licence,),
        homepages=tuple(told.get("homepage", "").split()),
        citation=told.get("citation", ""),
    )


def _how(catalogue: Catalogue) -> str:
    order = catalogue.about.get("order", "")
    seed = f" with seed {catalogue.about['seed']}" if "seed" in catalogue.about else ""
    return f"setsup {catalogue.setsup} shard" + (f": rows in the order {order!r}{seed}" if order else "")


def _includes(extension: str, rows: int) -> str:
    """Pattern of members: keys are numbers of a fixed length, and no other member has their form."""
    return "[0-9]" * key_digits(rows) + f".{extension}"


def _repeat_tar(shard: Shard, name: str) -> dict[str, Any]:
    """A tar once more, since ``mlcroissant`` 1.1 reads only the last file set of a file."""
    described = f"The file {shard.name} again, for the file set of {name!r}."
    more = {"contentUrl": shard.name, "name": shard.name, "description": described}
    return {**file_object(node_id(name, shard.name), TAR, size=shard.size, sha256=shard.digest), **more}


def _file_set(name: str, catalogue: Catalogue, again: bool) -> dict[str, Any]:
    member = catalogue.members[name]
    described = "Cameras of views, and what their instances are called." if member == VIEW else f"Members of {name!r}."
    return {
        "@type": "cr:FileSet",
        "@id": node_id("files", name),
        "name": name,
        "description": described,
        "containedIn": [{"@id": node_id(name, shard.name) if again else shard.name} for shard in catalogue.shards],
        "encodingFormat": FORMATS.get(member.format, BYTES),
        "includes": _includes(member.extension, catalogue.rows),
    }


def _record_sets(catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    names = list(catalogue.arrays)
    for at, name in enumerate(names):
        place = "samples" if at == 0 else node_id("modalities", name)
        fields = [_key_field(place, name, catalogue), _content_field(place, name, catalogue.arrays[name], catalogue)]
        if at == 0:
            fields += [
                factor_field(factor, place, column_source(catalogue.index.name, factor.name))
                for factor in catalogue.factors
            ]
        others = ", ".join(names[1:])
        more = f" The record sets of {others} have the same keys." if others and at == 0 else ""
        yield {
            "@type": "cr:RecordSet",
            "@id": place,
            "name": place,
            "description": (f"A record for each row, with its factors.{more}" if at == 0 else f"{name} of each row."),
            "key": {"@id": node_id(place, KEY)},
            "field": fields,
        }


def _key_field(place: str, modality: str, catalogue: Catalogue) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": node_id(place, KEY),
        "name": KEY,
        "description": "Key of the sample: what the names of its members begin with.",
        "dataType": "sc:Text",
        "source": {
            **reference("fileSet", node_id("files", modality)),
            "extract": {"fileProperty": "fullpath"},
            "transform": {"regex": "^([0-9]+)"},
        },
        "references": column_source(catalogue.index.name, KEY),
    }


def _content_field(place: str, name: str, member: Member, catalogue: Catalogue) -> dict[str, Any]:
    node = node_id(place, name)
    if name in {factor.name for factor in catalogue.factors}:
        node = node_id(place, f"{name} (content)")
    image = member.format != "npy"
    return {
        "@type": "cr:Field",
        "@id": node,
        "name": name,
        "description": describe_modality(member.modality),
        "dataType": "sc:ImageObject" if image else ["sc:Text", "sc:MediaObject"],
        "source": {**reference("fileSet", node_id("files", name)), "extract": {"fileProperty": "content"}},
        "annotation": modality_annotations(node, member.modality),
    }
