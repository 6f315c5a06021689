"""What cannot be written ends in one sentence, and leaves no folder."""

import numpy as np
import pytest

from setsup.correspondence import overlap, write_pairs
from setsup.datasets import Modality
from setsup.errors import SetsupError
from setsup.rendered.dataset import RenderedDataset
from setsup.scenes.recipes import Room
from tests.correspondence.pair_files.recorded import Recorded

SIZE = (24, 32)


@pytest.fixture(scope="module")
def rooms():
    return RenderedDataset(Room(rooms=2, pairs=2, size=SIZE))


@pytest.fixture(scope="module")
def recorded(rooms):
    return Recorded(rooms)


@pytest.fixture(scope="module")
def table(recorded):
    return overlap(recorded, scene="scene", pixels=32)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"overlap": (0.8, 0.2)}, "overlap is empty, because 0.8 is above 0.2"),
        ({"overlap": (0, 1.5)}, "the upper end of overlap must be a finite number from 0 to 1"),
        ({"overlap": (float("nan"), 1)}, "overlap"),
        ({"angle": (-1, 20)}, "the lower end of angle must be a finite number from 0 to 180"),
        ({"scale": (2, 1)}, "scale is empty, because 2 is above 1"),
        ({"overlap": (0.9999, 0.99991)}, "measured pairs of recorded is in the bands; choose wider ones"),
        ({"where": "scene == 'roof'"}, "roof"),
        ({"where": "frame == 0"}, "is in the bands"),
        ({"layout": "roma"}, "layout"),
        ({"direction": "forward"}, "direction"),
        ({"overlap": 0.5}, "overlap"),
    ],
)
def test_bad_requests(recorded, table, asked, words, tmp_path):
    asked = {"layout": "loftr", "overlap": (0, 1), **asked}
    with pytest.raises(SetsupError, match=words):
        write_pairs(recorded, table, tmp_path / "out", **asked)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(recorded, table, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SetsupError, match="is not empty; pass a new folder"):
        write_pairs(recorded, table, tmp_path, "hloc", overlap=(0, 1))
    with pytest.raises(SetsupError, match=r"notes.txt is a file; pass a new folder"):
        write_pairs(recorded, table, tmp_path / "notes.txt", "hloc", overlap=(0, 1))
    assert (tmp_path / "notes.txt").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    write_pairs(recorded, table, tmp_path / "empty", "hloc", overlap=(0, 1))
    assert (tmp_path / "empty" / "pairs.txt").is_file()


def test_a_failure_leaves_no_folder(recorded, table, tmp_path):
    broken = Recorded.__new__(Recorded)
    broken.__dict__.update(recorded.__dict__)

    def fetch(indices, modalities=None):
        raise SetsupError("the disk is gone")

    broken.fetch = fetch
    with pytest.raises(SetsupError, match="the disk is gone"):
        write_pairs(broken, table, tmp_path / "out", "dust3r", overlap=(0, 1))
    assert not list(tmp_path.iterdir())


def test_another_dataset(rooms, table, tmp_path):
    with pytest.raises(SetsupError, match="overlap table of recorded was measured for"):
        write_pairs(rooms, table, tmp_path / "out", "loftr", overlap=(0, 1))


def test_a_dataset_that_has_changed(rooms, recorded, table, tmp_path):
    """Depth of other rooms: sample pixels that were seen in both views are no longer."""
    moved = recorded.arrays["pose"].copy()
    moved[::2, :3, 3] += 100
    with pytest.raises(SetsupError, match=r"share no point, but their overlap is 0\.\d+ in the table: the dataset has"):
        write_pairs(Recorded(rooms, pose=moved), table, tmp_path / "out", "d2-net", overlap=(0.1, 1))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"depth": None}, "lacks the modalities depth, which this layout contains"),
        ({"image": None}, "lacks the modalities image"),
        (
            {"image": np.zeros((8, 24, 30, 3), np.uint8)},
            r"image of row \d of recorded is 24 × 30 pixels .* depth",
        ),
        ({"image": np.zeros((8, 24, 32, 2), np.uint8)}, "must be uint8 of shape"),
        ({"image": np.zeros((8, 24, 32, 3), np.float32)}, "must be uint8 of shape"),
        ({"pose": np.full((8, 4, 4), np.nan, np.float32)}, r"row \d of recorded: .*; leave the row out with where="),
        ({"pose": np.zeros((8, 4, 4), np.float32)}, r"row \d of recorded: "),
        ({"intrinsics": np.tile(np.array([[9, 0.5, 9], [0, 9, 9], [0, 0, 1]], "f4"), (8, 1, 1))}, "skew of 0.5 pixels"),
    ],
)
def test_hostile_views(rooms, table, changed, words, tmp_path):
    with pytest.raises(SetsupError, match=words):
        write_pairs(Recorded(rooms, **changed), table, tmp_path / "out", "dust3r", overlap=(0, 1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("layout", ["loftr", "dust3r", "superglue", "hloc"])
def test_names_with_blanks(rooms, layout, tmp_path):
    dataset = Recorded(rooms, ("the attic", "cellar"))
    table = overlap(dataset, scene="scene", pixels=32)
    with pytest.raises(SetsupError, match="name of the scene 'the attic' contains a blank, which separates columns"):
        write_pairs(dataset, table, tmp_path / "out", layout, overlap=(0, 1))
    written = write_pairs(dataset, table, tmp_path / "cellar", layout, overlap=(0, 1), where="scene == 'cellar'")
    assert written.scenes == 1
    write_pairs(dataset, table, tmp_path / "d2-net", "d2-net", overlap=(0, 1))
    assert (tmp_path / "d2-net" / "scene_info" / "the attic.0.npz").is_file()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("..", "cellar"), r"the scene '..' of recorded cannot name a file"),
        (("", "cellar"), "cannot name a file"),
        (("a\nb", "cellar"), "cannot name a file"),
        (("a" * 300, "cellar"), "cannot name a file"),
        (("house/attic", "house-attic"), "two scenes of recorded would be called 'house-attic'"),
        (("Attic", "attic"), "two scenes of recorded would be called"),
    ],
)
def test_hostile_names(rooms, names, words, tmp_path):
    dataset = Recorded(rooms, names)
    table = overlap(dataset, scene="scene", pixels=32)
    with pytest.raises(SetsupError, match=words):
        write_pairs(dataset, table, tmp_path / "out", "d2-net", overlap=(0, 1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["frame 1.png", "a\tb.png"])
def test_names_of_files_with_blanks(recorded, table, name, tmp_path):
    named = Recorded.__new__(Recorded)
    named.__dict__.update(recorded.__dict__)
    named.paths = lambda rows: [name if row == rows[0] else f"{row}.png" for row in rows]
    with pytest.raises(SetsupError, match=r"the name of the image .* contains a blank"):
        write_pairs(named, table, tmp_path / "out", "hloc", overlap=(0, 1))


def test_alpha_is_in_front_of_black(rooms, recorded, table, tmp_path):
    import cv2

    image = np.full((8, *SIZE, 4), 200, np.uint8)
    image[:, :, : SIZE[1] // 2, 3], image[:, :, SIZE[1] // 2 :, 3] = 0, 255
    clear = Recorded(rooms, image=image)
    clear.modalities["image"] = Modality((*SIZE, 4), "uint8", color="srgb")
    write_pairs(clear, table, tmp_path / "out", "dust3r", overlap=(0, 1))
    shown = cv2.imread(str(next((tmp_path / "out").rglob("*.jpg")))).astype(int)
    assert np.abs(shown[:, : SIZE[1] // 2 - 8]).max() < 6
    assert np.abs(shown[:, SIZE[1] // 2 + 8 :] - 200).max() < 6


def test_grey_images(rooms, table, tmp_path):
    import cv2

    grey = Recorded(rooms, image=np.full((8, *SIZE, 1), 90, np.uint8))
    write_pairs(grey, table, tmp_path / "out", "superglue", overlap=(0, 1))
    assert (cv2.imread(str(next((tmp_path / "out").rglob("*.jpg"))), cv2.IMREAD_UNCHANGED) == 90).all()
