"""Recipes give the same bits whatever kernels numpy, its BLAS and the C library take for the processor."""

import hashlib
import inspect
import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from setsup.scenes import Camera, Mesh, Placement, Scene
from setsup.scenes.meshes.primitives import box, capsule, cylinder, sphere
from setsup.scenes.recipes import ObjectFrames, ObjectView, Room, RoomFrames, Shapes3D

pytest.importorskip("trimesh")

PRESCOTT = {"OPENBLAS_CORETYPE": "Prescott"}
NO_AVX512 = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR AVX512_SKX"}
NO_AVX = {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX2 FMA3 AVX512_SKX"}
OLD_LIBM = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"}


def digests() -> dict[str, str]:
    """Of scenes and cameras of all recipes."""
    x, y, z = box((4, 3.5, 2.5)).vertices.T
    shell = Mesh(np.stack([x, 0.8 * y - 0.6 * z, 0.6 * y + 0.8 * z], axis=1), box().faces)
    angles = np.linspace(-400, 700, 12)
    shape = {"floor_hue": 0.1, "wall_hue": 0.3, "object_hue": 0.7, "scale": 1.0357, "shape": "capsule"}
    recipes = {
        "room": (Room(rooms=2, pairs=2, seed=3), [{"room": 1, "pair": n, "side": m} for n in (0, 1) for m in (0, 1)]),
        "room of a mesh": (
            Room(pairs=1, seed=3, meshes={"box": shell}, up=(0, -0.6, 0.8)),
            [{"room": 0, "pair": 0, "side": side} for side in (0, 1)],
        ),
        "room frames": (
            RoomFrames(rooms=2, frames=24, moving=3, seed=3),
            [{"room": 1, "frame": frame} for frame in (24, 0, 9)],
        ),
        "object frames": (
            ObjectFrames({"ball": sphere(0.3, segments=17)}, axis="any"),
            [{"model": "ball", "frame": frame} for frame in (24, 0, 9)],
        ),
        "shapes3d": (Shapes3D(), [{**shape, "orientation": float(angle)} for angle in angles]),
        "object": (
            ObjectView({"ball": sphere(0.3, segments=17)}),
            [
                {"model": "ball", "azimuth": float(one), "elevation": float(two)}
                for one, two in itertools.product(angles, (3.7, 41.0))
            ],
        ),
    }
    found = {}
    for name, (recipe, rows) in recipes.items():
        scene = recipe.scene(rows[0])
        cameras = [recipe.camera(row, scene).to_dict() for row in rows]
        found[name] = hashlib.sha256((scene.digest + repr(cameras)).encode()).hexdigest()
    placed = [Placement(mesh, translation=(0.1, 0.2, 0.3)) for mesh in (cylinder(0.7), capsule(0.3), sphere(1.7))]
    camera = Camera.look_at((0.3, 1.7, 2.1), (0.1, 0.2, 0.4), height=48, width=64, field_of_view=0.7)
    found["primitives"] = Scene(tuple(placed)).digest + repr(camera.to_dict()) + repr(camera.centre.tolist())
    return found


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    return digests()


@pytest.mark.parametrize("settings", [
    pytest.param({**PRESCOTT, **NO_AVX, **OLD_LIBM}, id="an old processor", marks=pytest.mark.long("processors")),
    pytest.param({"OPENBLAS_CORETYPE": "Haswell"}, id="BLAS of Haswell", marks=pytest.mark.long("processors")),
    pytest.param(PRESCOTT, id="BLAS of Prescott", marks=pytest.mark.smoke),
    pytest.param(NO_AVX512, id="numpy without AVX-512", marks=pytest.mark.smoke),
    pytest.param(NO_AVX, id="numpy without AVX", marks=pytest.mark.smoke),
    pytest.param(OLD_LIBM, id="libm without FMA", marks=pytest.mark.smoke),
    pytest.param({"ATEN_CPU_CAPABILITY": "default"}, id="torch without AVX", marks=pytest.mark.long("processors")),
])  # fmt: skip
def test_no_kernel_changes_a_recipe(settings: dict[str, str], here: dict[str, str]) -> None:
    own = inspect.getsource(sys.modules[__name__]).partition("\n\n@pytest.fixture")[0]
    program = f"{own}\nprint(json.dumps(digests()))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], **settings},
    )
    assert json.loads(done.stdout) == here
