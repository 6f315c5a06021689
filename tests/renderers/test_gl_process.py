"""The gl renderer and processes: fork, spawn, memory, missing drivers. Each in a process of its own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HEAD = """
import os, sys
import numpy as np
from setsup.errors import DataError
from setsup.scenes import Ambient, Camera, Material, Mesh, Placement, Scene
from setsup_renderers.gl import GLRenderer

SQUARE = Mesh([[-9, -9, 0], [9, -9, 0], [9, 9, 0], [-9, 9, 0]], [[0, 1, 2], [0, 2, 3]], uv=np.zeros((4, 2)))
SCENE = Scene((Placement(SQUARE),), (Ambient(),))
CAMERA = Camera.look_at((0, 0, 4), (0, 0, 0), height=16, width=16, focal_length=20)

def drawn():
    renderer = GLRenderer()
    renderer.load(SCENE)
    return int(renderer.render(CAMERA).rgb.mean())
"""


def run(code: str, **environment: str) -> str:
    """What a fresh process prints; one that hangs is an error."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_and_making_one_touches_no_gl() -> None:
    code = """
    GLRenderer()
    print([name for name in ("moderngl", "glcontext", "ctypes.util", "OpenGL") if name in sys.modules])
    """
    assert run(code) == "[]\n"


@pytest.mark.long("worker processes")
def test_a_process_that_has_only_asked_may_fork(gl: str) -> None:
    code = """
    GLRenderer.check()
    GLRenderer()
    child = os.fork()
    if child == 0:
        print(drawn(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(drawn())
    """
    assert run(code) == "188\n188\n"


def test_after_it_has_drawn_a_fork_says_to_spawn_and_does_not_hang(gl: str) -> None:
    code = """
    renderer = GLRenderer()
    renderer.load(SCENE)
    renderer.render(CAMERA)
    child = os.fork()
    if child == 0:
        for use in (drawn, lambda: renderer.render(CAMERA), GLRenderer.check):
            try:
                print(use())
            except DataError as error:
                print("spawn" in str(error))
        renderer.close()
        GLRenderer().close()
        sys.stdout.flush()
        grandchild = os.fork()
        if grandchild == 0:
            try:
                drawn()
            except DataError:
                print("again", flush=True)
            os._exit(0)
        os.waitpid(grandchild, 0)
        os._exit(0)
    os.waitpid(child, 0)
    print(drawn(), flush=True)
    """
    assert run(code) == "True\nTrue\nTrue\nagain\n188\n"


@pytest.mark.long("worker processes")
def test_spawned_processes_draw(gl: str, tmp_path: Path) -> None:
    script = tmp_path / "draws.py"
    body = """
    if __name__ == "__main__":
        import multiprocessing
        print(drawn())
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            print([pool.apply(drawn) for _ in range(3)])
    """
    script.write_text(HEAD + textwrap.dedent(body))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "188\n[188, 188, 188]\n"), done.stderr


@pytest.mark.long("worker processes")
def test_thousands_of_scenes_take_no_more_memory(gl: str) -> None:
    code = """
    def used():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def scene(number):
        picture = np.full((64, 64, 3), number % 256, np.uint8)
        faces = np.tile(SQUARE.faces, (200, 1))
        mesh = Mesh(SQUARE.vertices, faces, uv=SQUARE.uv, materials=(Material((255,) * 3, picture),))
        return Scene((Placement(mesh),), (Ambient(),))

    kept = GLRenderer()
    seen = []
    for number in range(400):
        kept.load(scene(number))
        kept.render(CAMERA)
        other = GLRenderer()  # never closed
        other.load(scene(number))
        other.render(CAMERA)
        if number in (100, 399):
            seen.append(used())
    print(seen[1] - seen[0])
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc here to tell how much memory a process has")
    assert float(run(code)) < 10  # megabytes; without giving back it would be 100 and more


def site(folder: Path, code: str) -> dict[str, str]:
    """Environment in which every Python runs some code when it starts."""
    (folder / "sitecustomize.py").write_text(textwrap.dedent(code))
    return {"PYTHONPATH": str(folder)}


SAYS = """
for use in (GLRenderer.check, drawn):
    try:
        print(use())
    except DataError as error:
        print(error)
"""


@pytest.mark.long("worker processes")
def test_no_library_of_egl(tmp_path: Path) -> None:
    without = """
    import ctypes

    class CDLL(ctypes.CDLL):
        def __init__(self, name, *rest, **more):
            if name and "EGL" in name:
                raise OSError(f"{name}: cannot open shared object file: No such file or directory")
            super().__init__(name, *rest, **more)

    ctypes.CDLL = CDLL
    """
    pytest.importorskip("moderngl")
    lines = run(SAYS, **site(tmp_path, without)).splitlines()
    assert len(lines) == 2, "one sentence each"
    for line in lines:
        assert "apt-get install libegl1 libgl1" in line


def test_no_moderngl(tmp_path: Path) -> None:
    lines = run(SAYS, **site(tmp_path, "import sys; sys.modules['moderngl'] = None")).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "moderngl is required but not installed: pip install '.[render]'" in line


@pytest.mark.long("worker processes")
@pytest.mark.parametrize(
    "environment",
    [
        {"__EGL_VENDOR_LIBRARY_DIRS": "/nonexistent"},
        {"MESA_GL_VERSION_OVERRIDE": "3.3"},
        {"GLCONTEXT_LINUX_LIBGL": "libnone.so"},
    ],
)
def test_a_driver_that_does_not_do(gl: str, environment: dict[str, str]) -> None:
    if "llvmpipe" not in gl:
        pytest.skip("only Mesa's drivers can be spoilt so")
    lines = run(SAYS, **environment).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert "libegl1 libgl1" in line


def test_a_driver_that_crashes(tmp_path: Path) -> None:
    pytest.importorskip("moderngl")
    crash = """
    import os, sys

    if "setsup_renderers.gl_probe" in " ".join(sys.orig_argv):
        os.abort()
    """
    line = run("try: GLRenderer.check()\nexcept DataError as error: print(error)", **site(tmp_path, crash))
    assert "ended the process" in line
    assert "embree" in line
