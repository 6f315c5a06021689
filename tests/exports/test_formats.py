"""Random arrays through each writer and a reader that was written from the description of the format."""

import io
import pickle
import pickletools
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from setsup.datasets.formats.pickled import read_pickle
from setsup.errors import SetsupError
from setsup.exports import Video, encode_flo, encode_kitti_flow, encode_rle, write_tap_vid
from setsup.exports.bop import encode_ply, info_entry, model_entry
from setsup.exports.coco import box_of
from setsup.exports.png import encode_png
from setsup.exports.tapvid import video_of, write_video
from setsup.scenes import Material, Mesh
from tests.exports.readers import decode_rle, read_deep_png, read_flo, read_kitti, read_ply

_sides = st.integers(1, 9)


@st.composite
def _flows(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.tuples(_sides, _sides, st.just(2)))
    return draw(hnp.arrays(np.float32, shape, elements=st.floats(width=32)))


# -- flow --------------------------------------------------------------------------------------------------------------


@given(_flows())
def test_flo_has_the_same_bits(flow: np.ndarray) -> None:
    found = read_flo(encode_flo(flow)).astype(np.float32)
    with np.errstate(invalid="ignore"):
        known = (np.abs(flow) < 1e9).all(axis=2)
    np.testing.assert_array_equal(found[known], flow[known])
    assert (found[~known] == np.float32(1e10)).all()


@given(_flows())
def test_kitti_is_exact_to_a_128th(flow: np.ndarray) -> None:
    found, valid = read_kitti(encode_kitti_flow(flow))
    with np.errstate(invalid="ignore"):
        inner = (np.abs(flow) < 511.99).all(axis=2)
        outer = (np.abs(flow) <= 512).all(axis=2)
    assert (valid | ~inner).all()
    assert (outer | ~valid).all()
    assert (np.abs(found[valid] - flow[valid]) <= 1 / 128).all()


def test_kitti_in_every_step() -> None:
    steps = np.arange(-32767, 32768).reshape(-1, 1) / 64
    flow = np.stack([steps, steps[::-1]], axis=2)
    found, valid = read_kitti(encode_kitti_flow(flow))
    assert valid.all()
    np.testing.assert_array_equal(found, flow)
    hidden = np.zeros(flow.shape[:2], bool)
    hidden[3] = True
    pixels = read_deep_png(encode_kitti_flow(flow, hidden))
    assert pixels[3, 0, 2] == 1
    assert not np.delete(pixels, 3, axis=0).any()


def test_opencv_reads_them(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    flow = np.random.default_rng(0).uniform(-400, 400, (37, 53, 2)).astype(np.float32)
    flow[2, 3], flow[5, 7] = np.nan, (600, 0)
    (tmp_path / "a.flo").write_bytes(encode_flo(flow))
    np.testing.assert_array_equal(cv2.readOpticalFlow(str(tmp_path / "a.flo")), np.nan_to_num(flow, nan=1e10))
    (tmp_path / "a.png").write_bytes(encode_kitti_flow(flow))
    pixels = cv2.imread(str(tmp_path / "a.png"), cv2.IMREAD_ANYDEPTH | cv2.IMREAD_COLOR)[..., ::-1].astype(np.float64)
    known = pixels[..., 2] == 1
    assert np.argwhere(~known).tolist() == [[2, 3], [5, 7]]
    assert np.abs((pixels[..., :2] - 2**15) / 64 - flow)[known].max() <= 1 / 128


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 3), (0, 3, 2)])
def test_flow_of_another_shape(shape: tuple[int, ...]) -> None:
    for encode in (encode_flo, encode_kitti_flow):
        with pytest.raises(SetsupError, match=r"flow must be numbers of shape \(height, width, 2\)"):
            encode(np.zeros(shape))
    with pytest.raises(SetsupError, match="valid must be a boolean array"):
        encode_kitti_flow(np.zeros((2, 3, 2)), np.ones((2, 3)))


# -- masks -------------------------------------------------------------------------------------------------------------


@given(hnp.arrays(bool, st.tuples(_sides, _sides)))
def test_run_lengths(mask: np.ndarray) -> None:
    told = encode_rle(mask)
    np.testing.assert_array_equal(decode_rle(told), mask)
    if mask.any():
        x, y, width, height = box_of(mask)
        inside = np.zeros_like(mask)
        inside[y : y + height, x : x + width] = True
        assert not mask[~inside].any()
        assert mask[y].any()
        assert mask[y + height - 1].any()
        assert mask[:, x].any()
        assert mask[:, x + width - 1].any()


def test_long_runs() -> None:
    rng = np.random.default_rng(1)
    for share in (0.0005, 0.5, 0.9995):
        mask = rng.random((210, 330)) < share
        np.testing.assert_array_equal(decode_rle(encode_rle(mask)), mask)
    # what pycocotools 2.0.11 writes for this mask
    ring = np.zeros((40, 50), bool)
    ring[5:35, 8:42] = True
    ring[12:20, 15:30] = False
    assert encode_rle(ring)["counts"] == RING
    with pytest.raises(SetsupError, match="mask must be a boolean array"):
        encode_rle(np.zeros((2, 2)))


RING = "U:n0:000000000000YON82HN82HN82HN82HN82HN82HN82HN82HN82HN82HN82HN82HN82HN82HN82?0000000000000000000000k9"


# -- images ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((5, 7), "u1"), ((5, 7, 1), "u1"), ((5, 7, 3), "u1"), ((5, 7, 4), "u1"), ((5, 7), "u2"), ((5, 7, 3), "u2")],
)
def test_png(shape: tuple[int, ...], dtype: str) -> None:
    image = np.random.default_rng(2).integers(0, np.iinfo(dtype).max, shape).astype(dtype)
    content = encode_png(image)
    found = read_deep_png(content) if image.itemsize * image.ndim == 6 else np.asarray(Image.open(io.BytesIO(content)))
    np.testing.assert_array_equal(found.reshape(shape), image)


# -- tracks ------------------------------------------------------------------------------------------------------------


@st.composite
def _videos(draw: st.DrawFn) -> Video:
    times, height, width, count = (draw(st.integers(low, 5)) for low in (1, 1, 1, 0))
    return Video(
        draw(hnp.arrays(np.uint8, (times, height, width, 3))),
        draw(hnp.arrays(np.float32, (count, times, 2), elements=st.floats(0, 1, width=32))),
        draw(hnp.arrays(bool, (count, times))),
    )


class _Plain(pickle.Unpickler):
    """Knows what numpy's arrays are made of, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        known = {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}
        assert (module, name) in known
        return super().find_class(module, name)


@settings(max_examples=20)
@given(st.dictionaries(st.text(max_size=5), _videos(), max_size=3))
def test_tap_vid(videos: dict[str, Video]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tapvid.pkl"
        write_tap_vid(path, videos.items())
        content = path.read_bytes()
    found = _Plain(io.BytesIO(content)).load()
    assert list(found) == list(videos)
    for name, video in videos.items():
        assert list(found[name]) == ["video", "points", "occluded"]
        for array, key in zip(video, found[name], strict=True):
            np.testing.assert_array_equal(found[name][key], array)
            assert found[name][key].dtype == array.dtype
            assert found[name][key].flags.writeable
    assert next(arg for code, arg, _ in pickletools.genops(content) if code.name == "PROTO") == 4
    mapped = read_pickle(content, Path("tapvid.pkl"))
    for name, video in videos.items():
        for array, key in zip(video, mapped[name], strict=True):
            np.testing.assert_array_equal(mapped[name][key].view(content), array)


def test_one_file_for_a_video() -> None:
    video = Video(np.ones((2, 3, 4, 3), np.uint8), np.zeros((1, 2, 2), np.float32), np.ones((1, 2), bool))
    file = io.BytesIO()
    write_video(file, video)
    file.seek(0)
    with np.load(file) as found:
        assert set(found.files) == {"video", "points", "occluded"}
        for name, array in video._asdict().items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype


def test_positions_are_shares_of_the_frame() -> None:
    frames = np.zeros((2, 4, 8, 4), np.uint8)
    frames[0, 0, 0] = 200, 100, 50, 128
    pixels = [[[0, 0], [7.5, 3.5]], [[-0.5, 0], [-0.6, 0]], [[np.nan, np.nan], [3.5, 1.5]]]
    video = video_of(frames, pixels, [[True, True], [True, True], [True, False]])
    assert video.video[0, 0, 0].tolist() == [100, 50, 25]
    assert video.points[0].tolist() == [[0.0625, 0.125], [1, 1]]
    assert video.points[1, 0].tolist() == [0, 0.125]
    assert video.occluded.tolist() == [[False, False], [False, True], [True, True]]
    with pytest.raises(SetsupError, match="frames must be uint8"):
        video_of(np.zeros((2, 4, 8, 3)), pixels, np.ones((3, 2), bool))
    with pytest.raises(SetsupError, match="a column for each frame"):
        video_of(frames, pixels, np.ones((3, 3), bool))


def test_videos_that_do_not_fit(tmp_path: Path) -> None:
    good = Video(np.zeros((2, 4, 6, 3), np.uint8), np.zeros((1, 2, 2), np.float32), np.zeros((1, 2), bool))
    with pytest.raises(SetsupError, match="two videos have the name 'a'"):
        write_tap_vid(tmp_path / "a.pkl", [("a", good), ("a", good)])
    for bad in (good._replace(points=np.zeros((1, 3, 2), np.float32)), good._replace(video=np.zeros((2, 4, 6, 3)))):
        with pytest.raises(SetsupError, match="must have uint8 frames"):
            write_tap_vid(tmp_path / "a.pkl", [("a", bad)])  # type: ignore[list-item]
    for name, video in ((3, good), ("a", None), ("a", good[:2])):
        with pytest.raises(SetsupError, match=r"must be a (string|Video of three arrays), not"):
            write_tap_vid(tmp_path / "a.pkl", [(name, video)])  # type: ignore[list-item]
    assert list(tmp_path.iterdir()) == []  # nothing half written


# -- BOP ---------------------------------------------------------------------------------------------------------------


def test_models_are_in_millimetres() -> None:
    rng = np.random.default_rng(3)
    vertices = rng.normal(size=(30, 3))
    faces = np.array([rng.choice(30, 3, replace=False) for _ in range(40)])
    mesh = Mesh(vertices, faces, materials=(Material((255, 0, 0)), Material((0, 0, 255))), material=np.arange(40) % 2)
    rows, triangles = read_ply(encode_ply(mesh))
    np.testing.assert_allclose(rows[triangles][:, :, :3], 1000 * vertices[faces], rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(rows[:, 3:6], axis=1), 1, atol=1e-6)
    colors = np.array([[255, 0, 0], [0, 0, 255]])[np.arange(40) % 2]
    np.testing.assert_array_equal(rows[triangles][:, :, 6:], np.repeat(colors[:, None], 3, axis=1))
    about = model_entry(vertices)
    distances = np.linalg.norm(vertices[:, None] - vertices, axis=2)
    assert about["diameter"] == pytest.approx(1000 * distances.max())
    assert [about[f"size_{axis}"] for axis in "xyz"] == pytest.approx((1000 * np.ptp(vertices, axis=0)).tolist())
    assert [about[f"min_{axis}"] for axis in "xyz"] == pytest.approx((1000 * vertices.min(axis=0)).tolist())
    flat = np.array([[0, 0, 0], [3, 0, 0], [0, 4, 0], [1, 1, 0]], float)
    assert model_entry(flat)["diameter"] == pytest.approx(5000)


@pytest.mark.parametrize("wrap", ["clamp", "mirror"])
def test_models_have_the_colors_of_the_corners_of_a_texture(wrap: Any) -> None:
    texture = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [255, 255, 255]]], np.uint8)
    square, faces = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]]
    uv = np.array(square, np.float32)[:, :2]
    materials = (Material((255, 255, 255), texture, wrap=(wrap, wrap)), Material((10, 20, 30)))
    rows, triangles = read_ply(
        encode_ply(Mesh(square, [*faces, faces[0]], uv=uv, materials=materials, material=[0, 0, 1]))
    )
    colors = texture[[1, 1, 0, 0], [0, 1, 1, 0]]
    np.testing.assert_array_equal(rows[triangles][:2, :, 6:], colors[faces])
    np.testing.assert_array_equal(rows[triangles][2, :, 6:], [[10, 20, 30]] * 3)


def test_models_in_trimesh() -> None:
    trimesh = pytest.importorskip("trimesh")
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    found = trimesh.load(io.BytesIO(encode_ply(mesh)), file_type="ply", process=False)
    assert found.is_watertight
    assert found.volume == pytest.approx(1e9 / 6)


def test_info_of_masks() -> None:
    whole, visible = np.zeros((6, 8), bool), np.zeros((6, 8), bool)
    whole[1:5, 2:7], visible[1:5, 2:4] = True, True
    depth = np.ones((6, 8), np.float32)
    depth[1] = 0
    assert info_entry(visible, whole, depth) == {
        "px_count_all": 20,
        "px_count_valid": 15,
        "px_count_visib": 8,
        "visib_fract": 0.4,
        "bbox_obj": [2, 1, 4, 3],  # as the code of BOP has them: up to the last pixel
        "bbox_visib": [2, 1, 1, 3],
    }
    nothing = info_entry(np.zeros_like(whole), whole, depth)
    assert nothing["bbox_obj"] == nothing["bbox_visib"] == [-1, -1, -1, -1]
    assert nothing["visib_fract"] == 0


def test_bytes_of_a_flo() -> None:
    content = encode_flo(np.array([[[1, 2]], [[3, 4]]], np.float32))
    assert content == b"PIEH" + struct.pack("<ii4f", 1, 2, 1, 2, 3, 4)
