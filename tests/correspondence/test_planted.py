"""Errors planted in cameras and correspondences: the checks of this folder catch each of them, and pass without."""

from dataclasses import replace

import numpy as np
import pytest

from setsup.correspondence import PixelPairs, partners, planar, recorded_camera
from setsup.correspondence.spatial_rays import ExactRays
from setsup.scenes import Camera
from tests.correspondence import brute_force
from tests.correspondence.brute_force import CHECKS

project, rays, pixels = Camera.project, Camera.rays, Camera.pixels
windowed, resized, carried = Camera.windowed, Camera.resized, PixelPairs.carried
free, same_side = ExactRays.free, ExactRays.same_side


def with_k(camera, shift):
    k = camera.k.copy()
    k[:2, 2] += shift
    return replace(camera, k=k)


def transposed(camera):
    return replace(camera, rotation=camera.rotation.T)


def swapped(pair):
    at, depth = pair
    return at[..., ::-1], depth


def long(ways):
    return ways / np.linalg.norm(ways, axis=-1, keepdims=True)


CAMERA = {
    "principal point shifted where points are projected": ("project", lambda self, p: project(with_k(self, 1e-3), p)),
    "principal point shifted where rays start": ("rays", lambda self, p=None: rays(with_k(self, (0, 1e-3)), p)),
    "principal point of the other axis": (
        "project",
        lambda self, p: project(replace(self, k=self.k[[1, 0, 2]][:, [1, 0, 2]] * np.triu(np.ones((3, 3)))), p),
    ),
    "rotation transposed where points are projected": ("project", lambda self, p: project(transposed(self), p)),
    "rotation transposed where rays start": ("rays", lambda self, p=None: rays(transposed(self), p)),
    "half a pixel in projections": ("project", lambda self, p: (project(self, p)[0] + 0.5, project(self, p)[1])),
    "half a pixel in rays": ("rays", lambda self, p=None: rays(self, np.add(pixels(self) if p is None else p, 0.5))),
    "half a pixel in the centres of pixels": ("pixels", lambda self: pixels(self) + 0.5),
    "x and y swapped in projections": ("project", lambda self, p: swapped(project(self, p))),
    "x and y swapped in the centres of pixels": ("pixels", lambda self: pixels(self)[:, ::-1]),
    "columns before rows": (
        "pixels",
        lambda self: pixels(self).reshape(self.height, self.width, 2).swapaxes(0, 1).reshape(-1, 2),
    ),
    "y upwards in projections": ("project", lambda self, p: project(replace(self, k=self.k * [[1], [-1], [1]]), p)),
    "translation left out": ("project", lambda self, p: project(replace(self, translation=np.zeros(3)), p)),
    "the translation for the centre": ("centre", property(lambda self: self.translation)),
    "skew left out of rays": ("rays", lambda self, p=None: rays(replace(self, k=self.k * (1 - np.eye(3, k=1))), p)),
    "a window moved the other way": ("windowed", lambda self, left, top, h, w: windowed(self, -left, -top, h, w)),
    "resized about the corner's centre": (
        "resized",
        lambda self, h, w: replace(
            self, height=h, width=w, k=np.diag([w / self.width, h / self.height, 1]) @ self.k
        ),
    ),
}  # fmt: skip

OTHER = {
    "resize without half pixels": (planar, "resize", lambda h, w, to_h, to_w: planar.scaling(to_w / w, to_h / h)),
    "flip about the width": (planar, "flip_x", lambda width: np.array([[-1.0, 0, width], [0, 1, 0], [0, 0, 1]])),
    "a crop's left and top swapped": (planar, "crop", lambda left, top: planar.translate(-top, -left)),
    "the matrices of the views swapped": (
        PixelPairs, "carried", lambda self, one, two, size1, size2: carried(self, two, one, size1, size2),
    ),
    "nothing hides anything": (ExactRays, "free", lambda self, o, w, p: np.ones(len(w), bool)),
    "occlusion by a hundredth of the way": (ExactRays, "free", lambda self, o, w, p: free(self, o, 0.99 * w, p)),
    "occlusion up to the surface itself": (ExactRays, "free", lambda self, o, w, p: free(self, o, 1.0002 * w, p)),
    "either side of a surface counts": (ExactRays, "same_side", lambda self, o1, o2, w, p: np.ones(len(w), bool)),
    "the sides exchanged": (ExactRays, "same_side", lambda self, o1, o2, w, p: ~same_side(self, o1, o2, w, p)),
    "poses taken for their inverses": (
        brute_force,
        "recorded_camera",
        lambda pose, k, h, w: recorded_camera(np.linalg.inv(pose), k, h, w),
    ),
    "distance for depth": (Camera, "rays", lambda self, p=None: long(rays(self, p))),
    "sizes of the views swapped": (
        brute_force,
        "partners",
        lambda pairs, one, two, key: partners(pairs, two, one, key),
    ),
}  # fmt: skip

PLANTED = {name: (Camera, *rest) for name, rest in CAMERA.items()} | OTHER


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_checks_pass_where_nothing_is_planted(check):
    check()


@pytest.mark.long("planted errors")
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_caught(name, monkeypatch):
    where, what, wrong = PLANTED[name]
    monkeypatch.setattr(where, what, wrong)
    assert any(fails(check) for check in CHECKS), f"no check catches: {name}"


def fails(check):
    try:
        check()
    except AssertionError:
        return True
    return False
