"""Other processes and threads fetch the same, in whatever form arrays and images lie on the disk.

``test_benchmarks`` tries every benchmark as it is published. Here are the other forms: unpacked, packed and prepared
arrays, a user's own files, and datasets made of others.
"""

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
from PIL import Image

import setsup
from setsup.datasets.benchmarks import cars3d, mnist, nyu, scenenn, shapenet, shapenet_renderings
from setsup.datasets.benchmarks.shapes3d import Shapes3D
from setsup.datasets.benchmarks.smallnorb import dataset as smallnorb
from tests.datasets.elsewhere import FORKS, Fetch, check_elsewhere, spawned
from tests.true_files import cars3d as true_cars3d
from tests.true_files import mnist as true_mnist
from tests.true_files import nyu as true_nyu
from tests.true_files import scenenn as true_scenenn
from tests.true_files import shapenet as true_shapenet
from tests.true_files import shapenet_renderings as true_renderings
from tests.true_files import smallnorb as true_smallnorb

__all__ = ["spawned"]

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 6, 8, 3), np.uint8)


def plain_mnist(folder: Path) -> Any:
    true_mnist.write(folder, per_split=20)
    for packed in list(folder.glob("*.gz")):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    return mnist.open(folder)


def plain_smallnorb(folder: Path) -> Any:
    true_smallnorb.write(folder, end="", per_split=20)
    return smallnorb.open(folder)


def prepared_smallnorb(folder: Path) -> Any:
    true_smallnorb.write(folder, per_split=20)
    smallnorb.prepare(folder)
    return smallnorb.open(folder)


def cars3d_in_a_tar(folder: Path) -> Any:
    true_cars3d.write(folder / "files", stems=true_cars3d.STEMS[:2])
    return cars3d.open(true_cars3d.pack(folder / "files", folder / "nips2015-analogy-data.tar"))


def prepared_cars3d(folder: Path) -> Any:
    true_cars3d.write(folder, stems=true_cars3d.STEMS[:2])
    cars3d.prepare(folder)
    return cars3d.open(folder)


def prepared_nyu(folder: Path) -> Any:
    true_nyu.write(folder)
    nyu.prepare(folder)
    return nyu.open(folder)


def prepared_scenenn(folder: Path) -> Any:
    true_scenenn.write(folder)
    scenenn.prepare(folder)
    return scenenn.open(folder)


def zipped_shapenet(folder: Path) -> Any:
    release = folder / "ShapeNetCore.v2"
    true_shapenet.write(release)
    with zipfile.ZipFile(folder / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(release.rglob("*")):
            archive.write(path, path.relative_to(release).as_posix())
    return shapenet.open(folder / "all.zip")


def unpacked_renderings(folder: Path) -> Any:
    true_renderings.pack(true_renderings.release("cars", count=6), folder / "cars")
    return shapenet_renderings.open(folder)


def shapes3d(folder: Path) -> Any:
    labels = np.stack(
        [np.arange(40) % 10 / 10] * 3 + [np.full(40, 0.75), np.arange(40) % 4, np.full(40, -30.0)], axis=1
    )
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        images = np.random.default_rng(1).integers(0, 256, (40, 64, 64, 3), np.uint8)
        file.create_dataset("images", data=images, chunks=(1, 64, 64, 3), compression="gzip")
        file["labels"] = labels
    return Shapes3D(folder / "3dshapes.h5")


def prepared_shapes3d(folder: Path) -> Any:
    dataset = shapes3d(folder)
    dataset.prepare()
    return dataset


def pngs() -> list[bytes]:
    streams = [io.BytesIO() for _ in PIXELS]
    for stream, pixels in zip(streams, PIXELS, strict=True):
        Image.fromarray(pixels).save(stream, "PNG")
    return [stream.getvalue() for stream in streams]


def table_of_paths(folder: Path) -> Any:
    for row, content in enumerate(pngs()):
        (folder / f"{row}.png").write_bytes(content)
    pd.DataFrame({"image": [f"{row}.png" for row in range(20)], "age": np.arange(20) % 4}).to_csv(folder / "a.csv")
    return setsup.open(folder / "a.csv")


def table_of_images(folder: Path) -> Any:
    pd.DataFrame({"image": pngs(), "age": np.arange(20) % 4}).to_parquet(folder / "a.parquet")
    return setsup.open(folder / "a.parquet")


def folder_of_hugging_face(folder: Path) -> Any:
    hf = pytest.importorskip("datasets", reason="datasets is not installed")
    images = [{"bytes": content, "path": None} for content in pngs()]
    features = hf.Features({"image": hf.Image(), "age": hf.Value("int32")})
    hf.Dataset.from_dict({"image": images, "age": list(range(20))}, features=features).save_to_disk(folder / "a")
    return setsup.open(folder / "a")


def parts_of_two(folder: Path) -> Any:
    for name in ("a", "b"):
        (folder / name).mkdir()
    first, second = shapes3d(folder / "a"), shapes3d(folder / "b")
    return setsup.concat(first.select([5, 4, 3, 2]), second.where("shape != 'cube'"))


FORMS: tuple[Callable[[Path], Any], ...] = (
    plain_mnist,
    plain_smallnorb,
    prepared_smallnorb,
    cars3d_in_a_tar,
    prepared_cars3d,
    prepared_nyu,
    prepared_scenenn,
    zipped_shapenet,
    unpacked_renderings,
    shapes3d,
    prepared_shapes3d,
    table_of_paths,
    table_of_images,
    folder_of_hugging_face,
    parts_of_two,
)


@FORKS
@pytest.mark.long("worker processes")
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_it_is_the_same_elsewhere(form: Callable[[Path], Any], tmp_path: Path, spawned: Fetch) -> None:
    check_elsewhere(form(tmp_path), spawned)
