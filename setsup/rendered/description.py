"""What ``rendered.json`` says of a folder's files and of its geometry, for those who read them without setsup."""

from collections.abc import Iterable, Mapping

__all__ = ["CONVENTION", "describe_files"]

CONVENTION: Mapping[str, str] = {
    "rows": "row i of each .npy file belongs to row i of factors.parquet",
    "lengths": "metres",
    "camera frame": "x right, y down, z forward (OpenCV)",
    "camera": "world to camera: the world point X is at R X + t, with camera_rotation R and camera_translation t",
    "pixels": "(x, y) ~ camera_k (R X + t), with centres at integers: array[row, y, x]; x covers -0.5 ... width - 0.5",
    "geometry": "of the ray through the pixel's centre; only colors may be averaged over a pixel",
}
"""Names of conventions, and what they are."""

_FILES: Mapping[str, str] = {
    "factors.parquet": "the factor table",
    "image.npy": "sRGB; a fourth channel is alpha, not multiplied in",
    "depth.npy": "z in the camera frame, not the distance; 0: nothing there",
    "normals.npy": "unit normals in the camera frame, on the camera's side of the surface; (0, 0, 0): nothing there",
    "instances.npy": "number of the object, whose name names.json has; -1: nothing there",
    "triangles.npy": "number of the triangle in the scene; -1: nothing there",
    "partners.npy": "pixel (x, y) of the pair's other view where the point shown here is; NaN: no point, or behind it. "
    "Rows 2n and 2n + 1 are a pair",
    "status.npy": "0 visible: the other view shows the point. 1 occluded: something stands between, or it sees the "
    "surface's other side. 2 outside: beyond the other image, or behind its camera. 3 no surface: nothing there",
    "labels.npy": "class of what is shown, a place in the list of classes",
    "nocs.npy": "object_coordinates about the middle of the object's box, divided by its diagonal, plus 0.5; "
    "(0, 0, 0): nothing there",
    "object_coordinates.npy": "the point in the frame of its object, at the scale of the scene; NaN: nothing there",
    "uv.npy": "texture coordinates, (0, 0) at the lower left of the image, not wrapped; NaN: none, or nothing there",
    "barycentrics.npy": "shares of the corners of the triangle, which add up to 1; (0, 0, 0): nothing there",
    "albedo.npy": "sRGB of the surface without light; (0, 0, 0): nothing there",
    "material.npy": "number of the material in the scene, the same for equal ones; -1: nothing there",
    "mask.npy": "bit k % 8, from the lowest, of byte k // 8: whether the object of instances number k is on the pixel, "
    "seen or hidden; numpy.unpackbits(mask, axis=-1, bitorder='little')",
    "object_poses.npy": "from the frame of each object, by its number in instances, to the camera frame: rigid "
    "(4, 4) matrices; NaN: no such object",
    "pose.npy": "from the camera frame to the world, a (4, 4) matrix: the inverse of (R t; 0 1)",
    "intrinsics.npy": "the same as camera_k",
    "exact_flow.npy": "(u, v) in pixels: what is shown at (x, y) is at (x + u, y + v) in the next frame, also beyond "
    "the image; NaN: nothing there, or behind its camera",
    "exact_flow_back.npy": "as exact_flow, to the frame before",
    "flow_status.npy": "as status, in the next frame",
    "flow_back_status.npy": "as status, in the frame before",
    "scene_flow.npy": "how far the point moves in the world until the next frame, along the axes of this row's camera",
    "camera_k.npy": "intrinsics in pixels, last row 0, 0, 1",
    "camera_rotation.npy": "R, from the world to the camera frame",
    "camera_translation.npy": "t, metres; the camera stands at -R^T t",
    "names.npy": "key of the row's names: in names.json, 16 hexadecimal digits",
    "names.json": "by key, the names of the numbers in instances",
    "failed.json": "only where rows could not be rendered and were left out: which, and why",
}


def describe_files(arrays: Iterable[str]) -> dict[str, str]:
    """What the files of a folder with some arrays hold, by their names; ``rendered.json`` is not among them."""
    there = {"factors.parquet", "names.json", "failed.json", *(f"{name}.npy" for name in arrays)}
    return {name: words for name, words in _FILES.items() if name in there}
