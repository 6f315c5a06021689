"""What ``setsup doctor --gpu`` looks at: driver, torch, OpenGL on the GPU, packages, and how to bring them along."""

import ctypes
import shutil
import subprocess
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from setsup.optional import LIBRARIES, installed

__all__ = ["CONSTRAINTS", "Line", "compiler_line", "download_line", "driver_line", "gpu_lines", "install_line"]

Line = tuple[str, str, str]
"""Name, state (``ok``, ``missing`` or ``absent``) and detail of a check."""

EXTRAS = ("torch", "opencv", "train", "render")
TOOLS = ("pytest", "pytest-xdist", "hypothesis")
"""Of setsup and besides it, what ``python -m benchmarks gpu`` needs."""

CONSTRAINTS = Path(__file__).resolve().parents[2] / "constraints.txt"
_BUILD = ("hatchling", "editables")  # pip needs them to install a clone
_PYPI = "https://pypi.org/simple"
_OLDER = "cu126"  # torch's own index of builds for drivers of CUDA 12; the builds on PyPI are for CUDA 13
_SECONDS = 20.0


def gpu_lines() -> list[Line]:
    """All checks, in the order in which they depend on each other."""
    return [driver_line(), _cuda(), *_torch(), compiler_line(), _egl(), *_packages()]


def driver_line() -> Line:
    """The GPUs as the driver lists them."""
    found = shutil.which("nvidia-smi")
    if found is None:
        return (
            "driver",
            "missing",
            "nvidia-smi was not found; install NVIDIA's driver, or start the container with access to its GPU",
        )
    command = [found, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "driver", "missing", f"nvidia-smi did not answer ({error}); restart the machine or its driver"
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        said = " ".join((done.stderr or done.stdout).split())[:200] or f"exit code {done.returncode}"
        return "driver", "missing", f"nvidia-smi lists no GPU ({said}); check that the driver matches the GPU"
    return "driver", "ok", "; ".join(lines)


def _cuda() -> Line:
    """The newest CUDA that the driver runs."""
    highest = driver_cuda()
    if highest is None:
        return "CUDA", "missing", "libcuda.so.1, a part of NVIDIA's driver, could not be loaded; install the driver"
    return "CUDA", "ok", f"the driver runs builds for CUDA {highest[0]}.{highest[1]} or older"


def driver_cuda() -> tuple[int, int] | None:
    """Major and minor version of CUDA that the driver supports; None without a driver."""
    number = ctypes.c_int(0)
    try:
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number)):
            return None
    except (OSError, AttributeError):
        return None
    return number.value // 1000, number.value % 1000 // 10


def _torch() -> list[Line]:
    """The build of torch, the devices that it sees, and NCCL."""
    if not installed("torch"):
        return [("torch", "missing", "not installed; the command below downloads a CUDA build")]
    import torch

    build = torch.version.cuda
    if build is None:
        return [
            (
                "torch",
                "missing",
                f"{torch.__version__} is a build without CUDA; the command below downloads a CUDA build",
            )
        ]
    lines: list[Line] = [("torch", "ok", f"{torch.__version__}, built for CUDA {build}")]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        seen = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not seen:
        why = " ".join(str(said[0].message).split())[:200] if said else "CUDA lists none"
        return [*lines, ("GPU", "missing", f"torch sees no GPU ({why}); check CUDA_VISIBLE_DEVICES and the driver")]
    for number in range(seen):
        about = torch.cuda.get_device_properties(number)
        detail = f"{about.name}, {about.total_memory / 2**30:.0f} GiB, compute capability {about.major}.{about.minor}"
        lines.append((f"GPU {number}", "ok", detail))
    nccl = torch.distributed.is_available() and torch.distributed.is_nccl_available()
    detail = "for several processes, one per GPU" if nccl else "this torch lacks it; processes communicate by gloo"
    return [*lines, ("NCCL", "ok" if nccl else "absent", detail)]


def compiler_line() -> Line:
    """What torch.compile needs on a GPU."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    lacking = [*([] if installed("triton") else ["triton"]), *([] if found else ["a C compiler (cc)"])]
    if lacking:
        return "compile", "absent", f"for --compile: install {' and '.join(lacking)}"
    return "compile", "ok", f"triton, {found}"


def _egl() -> Line:
    """On what the renderer gl draws."""
    from setsup.scenes.renderers import renderer_states

    state = next((one for one in renderer_states() if one.name == "gl"), None)
    if state is None or not state.works:
        return "EGL", "absent", f"for rendering on the GPU: {'no renderer gl' if state is None else state.detail}"
    if not state.hardware:
        software = state.detail.removesuffix(", software")
        return (
            "EGL",
            "absent",
            f"draws in software, by {software}; install the driver's EGL library (libEGL_nvidia.so.0), or start the "
            "container with NVIDIA_DRIVER_CAPABILITIES=all",
        )
    return "EGL", "ok", state.detail


def _packages() -> list[Line]:
    """Packages of the benchmarks that are not installed; torch has its own line."""
    wanted = [one for one in LIBRARIES.values() if set(one.extras) & set(EXTRAS) and one.module != "torch"]
    lines: list[Line] = []
    for one in wanted:
        if not (installed(one.module) or one.module == "rtree"):  # rays of trimesh, where embreex has no wheel
            lines.append((one.package, "absent", f"not installed; for {one.use}"))
    for tool in TOOLS:
        try:
            version(tool)
        except PackageNotFoundError:
            lines.append((tool, "absent", "not installed; for the tests marked gpu"))
    return lines or [("packages", "ok", "all that `python -m benchmarks gpu` needs")]


def download_line() -> str:
    """Command that downloads all wheels in a clone, on a machine with a network and with this system and Python.

    It holds every package to the versions that are tested, but torch, of which it takes a CUDA build.
    """
    pinned = _pinned_torch()
    highest = driver_cuda()
    index, torch = f"--index-url {_PYPI}", f"torch{pinned}"
    if highest is not None and highest < (13, 0):
        index = f"{index} --extra-index-url https://download.pytorch.org/whl/{_OLDER}"
        torch = f"torch{pinned}+{_OLDER}" if pinned else "torch"
    wanted = " ".join([f"'.[{','.join(EXTRAS)}]'", f"'{torch}'", *TOOLS, *_BUILD])
    return f"grep -v '^torch==' constraints.txt | pip download --dest wheels --constraint /dev/stdin {index} {wanted}"


def install_line() -> str:
    """Command that installs these wheels without a network."""
    return f"pip install --no-index --find-links wheels --editable '.[{','.join(EXTRAS)}]' {' '.join(TOOLS)}"


def _pinned_torch() -> str:
    """``==`` and the version of torch that is tested; empty where this is not a clone."""
    if not CONSTRAINTS.is_file():
        return ""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("torch").split("+")[0] for line in lines if line.startswith("torch==")), "")
