"""Pinhole cameras, in the one convention of all images that setsup draws or matches.

Convention
----------
Camera frame: x to the right, y down, z forward (as OpenCV has it). A world point X stands at ``R X + t`` in the
camera's frame, in metres. Pixels are (x, y) with centres at integers, row 0 at the top: an image of W × H pixels
covers −½ … W − ½ and −½ … H − ½. Depth is the z coordinate in the camera's frame, not the distance.

References
----------
.. [1] R. Hartley, A. Zisserman, "Multiple View Geometry in Computer Vision", 2nd edition, 2004, section 6.1.

"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_integer, check_number
from setsup.errors import SetsupError, abbreviate
from setsup.scenes.checks import check_numbers, check_rotation
from setsup.scenes.portable import length, product, sin_cos

__all__ = ["Camera"]


_LARGEST = 1 << 15  # pixels a side


@dataclass(frozen=True, slots=True, eq=False)
class Camera:
    """A pinhole camera: its position, its orientation, and how it maps points to pixels.

    Parameters
    ----------
    height, width : int
        Pixels of its images.
    k : (3, 3) float64
        Intrinsics in pixels: ``(x, y, 1) ~ k · (X, Y, Z)`` for a point of the camera's frame; last row 0, 0, 1.
    rotation : (3, 3) float64
        R, from the world to the camera's frame; a rotation.
    translation : (3,) float64, metres
        t.

    Raises
    ------
    SetsupError
        When a shape is wrong, a number is not finite, ``k`` is singular or ``rotation`` is none.

    Examples
    --------
    >>> camera = Camera.look_at(eye=(0, -2, 1), target=(0, 0, 1), height=48, width=64, field_of_view=math.radians(60))
    >>> pixels, depth = camera.project([[0, 0, 1], [0, 3, 1]])
    >>> pixels.round(6).tolist(), depth.tolist()
    ([[31.5, 23.5], [31.5, 23.5]], [2.0, 5.0])

    """

    height: int
    width: int
    k: Reals
    rotation: Reals
    translation: Reals

    def __post_init__(self) -> None:
        """Check the numbers, and keep them as read-only float64."""
        for name in ("height", "width"):
            side = check_integer(getattr(self, name), f"{name} of a camera", SetsupError, 1, _LARGEST)
            object.__setattr__(self, name, side)
        object.__setattr__(self, "k", check_numbers(self.k, (3, 3), "k of a camera"))
        object.__setattr__(self, "rotation", check_rotation(self.rotation, "rotation of a camera"))
        object.__setattr__(self, "translation", check_numbers(self.translation, (3,), "translation of a camera"))
        if abs(np.linalg.det(self.k)) < 1e-12 or self.k[2].tolist() != [0, 0, 1] or self.k[1, 0] != 0:
            raise SetsupError(
                f"k of a camera must be an invertible matrix (f s x; 0 f y; 0 0 1), not {self.k.tolist()}"
            )

    @classmethod
    def look_at(
        cls,
        eye: npt.ArrayLike,
        target: npt.ArrayLike,
        *,
        height: int,
        width: int,
        field_of_view: float | None = None,
        focal_length: float | None = None,
        up: npt.ArrayLike = (0, 0, 1),
    ) -> "Camera":
        """Place a camera so that ``target`` lies in the middle of its images.

        Parameters
        ----------
        eye, target : (3,) float, metres
            Where it stands and where it looks.
        height, width : int
            Pixels.
        field_of_view : float, radians
            Vertical, from edge to edge of the image; this or ``focal_length``.
        focal_length : float, pixels
            The same in both directions.
        up : (3,) float
            What is up in the image; where the camera looks along it, the y axis takes its place, then x.

        Raises
        ------
        SetsupError
            When eye and target coincide or are endlessly far apart, not exactly one of field of view and focal length
            is given, or it is out of its range.

        """
        start = check_numbers(eye, (3,), "eye of a camera")
        forward = check_numbers(target, (3,), "target of a camera") - start
        with np.errstate(over="ignore"):
            far = float(length(forward))
        if not 0 < far < math.inf:
            raise SetsupError(f"a camera at {start.tolist()} cannot look at its own position or at infinity")
        forward = forward / far
        ways = (check_numbers(up, (3,), "up of a camera"), (0, 1, 0), (1, 0, 0))
        right = next(side for side in (np.cross(forward, way) for way in ways) if length(side) > 1e-9)
        right = right / length(right)
        rotation = np.stack([right, np.cross(forward, right), forward])
        k = cls.intrinsics(height, width, field_of_view=field_of_view, focal_length=focal_length)
        return cls(height, width, k, rotation, product(start, -rotation.T))

    @staticmethod
    def intrinsics(
        height: int, width: int, *, field_of_view: float | None = None, focal_length: float | None = None
    ) -> Reals:
        """Intrinsics of a camera whose axis meets the middle of the image, (3, 3) float64.

        Parameters
        ----------
        height, width : int
            Pixels.
        field_of_view : float, radians
            Vertical, from edge to edge; this or ``focal_length``.
        focal_length : float, pixels
            The same in both directions.

        Raises
        ------
        SetsupError
            When not exactly one of the two is given, or it is out of its range.

        """
        if (field_of_view is None) == (focal_length is None):
            raise SetsupError("a camera requires either field_of_view (radians) or focal_length (pixels)")
        if field_of_view is not None:
            if not 0 < field_of_view < math.pi:
                raise SetsupError(f"field_of_view must be between 0 and π radians, not {abbreviate(field_of_view)}")
            sine, cosine = sin_cos(field_of_view / 2)
            focal = height / (2 * float(sine / cosine))
        elif focal_length is not None:
            focal = check_number(focal_length, "focal_length", SetsupError, positive=True)
        return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]])

    @property
    def centre(self) -> Reals:
        """Where the camera stands, (3,) float64, metres in the world."""
        return product(self.translation, -self.rotation)

    def project(self, points: npt.ArrayLike) -> tuple[Reals, Reals]:
        """Pixels on which points of the world fall.

        Parameters
        ----------
        points : (..., 3) float, metres
            World points.

        Returns
        -------
        pixels : (..., 2) float64
            (x, y); NaN for points that are not in front of the camera. They may lie outside the image.
        depth : (...) float64, metres
            z in the camera's frame, also where it is not positive.

        """
        at = np.asarray(np.asarray(points, dtype=np.float64) @ np.ascontiguousarray(self.rotation.T))
        for axis in range(3):  # column by column: to add three numbers to every row takes ten times as long
            at[..., axis] += self.translation[axis]
        depth = at[..., 2]
        front = np.where(depth > 0, depth, np.nan)
        x, y = at[..., 0] / front, at[..., 1] / front
        pixels = np.empty((*depth.shape, 2))
        pixels[..., 0] = self.k[0, 0] * x + self.k[0, 1] * y + self.k[0, 2]
        pixels[..., 1] = self.k[1, 1] * y + self.k[1, 2]
        return pixels, depth

    def rays(self, pixels: npt.ArrayLike | None = None) -> Reals:
        """Rays through pixels, of length 1 along the camera's axis: ``centre + z · ray`` is at depth z.

        Parameters
        ----------
        pixels : (..., 2) float, optional
            (x, y); by default the centres of all pixels, row after row.

        Returns
        -------
        (..., 3) float64, (height · width, 3) by default
            In the world's frame.

        """
        at = self.pixels() if pixels is None else np.asarray(pixels, dtype=np.float64)
        # k is upper triangular: its inverse by substitution is exact where the entries are
        down = (at[..., 1] - self.k[1, 2]) / self.k[1, 1]
        across = (at[..., 0] - self.k[0, 2] - self.k[0, 1] * down) / self.k[0, 0]
        return np.stack([across, down, np.ones_like(down)], axis=-1) @ self.rotation

    def pixels(self) -> Reals:
        """Centres of all pixels, (height · width, 2) float64 as (x, y), row after row."""
        y, x = np.mgrid[: self.height, : self.width]
        return np.stack([x.ravel(), y.ravel()], axis=-1).astype(np.float64)

    def windowed(self, left: float, top: float, height: int, width: int) -> "Camera":
        """Cut a window out of the images: pixel (left, top) becomes pixel (0, 0).

        Examples
        --------
        >>> camera = Camera.look_at((0, 0, 0), (0, 0, 1), height=64, width=64, focal_length=60, up=(0, -1, 0))
        >>> camera.windowed(16, 8, 32, 32).project([0, 0, 1])[0].tolist()
        [15.5, 23.5]

        """
        k = self.k - np.array([[0, 0, left], [0, 0, top], [0, 0, 0]])
        return replace(self, height=height, width=width, k=k)

    def resized(self, height: int, width: int) -> "Camera":
        """Scale the camera to another image size; −½ … width − ½ becomes −½ … new width − ½.

        Examples
        --------
        >>> camera = Camera.look_at((0, 0, 0), (0, 0, 1), height=64, width=64, focal_length=60, up=(0, -1, 0))
        >>> camera.resized(128, 128).k[0].tolist()
        [120.0, 0.0, 63.5]

        """
        across, down = width / self.width, height / self.height
        scale = np.array([[across, 0, across / 2 - 0.5], [0, down, down / 2 - 0.5], [0, 0, 1]])
        return replace(self, height=height, width=width, k=product(scale, self.k))

    def to_dict(self) -> dict[str, Any]:
        """Numbers and lists only, as JSON has them; :meth:`from_dict` reads them."""
        arrays = {name: getattr(self, name).tolist() for name in ("k", "rotation", "translation")}
        return {"height": self.height, "width": self.width, **arrays}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Camera":
        """Make a camera of what :meth:`to_dict` gave.

        Raises
        ------
        SetsupError
            When something is missing or no camera.

        """
        try:
            return cls(**{name: content[name] for name in ("height", "width", "k", "rotation", "translation")})
        except (KeyError, TypeError) as error:
            raise SetsupError(
                "a camera must be a mapping such as Camera.to_dict returns, not "
                f"{' '.join(repr(content).split())[:200]}"
            ) from error

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the numbers; whoever unpickles them gets read-only arrays again."""
        return Camera, (self.height, self.width, self.k, self.rotation, self.translation)

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are the same."""
        if not isinstance(other, Camera):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        """Agrees with ``==``."""
        return hash((self.height, self.width, self.k.tobytes(), self.rotation.tobytes(), self.translation.tobytes()))
