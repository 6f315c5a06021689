"""A set of shards that several tests share, and what lies in stores."""

import numpy as np
import pytest

from setsup.shards.writing.writer import write_shards
from tests.sharded import Varied

FEW = {"order": "by:category", "per_shard": 12}
NAMES = ["image", "depth"]


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Fifty rows of all modalities in one go; not to be changed."""
    folder = tmp_path_factory.mktemp("whole") / "set"
    write_shards(Varied(), folder, **FEW)
    return folder


def in_store(url, options=None):
    """All files under an address, hidden ones too, as fsspec has them."""
    import fsspec

    system, root = fsspec.core.url_to_fs(url, **(options or {}))
    system.invalidate_cache()
    root = root.rstrip("/")
    return {path.removeprefix(f"{root}/"): system.cat(path) for path in system.find(root)}


def content(number, size):
    """Bytes of a file that nobody guesses."""
    return np.random.default_rng(number).integers(0, 256, size, np.uint8).tobytes()


def local(tmp_path, data):
    """A finished local file, to be put somewhere."""
    path = tmp_path / "made"
    path.write_bytes(data)
    return path
