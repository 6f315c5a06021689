"""Export a rendered dataset to files that other projects read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from setsup.checks import check_arguments, check_integer, check_path
from setsup.errors import DataError, advice
from setsup.exports.layouts import LAYOUTS, Export, LayoutName
from setsup.exports.scene_rows import need_frames
from setsup.files.atomic import clear, written_folder
from setsup.files.expand_user import expanded
from setsup.progress import progress
from setsup.scenes.recipes.models import Model

__all__ = ["Exported", "export_renders", "need_free"]


class Exported(NamedTuple):
    """What :func:`export_renders` wrote.

    Attributes
    ----------
    folder : Path
        The folder.
    rows : int
        Number of rows.
    files : int
        Number of files.

    """

    folder: Path
    rows: int
    files: int


def export_renders(
    dataset: Any,
    folder: Path | str,
    layout: LayoutName,
    *,
    scene: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    models: Mapping[str, Model] | None = None,
    points: int = 256,
    seed: int = 0,
) -> Exported:
    """Write a rendered dataset in a layout that other projects read.

    ==============  ======================================================  ============================================
    layout          modalities                                              files
    ==============  ======================================================  ============================================
    ``coco``        ``image``, ``instances``; ``mask`` for amodal masks     ``annotations.json``, ``images``
    ``bop``         ``image``, ``depth``, ``instances``, ``object_poses``;  ``train/<scene>``, ``models``,
                    ``mask`` for ``mask`` and ``scene_gt_info.json``        ``object_names.json``
    ``transforms``  ``image``; ``depth`` is optional                        ``<scene>/transforms.json``, images and
                                                                            depth
    ``tap-vid``     ``image``, ``depth``, ``instances``, ``object_poses``   ``tapvid.pkl``, ``<video>.npz``
    ``sintel``      ``image``, ``exact_flow``, ``flow_status``              ``training/clean``, ``flow`` (``.flo``),
                                                                            ``occlusions``
    ``kitti``       ``image``, ``exact_flow``, ``flow_status``              ``training/image_2``, ``flow_occ``,
                                                                            ``flow_noc``
    ==============  ======================================================  ============================================

    Parameters
    ----------
    dataset : RenderedFolder or RenderedDataset
        The renders: a folder that :func:`setsup.open` opened, or a dataset that renders now.
    folder : Path or str
        A new or an empty folder. It appears when all is written.
    layout : str
        A name of the table.
    scene : sequence of str, optional
        Factors in which the views of a scene, or the frames of a video, agree; by default those of the rendering.
    names : sequence of str, optional
        Names of the instances that ``coco`` and ``bop`` annotate, such as ``["chair", "table"]``; all by default.
    models : mapping of str to Model, optional
        For ``bop``, meshes by the names of instances, in metres, in the frames of ``object_poses``: a Mesh, a file, or
        a function that gives one. :func:`setsup.exports.bop.object_model` gives those of the recipe ``object``.
    points : int
        For ``tap-vid``, the number of tracks of each video.
    seed : int
        Seed of the points that are tracked.

    Returns
    -------
    Exported

    Raises
    ------
    SetsupError
        When the dataset lacks a modality, a factor or a frame that the layout needs, or instances of a name, a camera
        has a skew that the layout cannot express, or the folder is not empty.

    Notes
    -----
    Images are PNG files. Those with alpha are put in front of black, but for ``transforms``, which keeps it.
    ``docs/exports.md`` says what each file contains, and which conventions it follows.

    Examples
    --------
    >>> import json, tempfile
    >>> from setsup.rendered.dataset import RenderedDataset
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = RenderedDataset(Shapes3D(size=(16, 16)), renderer="embree").select(range(3))
    >>> cubes = RenderedDataset(shapes.source.recipe, shapes.factors, "embree")
    >>> folder = export_renders(cubes, Path(tempfile.mkdtemp()) / "coco", "coco").folder
    >>> content = json.loads((folder / "annotations.json").read_text())
    >>> len(content["images"]), [category["name"] for category in content["categories"]]
    (3, ['cube', 'floor', 'wall'])

    """
    check_arguments(export_renders, locals(), DataError)
    check_integer(points, "points", DataError, 1)
    path = expanded(check_path(folder, "folder", DataError)).absolute()
    need_free(path)
    if not hasattr(dataset, "camera") or not hasattr(dataset, "names"):
        raise DataError(
            f"the dataset to export must be a rendered dataset or a folder of `setsup render`, not a "
            f"{type(dataset).__name__}"
        )
    form = LAYOUTS[layout]
    if form.videos:
        need_frames(dataset, layout, form.needs)
    lacking = [name for name in form.needs if name not in dataset.modalities]
    if lacking:
        raise DataError(
            f"{dataset.name} lacks {', '.join(lacking)}, which the layout {layout} needs; render with "
            + advice(f"modalities={list(form.needs)}", f"--modalities {' '.join(form.needs)}")
        )
    export = Export(dataset, scene, names, {} if models is None else models, points, seed)
    rows = len(dataset.factors)
    clear(path)
    with progress(rows, f"exporting to {layout}", "images") as advance, written_folder(path) as part:
        form.write(part, export, advance)
    return Exported(path, rows, sum(file.is_file() for file in path.rglob("*")))


def need_free(folder: Path) -> None:
    """Refuse a folder that is not empty, before long work for it."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; pass a new folder")
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty; pass a new folder, or remove it first")
