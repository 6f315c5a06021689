"""TerraIncognita: photographs of animals by camera traps in four locations, as selected by DomainBed.

They come from Caltech Camera Traps, of which DomainBed uses four locations and ten categories. Its script copies the
images into ``location_38/bobcat/…``; the published files can be opened too. They require code because their annotations
are JSON files.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Places
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.described import DescribedImages, open_described
from setsup.datasets.formats.json_text import read_json
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile, DataError
from setsup.factors import FactorTable
from setsup.files import load_manifest
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.texts import content_of, find_beside, label_of

__all__ = ["open"]

_NAME = "terra-incognita"
_LOCATIONS = ("100", "38", "43", "46")
_DOMAINS = [f"location_{number}" for number in _LOCATIONS]
_ARCHIVES = ["terra_incognita", "terra_incognita.zip", "terra_incognita.tar"]
_COPIED = {
    "archives": _ARCHIVES,
    "parts": rf"(?:{'|'.join(_DOMAINS)})\.(?:zip|tar)",
    "images": rf"(?P<domain>{'|'.join(_DOMAINS)})/(?P<category>[^/]+)/[^/]+\.(?i:jpe?g|png|bmp)",
    "example": f"{_DOMAINS[0]}/<category>/*.jpg",
    "order": {"domain": _DOMAINS, "category": None},
    "others": r"(?P<domain>[^/._][^/]*)/(?P<category>[^/]+)/[^/]+\.(?i:jpe?g|png|bmp)",
}
"""The form of DomainBed's script, as a manifest describes it."""
_CATEGORIES = ("bird", "bobcat", "cat", "coyote", "dog", "empty", "opossum", "rabbit", "raccoon", "squirrel")
_FOLDER = "eccv_18_all_images_sm/"
_PARTS = ("train", "cis_val", "cis_test", "trans_val", "trans_test")
_ALL = ("caltech_images_20210113.json", "caltech_camera_traps.json")
_MOST = 1 << 29
_FIX = "use caltech_images_20210113.json or the folder eccv_18_annotation_files of the release"


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> DescribedImages:
    """Open TerraIncognita, in the form of DomainBed's script, or as published.

    As published, ``eccv_18_all_images_sm`` is a folder of images, and ``caltech_images_20210113.json`` or the files of
    ``eccv_18_annotation_files`` are next to it; the key ``sequence`` then groups images that were taken at the same
    time. An image with animals of two categories is one row per category.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Beery, Van Horn, Perona, "Recognition in Terra Incognita", ECCV 2018.
    .. [2] Gulrajani, Lopez-Paz, "In Search of Lost Domain Generalization", ICLR 2021.

    """
    size = check_size(size)
    manifest = load_manifest(_NAME)
    either = rf"(?:{'|'.join(_DOMAINS)})/[^/]+/[^/]+\.|{_FOLDER}[^/]+\.jpg"
    release = find_members(_NAME, root, {either: f"location_38/<category>/*.jpg or {_FOLDER}*.jpg"}, _ARCHIVES)
    if len(release.under(_FOLDER)):
        factors, places = _published(release)
        return DescribedImages(manifest, factors, MemberImages(release, places), size)
    copied = replace(manifest, layout=_COPIED, factors=manifest.factors[:2], columns=({"codes": _DOMAINS}, {}))
    return open_described(copied, root, size)


def _published(release: MemberIndex) -> tuple[FactorTable, Places]:
    """Factors of the images of the four locations by what the annotations say, and their places."""
    images: dict[str, dict[str, Any]] = {}
    rows, files = set[tuple[int, str, str]](), dict[str, str]()
    for label, content in _annotations(release):
        try:
            names = {each["id"]: each["name"] for each in content["categories"]}
            images |= {str(each["id"]): each for each in content["images"]}
            for each in content["annotations"]:
                image, category = images.get(str(each["image_id"])), names[each["category_id"]]
                if image is not None and str(image["location"]) in _LOCATIONS and category in _CATEGORIES:
                    rows.add((_LOCATIONS.index(str(image["location"])), category, str(image["id"])))
                    files[str(image["id"])] = str(image["file_name"]).rpartition("/")[2]
        except (KeyError, TypeError) as error:
            raise DamagedFile(f"{label} lacks the key {error} of camera-trap annotations", _FIX) from None
    if not rows:
        raise DamagedFile(f"{release.source} contains no annotations of the locations {', '.join(_LOCATIONS)}", _FIX)
    order = sorted(rows, key=lambda row: (row[0], row[1], files[row[2]].encode("utf-8", "surrogatepass")))
    places = release.places([_FOLDER + files[key] for _, _, key in order])
    lacking = np.flatnonzero(places < 0)
    if len(lacking):
        lost = files[order[int(lacking[0])][2]]
        raise DataError(
            f"{release.source}: {len(lacking):,} of {len(order):,} annotated images are missing, such as "
            f"{_FOLDER}{lost}; unpack eccv_18_all_images_sm.tar.gz completely"
        )
    told = [images[key].get("seq_id") for _, _, key in order]
    sequences = [None if each is None else str(each) for each in told]
    columns = [
        nominal("domain", [_DOMAINS[location] for location, _, _ in order], levels=_DOMAINS),
        nominal("category", [category for _, category, _ in order]),
    ]
    if any(sequences):
        columns.append(nominal("sequence", sequences, role="key"))
    return table_of(columns), places


def _annotations(release: MemberIndex) -> Sequence[tuple[str, Any]]:
    """Files of annotations in the release: the one of all images, or those of the five parts."""
    whole = find_beside(release, (), _ALL)
    names = [f"eccv_18_annotation_files/{part}_annotations.json" for part in _PARTS]
    places = [whole] if whole is not None else [find_beside(release, (), [name]) for name in names]
    found = [place for place in places if place is not None]
    if not found:
        raise DataError(
            f"{release.source} contains {_FOLDER}, but no annotations next to that folder; {_FIX}, and place it next "
            f"to {_FOLDER}"
        )
    return [(label_of(place), read_json(content_of(place, _MOST, "annotations"), label_of(place))) for place in found]
