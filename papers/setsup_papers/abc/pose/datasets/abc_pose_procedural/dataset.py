"""The rendered files as a dataset, with the factors and modalities of ``abc-pose``."""

import json
from pathlib import Path

import numpy as np

from setsup.arrays import Array, Pixels, Rows
from setsup.datasets.adapters.substitutes import find_substitute, place_substitute
from setsup.datasets.base import BaseDataset
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.npy import read_npy
from setsup.errors import DamagedFile
from setsup.factors.table import FactorTable
from setsup.files.mapped import check_mapped
from setsup_papers.abc.pose.datasets.abc_pose.factors import Part, compute_rotations, pose_table
from setsup_papers.abc.pose.datasets.abc_pose_procedural.writing import (
    BACKGROUNDS,
    IMAGES,
    LAST,
    POSES,
    Block,
    Counts,
    first_rows,
    mesh_files,
    write_views,
)

__all__ = ["ProceduralPose", "open", "prepare"]

_NAME = "abc-pose-procedural"


class ProceduralPose(BaseDataset):
    """Made-up cars and chairs in place of the images of ABC's pose experiment.

    Factors and modalities are those of :class:`~setsup_papers.abc.pose.datasets.abc_pose.dataset.AbcPose`. Renderings
    are evenly lit and transparent around the object. Images of the real domain show other models, under lamps and skies
    of random colours, before backdrops, from near, with noise and the artefacts of JPEG; where they are for training,
    neither pose nor object is in the table.

    Parameters
    ----------
    folder : Path
        That :func:`prepare` rendered to.

    Raises
    ------
    DamagedFile
        When its files do not belong together.

    """

    name = _NAME

    def __init__(self, folder: Path) -> None:
        blocks = [Block(**block_fields) for block_fields in json.loads((folder / LAST).read_text("utf-8"))]
        rows = sum(block.images for block in blocks)
        self._images, poses, self._pool = (read_npy(folder / name) for name in (IMAGES, POSES, BACKGROUNDS))
        if len(self._images) != rows or len(poses) != rows:
            raise DamagedFile(
                f"{folder} contains {len(self._images):,} images and {len(poses):,} poses, but {rows:,} images were "
                "rendered; render the folder again"
            )
        self._source = folder
        self.factors = _table(blocks, np.asarray(poses))
        self.modalities = {
            "image": Modality(self._images.shape[1:], "uint8", color="srgb"),
            "rotation": Modality((3, 3), "float32"),
        }

    def backgrounds(self, count: int, side: int) -> Pixels:
        """Images for what lies behind renderings: photographs that scikit-image ships, and textures.

        `count` is how many at most, `side` the pixels that each side has at least; images are twice as large as the
        box, unless `side` is larger. Returns (k, height, width, 3) uint8.
        """
        images = np.array(self._pool[:count])
        if min(images.shape[1:3]) < side:
            from setsup.datasets.images import resize

            images = np.stack([resize(image, (side, side)) for image in images])
        return images

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        if name == "image":
            check_mapped(self._images)
            return gather(self._images, rows, out)
        return compute_rotations(self.factors, rows)


def _table(blocks: list[Block], poses: Array) -> FactorTable:
    """Table of the blocks; what training must not see of real images is unknown."""
    names: dict[str, int] = {}
    parts = []
    for block, start in zip(blocks, first_rows(blocks), strict=True):
        known = block.source == "rendering"
        code = names.setdefault(block.title, len(names)) if known else -1
        pose = poses[start : start + block.images]
        seen = pose if known or block.split == "test" else np.full_like(pose, np.nan)
        parts.append(Part(block.category, block.source, block.split, np.full(block.images, code), seen))
    return pose_table(parts, tuple(names))


def open(root: Path | str | None = None) -> ProceduralPose:
    """Open abc-pose-procedural.

    Parameters
    ----------
    root : Path, str or None
        Folder that :func:`prepare` rendered to, or one around it; None for the usual places.

    Raises
    ------
    DataError
        When nothing was rendered there, with the command that does.

    """
    return ProceduralPose(find_substitute(_NAME, root, LAST))


def prepare(
    root: Path | str | None = None,
    models: int = 80,
    codebook: int = 30,
    views: int = 100,
    real: int = 2000,
    tests: int = 400,
    size: int = 64,
    cars: Path | str | None = None,
    chairs: Path | str | None = None,
    seed: int = 0,
    processes: int = 1,
) -> list[Path]:
    """Render the models of both categories.

    An interrupted run resumes. The same options give the same files, with any number of processes. By default it takes
    some ten minutes of two cores, and 0.7 GB.

    Parameters
    ----------
    root : Path, str or None
        Folder of the files: new, empty, or left unfinished by an earlier call with the same options. None for the usual
        place.
    models : int
        Rendered models of each category for training, 1 to 9,999, as are all the following numbers.
    codebook : int
        Other models, of which codebooks are made.
    views : int
        Renderings of each of these models.
    real : int
        Images of the real domain of each category for training: ten of each of other models.
    tests : int
        Those for tests, twenty of each of yet other models.
    size : int
        Side of the object's box, pixels, 16 to 1,024. A tenth of it lies around the box, on each side.
    cars, chairs : Path or str, optional
        Folder of meshes of your own (``.obj``, ``.ply``, ``.off``, ``.stl``, ``.glb``, ``.gltf``), further training
        models of the category: y up, the front towards −z, as in ShapeNet.
    seed : int
        Another one gives other models and views.
    processes : int
        Worker processes.

    Returns
    -------
    list of Path
        The folder.

    Raises
    ------
    DataError
        A number is out of its range, the folder holds something else, a mesh cannot be read, a library is missing, or
        the disk is full.

    """
    counts = Counts(models, codebook, views, real, tests, size)
    folder = place_substitute(_NAME, root)
    meshes = {"car": mesh_files(cars, "cars"), "chair": mesh_files(chairs, "chairs")}
    write_views(folder, counts, meshes, seed=seed, processes=processes)
    return [folder]
