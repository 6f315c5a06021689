import numpy as np
import pytest

import setsup
from setsup.datasets import Dataset, Modality, fetch_request
from setsup.datasets.adapters.splits import open_split
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import ManifestSplit, load_manifest


class Rows(Dataset):
    name = "rows"
    modalities = {"row": Modality((), "int64")}  # noqa: RUF012

    def __init__(self, factors):
        self.factors = factors

    def fetch(self, indices, modalities=None):
        rows, names = fetch_request(self, indices, modalities)
        return {name: rows.copy() for name in names}


SUBJECTS = np.repeat(np.arange(10, dtype=np.uint8), 12)
PUBLISHED = (SUBJECTS >= 7).astype(np.uint8)
LISTED = np.where(SUBJECTS < 4, 0, np.where(SUBJECTS < 6, 1, 255)).astype(np.uint8)


@pytest.fixture
def faces():
    table = FactorTable(
        [
            Factor("subject", Kind.NOMINAL, tuple(range(10))),
            Factor("split", Kind.NOMINAL, ("train", "test"), role="split"),
            Factor("setting", Kind.NOMINAL, ("gallery", "probe"), role="split"),
        ],
        {"subject": SUBJECTS, "split": PUBLISHED, "setting": LISTED},
    )
    return Rows(table)


DECLARED = (
    ManifestSplit("train", disjoint=("subject",)),
    ManifestSplit("test", disjoint=("subject",)),
    ManifestSplit("few", where="subject < 3"),
    ManifestSplit("nine", parts=(("train", 0.75), ("test", 0.25)), stratify=("subject",), seed=2),
    ManifestSplit("whole", parts=(("train", 0.5), ("test", 0.2)), disjoint=("subject",), seed=2),
    ManifestSplit("setting", factor="setting", disjoint=("subject",)),
    ManifestSplit("some", where="subject < 4", parts=(("train", 0.75), ("test", 0.25)), stratify=("subject",), seed=2),
    ManifestSplit("leaky", parts=(("train", 0.5), ("test", 0.3)), leaks=("subject",), seed=1),
    ManifestSplit("last", test="subject >= 8"),
    ManifestSplit("most", test="subject >= 8", parts=(("train", 0.5), ("validation", 0.25)), stratify=("subject",)),
    ManifestSplit("none", test="subject > 20"),
)


def rows(dataset):
    return dataset.fetch(np.arange(len(dataset)))["row"]


def test_parts_of_a_subset_are_drawn_of_its_rows_only(faces):
    some = open_split(faces, "some", DECLARED)
    assert rows(some).tolist() == list(range(48))
    assert some.factors.counts("split").tolist() == [36, 12]
    assert (np.bincount(some.factors.codes("subject")[some.factors.codes("split") == 1]) == 3).all()
    part = open_split(faces, "some-test", DECLARED)
    assert rows(part).tolist() == np.flatnonzero(some.factors.codes("split") == 1).tolist()


def test_the_split_of_shapes3d_has_the_published_counts():
    sizes = {"floor_hue": 10, "wall_hue": 10, "object_hue": 10, "scale": 8, "shape": 4, "orientation": 15}
    for name in ("shapes3d", "shapes3d-procedural"):
        table = FactorTable([Factor(factor, Kind.ORDINAL, tuple(range(size))) for factor, size in sizes.items()])
        split = open_split(Rows(table), "dcodr", load_manifest(name).splits)
        assert split.factors.counts("split").tolist() == [50_000, 48_000]
        shape, part = split.factors.codes("shape"), split.factors.codes("split")
        assert np.bincount(shape[part == 1]).tolist() == [12_000] * 4


def test_the_split_of_smallnorb_is_of_left_images_by_toy():
    sizes = {"elevation": 9, "azimuth": 18, "lighting": 6}
    factors = [
        Factor("category", Kind.NOMINAL, tuple("abcde")),
        Factor("instance", Kind.NOMINAL, tuple(range(10)), within="category"),
        *(Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in sizes.items()),
        Factor("camera", Kind.NOMINAL, ("left", "right")),
    ]
    for name in ("smallnorb", "smallnorb-procedural"):
        split = open_split(Rows(FactorTable(factors)), "dcodr", load_manifest(name).splits)
        assert split.factors.counts("split").tolist() == [43_740, 4_860]
        assert split.factors.counts("camera").tolist() == [48_600, 0]
        toy, part = split.factors.group_by(["category", "instance"]).of_rows(), split.factors.codes("split")
        assert set(np.bincount(toy[part == 1], minlength=50).tolist()) == {97, 98}


def test_the_split_of_cars3d_has_the_published_counts():
    sizes = {"elevation": 4, "azimuth": 24, "object": 183}
    cars = Rows(FactorTable([Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in sizes.items()]))
    declared = load_manifest("cars3d").splits
    both = open_split(cars, "dcodr", declared)
    assert both.factors.counts("split").tolist() == [15_811, 1_757]
    assert set(open_split(cars, "dcodr-test", declared).factors.counts("object")) == {9, 10}


def test_levels_of_the_factor_split(faces):
    assert rows(open_split(faces, "test", DECLARED)).tolist() == np.flatnonzero(PUBLISHED).tolist()
    assert rows(open_split(faces, "test")).tolist() == np.flatnonzero(PUBLISHED).tolist()


def test_a_subset_is_an_expression(faces):
    assert rows(open_split(faces, "few", DECLARED)).tolist() == np.flatnonzero(SUBJECTS < 3).tolist()


def test_drawn_parts_replace_the_split_and_keep_their_strata(faces):
    both, train, test = (open_split(faces, name, DECLARED) for name in ("nine", "nine-train", "nine-test"))
    assert both.factors["split"].levels == ("train", "test")
    assert both.factors["split"].role == "split"
    assert np.array_equal(rows(both), np.arange(120))
    assert np.array_equal(both.factors.joint_counts(["subject", "split"]), np.tile([9, 3], (10, 1)))
    assert sorted([*rows(train), *rows(test)]) == list(range(120))
    assert np.array_equal(both.factors.codes("split", rows(test)), np.ones(30))
    assert np.array_equal(rows(train), rows(open_split(faces, "nine-train", DECLARED)))


def test_rows_of_the_test_may_be_named_and_the_others_are_dealt(faces):
    last = open_split(faces, "last", DECLARED)
    assert last.factors["split"].levels == ("train", "test")
    assert np.array_equal(last.factors.codes("split"), SUBJECTS >= 8)
    most = open_split(faces, "most", DECLARED)
    assert most.factors["split"].levels == ("train", "validation", "test")
    counts = most.factors.joint_counts(["subject", "split"])
    assert counts.tolist() == [[6, 3, 0]] * 8 + [[0, 0, 12]] * 2
    assert rows(open_split(faces, "most-test", DECLARED)).tolist() == np.flatnonzero(SUBJECTS >= 8).tolist()
    with pytest.raises(
        DataError, match="'none' of rows cannot be created from the available files: no row satisfies subject > 20"
    ):
        open_split(faces, "none", DECLARED)


def test_no_group_may_be_in_the_test_and_in_another_part():
    table = FactorTable([Factor("subject", Kind.NOMINAL, tuple(range(4))), Factor("setting", Kind.NOMINAL, (0, 1, 2))])
    declared = [
        ManifestSplit("fine", test="setting == 2", disjoint=("setting",)),
        ManifestSplit("torn", test="subject == 3", disjoint=("setting",)),
    ]
    assert len(open_split(Rows(table), "fine", declared)) == 12
    with pytest.raises(DataError, match=r"'torn' of rows cannot be created from the available files: .*setting"):
        open_split(Rows(table), "torn", declared)


def test_a_split_that_leaks_is_told(faces, caplog):
    for name in ("leaky", "leaky-test"):
        caplog.clear()
        found = open_split(faces, name, DECLARED)
        assert "'leaky' of rows leaks: rows of the same subject" in caplog.text
        if name == "leaky":
            both = (found.factors.joint_counts(["subject", "split"]) > 0).all(axis=1).sum()
            assert f"({both} of 10)" in caplog.text
    caplog.clear()
    open_split(faces, "whole", DECLARED)
    assert not caplog.records


def test_shares_below_one_leave_rows_out_and_whole_groups_stay_together(faces):
    whole = open_split(faces, "whole", DECLARED)
    assert len(whole) == 84
    counts = whole.factors.joint_counts(["subject", "split"])
    assert set(counts.reshape(-1).tolist()) == {0, 12}
    assert counts.sum(0).tolist() == [60, 24]


def test_a_listed_factor_gives_the_parts_and_its_unknown_rows_are_in_none(faces):
    both = open_split(faces, "setting", DECLARED)
    assert rows(both).tolist() == np.flatnonzero(LISTED < 2).tolist()
    assert np.array_equal(both.factors.codes("split"), LISTED[LISTED < 2])
    assert rows(open_split(faces, "setting-probe", DECLARED)).tolist() == np.flatnonzero(LISTED == 1).tolist()


@pytest.mark.parametrize(("name", "column"), [("train", "split"), ("setting", "setting"), ("setting-probe", "setting")])
def test_a_group_in_two_parts_is_refused(faces, name, column):
    broken = faces.factors.codes(column).astype(np.uint8)
    broken[0] = 1
    table = faces.factors.without([column]).with_factor(faces.factors[column], broken)
    with pytest.raises(DataError, match=r"differs from the published one: .*not disjoint") as found:
        open_split(Rows(table), name, DECLARED)
    assert "subject" in str(found.value)


def test_unknown_names(faces):
    with pytest.raises(DataError, match="did you mean 'nine-train'"):
        open_split(faces, "nine-trian", DECLARED)
    with pytest.raises(DataError, match="Its splits: train, test, few, nine, nine-train, nine-test, whole"):
        open_split(faces, "tests", DECLARED)
    with pytest.raises(DataError, match="has no split 'nine-none of the parts'"):
        open_split(faces, "nine-none of the parts", DECLARED)
    plain = Rows(faces.factors.without(["split", "setting"]))
    with pytest.raises(DataError, match="rows has no splits"):
        open_split(plain, "train")
    with pytest.raises(DataError, match="the files that define its parts are missing"):
        open_split(plain, "setting", DECLARED)


def test_a_grid_gets_the_split_of_a_paper():
    train, test = (setsup.load("shapes3d-procedural", split=f"dcodr-{part}") for part in ("train", "test"))
    assert (len(train), len(test)) == (50_000, 48_000)
    assert test.factors.counts("shape").tolist() == [12_000] * 4
    assert train.factors.counts("shape").tolist() == [12_500] * 4
    assert not set(train.rows.tolist()) & set(test.rows.tolist())
    assert len(train.fetch([0, 1])["image"]) == 2


SHAPES3D = {
    "floor_hue": np.arange(10) / 10,
    "wall_hue": np.arange(10) / 10,
    "object_hue": np.arange(10) / 10,
    "scale": np.linspace(0.75, 1.25, 8),
    "shape": np.array(["cube", "cylinder", "sphere", "capsule"]),
    "orientation": np.linspace(-30, 30, 15),
}
DSPRITES = {
    "shape": np.array(["square", "ellipse", "heart"]),
    "scale": np.linspace(0.5, 1, 6).round(4),
    "orientation": np.linspace(0, 2 * np.pi, 40).round(4),
    "pos_x": np.linspace(0, 1, 32).round(4),
    "pos_y": np.linspace(0, 1, 32).round(4),
}


def _shapes3d_test(name, v):
    if name == "extrapolation":
        return v["floor_hue"] >= 0.5
    if name == "range":
        return (v["shape"] == "capsule") & (v["object_hue"] >= 0.5)
    block = np.logical_and.reduce([v[f"{part}_hue"] >= 0.8 for part in ("floor", "wall", "object")])
    return block & (v["scale"] >= 1.1) & (v["shape"] == "cylinder") & (v["orientation"] > 20)


def _dsprites_test(name, v):
    if name == "extrapolation":
        return v["pos_x"] > 0.5
    if name == "range":
        return (v["shape"] == "square") & (v["pos_x"] > 0.5)
    turned = (v["orientation"] > round(2 * np.pi / 3, 4)) & (v["orientation"] < round(4 * np.pi / 3, 4))
    corner = (v["pos_x"] > 0.66) & (v["pos_y"] > 0.66)
    return (v["shape"] == "ellipse") & (v["scale"] > 0.6) & turned & corner


@pytest.mark.parametrize("name", ["extrapolation", "range", "element"])
@pytest.mark.parametrize(
    ("benchmark", "levels", "is_test"),
    [("shapes3d", SHAPES3D, _shapes3d_test), ("dsprites", DSPRITES, _dsprites_test)],
)
def test_combinations_that_are_not_trained_on(name, benchmark, levels, is_test):
    """Splits of Montero et al. 2021, by the conditions of its published code."""
    table = FactorTable([Factor(factor, Kind.ORDINAL, tuple(values.tolist())) for factor, values in levels.items()])
    split = open_split(Rows(table), f"montero-{name}", load_manifest(benchmark).splits)
    values = dict(zip(levels, np.meshgrid(*levels.values(), indexing="ij"), strict=True))
    expected = is_test(name, {factor: value.reshape(-1) for factor, value in values.items()})
    assert np.array_equal(split.factors.codes("split") == 1, expected)
    assert 0 < expected.sum() < len(expected)
