"""Training while the disk of the run, or that of temporary files, is full."""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

from setsup.errors import SetsupError
from setsup.experiments import RunConfig, train
from tests.experiments.small import PLAIN

ROOT = Path(__file__).resolve().parents[2]

# sizes in kB; a run of this preset needs about 100
SCRIPT = """
import subprocess, sys
from dataclasses import replace
from pathlib import Path
from setsup.errors import SetsupError
from setsup.experiments import RunConfig, train
from tests.experiments.small import PLAIN

disk = Path(sys.argv[1])
for size in 4, 8, 40, 48, 56, 72, 88, 96, 112:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", disk]).returncode:
        sys.exit(77)
    try:
        train(replace(PLAIN, steps=3), disk / "run", config=RunConfig(accelerator="cpu"))
    except SetsupError as error:
        print(error)
    print(size, [path.name for path in disk.rglob("*.tmp*")])
    subprocess.run(["umount", disk], check=True)
"""


@pytest.mark.long("trainings")
def test_a_training_needs_no_folder_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    run = train(replace(PLAIN, steps=2), tmp_path / "run", config=RunConfig(accelerator="cpu"))
    assert run.finished


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may have more than 40,000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.long("full disks")
def test_a_training_whose_files_become_too_large_is_an_error(small_files: None, tmp_path: Path) -> None:
    with pytest.raises(
        SetsupError, match=r"last\.ckpt: the file would be larger than this disk allows; free some space there"
    ):
        train(replace(PLAIN, steps=3), tmp_path / "run", config=RunConfig(accelerator="cpu"))
    assert not list(tmp_path.rglob("*.tmp*"))


@pytest.mark.long("full disks")
def test_a_training_on_a_full_disk_is_an_error(tmp_path: Path) -> None:
    try:
        done = subprocess.run(
            ["unshare", "--mount", "--map-root-user", sys.executable, "-c", SCRIPT, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        pytest.skip("this system has no unshare command")
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("this system does not let the tests mount a disk")
    assert done.returncode == 0, done.stderr[-2000:]
    said = done.stdout.splitlines()
    assert [line.partition(" ")[2] for line in said if line[0].isdigit()] == ["[]"] * 9
    errors = [line for line in said if not line[0].isdigit()]
    assert len(errors) > 6
    assert all("the disk is full; free some space there" in line for line in errors)
    assert {Path(line.split()[2].rstrip(":")).name for line in errors} >= {"run.json", "factors.parquet", "last.ckpt"}
