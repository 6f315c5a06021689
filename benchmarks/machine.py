"""The machine, the versions, the date and the commit, in words."""

import importlib.metadata
import os
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path

from setsup.files import cache_folder

__all__ = ["USER_CACHE", "accelerator", "machine", "versions"]

USER_CACHE = cache_folder()
"""Before a run of the benchmarks sets a temporary one."""


def machine(*, with_load: bool = True) -> str:
    """Processor, cores, memory, system, Python, load, date and commit on one line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = f", load average {os.getloadavg()[0]:.1f} at the start" if with_load and hasattr(os, "getloadavg") else ""
    return (
        f"{_processor()}, {cores} cores, {_memory():.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}{load}, {date.today().isoformat()}{_commit()}"
    )


def versions() -> str:
    """Libraries that carry the work on either side."""
    names = ("setsup", "numpy", "scipy", "h5py", "pyarrow")
    return ", ".join(f"{name} {_version(name)}" for name in names)


def accelerator() -> str:
    """The GPUs with their driver, and the build of torch."""
    from setsup_cli.gpu import driver_line

    _, state, gpus = driver_line()
    return f"{gpus if state == 'ok' else 'no GPU'}; torch {_version('torch')}"


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        found = subprocess.run(command, cwd=Path(__file__).parent, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return ""  # a copy without its history
    return f", commit {found.stdout.strip()}"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(from the checkout)"


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError):
        return float("nan")
