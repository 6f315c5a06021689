"""``transforms.json``: cameras as instant-ngp and nerfstudio read them.

Convention
----------
In the file, ``transform_matrix`` maps camera coordinates (x right, y up, z backward, as OpenGL has them) to the world,
and the centre of the first pixel is at (½, ½). Here cameras have x right, y down, z forward, and pixels have their
centres at integers.

References
----------
.. [1] T. Müller, A. Evans, C. Schied, A. Keller, "Instant Neural Graphics Primitives with a Multiresolution Hash
   Encoding", ACM Transactions on Graphics 41 (2022), and its documentation, ``docs/nerf_dataset_tips.md``.
.. [2] M. Tancik et al., "Nerfstudio: A Modular Framework for Neural Radiance Field Development", SIGGRAPH 2023, and its
   documentation, "Data conventions".

"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from setsup.errors import DataError
from setsup.scenes.camera import Camera

__all__ = ["frame_entry", "transforms"]

_HALF = 0.5
_LENS = ("fl_x", "fl_y", "cx", "cy", "w", "h")


def frame_entry(camera: Camera, path: str, depth: str | None, time: float | None) -> dict[str, Any]:
    """Entry of a frame: its files, its pose, and its lens.

    Raises
    ------
    DataError
        When the camera has a skew, which the format cannot express.

    """
    if camera.k[0, 1]:
        raise DataError(
            f"the camera of {path} has a skew of {camera.k[0, 1]:g} pixels, which transforms.json cannot express; "
            "leave out the row"
        )
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = camera.rotation.T * [1, -1, -1], camera.centre
    return {
        "file_path": path,
        **({} if depth is None else {"depth_file_path": depth}),
        **({} if time is None else {"time": time}),
        "fl_x": float(camera.k[0, 0]),
        "fl_y": float(camera.k[1, 1]),
        "cx": float(camera.k[0, 2]) + _HALF,
        "cy": float(camera.k[1, 2]) + _HALF,
        "w": camera.width,
        "h": camera.height,
        "transform_matrix": pose.tolist(),
    }


def transforms(frames: Sequence[dict[str, Any]], depth_scale: float | None) -> dict[str, Any]:
    """The file of some frames; a lens that all have is written once. `depth_scale` metres are a step of depth."""
    head: dict[str, Any] = {"camera_model": "OPENCV"}
    first = {key: frames[0][key] for key in _LENS}
    if all(all(frame[key] == first[key] for key in _LENS) for frame in frames):
        head |= first
        head["camera_angle_x"] = 2 * math.atan(first["w"] / (2 * first["fl_x"]))
        head["camera_angle_y"] = 2 * math.atan(first["h"] / (2 * first["fl_y"]))
        frames = [{key: value for key, value in frame.items() if key not in _LENS} for frame in frames]
    if depth_scale is not None:
        head["integer_depth_scale"] = depth_scale
    return {**head, "frames": list(frames)}
