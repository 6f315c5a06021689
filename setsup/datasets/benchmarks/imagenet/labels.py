"""Labels of ImageNet: names of the synsets, and synsets of the validation images.

Two sources contain both: the development kit of ILSVRC 2012, unpacked or as published (``meta.mat`` and
``ILSVRC2012_validation_ground_truth.txt``), and the lists of Kaggle's copy (``LOC_synset_mapping.txt`` and
``LOC_val_solution.csv``).
"""

import io
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from setsup.arrays import Codes
from setsup.datasets.formats.matlab.mat import read_mat
from setsup.errors import DamagedFile
from setsup.files.archives.members import MemberIndex, open_members
from setsup.files.archives.streams import stream_tar
from setsup.files.texts import comma_separated, content_of, find_beside, label_of, text_of

__all__ = ["Labels", "find_labels", "synset_names", "unique_names"]

Read = Callable[[str], tuple[bytes, str] | None]
"""Gives the content of a file and what messages call it, or None where it is missing."""

_KIT = "ILSVRC2012_devkit_t12"
_FOLDERS = (f"{_KIT}/data/", "devkit/data/", "data/", "")
_META, _TRUTH = "meta.mat", "ILSVRC2012_validation_ground_truth.txt"
_MAPPING, _SOLUTION = "LOC_synset_mapping.txt", "LOC_val_solution.csv"
_MOST = 1 << 26  # bytes of any of these; all have less than 3 MB
_NAMED = re.compile(r"(n[0-9]{8})[ \t]+(\S.*)")


class Labels:
    """Names of synsets and labels of validation images, read on first use."""

    def __init__(self, read: Read, packed: Path | None) -> None:
        self._read, self._packed = read, packed

    def categories(self, synsets: Sequence[str]) -> tuple[str, ...] | None:
        """Names of synsets, made unique; None if there is no file with names."""
        mapping = self._read(_MAPPING)
        if mapping is not None:
            names = synset_names(*mapping)
        elif self._meta is not None:
            names = {synset: name for synset, name in self._meta.values()}
        else:
            return None
        return unique_names(synsets, names)

    def of_validation(self, numbers: Codes) -> tuple[list[str], Codes]:
        """Synsets of validation images.

        `numbers` (n,) int64; returns `codes` (n,) int64.
        """
        truth = self._read(_TRUTH) or self._kit.get(_TRUTH)
        if truth is not None and self._meta is not None:
            return _from_kit(*truth, self._meta, numbers)
        solution = self._read(_SOLUTION)
        if solution is not None:
            return _from_csv(*solution, numbers)
        return [], np.full(len(numbers), -1, np.int64)

    @cached_property
    def _kit(self) -> dict[str, tuple[bytes, str]]:
        """Files of the kit as it was published."""
        if self._packed is None:
            return {}
        wanted = {f"{_KIT}/data/{name}": name for name in (_META, _TRUTH)}
        stream = stream_tar(self._packed, lambda name: _MOST if name in wanted else None)
        return {wanted[name]: (content, f"{self._packed}: {name}") for name, content in stream}

    @cached_property
    def _meta(self) -> dict[int, tuple[str, str]] | None:
        """Synset and name by the number that the ground truth uses; None without the kit."""
        content = self._read(_META) or self._kit.get(_META)
        return None if content is None else _parsed_meta(*content)


def find_labels(release: MemberIndex) -> Labels:
    """Find the files of labels: in the folders around the images, and next to an archive of images."""
    whole = open_members(release.source, nested=True) if release.prefix else release
    steps = release.prefix.split("/")[:-1]
    around = ["".join(f"{step}/" for step in steps[:count]) for count in range(len(steps), -1, -1)]
    beside = release.source.parent if release.source.is_file() else None

    def read(name: str) -> tuple[bytes, str] | None:
        names = [f"{folder}{name}" for folder in (_FOLDERS if name in (_META, _TRUTH) else ("",))]
        every = [f"{folder}{name}" for folder in around for name in names]
        source = find_beside(whole, [] if beside is None else [beside], every)
        return None if source is None else (content_of(source, _MOST, "labels"), label_of(source))

    packed = f"{_KIT}.tar.gz"
    places = [whole.path(whole.place(folder + packed)) for folder in around if folder + packed in whole]
    if beside is not None and os.path.isfile(beside / packed):
        places.append(beside / packed)
    return Labels(read, next((source for source in places if source is not None), None))


def synset_names(content: bytes, label: str) -> dict[str, str]:
    r"""Names of synsets from a list with one per line; other lines are ignored.

    Examples
    --------
    >>> synset_names(b"n01440764 tench, Tinca tinca\r\nn01443537 goldfish\n", "LOC_synset_mapping.txt")
    {'n01440764': 'tench, Tinca tinca', 'n01443537': 'goldfish'}

    """
    lines = [_NAMED.fullmatch(line.strip()) for line in text_of(content, label).splitlines()]
    names = {line[1]: line[2] for line in lines if line is not None}
    if not names:
        raise DamagedFile(f"{label} contains no line such as 'n01440764 tench, Tinca tinca'")
    return names


def unique_names(synsets: Sequence[str], names: dict[str, str]) -> tuple[str, ...]:
    """Names of synsets, followed by the synset if two have the same name, such as the two cranes.

    Examples
    --------
    >>> unique_names(["n02012849", "n03126707"], {"n02012849": "crane", "n03126707": "crane"})
    ('crane (n02012849)', 'crane (n03126707)')

    """
    titles = [names.get(synset, synset) for synset in synsets]
    times = Counter(titles)
    return tuple(
        name if times[name] == 1 else f"{name} ({synset})" for name, synset in zip(titles, synsets, strict=True)
    )


# -- inside ------------------------------------------------------------------------------------------------------------


def _parsed_meta(content: bytes, label: str) -> dict[int, tuple[str, str]]:
    table = read_mat(content, label, ["synsets"], _MOST)["synsets"].reshape(-1)
    fields = ("ILSVRC2012_ID", "WNID", "words", "num_children")
    if not set(fields) <= set(table.dtype.names or ()):
        raise DamagedFile(f"{label}: 'synsets' lacks the fields {', '.join(fields)}")
    synsets: dict[int, tuple[str, str]] = {}
    for entry in table:
        number, synset, words, children = (np.asarray(entry[field]).reshape(-1) for field in fields)
        if not all(len(value) == 1 for value in (number, synset, children)) or len(words) > 1:
            raise DamagedFile(f"{label}: a synset has a field with more than one value")
        if (
            children.dtype.kind not in "iuf"
            or number.dtype.kind not in "iuf"
            or not re.fullmatch(r"n[0-9]{8}", str(synset[0]))
        ):
            raise DamagedFile(f"{label}: a synset has the id {str(synset[0])[:40]!r}; expected an id such as n01440764")
        if children[0] == 0:  # the others are above the 1,000 that images show
            synsets[int(number[0])] = (str(synset[0]), str(words[0]).strip() if len(words) else str(synset[0]))
    return synsets


def _from_kit(content: bytes, label: str, meta: dict[int, tuple[str, str]], numbers: Codes) -> tuple[list[str], Codes]:
    """Line i of the ground truth is the number of the synset of image i, which counts from 1."""
    lines = text_of(content, label).split()
    ids = np.array([int(line) if line.isdecimal() and len(line) < 9 else -1 for line in lines], np.int64)
    known = np.array(sorted(meta), np.int64)
    wrong = np.flatnonzero(~np.isin(ids, known))
    if len(wrong):
        raise DamagedFile(
            f"{label}: line {wrong[0] + 1:,} is {lines[wrong[0]][:20]!r}, which is not the number of a synset in "
            f"{_META}"
        )
    if len(numbers) and not 1 <= numbers.min() <= numbers.max() <= len(ids):
        odd = int(numbers[(numbers < 1) | (numbers > len(ids))][0])
        raise DamagedFile(f"{label} has {len(ids):,} lines, but no entry for the validation image {odd:08}")
    return [meta[number][0] for number in known.tolist()], np.searchsorted(known, ids[numbers - 1])


def _from_csv(content: bytes, label: str, numbers: Codes) -> tuple[list[str], Codes]:
    """A line has the image's name, and a synset with a box for every object in it: all of one synset."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as csv

    columns = ["ImageId", "PredictionString"]
    kinds = csv.ConvertOptions(include_columns=columns, column_types=dict.fromkeys(columns, pa.string()))
    try:
        table = csv.read_csv(io.BytesIO(comma_separated(content)), convert_options=kinds)
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise DamagedFile(f"{label} is not a table with the columns {', '.join(columns)}") from error
    wanted = pa.array([f"ILSVRC2012_val_{number:08}" for number in numbers.tolist()], pa.string())
    at = pc.index_in(wanted, value_set=table["ImageId"])
    if at.null_count:
        odd = wanted.filter(pc.is_null(at))[0].as_py()
        raise DamagedFile(f"{label} has no entry for {odd}")
    predictions = table["PredictionString"].combine_chunks().take(at)
    told = pc.extract_regex(pc.utf8_trim_whitespace(predictions), r"^(?P<synset>n[0-9]{8})(?:\s|$)")
    if told.null_count:
        odd = predictions.filter(pc.is_null(told))[0].as_py()
        raise DamagedFile(
            f"{label}: a prediction is {str(odd)[:40]!r}; expected it to start with a synset such as n01440764"
        )
    coded = pc.struct_field(told, "synset").dictionary_encode()
    return coded.dictionary.to_pylist(), np.asarray(coded.indices, np.int64)
