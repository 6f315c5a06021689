import logging
import re
import shutil
import sys
import zipfile

import av
import numpy as np
import pytest
from PIL import Image, ImageOps

import setsup
from setsup.datasets.adapters import video_index
from setsup.datasets.adapters.clips import Windows
from setsup.datasets.benchmarks import ucf101
from setsup.errors import DataError, RowError, SetsupError
from setsup.factors import Kind
from setsup.samplers import OrbitSampler
from tests.true_files.ucf101 import GROUNDS, RATE, SHIRTS, stem, write
from tests.true_files.ucf101 import clips as listed
from tests.true_files.ucf101 import frames as count
from tests.videos import encoded, number_of, numbered


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ucf101")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def actions(release):
    return ucf101.open(release)


def _bare(path):
    """All frames of a file, by PyAV itself."""
    with av.open(str(path)) as file:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)])


def _small(folder, stems, frames=20, rate=25, **options):
    """Tiny videos of the given names, all in one folder."""
    for name in stems:
        path = folder / f"{name}.avi"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded((numbered(number) for number in range(frames)), rate=rate, **options))


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.long("videos")
def test_factors_say_what_the_names_say(release, actions):
    files = sorted((release / "UCF-101").rglob("*.avi"), key=lambda path: path.relative_to(release).as_posix())
    assert actions.paths(range(len(actions))) == [path.relative_to(release).as_posix() for path in files]
    table = actions.factors
    names = [re.fullmatch(r"v_(\w+)_g(\d+)_c(\d+)", path.stem) for path in files]
    assert table.values("action").tolist() == [path.parent.name for path in files]
    assert table.values("group").tolist() == [int(name[2]) for name in names]
    assert table.values("clip").tolist() == [int(name[3]) for name in names]
    assert table.values("file").tolist() == [path.stem for path in files]
    assert (table["group"].within, table["clip"].within, table["file"].role) == ("action", "group", "key")
    roles = {"group": "variation", "clip": "key", "frame": "key", "time": "key"}
    assert {name: table[name].role for name in roles} == roles
    assert "HandstandPushups" in table["action"].levels
    assert "v_HandStandPushups_g01_c01" in table["file"].levels


@pytest.mark.long("videos")
def test_a_row_is_the_middle_of_a_video(release, actions):
    assert len(actions) == len(listed())
    found = actions.fetch(range(len(actions)))
    for row, path in enumerate(actions.paths(range(len(actions)))):
        every = _bare(release / path)
        before = (len(every) - 16) // 2
        assert np.array_equal(found["video"][row], every[before : before + 16])
        assert np.array_equal(found["image"][row], every[before])
        assert actions.factors.values("frame")[row] == before
        assert actions.factors.values("time")[row] == pytest.approx(before / RATE)


@pytest.mark.long("videos")
def test_windows_every_few_frames(release):
    windows = ucf101.open(release, length=3, stride=4, every=5)
    expected = [
        (f"v_{name}", start)
        for name in sorted(stem(*clip)[2:] for clip in listed())
        for start in range(0, count(*_parsed(name)) - 8, 5)
    ]
    table = windows.factors
    # folders and files spell one action in two ways, so that their orders may differ
    assert sorted(zip(table.values("file"), table.values("frame"), strict=True)) == sorted(expected)
    assert (table["frame"].kind, table["time"].kind, table["time"].unit) == (Kind.ORDINAL, Kind.CONTINUOUS, "s")
    rows = np.random.default_rng(0).integers(0, len(windows), (4, 9))
    found = windows.fetch(rows)
    starts = table.values("frame")[rows]
    assert number_of(found["video"]).tolist() == (starts[..., None] + [0, 4, 8]).tolist()
    assert np.array_equal(number_of(found["image"]), starts)
    assert np.array_equal(windows.fetch(rows, ["image"])["image"], found["image"])
    assert np.array_equal(windows.fetch(rows, ["video"])["video"], found["video"])


def _parsed(name):
    action, group, clip = re.fullmatch(r"(\w+)_g(\d+)_c(\d+)", name).groups()
    return action, int(group), int(clip)


def test_frames_of_one_video_are_an_orbit(release):
    frames = setsup.load("ucf101", release, length=1, every=8, size=(32, 40))
    sampler = OrbitSampler(frames.factors, "file", sets=2, size=3)
    draw = sampler[0]
    videos = frames.factors.values("file")[draw.indices]
    assert (videos == videos[:, :1]).all()
    assert videos[0, 0] != videos[1, 0]
    assert frames.fetch(draw.indices, ["image"])["image"].shape == (2, 3, 32, 40, 3)


def test_frames_are_resized_as_images_are(release, actions):
    small = ucf101.open(release, size=(60, 60))
    assert small.modalities["video"].shape == (16, 60, 60, 3)
    frame = Image.fromarray(actions.fetch(3)["video"][7])
    expected = np.asarray(ImageOps.fit(frame, (60, 60), Image.Resampling.BICUBIC))
    assert np.array_equal(small.fetch(3)["video"][7], expected)


def test_into_buffers(actions):
    rows = [[3, 3], [0, 7]]
    expected = actions.fetch(rows)
    out = {name: np.zeros_like(array) for name, array in expected.items()}
    actions.fetch_into(rows, out)
    assert all(np.array_equal(out[name], expected[name]) for name in out)
    turned = np.zeros((16, 240, 320, 3), np.uint8).swapaxes(1, 2).copy().swapaxes(1, 2)
    actions.fetch_into(3, {"video": turned})
    assert np.array_equal(turned, expected["video"][0, 0])
    with pytest.raises(RowError):
        actions.fetch(len(actions))


@pytest.mark.parametrize("length", [1, 3, 16])
@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("every", [None, 1, 3])
def test_windows_are_where_loops_find_them(length, stride, every):
    frames = [0, 1, 2, 5, 16, 17, 40, 76]
    expected = []
    for video, total in enumerate(frames):
        fits = [start for start in range(total) if start + (length - 1) * stride < total]
        kept = fits[::every] if every else fits[(len(fits) - 1) // 2 : (len(fits) - 1) // 2 + 1]
        expected += [(video, start) for start in kept]
    windows = Windows(frames, length, stride, every)
    assert list(zip(windows.video.tolist(), windows.start.tolist(), strict=True)) == expected
    numbers = windows.frames(np.arange(len(expected)))
    assert numbers.tolist() == [[start + step * stride for step in range(length)] for _, start in expected]


@pytest.mark.parametrize("wrong", [{"length": 0}, {"stride": 0}, {"every": 0}, {"length": 2.5}, {"every": True}])
def test_numbers_below_one(release, wrong):
    with pytest.raises(DataError, match=f"{next(iter(wrong))} must be an integer of at least 1"):
        ucf101.open(release, **wrong)


# -- splits ------------------------------------------------------------------------------------------------------------


def test_splits_are_those_of_the_lists(release, actions):
    table = actions.factors
    for split in (1, 2, 3):
        for part in ("train", "test"):
            lines = (release / "ucfTrainTestlist" / f"{part}list0{split}.txt").read_text().splitlines()
            names = {line.split()[0].split("/")[1].removesuffix(".avi").lower() for line in lines}
            chosen = table.rows(f"split{split} == '{part}'")
            assert {name.lower() for name in table.values("file")[chosen]} == names
    test = setsup.load("ucf101", release, split="split2-test")
    assert set(test.factors.values("group").tolist()) == {list(GROUNDS)[1]}
    assert len(setsup.load("ucf101", release, split="split3-train")) == 3 * 2 * len(SHIRTS)


def test_groups_in_both_parts_are_told(release, tmp_path):
    shutil.copytree(release, tmp_path / "ucf")
    lists = tmp_path / "ucf" / "ucfTrainTestlist"
    train, test = ((lists / f"{part}list01.txt").read_text().splitlines() for part in ("train", "test"))
    (lists / "trainlist01.txt").write_text("\n".join([*train, test.pop()]))
    (lists / "testlist01.txt").write_text("\n".join(test))
    with pytest.raises(SetsupError, match="group"):
        setsup.load("ucf101", tmp_path / "ucf", split="split1")


def test_without_lists_there_are_no_splits(release, tmp_path):
    shutil.copytree(release / "UCF-101", tmp_path / "UCF-101")
    plain = ucf101.open(tmp_path)
    assert "split1" not in plain.factors
    shutil.copytree(release / "ucfTrainTestlist", tmp_path / "lists")
    (tmp_path / "lists" / "testlist02.txt").unlink()
    assert [name for name in ucf101.open(tmp_path).factors.names if "split" in name] == ["split1", "split3"]


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("ApplyEyeMakeup/v_ApplyEyeMakeup_g02_c01.avi", "listed for both training and"),
        ("v_some video", "expected the name of a video such as"),
    ],
)
def test_lists_that_are_wrong(release, tmp_path, line, match):
    shutil.copytree(release, tmp_path, dirs_exist_ok=True)
    with (tmp_path / "ucfTrainTestlist" / "testlist01.txt").open("a") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(DataError, match=match) as found:
        ucf101.open(tmp_path)
    assert "testlist01.txt" in str(found.value)


def test_listed_videos_that_are_not_there_are_counted(release, tmp_path, caplog):
    shutil.copytree(release, tmp_path, dirs_exist_ok=True)
    lists = tmp_path / "ucfTrainTestlist"
    count = sum(len((lists / f"{part}list01.txt").read_text().split("avi")) - 1 for part in ("train", "test"))
    with (lists / "testlist01.txt").open("a") as file:
        file.write("\nApplyEyeMakeup/v_ApplyEyeMakeup_g25_c09.avi\n")
    ucf101.open(tmp_path)
    [record] = caplog.records
    assert f"1 of the {count + 1} videos in the lists of split1 are missing from the release (v_" in record.getMessage()


# -- where it lies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("folder", ["UCF-101", "UCF101"])
def test_the_zip_is_read_without_unpacking(release, actions, tmp_path, kind, folder):
    """In one folder, as THUMOS packs it, or in those of the actions; the lists in a zip of their own."""
    with zipfile.ZipFile(tmp_path / "UCF101_videos.zip", "w", kind) as file:
        for path in (release / "UCF-101").rglob("*.avi"):
            file.write(path, f"UCF101/{path.name}" if folder == "UCF101" else path.relative_to(release))
    with zipfile.ZipFile(tmp_path / "UCF101TrainTestSplits-RecognitionTask.zip", "w", kind) as file:
        for path in (release / "ucfTrainTestlist").iterdir():
            file.write(path, path.relative_to(release))
    for root in (tmp_path, tmp_path / "UCF101_videos.zip"):
        packed = ucf101.open(root)
        assert packed.factors.names == actions.factors.names
        order = [packed.factors["file"].levels.index(name) for name in actions.factors.values("file").tolist()]
        for name in ("action", "group", "split1", "split3", "frame"):
            assert packed.factors.values(name)[order].tolist() == actions.factors.values(name).tolist()
        assert np.array_equal(packed.fetch(order[4])["video"], actions.fetch(4)["video"])


def test_a_folder_around_it_and_the_folder_itself(release, actions, tmp_path):
    shutil.copytree(release, tmp_path / "data")
    for root in (tmp_path, tmp_path / "data", tmp_path / "data" / "UCF-101"):
        found = ucf101.open(root)
        assert found.factors.values("file").tolist() == actions.factors.values("file").tolist()
        assert ("split1" in found.factors) == (root.name != "UCF-101")


def test_a_name_that_comes_twice(tmp_path):
    _small(tmp_path / "UCF-101" / "JumpingJack", ["v_JumpingJack_g01_c01"])
    _small(tmp_path / "UCF-101" / "copy", ["v_JumpingJack_g01_c01"])
    with pytest.raises(DataError, match=r"contains v_JumpingJack_g01_c01\.avi twice; keep only one copy"):
        ucf101.open(tmp_path)


# -- videos that do not serve ------------------------------------------------------------------------------------------


def test_short_and_damaged_videos_are_left_out(tmp_path, caplog):
    _small(tmp_path, ["v_Jump_g01_c01", "v_Jump_g01_c03"], 20)
    _small(tmp_path, ["v_Jump_g01_c02"], 12)
    (tmp_path / "v_Jump_g02_c01.avi").write_bytes(bytes(3000))
    for _ in range(2):  # read, and from the cache
        caplog.clear()
        with caplog.at_level(logging.WARNING, "setsup"):
            found = ucf101.open(tmp_path)
        assert found.factors.values("file").tolist() == ["v_Jump_g01_c01", "v_Jump_g01_c03"]
        assert number_of(found.fetch([0, 1])["video"][:, 0]).tolist() == [2, 2]
        said = " ".join(caplog.messages)
        assert "1 of 4 videos cannot be decoded" in said
        assert "v_Jump_g02_c01.avi" in said
        assert "1 of 4 videos are too short for 16 frames" in said
        assert "v_Jump_g01_c02.avi with 12 frames" in said
    assert len(ucf101.open(tmp_path, length=5)) == 3


def test_none_serves(tmp_path):
    _small(tmp_path, ["v_Jump_g01_c02"], 12)
    with pytest.raises(DataError, match="too short for 16 frames with a stride of 1"):
        ucf101.open(tmp_path)


def test_several_sizes(tmp_path):
    _small(tmp_path, ["v_Jump_g01_c01"])
    wide = encoded(numbered(number, 48, 120) for number in range(20))
    (tmp_path / "v_Jump_g01_c02.avi").write_bytes(wide)
    mixed = ucf101.open(tmp_path)
    assert mixed.modalities["video"].shape == (16, None, None, 3)
    assert mixed.fetch([0, 0])["image"].shape == (2, 48, 96, 3)
    assert mixed.fetch(1)["video"].shape == (16, 48, 120, 3)
    with pytest.raises(DataError, match=r"48 × 96 and 48 × 120 .* size=\(height, width\)"):
        mixed.fetch([0, 1])
    assert ucf101.open(tmp_path, size=(24, 24)).fetch([0, 1])["image"].shape == (2, 24, 24, 3)


def test_a_video_that_changes_after_it_was_counted(tmp_path):
    _small(tmp_path, ["v_Jump_g01_c01", "v_Jump_g01_c02"], 40)
    found = ucf101.open(tmp_path)
    _small(tmp_path, ["v_Jump_g01_c01"], 20)
    with pytest.raises(DataError, match=r"v_Jump_g01_c01\.avi ends before"):
        found.fetch(0)
    (tmp_path / "v_Jump_g01_c02.avi").unlink()
    with pytest.raises(DataError, match=r"v_Jump_g01_c02\.avi is missing"):
        found.fetch([1])
    assert ucf101.open(tmp_path).factors.values("frame").tolist() == [2]


def test_frames_are_counted_once(tmp_path, monkeypatch):
    _small(tmp_path, ["v_Jump_g01_c01"])
    ucf101.open(tmp_path)

    def never(*arguments):
        raise AssertionError("counted again")

    monkeypatch.setattr(video_index, "_made", never)
    assert len(ucf101.open(tmp_path, length=4, every=2)) == 9


def test_a_cache_that_cannot_be_used(tmp_path, monkeypatch, caplog):
    _small(tmp_path, ["v_Jump_g01_c01"])
    cache = tmp_path / "cache"
    monkeypatch.setenv("SETSUP_CACHE", str(cache))
    ucf101.open(tmp_path)
    (index,) = (cache / "indexes" / "ucf101").glob("*.npy")
    for content in (b"", index.read_bytes()[:150], b"\x93NUMPY" + bytes(200)):
        index.write_bytes(content)
        assert number_of(ucf101.open(tmp_path).fetch(0)["image"]) == 2
    blocked = tmp_path / "no folder"
    blocked.write_text("")
    monkeypatch.setenv("SETSUP_CACHE", str(blocked))
    with caplog.at_level(logging.WARNING, "setsup"):
        assert number_of(ucf101.open(tmp_path).fetch(0)["image"]) == 2


def test_without_pyav(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(DataError, match=r"ucf101 requires av, .*pip install '\.\[video\]' in setsup's folder"):
        ucf101.open(release)


def test_frame_and_later_frame(release):
    import torch

    from setsup.loading.views import FrameTriples

    actions = ucf101.open(release, length=16, stride=2)
    shown = torch.from_numpy(actions.fetch([[0, 5, 9]], ["video"])["video"])
    # fields that carry the number of the frame that they begin at
    fields = torch.arange(15.0).reshape(1, 1, 15, 1, 1, 1).expand(1, 3, 15, 2, 4, 4)
    triple = FrameTriples(later=3, flow=10)({"video": shown.movedim(-1, -3), "flow": fields, "step": 0})
    frame, later = (number_of(triple[name].movedim(-3, -1).numpy()) for name in ("frame", "later"))
    first = triple["flow_stack"][:, :, 0, 0, 0].numpy()
    starts = actions.factors.values("frame")[[[0, 5, 9]]]
    assert (later - frame == 6).all()
    assert np.array_equal(starts + 2 * (first + 5), frame)
