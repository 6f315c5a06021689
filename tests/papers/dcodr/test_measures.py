"""Probes, landmarks and retrieval of DCoDR against direct calls, and retrieval against a loop over all pairs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import LightningModule  # noqa: E402

from setsup import evaluation  # noqa: E402
from setsup.datasets import Modality  # noqa: E402
from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments.evaluations.classes import number_classes, rows_of, split_attribute  # noqa: E402
from setsup.experiments.evaluations.invariance import study_invariance  # noqa: E402
from setsup.experiments.result_cache import PartStore  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402
from setsup_papers.dcodr.measures import (  # noqa: E402
    InvarianceProbes,
    LandmarkProbe,
    Retrieval,
    attainable,
)
from tests.experiments.numbered import Held, Numbered, trained  # noqa: E402


class Tells(LightningModule):
    """A code of eight numbers of noise, in which the shape, and hardly the size, stand out."""

    noise = np.random.default_rng(2).normal(size=(4_000, 8)).astype(np.float32)

    def embed(self, batch: Any) -> torch.Tensor:
        numbers = batch["image"].long().flatten(2) @ torch.tensor([256, 1])
        found = torch.from_numpy(self.noise)[numbers % 4_000].clone()
        shape = batch["factors"]["shape"].long()
        found[..., :4] += 5 * torch.nn.functional.one_hot(shape, 4)
        found[..., 4] += batch["factors"]["size"].float()
        return found


class Poses(Numbered):
    """Numbered images of azimuths, elevations and objects, each combination of which may be there several times."""

    def __init__(self, rows: int = 700) -> None:
        super().__init__(rows)
        dice = np.random.default_rng(4)
        factors = [
            Factor("azimuth", Kind.CYCLIC, tuple(range(0, 360, 30)), unit="deg", period=360.0),
            Factor("elevation", Kind.ORDINAL, (0, 1, 2)),
            Factor("shape", Kind.NOMINAL, tuple("abcd")),
            Factor("size", Kind.ORDINAL, (0, 1)),
            Factor("split", Kind.NOMINAL, ("train", "test"), role="split"),
        ]
        columns = {one.name: dice.integers(0, len(one), rows) for one in factors}
        columns["elevation"][::29] = -1
        self.factors = FactorTable(factors, columns)


class Landmarks(Numbered):
    """Numbered images with points that follow from their shapes and sizes, which some lack."""

    def __init__(self) -> None:
        super().__init__(1_200)
        self.modalities = {**self.modalities, "points": Modality((3, 2), "float32")}

    def fetch(self, indices: Any, modalities: Any = None) -> dict[str, Any]:
        names = list(self.modalities) if modalities is None else list(modalities)
        found = super().fetch(indices, [name for name in names if name == "image"])
        if "points" in names:
            rows = np.asarray(indices)
            base = np.array([[10.0, 4], [3, 30], [7, 8]])
            points = base * (1 + self.factors.codes("shape", rows))[..., None, None] + 0.7
            points[rows % 50 == 0] = np.nan
            found["points"] = points.astype(np.float32)
        return found


def of(dataset: Numbered, **options: Any) -> Any:
    return trained(Tells(), dataset, **options)


FEW: Any = {"epochs": 6, "width": 16, "layers": 3}


def test_probes_are_direct_calls_on_all_rows(tmp_path):
    whole = Numbered(1_600)
    some = of(whole)
    found = InvarianceProbes(domain=("colour",), attributes=("shape", "shape+size"), split="test", **FEW).measure(some)
    table = whole.factors
    parts = [np.flatnonzero(table.codes("split") == part) for part in (0, 1)]
    codes = np.stack(
        [table.codes("colour"), table.codes("shape"), 3 * table.codes("shape").astype(int) + table.codes("size")], 1
    ).astype(int)
    rows = rows_of(some, None, "test")
    assert sorted(rows.fit.rows.tolist()) == parts[0].tolist()
    test = some.open(split="test")
    assert len(rows.test.rows) == len(test) == 800
    order = parts[1][rows.test.rows]
    fit = some.embed(rows=rows.fit.rows)
    direct = evaluation.deep_probes(fit, codes[rows.fit.rows], some.embed(rows=order), codes[order], **FEW)
    values = found.values
    assert [values[name] for name in ("domain", "shape", "shape+size")] == direct.accuracy.tolist()
    assert values["informativeness"] == direct.accuracy[1:].mean()
    assert values["ideal"] == np.bincount(codes[parts[1], 0]).max() / 800 == direct.majority[0]
    assert values["majority: shape"] == direct.majority[1]
    assert values["shape"] > 0.8
    assert values["domain"] < 0.6


def test_probes_of_another_dataset_and_of_a_part_of_the_training():
    one, other = Numbered(900), Numbered(500, seed=3, name="other")
    some = of(one, datasets={"test": Held(other)})
    probes = InvarianceProbes(domain=("colour",), attributes=("shape",), dataset="test", **FEW)
    assert probes.measure(some).values["shape"] > 0.85
    rows = rows_of(some, "test", None)
    assert (len(rows.fit.rows), len(rows.test.rows)) == (900, 500)
    rows = rows_of(some, None, None)
    assert (len(rows.fit.rows), len(rows.test.rows)) == (810, 90)
    assert not set(rows.fit.rows.tolist()) & set(rows.test.rows.tolist())
    few = rows_of(some, None, None, samples=100)
    assert len(few.fit.rows) + len(few.test.rows) == 100
    again = rows_of(some, "test", None, resplit=["shape"])
    assert (len(again.fit.rows), len(again.test.rows)) == (350, 150)
    shapes = other.factors.codes("shape")
    for level in range(4):
        assert abs((shapes[again.test.rows] == level).sum() - 0.3 * (shapes == level).sum()) <= 1
    own = rows_of(some, None, None, resplit=["shape"])
    assert (len(own.fit.rows), len(own.test.rows)) == (630, 270)
    shapes = one.factors.codes("shape")
    for level in range(4):
        assert abs((shapes[own.test.rows] == level).sum() - 0.3 * (shapes == level).sum()) <= 1


def test_factors_that_were_probed_are_not_probed_again(tmp_path, monkeypatch):
    some = of(Numbered(700), store=PartStore(tmp_path, {}))
    probes = InvarianceProbes(domain=("colour",), attributes=("shape",), **FEW)
    first = probes.measure(some).values
    asked: list[int] = []
    real = evaluation.deep_probes
    monkeypatch.setattr(evaluation, "deep_probes", lambda *a, **k: (asked.append(a[1].shape[1]), real(*a, **k))[1])
    assert probes.measure(some).values == first
    more = InvarianceProbes(domain=("colour",), attributes=("shape", "size"), **FEW).measure(some).values
    assert asked == [1]  # the size alone
    assert {name: more[name] for name in ("domain", "shape", "ideal")} == {
        name: first[name] for name in ("domain", "shape", "ideal")
    }


def test_landmarks_are_direct_calls_on_whole_pixels():
    data = Landmarks()
    some = of(data, datasets={"test": Held(data)})
    found = LandmarkProbe(landmarks="points", identity=("shape",), dataset="test", **FEW).measure(some).values
    rows = rows_of(some, "test", None, resplit=("shape",))
    parts = []
    for sample in (rows.fit, rows.test):
        kept = sample.rows[sample.rows % 50 != 0]
        points = np.floor(data.fetch(kept, ["points"])["points"].reshape(len(kept), 6).astype(np.float64))
        parts += [some.embed(data, kept), points]
    assert found["L1"] == evaluation.landmark_error(*parts, **FEW)
    assert found["mean landmark"] == pytest.approx(np.abs(parts[3] - parts[1].mean(axis=0)).mean())
    with pytest.raises(SetsupError, match="has no 'landmarks68'"):
        LandmarkProbe(identity=("shape",), dataset="test").measure(some)


def by_loops(data: Any, fit: Any, test: Any, embedded: Any, tolerance: int) -> dict[str, float]:
    """Retrieval by a loop over queries and all of the gallery."""
    codes = {name: np.asarray(data.factors.codes(name), int) for name in ("azimuth", "elevation", "shape")}
    gallery = [*fit, *test]
    points = embedded / np.linalg.norm(embedded, axis=1, keepdims=True)
    right: dict[str, list[bool]] = {"azimuth": [], "elevation+shape": [], "all": [], "attainable": []}

    def alike(one: int, other: int) -> tuple[bool, bool, bool]:
        apart = abs(codes["azimuth"][one] - codes["azimuth"][other])
        same = [codes[name][one] == codes[name][other] >= 0 for name in ("elevation", "shape")]
        return min(apart, 12 - apart) <= tolerance, *same

    for query in test:
        if codes["elevation"][query] < 0:
            continue
        others = [row for row in gallery if row != query]
        nearest = others[int(np.argmin([((points[query] - points[row]) ** 2).sum() for row in others]))]
        azimuth, elevation, shape = alike(query, nearest)
        right["azimuth"].append(azimuth)
        right["elevation+shape"].append(elevation and shape)
        right["all"].append(azimuth and elevation and shape)
        right["attainable"].append(any(all(alike(query, row)) for row in others))
    return {name: float(np.mean(values)) for name, values in right.items()}


@pytest.mark.parametrize("tolerance", [0, 2])
def test_retrieval_is_a_loop_over_all_pairs(tolerance):
    data = Poses(160)
    some = of(data)
    asked = Retrieval(
        attributes=("azimuth", "elevation+shape"), tolerances=(("azimuth", tolerance),) * bool(tolerance), split="test"
    )
    found = asked.measure(some)
    test = np.flatnonzero(data.factors.codes("split") == 1)
    fit = np.flatnonzero(data.factors.codes("split") == 0)
    expected = by_loops(data, fit, test, np.asarray(some.embed(), np.float64), tolerance)
    assert found.values == pytest.approx(expected)
    assert found.values["all"] <= found.values["attainable"] <= 1
    assert found.pictures["retrieved"].mode == "RGB"


def test_a_whole_gallery_has_each_image_once():
    data = Poses(160)
    some = of(data, datasets={"whole": Held(data)})
    options: Any = {"attributes": ("azimuth", "shape"), "split": "test"}
    part = Retrieval(**options).measure(some).values
    assert Retrieval(gallery="whole", **options).measure(some).values == part  # its training rows and the test
    few = Retrieval(samples=20, **options).measure(some).values
    assert set(few) == set(part)


def test_attainable_with_several_tolerances_is_a_loop():
    dice = np.random.default_rng(0)
    codes = np.stack([dice.integers(0, 9, 80), dice.integers(0, 7, 80), dice.integers(0, 3, 80)], axis=1)
    queries, own = codes[:50], np.arange(50)

    def apart(one: int, other: int, period: int | None) -> int:
        far = abs(one - other)
        return far if period is None else min(far, period - far)

    expected = np.mean(
        [
            any(
                apart(query[0], row[0], 9) <= 1 and apart(query[1], row[1], None) <= 2 and query[2] == row[2]
                for place, row in enumerate(codes)
                if place != at
            )
            for at, query in enumerate(queries)
        ]
    )
    assert attainable(queries, codes, own, {0: 1, 1: 2}, {0: 9}) == pytest.approx(expected)
    assert attainable(queries, codes, own, {0: 4}, {0: 9}) == attainable(queries, codes, own, {0: 40}, {0: 9})


def test_names_of_classes():
    table = Poses(50).factors
    rows = np.arange(50)
    assert split_attribute("elevation+azimuth") == ("elevation", "azimuth")
    found = number_classes(table, ("elevation", "azimuth"), rows)
    azimuth, elevation = (np.asarray(table.codes(name), int) for name in ("azimuth", "elevation"))
    np.testing.assert_array_equal(found, np.where(elevation < 0, -1, 3 * azimuth + elevation))


def test_classes_beyond_64_bits_are_refused_and_not_mixed_up():
    factors = [Factor(f"f{at}", Kind.NOMINAL, tuple(range(2_000))) for at in range(6)]
    table = FactorTable(factors, {one.name: np.arange(2_000) for one in factors})
    names, rows = [one.name for one in factors], np.arange(2_000)
    np.testing.assert_array_equal(np.unique(number_classes(table, names[:5], rows)).size, 2_000)
    with pytest.raises(SetsupError, match=r"f0, .* f5 have more than 2⁶² combinations"):
        number_classes(table, names, rows)


def test_a_circle_of_one_level_has_a_tolerance():
    data = Poses(60)
    every = [data.factors[name] for name in data.factors.names]
    factors = [Factor("azimuth", Kind.CYCLIC, (0,), period=360.0), *every[1:]]
    columns = {one.name: data.factors.codes(one.name) for one in every} | {"azimuth": np.zeros(60, int)}
    data.factors = FactorTable(factors, columns)
    asked = Retrieval(attributes=("azimuth",), tolerances=(("azimuth", 2),), split="test")
    assert asked.measure(of(data)).values == {"azimuth": 1.0, "all": 1.0, "attainable": 1.0}


def test_refusals():
    some = of(Poses(60))
    with pytest.raises(SetsupError, match="domain must contain at least one factor"):
        InvarianceProbes(domain=(), attributes=())
    with pytest.raises(SetsupError, match="resplit requires a dataset or a split"):
        InvarianceProbes(domain=("shape",), attributes=(), resplit=True)
    with pytest.raises(SetsupError, match="attributes must contain at least one"):
        Retrieval(attributes=())
    with pytest.raises(SetsupError, match="the factor 'ideal' has the same name as a result"):
        InvarianceProbes(domain=("shape",), attributes=("size", "ideal"))
    with pytest.raises(SetsupError, match="the factor 'all' has the same name as a result"):
        Retrieval(attributes=("all",))
    with pytest.raises(SetsupError, match="tolerances must assign 0 or more levels to one of azimuth"):
        Retrieval(attributes=("azimuth",), tolerances=(("shape", 1),))
    elsewhere = of(Poses(60), datasets={"test": Held(Numbered(60, name="other"))})
    with pytest.raises(DataError, match=r"the levels of .* differ between other"):
        InvarianceProbes(domain=("shape",), attributes=(), dataset="test").measure(elsewhere)
    with pytest.raises(SetsupError, match="training used all rows of numbered"):
        Retrieval(attributes=("shape",), split="test").measure(of(Poses(60).where("split == 'test'")))
    assert some.folder == Path("nowhere")


# How well a domain can be read


@pytest.mark.long("trainings")
def test_what_can_be_read_stands_beside_permuted_labels():
    some = of(Numbered(1_500))
    found = study_invariance(some, ["shape"], samples=1_200)
    assert found.names == ("domain", "colour", "size")
    assert found.accuracy["domain"] > 0.9
    assert 0.25 <= found.ideal["domain"] < 0.35
    assert abs(found.permuted["domain"] - 0.25) < 0.13
    assert abs(found.accuracy["colour"] - found.permuted["colour"]) < 0.13  # it is not there
    assert found.accuracy["size"] > found.permuted["size"] + 0.05
    assert found.ideal["colour"] == found.ideal["size"] == 1
    asked = study_invariance(some, ["colour"], ["shape+size"], samples=1_200)
    assert asked.names == ("domain", "shape+size")
    assert asked.accuracy["shape+size"] > asked.permuted["shape+size"] + 0.2


@pytest.mark.long("trainings")
def test_continuous_factors_and_those_left_out():
    pytest.importorskip("sklearn")
    data = Numbered(600)
    codes = {name: data.factors.codes(name) for name in data.factors.names}
    size = Tells.noise[:600, 5]
    angle = np.where(np.arange(600) % 7, size + 0.2 * np.random.default_rng(0).normal(size=600), np.nan)
    many = Factor("many", Kind.NOMINAL, tuple(range(300)))
    alone = Factor("alone", Kind.NOMINAL, ("a", "b"))
    columns = {"angle": angle.astype(np.float32), "many": np.arange(600) // 2, "alone": np.zeros(600, int)}
    data.factors = FactorTable([*data.factors.factors, Factor("angle", Kind.CONTINUOUS), many, alone], codes | columns)
    found = study_invariance(of(data), ["shape"])
    assert found.accuracy["angle"] > 0.8
    assert found.permuted["angle"] < 0.1
    assert found.left_out == {
        "many": "it has 300 levels in 600 rows, fewer than 5 for each",
        "alone": "it has 1 known level among the rows",
    }
    with pytest.raises(SetsupError, match=r"the domain \(alone\) cannot be predicted: it has 1 known level"):
        study_invariance(of(data), ["alone"])
    with pytest.raises(SetsupError, match="39 rows, but fitting and testing probes requires at least 40"):
        study_invariance(of(Numbered(39)), ["shape"])


def test_a_domain_that_is_never_fitted_is_not_called_invariant():
    data = Numbered(100)
    codes = {name: data.factors.codes(name) for name in data.factors.names}
    single = Factor("patient", Kind.NOMINAL, tuple(range(100)))
    data.factors = FactorTable([*data.factors.factors, single], codes | {"patient": np.arange(100)})
    with pytest.raises(
        SetsupError, match=r"domain \(patient\) cannot be predicted: 20 of 20 test rows have a level that"
    ):
        study_invariance(of(data), ["patient"])
