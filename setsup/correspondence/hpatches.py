"""HPatches: 116 sequences of six photographs under changes of illumination or viewpoint, with their homographies.

Convention
----------
A sequence is a folder with images ``1.ppm`` to ``6.ppm`` and texts ``H_1_2`` to ``H_1_6``: 3 × 3 numbers that map
pixels (x, y) of image 1 to those of the other image; the centre of the first pixel is (0, 0). Names begin with ``i_``
where the illumination changes, and with ``v_`` where the viewpoint does. Evaluations of matching usually leave out
eight sequences with images larger than 1600 × 1200 pixels ([2]_, and the readers of other projects)::

    usual = setsup.load("hpatches", root="hpatches-sequences-release.zip", split="usual")

The module is in this package, not among the benchmarks, because datasets do not import correspondences; it opens the
sequences as :class:`~setsup.correspondence.photographs.Photographs`.

References
----------
.. [1] V. Balntas, K. Lenc, A. Vedaldi, K. Mikolajczyk, "HPatches: a benchmark and evaluation of handcrafted and learned
   local descriptors", CVPR 2017 (arXiv 1704.05939).
.. [2] M. Dusmanu et al., "D2-Net: a trainable CNN for joint description and detection of local features", CVPR 2019
   (arXiv 1905.03561), section 5.1, and its published code, ``hpatches_sequences``.

"""

from pathlib import Path

import numpy as np

from setsup.arrays import Reals
from setsup.correspondence.homography_files import parse_homography
from setsup.correspondence.photographs import Photographs
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded

__all__ = ["LARGE", "open"]

LARGE = (
    *("i_contruction", "i_crownnight", "i_dc", "i_pencils", "i_whitebuilding"),
    *("v_artisans", "v_astronautis", "v_talent"),
)
"""Sequences with images larger than 1600 × 1200 pixels, which evaluations of matching usually leave out."""

_NAME = "hpatches"
_ARCHIVES = ("hpatches-sequences-release.zip", "hpatches-sequences-release.tar")
_IMAGE = r"(?P<scene>[iv]_[^/]+)/(?P<view>[1-9])\.(?:ppm|png|jpg)"
_CHANGES = {"i": "illumination", "v": "viewpoint"}
_VIEWS = tuple(range(1, 7))
_MOST = 1 << 12  # bytes of a homography


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> Photographs:
    """Open HPatches, the full image sequences.

    Rows are the images in the order of sequences and views. Factors are ``scene`` (the name of the sequence), ``view``
    (1 to 6), ``change`` (illumination or viewpoint) and ``split``: ``usual`` for the 108 sequences that evaluations of
    matching use, ``large`` for the other eight (:data:`LARGE`). The only modality is ``image``, uint8 sRGB.

    Parameters
    ----------
    root : Path, str or None
        A folder, zip or tar with the sequences; None for the default folders.
    size : (height, width), optional
        Resize every image, antialiased, until it just covers this size, and crop the centre; the homographies follow.

    Returns
    -------
    Photographs
        With the methods :meth:`~setsup.correspondence.photographs.Photographs.homography` and
        :meth:`~setsup.correspondence.photographs.Photographs.pixel_pairs`.

    Raises
    ------
    DataError
        When the files are missing (the message shows how to get them), an image has no homography or a homography no
        image, or one is damaged or singular.

    """
    size = check_size(size)
    holds = {r"[iv]_[^/]+/H_1_2$": "<sequence>/H_1_2"}
    members = find_members(_NAME, None if root is None else expanded(root), holds, _ARCHIVES)
    places, fields = members.matching(_IMAGE)
    scenes = fields["scene"].to_pylist()
    views = [int(view) for view in fields["view"].to_pylist()]
    _check_views(members, scenes, views)
    matrices = [
        np.eye(3) if view == 1 else _homography(members, f"{scene}/H_1_{view}")
        for scene, view in zip(scenes, views, strict=True)
    ]
    table = table_of(
        [
            nominal("scene", scenes),
            (Factor("view", Kind.ORDINAL, _VIEWS), np.array(views) - 1),
            nominal("change", [_CHANGES[scene[0]] for scene in scenes], levels=tuple(_CHANGES.values())),
            nominal(
                "split",
                ["large" if scene in LARGE else "usual" for scene in scenes],
                role="split",
                levels=("usual", "large"),
            ),
        ]
    )
    return Photographs(_NAME, table, MemberImages(members, places), np.stack(matrices), size)


def _homography(members: MemberIndex, name: str) -> Reals:
    place = members.place(name)
    return parse_homography(members.read(place, _MOST), members.label(place))


def _check_views(members: MemberIndex, scenes: list[str], views: list[int]) -> None:
    """Refuse a sequence without its six images and five homographies, or with two files of an image."""
    known = set(zip(scenes, views, strict=True))
    homographies = members.matching(r"(?P<scene>[iv]_[^/]+)/H_1_(?P<view>[1-9])")[1]
    named = {
        (scene, int(view))
        for scene, view in zip(homographies["scene"].to_pylist(), homographies["view"].to_pylist(), strict=True)
    }
    for scene in sorted({scene for scene, _ in known | named}):
        images, texts = ({view for name, view in pairs if name == scene} for pairs in (known, named))
        if images != set(_VIEWS) or texts != set(_VIEWS[1:]) or scenes.count(scene) != len(_VIEWS):
            raise DamagedFile(
                f"{members.source}: the sequence {scene} must have the images 1 to 6, one file each, and the "
                f"homographies H_1_2 to H_1_6; it has the images {sorted(images)} in {scenes.count(scene)} files and "
                f"homographies of {sorted(texts)}"
            )
