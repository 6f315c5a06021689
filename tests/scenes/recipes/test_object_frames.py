"""Turning objects: rotation about the middle of the box, and a camera that stands still."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from setsup.errors import FactorError, SetsupError
from setsup.scenes import Mesh
from setsup.scenes.recipes import ObjectFrames, ObjectView

ROOF = Mesh([[0, 0, 0], [4, 0, 0], [0, 0, -2], [1, 1, 1]], [[0, 1, 2], [0, 1, 3]])


@pytest.mark.parametrize("axis", ["up", "any"])
def test_models_turn_about_their_middle(axis):
    recipe = ObjectFrames({"roof": ROOF, "other": ROOF}, turn=10.0, axis=axis, seed=4)
    still = ObjectView({"roof": ROOF}).scene({"model": "roof"})
    assert np.array_equal(recipe.scene({"model": "roof", "frame": 0}).triangles.corners, still.triangles.corners)
    axes = {}
    for model in ("roof", "other"):
        before = still.triangles.corners.reshape(-1, 3).copy()
        after = recipe.scene({"model": model, "frame": 7}).triangles.corners.reshape(-1, 3)
        turned = Rotation.align_vectors(after, before)[0].as_rotvec()
        assert np.abs(Rotation.from_rotvec(turned).apply(before) - after).max() < 1e-9
        assert np.linalg.norm(turned) == pytest.approx(np.radians(70))
        axes[model] = turned / np.linalg.norm(turned)
    up = np.abs(axes["roof"] - [0, 0, 1]).max() < 1e-9
    assert up == (axis == "up")
    assert (np.abs(axes["roof"] - axes["other"]).max() < 1e-9) == (axis == "up")


def test_the_camera_stands_still():
    options = {"azimuth": 40.0, "elevation": 10.0, "distance": 30.0, "jitter": 0.1, "size": (32, 48)}
    recipe = ObjectFrames({"roof": ROOF}, **options)
    views = ObjectView({"roof": ROOF}, jitter=0.1, size=(32, 48))
    scene = recipe.scene({"model": "roof", "frame": 3})
    cameras = [recipe.camera({"model": "roof", "frame": frame}, scene) for frame in (0, 9)]
    assert cameras[0] == cameras[1] == views.camera({"model": "roof", "azimuth": 40.0, "elevation": 10.0}, scene)
    assert [factor.name for factor in recipe.factors] == ["model", "frame"]
    assert recipe.key == ObjectFrames({"roof": ROOF}, 2, **options).key
    assert recipe.key != ObjectFrames({"roof": ROOF}).key


def test_wrong_options():
    for options, message in (({"turn": 400}, "turn"), ({"axis": "x"}, "axis"), ({"frames": 0}, "frames")):
        with pytest.raises(SetsupError, match=message):
            ObjectFrames({"roof": ROOF}, **options)
    with pytest.raises(FactorError, match="frame must be an integer"):
        ObjectFrames({"roof": ROOF}).scene({"model": "roof", "frame": 0.5})
