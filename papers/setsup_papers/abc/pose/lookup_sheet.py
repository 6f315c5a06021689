"""Images of what is looked up for some photographs, as figure 6 of ABC."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from setsup.arrays import Reals, Rows
from setsup.errors import DataError
from setsup.experiments.data import image_modality
from setsup_papers.abc.pose.rotations import euler_from_rotation, geodesic_error

if TYPE_CHECKING:
    from PIL.Image import Image

    from setsup.datasets import Dataset

__all__ = ["angle_words", "draw_lookup"]


def draw_lookup(
    photographs: "Dataset",
    queries: Rows,
    truth: Reals | None,
    renderings: "Dataset",
    found: Rows,
    poses: Reals,
    labels: Sequence[str] = (),
    title: str = "Photographs and their nearest renderings\nBy the cosine of embeddings",
) -> "Image":
    """A row for each photograph: it, framed, and its nearest renderings.

    Parameters
    ----------
    photographs, queries : Dataset, (q,) int64
        The images and which of them.
    truth : (q, 3, 3) float, optional
        Their rotations: then labels tell the error of the nearest rendering.
    renderings, found : Dataset, (q, k) int64
        The codebook, and the rows that were found, nearest first.
    poses : (q, k, 3, 3) float
        Their rotations.
    labels : (q,) str
        Put in front of what labels tell, such as names of files.
    title : str
        Of the sheet.

    Returns
    -------
    RGB image

    """
    from setsup.reports import image_grid

    if not len(queries):
        raise DataError("queries must contain at least one photograph")
    ahead = list(labels) or [""] * len(queries)
    lines = []
    for at, word in enumerate(ahead):
        about_pose = angle_words(poses[at, 0])
        if truth is not None:
            about_pose = f"{angle_words(truth[at])}\nerror {float(geodesic_error(poses[at, 0], truth[at])):.0f}°"
        lines.append("\n".join(filter(None, (word, about_pose))))
    name, other = image_modality(photographs), image_modality(renderings)
    asked = list(photographs.fetch(queries, [name])[name])
    shown = renderings.fetch(found, [other])[other]
    heads = ["nearest", *(f"{rank}." for rank in range(2, found.shape[1] + 1))]
    return image_grid(list(shown), lines, heads, title, queries=asked)


def angle_words(rotation: Reals) -> str:
    """Azimuth and elevation of a rotation, in words."""
    azimuth, elevation, _ = euler_from_rotation(rotation)
    return f"azimuth {float(azimuth):.0f}°, elevation {float(elevation):.0f}°"
