"""Captures beside COLMAP's own library: models that pycolmap writes, and those of the other tests, which it reads."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from tests.capture_files import LENSES, cloud, entries, observed, point_id, poses, world, write_colmap

pycolmap = pytest.importorskip("pycolmap", reason="pycolmap is not installed")

SIZE = (96, 128)
CAMERAS = {
    "SIMPLE_PINHOLE": [160, 63, 47],
    "PINHOLE": [160, 150, 63, 47],
    "SIMPLE_RADIAL": [160, 63, 47, -0.05],
    "OPENCV": [160, 150, 63, 47, -0.05, 0.01, 0.001, -0.002],
}


def made(lens: str) -> "pycolmap.Reconstruction":
    """A reconstruction of four images, each of which observes all of thirty points, and ten that are none."""
    pycolmap.set_random_seed(4)
    options = pycolmap.SyntheticDatasetOptions()
    options.num_rigs, options.num_cameras_per_rig, options.num_frames_per_rig = 1, 1, 4
    options.num_points3D, options.num_points2D_without_point3D = 30, 10
    options.camera_height, options.camera_width = SIZE
    options.camera_model_id, options.camera_params = getattr(pycolmap.CameraModelId, lens), CAMERAS[lens]
    return pycolmap.synthesize_dataset(options)


@pytest.mark.parametrize("kind", ["binary", "text"])
@pytest.mark.parametrize("lens", CAMERAS)
def test_what_pycolmap_writes(lens: str, kind: str, tmp_path: Path) -> None:
    """Rigs and frames, which are beside the model, are not read; poses, cameras and observations are the same."""
    model = made(lens)
    (tmp_path / "sparse" / "0").mkdir(parents=True)
    (tmp_path / "images").mkdir()
    getattr(model, f"write_{kind}")(str(tmp_path / "sparse" / "0"))
    images = sorted(model.images.values(), key=lambda image: image.name)
    for image in images:
        Image.new("RGB", SIZE[::-1]).save(tmp_path / "images" / image.name)
    assert list((tmp_path / "sparse" / "0").glob("rigs.*"))
    capture = setsup.open(tmp_path, undistort=False)
    assert capture.image_names(range(len(capture))) == [image.name for image in images]
    points = capture.points(0)
    assert {point: model.points3D[point].xyz.tolist() for point in points.ids.tolist()} == dict(
        zip(points.ids.tolist(), points.xyz.tolist(), strict=True)
    )
    assert len(points.ids) == len(model.points3D) == 30
    for row, image in enumerate(images):
        found = capture.fetch(row, ["pose", "intrinsics"])
        camera = np.linalg.inv(found["pose"].astype(float))[:3]
        assert np.abs(camera - image.cam_from_world().matrix()).max() < 1e-5
        k = model.cameras[image.camera_id].calibration_matrix()
        k[:2, 2] -= 0.5  # COLMAP has the centre of the first pixel at ½
        assert np.abs(found["intrinsics"] - k).max() < 1e-5
    straight = setsup.open(tmp_path)
    for row, image in enumerate(images):
        pixels, ids = straight.observations(row)
        known = [one for one in image.points2D if one.has_point3D()]
        assert ids.tolist() == [one.point3D_id for one in known]
        ideal = pycolmap.Camera(
            model="PINHOLE", width=SIZE[1], height=SIZE[0], params=[*CAMERAS[lens][:1], *CAMERAS[lens][:4][-3:]]
            if lens in ("PINHOLE", "OPENCV") else [160, 160, 63, 47], camera_id=1,
        )  # fmt: skip
        xyz = np.array([model.points3D[point].xyz for point in ids])
        seen = xyz @ image.cam_from_world().matrix()[:, :3].T + image.cam_from_world().matrix()[:, 3]
        assert np.abs(np.array(ideal.img_from_cam(seen)) - 0.5 - pixels).max() < 0.001


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("lens", LENSES)
def test_what_other_tests_write(lens: str, text: bool, tmp_path: Path) -> None:
    """Models that tests write by the format's description are what pycolmap takes them for."""
    model = pycolmap.Reconstruction(str(write_colmap(tmp_path, lens, text=text)))
    assert model.num_points3D() == len(cloud())
    for frame, (number, _, _, name, points) in enumerate(entries(lens)[::-1]):
        image = model.images[number]
        assert image.name == name
        assert np.abs(np.linalg.inv(poses()[frame])[:3] - image.cam_from_world().matrix()).max() < 1e-9
        assert [(one.x(), one.y()) for one in image.points2D] == [(x, y) for x, y, _ in points]
        places = [image.project_point(xyz) for xyz in world(cloud())]
        assert np.abs(np.array(places) - observed(poses()[frame], lens)).max() < 1e-6
    assert {point_id(number) for number in range(len(cloud()))} == set(model.points3D)
