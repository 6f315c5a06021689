"""VeRi-776: photographs of vehicles by 20 cameras of a city, with the color and type of each vehicle.

It requires code because its colors and types are in XML files.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from setsup.arrays import Rows
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.described import DescribedImages
from setsup.datasets.described.factors import factor_table
from setsup.datasets.described.images import read_image_names
from setsup.datasets.described.schema import read_layout
from setsup.datasets.formats.xml_file import read_elements
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.factors.factor import Level
from setsup.files import load_manifest
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["open"]

_NAME = "veri776"
_PARTS = {"image_train": "train", "image_query": "query", "image_test": "gallery"}
_LAYOUT = {
    "archives": ["VeRi", "VeRi.zip", "VeRi.tar"],
    "images": (
        rf"(?P<part>{'|'.join(_PARTS)})/"
        r"(?P<file>(?P<vehicle>[0-9]{4})_c(?P<camera>[0-9]{3})_(?P<frame>[0-9]+)_[0-9]+\.jpg)"
    ),
    "example": "image_train/0002_c002_00030600_0.jpg",
    "order": {"part": list(_PARTS)},
    "types": {"vehicle": "integer", "camera": "integer", "frame": "integer"},
}
"""Names of images, as a manifest describes them."""
_SPLIT = {"from": "part", "codes": _PARTS}
_LABELS = {"train_label.xml": ("image_train",), "test_label.xml": ("image_query", "image_test")}
"""Files of labels, and the folders of the images that they label."""
_ATTRIBUTES = {"color": "colorID", "type": "typeID"}
_MOST = 1 << 28

_Levels = Mapping[str, tuple[Level, ...]]
"""Levels of color and type in the order of their numbers, which begin at 1."""
_Labels = dict[str, tuple[int, ...]]
"""Codes of color and type by names of images; -1 for unknown."""

_log = logging.getLogger("setsup")


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> DescribedImages:
    """Open VeRi-776.

    The factors ``color`` and ``type`` require ``train_label.xml`` and ``test_label.xml`` next to the folders of images;
    if both are missing, these factors are left out. The color or type of an image is unknown if its file of labels is
    missing or does not contain the image, or if its number is 0 or missing: an early release has vehicles of type 0.

    Parameters
    ----------
    root : Path or str, optional
        Folder with ``image_train``, ``image_query`` and ``image_test``, or with a folder, zip or tar ``VeRi`` that
        contains them.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre.

    Raises
    ------
    DataError
        If no images are found, or a file of labels is damaged or labels other images.

    References
    ----------
    .. [1] Liu, Liu, Mei, Ma, "PROVID: Progressive and Multimodal Vehicle Reidentification for Large-Scale Urban
       Surveillance", IEEE Transactions on Multimedia 20(3), 2018.

    """
    size = check_size(size)
    manifest = load_manifest(_NAME)
    named = replace(manifest, layout=_LAYOUT, factors=manifest.factors[:4], columns=({}, {}, {}, _SPLIT))
    layout = read_layout(named)
    release = find_members(_NAME, root, layout.holds, layout.archives)
    places, columns = read_image_names(_NAME, release, layout)
    table = factor_table(columns, layout)
    factors = {factor: table.codes(factor.name) for factor in table.factors}
    parts, files = columns.values["part"].to_pylist(), columns.values["file"].to_pylist()
    levels = {factor.name: factor.levels for factor in manifest.factors if isinstance(factor.levels, tuple)}
    factors |= _read_attributes(release, parts, files, {name: levels[name] for name in _ATTRIBUTES})
    return DescribedImages(manifest, table_of(factors), MemberImages(release, places), size)


def _read_attributes(
    release: MemberIndex, parts: Sequence[str], files: Sequence[str], levels: _Levels
) -> dict[Factor, Rows]:
    """Read color and type of the images; none if there is no file of labels."""
    codes = np.full((len(files), len(levels)), -1, np.int64)
    folders = np.array(parts)
    labelled = [name for name in _LABELS if name in release]
    for name in labelled:
        rows = np.flatnonzero(np.isin(folders, _LABELS[name])).tolist()
        place = release.place(name)
        labels = _read_labels(release.read(place, _MOST), release.label(place), levels)
        lost = [files[row] for row in rows if files[row] not in labels]
        if lost and len(lost) == len(rows):
            raise DamagedFile(
                f"{release.label(place)} labels none of the {len(rows):,} images of {' and '.join(_LABELS[name])}, "
                f"such as {lost[0]}",
                "use the file of labels of the same release",
            )
        if lost:
            counts = (f"{len(lost):,}", f"{len(rows):,}")
            _log.info("%s lacks %s of %s images, such as %s", release.label(place), *counts, lost[0])
        for row in rows:
            codes[row] = labels.get(files[row], -1)
    if not labelled:
        return {}
    found = [Factor(factor, Kind.NOMINAL, known) for factor, known in levels.items()]
    return {factor: codes[:, column] for column, factor in enumerate(found)}


def _read_labels(content: bytes, label: str, levels: _Levels) -> _Labels:
    """Read the codes of each image in a file of labels."""
    found: _Labels = {}
    for line, attributes in read_elements(content, label, "Item"):
        name = attributes.get("imageName", "").strip()
        if not name:
            raise DamagedFile(f"{label}: the Item in line {line} has no imageName")
        codes = tuple(_codes(attributes, f"{label}: line {line}", levels))
        if found.setdefault(name, codes) != codes:
            raise DamagedFile(f"{label}: line {line} repeats the image {name[:80]} with another color or type")
    if not found:
        raise DamagedFile(f"{label} contains no Item")
    return found


def _codes(attributes: Mapping[str, str], where: str, levels: _Levels) -> Iterator[int]:
    """Codes of color and type of an image: the published number less 1."""
    for factor, attribute in _ATTRIBUTES.items():
        text = attributes.get(attribute, "0").strip()
        if not re.fullmatch("[0-9]{1,3}", text) or int(text) > len(levels[factor]):
            raise DamagedFile(f"{where} has the {attribute} {text!r:.40}; expected 0 to {len(levels[factor])}")
        yield int(text) - 1
