"""In-Shop Clothes Retrieval of DeepFashion: 52,712 photographs of 7,982 pieces of clothing, each in several views.

Convention
----------
``list_eval_partition.txt`` has the number of images, a header, and a line for each image: its path, the piece and the
part. Paths are ``img/<gender>/<kind>/<piece>/<number>_<view>.jpg``.
"""

from pathlib import Path

import numpy as np

from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import refuse_twice, warn_left_out
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.texts import text_of

__all__ = ["open"]

_LIST = "list_eval_partition.txt"
_HOLDS = {r"(?:Eval/)?list_eval_partition\.txt": _LIST, r"(?:Img/)?img/[^/]+/[^/]+/[^/]+/[^/]+\.jpg": "img/WOMEN/*.jpg"}
_PARTS = ("train", "query", "gallery")
_MOST = 1 << 24


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open In-Shop: the folder of the benchmark with ``img`` unpacked in it, or a zip or tar of that.

    Rows are the lines of ``list_eval_partition.txt``. Factors: ``gender``, ``kind``, ``item`` (the piece of clothing,
    nested in the kind of a gender), ``view`` (``front``, ``side``, ``back``, ``full``, ``flat``, ``additional``), and
    ``split``: pieces of ``query`` and ``gallery`` are not in ``train``.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Liu, Luo, Qiu, Wang, Tang, "DeepFashion: Powering Robust Clothes Recognition and Retrieval with Rich
       Annotations", CVPR 2016.

    """
    size = check_size(size)
    release = find_members(
        "in-shop", root, _HOLDS, ["In-shop Clothes Retrieval Benchmark", "in-shop.zip", "in-shop.tar"]
    )
    rows = _lines(release)
    below = "Img/" if len(release.under("Img")) else ""
    places = release.places([below + path for path, _, _ in rows])
    warn_left_out(release.source, "images", [rows[row][0] for row in np.flatnonzero(places < 0).tolist()], len(rows))
    kept = [rows[row] for row in np.flatnonzero(places >= 0).tolist()]
    paths = [path.split("/") for path, _, _ in kept]
    factors = [
        nominal("gender", [path[1] for path in paths]),
        nominal("kind", [path[2] for path in paths]),
        nominal("item", [item for _, item, _ in kept]),
        nominal("view", [path[-1].rpartition(".")[0].rpartition("_")[2] for path in paths]),
        (Factor("split", Kind.NOMINAL, _PARTS, role="split"), np.array([part for _, _, part in kept], np.int64)),
    ]
    return ImageFilesDataset("in-shop", table_of(factors), MemberImages(release, places[places >= 0]), size)


def _lines(release: MemberIndex) -> list[tuple[str, str, int]]:
    """Path, piece and part of each line."""
    name = _LIST if _LIST in release else f"Eval/{_LIST}"
    label = release.label(release.place(name))
    text = text_of(release.read(release.place(name), _MOST), label)
    lines = [line.split() for line in text.splitlines() if line.strip()]
    count, header = [*lines, [], []][:2]
    if len(count) != 1 or header != ["image_name", "item_id", "evaluation_status"]:
        raise DamagedFile(f"{label} does not begin with a number and the line image_name item_id evaluation_status")
    found = lines[2:]
    for number, line in enumerate(found, 3):
        if len(line) != 3 or line[2] not in _PARTS or len(line[0].split("/")) != 5:
            raise DamagedFile(f"{label}: line {number} is not a path, a piece and one of {', '.join(_PARTS)}")
    if count != [str(len(found))]:
        raise DamagedFile(f"{label} has {len(found):,} images, and says that it has {count[0]}")
    refuse_twice(label, [path for path, *_ in found])
    return [(path, item, _PARTS.index(part)) for path, item, part in found]
