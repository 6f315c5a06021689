"""Images of a BOP dataset with their objects, and single objects in their images."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Array, Places, Rows
from setsup.datasets.adapters.camera_frames import CameraFrames, FrameMaps
from setsup.datasets.adapters.camera_paths import nearest_fit
from setsup.datasets.adapters.fetching import read_distinct
from setsup.datasets.adapters.frame_maps import read_mask
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.nested_objects import NestedObjects
from setsup.datasets.dataset import Modality
from setsup.datasets.own.bop.finding import BopScene
from setsup.datasets.own.bop.models import ObjectModel, read_mesh, read_models
from setsup.errors import DataError
from setsup.factors import FactorTable
from setsup.files.archives.members import MemberIndex

__all__ = ["BopFrames", "ImageObjects", "mask_names"]

_PADDING = {"object_ids": -1, "object_poses": np.nan, "visib_fract": np.nan}


@dataclass(frozen=True, slots=True, eq=False)
class ImageObjects:
    """Objects of images, ordered by image: `values` of the nested modalities by name, and `files` of their masks.

    ``files[i]`` are the scene and the number of image i, by which its masks are named.
    """

    nested: NestedObjects
    values: Mapping[str, Array]
    scenes: tuple[BopScene, ...]
    files: Array

    def pad(self, name: str, rows: Rows) -> Array:
        """A value of all objects of some images, (n, most, …)."""
        values, most = self.values[name], self.nested.most
        filled = np.arange(most) < self.nested.counts[rows, None]
        result = np.full((*filled.shape, *values.shape[1:]), _PADDING[name], values.dtype)
        result[filled] = values[(self.nested.firsts[rows, None] + np.arange(most))[filled]]
        return result


class BopFrames(CameraFrames):
    """Images of a dataset in the BOP format, or its objects, made by :func:`setsup.open`.

    Parameters
    ----------
    name : str
        Name of the dataset.
    factors : FactorTable
        ``scene``, ``frame`` and others.
    images : MemberImages
        The images.
    poses : (n, 4, 4) float32, metres
        From the camera's coordinates (x right, y down, z forward) to the world, NaN where unknown.
    intrinsics : (n, 3, 3) float32, pixels
        With centres of pixels at integers.
    files : MemberIndex
        All files.
    folder : MemberIndex
        Those of the dataset's folder, with the models.
    size : (height, width), optional
        What images are resized to cover, and cropped to.
    maps : mapping of str to FrameMaps
        Depth and masks.
    more : mapping of str to (Modality, array)
        Arrays of all rows.
    objects : ImageObjects, optional
        Objects of each image, where rows are images.
    channels : int
        Of the images.

    Attributes
    ----------
    pair_factors : tuple of str
        ``scene``, in which the views of a pair agree; none where rows are objects.

    Examples
    --------
    >>> import json, setsup, tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> scene = Path(tempfile.mkdtemp(), "test", "000001")
    >>> (scene / "rgb").mkdir(parents=True)
    >>> Image.new("RGB", (64, 48)).save(scene / "rgb" / "000007.png")
    >>> turn = [1, 0, 0, 0, 1, 0, 0, 0, 1]
    >>> for name, content in {
    ...     "scene_camera": {"7": {"cam_K": [60, 0, 32, 0, 60, 24, 0, 0, 1], "depth_scale": 1}},
    ...     "scene_gt": {"7": [{"obj_id": 5, "cam_R_m2c": turn, "cam_t_m2c": [0, 100, 900]}]},
    ... }.items():
    ...     _ = (scene / f"{name}.json").write_text(json.dumps(content))
    >>> dataset = setsup.open(scene.parent)
    >>> dataset.factors.values("obj_5").tolist(), dataset.fetch(0)["object_poses"][0, :3, 3].tolist()
    ([1], [0.0, 0.10000000149011612, 0.8999999761581421])

    """

    def __init__(
        self,
        name: str,
        factors: FactorTable,
        images: MemberImages,
        poses: Array,
        intrinsics: Array,
        files: MemberIndex,
        folder: MemberIndex,
        size: tuple[int, int] | None = None,
        maps: Mapping[str, FrameMaps] | None = None,
        more: Mapping[str, tuple[Modality, Array]] | None = None,
        objects: ImageObjects | None = None,
        channels: int = 3,
    ) -> None:
        super().__init__(name, factors, images, poses, intrinsics, None, size, maps, more, channels)
        # pairs of views are pairs of images: rows of objects repeat these
        self.pair_factors: tuple[str, ...] = () if "instance" in factors else ("scene",)
        self._files, self._folder, self._objects = files, folder, objects
        if objects is not None:
            units = {"object_poses": "m"}
            for nested, values in objects.values.items():
                shape = objects.nested.most, *values.shape[1:]
                self.modalities[nested] = Modality(shape, values.dtype.name, unit=units.get(nested, ""))
            if any(len(files.under(scene.folder_of("mask_visib"))) for scene in objects.scenes):
                self.modalities["instances"] = Modality(self.modalities["image"].shape[:2], "int32")

    def models(self, folder: str | None = None) -> dict[int, ObjectModel]:
        """Sizes and symmetries of the objects, by number.

        Parameters
        ----------
        folder : str, optional
            Folder of the models, such as ``"models_eval"``; by default ``models``, or the first by name that is not for
            evaluation, such as ``models_cad`` of T-LESS.

        Returns
        -------
        dict of int to ObjectModel

        Raises
        ------
        DataError
            When there is no such folder, or its ``models_info.json`` is damaged.

        """
        return read_models(self._folder, folder)

    def object_mesh(self, number: int, folder: str | None = None) -> Any:
        """Read the mesh of an object.

        Parameters
        ----------
        number : int
            Number of the object.
        folder : str, optional
            As for :meth:`models`.

        Returns
        -------
        trimesh.Trimesh
            In metres, with vertex colors if there are any.

        Raises
        ------
        DataError
            When the mesh is missing or damaged, or trimesh is not installed.

        """
        return read_mesh(self._folder, folder, number)

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        if self._objects is None or name not in (*self._objects.values, "instances"):
            return super()._read(name, rows, out)
        return self._instances(rows, out) if name == "instances" else self._objects.pad(name, rows)

    def _instances(self, rows: Rows, out: Array | None) -> Array:
        """Position of the object that each pixel shows, in the order of the nested modalities; −1 for none."""
        filled = np.empty((len(rows), *self._fetched_size(rows)), np.int32) if out is None else out

        def put(item: tuple[int, Places], slot: int) -> None:
            row, places = item
            height, width = self._own_sizes(np.array([row]))[0].tolist()
            pixels = np.full((height, width), -1, np.int32)
            for instance in range(len(places))[::-1]:  # where two masks overlap, the first counts
                place = int(places[instance])
                mask = read_mask(self._files.read(place), self._files.label(place), row, (height, width))
                pixels[mask > 0] = instance
            filled[slot] = nearest_fit(pixels, self._size)

        read_distinct(rows, [filled], self._masks, put)
        return filled

    def _masks(self, rows: Rows) -> list[tuple[int, Places]]:
        """Places of the visible masks of images."""
        objects = self._objects
        if objects is None:
            return []
        found = []
        for row in rows.tolist():
            count = int(objects.nested.counts[row])
            scene, number = objects.files[row].tolist()
            names = mask_names(objects.scenes[scene], "mask_visib", [number] * count, range(count))
            places = self._files.places(names)
            if count < 0 or (places < 0).any():
                lacks = "no known objects" if count < 0 else f"no mask {names[int(np.argmax(places < 0))]}"
                raise DataError(
                    f"{self.name}: row {row} ({self.paths([row])[0]}) has {lacks}, so it has no instances; select "
                    "other rows or modalities"
                )
            found.append((row, places))
        return found


def mask_names(scene: BopScene, kind: str, numbers: Any, instances: Any) -> list[str]:
    """Names of the masks of objects: ``mask_visib/000003_000001.png``."""
    folder = scene.folder_of(kind)
    return [f"{folder}/{number:06d}_{instance:06d}.png" for number, instance in zip(numbers, instances, strict=True)]
