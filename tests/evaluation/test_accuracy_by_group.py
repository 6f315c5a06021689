import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setsup
from setsup.errors import DataError, FactorError
from setsup.evaluation import group_accuracy
from setsup.factors import Factor, FactorTable, Kind

ROWS = st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.sampled_from("xyz")), min_size=1, max_size=40)


@given(ROWS)
def test_as_a_table_of_pandas_groups_them(rows):
    frame = pd.DataFrame(rows, columns=["right", "bird", "place"])
    table = setsup.FactorTable.from_values({"bird": list(frame.bird), "place": list(frame.place)})
    found = group_accuracy(frame.right.to_numpy(), table, ["bird", "place"])
    expected = frame.groupby(["bird", "place"]).right.agg(["mean", "size"])
    assert found.average == pytest.approx(frame.right.mean())
    assert found.worst == pytest.approx(expected["mean"].min())
    assert found.groups == tuple(f"bird = {bird}, place = {place}" for bird, place in expected.index)
    assert np.allclose(found.accuracy, expected["mean"])
    assert found.rows.tolist() == expected["size"].tolist()
    # groups as frequent as here give the average back
    assert found.reweighted(found.rows) == pytest.approx(found.average)


def test_rows_of_no_group():
    table = setsup.FactorTable.from_values({"bird": ["a", None, "b"]})
    found = group_accuracy([True, False, True], table, ["bird"])
    assert (found.average, found.worst, found.rows.tolist()) == (pytest.approx(2 / 3), 1.0, [1, 1])
    assert found.reweighted([1, 0]) == 1.0


def test_bad_arguments():
    table = setsup.FactorTable.from_values({"bird": ["a", "b"]})
    for wrong in ([1, 0], [True], [[True, False]], "ab"):
        with pytest.raises(DataError, match="correct"):
            group_accuracy(wrong, table, ["bird"])
    with pytest.raises(FactorError, match="bird"):
        group_accuracy([True, False], table, ["brid"])
    with pytest.raises(DataError, match="2 non-negative counts"):
        group_accuracy([True, False], table, ["bird"]).reweighted([0, 0])
    with pytest.raises(DataError, match="no row belongs to a group"):
        group_accuracy([True], FactorTable([Factor("a", Kind.NOMINAL, ("x",))], {"a": np.array([-1])}), ["a"])
