"""Check that arrays fit into memory."""

import os
from pathlib import Path

from setsup.errors import SetsupError

__all__ = ["check_memory"]


def check_memory(needed: int, what: str, reduce: str, error: type[SetsupError]) -> None:
    """Refuse arrays that do not fit into memory, before they are allocated."""
    if needed < _SMALL:
        return
    there = _memory()
    if needed > there:
        raise error(f"{what} requires {needed:,} bytes of memory, but only {there:,} are available; reduce {reduce}")


_SMALL = 1 << 26  # bytes below which memory is not checked


def _memory() -> int:
    """Bytes that this process may use: the machine's memory, or the limit of its control group or its own, if less."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path("/sys/fs/cgroup", name).read_text()))
        except (OSError, ValueError):
            continue
    try:
        import resource

        sizes += [limit for limit in resource.getrlimit(resource.RLIMIT_AS) if limit > 0]
    except ImportError:
        pass
    return min(sizes)
