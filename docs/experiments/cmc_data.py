"""Make the substitutes that the small runs of contrastive multiview coding train on; what is there already is kept.

    python docs/experiments/cmc_data.py FOLDER

Rooms (``rooms-train``, ``rooms-test``) and large images (``images-2k``) are rendered, which resumes where it was
interrupted; objects (``objects-train.npz``, ``objects-test.npz``) are cut out of the rooms, and photographs
(``photographs.npz``) are those that scikit-image and scikit-learn ship.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from setsup_papers.cmc.objects import write_objects
from setsup_papers.cmc.photographs import write_photographs

SETSUP = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main())"]
ROOMS = "render room --rooms 480 --pairs 2 --size 128 192 --modalities image depth normals instances labels"
LARGE = "render room --rooms 24 --pairs 1 --size 1080 2048 --modalities image"


def render(words: str, out: Path, processes: int, *where: str) -> None:
    """Render to a folder, unless it is finished."""
    command = [*SETSUP, *words.split(), *where, "--processes", str(processes), "--out", str(out)]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if not (given.folder / "photographs.npz").exists():
        print(f"photographs.npz: {write_photographs(given.folder / 'photographs.npz'):,} tiles")
    for part, where in (("test", "room >= 400"), ("train", "room < 400")):
        rooms, objects = given.folder / f"rooms-{part}", given.folder / f"objects-{part}.npz"
        render(ROOMS, rooms, given.processes, "--where", where)
        if not objects.exists():
            print(f"{objects.name}: {write_objects(rooms, objects):,} objects")
    render(LARGE, given.folder / "images-2k", given.processes, "--where", "side == 0")
