import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setsup as library
from setsup.correspondence import pair_table
from setsup.datasets.croissant.rai import REQUIRED_BY_TRACKS
from setsup.files import locked
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import open_rendered
from setsup.rendered.layout import Layout
from setsup.rendered.modalities import OUTPUTS
from setsup.rendered.table import sampled
from setsup.rendered.writing import render

pytest.importorskip("embreex")

from setsup.scenes.recipes import ObjectView, Shapes3D
from setsup_cli.commands.render import _what
from setsup_renderers.embree import EmbreeRenderer
from tests.cli.refusals import refused

Run = Callable[..., Any]
# 480 images
FEW = ["--size", 16, 24, "--renderer", "embree", "--where", "floor_hue == 0.1 and wall_hue == 0.6 and object_hue == 0"]


FEWER = [*FEW[:-1], f"{FEW[-1]} and scale == 1.25"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def tent(tmp_path: Path) -> Path:
    path = tmp_path / "meshes" / "tent.obj"
    path.parent.mkdir()
    path.write_text("v 0 0 0\nv 1 0 0\nv 0 0 1\nv 0 1 0\nf 1 2 4\nf 1 3 4\n")
    return path


def test_what_can_be_drawn(setsup: Run) -> None:
    found = setsup("render")
    assert (found.code, found.err) == (0, "")
    for word in ("object", "room", "shapes3d", "setsup render shapes3d --out"):
        assert word in found.out
    listed = {one["recipe"] for one in setsup("render", "--json").json}
    assert {"object", "room", "shapes3d"} <= listed


def test_help_has_the_options_of_the_recipe(setsup: Run) -> None:
    shapes, chairs = setsup("render", "shapes3d", "--help").out, setsup("render", "object", "--help").out
    assert "--processes" in shapes
    assert "[default: 64 64]" in shapes
    assert "--models" not in shapes
    for word in ("--models FILE|FOLDER", "--field-of-view", "[default: 30.0]", "--views", "--top", "--up y|z"):
        assert word in chairs
    assert "--jitter" in chairs
    assert "Levels of the grid" in chairs  # from the recipe's own description
    assert "--size HEIGHT WIDTH" in shapes
    rooms = " ".join(setsup("render", "room", "--help").out.replace("│", " ").split())
    for word in ("--rooms N Number of rooms. [", "--pairs N Number of pairs of views", "--count MIN MAX"):
        assert word in rooms
    assert "find_floor" not in rooms


@pytest.mark.usefixtures("watched")
def test_what_is_drawn_is_what_the_library_draws(setsup: Run, tmp_path: Path) -> None:
    found = setsup("render", "shapes3d", "--out", "shapes", *FEW)
    assert (found.code, found.err) == (0, f"next: setsup sample {tmp_path}/shapes --inactive scale\n")
    assert found.out.splitlines() == [
        "shapes3d: 480 images of 16 × 24 pixels, 5.1 MB, to shapes",
        "rendered by embree, 480 now",
        "factors: floor_hue 1 of 10, wall_hue 1 of 10, object_hue 1 of 10, scale 8, shape 4, orientation 15",
        "modalities: image, depth, normals, instances, triangles; cameras, and names of instances",
        f"croissant.json lacks {', '.join(REQUIRED_BY_TRACKS)}: add them with --rai FILE.yaml",
        f"setsup.open('{tmp_path}/shapes')",
    ]
    drawn = library.open(tmp_path / "shapes")
    dataset = RenderedDataset(Shapes3D(size=(16, 24)), renderer="embree").where(FEW[-1])  # type: ignore[arg-type]
    rows = np.arange(0, 480, 37)
    for name, array in dataset.fetch(rows).items():
        np.testing.assert_array_equal(drawn.fetch(rows, [name])[name], array)
    assert drawn.factors.fingerprint == dataset.factors.fingerprint


def test_colors_are_averaged_and_geometry_is_that_of_centres(setsup: Run) -> None:
    assert setsup("render", "shapes3d", *FEWER, "--out", "plain").code == 0
    found = setsup("render", "shapes3d", *FEWER, "--out", "fine", "--supersample", 3)
    assert (found.code, found.err) == (0, "")
    plain, fine = open_rendered(Path("plain")), open_rendered(Path("fine"))
    assert (plain.renderer_name, fine.renderer_name) == ("embree", "embree supersample=3")
    rows = np.arange(0, len(plain), 7)
    one, other = plain.fetch(rows), fine.fetch(rows)
    for name in ("depth", "normals", "instances", "triangles"):
        assert np.array_equal(one[name], other[name])
    exact = RenderedDataset(Shapes3D(size=(16, 24)), plain.factors, EmbreeRenderer(supersample=3))
    assert np.array_equal(other["image"], exact.fetch(rows, ["image"])["image"])
    assert (one["image"] != other["image"]).any()
    again = setsup("render", "shapes3d", *FEWER, "--out", "fine", "--supersample", 2)
    refused(again, "a different renderer")


def test_what_is_large_says_how_to_have_less() -> None:
    """By hand: a row of everything has 64 · 64 · 27 bytes, a camera 21 numbers of 8, and a key 8."""
    layout = Layout.of(RenderedDataset(Shapes3D(), renderer="embree"), "embree", OUTPUTS)
    whole, images = (480_000 * (4096 * pixel + 176) for pixel in (27, 3))
    assert (whole // 10**8, images // 10**8) == (531, 59)
    start = "shapes3d: 480,000 images of 64 × 64 pixels, 53.2 GB"
    assert _what(layout, 0, Path("out")) == f"{start}, to out; `--modalities image` writes 6.0 GB"
    assert _what(layout, 480_000, Path("out")) == f"{start}, of which 480,000 exist, to out"


def test_json(setsup: Run, tmp_path: Path) -> None:
    words = ["render", "shapes3d", "--out", "out", "--rows", 20, "--modalities", "depth", "image", "--size", 8, 8]
    found = setsup(*words, "--renderer", "embree", "--seed", 5, "--ranges", "orientation=-30:30", "--json")
    assert (found.code, found.err) == (0, "")
    assert found.json == {
        "folder": str(tmp_path / "out"),
        "recipe": "shapes3d",
        "renderer": "embree",
        "rows": 20,
        "left_out": 0,
        "drawn_now": 20,
        "factors": {"floor_hue": 10, "wall_hue": 10, "object_hue": 10, "scale": 8, "shape": 4, "orientation": None},
        "modalities": {
            "image": {"shape": [8, 8, 3], "dtype": "uint8", "unit": "", "file": "image.npy"},
            "depth": {"shape": [8, 8], "dtype": "float32", "unit": "m", "file": "depth.npy"},
        },
        "croissant": {"file": "croissant.json", "missing": list(REQUIRED_BY_TRACKS)},
        "open": f"setsup.open('{tmp_path}/out')",
        "next": f"setsup sample {tmp_path}/out --inactive shape",  # some floors are in one row only
    }
    table = sampled(Shapes3D(), 20, ranges={"orientation": (-30, 30)}, seed=5)
    assert open_rendered("out").factors.fingerprint == table.fingerprint
    assert np.load("out/depth.npy").shape == (20, 8, 8)
    again = setsup(*words, "--renderer", "embree", "--seed", 5, "--ranges", "orientation=-30:30", "--json")
    assert again.json["drawn_now"] == 0


@pytest.mark.long("worker processes")
def test_the_same_bytes_for_one_and_two_processes(setsup: Run, tmp_path: Path) -> None:
    for processes in (1, 2):
        found = setsup("render", "shapes3d", "--out", f"out{processes}", *FEW, "--processes", processes)
        assert (found.code, found.err) == (0, "")
    assert contents(tmp_path / "out1") == contents(tmp_path / "out2")


def test_meshes_of_ones_own(setsup: Run, tent: Path) -> None:
    words = ["render", "object", "--models", tent, "--size", 12, 12, "--renderer", "embree", "--jitter", 0]
    assert setsup(*words, "--azimuths", 0, 90, "--elevations", 10, "--out", "grid").code == 0
    grid = open_rendered("grid")
    assert grid.factors.row(1) == {"model": "tent", "azimuth": 90.0, "elevation": 10.0}
    assert grid.modalities["image"].shape == (12, 12, 4)
    recipe = ObjectView({"tent": tent}, azimuths=(0, 90), elevations=(10,), size=(12, 12), jitter=0)
    wanted = RenderedDataset(recipe, renderer="embree").fetch([0, 1])
    for name, array in grid.fetch([0, 1]).items():
        np.testing.assert_array_equal(array, wanted[name])
    assert grid.names(0) == {0: "tent"}
    assert setsup(*words, "--views", 7, "--seed", 3, "--out", "views").code == 0
    table = ObjectView({"tent": tent}, seed=3).sampled(7)
    assert open_rendered("views").factors.fingerprint == table.fingerprint


def test_textures_above_the_mesh(setsup: Run, tmp_path: Path, tent: Path) -> None:
    """As ShapeNet has them; the folder that they may lie in is named."""
    from PIL import Image

    Image.new("RGB", (4, 4), (200, 10, 10)).save(tmp_path / "red.png")
    (tent.parent / "tent.mtl").write_text("newmtl red\nKd 1 1 1\nmap_Kd ../red.png\n")
    faces = "vt 0 0\nvt 1 0\nvt 0 1\nusemtl red\nf 1/1 2/2 4/3\nf 1/1 3/2 4/3\n"
    tent.write_text(f"mtllib tent.mtl\n{tent.read_text().partition('f ')[0]}{faces}")
    words = ["render", "object", "--models", tent, "--size", 12, 12, "--renderer", "embree", "--elevations", 10]
    closed = setsup(*words, "--out", "closed")
    assert closed.code == 0
    assert "points outside the folder of the model" in closed.err
    found = setsup(*words, "--out", "open", "--top", tmp_path, "--processes", 2)
    assert (found.code, found.err) == (0, "")
    images = open_rendered("open").fetch(np.arange(24))["image"]
    red = images[images[..., 3] > 0][:, :3].astype(int)
    assert len(red) > 100
    assert (red[:, 0] > 5 * red[:, 1]).all()


@pytest.mark.long("renderings")
def test_rooms(setsup: Run) -> None:
    words = ["--rooms", 1, "--pairs", 2, "--count", 1, 2, "--size", 12, 16, "--renderer", "embree"]
    assert setsup("render", "room", *words, "--out", "rooms", "--modalities", "image", "instances").code == 0
    rooms = open_rendered("rooms")
    assert (len(rooms), list(rooms.modalities)) == (4, ["image", "instances"])
    seen = set(np.unique(rooms.fetch([0])["instances"]).tolist()) - {-1}
    assert seen <= rooms.names(0).keys()


PAIRS = ["shapes3d", "--size", 16, 24, "--renderer", "embree", "--modalities", "image", "status"]


def test_pairs_by_overlap(setsup: Run, tmp_path: Path) -> None:
    words = ["render", *PAIRS, "--matches", 12, "--overlap", ".5-.7", "--seed", 3, "--out", "pairs"]
    found = setsup(*words)
    assert found.code == 0
    assert "overlap 0.5 to 0.7: 12 of 12 pairs" in found.out.splitlines()
    pairs = open_rendered("pairs")
    table = pair_table(Shapes3D(size=(16, 24)), 12, overlap=(0.5, 0.7), seed=3)
    assert pairs.factors.fingerprint == table.fingerprint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs"]
    again = setsup(*words, "--json")
    assert again.json["drawn_now"] == 0
    assert again.json["overlap"] == {"band": [0.5, 0.7], "direction": "forward", "pairs": 12, "in_band": 12}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs"]


def test_pairs_whose_candidates_are_all_outside_the_band_are_counted(setsup: Run) -> None:
    words = ["--matches", 5, "--overlap", ".01-.02", "--candidates", 2, "--direction", "both", "--out", "pairs"]
    found = setsup("render", *PAIRS, *words)
    assert found.code == 0
    assert "overlap 0.01 to 0.02: 0 of 5 pairs" in found.out.splitlines()
    assert "5 of 5 pairs have no candidate with overlap 0.01 to 0.02 in both directions among 2" in found.err


def test_a_folder_with_other_files_is_refused_before_pairs_are_measured(setsup: Run, tmp_path: Path) -> None:
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "notes.txt").write_text("mine")
    words = ["--matches", 12, "--overlap", ".5-.7", "--out", "pairs"]
    refused(setsup("render", *PAIRS, *words), "pairs contains other files (notes.txt)")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs"]


def test_what_it_says_to_do_next_works(setsup: Run) -> None:
    """Two rooms of a hundred: each is in one row."""
    words = ["--rows", 2, "--count", 1, 2, "--size", 12, 16, "--renderer", "embree", "--modalities", "image"]
    found = setsup("render", "room", *words, "--out", "rooms", "--json")
    assert found.code == 0
    assert found.json["next"].startswith("setsup info ")
    assert setsup(*found.json["next"].split()[1:]).code == 0


# -- afterwards --------------------------------------------------------------------------------------------------------


@pytest.mark.long("renderings")
def test_other_verbs_take_the_folder(setsup: Run, tmp_path: Path) -> None:
    assert setsup("render", "shapes3d", "--out", "shapes", *FEW).code == 0
    found = setsup("sample", "shapes", "--inactive", "shape", "--size", 6, "--out", "drawn")
    assert (found.code, found.err) == (0, "")
    assert "rendered shapes3d: 480 rows" in found.out
    indices = np.load("drawn/draws.npz")["indices"]
    shapes = open_rendered("shapes").factors.codes("shape", indices)
    assert (shapes == shapes[..., :1]).all()
    again = setsup("sample", "shapes", "--replay", "drawn/draws.jsonl", "--out", "again")
    assert (again.code, again.err) == (0, "")
    assert contents(tmp_path / "again") == contents(tmp_path / "drawn")
    assert setsup("sample", "--replay", "drawn/draws.jsonl", "--out", "found").code == 0
    refused(setsup("sample", "shapes", "--inactive", "shap"), "did you mean 'shape'?", "`setsup info shapes`")
    refused(setsup("sample", "shapes", "--root", "drawn", "--inactive", "shape"), "omit --root")
    card = setsup("info", "shapes")
    assert (card.code, card.err) == (0, "")
    assert "480 rows" in card.out
    small = setsup("sample", "shapes", "--inactive", "shape", "scale", "--out", "small")
    assert small.code == 0
    assert "size 15: the number of rows of the smallest group" in small.out


@pytest.mark.long("renderings")
def test_draws_of_another_folder_are_refused(setsup: Run) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        words = ["--rows", 40, "--seed", seed, "--size", 8, 8, "--renderer", "embree", "--modalities", "image"]
        assert setsup("render", "shapes3d", "--out", name, *words).code == 0
    assert setsup("sample", "a", "--inactive", "shape", "--size", 3, "--out", "drawn").code == 0
    refused(setsup("sample", "b", "--replay", "drawn/draws.jsonl"), "use the original files")


# -- stopped -----------------------------------------------------------------------------------------------------------


def command(*words: object) -> subprocess.Popen[str]:
    # a shell's background job has SIGINT ignored, and so have its children
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from setsup_cli.main import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.long("kills and interruptions")
@pytest.mark.parametrize(("processes", "number"), [(1, signal.SIGINT), (2, signal.SIGINT), (1, signal.SIGTERM)])
def test_ctrl_c_says_how_far_it_was(setsup: Run, tmp_path: Path, processes: int, number: signal.Signals) -> None:
    where = ["--where", "floor_hue == 0.1 and wall_hue in (0.6, 0.7)", "--modalities", "image"]
    words = ["render", "shapes3d", "--out", tmp_path / "out", "--renderer", "embree", *where]
    child = command(*words, "--processes", processes)
    progress = tmp_path / "out" / "rendered.progress"
    end = time.monotonic() + 60
    while time.monotonic() < end and not (progress.exists() and any(progress.read_bytes())):
        time.sleep(0.05)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert out == f"shapes3d: 9,600 images of 64 × 64 pixels, 119.7 MB, to {tmp_path / 'out'}\n"
    done = sum(map(bool, progress.read_bytes()))
    assert 0 < done < 9600
    assert err.splitlines()[-1] == f"setsup: stopped at {done:,} of 9,600 images; run the same command to resume"
    assert "Traceback" not in err
    found = setsup("sample", tmp_path / "out", "--inactive", "shape")
    refused(found, "is not finished: run the same `setsup render` command again")


@pytest.mark.long("kills and interruptions")
def test_a_kill_loses_nothing(setsup: Run, tmp_path: Path) -> None:
    assert setsup("render", "shapes3d", "--out", "whole", *FEW).code == 0
    for wait in (0.0, 0.1, 0.3, 0.6):
        child = command("render", "shapes3d", "--out", tmp_path / "out", *FEW, "--processes", 2)
        end = time.monotonic() + 60
        while time.monotonic() < end and not (tmp_path / "out").exists():
            time.sleep(0.005)
        time.sleep(wait)
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
    assert setsup("render", "shapes3d", "--out", "out", *FEW).code == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_sigterm_is_given_back(setsup: Run) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert setsup("render", "shapes3d", "--out", "out", "--rows", 2, *FEW[:5]).code == 0
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.long("renderings")
def test_who_waits_counts_what_it_drew_itself(setsup: Run, tmp_path: Path) -> None:
    """A process that finds the folder taken draws what the other has left, and here that is nothing."""
    words = ["render", "shapes3d", "--out", tmp_path / "out", *FEW]
    with locked(tmp_path / "out"):
        child = command(*words)
        assert child.stderr is not None
        assert "is waiting for" in child.stderr.readline()
        recipe = Shapes3D(size=(16, 24))
        render(RenderedDataset(recipe, renderer="embree").where(str(FEW[-1])), tmp_path / "drawn")
        (tmp_path / "drawn").rename(tmp_path / "out")
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, "")
    assert out.splitlines()[0].endswith(f"5.1 MB, of which 480 exist, to {tmp_path / 'out'}")
    assert out.splitlines()[1] == "rendered by embree, 0 now"


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cube", "--out", "x"], ["unknown recipe 'cube'", "`setsup render` lists them"]),
        (["shapes3d"], ["`setsup render shapes3d --out FOLDER`"]),
        (["object", "--out", "x"], ["--models chair.obj table.glb"]),
        (["object", "--out", "x", "--models", "no.obj"], ["mesh file no.obj does not exist"]),
        (["object", "--out", "x", "--models", "."], [". contains no mesh files that setsup reads"]),
        (["shapes3d", "--out", "x", "--size", "64"], ["--size requires 2 values", "`--size HEIGHT WIDTH`"]),
        (["shapes3d", "--out", "x", "--size", "0", "5"], ["size must be (height, width)"]),
        (["shapes3d", "--out", "x", "--ranges", "scale=1:2"], ["--ranges requires --rows"]),
        (["shapes3d", "--out", "x", "--overlap", ".3-.8"], ["--overlap requires --matches N"]),
        (["shapes3d", "--out", "x", "--matches", "2", "--direction", "both"], ["--direction requires --overlap"]),
        (["shapes3d", "--out", "x", "--matches", "2", "--candidates", "9"], ["--candidates requires --overlap"]),
        (["shapes3d", "--out", "x", "--matches", "2", "--overlap", "much"], ["the ends of a band, such as .3-.8"]),
        (["shapes3d", "--out", "x", "--matches", "2", "--overlap", ".8-.3"], ["--overlap is empty", "0.8 is above"]),
        (
            ["shapes3d", "--out", "x", "--matches", "2", "--overlap", ".3-.8", "--candidates", "0"],
            ["--candidates must be"],
        ),
        (["shapes3d", "--out", "x", "--rows", "5", "--ranges", "scale=1"], ["expected LOW:HIGH"]),
        (
            ["shapes3d", "--out", "x", "--rows", "5", "--ranges", "size=1:2"],
            ["--ranges contains 'size', which is not a factor"],
        ),
        (["shapes3d", "--out", "x", "--rows", "0"], ["number of rows"]),
        (["shapes3d", "--out", "x", "--where", "hue == 1"], ["hue"]),
        (["shapes3d", "--out", "x", "--where", "scale > 9"], ["selects no rows"]),
        (["shapes3d", "--out", "x", "--renderer", "brush"], ["unknown renderer 'brush'"]),
        (["shapes3d", "--out", "x", "--rows", "5", "--modalities", "colour"], ["no modality 'colour'"]),
        (
            ["shapes3d", "--out", "x", "--rows", "5", "--modalities", "image,dept"],
            ["no modality 'dept'; did you mean 'depth'?"],
        ),
        (["shapes3d", "--out", "x", "--rows", "5", "--modalities", "noks"], ["did you mean 'nocs'?"]),
        (["shapes3d", "--out", "x", "--rows", "5", "--processes", "0"], ["processes must be"]),
        (["shapes3d", "--out", "x", "--rows", "5", "--seed", "-1"], ["the seed must be"]),
        (["shapes3d", "--out", "x", "--model", "5"], ["unknown option '--model'"]),
    ],
)
def test_says_what_is_wrong(setsup: Run, tmp_path: Path, words: list[str], said: list[str]) -> None:
    refused(setsup("render", *words), *said)
    assert not Path("x").exists()  # nothing is begun that would stand in the way of the right command


def test_what_to_do_with_a_damaged_folder_does_what_it_says(setsup: Run) -> None:
    words = ["render", "shapes3d", "--rows", 3, "--size", 8, 8, "--renderer", "embree", "--out", "out"]
    assert setsup(*words).code == 0
    before = contents(Path("out"))
    os.truncate("out/image.npy", 4100)
    for again in (words, ["info", "out"]):
        refused(setsup(*again), "is truncated", "remove the folder and render it again, or copy it again")
    shutil.rmtree("out")
    assert setsup(*words).code == 0
    assert contents(Path("out")) == before


@pytest.mark.long("renderings")
def test_another_seed_of_a_recipe_is_named(setsup: Run) -> None:
    words = ["render", "room", "--rooms", 1, "--pairs", 1, "--count", 0, 1, "--size", 8, 8, "--renderer", "embree"]
    assert setsup(*words, "--out", "out").code == 0
    refused(setsup(*words, "--out", "out", "--seed", 1), "started with different options of the recipe (seed, ")


@pytest.mark.long("renderings")
def test_another_rendering_is_not_mixed_in(setsup: Run, tmp_path: Path) -> None:
    words = ["--rows", 10, "--size", 8, 8, "--renderer", "embree", "--modalities", "image"]
    assert setsup("render", "shapes3d", "--out", "out", *words).code == 0
    before = contents(tmp_path / "out")
    for others, said in (
        (["--rows", 11, *words[2:]], "a different number of rows (existing: 10, requested: 11)"),
        ([*words, "--seed", 1], "different rows (another seed or selection)"),
        ([*words[:2], "--size", 8, 9, *words[5:]], "a different image size"),
        (words[:-2], "started with the modalities image, not image, depth"),
    ):
        refused(setsup("render", "shapes3d", "--out", "out", *others), said)
    refused(
        setsup("render", "room", "--out", "out", *words), "a different recipe (existing: shapes3d, requested: room)"
    )
    assert contents(tmp_path / "out") == before
    assert not (tmp_path / "out.lock").exists(), "a refusal leaves nothing beside the folder"
    assert json.loads(before["rendered.json"])["rows"] == 10
