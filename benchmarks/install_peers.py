"""Make the benchmarks' own environment: ``.venv/bin/python benchmarks/install_peers.py .venv-bench``.

It is a layer over the environment that runs this, which has setsup with all its extras: the peers of ``peers.txt`` and
what they need go into the layer alone, and what is there already is not installed again; an older release of a peer
goes into a folder beside its packages. Where they do not install all at once, they are installed one by one, so that
one which fails costs only its own rows; the next run tries it again. A run with the same requirements does nothing.
"""

import hashlib
import subprocess
import sys
import sysconfig
from pathlib import Path

__all__ = ["install", "requirements"]

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
CONSTRAINTS = CHECKOUT / "constraints.txt"
ASKED_BY = (CHECKOUT / "pyproject.toml", CONSTRAINTS, HERE / "peers.txt", Path(__file__))


def requirements() -> list[list[str]]:
    """List the arguments of ``pip install`` for every peer, in the order of ``peers.txt``."""
    lines = (line.partition("#")[0].split() for line in (HERE / "peers.txt").read_text(encoding="utf-8").splitlines())
    return [words for words in lines if words]


def install(folder: Path) -> int:
    """Make the environment in a folder, unless it is there and nothing has changed; the number of peers that lack."""
    base = sysconfig.get_path("purelib")
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in ASKED_BY) + base.encode()).hexdigest()
    stamp = folder / ".peers"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"installing the peers of the benchmarks into {folder}: a minute, the first time", flush=True)
    # anew: what an older list asked for would hide what lies below
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)], check=True)
    layer = sysconfig.get_path("purelib", vars={"base": str(folder)})
    # addsitedir, and not the path alone: setsup itself is a line of a .pth file there
    (Path(layer) / "setsup_base.pth").write_text(f"import site; site.addsitedir({base!r})\n", encoding="utf-8")
    peers = requirements()
    kinds = [list(options) for options in dict.fromkeys(tuple(words[1:]) for words in peers)]
    failed = 0
    for options in kinds:
        names = [words[0] for words in peers if words[1:] == options]
        where = _in_folder(folder, options)
        if not _pip(folder, *names, *where):
            continue
        for name in names:
            if complaint := _pip(folder, name, *where):
                failed += 1
                print(f"{name} does not install, and is left out: {complaint}", flush=True)
    if not failed:
        stamp.write_text(wanted, encoding="utf-8")
    return failed


def _in_folder(folder: Path, options: list[str]) -> list[str]:
    """Options of pip with the folder of ``--target`` in that of the environment."""
    after_target = [False, *(word == "--target" for word in options)]
    return [str(folder / word) if after else word for word, after in zip(options, after_target, strict=False)]


def _pip(folder: Path, *what: str) -> str:
    """Install something within the constraints, by the pip of the layer below; what pip says last when it fails."""
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    command = [*pip, "--constraint", str(CONSTRAINTS), *what]
    how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "encoding": "utf-8", "errors": "replace"}
    done = subprocess.run(command, check=False, **how)
    if not done.returncode:
        return ""
    return (done.stderr.strip().splitlines() or ["pip failed without a word"])[-1]


if __name__ == "__main__":
    install(Path(sys.argv[1] if len(sys.argv) > 1 else ".venv-bench"))
