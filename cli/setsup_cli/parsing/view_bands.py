"""What help says of bands of the overlap, angle and scale of pairs of views, and of their direction."""

__all__ = ["ANGLE", "DIRECTION", "SCALE"]

ANGLE = "band of the angle between the two views of a pair, in degrees."
SCALE = "band of the ratio of scales of a pair, which is above 1 if the second view shows the surface more coarsely."
DIRECTION = "directions in which a pair of views must lie in the bands:"
"""Begins a sentence that lists the directions."""
