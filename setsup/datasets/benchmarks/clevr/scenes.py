"""Scenes of CLEVR: the objects of each image, from one JSON file per part.

Convention
----------
World coordinates are those of the generator's Blender scene: z points up, the ground is at 0, objects stand within ±3
in x and y. ``right`` and ``front`` are an object's coordinates along the scene's directions of these names, which lie
in the ground plane and follow the camera, whose position differs slightly between images. ``pixel_x`` and ``pixel_y``
count from the upper left corner of the image to the object's centre, rounded to integers by the generator; ``depth`` is
its distance along the optical axis.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from setsup.arrays import Rows
from setsup.datasets.adapters.factor_columns import nominal
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.adapters.nested_objects import NestedObjects
from setsup.datasets.cached_arrays import cached_table, file_states
from setsup.datasets.formats.json_text import read_json
from setsup.errors import DamagedFile, did_you_mean
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import cache_folder
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["ATTRIBUTES", "PARTS", "Scenes", "find_scenes"]

ATTRIBUTES = MappingProxyType(
    {
        "shape": ("cube", "sphere", "cylinder"),
        "size": ("large", "small"),
        "color": ("gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow"),
        "material": ("rubber", "metal"),
    }
)
"""Nominal factors of an object with their levels, as the generator's ``properties.json`` has them."""

PARTS = ("train", "val", "test")
_NUMBERS = ("rotation", "x", "y", "z", "right", "front", "pixel_x", "pixel_y", "depth")
_IMAGE = rf"images/(?P<part>{'|'.join(PARTS)})/(?P<image>CLEVR_[^/]+)\.png"
_SCENES = rf"scenes/CLEVR_(?:{'|'.join(PARTS)})_scenes\.json"
_HOLDS = {rf"images/(?:{'|'.join(PARTS)})/CLEVR_[^/]+\.png": "images/<part>/CLEVR_*.png"}
_ARCHIVES = ("CLEVR_v1.0", "CLEVR_v1.0.zip", "CLEVR_v1.0.tar")
_MOST = 1 << 31
_MOST_OBJECTS = 1 << 10
_VERSION = 1


@dataclass(frozen=True, slots=True, eq=False)
class Scenes:
    """Images of a release with their objects.

    `places` (images,) int64, by part and name; `names` without ``.png``; `parts` (images,) int64, of :data:`PARTS`.
    """

    release: MemberIndex
    places: Rows
    names: list[str]
    parts: Rows
    objects: NestedObjects


def find_scenes(name: str, root: Path | str | None) -> Scenes:
    """Find CLEVR: the folder ``CLEVR_v1.0``, or a zip or tar of it; images without a scene have no known objects.

    Raises
    ------
    DataError
        When the release is missing, or a file of scenes is damaged.

    """
    release = find_members(name, root, _HOLDS, _ARCHIVES)
    places, groups = release.matching(_IMAGE)
    parts = np.array([PARTS.index(part) for part in groups["part"].to_pylist()], np.int64)
    order = np.argsort(parts, kind="stable")
    names = groups["image"].take(order).to_pylist()
    table = _objects(release)
    row_of = {image: row for row, image in enumerate(names)}
    listed = (table["scene"].levels or ()) if len(table) else ()
    rows = np.array([row_of.get(str(image), -1) for image in listed], np.int64)
    if listed:  # the images of the test have no scenes, and may be there alone
        lost = [f"{listed[each]}.png" for each in np.flatnonzero(rows < 0)]
        warn_left_out(release.source, "images", lost, len(listed))
    counts = np.full(len(names), -1)
    counts[rows[rows >= 0]] = np.bincount(table.codes("scene"), minlength=len(listed))[rows >= 0]
    # from the order of the scenes to that of the images
    row = rows[table.codes("scene")]
    in_order = np.argsort(row, kind="stable")[np.count_nonzero(row < 0) :]
    # as published they are the same, and the table stays mapped
    same = len(in_order) == len(table) and bool((np.diff(in_order) > 0).all())
    return Scenes(
        release, places[order], names, parts[order], NestedObjects(table if same else table.select(in_order), counts)
    )


def _objects(release: MemberIndex) -> FactorTable:
    """Read a row for each object of all scenes; read once, then from the cache."""
    places = release.matching(_SCENES)[0].tolist()
    state = sha256(repr((_VERSION, file_states(release, places))).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return cached_table(cache_folder() / "indexes" / "clevr" / f"{state}.arrow", lambda: _read(release, places))


def _read(release: MemberIndex, places: list[int]) -> FactorTable:
    images, of_image = list[str](), list[tuple[int, int]]()
    attributes: dict[str, list[str]] = {name: [] for name in ATTRIBUTES}
    numbers = list[tuple[float, ...]]()
    for member in places:
        label = release.label(member)
        content = read_json(release.read(member, _MOST), label)
        scenes = content.get("scenes") if isinstance(content, dict) else None
        if not isinstance(scenes, list) or not scenes:
            raise DamagedFile(f"{label} lacks the list 'scenes'")
        for number, scene in enumerate(scenes):
            try:
                _add(scene, images, of_image, attributes, numbers)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                why = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())[:100]
                raise DamagedFile(f"{label}: scene {number} does not match the published format: {why}") from error
    if len(set(images)) < len(images):
        twice = next(name for row, name in enumerate(images) if name in images[:row])
        raise DamagedFile(f"{release.source} has two scenes for the image {twice}.png")
    return _table(images, of_image, attributes, numbers)


def _add(
    scene: dict[str, Any],
    images: list[str],
    of_image: list[tuple[int, int]],
    attributes: dict[str, list[str]],
    numbers: list[tuple[float, ...]],
) -> None:
    """Append an image and its objects."""
    if len(scene["objects"]) > _MOST_OBJECTS:
        raise ValueError(f"the scene has {len(scene['objects']):,} objects, more than the limit of {_MOST_OBJECTS:,}")
    right, front = (np.array(scene["directions"][name], float).reshape(3) for name in ("right", "front"))
    for number, thing in enumerate(scene["objects"]):
        for name, levels in ATTRIBUTES.items():
            if thing[name] not in levels:
                raise ValueError(
                    f"an object has the unknown {name} {thing[name]!r}{did_you_mean(str(thing[name]), levels)}"
                )
            attributes[name].append(thing[name])
        at, pixel = np.array(thing["3d_coords"], float).reshape(3), np.array(thing["pixel_coords"], float).reshape(3)
        numbers.append((float(thing["rotation"]), *at.tolist(), float(at @ right), float(at @ front), *pixel.tolist()))
        of_image.append((len(images), number))
    images.append(str(scene["image_filename"]).removesuffix(".png"))


def _table(
    images: list[str],
    of_image: list[tuple[int, int]],
    attributes: dict[str, list[str]],
    numbers: list[tuple[float, ...]],
) -> FactorTable:
    image, number = np.array(of_image, np.int64).reshape(-1, 2).T
    columns = dict(zip(_NUMBERS, np.array(numbers, np.float32).reshape(-1, len(_NUMBERS)).T, strict=True))
    named = [nominal(name, attributes[name], levels=levels) for name, levels in ATTRIBUTES.items()]
    most = max(1, int(number.max(initial=0)) + 1)
    factors = [
        *(factor for factor, _ in named),
        *(Factor(name, Kind.CONTINUOUS) for name in _NUMBERS),
        Factor("scene", Kind.NOMINAL, tuple(images) or ("none",), role="key"),
        Factor("object", Kind.ORDINAL, tuple(range(most)), within="scene", role="key"),
    ]
    return FactorTable(
        factors, {**{factor.name: codes for factor, codes in named}, **columns, "scene": image, "object": number}
    )
