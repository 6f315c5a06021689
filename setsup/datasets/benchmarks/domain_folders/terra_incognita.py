"""TerraIncognita: photographs of animals by cameras that stand in four places, as DomainBed chose them.

They are of Caltech Camera Traps, of which DomainBed takes four locations and ten categories. Its script copies the
images into ``location_38/bobcat/…``; here the published files serve as they are, too.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setsup.datasets.adapters.factor_columns import nominal
from setsup.datasets.benchmarks.domain_folders.reader import DomainImages, Domains, Tree, images_of, read_tree
from setsup.datasets.formats.json_text import read_json
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.texts import content_of, find_beside, label_of

__all__ = ["open"]

_LOCATIONS = ("100", "38", "43", "46")
_TERRA = Domains(
    "terra-incognita",
    {f"location_{number}": f"location_{number}" for number in _LOCATIONS},
    ("terra_incognita", "terra_incognita.zip", "terra_incognita.tar"),
)
_CATEGORIES = ("bird", "bobcat", "cat", "coyote", "dog", "empty", "opossum", "rabbit", "raccoon", "squirrel")
_FOLDER = "eccv_18_all_images_sm/"
_PARTS = ("train", "cis_val", "cis_test", "trans_val", "trans_test")
_ALL = ("caltech_images_20210113.json", "caltech_camera_traps.json")
_MOST = 1 << 29
_FIX = "take caltech_images_20210113.json or the folder eccv_18_annotation_files of the release"


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> DomainImages:
    """Open TerraIncognita, in the form of DomainBed's script, or as published.

    As published, ``eccv_18_all_images_sm`` is a folder of images, and ``caltech_images_20210113.json`` or the files of
    ``eccv_18_annotation_files`` lie beside it; the key ``sequence`` then says which images were taken at one time. An
    image with animals of two categories is a row of each.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Beery, Van Horn, Perona, "Recognition in Terra Incognita", ECCV 2018.
    .. [2] Gulrajani, Lopez-Paz, "In Search of Lost Domain Generalization", ICLR 2021.

    """
    size = check_size(size)
    folders = "|".join(_TERRA.folders.values())
    either = {rf"(?:{folders})/[^/]+/[^/]+\.|{_FOLDER}[^/]+\.jpg": f"location_38/<category>/*.jpg or {_FOLDER}*.jpg"}
    release = find_members(_TERRA.name, root, either, _TERRA.archives)
    if not len(release.under(_FOLDER)):
        return images_of(_TERRA, read_tree(_TERRA, root), size)
    tree, sequences = _published(release)
    more = [nominal("sequence", sequences, role="key")] if any(sequences) else []
    return images_of(_TERRA, tree, size, more)


def _published(release: MemberIndex) -> tuple[Tree, list[str | None]]:
    """Images of the four locations by what the annotations say, and the sequences they belong to."""
    images: dict[str, dict[str, Any]] = {}
    rows, files = set[tuple[int, str, str]](), dict[str, str]()
    for label, said in _annotations(release):
        try:
            names = {each["id"]: each["name"] for each in said["categories"]}
            images |= {str(each["id"]): each for each in said["images"]}
            for each in said["annotations"]:
                image, category = images.get(str(each["image_id"])), names[each["category_id"]]
                if image is not None and str(image["location"]) in _LOCATIONS and category in _CATEGORIES:
                    rows.add((_LOCATIONS.index(str(image["location"])), category, str(image["id"])))
                    files[str(image["id"])] = str(image["file_name"]).rpartition("/")[2]
        except (KeyError, TypeError) as error:
            raise DamagedFile(f"{label} lacks {error}, which annotations of camera traps have", _FIX) from None
    if not rows:
        raise DamagedFile(f"{release.source} has no annotation of the locations {', '.join(_LOCATIONS)}", _FIX)
    order = sorted(rows, key=lambda row: (row[0], row[1], files[row[2]].encode("utf-8", "surrogatepass")))
    places = release.places([_FOLDER + files[key] for _, _, key in order])
    there = [row for row, place in zip(order, places.tolist(), strict=True) if place >= 0]
    if len(there) < len(order):
        lost = files[order[int(np.argmin(places))][2]]
        raise DataError(
            f"{release.source} lacks {len(order) - len(there):,} of {len(order):,} images that its annotations name, "
            f"such as {_FOLDER}{lost}; unpack eccv_18_all_images_sm.tar.gz whole"
        )
    domains = np.array([row[0] for row in order], np.int64)
    tree = Tree(
        *(release, places, domains),
        *([row[1] for row in order], [files[row[2]] for row in order]),
    )
    sequences = [images[row[2]].get("seq_id") for row in order]
    return tree, [None if each is None else str(each) for each in sequences]


def _annotations(release: MemberIndex) -> Sequence[tuple[str, Any]]:
    """Files of annotations in the release: the one of all images, or those of the five parts."""
    whole = find_beside(release, (), _ALL)
    names = [f"eccv_18_annotation_files/{part}_annotations.json" for part in _PARTS]
    places = [whole] if whole is not None else [find_beside(release, (), [name]) for name in names]
    found = [place for place in places if place is not None]
    if not found:
        raise DataError(f"{release.source} has {_FOLDER} but no annotations beside it; {_FIX}, and put it there")
    return [(label_of(place), read_json(content_of(place, _MOST, "annotations"), label_of(place))) for place in found]
