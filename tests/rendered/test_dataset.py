import math
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

import setsup
from setsup.datasets.concatenation import concat
from setsup.errors import DataError, FactorError, RowError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.rendered import renderer_pool
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.table import sampled
from setsup.scenes import Camera, Scene
from tests.rendered_scenes import AZIMUTHS, SHAPES, Crayon, Dots, expected

ROWS = 3 * 2 * 24


def dots(**options: Any) -> RenderedDataset:
    return RenderedDataset(Dots(), **({"renderer": Crayon()} | options))


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> list[Crayon]:
    """Crayons that were made by their name."""
    made: list[Crayon] = []

    def make(name: str) -> Crayon:
        assert name == "crayon"
        made.append(Crayon())
        return made[-1]

    monkeypatch.setattr(renderer_pool, "make_renderer", make)
    return made


def same(found: dict[str, Any], row: int, **options: Any) -> None:
    wanted = expected(row, **options)
    for name, array in found.items():
        assert array.dtype == wanted[name].dtype
        np.testing.assert_array_equal(array, wanted[name])


# -- what it is --------------------------------------------------------------------------------------------------------


def test_describes_itself() -> None:
    dataset = dots()
    assert dataset.name == "rendered dots"
    assert repr(dataset) == "RenderedDataset('rendered dots', 144 rows)"
    assert len(dataset) == ROWS
    assert dataset.factors.is_grid
    assert dataset.cpu_bound
    assert isinstance(dataset, setsup.datasets.Dataset)
    about = {name: (one.shape, one.dtype, one.unit, one.color) for name, one in dataset.modalities.items()}
    assert about == {
        "image": ((4, 6, 3), "uint8", "", "srgb"),
        "depth": ((4, 6), "float32", "m", ""),
        "normals": ((4, 6, 3), "float32", "", ""),
        "instances": ((4, 6), "int32", "", ""),
        "triangles": ((4, 6), "int32", "", ""),
    }
    assert dataset.pair_factors == ("shape", "hue")
    assert dataset.renderer_name == "crayon"


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
def test_indices_of_any_shape(shape: tuple[int, ...]) -> None:
    rows = (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 55 + 7) % ROWS
    found = dots().fetch(rows)
    assert list(found) == ["image", "depth", "normals", "instances", "triangles"]
    for place in np.ndindex(shape):
        same({name: array[place] for name, array in found.items()}, int(rows[place]))
    for name, array in found.items():
        assert array.shape == (*shape, *expected(0)[name].shape)


def test_only_what_is_asked_is_given() -> None:
    renderer = Crayon()
    dataset = dots(renderer=renderer)
    assert list(dataset.fetch([3], ["depth", "image", "depth"])) == ["depth", "image"]
    assert dataset.fetch([3], []) == {}
    assert renderer.counts == (1, 1)


def test_writes_into_arrays_that_are_given() -> None:
    whole = np.zeros((3, 2, 4, 6, 3), np.uint8)
    out = {"image": whole[:, 1], "depth": np.empty((3, 4, 6), np.float32)}
    dots().fetch_into([5, 100, 5], out)
    for place, row in enumerate([5, 100, 5]):
        same({name: array[place] for name, array in out.items()}, row)
    assert not whole[:, 0].any()


def test_rows_of_a_scene_are_drawn_together_and_repeated_rows_once() -> None:
    renderer = Crayon()
    rows = np.array([0, 50, 1, 51, 0, 2, 50, 1])  # of two scenes
    found = dots(renderer=renderer).fetch(rows)
    assert renderer.counts == (2, 5)
    for place, row in enumerate(rows.tolist()):
        same({name: array[place] for name, array in found.items()}, row)


def test_the_scene_that_is_loaded_comes_first() -> None:
    renderer = Crayon()
    dataset = dots(renderer=renderer)
    dataset.fetch([50])
    dataset.fetch([0, 51])
    dataset.fetch([1, 52])
    assert renderer.counts[1] == 5
    assert renderer.counts[0] <= 5


def test_rows_give_their_values_scene_camera_and_frame() -> None:
    dataset = dots()
    assert dataset.values(31) == {"shape": "cone", "hue": 40, "azimuth": 105.0}
    assert dataset.scene(31).names == dataset.names(31) == {0: "cone"}
    turn = math.radians(105)
    np.testing.assert_allclose(dataset.camera(31).centre, [3 * math.cos(turn), 3 * math.sin(turn), 0], atol=1e-12)
    np.testing.assert_array_equal(dataset.frame(31).depth, expected(31)["depth"])
    chosen = dataset.where("shape == 'cube' and hue == 20")
    assert chosen.values(2) == {"shape": "cube", "hue": 20, "azimuth": 30.0}
    assert chosen.camera(2) == dataset.camera(4 * 24 + 2)
    assert chosen.scene(2).digest == dataset.scene(4 * 24).digest
    with pytest.raises(RowError):
        dataset.camera(ROWS)


def test_images_without_background_have_alpha() -> None:
    dataset = RenderedDataset(Dots(background=None), renderer=Crayon())
    assert dataset.modalities["image"].shape == (4, 6, 4)
    same(dataset.fetch(77), 77, channels=4)


# -- tables ------------------------------------------------------------------------------------------------------------


def test_continuous_factors_are_drawn_as_they_are() -> None:
    azimuth = Factor("azimuth", Kind.CONTINUOUS, unit="deg", period=360.0)
    other = Factor("weather", Kind.NOMINAL, ("sun", "rain"))
    hue, shape = Dots.factors[1], Dots.factors[0]
    table = FactorTable(
        [other, azimuth, hue, shape],
        {"weather": [0, -1], "azimuth": np.array([12.25, 300.5], np.float32), "hue": [1, 0], "shape": [2, 1]},
    )
    dataset = dots(factors=table)
    assert dataset.values(0) == {"weather": "sun", "azimuth": 12.25, "hue": 40, "shape": "cube"}
    assert dataset.values(1)["weather"] is None  # of no interest to the recipe
    found = dataset.fetch([1, 0])
    np.testing.assert_allclose(found["depth"][:, 0, 0], [300.5, 12.25])
    assert found["image"][:, 0, 0].tolist() == [[1, 20, 150], [2, 40, 6]]


def test_sampled_rows_are_uniform_and_the_first_ones_of_more() -> None:
    table = sampled(Dots(), 20_000, ranges={"azimuth": (0, 360)}, seed=3)
    assert [factor.name for factor in table.factors] == ["shape", "hue", "azimuth"]
    assert table["azimuth"] == Factor("azimuth", Kind.CONTINUOUS, unit="deg", period=360.0)
    assert kstest(table.column("azimuth") / 360, "uniform").pvalue > 1e-3
    assert chisquare(table.joint_counts(["shape", "hue"]).ravel()).pvalue > 1e-3
    few = sampled(Dots(), 7, ranges={"azimuth": (0, 360)}, seed=3)
    assert few.fingerprint == table.select(np.arange(7)).fingerprint
    assert few.fingerprint != sampled(Dots(), 7, ranges={"azimuth": (0, 360)}, seed=4).fingerprint
    # a range of one factor changes no other one
    assert np.array_equal(sampled(Dots(), 7, seed=3).column("shape"), few.column("shape"))
    levels = sampled(Dots(), 20_000, seed=3)
    assert chisquare(levels.counts("azimuth")).pvalue > 1e-3
    # independent of each other: no pair of factors shares its bits
    assert abs(np.corrcoef(table.column("azimuth"), table.column("hue"))[0, 1]) < 0.03


def test_ranges_are_half_open_in_float32() -> None:
    low, high = 1.0, float(np.nextafter(np.float32(1), np.float32(2)))
    table = sampled(Dots(), 1000, ranges={"azimuth": (low, high)})
    assert set(table.column("azimuth").tolist()) == {1.0}
    far = sampled(Dots(), 1000, ranges={"azimuth": (-1e30, 1e30)})
    assert np.isfinite(far.column("azimuth")).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": 0}, "number of rows"),
        ({"rows": True}, "number of rows"),
        ({"rows": 5, "ranges": {"azimut": (0, 1)}}, "ranges contains 'azimut', .*did you mean 'azimuth'"),
        ({"rows": 5, "ranges": {"azimuth": (1, 1)}}, "low < high"),
        ({"rows": 5, "ranges": {"azimuth": (0, math.nan)}}, "low < high"),
        ({"rows": 5, "ranges": {"azimuth": (0, 1e39)}}, "low < high"),
        ({"rows": 5, "ranges": {"azimuth": 7}}, "low < high"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_sampled_refuses(options: dict[str, Any], said: str) -> None:
    with pytest.raises(FactorError, match=said):
        sampled(Dots(), **options)


@dataclass(frozen=True)
class Free(Dots):
    """A recipe with a continuous factor."""

    factors = (*Dots.factors[:2], Factor("azimuth", Kind.CONTINUOUS, unit="deg", period=360.0))


def test_a_recipe_with_a_continuous_factor_needs_rows() -> None:
    with pytest.raises(
        FactorError, match="'dots' has the continuous factor 'azimuth', so the recipe has no grid; pass factors"
    ):
        RenderedDataset(Free(), renderer=Crayon())
    with pytest.raises(FactorError, match="pass its range"):
        sampled(Free(), 5)
    assert len(RenderedDataset(Free(), sampled(Free(), 5, ranges={"azimuth": (0, 90)}), Crayon())) == 5


@pytest.mark.parametrize(
    ("recipe", "renderer", "said"),
    [
        ("room", "auto", "recipe must be a recipe, .*, not 'room'"),
        (Dots, "auto", "not <class"),
        (Dots(), None, "renderer must be a name, for example 'embree', or an object with load and render, not None"),
        (Dots(), Crayon, "renderer must be a name"),
    ],
)
def test_what_is_no_recipe_or_renderer_is_refused(recipe: Any, renderer: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        RenderedDataset(recipe, renderer=renderer)


def test_tables_that_do_not_fit_are_refused() -> None:
    with pytest.raises(FactorError, match="must be a FactorTable, not dict"):
        dots(factors={"shape": ["cone"]})
    with pytest.raises(FactorError, match="requires the factor 'hue'"):
        dots(factors=FactorTable([Dots.factors[0], Dots.factors[2]]))
    with pytest.raises(DataError, match="no row"):
        dots(factors=FactorTable(Dots.factors).select([]))
    table = FactorTable(Dots.factors).select([3, 4, 5])
    holes = FactorTable(table.factors, {**{name: table.codes(name) for name in table.names}, "hue": [0, -1, 1]})
    with pytest.raises(DataError, match="rendered dots: row 1 has no value for 'hue'"):
        dots(factors=holes).fetch([0, 1])


# -- what can go wrong -------------------------------------------------------------------------------------------------


def test_refuses_what_is_not_there() -> None:
    dataset = dots()
    for rows in (ROWS, [-1], [[0, 1], [2, 10**9]]):
        with pytest.raises(RowError):
            dataset.fetch(rows)
    with pytest.raises(DataError, match=r"rendered dots has no modality 'images'; did you mean 'image'"):
        dataset.fetch([0], ["images"])
    with pytest.raises(DataError, match="unknown renderer 'crayons'"):
        dots(renderer="crayons").fetch([0])


@dataclass(frozen=True)
class Odd(Dots):
    """Fails in one of several ways for cubes."""

    how: str = ""

    def scene(self, values: Any) -> Scene:
        if values["shape"] == "cube" and self.how == "scene":
            raise SetsupError("the cube is lost")
        if values["shape"] == "cube" and self.how == "background":
            return replace(super().scene(values), background=None)
        return super().scene(values)

    def camera(self, values: Any, scene: Scene) -> Camera:
        if values["shape"] == "cube" and self.how == "bug":
            return 1 / 0  # type: ignore[return-value]
        camera = super().camera(values, scene)
        return camera.resized(5, 5) if values["shape"] == "cube" and self.how == "size" else camera


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("scene", "^rendered dots, row 96: the cube is lost$"),
        ("size", "row 100: the camera has 5 × 5 pixels, but the recipe has the size 4 × 6"),
        ("background", r"row 100: its image has the shape \(4, 6, 4\), but the first row has \(4, 6, 3\)"),
    ],
)
def test_says_which_row_cannot_be_drawn(how: str, said: str) -> None:
    dataset = RenderedDataset(Odd(how=how), renderer=Crayon())
    same(dataset.fetch(5), 5)
    with pytest.raises(DataError, match=said):
        dataset.fetch([5, 96] if how == "scene" else [5, 100])
    same(dataset.fetch(6), 6)  # and goes on


def test_other_errors_pass_with_a_note() -> None:
    with pytest.raises(ZeroDivisionError) as error:
        RenderedDataset(Odd(how="bug"), renderer=Crayon()).fetch([100])
    assert error.value.__notes__ == ["while row 100 of rendered dots was rendered"]


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_scenes_that_were_drawn_last_stay_loaded(named: list[Crayon]) -> None:
    dataset = dots(renderer="crayon")
    assert not named  # until something is drawn
    for _ in range(5):
        dataset.fetch([0, 25, 50, 75])  # four scenes
    assert [renderer.counts for renderer in named] == [(1, 5)] * 4
    dataset.fetch([100, 125, 101])  # two others take the place of those that were drawn longest ago
    assert len(named) == 4
    before = sum(renderer.counts[0] for renderer in named)
    assert before == 6
    dataset.fetch([0, 25, 50, 75, 100, 125])
    assert len(named) == 4
    assert sum(renderer.counts[0] for renderer in named) == before + 2  # what is loaded is drawn first


def test_few_scenes_are_built_and_kept() -> None:
    built: list[Any] = []

    @dataclass(frozen=True)
    class Counted(Dots):
        def scene(self, values: Any) -> Scene:
            built.append(values["shape"])
            return super().scene(values)

    dataset = RenderedDataset(Counted(), renderer=Crayon())
    dataset.fetch(np.arange(ROWS))
    dataset.fetch(np.arange(ROWS))
    [dataset.camera(row) for row in (0, 30, 60)]
    assert len(built) == 6


def test_renderers_are_named_and_found_when_something_is_drawn(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "setsup")
    dataset = dots(renderer="auto")
    assert not caplog.messages
    name = dataset.renderer_name
    assert name != "auto"
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"dots is rendered by {name}: ")
    assert dataset.fetch([0])["image"].shape == (1, 4, 6, 3)
    assert len(caplog.messages) == 1


class Tinted(Crayon):
    def __init__(self, tint: int = 0) -> None:
        super().__init__()
        self.tint = tint


def test_options_of_a_renderer_belong_to_its_name() -> None:
    assert dots(renderer=Tinted()).renderer_name == "crayon"
    assert dots(renderer=Tinted(7)).renderer_name == "crayon tint=7"


# -- threads and processes ---------------------------------------------------------------------------------------------


def test_threads_get_the_same_bytes(named: list[Crayon]) -> None:
    dataset = dots(renderer="crayon")
    rows = np.random.default_rng(0).integers(0, ROWS, (24, 10))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(dataset.fetch, rows))
    for batch, arrays in zip(rows.tolist(), found, strict=True):
        for place, row in enumerate(batch):
            same({name: array[place] for name, array in arrays.items()}, row)


def test_a_renderer_that_is_given_is_never_used_by_two_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though they all are the first in their process to draw."""
    dataset = pickle.loads(pickle.dumps(dots(renderer=Crayon.slow(0.01))))

    def lock() -> Any:
        time.sleep(0.02)  # other threads find that there is none yet
        return threading.RLock()

    monkeypatch.setattr(renderer_pool, "RLock", lock)
    rows = [0, 50, 100, 30]  # of four scenes
    with ThreadPoolExecutor(4) as pool:
        for row, arrays in zip(rows, pool.map(dataset.fetch, rows), strict=True):
            same(arrays, row)


def test_a_pickle_holds_the_name_of_the_renderer_alone(named: list[Crayon]) -> None:
    dataset = dots(renderer="crayon")
    dataset.fetch(np.arange(ROWS))
    assert len(pickle.dumps(dataset)) < 2500
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy.factors.fingerprint == dataset.factors.fingerprint
    same(copy.fetch(9), 9)
    assert len(named) == 5


@pytest.mark.long("worker processes")
def test_a_fork_is_not_held_by_a_lock_of_its_parent() -> None:
    """In a process of its own: a thread draws slowly while the process forks."""
    script = (
        "import os, threading, time\n"
        "import numpy as np\n"
        "from tests.rendered_scenes import *\n"
        "from setsup.rendered.dataset import RenderedDataset\n"
        "dataset = RenderedDataset(Dots(), renderer=Crayon.slow(0.05))\n"
        "threading.Thread(target=dataset.fetch, args=(np.arange(20),)).start()\n"
        "time.sleep(0.1)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    same = np.array_equal(dataset.fetch(7)['depth'], expected(7)['depth'])\n"
        "    os._exit(0 if same else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=_checkout())


def _checkout() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# -- beside the rest of the library ------------------------------------------------------------------------------------

SAMPLERS: dict[str, Callable[[FactorTable], Any]] = {
    "sets": lambda table: setsup.SetSampler(table, inactive=["shape"], size=4, sets=2),
    "domains": lambda table: setsup.DomainSampler(table, ["shape"], size=4, sets=2),
    "orbits": lambda table: setsup.OrbitSampler(table, ["shape", "hue"], sets=2),
    "triplets": lambda table: setsup.TripletSampler(table, ["shape"], triplets=4),
    "epochs": lambda table: setsup.EpochSampler(table, size=16, epochs=1),
}


@pytest.mark.long("renderings")
@pytest.mark.parametrize(("kind", "workers"), [*((kind, 0) for kind in SAMPLERS), ("sets", "thread"), ("sets", 2)])
def test_loaders_of_every_sampler(kind: str, workers: Any) -> None:
    dataset = dots()
    sampler = SAMPLERS[kind](dataset.factors)
    loader = setsup.loader(dataset, sampler, workers=workers, to="numpy", modalities=["image", "depth"])
    for step, batch in zip(range(3), islice(loader, 3), strict=True):
        rows = sampler[step].indices
        for place in np.ndindex(rows.shape):
            same({name: batch[name][place] for name in ("image", "depth")}, int(rows[place]))


def test_a_loader_in_torch() -> None:
    torch = pytest.importorskip("torch")
    dataset = dots()
    batch = next(iter(setsup.loader(dataset, SAMPLERS["sets"](dataset.factors), workers=0)))
    assert batch["image"].shape == (2, 4, 3, 4, 6)
    assert batch["depth"].dtype == torch.float32


def test_a_tolerance_on_a_continuous_factor() -> None:
    dataset = dots(factors=sampled(Dots(), 400, ranges={"azimuth": (0, 360)}))
    sets = setsup.SetSampler(
        dataset.factors, ["azimuth"], tolerance={"azimuth": 10.0}, size=3, sets=2, on_small_group="drop"
    )
    draw = sets[5]
    depth = dataset.fetch(draw.indices, ["depth"])["depth"][..., 0, 0]
    away = np.abs(depth - draw.inactive["azimuth"][:, None])
    assert np.minimum(away, 360 - away).max() <= 10.01  # degrees, as drawn


def test_selections_and_concatenations() -> None:
    dataset = dots()
    cubes, cones = dataset.where("shape == 'cube'"), dataset.where("shape == 'cone'").select([5, 2])
    assert cubes.cpu_bound
    same(cubes.fetch(3), 4 * 24 + 3)
    same(cones.fetch(1), 2)
    joined = concat(cubes, cones)
    found = joined.fetch([47, 48, 0])
    for place, row in enumerate([143, 5, 96]):
        same({name: array[place] for name, array in found.items()}, row)
    assert joined.factors.values("part").tolist()[-2:] == ["b", "b"]


def test_a_contact_sheet(tmp_path: Any) -> None:
    from setsup.reports import contact_sheet

    dataset = RenderedDataset(Dots(background=None), renderer=Crayon())
    sheet = contact_sheet([dataset.fetch([row, row + 1])["image"] for row in (0, 50)], ["a", "b"])
    assert sheet.width > 100


# -- with a renderer that draws ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shapes() -> RenderedDataset:
    pytest.importorskip("embreex")
    from setsup.scenes.recipes import Shapes3D

    return RenderedDataset(Shapes3D(size=(32, 32)), renderer="embree")


def test_the_bytes_are_those_of_the_renderer(shapes: RenderedDataset) -> None:
    """Rows in any company are what a fresh renderer draws of a fresh scene."""
    from setsup.scenes import renderer
    from setsup.scenes.recipes import Shapes3D

    rows = np.random.default_rng(0).integers(0, 480_000, 12)
    rows[6:] = rows[:6] // 15 * 15 + 3  # the same scenes, from another side
    found = shapes.fetch(rows)
    recipe = Shapes3D(size=(32, 32))
    for place, row in enumerate(rows.tolist()):
        fresh, values = renderer("embree"), shapes.factors.row(row)
        scene = recipe.scene(values)
        fresh.load(scene)
        frame = fresh.render(recipe.camera(values, scene))
        for name, array in found.items():
            part = {"image": "rgb", "normals": "normal", "instances": "instance", "triangles": "triangle"}
            np.testing.assert_array_equal(array[place], getattr(frame, part.get(name, name)))


@pytest.mark.long("worker processes")
def test_other_processes_draw_the_same(shapes: RenderedDataset) -> None:
    """A fresh process that was sent the dataset, and a fork of it that has drawn already."""
    wanted = shapes.fetch([3, 70_000, 479_999])
    script = (
        "import hashlib, os, pickle, sys\n"
        "shapes = pickle.load(sys.stdin.buffer)\n"
        "shapes.fetch([0, 15])\n"
        "child = os.fork()\n"
        "found = shapes.fetch([3, 70_000, 479_999])\n"
        "digest = hashlib.sha256(b''.join(array.tobytes() for array in found.values())).hexdigest()\n"
        "os.write(1, (digest + '\\n').encode())\n"
        "child and os.waitpid(child, 0)\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(shapes), capture_output=True, check=True)
    import hashlib

    digest = hashlib.sha256(b"".join(array.tobytes() for array in wanted.values())).hexdigest()
    assert answer.stdout.decode().split() == [digest, digest]


@pytest.mark.long("worker processes")
def test_worker_processes_of_a_loader_draw_the_same(shapes: RenderedDataset) -> None:
    sets = setsup.SetSampler(shapes.factors, inactive=["wall_hue"], size=3, sets=2)
    for step, batch in zip(range(3), setsup.loader(shapes, sets, workers=2, to="numpy"), strict=False):
        for name, array in shapes.fetch(sets[step].indices).items():
            np.testing.assert_array_equal(batch[name], array)


@pytest.mark.long("worker processes")
def test_threads_that_draw_alternately(shapes: RenderedDataset) -> None:
    rows = np.random.default_rng(1).integers(0, 480_000, (6, 4))
    fresh, found = pickle.loads(pickle.dumps(shapes)), [None] * 6

    def draw(number: int) -> None:
        found[number] = fresh.fetch(rows[number])["image"]

    threads = [threading.Thread(target=draw, args=(number,)) for number in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for number, images in enumerate(found):
        np.testing.assert_array_equal(images, shapes.fetch(rows[number])["image"])


def test_names_of_levels() -> None:
    assert {SHAPES[code] for code in dots().fetch(np.arange(ROWS))["instances"][:, 0, 0].tolist()} == set(SHAPES)
    assert len(AZIMUTHS) == 24
