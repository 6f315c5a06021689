"""On disks that are really full or read-only: tiny ones, mounted for one process."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def on_disk(folder: Path, options: str, script: str) -> str:
    """Run a script while a disk of 256 kB is mounted at `folder`, for it alone."""
    folder.mkdir()
    mount = 'mount -t tmpfs -o size=256k tmpfs "$1" && mkdir "$1/cache" && mount -o "remount,$2" "$1"'
    inside = ["sh", "-c", f'{mount} || exit 77; exec "$3" -c "$4" "$1"', "sh", str(folder), options]
    code = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r})\nfrom pathlib import Path\n"
    code += f"from setsup.files import *\nfrom setsup.errors import DataError\nfolder = Path(sys.argv[1])\n{script}"
    try:
        done = subprocess.run(
            ["unshare", "--mount", "--map-root-user", *inside, sys.executable, code], capture_output=True, text=True
        )
    except FileNotFoundError:
        pytest.skip("this system has no unshare command")
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("this system does not let the tests mount a disk")
    assert done.returncode == 0, done.stderr
    return done.stdout


WRITE = """
try:
    with written(folder / "x") as part:
        part.write_bytes(bytes(1_000_000))
except DataError as error:
    print(error)
print(sorted(path.name for path in folder.iterdir()))
"""


def test_a_full_disk(tmp_path: Path) -> None:
    said = on_disk(tmp_path / "disk", "rw", WRITE).splitlines()
    assert "x: the disk is full; free some space there" in said[0]
    assert said[1] == "['cache']"


def test_a_read_only_disk(tmp_path: Path) -> None:
    said = on_disk(tmp_path / "disk", "ro", WRITE).splitlines()
    assert "x: the disk is read-only; choose a writable folder" in said[0]
    assert said[1] == "['cache']"


def test_a_lock_on_a_read_only_disk_goes_to_the_cache(tmp_path: Path) -> None:
    script = f"""
import os
os.environ["SETSUP_CACHE"] = {str(tmp_path / "cache")!r}
with locked(folder / "x"):
    print(len(list((cache_folder() / "locks").iterdir())))
"""
    assert on_disk(tmp_path / "disk", "ro", script) == "1\n"


def test_fetch_refuses_a_file_that_does_not_fit(tmp_path: Path) -> None:
    script = """
try:
    fetch(load_manifest("mnist"), folder)
except DataError as error:
    print(error)
"""
    assert "mnist requires 11.6 MB in" in on_disk(tmp_path / "disk", "rw", script)


FULL = """
import shutil, numpy as np
from setsup.files.mapped import new_array
source = Path(np._core._multiarray_umath.__file__)  # of several megabytes, on another disk
def torch_file(part):
    import torch
    with part.open("wb") as file:
        torch.save({"a": torch.zeros(1000, 1000), "b": torch.zeros(20)}, file)
ways = {
    "mapped": lambda part: new_array(part, np.float32, (1000, 250)).fill(1),
    "np.save": lambda part: np.save(part, np.zeros(200_000)),
    "np.savez": lambda part: np.savez(part, a=np.zeros(200_000)),
    "copy": lambda part: shutil.copyfile(source, part),
}
if MORE:
    ways["torch.save"] = torch_file
for name, way in ways.items():
    try:
        with written(folder / "x.npy" if name != "np.savez" else folder / "x.npz") as part:
            way(part)
        print(name, "wrote")
    except DataError as error:
        print(name, error)
    assert sorted(path.name for path in folder.iterdir()) == ["cache"], name
"""


@pytest.mark.parametrize("more", [False, pytest.param(True, marks=pytest.mark.long("full disks"))])
def test_whatever_writes_on_a_full_disk(tmp_path: Path, more: bool) -> None:
    said = on_disk(tmp_path / "disk", "rw", FULL.replace("MORE", str(more))).splitlines()
    assert len(said) == 4 + more
    assert all("the disk is full; free some space there" in line for line in said), said


def test_whatever_writes_beyond_a_limit() -> None:
    """As on a full disk, where no disk can be mounted."""
    code = f"import sys; sys.path.insert(0, {str(CHECKOUT)!r})\nimport resource, tempfile\nfrom pathlib import Path\n"
    code += "from setsup.files import *\nfrom setsup.errors import DataError\n"
    code += "folder = Path(tempfile.mkdtemp()); (folder / 'cache').mkdir()\n"
    code += "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
    done = subprocess.run([sys.executable, "-c", code + FULL.replace("MORE", "False")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 4
    assert all(" cannot write " in line and "free some space there" in line for line in said), said
