"""Make the benchmarks' own environment: ``python benchmarks/install_peers.py .venv-bench``.

It gets setsup as it stands in this checkout, and the peers of ``peers.txt`` one by one, so that one that does not
install costs only its own rows. A second run with the same requirements does nothing. Needs only Python itself.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

__all__ = ["install", "requirements"]

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
CONSTRAINTS = CHECKOUT / "constraints.txt"
ASKED_BY = (CHECKOUT / "pyproject.toml", CONSTRAINTS, HERE / "peers.txt")


def requirements() -> list[list[str]]:
    """List the arguments of ``pip install`` for every peer, in the order of ``peers.txt``."""
    lines = (line.partition("#")[0].split() for line in (HERE / "peers.txt").read_text(encoding="utf-8").splitlines())
    return [words for words in lines if words]


def install(folder: Path) -> None:
    """Make the environment in a folder, unless it is there and nothing has changed."""
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in ASKED_BY)).hexdigest()
    stamp = folder / ".peers"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    if complaint := _pip(folder, "--editable", str(CHECKOUT)):
        sys.exit(f"setsup could not be installed into {folder}: {complaint}")
    for peer in requirements():
        complaint = _pip(folder, *peer)
        print(f"{peer[0]}: {f'not installed: {complaint}' if complaint else 'installed'}", flush=True)
    stamp.write_text(wanted, encoding="utf-8")


def _pip(folder: Path, *what: str) -> str:
    """Install something within the constraints; what pip says last when it fails."""
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command = [*pip, "--constraint", str(CONSTRAINTS), *what]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if not done.returncode:
        return ""
    return (done.stderr.strip().splitlines() or ["pip failed without a word"])[-1]


if __name__ == "__main__":
    install(Path(sys.argv[1] if len(sys.argv) > 1 else ".venv-bench"))
