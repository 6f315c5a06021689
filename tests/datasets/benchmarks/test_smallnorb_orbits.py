from itertools import product

import numpy as np
import pytest

import setsup
from setsup.datasets.benchmarks.smallnorb import dataset as smallnorb
from tests.true_files import smallnorb as true


@pytest.fixture(scope="module")
def published_size(tmp_path_factory):
    """The six files with the labels of all published images, whose pixels are 0: sparse, so that they take no space."""
    folder = tmp_path_factory.mktemp("smallnorb")
    for stem, instances in true.STEMS.values():
        factors = np.array(list(product(range(5), instances, range(9), range(0, 36, 2), range(6))), np.int32)
        factors = factors[np.random.default_rng(0).permutation(len(factors))]
        for what, values in (("cat", factors[:, 0]), ("info", factors[:, 1:])):
            (folder / f"{stem}-{what}.mat").write_bytes(true.matrix(values))
        with (folder / f"{stem}-dat.mat").open("wb") as file:
            head = true.matrix(np.zeros((0, 2, 96, 96), np.uint8))
            file.write(head[:8] + np.int32(len(factors)).tobytes() + head[12:])
            file.truncate(len(head) + len(factors) * 2 * 96 * 96)
    return smallnorb.open(folder)


def test_orbits_of_viewpoints_with_the_frontal_one_as_canonical(published_size):
    """The 150 orbits of the paper: a training toy under one lighting, from 162 viewpoints, by the left camera."""
    table, orbit = published_size.factors, ["category", "instance", "lighting"]
    how = {"canonical": {"elevation": 30, "azimuth": 0}, "where": "split == 'train' and camera == 'left'"}
    draw = setsup.OrbitSampler(table, orbit, sets=150, **how)[0]
    assert draw.indices.shape == (150, 162)  # sets of a draw are different, so that these are all orbits there are
    assert draw.mask is None
    with pytest.raises(setsup.SetsupError, match="150 drawable orbits"):
        setsup.OrbitSampler(table, orbit, sets=151, **how)
    assert len(np.unique(draw.indices)) == 24_300
    assert set(table.values("split", draw.indices).ravel()) == {"train"}
    assert set(table.values("camera", draw.indices).ravel()) == {"left"}
    pose = np.stack([table.values(name, draw.indices) for name in ("elevation", "azimuth")], -1)
    for views in pose:
        assert set(map(tuple, views.tolist())) == set(product(range(30, 75, 5), range(0, 360, 20)))
    for name in orbit:
        members, canonical = table.values(name, draw.indices), table.values(name, draw.canonical)
        assert (members == canonical[:, None]).all()
    assert (table.values("elevation", draw.canonical) == 30).all()
    assert (table.values("azimuth", draw.canonical) == 0).all()
    assert set(table.values("camera", draw.canonical)) == {"left"}
    some = setsup.OrbitSampler(table, orbit, sets=32, size=8, **how)[0]
    assert some.indices.shape == (32, 8)
