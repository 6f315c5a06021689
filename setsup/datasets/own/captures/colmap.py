"""Captures with cameras by COLMAP: images, poses, and the 3D points that each image observes."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Places, Reals
from setsup.datasets.adapters.camera_frames import FrameMaps
from setsup.datasets.adapters.camera_matrices import lens_matrices
from setsup.datasets.adapters.colmap_tracks import ColmapModels, ColmapTracks
from setsup.datasets.adapters.frame_maps import read_mask
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.lens_distortion import undistort_rays
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.dataset import fetch_request, of_row
from setsup.datasets.formats.geometry.colmap import ColmapCamera, ColmapImage, read_cameras, read_images
from setsup.datasets.formats.geometry.colmap_text import read_camera_lines, read_image_lines
from setsup.datasets.own.captures.finding import join
from setsup.datasets.own.captures.frames import CaptureFrames, capture_table
from setsup.errors import DamagedFile, DataError, abbreviate, advice
from setsup.files.archives.members import MemberIndex

__all__ = ["ColmapFrames", "open_models"]

_MOST = 1 << 26  # bytes of cameras.bin
_MOST_POINTS = 1 << 32  # bytes of points3D.bin, or of images.txt
_IMAGE_FOLDERS = ("images/", "image/", "rgb/", "input/", "")
_MASKS = "masks/"
_ENDINGS = ("", ".png")
_FIX = "write the model again"


class ColmapFrames(ColmapTracks, CaptureFrames):
    r"""Frames of captures with cameras by COLMAP, made by :func:`setsup.open`.

    Arguments are those of :class:`setsup.datasets.own.captures.frames.CaptureFrames` and of
    :class:`setsup.datasets.adapters.colmap_tracks.ColmapTracks`, and `names` of the images in their models. Modalities
    are those of the former.

    Examples
    --------
    >>> import setsup, struct, tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "images").mkdir(), (folder / "sparse" / "0").mkdir(parents=True)
    (None, None)
    >>> Image.new("RGB", (64, 48)).save(folder / "images" / "a.png")
    >>> for name, text in {
    ...     "cameras": "1 PINHOLE 64 48 50 50 32 24",
    ...     "images": "1 1 0 0 0 0 0 0 1 a.png\n32.5 24.5 7",
    ...     "points3D": "7 0.05 0.05 5 255 0 0 0.1 1 0",
    ... }.items():
    ...     _ = (folder / "sparse" / "0" / f"{name}.txt").write_text(text + "\n")
    >>> capture = setsup.open(folder)
    >>> capture.observations(0), capture.points(0).xyz.tolist()
    ((array([[32., 24.]]), array([7])), [[0.05, 0.05, 5.0]])

    """

    def __init__(self, *frames: Any, names: Sequence[str], **options: Any) -> None:
        super().__init__(*frames, **options)
        self._names = tuple(names)

    @of_row
    def image_names(self, indices: npt.ArrayLike) -> list[str]:
        """Names of images in their models, which are relative to the folder of the model's images.

        Parameters
        ----------
        indices : integer array of any shape
            Row numbers.

        """
        rows, _ = fetch_request(self, indices, ())
        return [self._names[row] for row in rows.reshape(-1).tolist()]

    def _rays(self, pixels: Reals, row: int) -> Reals:
        rays = super()._rays(pixels, row)
        return undistort_rays(rays, self._distortion[row]) if self._bent[row] else rays


def open_models(
    name: str,
    files: MemberIndex,
    captures: Mapping[str, Mapping[str, str]],
    images: str | None,
    size: tuple[int, int] | None,
    undistort: bool,
) -> ColmapFrames:
    """Open the models that :func:`setsup.datasets.own.captures.finding.find_models` found."""
    scenes = [
        ("/".join(filter(None, (capture.rstrip("/"), number))) or name, capture, folder)
        for capture, models in captures.items()
        for number, folder in models.items()
    ]
    scenes.sort()
    lists: list[tuple[tuple[int, bool], ...]] = []
    columns: dict[str, list[Any]] = {key: [] for key in ("scene", "place", "mask", "pose", "lens", "size", "bend")}
    stretches: list[tuple[int, int]] = []
    found_names: list[str] = []
    lost: list[str] = []
    for number, (_, capture, folder) in enumerate(scenes):
        in_images, in_points = (_place(files, folder, kind) for kind in ("images", "points3D"))
        cameras, entries = _read(files, folder, *in_images)
        lists.append((in_images, in_points))
        where = _image_folders(capture, folder, images)
        names = sorted(entries)
        prefix, places = _find(files, where, names, files.label(in_images[0]))
        masks = _find_masks(files, prefix, capture, names)
        for image, place, mask in zip(names, places.tolist(), masks.tolist(), strict=True):
            if place < 0:
                lost.append(prefix + image)
                continue
            entry = entries[image]
            camera = cameras[entry.camera]
            row = (number, place, mask, entry.pose, camera.lens, (camera.height, camera.width), camera.distortion)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
            stretches.append((entry.start, entry.length))
            found_names.append(image)
    warn_left_out(files.source, "images", lost, len(lost) + len(stretches))
    poses = np.array(columns["pose"], np.float32)
    present, scene = np.unique(columns["scene"], return_inverse=True)
    table = capture_table([scenes[number][0] for number in present.tolist()], scene, poses)
    masked = np.array(columns["mask"], np.int64)
    maps = {"object_mask": FrameMaps(files, masked, "uint8", read_mask)}
    return ColmapFrames(
        name,
        table,
        # cameras are those of the pixels as they are stored
        MemberImages(files, np.array(columns["place"], np.int64), upright=False),
        poses,
        lens_matrices(columns["lens"]),
        np.array(columns["size"], np.int64),
        np.array(columns["bend"]),
        size,
        undistort,
        maps if (masked >= 0).any() else None,
        models=ColmapModels(
            files,
            np.array([[place for place, _ in pair] for pair in lists], np.int64),
            np.array([[text for _, text in pair] for pair in lists], bool),
            np.array(columns["scene"], np.int64),
            np.array(stretches, np.int64),
        ),
        names=found_names,
    )


def _read(
    files: MemberIndex, folder: str, place: int, text: bool
) -> tuple[dict[int, ColmapCamera], dict[str, ColmapImage]]:
    """Read the cameras and the images of a model, whose list of images is at a place."""
    cameras_at, cameras_text = _place(files, folder, "cameras")
    label, cameras_label = files.label(place), files.label(cameras_at)
    cameras = (read_camera_lines if cameras_text else read_cameras)(files.read(cameras_at, _MOST), cameras_label)
    if text:
        images = read_image_lines(files.read(place, _MOST_POINTS), label)
    else:
        images = read_images(partial(_stretch, files, place, []), label)
    if not images:
        raise DamagedFile(f"{label} lists no images", "write the model again, or remove it")
    for name, image in images.items():
        if image.camera not in cameras:
            raise DamagedFile(
                f"{label}: image {abbreviate(name)} refers to the camera {image.camera}, which is not in "
                f"{cameras_label}",
                _FIX,
            )
    return cameras, images


def _stretch(files: MemberIndex, place: int, whole: list[bytes], offset: int, length: int) -> bytes:
    """Bytes of a file; one that is deflated is read once into `whole`."""
    part = None if whole else files.stretch(place, offset, length)
    if part is None:
        whole[:] = whole or [files.read(place)]
        part = whole[0][offset : offset + length]
    return part


def _place(files: MemberIndex, folder: str, kind: str) -> tuple[int, bool]:
    """Place of a file of a model, the binary one where there are both, −1 for none; and whether it is text."""
    binary, text = files.places([f"{folder}{kind}.bin", f"{folder}{kind}.txt"]).tolist()
    return (text, text >= 0) if binary < 0 else (binary, False)


def _image_folders(capture: str, model: str, images: str | None) -> list[str]:
    """Folders in which the images of a model may be, in the order in which they are tried."""
    if images is None:
        around = [join(model, "../images") or "", join(model, "images") or "", model.rstrip("/")]
        return list(
            dict.fromkeys([capture + folder for folder in _IMAGE_FOLDERS] + [f"{one}/" for one in around if one])
        )
    inner = join(capture, images)
    if inner is None:
        given = advice(f"images={images!r}", f"--option images={images}")
        raise DataError(f"{given} leads out of the capture; pass a folder relative to it, such as images_4")
    return [f"{inner}/" if inner else ""]


def _find(files: MemberIndex, folders: list[str], names: list[str], label: str) -> tuple[str, Places]:
    """The folder that has most of the images, and their places, −1 for none."""
    tried = [(folder, files.places([folder + name for name in names])) for folder in folders]
    folder, places = max(tried, key=lambda each: int((each[1] >= 0).sum()))  # the first of several
    if (places < 0).all():
        given = advice("images='images_4'", "--option images=images_4")
        raise DataError(
            f"{label}: none of its {len(names):,} images was found, such as {names[0]!r}, in {folders[0] or '.'} or "
            f"next to the model; open the folder that contains both, and name that of the images, such as {given}"
        )
    return folder, places


def _find_masks(files: MemberIndex, images: str, capture: str, names: list[str]) -> Array:
    """Places of the masks of images, ``masks/a.jpg.png`` as COLMAP names them, or ``masks/a.png``; −1 for none."""
    found = np.full(len(names), -1)
    folder = capture + _MASKS
    if folder == images:
        return found
    for candidates in ([f"{folder}{name}.png" for name in names], [f"{folder}{_stem(name)}.png" for name in names]):
        places = files.places(candidates)
        found = np.where(found < 0, places, found)
    return found


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name
