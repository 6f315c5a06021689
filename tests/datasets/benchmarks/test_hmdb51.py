import shutil
import tarfile

import numpy as np
import pytest

import setsup
from setsup.datasets.benchmarks import hmdb51
from setsup.errors import DataError
from setsup.factors import Kind
from tests.true_files.hmdb51 import ACTIONS, RATE, SEEN, SOURCES, frames, part, stem, write
from tests.videos import encoded, number_of, numbered


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hmdb51")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def actions(release):
    return hmdb51.open(release)


def _written():
    """Action and number of each video, in the order of the files' names."""
    return sorted(
        ((action, number) for action in ACTIONS for number in range(len(SOURCES))),
        key=lambda clip: (clip[0], stem(*clip)),
    )


@pytest.mark.long("videos")
def test_factors_say_what_names_say(actions):
    table, written = actions.factors, _written()
    assert table.values("action").tolist() == [action for action, _ in written]
    assert table.values("file").tolist() == [f"{action}/{stem(action, number)}" for action, number in written]
    assert actions.paths(range(len(actions))) == [f"{name}.avi" for name in table.values("file")]
    assert table.values("source").tolist() == [list(SOURCES)[number] for _, number in written]
    words = {"h": "head", "u": "upper", "f": "full", "l": "lower", "cm": "moving", "nm": "static"}
    words |= {"fr": "front", "ba": "back", "le": "left", "ri": "right", "goo": "good", "med": "medium", "bad": "bad"}
    told = [SEEN[number].split("_") for _, number in written]
    for place, factor in enumerate(("body", "camera", "people", "viewpoint", "quality")):
        expected = [words.get(each[place], each[place].removeprefix("np")) for each in told]
        assert [str(value) for value in table.values(factor)] == expected
    assert table["quality"].levels == ("bad", "medium", "good")
    assert (table["quality"].kind, table["people"].levels) == (Kind.ORDINAL, (1, 2, 3))
    roles = {"source": "variation", "file": "key", "frame": "key", "time": "key"}
    assert {name: table[name].role for name in roles} == roles


def test_rows_are_windows(release, actions):
    for row, (action, number) in enumerate(_written()):
        before = (frames(action, number) - 16) // 2
        found = actions.fetch(row)
        assert number_of(found["video"]).tolist() == list(range(before, before + 16))
        assert actions.factors.values("time")[row] == pytest.approx(before / RATE)
    some = hmdb51.open(release, length=2, every=10)
    assert number_of(some.fetch(np.arange(4))["image"]).tolist() == some.factors.values("frame")[:4].tolist()


def test_names_that_say_less(tmp_path):
    for name in ("brush_hair/odd name.avi", "brush_hair/April_09_brush_hair_u_nm_np1_ba_goo_0.avi"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(encoded(numbered(number) for number in range(16)))
    table = hmdb51.open(tmp_path).factors
    assert table.values("body").tolist() == ["upper", None]
    assert table.values("people").tolist() == [1, None]
    assert table.values("source").tolist() == ["April_09", None]
    assert table.values("action").tolist() == ["brush_hair", "brush_hair"]


def test_a_video_that_comes_twice(tmp_path):
    for folder in ("hmdb51_org", "copy"):
        path = tmp_path / folder / "brush_hair" / "April_09_brush_hair_u_nm_np1_ba_goo_0.avi"
        path.parent.mkdir(parents=True)
        path.write_bytes(encoded(numbered(number) for number in range(16)))
    with pytest.raises(DataError, match=r"contains brush_hair/April_09\S+_0\.avi twice; keep only one copy"):
        hmdb51.open(tmp_path)


def test_splits_are_those_of_the_lists(release, actions):
    for split in (1, 2, 3):
        expected = [{0: None, 1: "train", 2: "test"}[part(number, split)] for _, number in _written()]
        assert actions.factors.values(f"split{split}").tolist() == expected
        assert None in expected
    assert len(setsup.load("hmdb51", release, split="split1-train")) == 2 * len(ACTIONS)
    assert len(setsup.load("hmdb51", release, split="split3")) == 3 * len(ACTIONS)


def test_a_list_that_lacks(release, tmp_path):
    shutil.copytree(release, tmp_path, dirs_exist_ok=True)
    (tmp_path / "testTrainMulti_7030_splits" / "jump_test_split2.txt").unlink()
    assert [name for name in hmdb51.open(tmp_path).factors.names if "split" in name] == ["split1", "split3"]
    shutil.rmtree(tmp_path / "testTrainMulti_7030_splits")
    assert "split1" not in hmdb51.open(tmp_path).factors


def test_listed_videos_that_are_not_there_are_counted(release, tmp_path, caplog):
    shutil.copytree(release, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "testTrainMulti_7030_splits" / "jump_test_split1.txt"
    file.write_text(file.read_text().rstrip() + "\n" + "".join(f"gone_{number}.avi 1 \n" for number in range(4)))
    hmdb51.open(tmp_path)
    [record] = caplog.records
    count = len(_written()) + 4
    assert f"4 of the {count} videos in the lists of split1 are missing from the release" in record.getMessage()
    assert "(jump/gone_0, jump/gone_1, jump/gone_2 and 1 more)" in record.getMessage()


@pytest.mark.long("videos")
def test_lists_that_are_wrong(release, tmp_path):
    shutil.copytree(release, tmp_path, dirs_exist_ok=True)
    file = tmp_path / "testTrainMulti_7030_splits" / "jump_test_split1.txt"
    healthy = file.read_bytes()
    for wrong in (b"x.avi 3 \n", b"x.avi\n", b"x 1\n", b"\xff.avi 1\n"):
        file.write_bytes(healthy + wrong)
        with pytest.raises(DataError, match=r"jump_test_split1\.txt") as found:
            hmdb51.open(tmp_path)
        assert "\n" not in str(found.value)


def test_a_tar_of_it_and_a_folder_around_it(release, actions, tmp_path):
    with tarfile.open(tmp_path / "hmdb51.tar", "w") as file:
        file.add(release, "hmdb51")
    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.copytree(release, moved / "hmdb51_org", ignore=shutil.ignore_patterns("test*"))
    shutil.copytree(release / "testTrainMulti_7030_splits", moved / "splits")
    for root in (tmp_path / "hmdb51.tar", moved):
        found = hmdb51.open(root)
        assert found.factors.values("file").tolist() == actions.factors.values("file").tolist()
        assert found.factors.values("split2").tolist() == actions.factors.values("split2").tolist()
        assert np.array_equal(found.fetch(5)["video"], actions.fetch(5)["video"])


def test_rars_are_no_release(tmp_path):
    (tmp_path / "hmdb51_org.rar").write_bytes(b"Rar!\x1a\x07\0" + bytes(100))
    with pytest.raises(DataError, match="setsup fetch hmdb51"):
        hmdb51.open(tmp_path)
