"""Points tracked by features: by loops, and scored as TAP-Vid's published formula scores them."""

from pathlib import Path

import numpy as np
import pytest

import setsup
from setsup.errors import DataError
from setsup.evaluation.point_tracks import TrackScores
from setsup.experiments.evaluations import point_tracking
from setsup.experiments.evaluations.point_tracking import choose, describe, examples, measure, score
from tests.true_files import tapvid_davis


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tapvid")
    tapvid_davis.write(root)
    return root


@pytest.fixture(scope="module")
def videos(folder: Path):
    return setsup.load("tapvid-davis", folder)


def cells(image: np.ndarray) -> np.ndarray:
    """Colours of 16 × 16 cells and of what is around them, which are moved by half a turn to be of both signs."""
    small = image.reshape(16, 16, 16, 16, 3).mean(axis=(1, 3)) / 255 - 0.5
    return np.concatenate([small, np.roll(small, 1, 0), np.roll(small, 1, 1)], axis=-1)


def test_videos_are_chosen(videos) -> None:
    task = choose(videos, most=None, seed=0)
    assert task.names == ["goat", "car-roundabout", "soapbox"]
    assert [rows.tolist() for rows in task.videos] == [list(range(6)), list(range(6, 14)), list(range(14, 21))]
    few = choose(videos, most=1, seed=0)
    assert (len(few), few.total) == (1, 3)
    assert "1 (drawn by --seed) of 3 videos" in describe(few, "pixels")[0]
    mixed = videos.select([12, 7, 6, 9, 6, 0])
    assert [rows.tolist() for rows in choose(mixed, most=None, seed=0).videos] == [[2, 1, 3, 0]]
    with pytest.raises(DataError, match="no video of two frames or more of tapvid-davis is left"):
        choose(videos, most=None, seed=0, where="frame == 0")


@pytest.mark.parametrize("size", [(256, 256), (512, 256)])
def test_tracks_and_scores_by_loops(folder: Path, size: tuple[int, int]) -> None:
    """Of a video of another size, pixels count as those of 256 × 256."""
    videos = setsup.load("tapvid-davis", folder, size=size)
    height = size[0]
    encode = lambda image: cells(image[:: height // 256])  # noqa: E731
    task = choose(videos, most=None, seed=0)
    parts: list[int] = []
    found = {one[:2]: one for one in measure(videos, encode, task, "grid", lambda: parts.append(1))}
    assert len(parts) == 3
    means: dict[str, list[float]] = {}
    for name, rows in zip(task.names, task.videos, strict=True):
        content = tapvid_davis.example(name)
        points, occluded = content["points"].astype(np.float64) * 256, content["occluded"]
        maps = [encode(image).reshape(256, -1) for image in videos.fetch(rows)["image"]]
        maps = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in maps]
        centres = [(16 * (cell % 16) + 8, 16 * (cell // 16) + 8) for cell in range(256)]  # raster coordinates
        for mode in ("first", "strided"):
            queries = []
            for track in range(5):
                seen = np.flatnonzero(~occluded[track])
                frames = seen[:1] if mode == "first" else [frame for frame in seen if frame % 5 == 0]
                queries += [(track, int(frame)) for frame in frames]
            flags, visible = [], 0
            within, hits, false = np.zeros(5), np.zeros(5), np.zeros(5)
            for track, start in queries:
                x, y = points[track, start]
                feature = maps[start][int(y // 16) * 16 + int(x // 16)]
                for frame in range(len(rows)):
                    if frame == start or (mode == "first" and frame < start):
                        continue
                    cell = int((maps[frame] @ feature).argmax())
                    back = centres[int((maps[start] @ maps[frame][cell]).argmax())]
                    hidden = np.hypot(back[0] - x, back[1] - y) > 16
                    apart = np.hypot(*(centres[cell] - points[track, frame]))
                    truth = bool(occluded[track, frame])
                    flags.append(hidden == truth)
                    visible += not truth
                    for place, limit in enumerate((1, 2, 4, 8, 16)):
                        near = apart < limit and not truth
                        within[place] += near
                        hits[place] += near and not hidden
                        false[place] += not hidden and not near
            expected = {"OA": np.mean(flags), "δ": np.mean(within / visible), "AJ": np.mean(hits / (visible + false))}
            for value, number in expected.items():
                one = found[f"queries {mode}: {value}", f"video {name}"]
                assert one.number == pytest.approx(number), (name, mode, value)
                assert one.count == len(flags)
                means.setdefault(f"queries {mode}: {value}", []).append(number)
    assert 0.2 < means["queries first: δ"][0]
    for value, numbers in means.items():
        assert found[value, "all"].number == pytest.approx(np.mean(numbers))
        assert found[value, "all"].count == 3


def test_a_video_without_queries() -> None:
    nothing = np.full(5, np.nan)
    empty, one = TrackScores(np.nan, nothing, nothing, 0), TrackScores(0.5, np.full(5, 0.25), np.full(5, 0.125), 8)
    found = {each[:2]: each for each in score({"first": [empty, one]}, ["a", "b"])}
    assert found["queries first: AJ", "all"][2:] == (0.125, 1)
    assert np.isnan(found["queries first: AJ", "video a"].number)
    assert found["queries first: OA", "video b"][2:] == (0.5, 8)
    assert (point_tracking.main_value([]), "all") in found


def test_frames_for_a_sheet(videos) -> None:
    shown = examples(videos, cells, choose(videos, most=None, seed=0), "pixels", 2)
    assert [one.caption.partition(",")[0] for one in shown] == ["goat", "soapbox"]
    for one in shown:
        assert one.points1.shape == one.points2.shape == (len(one.right), 2)
        assert len(one.right) > 1
        assert one.maps[0].shape == (16, 16, 9)
