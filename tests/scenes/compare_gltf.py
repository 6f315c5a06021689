"""Compare what setsup reads of glTF files with what glTF-Transform reads, which shares nothing with it or trimesh.

    npm install @gltf-transform/core @gltf-transform/extensions
    python tests/scenes/compare_gltf.py FOLDER... --modules node_modules

Every ``.gltf`` and ``.glb`` below the folders, such as the Khronos sample assets, ends up in one class: ``equal``
(corners, texture coordinates, wrap modes, colors of vertices and materials), ``refused`` with a reason, ``logged``
(different, and a log line names what is not applied), ``neither reads it``, ``only setsup reads it``, or ``DIFFERENT``,
which is a fault and the exit status. Not part of CI, since models are not committed.
"""

import argparse
import logging
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from setsup.errors import SetsupError
from setsup.scenes import Mesh, load_mesh
from setsup.scenes.meshes.materials import warn_once

WRAPS = {10497: "repeat", 33071: "clamp", 33648: "mirror"}


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def srgb(light: np.ndarray) -> np.ndarray:
    light = np.clip(light, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * np.maximum(light, 1e-9) ** (1 / 2.4) - 0.055) * 255


def difference(mesh: Mesh, rows: np.ndarray, wraps: np.ndarray) -> str | None:
    """What differs, None where nothing does."""
    if len(rows) != len(mesh.faces):
        return f"{len(mesh.faces):,} triangles for {len(rows):,}"
    corners, uv, color, factor = np.split(rows, [3, 5, 8], axis=2)
    size = max(float(np.ptp(corners.reshape(-1, 3), axis=0).max()), np.abs(corners).max() * 1e-3, 1e-9)
    off = np.abs(mesh.corners - corners).max() / size
    if not off < 1e-5:
        return f"corners are off by {off:.1e} of the size"
    which = np.zeros(len(mesh.faces), int) if mesh.material is None else mesh.material
    textured = np.array([one.texture is not None for one in mesh.materials])[which]
    if (textured & np.isnan(uv[:, 0, 0])).any():
        return "textures without texture coordinates"
    if mesh.uv is not None and textured.any():
        off = np.abs(mesh.uv[mesh.faces][textured] - uv[textured]).max()
        if not off < 1e-4 * max(1, np.abs(uv[textured]).max()):
            return f"texture coordinates are off by {off:.1e}"
    found = [mesh.materials[number].wrap for number in which[textured].tolist()]
    expected = [tuple(WRAPS[one] for one in pair) for pair in wraps[textured].tolist()]
    if found != expected:
        return "wrap modes"
    painted = np.full(color.shape, 255) if mesh.colors is None else mesh.colors[mesh.faces]
    if np.abs(painted - srgb(color)).max() > 1:
        return "colors of vertices"
    own = np.array([one.color for one in mesh.materials])[which]
    return "colors of materials" if np.abs(own[:, None] - srgb(factor)).max() > 1 else None


def judge(path: Path, told: Path, log: Lines) -> tuple[str, str]:
    """Class of a file, and why."""
    log.lines.clear()
    warn_once.cache_clear()
    error = told.with_suffix(".error").read_text() if told.with_suffix(".error").exists() else None
    try:
        mesh = load_mesh(path)
    except SetsupError as refused:
        reason = str(refused).removeprefix(str(path))
        if error is not None:
            return "neither reads it", f"{reason} | {error}"
        rows = np.fromfile(told.with_suffix(".rows"))
        return ("neither reads it", reason) if not len(rows) else ("refused", reason)
    said = " | ".join(line.removeprefix(str(path)) for line in log.lines)
    if error is not None:
        return "only setsup reads it", f"{error} | {said}"
    rows = np.fromfile(told.with_suffix(".rows")).reshape(-1, 3, 11)
    found = difference(mesh, rows, np.fromfile(told.with_suffix(".wraps"), np.int32).reshape(-1, 2))
    if found is None:
        return "equal", said
    return ("logged", f"{found} | {said}") if said else ("DIFFERENT", found)


def main() -> int:
    """Compare all files of some folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--modules", type=Path, default=Path("node_modules"))
    parser.add_argument("--verbose", action="store_true", help="also list the files that are equal")
    options = parser.parse_args()
    paths = sorted(path for folder in options.folders for path in folder.rglob("*") if path.suffix in {".glb", ".gltf"})
    log = Lines()
    logging.getLogger("setsup").addHandler(log)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(__file__).with_name("gltf_reference.mjs")
        names = "".join(f"{path.resolve()}\n" for path in paths)
        command = ["node", str(script), folder, str(options.modules.resolve())]
        subprocess.run(command, input=names, text=True, check=True)
        for number, path in enumerate(paths):
            kind, why = judge(path.resolve(), Path(folder) / str(number), log)
            counts[kind] += 1
            if kind != "equal" or options.verbose:
                sys.stdout.write(f"{kind}: {path}: {why}\n")
    total = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    sys.stdout.write(f"{len(paths)} files: {total}\n")
    return int(counts["DIFFERENT"] > 0)


if __name__ == "__main__":
    sys.exit(main())
