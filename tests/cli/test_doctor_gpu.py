"""What ``setsup doctor --gpu`` says: without a driver, with one that fails, and with a GPU that torch sees."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from setsup.scenes.renderers import RendererState
from setsup_cli import gpu

torch = pytest.importorskip("torch", reason="torch is not installed")

Run = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without a driver, whose renderer draws in software; programs of the tests are in this folder."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(gpu, "driver_cuda", lambda: None)
    monkeypatch.setattr(torch.version, "cuda", None)
    draws(monkeypatch, "llvmpipe (LLVM 15), software")
    return folder


def draws(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    state = RendererState("gl", True, device, hardware="software" not in device)
    monkeypatch.setattr("setsup.scenes.renderers.renderer_states", lambda: [state])


def program(folder: Path, name: str, *lines: str) -> None:
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n", encoding="utf-8")
    path.chmod(0o755)


def checks(setsup: Run) -> tuple[int, dict[str, tuple[str, str]]]:
    found = setsup("doctor", "--gpu", "--json")
    return found.code, {check["name"]: (check["state"], check["detail"]) for check in found.json}


def test_without_a_driver_each_line_is_one_sentence_with_a_remedy(setsup: Run) -> None:
    code, found = checks(setsup)
    assert code == 2
    assert {name for name in ("driver", "CUDA", "torch") if found[name][0] == "missing"} == {"driver", "CUDA", "torch"}
    assert found["driver"][1].startswith("nvidia-smi was not found; install NVIDIA's driver")
    assert found["EGL"] == (
        "absent",
        "draws in software, by llvmpipe (LLVM 15); install the driver's EGL library (libEGL_nvidia.so.0), or start the "
        "container with NVIDIA_DRIVER_CAPABILITIES=all",
    )
    for name in ("driver", "CUDA", "torch", "EGL"):
        assert found[name][1].count(";") == 1, f"one problem and one remedy: {found[name][1]}"
    shown = setsup("doctor", "--gpu").out
    assert found["download"][1] in shown.splitlines(), "on one line, to be copied"
    assert found["install"][1] in shown.splitlines()


def test_a_driver_that_fails_is_quoted(setsup: Run, bare: Path) -> None:
    program(bare, "nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'", "exit 18")
    state, detail = checks(setsup)[1]["driver"]
    assert state == "missing"
    assert "version mismatch" in detail


def test_a_gpu_that_torch_sees(setsup: Run, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bare, "nvidia-smi", "echo 'NVIDIA H100 80GB HBM3, 81559 MiB, 580.65.06'")
    monkeypatch.setattr(gpu, "driver_cuda", lambda: (13, 0))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    about = SimpleNamespace(name="NVIDIA H100 80GB HBM3", total_memory=80 * 2**30, major=9, minor=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda number: about)
    draws(monkeypatch, "NVIDIA H100 80GB HBM3/PCIe/SSE2")
    code, found = checks(setsup)
    assert code == 0
    assert found["driver"] == ("ok", "NVIDIA H100 80GB HBM3, 81559 MiB, 580.65.06")
    assert found["CUDA"] == ("ok", "the driver runs builds for CUDA 13.0 or older")
    assert found["GPU 0"] == ("ok", "NVIDIA H100 80GB HBM3, 80 GiB, compute capability 9.0")
    assert found["EGL"] == ("ok", "NVIDIA H100 80GB HBM3/PCIe/SSE2")


def test_a_cuda_build_that_sees_no_gpu(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, found = checks(setsup)
    assert code == 2
    assert found["torch"][0] == "ok"
    assert found["GPU"][0] == "missing"


def test_a_package_that_is_missing_is_named(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "installed", lambda module: module not in ("kornia", "moderngl"))
    _, found = checks(setsup)
    assert found["kornia"] == ("absent", "not installed; for transforms")
    assert found["moderngl"][0] == "absent"
    assert "packages" not in found


@pytest.mark.parametrize(
    ("driver", "torch_wanted"), [(None, ""), ((13, 1), ""), ((12, 8), "+cu126")], ids=["none", "13.1", "12.8"]
)
def test_the_download_line_pins_all_but_torch(
    driver: tuple[int, int] | None, torch_wanted: str, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "driver_cuda", lambda: driver)
    program(bare, "grep", f'exec {"/usr/bin/grep" if os.path.exists("/usr/bin/grep") else "/bin/grep"} "$@"')
    program(bare, "pip", 'printf "%s\\n" "$@"', "echo --", 'while read -r line; do echo "$line"; done')
    done = subprocess.run(["/bin/sh", "-c", gpu.download_line()], cwd=ROOT, capture_output=True, text=True, check=True)
    words, _, pins = done.stdout.partition("\n--\n")
    pinned = {line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")}
    (torch_pin,) = (line for line in pinned if line.startswith("torch=="))
    assert {line for line in pins.splitlines() if not line.startswith("#")} == pinned - {torch_pin}
    assert f"{torch_pin}{torch_wanted}" in words.splitlines()
    assert ".[torch,opencv,train,render]" in words.splitlines()
    assert ("https://download.pytorch.org/whl/cu126" in words) == bool(torch_wanted)


def test_outside_a_clone_torch_is_not_pinned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpu, "CONSTRAINTS", tmp_path / "constraints.txt")
    assert "'torch'" in gpu.download_line()
