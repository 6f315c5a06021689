"""Optical flow of clips: motions that are known, what is kept of it, and when it is computed again."""

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("skimage")

import setsup
from setsup.datasets.adapters import clip_flow
from setsup.datasets.adapters.clip_flow import compute_flow, tvl1_flow
from setsup.datasets.benchmarks import hmdb51, ucf101
from setsup.datasets.registry import opener_options
from setsup.errors import DataError
from tests.true_files import hmdb51 as hmdb51_files
from tests.true_files import ucf101 as ucf101_files

SIZE = (24, 32)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ucf101")
    ucf101_files.write(folder)
    return folder


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Frames of the clips whose flow was computed; a quick one in place of TV-L1."""
    found: list[int] = []

    def quick(frames: np.ndarray) -> np.ndarray:
        found.append(len(frames))
        grey = frames.mean(-1)
        change = np.diff(grey, axis=0)
        return np.stack([change, -change / 2], axis=1).astype(np.float32)

    monkeypatch.setattr(clip_flow, "tvl1_flow", quick)
    return found


def texture(right: float, down: float) -> np.ndarray:
    """A smooth pattern of which each point is moved so far."""
    y, x = np.mgrid[:48, :64].astype(np.float64)
    x, y = x - right, y - down
    grey = np.sin(x / 4) + np.cos(y / 5) + np.sin((x + 2 * y) / 7) + np.cos((2 * x - y) / 9)
    return (120 + 25 * grey).astype(np.uint8)[..., None].repeat(3, axis=-1)


@pytest.mark.long("videos")
@pytest.mark.parametrize("move", [(1.0, 0.0), (0.0, -1.5), (2.0, 1.0)])
def test_the_flow_is_the_motion_to_the_next_frame(move: tuple[float, float]) -> None:
    frames = np.stack([texture(step * move[0], step * move[1]) for step in range(3)])
    found = tvl1_flow(frames)
    assert found.shape == (2, 2, 48, 64)
    inside = found[..., 8:-8, 8:-8]
    np.testing.assert_allclose(inside.mean((0, 2, 3)), move, atol=0.15)


def test_flow_is_kept_beside_the_videos(release: Path, tmp_path: Path, counted: list[int]) -> None:
    shutil.copytree(release, tmp_path / "ucf")
    clips = ucf101.open(tmp_path / "ucf", length=4, size=SIZE, flow=True)
    assert clips.modalities["flow"].shape == (3, 2, *SIZE)
    found = clips.fetch([[5, 2], [5, 0]], ["flow", "image"])
    assert found["flow"].shape == (2, 2, 3, 2, *SIZE)
    assert counted == [4, 4, 4]
    np.testing.assert_array_equal(found["flow"][0, 0], found["flow"][1, 0])
    video = clips.fetch(2, ["video"])["video"].astype(np.float64).mean(-1)
    wanted = np.clip(np.diff(video, axis=0) / 20, -1, 1)
    np.testing.assert_allclose(found["flow"][0, 1, :, 0], wanted, atol=0.5 / 127 + 1e-6)
    np.testing.assert_allclose(found["flow"][0, 1, :, 1], np.clip(np.diff(-video / 2, axis=0) / 20, -1, 1), atol=0.004)
    assert found["image"].shape == (2, 2, *SIZE, 3)
    kept = sorted((tmp_path / "ucf" / "ucf101_flow").iterdir())
    assert len(kept) == 3
    assert {np.load(one).dtype for one in kept} == {np.dtype(np.int8)}
    again = ucf101.open(tmp_path / "ucf", length=4, size=SIZE, flow=True)
    np.testing.assert_array_equal(again.fetch([[5, 2], [5, 0]], ["flow"])["flow"], found["flow"])
    assert len(counted) == 3
    out = {"flow": np.empty((2, 3, 2, *SIZE), np.float32)}
    pickle.loads(pickle.dumps(again)).fetch_into([5, 2], out)
    np.testing.assert_array_equal(out["flow"], found["flow"][0])
    assert len(counted) == 3


def test_other_windows_videos_and_damaged_files_are_computed_again(
    release: Path, tmp_path: Path, counted: list[int]
) -> None:
    shutil.copytree(release, tmp_path / "ucf")
    clips = ucf101.open(tmp_path / "ucf", length=4, size=SIZE, flow=True)
    clips.fetch(0, ["flow"])
    ucf101.open(tmp_path / "ucf", length=4, stride=2, size=SIZE, flow=True).fetch(0, ["flow"])
    ucf101.open(tmp_path / "ucf", length=4, size=(24, 30), flow=True).fetch(0, ["flow"])
    assert len(counted) == 3
    one = next((tmp_path / "ucf" / "ucf101_flow").iterdir())
    for each in (tmp_path / "ucf" / "ucf101_flow").iterdir():
        each.write_bytes(each.read_bytes()[:-7])
    clips.fetch(0, ["flow"])
    assert len(counted) == 4
    assert one.exists()
    path = tmp_path / "ucf" / clips.paths(0)[0]
    path.write_bytes(path.read_bytes() + b"\0")
    ucf101.open(tmp_path / "ucf", length=4, size=SIZE, flow=True).fetch(0, ["flow"])
    assert len(counted) == 5


def test_preparing_resumes(release: Path, tmp_path: Path, counted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(release, tmp_path / "ucf")
    assert ucf101.prepare(tmp_path / "ucf") == []
    clips = ucf101.open(tmp_path / "ucf", length=3, size=SIZE, flow=True)
    assert compute_flow(clips, [1, 3]) == 2
    assert len(counted) == 2
    (folder,) = ucf101.prepare(tmp_path / "ucf", length=3, size=SIZE, flow=True)
    assert folder == tmp_path / "ucf" / "ucf101_flow"
    assert len(counted) == len(clips) == len(list(folder.iterdir()))
    options = {name: (one.annotation, one.default) for name, one in opener_options(ucf101.prepare).items()}
    known = {name: (one.annotation, one.default) for name, one in opener_options(ucf101.open).items()}
    assert options == {**known, "processes": (int, 1)}


def test_hmdb51_has_flow_too_and_a_selection_keeps_it(tmp_path: Path, counted: list[int]) -> None:
    hmdb51_files.write(tmp_path)
    clips = hmdb51.open(tmp_path, length=3, size=SIZE, flow=True)
    part = clips.select([2])
    np.testing.assert_array_equal(part.fetch(0, ["flow"])["flow"], clips.fetch(2, ["flow"])["flow"])
    assert len(counted) == 1


def test_flow_in_a_folder_that_cannot_be_written_is_kept_in_the_cache(
    release: Path, tmp_path: Path, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(clip_flow, "_writable", lambda folder: False)
    clips = ucf101.open(release, length=3, size=SIZE, flow=True)
    clips.fetch(0, ["flow"])
    assert not (release / "ucf101_flow").exists()
    assert len(list(clips.flow_folder.iterdir())) == 1
    clips.fetch(0, ["flow"])
    assert len(counted) == 1


def test_what_has_no_flow_is_refused(release: Path) -> None:
    with pytest.raises(DataError, match="optical flow requires at least two frames"):
        ucf101.open(release, length=1, flow=True)
    plain = setsup.load("ucf101", release, length=3)
    with pytest.raises(DataError, match="open the dataset with flow=True"):
        compute_flow(plain)
    with pytest.raises(DataError, match="frames must be"):
        tvl1_flow(np.zeros((2, 8, 8), np.uint8))
