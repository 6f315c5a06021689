"""Tars of others for tests: written by the standard library and webdataset, and read by them."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import webdataset
from PIL import Image
from webdataset.tariterators import group_by_keys, tar_file_expander

from setsup.errors import DataError
from setsup.shards.external.indexing import index_shards


def picture(row, size=(12, 16), mode="RGB"):
    dice = np.random.default_rng(row)
    channels = {"RGB": 3, "L": 1, "RGBA": 4}[mode]
    pixels = dice.integers(0, 256, (*size, channels), np.uint8)
    return Image.fromarray(pixels[..., 0] if channels == 1 else pixels, mode)


def png(row, size=(12, 16), mode="RGB", format="PNG"):
    stream = io.BytesIO()
    picture(row, size, mode).save(stream, format)
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def pack(path, members, form=tarfile.USTAR_FORMAT):
    """Write a tar with the standard library; content that is a TarInfo goes in as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=form) as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def documents(*values, first=0):
    """Json members of samples 0, 1, 2 …."""
    return [(f"{row}.json", json.dumps(value).encode()) for row, value in enumerate(values, first)]


def streamed(*paths):
    """Samples as the webdataset library gives them."""
    found = []
    for path in paths:
        with path.open("rb") as stream:
            samples = list(group_by_keys(tar_file_expander([{"url": str(path), "stream": stream}])))
        for sample in samples:
            found.append((sample["__key__"], {name: value for name, value in sample.items() if name[:2] != "__"}))
    return found


def stored(dataset):
    """Samples of an index: their keys, and the bytes at which it says that members lie."""
    tars = [(Path(dataset.url) / shard.name).read_bytes() for shard in dataset.catalogue.shards]
    found = [(key, {}) for key in dataset.keys(np.arange(len(dataset)))]
    table = pq.read_table(Path(dataset.url) / "index.parquet").to_pydict()
    for name, member in dataset.catalogue.members.items():
        for row, (_, members) in enumerate(found):
            offset, size = table[f"{name}.offset"][row], table[f"{name}.size"][row]
            if offset >= 0:
                members[member.extension] = tars[table["__shard__"][row]][offset : offset + size]
    return found


def refused(address, *words, **options):
    """One sentence, and no file."""
    folder = address if isinstance(address, Path) and address.is_dir() else Path(address).parent
    before = sorted(folder.rglob("*"))
    with pytest.raises(DataError) as caught:
        index_shards(address, **options)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert sorted(folder.rglob("*")) == before


@pytest.fixture
def written(tmp_path):
    """Thirty samples in three tars that webdataset wrote."""
    folder = tmp_path / "photos"
    folder.mkdir()
    with webdataset.ShardWriter(str(folder / "data-%03d.tar"), maxcount=12, verbose=0) as sink:
        for row in range(30):
            sink.write(
                {
                    "__key__": f"sample{row:04}",
                    "png": picture(row),
                    "depth.npy": np.full((3, 4), row, np.float32),
                    "json": {"shape": ["ball", "cube"][row % 2], "size": row % 5, "angle": row / 7, "at": {"x": row}},
                    "cls": row % 3,
                    "txt": f"caption {row}",
                }
            )
    return folder
