"""Outputs of pixels in loaders and transforms."""

import numpy as np
import pytest

pytest.importorskip("embreex", reason="embreex is not installed")
pytest.importorskip("torch", reason="torch is not installed")

import torch

import setsup
from setsup.errors import DataError
from setsup.loading.resizing.resizes import ShortSide
from setsup.loading.transforms import Augment, Crop, Flip
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import RenderedFolder
from setsup.rendered.writing import render
from setsup.scenes.recipes import Shapes3D

SOME = "floor_hue == wall_hue == object_hue == 0.1 and scale == 1.25 and shape in ('cube', 'sphere')"
LABELS = ("nocs", "object_coordinates", "uv", "barycentrics", "material")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RenderedFolder:
    """30 rows."""
    shapes = RenderedDataset(Shapes3D(size=(12, 16)), renderer="embree")
    out = tmp_path_factory.mktemp("outputs") / "shapes"
    return render(shapes.where(SOME), out, list(shapes.available))


def test_resizes_keep_their_values(folder: RenderedFolder) -> None:
    """Every second pixel of the middle, without values between two surfaces."""
    sampler = setsup.SetSampler(folder.factors, ["shape"], size=2, sets=2, seed=0)
    kinds = dict.fromkeys(LABELS, "label") | {"object_poses": "unchanged"}
    loader = setsup.loader(
        folder,
        sampler,
        modalities=["albedo", "intrinsics", *kinds],
        resize=ShortSide((6, 6), modalities=kinds),
        to="numpy",
        workers=0,
    )
    batch = next(iter(loader))
    wanted = folder.fetch(batch["indices"])
    for name in LABELS:
        pixels = wanted[name].transpose(2, 3, 0, 1, *range(4, wanted[name].ndim))[1::2, 3:15:2]
        np.testing.assert_array_equal(batch[name].transpose(2, 3, 0, 1, *range(4, batch[name].ndim)), pixels)
    np.testing.assert_array_equal(batch["object_poses"], wanted["object_poses"])
    assert batch["albedo"].shape[-3:] in ((6, 6, 3), (3, 6, 6))
    with pytest.raises(DataError, match=r"'mask' of rendered shapes3d is reserved in batches; leave .* out"):
        setsup.loader(folder, sampler, to="numpy", workers=0)


def test_augmentations_move_their_pixels(folder: RenderedFolder) -> None:
    rows = [[0, 5], [9, 11]]
    fetched = {name: torch.from_numpy(array) for name, array in folder.fetch(rows).items()}
    batch = {**fetched, "masks": fetched["mask"], "step": 3, "indices": torch.tensor(rows)}
    kinds = dict.fromkeys((*LABELS, "masks", "instances"), "label")
    moved = Augment([Crop(8), Flip()], modalities=kinds, seed=1)(batch)
    numbers = moved["instances"].numpy()
    matrices = moved["homographies"]["nocs"].numpy()
    flips = 0
    for at in np.ndindex(2, 2):
        y, x = np.mgrid[:8, :8]
        places = np.linalg.inv(matrices[at]) @ np.stack([x.ravel(), y.ravel(), np.ones(64)])
        x, y = np.rint(places[:2] / places[2]).astype(int)
        flips += x[0] > x[7]
        for name in kinds:
            was, now = batch[name][at].numpy(), moved[name][at].numpy()
            np.testing.assert_array_equal(now.reshape(64, *now.shape[2:]), was[y, x])
        bits = np.unpackbits(moved["masks"][at].numpy(), axis=-1, bitorder="little")
        seen = numbers[at] >= 0
        assert bits[seen, numbers[at][seen]].all()  # what is seen is covered
    assert 0 < flips < 4
