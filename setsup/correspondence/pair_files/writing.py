"""Pairs of views in the files that D2-Net, LoFTR, DUSt3R, SuperGlue and hloc read.

Convention
----------
Files of all layouts are written below one new folder. An image is called after its row in the dataset: the file
``images/0003/000142.jpg`` is row 142, in scene 3 of the overlap table. Scenes are called by the levels of their factor
where these are strings, otherwise by their number.

===========  =======================================================  ========  ==================  ==================
layout       files                                                    centres   poses               pairs
===========  =======================================================  ========  ==================  ==================
d2-net       ``scene_info/<scene>.0.npz``, ``scenes.txt``,            ½         world to camera     directed matrix
             ``images/…jpg``, ``depths/…h5``
loftr        ``scene_info/<scene>_<lo>_<hi>.npz``, ``scenes.txt``,    integers  world to camera     each once
             ``images/…jpg``, ``depths/…h5``
dust3r       ``all_metadata.npz``, ``<scene>/0/….jpg``, ``.exr``      integers  camera to world     each once
             and ``.npz``
superglue    ``pairs.txt`` (38 columns), ``images/…jpg``              integers  first to second     each once
hloc         ``pairs.txt`` (2 columns), and ``images/…jpg`` where     none      none                each once
             the dataset has no image files
===========  =======================================================  ========  ==================  ==================

*centres* says which coordinates the centre of the first pixel has in each layout, as its readers compute with them.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from setsup.checks import check_arguments, check_path
from setsup.correspondence.pair_files.choosing import Direction, ScenePairs, choose_pairs
from setsup.correspondence.pair_files.names import check_blanks, file_names, row_names, scene_names
from setsup.correspondence.pair_files.writers import LAYOUTS, Layout, LayoutName, MeasuredDataset, WrittenScene
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError, advice
from setsup.files.atomic import clear, written_folder
from setsup.progress import progress
from setsup.samplers.overlap.bands import check_bands
from setsup.samplers.overlap.table import OverlapTable

__all__ = ["PairFiles", "need_free", "write_pairs"]


class PairFiles(NamedTuple):
    """What :func:`write_pairs` wrote.

    Attributes
    ----------
    folder : Path
        The folder.
    scenes, views, pairs : int
        Numbers of the scenes, of the views in a pair, and of the pairs; in D2-Net's layout, of the ordered pairs.

    """

    folder: Path
    scenes: int
    views: int
    pairs: int


def write_pairs(
    dataset: Dataset,
    table: OverlapTable,
    folder: Path | str,
    layout: LayoutName,
    *,
    overlap: tuple[float, float],
    angle: tuple[float, float] | None = None,
    scale: tuple[float, float] | None = None,
    direction: Direction = "either",
    where: str | None = None,
) -> PairFiles:
    """Write pairs of views in a layout that another project reads: lists of pairs, images, depth and cameras.

    Parameters
    ----------
    dataset : Dataset
        The one whose overlaps were measured. Layouts other than ``"hloc"`` need the modality ``image`` and cameras: the
        method ``camera(row)``, or the modalities ``pose`` and ``intrinsics``. ``"d2-net"``, ``"loftr"`` and
        ``"dust3r"`` also need ``depth``.
    table : OverlapTable
        From :func:`setsup.correspondence.overlap`.
    folder : Path or str
        A new or an empty folder. It appears when all is written.
    layout : str
        ``"d2-net"``, ``"loftr"``, ``"dust3r"`` (of its MegaDepth), ``"superglue"`` or ``"hloc"``; the files are listed
        above.
    overlap, angle, scale : (low, high)
        Closed bands of the pairs: shares from 0 to 1, degrees, and ratios. Pairs whose value is unknown are left out.
    direction : str
        A pair has two directions. ``"either"``: it is written if one of them is in all bands; ``"both"``: if both are.
        Lists contain it once, in the direction of the larger overlap of those in the bands.
    where : str, optional
        Expression over factors: the views that are written, such as ``"split == 'train'"``.

    Returns
    -------
    PairFiles
        The numbers of scenes, views and pairs.

    Raises
    ------
    SetsupError
        When the table is that of another dataset, no pair is in the bands, a modality is missing, sizes of an image,
        its depth and its camera differ, a name contains a blank or cannot be that of a file, or the folder is not
        empty.

    Notes
    -----
    Images are written as JPEG of quality 95 as the dataset returns them, so that cameras fit; in front of black where
    they have alpha. Depth is along the optical axis, in the unit of the dataset, and 0 where it is unknown.

    The matrices of ``"d2-net"`` contain −1 where the overlap is unknown, outside a band, or was not measured, and 0
    where it is known to be 0, if that is in the band and there is no other one. Its 3D points are those of a COLMAP
    model that two views observe; otherwise they are sample pixels, with at most 32 common points for each ordered pair.
    ``fact_x`` and ``fact_y`` are 1, because points are in the pixels of the images that are written.

    LoFTR's reader deletes a key of what it loads, which only a pickled dict allows: the file is a pickle, although its
    name ends in ``.npz``. setsup never reads it; load such a file only if you trust its author. LoFTR's list omits
    pairs with an overlap of 0.

    Examples
    --------
    >>> import tempfile
    >>> from setsup.correspondence import overlap
    >>> from setsup.rendered.dataset import RenderedDataset
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = RenderedDataset(Shapes3D(size=(32, 32)))
    >>> table = overlap(shapes, rows=range(6))
    >>> written = write_pairs(shapes, table, Path(tempfile.mkdtemp()) / "pairs", "superglue", overlap=(0.5, 1))
    >>> written.pairs, len((written.folder / "pairs.txt").read_text().splitlines()[0].split())
    (15, 38)

    """
    check_arguments(write_pairs, locals(), DataError)
    bands = check_bands(overlap, angle, scale)
    table.check_dataset(dataset.factors)
    path = check_path(folder, "folder", DataError)
    need_free(path)
    kept = None if where is None else dataset.factors.mask(where)
    form = LAYOUTS[layout]
    chosen = choose_pairs(table, bands, direction, kept, once=not form.directed, zeros=form.zeros)
    if not chosen:
        wider = advice("overlap=(0, 1)", "--overlap 0-1")
        raise DataError(
            f"none of the {len(table):,} measured pairs of {dataset.name} is in the bands; choose wider ones, such as "
            f"{wider}"
        )
    source = MeasuredDataset(dataset, table, bands)
    scenes = _scenes(source, chosen, form)
    views = sum(len(scene.pairs.views) for scene in scenes)
    clear(path)
    with progress(views, "writing views", "views") as advance, written_folder(path) as part:
        form.write(part, source, scenes, advance)
    return PairFiles(path, len(scenes), views, sum(len(scene.pairs.pairs) for scene in scenes))


def need_free(folder: Path) -> None:
    """Refuse a folder that is not empty, before long work for it."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; pass a new folder")
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty; pass a new folder, or remove it first")


def _scenes(source: MeasuredDataset, chosen: list[ScenePairs], form: Layout) -> list[WrittenScene]:
    """Scenes with their names and those of their images."""
    dataset, table, _ = source
    names = scene_names(
        dataset, table.about["settings"]["scene"], [one.scene for one in chosen], [int(one.views[0]) for one in chosen]
    )
    if not form.blanks:
        check_blanks(names, "the scene")
    scenes = []
    for name, pairs in zip(names, chosen, strict=True):
        images, overlaps = row_names(pairs.views, len(dataset.factors)), np.asarray(table.overlap[pairs.places])
        files = file_names(dataset, pairs.views) if form.own_files else None
        if files is not None:
            check_blanks(files, "the image")
        scenes.append(WrittenScene(name, pairs, overlaps, images if files is None else files, files is not None))
    return scenes
