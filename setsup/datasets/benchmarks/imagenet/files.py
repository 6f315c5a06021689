"""Files of ImageNet: trees with one folder per synset, the published tars, or a mixture of both."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from setsup.arrays import Places
from setsup.datasets.benchmarks.imagenet.labels import Labels, find_labels
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.members import MemberIndex, open_members
from setsup.files.archives.releases import find_members
from setsup.files.roots import some

__all__ = ["ENDS", "SPLITS", "SynsetFiles", "find_files", "in_tree", "only"]


SPLITS = ("train", "val")
ENDS = r"\.(?:JPEG|JPG|jpe?g|PNG|png)"
"""How the names of images end; the published ones end in .JPEG, whatever they hold."""

_ARCHIVES = ("imagenet-object-localization-challenge.zip", "imagenet.zip", "imagenet.tar")
_TARS = {split: f"ILSVRC2012_img_{split}.tar" for split in SPLITS}
_FOLDER = r"(?:ILSVRC2012_img_)?"
_FLAT = rf"ILSVRC2012_val_(?P<number>[0-9]{{8}}){ENDS}"
_HOLDS = (
    rf"{_FOLDER}train/n[0-9]{{8}}/[^/]+{ENDS}|{_FOLDER}val/(?:n[0-9]{{8}}/[^/]+|ILSVRC2012_val_[0-9]{{8}}){ENDS}|"
    rf"ILSVRC2012_img_(?:train|val)\.tar|n[0-9]{{8}}\.tar/|ILSVRC2012_val_[0-9]{{8}}{ENDS}"
)
_WORDS = "train/<synset>/*.JPEG, val/*.JPEG, ILSVRC2012_img_train.tar or ILSVRC2012_img_val.tar"
_SYNSET = 9  # letters: n and eight digits

_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True, eq=False)
class SynsetFiles:
    """Images in the order of the rows.

    `part, places` (n,) int64; `synset` (n,) int64; `split` (n,) int64.
    """

    parts: tuple[MemberIndex, ...]
    part: Places
    places: Places
    synsets: tuple[str, ...]
    synset: Places
    split: Places
    categories: tuple[str, ...] | None


def find_files(name: str, root: Path | str | None) -> SynsetFiles:
    """Find the images of ImageNet, as :func:`setsup.datasets.benchmarks.imagenet.open` takes the root.

    Rows are sorted by split (train, val), synset (unknown ones last) and the bytes of the file name: the same in a tree
    and in the tars, and the order of programs that number sorted files in sorted folders.
    """
    release = find_members(name, root, {_HOLDS: _WORDS}, _ARCHIVES, nested=True)
    labels = find_labels(release)
    of_splits = [part for split in SPLITS if (part := _of_split(release, split, labels)) is not None]
    if not of_splits:
        raise DamagedFile(f"{release.source} contains no image such as train/n01440764/n01440764_18.JPEG")
    synsets = sorted({synset for _, _, names, _, _ in of_splits for synset in names})
    levels = tuple(synsets)
    columns = []
    for number, (_, places, names, codes, split) in enumerate(of_splits):
        # the last stands for unknown
        known = np.array([*(synsets.index(each) for each in names), -1], np.int64)[codes]
        order = np.argsort(np.where(known < 0, len(levels), known), kind="stable")
        columns.append((np.full(len(places), number), places[order], known[order], np.full(len(places), split)))
    parts, places, synset, split_codes = (np.concatenate(column) for column in zip(*columns, strict=True))
    members = tuple(each for each, *_ in of_splits)
    return SynsetFiles(members, parts, places, levels, synset, split_codes, labels.categories(levels))


def only(files: SynsetFiles, synsets: Sequence[str], where: str) -> SynsetFiles:
    """Images of some synsets, in their order."""
    missing = [synset for synset in synsets if synset not in files.synsets]
    if missing:
        source = files.parts[0].source
        raise DataError(
            f"{source} has no images for {len(missing)} of the {len(synsets)} synsets of {where}: {some(missing)}; "
            "fetch the missing images, or pass other synsets (synsets=)"
        )
    chosen = sorted(files.synsets.index(synset) for synset in synsets)
    codes = np.full(len(files.synsets) + 1, -1, np.int64)
    codes[chosen] = np.arange(len(chosen))
    synset = codes[files.synset]  # -1, unknown, finds the last
    rows = np.flatnonzero(synset >= 0)
    unknown = int(np.count_nonzero(files.synset < 0))
    if unknown:
        _log.warning("%d images with an unknown synset are left out", unknown)
    return replace(
        files,
        part=files.part[rows],
        places=files.places[rows],
        split=files.split[rows],
        synset=synset[rows],
        synsets=tuple(files.synsets[code] for code in chosen),
        categories=None if files.categories is None else tuple(files.categories[code] for code in chosen),
    )


def in_tree(members: MemberIndex, pattern: str, start: int) -> tuple[Places, list[str], Places]:
    """Files of a tree with one folder per synset.

    Returns `places` (n,) int64; returns `codes` (n,) int64.
    """
    import pyarrow.compute as pc

    places, _ = members.matching(pattern)
    synsets = pc.utf8_slice_codeunits(members.names.take(places), start, start + _SYNSET).dictionary_encode()
    return places, synsets.dictionary.to_pylist(), np.asarray(synsets.indices, np.int64)


# -- inside ------------------------------------------------------------------------------------------------------------


_Part = tuple[MemberIndex, Places, list[str], Places, int]
"""Members, places in them, synsets, the code of each image's synset (-1 where it is not known), and the split's."""


def _of_split(release: MemberIndex, split: str, labels: Labels) -> _Part | None:
    """Images of a split: unpacked ones before those in the tar."""
    code = SPLITS.index(split)
    for folder in (f"{split}/", f"ILSVRC2012_img_{split}/"):
        below = release.under(folder)
        images = in_tree(below, rf"n[0-9]{{8}}/[^/]+{ENDS}", 0)
        if len(images[0]):
            return below, *images, code
        if split == "val" and (flat := _flat(below, labels)):
            return below, *flat, code
    inner = _tar(release, split)
    if inner is None:
        return None
    if split == "val":
        flat = _flat(inner, labels)
        return (inner, *flat, code) if flat else None
    images = in_tree(inner, rf"n[0-9]{{8}}\.tar/[^/]+{ENDS}", 0)
    return (inner, *images, code) if len(images[0]) else None


def _tar(release: MemberIndex, split: str) -> MemberIndex | None:
    """The published tar of a split, which may be the release itself."""
    if _TARS[split] not in release:
        return release
    path = release.path(release.place(_TARS[split]))
    if path is None:
        raise DataError(
            f"{release.source}: {_TARS[split]} is inside another archive; extract it, and pass the folder that "
            "contains it as the root"
        )
    return open_members(path, nested=True)


def _flat(members: MemberIndex, labels: Labels) -> tuple[Places, list[str], Places] | None:
    """Validation images in one folder, with what the development kit or the csv file says of them."""
    places, groups = members.matching(_FLAT)
    if not len(places):
        return None
    numbers = np.asarray(groups["number"].cast("int64"), np.int64)
    synsets, codes = labels.of_validation(numbers)
    if not synsets:
        _log.warning(
            "%s: the synsets of its %d validation images are unknown; add ILSVRC2012_devkit_t12.tar.gz or "
            "LOC_val_solution.csv next to it",
            members.source,
            len(places),
        )
    return places, synsets, codes
