"""Rows that cannot be drawn: all others are, they are named, and are left out where that is asked for."""

import json
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setsup.correspondence import RenderedPairs, pair_table
from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.rendered import failures as rendered_failures
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import open_rendered
from setsup.rendered.renderer_pool import without_scene
from setsup.rendered.writing import render
from setsup.scenes import Camera, Scene
from setsup_cli.main import main
from tests.rendered_scenes import Crayon, Dots, expected

ROWS = 3 * 2 * 24
CHECKOUT = Path(__file__).resolve().parents[2]
BALLS = list(range(48, 72))  # of hue 20
LOST = [*BALLS, 100, 143]
LEFT = [row for row in range(ROWS) if row not in LOST]


class Broken(Dots):
    """Dots of which one scene cannot be built, and two cameras cannot be placed."""

    def scene(self, values: Mapping[str, Any]) -> Scene:
        if (values["shape"], values["hue"]) == ("ball", 20):
            raise SetsupError("the mesh of the ball has no triangles")
        return super().scene(values)

    def camera(self, values: Mapping[str, Any], scene: Scene) -> Camera:
        if values["shape"] == "cube" and (values["hue"], values["azimuth"]) in ((20, 60.0), (40, 345.0)):
            raise SetsupError(f"found no positions at {values['azimuth']}")
        return super().camera(values, scene)


def broken(renderer: Any = None, **options: Any) -> RenderedDataset:
    return RenderedDataset(Broken(), renderer=Crayon() if renderer is None else renderer, **options)


def chosen() -> RenderedDataset:
    """Nothing but the rows that can be drawn."""
    return RenderedDataset(Broken(), FactorTable(Broken.factors).select(LEFT), Crayon())


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of a rendering of those alone."""
    folder = tmp_path_factory.mktemp("alone") / "out"
    render(chosen(), folder)
    return contents(folder)


def same_as_alone(folder: Path, alone: Mapping[str, bytes]) -> None:
    """All bytes, but for what tells that rows were left out."""
    found = contents(folder)
    assert set(found) == {*alone, "failed.json"}
    assert {name: data for name, data in found.items() if name not in ("failed.json", "rendered.json")} == {
        name: data for name, data in alone.items() if name != "rendered.json"
    }
    about = json.loads(found["rendered.json"])
    assert about.pop("asked") == [ROWS, FactorTable(Broken.factors).fingerprint]
    assert about == json.loads(alone["rendered.json"])


# -- told --------------------------------------------------------------------------------------------------------------


@pytest.mark.long("renderings")
@pytest.mark.parametrize("processes", [1, 3])
def test_all_others_are_drawn_and_the_broken_ones_named(tmp_path: Path, processes: int) -> None:
    folder = tmp_path / "out"
    with pytest.raises(DataError) as caught:
        render(broken(), folder, processes=processes)
    said = str(caught.value)
    assert said.startswith(
        f"26 of 144 rows of dots cannot be rendered, all others are in {folder}: 24 rows from 48 on (shape 'ball', hue "
        "20)"
        ": the mesh of the ball has no triangles; row 100 (shape 'cube', hue 20): found no positions at 60.0; row 143 ("
    )
    assert f"{folder / 'failed.json'} lists them all" in said
    assert "For temporary faults, such as too little memory, run the same `setsup render` again" in said
    assert "leave the rows out with --skip-broken" in said
    assert said.endswith("editing a mesh changes the recipe, and needs another --out")
    assert "\n" not in said
    assert [(one["rows"], one["scene"]) for one in json.loads((folder / "failed.json").read_text())] == [
        (BALLS, {"shape": "ball", "hue": 20}),
        ([100], {"shape": "cube", "hue": 20}),
        ([143], {"shape": "cube", "hue": 40}),
    ]
    assert np.flatnonzero(np.fromfile(folder / "rendered.progress", np.uint8)).tolist() == LEFT
    images = np.load(folder / "image.npy")
    for row in LEFT:
        np.testing.assert_array_equal(images[row], expected(row)["image"])
    with pytest.raises(DataError, match="is not finished"):
        open_rendered(folder)


@pytest.mark.long("renderings")
def test_the_same_call_draws_them_alone(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with pytest.raises(DataError, match="26 of 144 rows"):
        render(broken(), folder)
    again = Crayon()
    with pytest.raises(DataError, match="26 of 144 rows"):
        render(broken(again), folder)
    assert again.counts[1] == 2  # the first row, for each unit with broken ones: can anything be drawn?
    mended = Crayon()  # what was wrong lay elsewhere: the recipe is the same
    render(RenderedDataset(Dots(), renderer=mended), folder)
    assert mended.counts[1] == len(LOST)
    render(RenderedDataset(Dots(), renderer=Crayon()), tmp_path / "whole")
    assert contents(folder) == contents(tmp_path / "whole")


def test_many_errors_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Broken,
        "camera",
        lambda self, values, scene: Dots.camera(self, values, scene) if not values["azimuth"] else bad(),
    )

    def bad() -> Camera:
        raise SetsupError("found no positions")

    with pytest.raises(DataError, match=r"139 of 144 rows .*; and 3 more\. ") as caught:
        render(broken(), tmp_path / "out")
    assert len(str(caught.value)) < 900


def test_a_scene_that_no_renderer_loads(tmp_path: Path) -> None:
    class Small(Crayon):
        def load(self, scene: Scene) -> None:
            if scene.placements[0].name == "cube":
                raise SetsupError("a texture is larger than this driver takes")
            super().load(scene)

    with pytest.raises(DataError, match=r"72 of 144 rows .*24 rows from 96 on \(shape 'cube', hue 20\): a texture is"):
        render(broken(Small()), tmp_path / "out")


def test_where_the_first_row_cannot_be_drawn_any_more_the_work_ends(tmp_path: Path) -> None:
    class Leaving(Crayon):
        def render(self, camera: Camera) -> Any:
            if self.counts[1] >= 50:
                raise SetsupError("the driver is gone")
            return super().render(camera)

    with pytest.raises(DataError, match=r"^rendered dots, row 0: the driver is gone$"):
        render(RenderedDataset(Dots(), renderer=Leaving()), tmp_path / "out")
    assert not (tmp_path / "out" / "failed.json").exists()
    with pytest.raises(DataError, match=r"row 0: the driver is gone"):
        render(RenderedDataset(Dots(), renderer=Leaving()), tmp_path / "out", skip_broken=True)


def test_a_first_row_that_cannot_be_drawn_is_told_how_to_leave_out(tmp_path: Path) -> None:
    table = FactorTable(Broken.factors)
    balls_first = table.select([*BALLS, *range(48)])
    with pytest.raises(DataError, match=r"^rendered dots, row 0: the mesh of the ball has no triangles; ") as caught:
        render(broken(factors=balls_first), tmp_path / "out")
    expression = str(caught.value).partition(' --where "')[2].removesuffix('"')
    assert expression == "shape != 'ball' or hue != 20"
    assert len(render(broken(factors=balls_first.where(expression)), tmp_path / "balls")) == 48
    # a camera is placed only when it is drawn; nothing is left behind
    with pytest.raises(
        DataError, match=r"row 0: found no positions at 60\.0; .* --where \"shape != 'cube' or hue != 20\"$"
    ):
        render(broken(factors=table.select([100, 0, 1])), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    # where there is no other scene, no row would be left
    with pytest.raises(DataError, match=r"row 0: found no positions at 60\.0$"):
        render(broken(factors=table.select([100, 101])), tmp_path / "out")


def test_left_out_are_those_of_the_first_scene_too(tmp_path: Path) -> None:
    table = FactorTable(Broken.factors)
    balls_first = broken(factors=table.select([*BALLS, *range(48)]))
    found = render(balls_first, tmp_path / "out", skip_broken=True)
    assert (len(found), found.left_out) == (48, len(BALLS))
    render(broken(factors=table.select(range(48))), tmp_path / "alone")
    assert (tmp_path / "out" / "image.npy").read_bytes() == (tmp_path / "alone" / "image.npy").read_bytes()
    with pytest.raises(DataError, match=r"^rendered dots, row 0: the mesh of the ball has no triangles$"):
        broken(factors=table.select(BALLS))


def test_a_scene_that_no_expression_names() -> None:
    table = FactorTable([Factor("which model", Kind.NOMINAL, ("a", "b"))])
    assert without_scene(table, ["which model"], table.row(0)) == ""
    quoted = FactorTable([Factor("model", Kind.NOMINAL, ('$a"b', "c"))])
    advice = without_scene(quoted, ["model"], quoted.row(0))
    assert quoted.rows(shlex.split(advice.partition("--where ")[2])[0]).tolist() == [1]


def test_a_fault_of_the_program_is_none_of_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, values: Mapping[str, Any], scene: Scene) -> Camera:
        if values["azimuth"] == 60:
            raise KeyError("elevation")
        return Dots.camera(self, values, scene)

    monkeypatch.setattr(Broken, "camera", wrong)
    with pytest.raises(KeyError, match="elevation"):
        render(broken(), tmp_path / "out", skip_broken=True)


def test_a_full_disk_is_none_of_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from setsup.rendered.rows import RowFiles

    def full(self: Any, name: str, row: int, array: Any) -> None:
        raise DataError("the disk is full")

    monkeypatch.setattr(RowFiles, "_write", full)
    with pytest.raises(DataError, match=r"^the disk is full$"):
        render(broken(), tmp_path / "out", skip_broken=True)


# -- left out ----------------------------------------------------------------------------------------------------------


@pytest.mark.long("renderings")
@pytest.mark.parametrize("processes", [1, 3])
def test_what_is_left_is_what_would_be_drawn_without_them(
    tmp_path: Path, alone: dict[str, bytes], processes: int
) -> None:
    folder = tmp_path / "out"
    found = render(broken(), folder, processes=processes, skip_broken=True)
    assert (len(found), found.left_out) == (len(LEFT), len(LOST))
    same_as_alone(folder, alone)
    for row in (0, 47, 48, len(LEFT) - 1):
        np.testing.assert_array_equal(found.fetch(row)["depth"], expected(LEFT[row])["depth"])
    assert found.names(50) == {1: "ball"}
    assert found.camera(50) == RenderedDataset(Dots(), renderer=Crayon()).camera(LEFT[50])


@pytest.mark.long("renderings")
def test_they_are_left_out_later_too_and_nothing_is_drawn_again(tmp_path: Path, alone: dict[str, bytes]) -> None:
    folder = tmp_path / "out"
    with pytest.raises(DataError, match="cannot be rendered"):
        render(broken(), folder)
    crayon = Crayon()
    render(broken(crayon), folder, skip_broken=True)
    assert crayon.counts[1] == 2
    same_as_alone(folder, alone)
    before, idle = contents(folder), Crayon()
    said: list[tuple[int, int]] = []
    again = render(
        broken(idle), folder, skip_broken=True, on_start=lambda layout, rows: said.append((layout.rows, rows))
    )
    assert (len(again), again.left_out, idle.counts[1]) == (len(LEFT), len(LOST), 0)
    assert said == [(len(LEFT), len(LEFT))]
    with pytest.raises(DataError, match=r"leaves out 26 rows that could not be rendered \(listed in failed\.json\)"):
        render(broken(), folder)
    # who asks for the rows that are there gets them; as the cache of all rows it will not do
    assert len(render(RenderedDataset(Broken(), FactorTable(Broken.factors).select(LEFT), Crayon()), folder)) == len(
        LEFT
    )
    with pytest.raises(
        DataError, match=r"a different number of rows \(existing: 144, requested: 96\)"
    ):  # as many as were asked for
        render(broken(factors=FactorTable(Broken.factors).select(range(96))), folder, skip_broken=True)
    with pytest.raises(DataError, match=r"started with different rows"):
        render(broken(factors=FactorTable(Broken.factors).select(range(ROWS)[::-1])), folder, skip_broken=True)
    with pytest.raises(DataError, match=r"a different number of rows \(existing: 118, requested: 144\)"):
        broken(cache=folder).fetch([0])
    assert contents(folder) == before


@pytest.mark.long("renderings")
def test_without_a_broken_row_nothing_tells_of_any(tmp_path: Path) -> None:
    render(RenderedDataset(Dots(), renderer=Crayon()), tmp_path / "plain")
    found = render(RenderedDataset(Dots(), renderer=Crayon()), tmp_path / "out", skip_broken=True)
    assert found.left_out == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "plain")


def test_of_pairs_both_views_go(tmp_path: Path) -> None:
    table = pair_table(Broken(), 30, seed=3)
    lost = {
        row
        for row in range(60)
        if table.row(row)["shape"] == "cube"
        and (table.row(row)["hue"], table.row(row)["azimuth"]) in ((20, 60.0), (40, 345.0))
    }
    lost |= {row for row in range(60) if (table.row(row)["shape"], table.row(row)["hue"]) == ("ball", 20)}
    gone = {row for one in lost for row in (one, one ^ 1)}
    assert 0 not in gone
    assert lost < gone
    names = ["image", "depth"]
    views = render(RenderedPairs(Broken(), table, Crayon()), tmp_path / "out", names, skip_broken=True)
    assert views.left_out == len(gone)
    kept = [row for row in range(60) if row not in gone]
    assert views.factors.values("view_pair").tolist() == [row // 2 for row in kept]
    assert views.factors.values("view").tolist() == [0, 1] * (len(kept) // 2)
    render(RenderedPairs(Broken(), table.select(kept), Crayon()), tmp_path / "alone", names)
    same = {name: data for name, data in contents(tmp_path / "alone").items() if name != "rendered.json"}
    assert {name: contents(tmp_path / "out")[name] for name in same} == same


SCRIPT = """
import sys, time
from setsup.rendered import failures as rendered_failures
from setsup.rendered.writing import render
from tests.rendered.test_failures import broken
slow = rendered_failures._copy
def copy(*arguments):
    time.sleep(0.01)
    slow(*arguments)
rendered_failures._copy = copy
print("ready", flush=True)
render(broken(), sys.argv[1], skip_broken=True)
"""


@pytest.mark.long("kills and interruptions")
def test_kills_while_the_ranks_are_closed(tmp_path: Path, alone: dict[str, bytes]) -> None:
    dice, folder, between = random.Random(5), tmp_path / "out", 0
    with pytest.raises(DataError, match="cannot be rendered"):
        render(broken(), folder)
    for _ in range(8):
        child = subprocess.Popen([sys.executable, "-c", SCRIPT, folder], stdout=subprocess.PIPE, cwd=CHECKOUT)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        end = time.monotonic() + 20
        while b'"asked"' not in (folder / "rendered.json").read_bytes() and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(dice.uniform(0, 0.06))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        if not (folder / "rendered.progress").exists():
            break
        between += 1
        with pytest.raises(DataError, match="is not finished"):
            open_rendered(folder)
        with pytest.raises(DataError, match="leaves out 26 rows"):
            render(broken(), folder)
        with pytest.raises(DataError, match="is not finished"):
            render(chosen(), folder)
    assert between
    crayon = Crayon()
    render(broken(crayon), folder, skip_broken=True)
    assert crayon.counts[1] == 0
    same_as_alone(folder, alone)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "does not exist"),
        (b"[", "is damaged"),
        (b"[]", "does not match rendered\\.json in the same folder"),
        (b'[{"rows": ["x"]}]', "is damaged"),
        (b'[{"rows": [99999999999999999999]}]', "is damaged"),
        (b'[{"rows": 3}]', "is damaged"),
        (b"{}", "does not match rendered\\.json in the same folder"),
    ],
)
def test_a_damaged_list_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, said: str
) -> None:
    folder = tmp_path / "out"

    def stopped(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rendered_failures, "_copy", stopped)
        with pytest.raises(KeyboardInterrupt):
            render(broken(), folder, skip_broken=True)
    if content is None:
        (folder / "failed.json").unlink()
    else:
        (folder / "failed.json").write_bytes(content)
    with pytest.raises(DataError, match=rf"failed\.json {said}"):
        render(broken(), folder, skip_broken=True)


# -- on the command line -----------------------------------------------------------------------------------------------


def test_broken_meshes_among_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("embreex")
    good = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 1\nf 1 2 3 4\n"
    for name, text in {"bed": good, "cup": good, "hat": "v 0 0 0\nf 1 2 3\n", "jar": "", "urn": good}.items():
        (tmp_path / f"{name}.obj").write_text(text)
    files = [str(path) for path in sorted(tmp_path.glob("*.obj"))]
    words = ["render", "object", "--models", *files, "--views", "2", "--size", "8", "8", "--renderer", "embree"]
    words += ["--modalities", "image", "--out", str(tmp_path / "views")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "4 of 10 rows of object cannot be rendered" in said
    for name in ("hat", "jar"):
        assert f"(model '{name}')" in said
    assert main([*words, "--skip-broken"]) == 0
    assert "4 rows could not be rendered and are omitted" in capsys.readouterr().out
    found = open_rendered(tmp_path / "views")
    assert found.factors.values("model").tolist() == ["bed", "bed", "cup", "cup", "urn", "urn"]
    others = tmp_path / "others"
    assert main([*words[:-1], str(others), "--where", "model not in ('hat', 'jar')"]) == 0
    capsys.readouterr()
    assert (others / "image.npy").read_bytes() == (tmp_path / "views" / "image.npy").read_bytes()
    assert main([*words, "--skip-broken", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == 4
