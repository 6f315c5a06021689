"""TAP-Vid: frames and tracks equal to what pickle gives of the file; damaged and other files are refused."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.correspondence import PixelPairSampler
from setsup.datasets.benchmarks.tapvid import davis
from setsup.datasets.benchmarks.tapvid.dataset import PointVideos
from setsup.errors import DataError
from setsup_cli.main import main
from tests.fuzzing import survives
from tests.true_files import tapvid_davis, tapvid_rgb_stacking


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("module", [tapvid_davis, tapvid_rgb_stacking])
def test_frames_and_tracks(module, protocol: int, tmp_path: Path) -> None:
    module.write(tmp_path, protocol)
    with next(tmp_path.rglob("*.pkl")).open("rb") as file:
        content = pickle.load(file)
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    stored, stretched = setsup.load(name, tmp_path, size=None), setsup.load(name, tmp_path)
    examples = content if isinstance(content, list) else list(content.values())
    videos = list(range(len(content))) if isinstance(content, list) else list(content)
    rows = [(video, frame) for video, one in zip(videos, examples, strict=True) for frame in range(len(one["video"]))]
    table = stored.factors
    assert [*zip(table.values("video").tolist(), table.values("frame").tolist(), strict=True)] == rows
    for row, (video, frame) in enumerate(rows):
        one = content[video]
        assert np.array_equal(stored.fetch(row)["image"], one["video"][frame])
        by_pillow = Image.fromarray(one["video"][frame]).resize((256, 256), Image.Resampling.LANCZOS)
        assert np.array_equal(stretched.fetch(row)["image"], np.asarray(by_pillow))
        height, width = one["video"].shape[1:3]
        # 0 is the left edge of the first pixel in the file, and half a pixel before its centre in setsup
        assert np.allclose(stored.video_tracks(row).points, one["points"] * [width, height] - 0.5)
        assert np.allclose(stretched.video_tracks(row).points, one["points"] * 256.0 - 0.5)
        assert np.array_equal(stored.video_tracks(row).occluded, one["occluded"])


def test_a_point_at_the_centre_of_a_pixel_is_on_it(tmp_path: Path) -> None:
    frames = np.zeros((2, 4, 8, 3), np.uint8)
    frames[0, 2, 5] = 255
    video = {"video": frames, "points": np.full((1, 2, 2), [5.5 / 8, 2.5 / 4]), "occluded": np.zeros((1, 2), bool)}
    (tmp_path / "tapvid_davis.pkl").write_bytes(pickle.dumps({"a": video}))
    found = setsup.load("tapvid-davis", tmp_path, size=None)
    x, y = found.video_tracks(0).points[0, 0]
    assert (x, y) == (5, 2)
    assert found.fetch(0)["image"][int(y), int(x)].tolist() == [255] * 3


def test_pairs_of_points(tmp_path: Path) -> None:
    tapvid_davis.write(tmp_path)
    videos = setsup.load("tapvid-davis", tmp_path)
    later = videos.where("video == 'car-roundabout'")
    one = tapvid_davis.example("car-roundabout")
    seen = set()
    for first in range(8):
        for second in range(8):
            pairs = later.keypoint_pairs([first, second])
            expected = [number for number in range(5) if not one["occluded"][number, first]]
            assert pairs.names == [f"point {number}" for number in expected]
            assert np.allclose(pairs.points1, one["points"][expected, first] * 256.0 - 0.5)
            assert np.allclose(pairs.points2, one["points"][expected, second] * 256.0 - 0.5)
            assert pairs.status.tolist() == [int(one["occluded"][number, second]) for number in expected]
            seen |= set(pairs.status.tolist())
    assert seen == {0, 1}
    rows = PixelPairSampler(videos, pairs=20)[0].indices
    assert (np.ptp(videos.factors.codes("video", rows), axis=1) == 0).all()
    with pytest.raises(DataError, match=r"rows 0 and 9 of tapvid-davis are of different videos"):
        videos.keypoint_pairs([0, 9])
    with pytest.raises(DataError, match=r"between two rows of tapvid-davis, not 3; pass \[row, other\]"):
        videos.keypoint_pairs([0, 1, 2])


def test_arrays_in_fortran_order(tmp_path: Path) -> None:
    plain = tapvid_davis.content()
    turned = {name: {key: np.asfortranarray(array) for key, array in one.items()} for name, one in plain.items()}
    for folder, content in (("c", plain), ("f", turned)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tapvid_davis.pkl").write_bytes(pickle.dumps(content))
    one, other = (setsup.load("tapvid-davis", tmp_path / folder) for folder in "cf")
    assert np.array_equal(one.fetch(range(21))["image"], other.fetch(range(21))["image"])
    assert np.array_equal(one.video_tracks(8).points, other.video_tracks(8).points)
    assert other.video_tracks(8).points.flags.c_contiguous


def test_the_published_zip_is_unpacked_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tapvid_davis.write(tmp_path / "x")
    with zipfile.ZipFile(tmp_path / "tapvid_davis.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tapvid_davis/README.md", "about")
        archive.write(next(tmp_path.rglob("*.pkl")), "tapvid_davis/tapvid_davis.pkl")
    next((tmp_path / "x").rglob("*.pkl")).unlink()
    with pytest.raises(DataError, match=r"run `setsup prepare tapvid-davis .*` once .*\(unzip tapvid_davis\.zip\)"):
        setsup.load("tapvid-davis", tmp_path)
    assert main(["prepare", "tapvid-davis", "--root", str(tmp_path)]) == 0, capsys.readouterr().err
    assert len(setsup.load("tapvid-davis", tmp_path)) == 21
    assert davis.prepare(tmp_path).is_relative_to(tmp_path / "tapvid_davis_unpacked")


class _Evil:
    def __reduce__(self):
        return print, ("it was called",)


def _video(**changes: object) -> dict[str, object]:
    whole = {"video": np.zeros((2, 4, 5, 3), np.uint8), "points": np.zeros((3, 2, 2), np.float32)}
    return {**whole, "occluded": np.zeros((3, 2), bool), **changes}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "contains dict; expected a dictionary or list of videos"),
        ("text", "contains str; expected"),
        ([1], "the video 0 has nothing as video, nothing as points"),
        ([_video(video=np.zeros((2, 4, 5), np.uint8))], r"has uint8 of shape \(2, 4, 5\) as video"),
        ([_video(video=np.zeros((2, 4, 5, 3), np.uint16))], r"has uint16 of shape \(2, 4, 5, 3\) as video"),
        ([_video(video=np.zeros((0, 4, 5, 3), np.uint8))], r"has uint8 of shape \(0, 4, 5, 3\) as video"),
        ([_video(points=np.zeros((3, 3, 2)))], r"float64 of shape \(3, 3, 2\) as points"),
        (
            {"goat": _video(occluded=np.zeros((3, 2), np.uint8))},
            r"the video goat .*uint8 of shape \(3, 2\) as occluded",
        ),
        ({"goat": _video(points=np.full((3, 2, 2), np.nan))}, "the video goat has a visible point that is not finite"),
        (
            [_video(points=np.full((3, 2, 2), -1e300))],
            r"video 0 has a visible point at 1e\+300 times the size of the frame",
        ),
        ([_video(points=np.full((3, 2, 2), 1001.0))], "visible point at 1001 times .*; expected numbers up to 1,000"),
        ([_video(video=_Evil())], r"contains a call of '\w+ print'; setsup .* never unpickles"),
    ],
)
def test_another_content(content: object, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tapvid_davis.pkl").write_bytes(pickle.dumps(content, 4))
    with pytest.raises(DataError, match=rf"tapvid_davis\.pkl.*{words}"):
        setsup.load("tapvid-davis", tmp_path)
    assert "it was called" not in capsys.readouterr().out


def test_a_file_that_is_replaced_or_cut(tmp_path: Path) -> None:
    tapvid_davis.write(tmp_path)
    file = tmp_path / "tapvid_davis" / "tapvid_davis.pkl"
    content = file.read_bytes()
    found = setsup.load("tapvid-davis", tmp_path)
    file.write_bytes(content[:-9])
    with pytest.raises(DataError, match="has been replaced since it was opened"):
        found.fetch(0)
    with pytest.raises(DataError, match="damaged at byte"):
        setsup.load("tapvid-davis", tmp_path)
    file.write_bytes(b"")
    with pytest.raises(DataError, match="is empty"):
        setsup.load("tapvid-davis", tmp_path)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("protocol", [4, 5])
def test_damaged_files(protocol: int, tmp_path: Path) -> None:
    file = tmp_path / "tapvid_davis.pkl"
    healthy = pickle.dumps({"a": _video(), "b": _video(video=np.ones((2, 3, 3, 3), np.uint8))}, protocol)

    def read(content: bytes) -> None:
        file.write_bytes(content)
        found = PointVideos("tapvid-davis", file, None)
        for row in range(len(found)):
            found.fetch(row)
            found.keypoint_pairs([row, row])

    assert survives(healthy, read, 300, head=len(healthy)) > 150
