"""Parts of evaluations are computed once for the same weights and settings, whatever happens in between."""

import json
import os
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from PIL import Image  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Measured, Run, RunConfig, TrainedRun, evaluate, train  # noqa: E402
from setsup.experiments.evaluations import FactorInformation, NoiseSweep  # noqa: E402
from setsup.experiments.result_cache import PartStore, digest_weights  # noqa: E402
from tests.experiments.children import MEASURED, part_name  # noqa: E402
from tests.experiments.numbered import Numbered, OneHot, trained  # noqa: E402
from tests.experiments.small import PLAIN  # noqa: E402
from tests.experiments.test_resume import KILLED, Children  # noqa: E402

HERE = RunConfig(workers=0)
COUNTED: list[str] = []
"""Parts that were computed."""


@dataclass(frozen=True)
class Counted:
    """Two parts, a number that is none, a curve and an image."""

    times: float = 1.0
    red: int = 9

    def measure(self, trained: TrainedRun) -> Measured:
        def total() -> float:
            COUNTED.append("total")
            return self.times * sum(float(w.detach().abs().sum()) for w in trained.method.parameters())

        def squares() -> Any:
            COUNTED.append("squares")
            return np.arange(3) ** 2

        image = Image.new("RGB", (2, 1), (self.red, 0, 0))
        sizes = trained.part("squares", {}, squares)
        total_found = trained.part("total", {"times": self.times}, total)
        return Measured({"total": total_found, "none": float("nan")}, {"line": (sizes, sizes)}, {"red": image})


COUNTING = replace(PLAIN, steps=2, evaluations={"counted": Counted()})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(COUNTING, tmp_path_factory.mktemp("run"), config=HERE)


@pytest.fixture
def fresh(run: Run, tmp_path: Path) -> Run:
    """The run before anything was measured."""
    COUNTED.clear()
    shutil.copytree(run.folder, tmp_path / "run")
    return replace(run, folder=tmp_path / "run")


def red(path: Path) -> int:
    with Image.open(path) as picture:
        return int(np.asarray(picture)[0, 0, 0])


def stored(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "evaluation").rglob("*.json")}


def test_what_was_measured_before_is_not_measured_again(fresh: Run) -> None:
    said: list[tuple[str, str]] = []
    how: dict[str, Any] = {
        "device": "cpu",
        "on_start": lambda name, _: said.append(("measured", name)),
        "on_stored": lambda name, _: said.append(("stored", name)),
    }
    (first,) = evaluate(fresh, **how).values()
    before = fresh.results()
    (second,) = evaluate(fresh, **how).values()
    assert (said, COUNTED) == ([("measured", "counted"), ("stored", "counted")], ["squares", "total"])
    assert fresh.results() == before
    np.testing.assert_equal(dict(second.values), dict(first.values))
    assert second.curves == first.curves == {"line": ([0, 1, 4], [0, 1, 4])}
    assert np.asarray(second.pictures["red"]).tolist() == [[[9, 0, 0], [9, 0, 0]]]


def test_a_changed_setting_repeats_what_depends_on_it(fresh: Run) -> None:
    evaluate(fresh, device="cpu")
    changed = replace(COUNTING, evaluations={"counted": Counted(times=2.0)})
    (found,) = evaluate(fresh, changed, device="cpu").values()
    assert COUNTED == ["squares", "total", "total"]
    evaluate(fresh, replace(COUNTING, evaluations={"counted": Counted(red=200)}), device="cpu")
    assert COUNTED == ["squares", "total", "total"], "no part depends on the colour"
    assert red(fresh.folder / "counted-red.png") == 200
    assert found.values["total"] == 2 * fresh.results()["counted"]["values"]["total"]


def test_again_measures_what_was_measured(fresh: Run) -> None:
    evaluate(fresh, device="cpu")
    files = stored(fresh.folder)
    evaluate(fresh, device="cpu", again=True)
    assert COUNTED == ["squares", "total"] * 2
    assert stored(fresh.folder) == files


def test_an_interrupted_second_measurement_does_not_return_the_first(fresh: Run, monkeypatch: Any) -> None:
    evaluate(fresh, device="cpu")
    with monkeypatch.context() as patched:
        patched.setattr(Counted, "measure", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            evaluate(fresh, device="cpu", again=True)
    assert list(fresh.results()) == ["counted"]
    evaluate(fresh, device="cpu")
    assert COUNTED == ["squares", "total"] * 2


def test_other_weights_are_measured(fresh: Run) -> None:
    evaluate(fresh, device="cpu")
    state = torch.load(fresh.folder / "last.ckpt", weights_only=True)
    state["state_dict"] = {name: 2 * weight for name, weight in state["state_dict"].items()}
    torch.save(state, fresh.folder / "last.ckpt")
    before = fresh.results()["counted"]["values"]["total"]
    (found,) = evaluate(fresh, device="cpu").values()
    assert COUNTED == ["squares", "total"] * 2
    assert found.values["total"] == pytest.approx(2 * before)


def test_an_image_or_an_entry_that_is_gone_is_made_from_its_parts(fresh: Run) -> None:
    evaluate(fresh, device="cpu")
    picture = fresh.folder / "counted-red.png"
    for spoil in (picture.unlink, lambda: picture.write_bytes(b"damaged"), (fresh.folder / "evaluation.json").unlink):
        spoil()
        evaluate(fresh, device="cpu")
        assert red(picture) == 9
    assert COUNTED == ["squares", "total"]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.99])
def test_a_damaged_part_is_measured_again(fresh: Run, share: float, caplog: pytest.LogCaptureFixture) -> None:
    (whole,) = evaluate(fresh, device="cpu").values()
    files = stored(fresh.folder)
    (path,) = (fresh.folder / "evaluation" / "counted").glob("total-*.json")
    os.truncate(path, int(share * path.stat().st_size))
    (fresh.folder / "evaluation.json").unlink()
    (found,) = evaluate(fresh, device="cpu").values()
    assert COUNTED == ["squares", "total", "total"]
    assert found.values["total"] == whole.values["total"]
    assert stored(fresh.folder) == files
    assert f"{path} is damaged; recomputing its results" in caplog.text


def test_any_other_byte_is_noticed(tmp_path: Path) -> None:
    store = PartStore(tmp_path, {"weights": "w"})
    store.parts("part", {"rows": [1, 2]}, ["a"], lambda _: {"a": 0.25})
    (path,) = tmp_path.iterdir()
    genuine, dice = path.read_bytes(), random.Random(0)
    for at in dice.sample(range(len(genuine)), 60):
        path.write_bytes(genuine[:at] + bytes([genuine[at] ^ 1 << dice.randrange(8)]) + genuine[at + 1 :])
        assert store.parts("part", {"rows": [1, 2]}, ["a"], lambda _: {"a": 0.25}) == {"a": 0.25}


def test_items_are_computed_once_and_merged(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def compute(items: Sequence[str]) -> Mapping[str, Any]:
        asked.append(list(items))
        if items == ["b"]:  # as if another process had measured c meanwhile
            store.parts("part", {}, ["c"], lambda _: {"c": "theirs"})
        return {item: item.upper() for item in items}

    store = PartStore(tmp_path, {"weights": "w"})
    assert store.parts("part", {}, ["a"], compute) == {"a": "A"}
    assert store.parts("part", {}, ["b", "a"], compute) == {"b": "B", "a": "A"}
    assert store.parts("part", {}, ["c", "d"], compute) == {"c": "theirs", "d": "D"}
    assert asked == [["a"], ["b"], ["d"]]
    assert PartStore(tmp_path, {"weights": "v"}).parts("part", {}, ["a"], compute) == {"a": "A"}
    assert asked == [["a"], ["b"], ["d"], ["a"]]
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"] * 2


def test_results_are_the_same_whether_they_were_kept_or_not(tmp_path: Path) -> None:
    value = {"x": np.float32(0.1), "y": np.array([[1, 2]]), "z": (float("nan"), 1e-300, None)}
    some = trained(OneHot(), Numbered(10))
    loose = some.part("part", {"rows": np.arange(3)}, lambda: value)
    some.store = PartStore(tmp_path, {})
    for _ in range(2):
        np.testing.assert_equal(some.part("part", {"rows": np.arange(3)}, lambda: value), loose)
    np.testing.assert_equal(loose, {"x": float(np.float32(0.1)), "y": [[1, 2]], "z": [float("nan"), 1e-300, None]})


def test_what_parts_cannot_be() -> None:
    some = trained(OneHot(), Numbered(10))
    for name in ("", "a/b", "..", "a b"):
        with pytest.raises(SetsupError, match="the name of a part may contain only letters, digits, - and _, not"):
            some.part(name, {}, lambda: 1)
    with pytest.raises(SetsupError, match="a part of an evaluation contains a set, which JSON cannot represent"):
        some.part("part", {}, lambda: {1})
    with pytest.raises(
        SetsupError, match="a part of an evaluation returned no result for 'b'; return a result for each"
    ):
        some.parts("part", {}, ["a", "b"], lambda items: {"a": 1})


def test_the_digest_of_weights_is_of_names_types_and_bytes() -> None:
    def method(weight: Any, name: str = "w") -> Any:
        from lightning.pytorch import LightningModule

        found = LightningModule()
        found.register_buffer(name, weight)
        return found

    base = torch.arange(6, dtype=torch.float32)
    others = [base.reshape(2, 3), base.int(), base + 1e-6, base.bfloat16(), base[:5], -base]
    found = [digest_weights(method(weight).state_dict()) for weight in (base, *others)] + [
        digest_weights(method(base, "v").state_dict())
    ]
    assert len(set(found)) == len(found)
    assert digest_weights(method(base.clone()).state_dict()) == found[0]
    assert digest_weights(method(torch.arange(12, dtype=torch.float32)[::2] / 2).state_dict()) == found[0]


def test_a_factor_or_a_scale_more_is_all_that_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = trained(OneHot(), Numbered(900), store=PartStore(tmp_path, {}))
    how: dict[str, Any] = {"samples": 400, "estimator": "neighbours"}
    two = FactorInformation(factors=("shape", "size"), **how).measure(some).values
    asked: list[int] = []
    from setsup import evaluation

    whole = evaluation.neighbour_information
    monkeypatch.setattr(evaluation, "neighbour_information", lambda *a, **k: asked.append(1) or whole(*a, **k))
    three = FactorInformation(factors=("size", "colour", "shape"), **how).measure(some).values
    assert (len(asked), list(three)) == (1, ["size", "colour", "shape"])
    assert {name: three[name] for name in two} == two
    sweep = NoiseSweep(factors=("shape",), **how, scales=2, low=0.5, high=1.0)
    sweep.measure(some)  # information at σ is known already
    assert len(asked) == 2
    replace(sweep, scales=3).measure(some)
    assert len(asked) == 3
    fetched = some.dataset.fetched
    replace(sweep, scales=3).measure(trained(OneHot(), some.dataset, store=PartStore(tmp_path, {})))
    assert some.dataset.fetched == fetched, "what is kept needs no embeddings"


def done(folder: Path) -> set[str]:
    """Items of parts that a folder keeps."""
    found = set()
    for path in (folder / "evaluation").rglob("[!.]*.json"):
        held = json.loads(path.read_text())
        found |= {part_name(held["part"], held["settings"], item) for item in held["results"]}
    return found


@pytest.mark.smoke
def test_an_evaluation_killed_at_random_moments_is_the_one_that_was_not(tmp_path: Path) -> None:
    run = train(MEASURED, tmp_path / "whole", config=HERE)
    shutil.copytree(run.folder, tmp_path / "run")
    folder, log, dice = tmp_path / "run", tmp_path / "log", random.Random()
    script, kills, ended = Children(), 0, 0
    try:
        assert script(MEASURED, tmp_path / "whole", log=str(tmp_path / "whole-log")) == 0
        while kills < 8 or not ended:
            before = done(folder)
            log.unlink(missing_ok=True)
            end = script(MEASURED, folder, log=str(log), seconds=dice.uniform(0.05, 1.0) * (1 + kills / 10))
            computed = log.read_text().splitlines() if log.exists() else []
            assert not before & set(computed), "a part that was done is not computed again"
            assert len(set(computed)) == len(computed)
            kills += end == KILLED
            if end == 0:
                ended += 1
                for name in ("evaluation.json", "evaluation"):
                    assert contents(folder / name) == contents(tmp_path / "whole" / name)
                shutil.rmtree(folder / "evaluation")
                (folder / "evaluation.json").unlink()
            else:
                assert end == KILLED
    finally:
        script.close()


def contents(path: Path) -> dict[str, bytes]:
    """Files and their bytes."""
    if path.is_file():
        return {path.name: path.read_bytes()}
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
