"""Scripts that several processes run together."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["LEFT", "run_ranks"]

_ATTEMPTS = 3
LEFT = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "RANK", "WORLD_SIZE")
"""What a training in this process may have left in its environment: its port may still be listened on."""


def run_ranks(folder: Path, *words: str, environment: Mapping[str, str] | None = None) -> None:
    """Run `script.py` of a folder; again where another program took the port that Lightning had found free."""
    command = [sys.executable, "script.py", *words]
    inherited = {name: value for name, value in os.environ.items() if name not in LEFT}
    for _ in range(_ATTEMPTS):
        done = subprocess.run(
            command,
            cwd=folder,
            env={**inherited, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if not {"EADDRINUSE", "DistNetworkError"} & set(re.findall(r"\w+", done.stderr)):
            break
    assert done.returncode == 0, done.stdout + done.stderr
