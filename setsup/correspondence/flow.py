"""Motion of pixels between frames of a moving scene: optical flow, scene flow and tracks, exact as :func:`.spatial`.

A frame is a scene and a camera at a time. The ray through a pixel meets a point of a placement. The pose of the
placement at another time gives the point's position there; this is projected, and tested for visibility by the rules of
:mod:`setsup.correspondence.spatial`.

Convention
----------
The content of frame 1 at pixel (x, y) is at (x + u, y + v) in frame 2: u to the right, v down, in pixels, also beyond
the image. Flow is NaN where there is no surface, or the point is behind the other camera.

References
----------
.. [1] S. Vedula et al., "Three-dimensional scene flow", ICCV 1999.
.. [2] C. Doersch et al., "TAP-Vid: A benchmark for tracking any point in a video", NeurIPS 2022.

"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats, Reals
from setsup.checks import check_arguments, check_integer
from setsup.correspondence.pixel_pairs import NO_SURFACE, check_pixels
from setsup.correspondence.spatial_tracing import Traced, trace
from setsup.errors import DataError, SetsupError
from setsup.scenes.camera import Camera
from setsup.scenes.scene import Scene

__all__ = ["displacement", "flow", "flow_of", "scene_flow", "scene_tracks", "tracks_of"]

Statuses = npt.NDArray[np.uint8]


def flow(scene1: Scene, camera1: Camera, scene2: Scene, camera2: Camera) -> tuple[Floats, Statuses]:
    """Optical flow of all pixels of a frame to another frame.

    Parameters
    ----------
    scene1, scene2 : Scene
        One scene at two times: the same placements, meshes and scales, such as :func:`setsup.scenes.moved` makes. They
        may be the same scene, where only the camera moves.
    camera1, camera2 : Camera
        Cameras of the two frames.

    Returns
    -------
    flow : (H, W, 2) float32, pixels
        (u, v); NaN where there is no surface or the point is behind camera 2.
    status : (H, W) uint8
        A :class:`~setsup.correspondence.Status` for each pixel: whether frame 2 shows the point.

    Raises
    ------
    SetsupError
        If the two scenes have different placements.

    Examples
    --------
    >>> from setsup.scenes import Mesh, Placement, Velocity, moved
    >>> wall = Placement(Mesh([[-9, 4, -9], [9, 4, -9], [0, 4, 9]], [[0, 1, 2]]))
    >>> scene = Scene((wall,))
    >>> camera = Camera.look_at((0, 0, 0), (0, 4, 0), height=48, width=64, focal_length=60)
    >>> later = moved(scene, {0: Velocity(linear=(0.4, 0, 0.2))}, 1.0)
    >>> field, status = flow(scene, camera, later, camera)
    >>> field[24, 32].round(4).tolist(), int(status[24, 32]), field.shape
    ([6.0, -3.0], 0, (48, 64, 2))

    """
    check_arguments(flow, locals(), DataError)
    return flow_of(trace(scene1, camera1, camera1.pixels()), scene2, camera2)


def scene_flow(scene1: Scene, camera1: Camera, scene2: Scene) -> Floats:
    """Scene flow of all pixels of a frame: how far the point that a pixel shows moves until another time.

    Parameters
    ----------
    scene1, scene2 : Scene
        One scene at two times, as for :func:`flow`.
    camera1 : Camera
        Camera of the first frame.

    Returns
    -------
    (H, W, 3) float32, metres
        Displacement in the world, 0 where nothing moves, along the axes of camera 1: x right, y down, z forward. A
        pixel's point in the frame of camera 1 plus this is the moved point in the frame of camera 1. NaN where there is
        no surface.

    Raises
    ------
    SetsupError
        If the two scenes have different placements.

    Examples
    --------
    >>> from setsup.scenes import Mesh, Placement, Velocity, moved
    >>> scene = Scene((Placement(Mesh([[-9, 4, -9], [9, 4, -9], [0, 4, 9]], [[0, 1, 2]])),))
    >>> camera = Camera.look_at((0, 0, 0), (0, 4, 0), height=48, width=64, focal_length=60)
    >>> later = moved(scene, {0: Velocity(linear=(0.5, 1, 0.25))}, 1.0)
    >>> scene_flow(scene, camera, later)[24, 32].tolist()
    [0.5, -0.25, 1.0]

    """
    check_arguments(scene_flow, locals(), DataError)
    return displacement(trace(scene1, camera1, camera1.pixels()), scene2)


def scene_tracks(
    scenes: Sequence[Scene], cameras: Sequence[Camera], pixels: npt.ArrayLike, frame: int = 0
) -> tuple[Reals, Statuses]:
    """Follow pixels of a frame through all frames.

    Parameters
    ----------
    scenes : sequence of Scene
        One scene at T times, as for :func:`flow`.
    cameras : sequence of Camera
        Camera of each frame.
    pixels : (N, 2) float
        Pixels (x, y) of the query frame, whole or not.
    frame : int
        Number of the query frame.

    Returns
    -------
    points : (N, T, 2) float64, pixels
        Where each point falls in each frame, also beyond the image; NaN where it is behind the camera, and in all
        frames for pixels without a surface.
    status : (N, T) uint8
        A :class:`~setsup.correspondence.Status` each; NO_SURFACE in all frames for pixels without a surface.

    Raises
    ------
    SetsupError
        If the numbers of scenes and cameras differ, there is no such frame, pixels are not (N, 2) finite numbers, or
        the scenes have different placements.

    Notes
    -----
    TAP-Vid [2]_ marks points as occluded where they are not visible: ``status != Status.VISIBLE``.

    Examples
    --------
    >>> from setsup.scenes import Mesh, Placement, Velocity, moved
    >>> wall = Scene((Placement(Mesh([[-9, 4, -9], [9, 4, -9], [0, 4, 9]], [[0, 1, 2]])),))
    >>> camera = Camera.look_at((0, 0, 0), (0, 4, 0), height=48, width=64, focal_length=60)
    >>> scenes = [moved(wall, {0: Velocity(linear=(1, 0, 0))}, time) for time in range(4)]
    >>> points, status = scene_tracks(scenes, [camera] * 4, [[2, 23.5]])
    >>> points[0].round(6).tolist(), status.tolist()
    ([[2.0, 23.5], [17.0, 23.5], [32.0, 23.5], [47.0, 23.5]], [[0, 0, 0, 0]])

    """
    check_arguments(scene_tracks, locals(), DataError)
    if len(scenes) != len(cameras):
        raise SetsupError(
            f"scene_tracks requires a camera for each scene, but there are {len(scenes)} scenes and {len(cameras)} "
            "cameras"
        )
    if not len(scenes):
        raise SetsupError("scene_tracks requires at least one frame, but there are no scenes")
    query = check_integer(frame, "frame", SetsupError, 0, len(scenes) - 1)
    at = check_pixels(pixels)
    return tracks_of(trace(scenes[query], cameras[query], at), at, zip(scenes, cameras, strict=True), query)


def tracks_of(
    traced: Traced, pixels: Reals, frames: Iterable[tuple[Scene, Camera]], query: int
) -> tuple[Reals, Statuses]:
    """Tracks of pixels (n, 2) that were traced in one of some frames; see :func:`scene_tracks`.

    Frames may come one by one: what is made of a scene is then given back before the next.
    """
    found = [traced.seen(scene, camera) for scene, camera in frames]
    points, status = (np.stack(arrays, axis=1) for arrays in zip(*found, strict=True))
    points[:, query] = np.where((status[:, query] == NO_SURFACE)[:, None], np.nan, pixels)
    return points, status


def flow_of(traced: Traced, scene: Scene, camera: Camera) -> tuple[Floats, Statuses]:
    """Flow of all pixels of a camera, which were traced row after row, to another frame; see :func:`flow`."""
    points, status = traced.seen(scene, camera)
    own = traced.camera
    moves = np.subtract(points, own.pixels()).astype(np.float32)
    return moves.reshape(own.height, own.width, 2), status.reshape(own.height, own.width)


def displacement(traced: Traced, scene: Scene) -> Floats:
    """Scene flow of all pixels of a camera, which were traced row after row; see :func:`scene_flow`."""
    own = traced.camera
    moves = (traced.carried(scene) - traced.xyz) @ own.rotation.T
    return moves.astype(np.float32).reshape(own.height, own.width, 3)
