"""KITTI Masks: rows equal to what pickle gives of the file."""

import pickle

import numpy as np
import pytest

import setsup
from setsup.errors import DataError
from tests.true_files import kitti_masks


@pytest.mark.parametrize("protocol", [3, 4])
def test_rows(tmp_path, protocol):
    kitti_masks.write(tmp_path, protocol)
    with (tmp_path / "kitti_peds_v2.pickle").open("rb") as file:
        content = pickle.load(file)
    found = setsup.load("kitti-masks", tmp_path)
    table = found.factors
    rows = [(number, frame) for number, length in enumerate(kitti_masks.LENGTHS) for frame in range(length)]
    assert [*zip(table.values("sequence").tolist(), table.values("frame").tolist(), strict=True)] == rows
    latents = np.stack([table.column(name) for name in ("y", "x", "area")], axis=1)
    assert np.array_equal(latents, np.concatenate(content["pedestrians_latents"]))
    masks = np.concatenate(content["pedestrians"])[..., None]
    assert np.array_equal(found.fetch(range(len(rows)))["image"], masks.astype(np.uint8) * 255)
    out = np.zeros((2, 3, 64, 64, 1), np.uint8)
    found.fetch_into([[5, 1, 5], [24, 0, 9]], {"image": out})
    assert np.array_equal(out != 0, masks[[[5, 1, 5], [24, 0, 9]]])


def test_the_pairs_of_slowvae(tmp_path):
    kitti_masks.write(tmp_path)
    table = setsup.load("kitti-masks", tmp_path).factors
    pairs = setsup.SequencePairSampler(table, "sequence", "frame", window=5, pairs=64)[0].indices
    assert (np.ptp(table.codes("sequence", pairs), axis=1) == 0).all()
    later = np.diff(table.values("frame", pairs), axis=1)
    assert later.min() >= 1
    assert later.max() <= 5


class _Evil:
    def __reduce__(self):
        return print, ("it was called",)


def _masks(**changes):
    return {
        "pedestrians": [np.zeros((2, 64, 64), bool)],
        "pedestrians_latents": [np.zeros((2, 3), np.float32)],
        **changes,
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"pedestrians": []}, "lacks the lists 'pedestrians' and 'pedestrians_latents'"),
        ([1], "lacks the lists"),
        (
            _masks(pedestrians=[np.zeros((2, 64, 32), bool)]),
            r"sequence 0 has masks of dtype bool and shape \(2, 64, 32\)",
        ),
        (
            _masks(pedestrians=[np.zeros((0, 64, 64), bool)]),
            r"sequence 0 has masks of dtype bool and shape \(0, 64, 64\)",
        ),
        (_masks(pedestrians=["none"]), "sequence 0 has masks of type str"),
        (_masks(pedestrians_latents=[np.zeros((3, 3), np.float32)]), r"latents of dtype float32 and shape \(3, 3\)"),
        (_masks(pedestrians_latents=[]), "lacks the lists"),
        (_masks(pedestrians=[_Evil()]), r"contains a call of '\w+ print'; setsup .* never unpickles"),
    ],
)
def test_another_content(tmp_path, content, words, capsys):
    (tmp_path / "kitti_peds_v2.pickle").write_bytes(pickle.dumps(content, 4))
    with pytest.raises(DataError, match=rf"kitti_peds_v2\.pickle.*{words}"):
        setsup.load("kitti-masks", tmp_path)
    assert "it was called" not in capsys.readouterr().out


def test_a_file_that_is_replaced_or_cut(tmp_path):
    kitti_masks.write(tmp_path)
    file = tmp_path / "kitti_peds_v2.pickle"
    content = file.read_bytes()
    found = setsup.load("kitti-masks", tmp_path)
    file.write_bytes(content[:-9])
    with pytest.raises(DataError, match="has been replaced since it was opened"):
        found.fetch(0)
    with pytest.raises(DataError, match="damaged at byte"):
        setsup.load("kitti-masks", tmp_path)
    file.write_bytes(b"")
    with pytest.raises(DataError, match="is empty"):
        setsup.load("kitti-masks", tmp_path)
