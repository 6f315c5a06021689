import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setsup
from setsup.errors import DataError, RowError
from setsup.factors import Factor, FactorTable, Kind
from setsup.rendered import dataset as rendered
from setsup.rendered import rows as rendered_rows
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import RenderedFolder, open_rendered
from setsup.rendered.table import sampled
from setsup.rendered.writing import _units, render
from tests.fuzzing import survives
from tests.rendered_scenes import Crayon, Dots, expected

CHECKOUT = Path(__file__).resolve().parents[2]
ROWS = 3 * 2 * 24
FILES = {
    "croissant.json",
    "rendered.json",
    "factors.parquet",
    "names.json",
    *(f"{name}.npy" for name in ("image", "depth", "normals", "instances", "triangles", "names")),
    *(f"camera_{name}.npy" for name in ("k", "rotation", "translation")),
}


def dots(**options: Any) -> RenderedDataset:
    return RenderedDataset(Dots(), **({"renderer": Crayon()} | options))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def same(found: dict[str, Any], row: int, **options: Any) -> None:
    wanted = expected(row, **options)
    for name, array in found.items():
        assert array.dtype == wanted[name].dtype
        np.testing.assert_array_equal(array, wanted[name])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All rows, drawn by this process in one go."""
    folder = tmp_path_factory.mktemp("rendered") / "dots"
    render(dots(), folder)
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "copy")
    return tmp_path / "copy"


# -- what is written ---------------------------------------------------------------------------------------------------


def test_anybody_can_read_the_files(whole: Path) -> None:
    assert set(contents(whole)) == FILES
    for name in ("image", "depth", "normals", "instances", "triangles"):
        array = np.load(whole / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        assert array.shape == (ROWS, *expected(0)[name].shape)
        for row in (0, 77, 143):
            np.testing.assert_array_equal(array[row], expected(row)[name])
    dataset = dots()
    for row in (0, 77, 143):
        camera = dataset.camera(row)
        for name in ("k", "rotation", "translation"):
            np.testing.assert_array_equal(np.load(whole / f"camera_{name}.npy")[row], getattr(camera, name))
    table = FactorTable.from_parquet(whole / "factors.parquet")
    assert table.fingerprint == dataset.factors.fingerprint
    names = json.loads((whole / "names.json").read_text())
    shapes = [names[f"{key:016x}"] for key in np.load(whole / "names.npy")[::48].tolist()]
    assert shapes == [{"0": "cone"}, {"1": "ball"}, {"2": "cube"}]


def test_what_it_tells_of_itself(whole: Path) -> None:
    about = json.loads((whole / "rendered.json").read_text())
    assert about["recipe"] == "dots"
    assert about["renderer"] == "crayon"
    assert (about["size"], about["rows"], about["format"]) == ([4, 6], ROWS, 1)
    assert about["setsup"] == setsup.__version__
    assert list(about["modalities"]) == ["image", "depth", "normals", "instances", "triangles"]
    text = (whole / "rendered.json").read_text() + (whole / "names.json").read_text()
    for word in (str(whole), str(CHECKOUT), os.uname().nodename, time.strftime("%Y-")):
        assert word not in text


def test_it_opens_as_a_dataset(whole: Path) -> None:
    dataset = open_rendered(whole)
    assert isinstance(dataset, setsup.datasets.Dataset)
    assert (dataset.name, len(dataset), dataset.renderer_name) == ("rendered dots", ROWS, "crayon")
    assert dataset.pair_factors == ("shape", "hue")
    assert not getattr(dataset, "cpu_bound", False)
    assert dataset.modalities == dots().modalities
    found = dataset.fetch([[3, 140], [77, 3]])
    for place in np.ndindex(2, 2):
        same({name: array[place] for name, array in found.items()}, [[3, 140], [77, 3]][place[0]][place[1]])
    out = {"depth": np.empty((2, 4, 6), np.float32)}
    dataset.fetch_into([8, 9], out)
    np.testing.assert_array_equal(out["depth"][1], expected(9)["depth"])
    assert dataset.camera(77) == dots().camera(77)
    assert dataset.names(77) == {1: "ball"}
    chosen = dataset.where("shape == 'cube'")
    assert chosen.names(0) == {2: "cube"}
    assert chosen.camera(5) == dots().camera(101)
    with pytest.raises(RowError):
        dataset.camera(ROWS)
    with pytest.raises(RowError, match="single row"):
        dataset.camera([1, 2])  # type: ignore[arg-type]


@pytest.mark.long("renderings")
def test_samplers_and_loaders_of_a_folder(whole: Path) -> None:
    dataset = open_rendered(whole)
    sets = setsup.SetSampler(dataset.factors, inactive=["shape"], size=4, sets=2)
    for workers in (0, "thread", 1):
        loader = setsup.loader(dataset, sets, workers=workers, to="numpy")
        for step, batch in zip(range(3), loader, strict=False):
            for place in np.ndindex(2, 4):
                same({"image": batch["image"][place]}, int(sets[step].indices[place]))


def test_a_pickle_is_the_folder(whole: Path) -> None:
    dataset = open_rendered(whole)
    dataset.fetch([3])
    assert len(pickle.dumps(dataset)) < 600
    same(pickle.loads(pickle.dumps(dataset)).fetch(9), 9)


def test_only_what_is_asked_is_written(tmp_path: Path) -> None:
    dataset = render(dots(), tmp_path / "some", ["depth", "image"])
    assert set(contents(tmp_path / "some")) == FILES - {"normals.npy", "instances.npy", "triangles.npy"}
    assert list(dataset.modalities) == ["image", "depth"]
    same(dataset.fetch(50), 50)
    with pytest.raises(DataError, match="has no modality 'normals'"):
        dataset.fetch([0], ["normals"])


def test_selections_and_sampled_rows(tmp_path: Path) -> None:
    chosen = render(dots().where("shape == 'ball' and azimuth < 60"), tmp_path / "chosen")
    assert len(chosen) == 8
    same(chosen.fetch(6), 48 + 24 + 2)
    table = sampled(Dots(), 30, ranges={"azimuth": (0, 360)})
    some = render(dots(factors=table), tmp_path / "some")
    assert some.factors.fingerprint == table.fingerprint
    np.testing.assert_allclose(some.fetch(range(30))["depth"][:, 0, 0], table.column("azimuth"), atol=1e-3)


def test_transparent_images(tmp_path: Path) -> None:
    dataset = render(RenderedDataset(Dots(background=None), renderer=Crayon()), tmp_path / "clear", ["image"])
    same(dataset.fetch(9), 9, channels=4)


# -- the same bytes ----------------------------------------------------------------------------------------------------


@pytest.mark.long("worker processes")
def test_any_number_of_processes_writes_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    render(dots(), tmp_path / "three", processes=3)
    assert contents(tmp_path / "three") == contents(whole)
    render(dots(), tmp_path / "again")
    assert contents(tmp_path / "again") == contents(whole)


class Stopping(Crayon):
    """Fails at a certain picture."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after

    def render(self, camera: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return super().render(camera)


def test_it_resumes_where_it_was_stopped(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        render(dots(renderer=Stopping(101)), tmp_path / "out")  # one to see that it works
    with pytest.raises(DataError, match="is not finished: run the same `setsup render` command again"):
        open_rendered(tmp_path / "out")
    renderer = Crayon()
    render(dots(renderer=renderer), tmp_path / "out")
    assert renderer.counts[1] == ROWS - 100
    assert contents(tmp_path / "out") == contents(whole)
    again = Crayon()
    render(dots(renderer=again), tmp_path / "out")
    assert again.counts[1] == 0


SCRIPT = """
import sys
import filelock, pyarrow.parquet
from setsup.rendered import rows as rendered_rows
rendered_rows._SECONDS = 0.05
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import _units, render
from tests.rendered_scenes import Crayon, Dots
if __name__ == "__main__":
    dataset = RenderedDataset(Dots(), renderer=Crayon.slow(0.008))
    print("ready", flush=True)
    render(dataset, sys.argv[1], processes=int(sys.argv[2]))
    print("done", flush=True)
"""


def drawn(folder: Path) -> int:
    path = folder / "rendered.progress"
    return sum(map(bool, path.read_bytes())) if path.exists() else 0


@pytest.mark.long("kills and interruptions")
@pytest.mark.parametrize(("processes", "kills"), [(1, 9), (3, 2)])
def test_kills_at_any_moment(whole: Path, tmp_path: Path, processes: int, kills: int) -> None:
    dice, folder, done = random.Random(processes), tmp_path / "out", 0
    for kill in range(kills):
        child = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, folder, str(processes)], stdout=subprocess.PIPE, text=True, cwd=CHECKOUT
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        # the first ones while the folder is begun, the last ones when more is there than before
        end = time.monotonic() + 30
        while kill >= 6 and drawn(folder) <= done and child.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(dice.uniform(0, 0.05) if processes == 1 and kill < 4 else dice.uniform(0, 0.2 * processes**2))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        if (folder / "rendered.progress").exists():
            before, done = done, drawn(folder)
            assert done >= before
            with pytest.raises(DataError):
                open_rendered(folder)
    renderer = Crayon()
    render(dots(renderer=renderer), folder)
    assert renderer.counts[1] <= ROWS - done + (done == 0)  # one more where nothing was begun
    if processes == 1:
        assert done > 0  # otherwise this test would show little
    assert contents(folder) == contents(whole)


def test_stray_files_of_a_killed_process_go_away(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / ".rendered-0123456789ab.tmp.json").write_text("{")
    render(dots(), folder)
    assert contents(folder) == contents(whole)
    assert not list(tmp_path.glob("*.lock"))


@pytest.mark.long("kills and interruptions")
def test_two_at_a_time_make_one(whole: Path, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", SCRIPT, tmp_path / "out", "1"]
    children = [subprocess.Popen(arguments, cwd=CHECKOUT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    assert contents(tmp_path / "out") == contents(whole)


# -- the cache ---------------------------------------------------------------------------------------------------------


def test_what_is_cached_is_not_drawn_again(tmp_path: Path) -> None:
    first, second = Crayon(), Crayon()
    dataset = dots(renderer=first, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()  # until something is drawn
    for _ in range(2):
        found = dataset.fetch([3, 100, 3])
        for place, row in enumerate([3, 100, 3]):
            same({name: array[place] for name, array in found.items()}, row)
    assert first.counts[1] == 2
    dataset._pools.clear()  # as where the process ends
    other = dots(renderer=second, cache=tmp_path / "cache")
    same(other.fetch(100), 100)
    same(other.fetch(101), 101)
    assert second.counts[1] == 1
    with pytest.raises(DataError, match="is not finished"):
        open_rendered(tmp_path / "cache")


def test_each_modality_is_cached_when_it_is_asked(tmp_path: Path) -> None:
    renderer = Crayon()
    dataset = dots(renderer=renderer, cache=tmp_path / "cache")
    dataset.fetch([3], ["image"])
    dataset.fetch([3], ["image"])
    assert renderer.counts[1] == 1
    same(dataset.fetch(3), 3)
    same(dataset.fetch(3), 3)
    assert renderer.counts[1] == 2


def test_a_cache_can_be_finished(whole: Path, tmp_path: Path) -> None:
    dataset = dots(cache=tmp_path / "cache")
    dataset.fetch(np.arange(0, ROWS, 7), ["depth"])
    dataset.fetch(np.arange(0, ROWS, 5))
    renderer = Crayon()
    dataset._pools.clear()
    render(dots(renderer=renderer), tmp_path / "cache")
    assert renderer.counts[1] == ROWS - len(range(0, ROWS, 5))
    assert contents(tmp_path / "cache") == contents(whole)
    third = Crayon()
    same(dots(renderer=third, cache=tmp_path / "cache").fetch(9), 9)
    assert third.counts == (0, 0)


def test_a_finished_folder_of_some_modalities_as_a_cache(tmp_path: Path) -> None:
    render(dots(), tmp_path / "some", ["image"])
    before = contents(tmp_path / "some")
    renderer = Crayon()
    dataset = dots(renderer=renderer, cache=tmp_path / "some")
    same(dataset.fetch(9, ["image"]), 9)
    assert renderer.counts[1] == 0
    same(dataset.fetch(9), 9)
    assert renderer.counts[1] == 1
    assert contents(tmp_path / "some") == before


@pytest.mark.long("worker processes")
def test_workers_share_a_cache(whole: Path, tmp_path: Path) -> None:
    dataset = dots(cache=tmp_path / "cache")
    epoch = setsup.EpochSampler(dataset.factors, size=12, epochs=2)
    for step, batch in enumerate(setsup.loader(dataset, epoch, workers=2, to="numpy")):
        for place in np.ndindex(batch["indices"].shape):
            same({"depth": batch["depth"][place]}, int(epoch[step].indices[place]))
    render(dots(), tmp_path / "cache")
    assert contents(tmp_path / "cache") == contents(whole)


def test_a_cache_that_another_process_finishes(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        render(dots(renderer=Stopping(20)), tmp_path / "some", ["image"])
    renderer = Crayon()
    dataset = dots(renderer=renderer, cache=tmp_path / "some")
    same(dataset.fetch(5, ["depth"]), 5)  # which it does not keep
    render(dots(), tmp_path / "some", ["image"])
    same(dataset.fetch(100, ["image"]), 100)
    assert renderer.counts[1] == 1


def test_a_cache_of_another_dataset_is_refused(whole: Path) -> None:
    before = contents(whole)
    with pytest.raises(DataError, match="started with different options of the recipe"):
        RenderedDataset(Dots(salt="x"), renderer=Crayon(), cache=whole).fetch([0])
    assert contents(whole) == before


# -- what is refused ---------------------------------------------------------------------------------------------------


class Pencil(Crayon):
    name = "pencil"


class Renamed(Dots):
    name = "spots"


@pytest.mark.parametrize(
    ("dataset", "modalities", "said"),
    [
        (
            lambda: RenderedDataset(Renamed(), renderer=Crayon()),
            None,
            r"a different recipe \(existing: dots, requested: spots\)",
        ),
        (lambda: RenderedDataset(Dots(size=(4, 4)), renderer=Crayon()), None, "a different image size"),
        (lambda: RenderedDataset(Dots(salt="x"), renderer=Crayon()), None, "different options of the recipe"),
        (lambda: dots(renderer=Pencil()), None, r"a different renderer \(existing: crayon, requested: pencil\)"),
        (lambda: dots(factors=sampled(Dots(), 5)), None, r"a different number of rows \(existing: 144, requested: 5\)"),
        (lambda: dots(factors=sampled(Dots(), ROWS)), None, "different rows"),
        (dots, ["image"], "started with the modalities image, depth, normals, instances, triangles, not image"),
    ],
)
@pytest.mark.parametrize("finished", [True, False])
def test_another_rendering_is_never_mixed_in(
    copy: Path, dataset: Callable[[], RenderedDataset], modalities: Iterable[str] | None, said: str, finished: bool
) -> None:
    if not finished:
        (copy / "rendered.progress").write_bytes(bytes(ROWS))
    before = contents(copy)
    with pytest.raises(DataError, match=said):
        render(dataset(), copy, modalities)
    assert {name: data for name, data in contents(copy).items() if name != "rendered.progress"} == {
        name: data for name, data in before.items() if name != "rendered.progress"
    }


def test_another_version_is_never_mixed_in(copy: Path) -> None:
    about = json.loads((copy / "rendered.json").read_text())
    (copy / "rendered.json").write_text(json.dumps({**about, "setsup": "0.0.7"}))
    with pytest.raises(DataError, match=r"a different version of setsup.*\(existing: 0.0.7"):
        render(dots(), copy)
    assert len(open_rendered(copy)) == ROWS  # which reads it nevertheless


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "image.npy").write_bytes(b"precious")
    with pytest.raises(DataError, match=r"mine contains other files \(image.npy\); choose a new folder"):
        render(dots(), tmp_path / "mine")
    assert contents(tmp_path / "mine") == {"image.npy": b"precious"}
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="file"):
        render(dots(), tmp_path / "file")


def test_arguments_that_are_none(tmp_path: Path) -> None:
    for modalities, said in (([], "at least one"), (["images"], "did you mean 'image'"), ("image", "list of names")):
        with pytest.raises(DataError, match=said):
            render(dots(), tmp_path / "out", modalities)
    with pytest.raises(DataError, match="the dataset to render must be a RenderedDataset, or a selection of one"):
        render(setsup.load("shapes3d-procedural"), tmp_path / "out")  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.mark.long("kills and interruptions")
def test_a_full_disk(tmp_path: Path) -> None:
    """A disk of 256 kB, mounted for one process; 24 × 24 pixels need 144 times 15.6 kB."""
    script = """
    import sys
    from pathlib import Path
    from setsup.rendered import writing as rendered_writing
    from setsup.rendered.dataset import RenderedDataset
    from setsup.errors import DataError
    from tests.rendered_scenes import Crayon, Dots
    dataset = RenderedDataset(Dots(size=(24, 24)), renderer=Crayon())
    for _ in range(2):
        try:
            rendered_writing.render(dataset, Path(sys.argv[1]) / "out")
        except DataError as error:
            print(error)
        rendered_writing.need_space = lambda *arguments: None  # somebody else fills the disk meanwhile
    """
    folder = tmp_path / "disk"
    folder.mkdir()
    inside = 'mount -t tmpfs -o size=256k tmpfs "$1" || exit 77; exec "$2" -c "$3" "$1"'
    words = ["sh", "-c", inside, "sh", folder, sys.executable, textwrap.dedent(script)]
    try:
        done = subprocess.run(
            ["unshare", "--mount", "--map-root-user", *words], capture_output=True, text=True, cwd=CHECKOUT
        )
    except FileNotFoundError:
        pytest.skip("this system has no unshare command")
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("this system does not let the tests mount a disk")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("rendering dots requires 2.3 MB in")
    assert "the disk is full; free some space there or choose another folder" in second


# -- damaged folders ---------------------------------------------------------------------------------------------------


def reread(copy: Path) -> None:
    """Open a folder, and read all that is in it."""
    dataset = open_rendered(copy)
    dataset.fetch(np.arange(len(dataset)))
    for row in (0, len(dataset) - 1):
        dataset.camera(row)
        dataset.names(row)


@pytest.mark.parametrize("name", sorted(FILES - {"croissant.json"}))
def test_missing_and_cut_files(copy: Path, name: str) -> None:
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[:-2])
    with pytest.raises(DataError, match=name):
        reread(copy)
    (copy / name).write_bytes(b"")
    with pytest.raises(DataError, match=name):
        reread(copy)
    (copy / name).unlink()
    with pytest.raises(DataError, match=name):
        reread(copy)


def test_arrays_that_are_other_arrays(copy: Path) -> None:
    for array, said in (
        (np.zeros((ROWS, 4, 6), np.float64), "is not the array"),
        (np.asfortranarray(np.zeros((ROWS, 4, 6), np.float32)), "is not the array"),
        (np.array([print, len], dtype=object), "is not the array"),  # pickles, which run what they like
    ):
        np.save(copy / "depth.npy", array, allow_pickle=True)
        with pytest.raises(DataError, match=said):
            open_rendered(copy)
    with pytest.raises(DataError, match=said):
        render(dots(), copy)  # nor is it taken for finished


def test_a_later_format_is_refused_in_words(copy: Path) -> None:
    about = json.loads((copy / "rendered.json").read_text())
    (copy / "rendered.json").write_text(json.dumps({**about, "format": 2, "setsup": "9.1", "new": {"things": []}}))
    with pytest.raises(DataError, match=r"has format 2, written by setsup 9.1, but this version reads format 1"):
        open_rendered(copy)


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        open_rendered(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"rendered.json does not exist; expected a folder that `setsup render` wrote"):
        open_rendered(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="is not a folder"):
        open_rendered(tmp_path / "file")


@pytest.mark.parametrize("name", ["factors.parquet", "depth.npy", "camera_k.npy", "names.json"])
def test_a_missing_file_is_named_with_the_remedy(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(DataError, match=rf"{name} does not exist; expected .*; remove the folder and render it again"):
        open_rendered(copy).names(0)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize(
    ("name", "head"),
    [("rendered.json", 4096), ("names.json", 512), ("factors.parquet", 4096), ("depth.npy", 256)],
)
def test_damage_anywhere(copy: Path, name: str, head: int) -> None:
    def read(content: bytes) -> None:
        (copy / name).write_bytes(content)
        dataset = open_rendered(copy)
        # what opens has the rows, the factors and the modalities that it has
        assert len(dataset) == len(dataset.factors) == ROWS
        found = dataset.fetch([0, ROWS - 1])
        assert {key: array.shape[1:] for key, array in found.items()} == {
            key: one.shape for key, one in dataset.modalities.items()
        }
        dataset.camera(3)
        dataset.names(3)

    healthy = (copy / name).read_bytes()
    assert survives(healthy, read, 45, head=head, slack=24 << 20) > 15


def test_damage_in_the_progress_is_said(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        render(dots(renderer=Stopping(10)), tmp_path / "out")
    (tmp_path / "out" / "depth.npy").unlink()
    with pytest.raises(DataError, match=r"depth.npy does not exist"):
        render(dots(), tmp_path / "out")
    (tmp_path / "out" / "rendered.progress").write_bytes(b"\x1f")
    with pytest.raises(DataError, match=r"rendered.progress is damaged: it has 1 bytes for 144 rows; remove"):
        render(dots(), tmp_path / "out")


def test_what_is_written_each_second(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With no second to wait, a row is there as soon as it is drawn."""
    monkeypatch.setattr(rendered_rows, "_SECONDS", 0.0)
    seen: list[int] = []

    class Watching(Crayon):
        def render(self, camera: Any) -> Any:
            path = tmp_path / "out" / "rendered.progress"
            seen.append(sum(map(bool, path.read_bytes())) if path.exists() else -1)
            return super().render(camera)

    render(dots(renderer=Watching()).where("azimuth < 75"), tmp_path / "out")
    assert seen == list(range(-1, 30))  # the first is drawn before anything is begun, to see that it works


# -- with a renderer that draws ----------------------------------------------------------------------------------------


@pytest.mark.long("worker processes")
def test_embree_in_one_process_and_in_three(tmp_path: Path) -> None:
    pytest.importorskip("embreex")
    from setsup.scenes.recipes import Shapes3D

    shapes = RenderedDataset(Shapes3D(size=(24, 32)), renderer="embree")
    some = shapes.where("wall_hue == 0.5 and object_hue == 0.1 and floor_hue in (0.2, 0.7) and scale > 1.2")
    one = render(some, tmp_path / "one")
    render(some, tmp_path / "three", processes=3)
    assert contents(tmp_path / "one") == contents(tmp_path / "three")
    assert len(one) == 2 * 4 * 15
    rows = np.arange(0, 120, 11)
    for name, array in some.fetch(rows).items():
        np.testing.assert_array_equal(one.fetch(rows)[name], array)
    assert one.names(20) == {0: "floor", 1: "wall", 2: "cylinder"}
    assert one.camera(3) == some.camera(3)


@pytest.mark.long("renderings")
def test_auto_resumes_with_what_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("embreex")
    from setsup.scenes.recipes import Shapes3D

    def choose() -> Any:
        raise AssertionError("nothing is to be chosen")

    monkeypatch.setattr(rendered, "choose", choose)
    recipe = Shapes3D(size=(8, 8))
    table = sampled(recipe, 40)
    render(RenderedDataset(recipe, table, "embree"), tmp_path / "out")
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "rendered.progress").write_bytes(bytes(40))
    cached = RenderedDataset(recipe, table, cache=tmp_path / "out")
    cached.fetch([3, 4])
    assert cached.renderer_name == "embree"
    done = render(RenderedDataset(recipe, table), tmp_path / "out")
    assert isinstance(done, RenderedFolder)
    assert contents(tmp_path / "out") == before


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=300), st.booleans())
def test_units_of_work_hold_every_row_once_and_scenes_together(rows: list[tuple[int, int]], fixed: bool) -> None:
    shape = Factor("shape", Kind.ORDINAL, (0, 1, 2, 3))
    hue = Factor("hue", Kind.CONTINUOUS)

    class Recipe:
        size = (128, 128)  # 64 rows a unit
        scene_factors = () if fixed else ("shape", "hue")

    class Data:
        recipe = Recipe()
        factors = FactorTable([shape, hue], {"shape": [a for a, _ in rows], "hue": [float(b) for _, b in rows]})

    units = [unit.tolist() for unit in _units(Data())]  # type: ignore[arg-type]
    assert sorted(row for unit in units for row in unit) == list(range(len(rows)))
    assert all(0 < len(unit) <= 64 for unit in units)
    if fixed:
        assert len(units) == -(-len(rows) // 64)
        return
    for unit in units:
        scenes = [scene for scene, _ in groupby(rows[row] for row in unit)]
        assert len(scenes) == len(set(scenes))
    for scene in set(rows):
        among = [unit for unit in units if any(rows[row] == scene for row in unit)]
        assert len(among) <= -(-rows.count(scene) // 64) + (rows.count(scene) > 64)
