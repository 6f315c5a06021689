"""Install the peers one by one, so that one that does not install costs only its own rows.

Run it with the Python of the benchmarks' own environment: ``python -m benchmarks.install_peers -c constraints.txt``.
Every argument goes to each ``pip install`` as it stands.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["PEERS", "install", "requirements"]

PEERS = Path(__file__).with_name("peers.txt")


def requirements() -> list[list[str]]:
    """List the arguments of ``pip install`` for every peer, in the order of the file."""
    lines = (line.partition("#")[0].split() for line in PEERS.read_text(encoding="utf-8").splitlines())
    return [words for words in lines if words]


def install(options: Sequence[str]) -> dict[str, str]:
    """Install all peers; give the last line of pip's complaint for each that failed."""
    failed = {}
    for peer in requirements():
        command = [sys.executable, "-m", "pip", "install", "--quiet", *options, *peer]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            failed[peer[0]] = (done.stderr.strip().splitlines() or ["pip failed without a word"])[-1]
        print(f"{peer[0]}: {failed.get(peer[0], 'installed')}")
    return failed


if __name__ == "__main__":
    install(sys.argv[1:])
