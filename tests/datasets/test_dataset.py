import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setsup
from setsup.datasets import Dataset, Modality, Selection, concat, fetch_request, gather, of_row
from setsup.errors import DataError, FactorError, RowError, SamplerError
from setsup.factors import Factor, FactorTable, Kind, split


class Numbered(Dataset):
    """A dataset whose images tell the row they are of."""

    def __init__(self, name, levels, modalities=None, offset=0, factor="shape"):
        self.name = name
        self.factors = FactorTable([Factor(factor, Kind.NOMINAL, levels), Factor("turn", Kind.ORDINAL, (0, 1, 2))])
        self.modalities = modalities or {"image": Modality((2, 2, 1), "uint8"), "row": Modality((), "int64")}
        self.offset = offset

    def fetch(self, indices, modalities=None):
        rows, names = fetch_request(self, indices, modalities)
        found = {}
        for name in names:
            modality = self.modalities[name]
            numbers = np.asarray(rows + self.offset, modality.dtype)
            found[name] = np.broadcast_to(
                numbers.reshape(rows.shape + (1,) * len(modality.shape)), (*rows.shape, *modality.shape)
            ).copy()
        return found


@pytest.fixture
def shapes():
    return Numbered("shapes", ("cube", "ball"))


@pytest.fixture
def others():
    return Numbered("others", ("ball", "cone", "ring"), offset=100)


def test_modality_has_one_form():
    assert Modality([np.int64(4), None], np.uint8) == Modality((4, None), "uint8")
    assert Modality((1,), "<f4").dtype == "float32"


@pytest.mark.parametrize(("shape", "dtype"), [((0,), "uint8"), ((-1, 3), "uint8"), (("a",), "uint8"), ((3,), "colour")])
def test_modality_refuses_nonsense(shape, dtype):
    with pytest.raises(DataError, match="modality"):
        Modality(shape, dtype)


def test_a_class_without_the_base_is_a_dataset_too(shapes):
    assert isinstance(shapes, Dataset)
    assert not isinstance(FactorTable([Factor("a", Kind.NOMINAL, (1,))]), Dataset)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 2), (1, 2, 1, 2)])
def test_fetch_keeps_the_shape_of_the_indices(shapes, others, shape):
    rows = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 6
    for dataset in (shapes, shapes.select([5, 4, 3, 2, 1, 0]), concat(shapes, others)):
        fetched = dataset.fetch(rows)
        assert fetched["image"].shape == (*shape, 2, 2, 1)
        assert fetched["image"].dtype == np.uint8
        assert fetched["row"].shape == shape


@pytest.mark.parametrize("rows", [[6], [-1], [[0, 1], [2, 600]], 2**62])
def test_rows_out_of_range(shapes, rows):
    for dataset in (shapes, shapes.select(range(6))):
        with pytest.raises(RowError, match="out of range: the table has 6 rows"):
            dataset.fetch(rows)


def test_rows_must_be_integers(shapes):
    for wrong in (0.5, [True, False], ["a"]):
        with pytest.raises(RowError, match="integers"):
            shapes.select([0, 1]).fetch(wrong)


def test_unknown_modality_names_near_ones(shapes):
    with pytest.raises(DataError, match="shapes has no modality 'imgae'; did you mean 'image'"):
        shapes.fetch(0, ["imgae"])
    with pytest.raises(DataError, match=r"\['image'\]"):
        shapes.fetch(0, "image")


def test_only_the_named_modalities_are_fetched(shapes, others):
    for dataset in (shapes, shapes.where("turn > 0"), concat(shapes, others)):
        assert list(dataset.fetch([0], ["row"])) == ["row"]
        assert list(dataset.fetch([0], ["row", "row", "image"])) == ["row", "image"]
        assert dataset.fetch([0], []) == {}


def test_where_renumbers(shapes):
    balls = shapes.where("shape == 'ball'")
    assert len(balls) == 3
    assert balls.name == "shapes"
    assert balls.fetch([0, 2])["row"].tolist() == [3, 5]
    assert balls.factors.values("shape").tolist() == ["ball"] * 3


def test_selections_compose_into_one_row_array(shapes):
    inner = shapes.select([5, 1, 3, 1])
    outer = inner.select([3, 0]).where("turn == 2")
    assert isinstance(outer, Selection)
    assert outer.source is shapes
    assert outer.rows.tolist() == [5]
    assert inner.select([1, 1]).rows.tolist() == [1, 1]
    with pytest.raises(RowError):
        inner.select([4])


def test_a_selection_owns_its_rows(shapes):
    rows = np.array([2, 3])
    chosen = shapes.select(rows)
    rows[:] = 0
    assert chosen.fetch([0, 1])["row"].tolist() == [2, 3]
    with pytest.raises(ValueError, match="read-only"):
        chosen.rows[0] = 1


def test_select_refuses_what_is_no_list_of_rows(shapes):
    with pytest.raises(RowError, match="one-dimensional"):
        shapes.select([[0, 1]])
    with pytest.raises(RowError, match="integers"):
        shapes.select(np.array([True] * 6))
    assert len(shapes.select([])) == 0


def derived(table):
    turns = FactorTable.from_values({"turn": [0, 1, 2], "angle": [0.0, 0.5, 1.0]})
    return split(table.join(turns, "turn").binned("angle", 0.5).rename({"shape": "form"}), {"a": 0.5, "b": 0.5}, seed=1)


def test_with_factors_keeps_rows_and_has_the_factors_of_the_table(shapes, others):
    table = derived(shapes.factors)
    parted = shapes.with_factors(table)
    assert parted.factors is table
    assert parted.source is shapes
    assert parted.fetch([[4, 0]])["row"].tolist() == [[4, 0]]
    chosen = shapes.select([5, 1, 3]).with_factors(table.select([5, 1, 3]))
    assert chosen.fetch(range(3))["row"].tolist() == chosen.rows.tolist() == [5, 1, 3]
    for part in ("a", "b"):
        expected = table.rows(f"split == '{part}'").tolist()
        assert parted.where(f"split == '{part}'").fetch(range(3))["row"].tolist() == expected
    again = parted.select([4, 2]).with_factors(table.select([4, 2])).select([1])
    assert again.fetch(0)["row"] == 2
    assert again.factors.row(0) == table.row(2)
    assert concat(parted, others).factors.values("split", [0, 9]).tolist() == [table.values("split", 0).item(), None]


def test_with_factors_composes_with_loaders_and_pickles(shapes):
    table = derived(shapes.factors)
    sampler = setsup.SetSampler(table, inactive=["form"], size=2, sets=2)
    with pytest.raises(SamplerError, match=r"dataset\.with_factors\(table\)"):
        setsup.loader(shapes, sampler)
    batch = next(iter(setsup.loader(shapes.with_factors(table), sampler, to="numpy", workers=0)))
    np.testing.assert_array_equal(batch["row"], batch["indices"])
    np.testing.assert_array_equal(batch["factors"]["split"], table.codes("split", batch["indices"]))
    copy = pickle.loads(pickle.dumps(shapes.with_factors(table)))
    assert copy.factors.fingerprint == table.fingerprint
    assert copy.rows.tolist() == list(range(6))
    assert len(pickle.dumps(shapes.rename({"turn": "angle"}))) < 2000  # a grid stays one, and all rows are not listed


def test_with_factors_refuses_other_tables(shapes):
    with pytest.raises(DataError, match="the table has 3 rows, but shapes has 6; pass a table with the same rows"):
        shapes.with_factors(shapes.factors.where("shape == 'cube'"))
    with pytest.raises(DataError, match="must be a FactorTable, not"):
        shapes.with_factors({"a": [1]})


@given(rows=st.lists(st.integers(0, 5), max_size=12), again=st.lists(st.integers(0, 11), max_size=12))
def test_selecting_twice_is_indexing_twice(rows, again):
    shapes = Numbered("shapes", ("cube", "ball"))
    again = [i for i in again if i < len(rows)]
    chosen = shapes.select(rows).select(again)
    expected = [rows[i] for i in again]
    assert chosen.fetch(range(len(again)))["row"].tolist() == expected
    assert [chosen.factors.row(i) for i in range(len(again))] == [shapes.factors.row(i) for i in expected]


def test_concat_scatters_rows_back_to_their_places(shapes, others):
    both = concat(shapes, others)
    assert len(both) == 15
    assert both.offsets.tolist() == [0, 6, 15]
    assert both.fetch([[14, 0, 6], [5, 7, 0]])["row"].tolist() == [[108, 0, 100], [5, 101, 0]]
    assert both.fetch([[14, 0, 6], [5, 7, 0]])["image"][..., 1, 1, 0].tolist() == [[108, 0, 100], [5, 101, 0]]
    with pytest.raises(RowError, match="15 rows"):
        both.fetch(15)


def test_concat_joins_the_tables(shapes, others):
    both = concat(shapes, others, parts=["old", "new"])
    assert both.factors["part"].role == "part"
    assert both.factors.row(0) == {"shape": "cube", "turn": 0, "part": "old"}
    assert both.factors.row(14) == {"shape": "ring", "turn": 2, "part": "new"}
    assert both.factors.values("shape", [5, 6]).tolist() == ["ball", "ball"]
    assert both.where("part == 'new'").fetch(0)["row"].tolist() == 100


def test_concat_of_different_factors_is_unknown_where_absent(shapes):
    both = concat(shapes, Numbered("colours", ("red", "blue"), factor="colour"))
    assert both.factors.row(0)["colour"] is None
    assert both.factors.row(6)["shape"] is None
    assert both.factors.row(6)["colour"] == "red"


def test_concat_of_one_and_of_the_same_twice(shapes):
    assert concat(shapes).fetch([5, 1])["row"].tolist() == [5, 1]
    assert concat(shapes, shapes).fetch([11, 1])["row"].tolist() == [5, 1]
    with pytest.raises(DataError, match="at least one dataset"):
        concat()
    with pytest.raises(FactorError):
        concat(shapes, shapes, parts=["a"])


def test_concat_keeps_common_modalities_only(shapes):
    rows_only = Numbered("bare", ("cube",), {"row": Modality((), "int64")})
    assert list(concat(shapes, rows_only).modalities) == ["row"]
    depth = Numbered("depth", ("cube",), {"depth": Modality((), "float32")})
    with pytest.raises(DataError, match=r"no modality in common \(shapes has image, row; depth has depth\)"):
        concat(shapes, depth)


@pytest.mark.parametrize(
    "other",
    [Modality((2, 3, 1), "uint8"), Modality((2, 2, 1), "float32"), Modality((2, 2, 1), "uint8", unit="m")],
)
def test_concat_names_the_modality_that_differs(shapes, other):
    with pytest.raises(DataError, match=r"'image' differs: shapes has .* odd has") as caught:
        concat(shapes, Numbered("odd", ("cube",), {"image": other}))
    assert str(other.shape) in str(caught.value)


def test_concat_of_images_whose_size_varies_stacks_what_agrees(shapes, others):
    varies = {"image": Modality((None, None, 1), "uint8")}
    first, second = Numbered("a", ("cube",)), Numbered("b", ("cube",))
    first.modalities = second.modalities = varies
    first.fetch = lambda rows, names: {"image": np.zeros((len(rows), 4, 4, 1), np.uint8)}
    second.fetch = lambda rows, names: {"image": np.ones((len(rows), 4, 4, 1), np.uint8)}
    both = concat(first, second)
    assert both.fetch([3, 0])["image"][:, 0, 0, 0].tolist() == [1, 0]
    second.fetch = lambda rows, names: {"image": np.ones((len(rows), 5, 4, 1), np.uint8)}
    with pytest.raises(DataError, match="cannot be stacked"):
        both.fetch([3, 0])


@given(rows=st.lists(st.integers(0, 20), max_size=30))
def test_concat_equals_fetching_row_by_row(rows):
    parts = [
        Numbered("a", ("x", "y")),
        Numbered("b", ("x",), offset=50),
        Numbered("c", ("x", "y", "z", "w"), offset=90),
    ]
    numbers = [part.offset + i for part in parts for i in range(len(part))]
    assert concat(*parts).fetch(rows)["row"].tolist() == [numbers[row] for row in rows]


@given(rows=st.lists(st.integers(0, 6), max_size=9))
def test_gather_is_indexing(rows):
    array = np.arange(7 * 3 * 2).reshape(7, 3, 2)
    index = np.array(rows, dtype=np.int64)
    assert np.array_equal(gather(array, index), array[index])
    assert gather(array[:, 0, 0], np.array(3)).shape == ()


class Tales(Dataset):
    name = "tales"
    modalities = {"row": Modality((), "int64")}  # noqa: RUF012
    titles = ("one", "two", "three", "four")

    def __init__(self):
        self.factors = FactorTable.from_values({"letters": [3, 3, 5, 4]})

    def fetch(self, indices, modalities=None):
        rows, names = fetch_request(self, indices, modalities)
        return {name: rows.copy() for name in names}

    @of_row
    def title(self, row, mark=""):
        return self.titles[row] + mark

    @of_row
    def titles_of(self, rows):
        return [self.titles[row] for row in rows]


def test_a_selection_has_what_its_source_has_beside():
    tales = Tales().select([3, 1]).where("letters == 3")
    assert tales.titles == Tales.titles
    assert tales.title(0, mark="!") == "two!"
    assert Tales().select([3, 1]).titles_of([1, 0]) == ["two", "four"]
    again = pickle.loads(pickle.dumps(tales))
    assert again.title(0) == "two"
    with pytest.raises(RowError):
        tales.title(1)
    with pytest.raises(AttributeError, match="no attribute 'author'"):
        _ = tales.author


def test_a_renamed_dataset_fetches_the_same_rows():
    tales = Tales().rename({"letters": "my letters"})
    assert tales.factors.names == ("my letters",)
    chosen = tales.where("`my letters` == 3")
    assert chosen.fetch([0, 1])["row"].tolist() == [0, 1]
    assert [chosen.title(row) for row in range(2)] == ["one", "two"]
    grid = setsup.load("shapes3d-procedural").rename({"wall_hue": "wall"})
    assert grid.factors.is_grid
    with pytest.raises(FactorError, match="unknown factor 'wall_hue'"):
        grid.rename({"wall_hue": "x"})
