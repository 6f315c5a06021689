"""What was measured of the pairs of views that a sampler draws by overlap, in few words."""

import numpy as np

from setsup.arrays import Floats
from setsup.samplers.draw import Draw
from setsup.samplers.overlap.set_pairs import pair_positions
from setsup.samplers.overlaps import OverlapSampler

__all__ = ["describe_overlaps"]

_SHOWN = 6  # overlaps of a set


def describe_overlaps(sampler: OverlapSampler, draw: Draw, most: int | None = None) -> list[str]:
    """Say how much the views of each set of one step overlap, and of pairs also angle and scale.

    These are the pairs of :func:`setsup.correspondence.pair_positions`, up to six; in parentheses, the overlap in the
    other direction.

    Examples
    --------
    >>> import setsup
    >>> from setsup.correspondence import overlap
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = setsup.RenderedDataset(Shapes3D(size=(32, 32)))
    >>> pairs = setsup.OverlapSampler(shapes.factors, overlap(shapes, rows=range(15)), overlap=(0.3, 0.8))
    >>> describe_overlaps(pairs, pairs[0], 1)[0].partition(" ")[0]
    'overlap'

    """
    table = sampler.overlaps
    members = draw.indices[:most, : sampler.size]
    first, second = np.moveaxis(members[:, pair_positions(sampler.size, sampler.arguments["form"])], -1, 0)
    there, back = table.find(first, second), table.find(second, first)
    words = []
    for one, other in zip(there, back, strict=True):
        overlaps = [
            f"{_overlap(table.overlap, int(a))} ({_overlap(table.overlap, int(b))})"
            for a, b in zip(one[:_SHOWN], other[:_SHOWN], strict=True)
        ]
        text = f"overlap {', '.join(overlaps)}{', …' if len(one) > _SHOWN else ''}"
        if sampler.size == 2 and one[0] >= 0 and not np.isnan(table.angle[one[0]]):
            text += f", angle {table.angle[one[0]]:.0f}°, scale {table.scale[one[0]]:.2f}"
        words.append(text)
    return words


def _overlap(overlaps: Floats, number: int) -> str:
    return "not tried" if number < 0 else "unknown" if np.isnan(overlaps[number]) else f"{overlaps[number]:.2f}"
