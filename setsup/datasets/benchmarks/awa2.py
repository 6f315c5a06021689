"""Animals with Attributes 2: photographs of 50 animals, with 85 attributes of each animal.

The manifest describes the rows. The attributes require code because they are matrices by category.
"""

import re
from pathlib import Path

import numpy as np

from setsup.arrays import Array, Places, Reals, Rows
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.number_texts import read_matrix
from setsup.datasets.described import read_described
from setsup.datasets.images import check_size
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile, abbreviate
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import load_manifest
from setsup.files.archives.members import MemberIndex
from setsup.files.texts import text_of

__all__ = ["AwA2", "open", "read_names"]

_CLASSES, _PREDICATES = "classes.txt", "predicates.txt"
_BINARY, _CONTINUOUS = "predicate-matrix-binary.txt", "predicate-matrix-continuous.txt"
_MISSING = -1
_MOST = 1 << 24  # bytes of a list


class AwA2(ImageFilesDataset):
    """Photographs of Animals with Attributes 2, as returned by :func:`open`.

    Factors are ``category``, the standard ``split``, the ``proposed`` split of Xian et al., and, if their files exist,
    the 85 attributes, False or True, such as ``stripes``. Attributes follow from the category, so they are keys: a
    sampler may fix them, and ``where`` may name them, but ``active=["category"]`` does not fix them. The modality is
    ``image``.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.
    places : (n,) int64
        Positions of the images in `members`.
    factors : FactorTable
        Factors by the manifest, n rows.
    size : (height, width), optional
        Of the images.

    Attributes
    ----------
    attribute_names : tuple of str
        Names of the 85 attributes.

    """

    def __init__(
        self, members: MemberIndex, places: Places, factors: FactorTable, size: tuple[int, int] | None = None
    ) -> None:
        self._members = members
        self.attribute_names = _attribute_names()
        if all(name in members for name in (_CLASSES, _PREDICATES, _BINARY)):
            factors = _with_attributes(factors, self._of_levels(factors, _BINARY, 0, 1), self.attribute_names)
        super().__init__("awa2", factors, MemberImages(members, places), size)

    @per_process
    def class_attributes(self) -> Reals:
        """Strength of the attributes of each category, (categories, 85) float32 from 0 to 100, by codes of category.

        A few values of antelope are missing; they are NaN.

        Raises
        ------
        DataError
            When ``predicate-matrix-continuous.txt`` or the lists of names are missing or damaged.

        """
        values = self._of_levels(self.factors, _CONTINUOUS, _MISSING, 100)
        return np.where(values == _MISSING, np.nan, values).astype(np.float32)

    def _of_levels(self, factors: FactorTable, name: str, low: float, high: float) -> Reals:
        """Rows of a matrix, for the levels of category."""
        categories = read_names(*_content(self._members, _CLASSES))
        content, label = _content(self._members, _PREDICATES)
        if (names := read_names(content, label)) != list(self.attribute_names):
            raise DamagedFile(f"{label} lists {len(names)} attributes, not the 85 published ones in their order")
        content, label = _content(self._members, name)
        values = read_matrix(content, label, len(names), low, high)
        if len(values) != len(categories):
            raise DamagedFile(f"{label} has {len(values)} rows for the {len(categories)} categories of {_CLASSES}")
        levels = [str(level) for level in factors["category"].levels or ()]
        if unknown := [level for level in levels if level not in categories]:
            raise DamagedFile(f"{self._members.source}: {_CLASSES} lacks the category {unknown[0]}")
        return np.asarray(values[[categories.index(level) for level in levels]])


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> AwA2:
    """Open Animals with Attributes 2.

    Parameters
    ----------
    root : Path, str or None
        ``AwA2-data.zip``, the unpacked release ``Animals_with_Attributes2``, or a folder that contains one of them;
        None for the default folders.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and cut out the centre.

    Returns
    -------
    AwA2

    Raises
    ------
    DataError
        When images are missing (the message shows how to get them), or a list or matrix is damaged.

    References
    ----------
    .. [1] Xian, Lampert, Schiele, Akata, "Zero-Shot Learning: A Comprehensive Evaluation of the Good, the Bad and the
       Ugly", TPAMI 2019.

    """
    size = check_size(size)
    members, places, factors = read_described(load_manifest("awa2"), root)
    return AwA2(members, places, factors, size)


def read_names(content: bytes, label: str) -> list[str]:
    """Read a list of numbers from 1 and names: ``1``, a tab and ``antelope``."""
    names: list[str] = []
    for number, line in enumerate(text_of(content, label).split("\n"), 1):
        if not line.strip():
            continue
        found = re.fullmatch(r"\s*([0-9]{1,3})\s+([a-z+]{1,40})\s*", line)
        if found is None or int(found[1]) != len(names) + 1 or found[2] in names:
            raise DamagedFile(f"{label}: line {number} is {abbreviate(line)}; expected {len(names) + 1} and a new name")
        names.append(found[2])
    return names


def _attribute_names() -> tuple[str, ...]:
    """Names of the attributes by the manifest: the factors that have no column in its layout."""
    manifest = load_manifest("awa2")
    pairs = zip(manifest.factors, manifest.columns, strict=True)
    return tuple(factor.name for factor, column in pairs if not column and factor.name != "category")


def _content(members: MemberIndex, name: str) -> tuple[bytes, str]:
    member = members.place(name)
    return members.read(member, _MOST), members.label(member)


def _with_attributes(factors: FactorTable, values: Reals, names: tuple[str, ...]) -> FactorTable:
    """Table with the attributes; `values` (levels of category, attributes)."""
    category: Rows = factors.codes("category").astype(np.int64)
    columns: list[tuple[Factor, Array]] = [(factor, factors.codes(factor.name)) for factor in factors.factors]
    for number, name in enumerate(names):
        columns.append((Factor(name, Kind.NOMINAL, (False, True), role="key"), values[category, number] > 0))
    return table_of(columns)
