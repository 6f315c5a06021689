"""Poses of objects in photographs, by the nearest renderings in a codebook."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from setsup.arrays import Reals, Rows
from setsup.errors import DataError, SetsupError
from setsup.experiments.trained_run import TrainedRun
from setsup_papers.abc.pose.measures import disagreement
from setsup_papers.abc.pose.photographs import CutRenderings
from setsup_papers.abc.pose.poses import known_poses

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["PoseEstimates", "estimate_poses", "image_size"]


@dataclass(frozen=True, slots=True)
class PoseEstimates:
    """Nearest renderings of photographs; made by :func:`estimate_poses`.

    Attributes
    ----------
    rows : (n, k) int64
        Of the codebook, nearest first.
    rotations : (n, k, 3, 3) float64
        Their rotations; the first is the estimate.
    cosines : (n, k) float64
        Between their embeddings and the photograph's.

    """

    rows: Rows
    rotations: Reals
    cosines: Reals

    @property
    def disagreement(self) -> Reals:
        """Mean angle between all pairs of these rotations, (n,) float64, degrees."""
        return disagreement(self.rotations)


def estimate_poses(
    trained: TrainedRun,
    photographs: "Dataset",
    codebook: "Dataset",
    nearest: int = 5,
    *,
    size: tuple[int, int] | None = None,
    embedding: str | None = None,
) -> PoseEstimates:
    """Estimate the pose of the object in each photograph.

    Parameters
    ----------
    trained : TrainedRun
        Whose embeddings are compared, by their cosine.
    photographs : Dataset
        Cut to the object, as of :func:`~setsup_papers.abc.pose.photographs.open_photographs`.
    codebook : Dataset
        Renderings with poses, as :func:`~setsup_papers.abc.pose.poses.read_rotations` reads them. They are cut to
        what is not transparent; those without a known pose are left out.
    nearest : int
        k, at most all.
    size : (height, width), optional
        Of the renderings that are embedded; that of :func:`image_size` by default.
    embedding : str, optional
        Name of the embedding, if the method has several.

    Returns
    -------
    PoseEstimates

    Raises
    ------
    DataError
        When the codebook has no poses, or an image cannot be read.
    SetsupError
        When the method cannot embed such images, or gives no vectors.

    Examples
    --------
    A method that embeds an image as its pixels, which show the pose:

    >>> import numpy as np
    >>> import setsup
    >>> from pathlib import Path
    >>> from lightning.pytorch import LightningModule
    >>> class Pixels(LightningModule):
    ...     def embed(self, batch):
    ...         return batch["image"].float().flatten(2)
    >>> images = np.random.default_rng(0).integers(0, 256, (4, 6, 6, 3), dtype=np.uint8)
    >>> angles = {"azimuth": [0.0, 90.0, 180.0, 270.0], "elevation": [10.0] * 4}
    >>> renderings = setsup.from_arrays(images, angles, name="renderings")
    >>> photographs = setsup.from_arrays(images[[2]], {"file": ["a.jpg"]}, name="photographs")
    >>> trained = TrainedRun("mine/pixels", Pixels(), seed=0, folder=Path("run"), table=renderings.factors)
    >>> found = estimate_poses(trained, photographs, renderings, nearest=2)
    >>> int(found.rows[0, 0]), float(found.cosines[0, 0].round(6))
    (2, 1.0)

    """
    from setsup.evaluation.retrieval import nearest as nearest_rows

    pool, poses = known_poses(codebook, "rendering")
    cut = CutRenderings(codebook, pool, size or image_size(trained, codebook))
    # photographs first: what is wrong with one is said before many renderings are embedded
    asked, known = (trained.embed_vectors(images, name=embedding) for images in (photographs, cut))
    if asked.shape[1] != known.shape[1]:
        raise SetsupError(
            f"embeddings of photographs and renderings must have the same length, not {asked.shape[1]} and "
            f"{known.shape[1]}; train on images of one size"
        )
    nearest_numbers, distances = nearest_rows(asked, known, min(nearest, len(pool)), metric="cosine")
    return PoseEstimates(pool[nearest_numbers], poses[nearest_numbers], 1 - distances)


def image_size(trained: TrainedRun, codebook: "Dataset") -> tuple[int, int]:
    """Height and width of the images that a run's method takes: of its preset, or else those of a codebook."""
    from setsup.experiments.data import image_modality

    for settings, name in ((trained.eval_transform, "size"), (trained.augmentation, "size"), (trained.config, "image")):
        size = getattr(settings, name, None)
        if isinstance(size, int):
            return size, size
        if isinstance(size, tuple | list) and len(size) >= 2:
            return int(size[-2]), int(size[-1])
    height, width = codebook.modalities[image_modality(codebook)].shape[:2]
    if height is None or width is None:
        raise DataError(
            f"the images of {codebook.name} differ in size; resize them, for example with --option size=128,128"
        )
    return int(height), int(width)
