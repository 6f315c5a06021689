"""A recording of rooms: images, depth, poses and intrinsics, as a user's own dataset has them."""

import numpy as np

from setsup.datasets import Dataset, Modality
from setsup.datasets.dataset import fetch_request
from setsup.factors import Factor, FactorTable, Kind

NAMES = ("attic", "cellar")


class Recorded(Dataset):
    """Frames of rendered rooms; `changed` are arrays of modalities that are other ones."""

    name = "recorded"

    def __init__(self, rendered, names=NAMES, **changed):
        frames = rendered.fetch(np.arange(len(rendered)), ["image", "depth"])
        cameras = [rendered.camera(row) for row in range(len(rendered))]
        world = np.tile(np.eye(4), (len(cameras), 1, 1))
        world[:, :3, :3] = [camera.rotation.T for camera in cameras]
        world[:, :3, 3] = [camera.centre for camera in cameras]
        self.arrays = {
            "image": frames["image"],
            "depth": frames["depth"],
            "pose": world.astype(np.float32),
            "intrinsics": np.array([camera.k for camera in cameras], np.float32),
            **changed,
        }
        room = rendered.factors.codes("room")
        frame = np.arange(len(room)) - np.searchsorted(room, room)
        self.factors = FactorTable(
            [
                Factor("scene", Kind.NOMINAL, tuple(names)),
                Factor("frame", Kind.ORDINAL, tuple(range(int(frame.max()) + 1)), within="scene", role="key"),
            ],
            {"scene": room, "frame": frame},
        )
        self.modalities = {
            name: Modality(array.shape[1:], array.dtype.name, color="srgb" if name == "image" else "")
            for name, array in self.arrays.items()
            if array is not None
        }

    def fetch(self, indices, modalities=None):
        rows, names = fetch_request(self, indices, modalities)
        return {name: self.arrays[name][rows] for name in names}
