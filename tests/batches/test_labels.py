"""Labels of any container: equal labels make equal tables, and what is no label is refused in one sentence."""

import json
import subprocess
import sys
from collections import deque
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setsup
from setsup.batches.labels import label_table
from setsup.errors import SetsupError
from setsup.factors import FactorTable, Kind

INTEGERS = [3, 1, 3, 2, 1, 1]
STRINGS = ["cat", "dog", "cat", "owl", "dog", "cat"]


def table(labels: Any) -> FactorTable:
    made, names = label_table(labels, "classes", None, None)
    assert names == ("label",)
    return made


def codes(labels: Any) -> list[int]:
    return table(labels).codes("label").tolist()


@given(
    st.one_of(
        st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62)), min_size=1),
        st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=3)), min_size=1),
        st.lists(st.one_of(st.none(), st.booleans()), min_size=1),
    )
)
def test_a_list_makes_the_table_that_other_tables_make_of_it(labels: list[Any]) -> None:
    if all(label in (None, "") for label in labels):
        with pytest.raises(SetsupError, match="no known label"):
            table(labels)
        return
    assert table(labels).fingerprint == FactorTable.from_values({"label": labels}).fingerprint


@given(st.lists(st.one_of(st.just(np.nan), st.integers(-5, 5), st.sampled_from([0.5, 2.5])), min_size=1))
def test_numbers_are_levels_in_order_and_nan_is_none(labels: list[float]) -> None:
    known = sorted({label for label in labels if label == label})
    if not known:
        return
    made = table(labels)
    assert made["label"].levels == tuple(known)
    assert made["label"].kind is Kind.ORDINAL
    assert all(isinstance(level, int) for level in made["label"].levels) == all(level == int(level) for level in known)
    found = [None if code < 0 else known[code] for code in made.codes("label").tolist()]
    assert found == [label if label == label else None for label in labels]
    assert table(np.array(labels, dtype=np.float64)).fingerprint == made.fingerprint


def containers(labels: list[Any]) -> dict[str, Any]:
    torch, pandas, arrow = map(pytest.importorskip, ("torch", "pandas", "pyarrow"))
    datasets = pytest.importorskip("datasets")
    held = datasets.Dataset.from_dict({"label": labels, "other": [[1.0]] * len(labels)})
    made = {
        "tuple": tuple(labels),
        "array": np.array(labels),
        "objects": np.array(labels, dtype=object),
        "scalars": list(np.array(labels)),
        "series": pandas.Series(labels, name="species", index=range(10, 10 + len(labels))),
        "categories": pandas.Series(pandas.Categorical(labels, ordered=True)),
        "arrow": arrow.array(labels),
        "chunks": arrow.chunked_array([labels[:2], labels[2:]]),
        "dictionary": arrow.array(labels).dictionary_encode(),
        "hugging face": held["label"],
        "selected": held.select(range(len(labels)))["label"],
        "one column": {"label": labels},
    }
    if isinstance(labels[0], int):
        made |= {
            "tensor": torch.tensor(labels),
            "tensors": list(torch.tensor(labels)),
            "floats": torch.tensor(labels, dtype=torch.float32, requires_grad=True),
            "bytes": np.array(labels, dtype=np.uint8),
            "nullable": pandas.array(labels, dtype="Int64"),
            "formatted": held.with_format("torch")["label"],
        }
    return made


@pytest.mark.parametrize("labels", [INTEGERS, STRINGS], ids=["integers", "strings"])
def test_what_holds_the_labels_makes_no_difference(labels: list[Any]) -> None:
    wanted = FactorTable.from_values({"label": labels}).fingerprint
    assert table(labels).fingerprint == wanted
    for name, held in containers(labels).items():
        assert table(held).fingerprint == wanted, name


def test_unknown_labels_are_unknown_in_every_container() -> None:
    pandas, arrow = map(pytest.importorskip, ("pandas", "pyarrow"))
    missing = pandas.NA
    for labels in (
        [2, None, 2, 1],
        [2.0, np.nan, 2.0, 1.0],
        np.array([2, np.nan, 2, 1]),
        [2, missing, 2, 1],
        pandas.Series([2, None, 2, 1]),
        pandas.array([2, None, 2, 1], dtype="Int64"),
        arrow.array([2, None, 2, 1]),
        arrow.chunked_array([[2, None], [2, 1]]),
    ):
        made = table(labels)
        assert made.codes("label").tolist() == [1, -1, 1, 0]
        assert made["label"].levels == (1, 2)
    for texts in (
        ["b", None, "b", "a"],
        ["b", np.nan, "b", "a"],
        ["b", "", "b", "a"],
        pandas.Series(["b", None, "b", "a"]),
    ):
        assert codes(texts) == [1, -1, 1, 0]
    days = np.array(["2024-05-02", "NaT", "2024-05-02", "2024-05-01"], dtype="datetime64[D]")
    assert codes(days) == codes([None if np.isnat(day) else day.item() for day in days]) == [1, -1, 1, 0]
    assert codes([date(2024, 5, 2), None, date(2024, 5, 1)]) == [1, -1, 0]


def test_unknown_labels_are_in_no_class_and_are_counted() -> None:
    labels = [0, 1, None, 1, np.nan, 0, 2, 2, 2]
    batches = setsup.batch_sampler(labels, classes=2, per_class=2)
    assert batches.report().entries[0].unknown == 2
    drawn = {row for _ in range(40) for rows in batches for row in rows}
    assert drawn == {0, 1, 3, 5, 6, 7, 8}
    whole = setsup.batch_sampler(labels, batch_size=3)  # every row, whatever its label
    assert sorted(row for rows in whole for row in rows) == list(range(9))


FRAME = {"identity": [0, 0, 0, 0, 1, 1, 1, 1], "camera": list("aabbaabb"), "weight": [1.0, 0, 1, 1, 1, 1, 1, 1]}


def frames() -> dict[str, Any]:
    pandas, arrow = map(pytest.importorskip, ("pandas", "pyarrow"))
    datasets = pytest.importorskip("datasets")
    return {
        "mapping": FRAME,
        "arrays": {name: np.array(column) for name, column in FRAME.items()},
        "pandas": pandas.DataFrame(FRAME),
        "arrow": arrow.table(FRAME),
        "batch": arrow.RecordBatch.from_pydict(FRAME),
        "hugging face": datasets.Dataset.from_dict({**FRAME, "picture": [[1, 2]] * 8}),
        "table": FactorTable.from_values(FRAME),
    }


def test_a_column_of_several_is_named_with_its_number() -> None:
    for name, frame in frames().items():
        draws = [
            list(setsup.batch_sampler(frame, classes={"identity": 2}, per_class=2)),
            list(setsup.batch_sampler(frame, classes={("identity", "camera"): 2}, per_class=2)),
            list(setsup.batch_sampler(frame, batch_size=4, weights="weight")),
            list(setsup.batch_sampler(frame, batch_size=4)),
        ]
        assert draws[0] == list(setsup.batch_sampler(FRAME["identity"], classes=2, per_class=2)), name
        pairs = [f"{one}{other}" for one, other in zip(FRAME["identity"], FRAME["camera"], strict=True)]
        assert draws[1] == list(setsup.batch_sampler(pairs, classes=2, per_class=2)), name
        assert draws[2] == list(setsup.batch_sampler(FRAME["camera"], batch_size=4, weights=FRAME["weight"])), name
        assert draws[3] == list(setsup.batch_sampler(FRAME["camera"], batch_size=4)), name
        with pytest.raises(
            SetsupError, match=r"labels has several columns \(identity, camera, weight.*name it, as in cl"
        ):
            setsup.batch_sampler(frame, classes=2, per_class=2)
        with pytest.raises(SetsupError, match="labels has no column 'identty'; did you mean 'identity'"):
            setsup.batch_sampler(frame, classes={"identty": 2}, per_class=2)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "labels has no rows"),
        (np.array([]), "no rows|no known label"),
        ("cats", "must be a list, an array or a column, not 'cats'"),
        (7, "must be a list, an array or a column, not 7"),
        ((number for number in range(3)), "must be a list, an array or a column"),
        ({1, 2}, "must be a list, an array or a column"),
        ({}, "labels has no columns"),
        (np.zeros((3, 2)), r"must be 1-D, one label per row, not of shape \(3, 2\)"),
        (np.float32(3), "must be 1-D|must be a list"),
        ([None, None], "no known label"),
        (np.array([np.nan]), "no known label"),
        ([1, "a"], r"has numbers \(1 in row 0\) and strings \('a' in row 1\); expected labels of one type"),
        ([True, 1, 0.0], "has booleans .* expected labels of one type"),
        ([True, 1], r"has booleans \(True in row 0\) and numbers \(1 in row 1\)"),
        ([1.0, np.inf], "infinite label"),
        ([[1], [2]], r"must have one string, number, boolean, date or time per row, not \[1\] in row 0; of one-hot"),
        ([3, [1]], r"per row, not \[1\] in row 1"),
        ([b"a", b"b"], "must have one string, .* not b'a' in row 0"),
        ([1j, 2j], "must have one string, .* not 1j in row 0; convert them, as with map"),
        ([np.clongdouble(1)], "must have one string, .* in row 0"),
        ([object()], "must have one string, .* in row 0"),
        ([Decimal("Infinity")], "infinite label"),
        ([Decimal("sNaN")], "must have one string"),
    ],
)
def test_what_is_no_label_is_refused(labels: Any, message: str) -> None:
    with pytest.raises(SetsupError, match=message) as caught:
        setsup.batch_sampler(labels, classes=1, per_class=1)
    assert "\n" not in str(caught.value)


def test_integers_beyond_64_bits_and_of_64_bits_stay_exact() -> None:
    large = [2**62 + 1, None, 2**62]
    assert table(large)["label"].levels == (2**62, 2**62 + 1)
    assert table(np.array([2**63 + 1, 2**63], dtype=np.uint64))["label"].levels == (2**63, 2**63 + 1)


def test_splits_of_hugging_face_are_no_labels() -> None:
    datasets = pytest.importorskip("datasets")
    splits = datasets.DatasetDict({"train": datasets.Dataset.from_dict(FRAME)})
    with pytest.raises(
        SetsupError, match=r"labels has several splits \(train\); pass one of them, as in dataset\['train'\]"
    ):
        setsup.batch_sampler(splits, classes=2, per_class=2)


LIGHT = """
import json, sys
import numpy as np
{before}
import setsup
labels = {labels}
batches = setsup.batch_sampler(labels, classes=4, per_class=2, **{options})
rows = [list(batches), list(batches)]
batches.load_state_dict(batches.state_dict())
str(batches.report()), len(batches), batches.rows(3), repr(batches)
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})))
"""


@pytest.mark.long("subprocesses")
@pytest.mark.parametrize(
    ("labels", "before", "options"),
    [
        ("[number % 5 for number in range(300)]", "", "{}"),
        ("[None if number % 7 == 0 else 'abcde'[number % 5] for number in range(300)]", "", "{}"),
        ("np.arange(100_000) % 1000", "", "{'weights': np.ones(100_000)}"),
        ("{'a': np.arange(300) % 5, 'b': np.arange(300) % 3}", "", "{'classes': {'a': 4}}"),
        ("torch.arange(300) % 5", "import torch", "{}"),
    ],
)
def test_labels_of_lists_arrays_and_tensors_load_no_column_library(labels: str, before: str, options: str) -> None:
    if before:
        pytest.importorskip("torch")
    code = LIGHT.format(labels=labels, before=before, options=options).replace(
        "classes=4, per_class=2, **{'classes': {'a': 4}}", "classes={'a': 4}, per_class=2"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    loaded = set(json.loads(run.stdout))
    assert not loaded & {"pyarrow", "pandas", "scipy", "rich", "h5py", "PIL", "yaml", "datasets"}
    assert bool(before) == ("torch" in loaded)


NAN = float("nan")


@pytest.mark.parametrize(
    ("labels", "same"),
    [
        (np.ma.array([0, 0, 1, 1, 9, 9], mask=[0, 0, 0, 0, 1, 1]), [0, 0, 1, 1, None, None]),
        (np.ma.array([True, False, True], mask=[0, 0, 1]), [True, False, None]),
        (np.ma.array(["a", "b", "c"], mask=[0, 0, 1]), ["a", "b", None]),
        ([True, False, NAN, True], [True, False, None, True]),
        (np.array([True, False, NAN], dtype=object), [True, False, None]),
        (deque([2, 1, 2]), [2, 1, 2]),
        ([Decimal("0.5"), Decimal(2), Decimal("NaN")], [0.5, 2, None]),
        ([Decimal(2), 2.0, 1], [2, 2, 1]),
        ([Fraction(1, 2), Fraction(3)], [0.5, 3]),
        (np.array([np.float32(0.5), np.float32(2)], dtype=object), [0.5, 2]),
        (np.array([2.0, 1.0, None], dtype=object), [2, 1, None]),
        (np.array([2, 1], dtype=np.longdouble), [2, 1]),
        (list(np.array([2, 1], dtype=np.longdouble)), [2, 1]),
        ([np.array(2), np.array(1)], [2, 1]),
        ([date(2024, 5, 2), None], ["2024-05-02", None]),
        ([time(10, 30, 0, 500_000)], ["10:30:00.5"]),
    ],
    ids=str,
)
def test_labels_are_the_values_whatever_their_type(labels: Any, same: list[Any]) -> None:
    assert table(labels).fingerprint == table(same).fingerprint


def test_unknown_booleans_of_pandas_are_unknown() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    series = pandas.Series([True, False] * 4).reindex(range(10))
    wanted = table([True, False] * 4 + [None] * 2).fingerprint
    for labels in (series, series.astype("category"), series.astype("boolean")):
        assert table(labels).fingerprint == wanted


@pytest.mark.parametrize("decimals", [0, 500_000], ids=["whole seconds", "half a second"])
def test_times_are_the_same_in_every_unit_and_container(decimals: int) -> None:
    pandas, arrow = map(pytest.importorskip, ("pandas", "pyarrow"))
    times = [datetime(2024, 5, 2, 10, 30, 0, decimals), None, datetime(2024, 5, 1), datetime(2024, 5, 1)]
    wanted = table(times)
    text = "2024-05-02 10:30:00" + (".5" if decimals else "")
    assert wanted["label"].levels == ("2024-05-01 00:00:00", text)
    units = ("ms", "us", "ns") if decimals else ("s", "ms", "us", "ns", "m")
    arrays = [np.array(times, dtype=f"datetime64[{unit}]") for unit in units]
    held = [*arrays, *map(list, arrays), *(arrow.array(times, arrow.timestamp(unit)) for unit in ("us", "ns"))]
    for labels in (*held, pandas.Series(times), pandas.Series(times).astype(object), [pandas.Timestamp(times[0])]):
        found = table(labels)
        assert found.fingerprint == wanted.fingerprint or (len(labels) == 1 and found["label"].levels == (text,))
    full = times[2:]
    assert table(arrow.array(full)).fingerprint == table(np.array(full, dtype="datetime64[h]")).fingerprint


def test_times_with_a_time_zone_are_those_of_utc() -> None:
    pandas, arrow = map(pytest.importorskip, ("pandas", "pyarrow"))
    noon = datetime(2024, 5, 2, 12, tzinfo=timezone(timedelta(hours=2)))
    wanted = table([noon, noon + timedelta(hours=1)])
    assert wanted["label"].levels == ("2024-05-02 10:00:00Z", "2024-05-02 11:00:00Z")
    held = pandas.Series([noon, noon + timedelta(hours=1)])
    for labels in (held, held.dt.tz_convert("Asia/Tokyo"), arrow.array(held), held.astype(object).to_list()):
        assert table(labels).fingerprint == wanted.fingerprint


def test_tensors_that_numpy_does_not_have() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    labels = torch.tensor([2, 1, 2])
    for made in (labels.bfloat16(), list(labels.bfloat16()), labels.half()):
        assert table(made).fingerprint == table(labels).fingerprint
    weights = torch.tensor([1.0, 2.0, 1.0, 1.0])
    options: dict[str, Any] = {"batch_size": 2, "steps": 9}
    assert list(setsup.batch_sampler([0] * 4, weights=weights.bfloat16(), **options)) == list(
        setsup.batch_sampler([0] * 4, weights=weights, **options)
    )
    with pytest.raises(SetsupError, match="labels is a tensor on the meta device, which has no values"):
        table(labels.to("meta"))
    for made in (list(torch.eye(3, dtype=torch.int64)), list(labels.to("meta")), list(np.eye(3))):
        with pytest.raises(SetsupError, match="must have one string, number, boolean, date or time per row") as caught:
            table(made)
        assert "\n" not in str(caught.value)


def test_rows_without_a_class_may_be_anything_with_a_length() -> None:
    wanted = list(setsup.batch_sampler(range(6), batch_size=2))
    path = Path("a.png")
    for labels in ([None] * 6, [path] * 6, [b"a"] * 6, [(1, 2)] * 6, [1, "a"] * 3, [np.inf] * 6, np.eye(6), Texts()):
        assert list(setsup.batch_sampler(labels, batch_size=2)) == wanted
    columns: dict[Any, Any] = {"label": [None] * 6, 3: np.eye(6), "path": [path] * 6}
    assert list(setsup.batch_sampler(columns, batch_size=2)) == wanted


class Texts:
    """A dataset of torch's protocol."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, row: int) -> str:
        raise AssertionError("texts are not read")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            dict.fromkeys(range(100), "cat"),
            r"labels maps 0 to 'cat', which is not a column; .* pass list\(labels.values",
        ),
        ({"a": 3}, "labels maps 'a' to 3, which is not a column"),
        ({"a": np.array(3)}, r"labels maps 'a' to array\(3\), which is not a column"),
        ({"a": [1, 2], "b": [1]}, "the columns of labels must have the same length, not {'a': 2, 'b': 1}"),
        ({}, "labels has no columns; pass one label per row"),
        ({"1": [1], 1: [2]}, r"labels has two columns of the same name \(1, 1\); rename one"),
        ("cats", "must be a list, an array or a column, not 'cats'"),
        ({1, 2}, "must be a list, an array or a column"),
        ([], "labels has no rows"),
    ],
)
def test_what_has_no_rows_is_refused(labels: Any, message: str) -> None:
    for options in (
        {"batch_size": 1},
        {"classes": {"a": 1} if isinstance(labels, dict) and "a" in labels else 1, "per_class": 1},
    ):
        if options != {"batch_size": 1} and "same length" in message:
            continue  # other columns are not read
        with pytest.raises(SetsupError, match=message) as caught:
            setsup.batch_sampler(labels, **options)
        assert "\n" not in str(caught.value)


def test_columns_may_be_named_by_integers() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    wanted = list(setsup.batch_sampler([0, 0, 1, 1], classes=2, per_class=2))
    frame = pandas.DataFrame([[0, 1], [0, 1], [1, 2], [1, 2]])
    with pytest.raises(SetsupError, match=r"name it, as in classes=\{'0': …\}"):
        setsup.batch_sampler(frame, classes=2, per_class=2)
    for name in (0, "0"):
        assert list(setsup.batch_sampler(frame, classes={name: 2}, per_class=2)) == wanted
    weighted = setsup.batch_sampler(frame, batch_size=2, weights="1")
    assert list(weighted) == list(setsup.batch_sampler([0] * 4, batch_size=2, weights=[1, 1, 2, 2]))


def test_large_integers_are_different_classes() -> None:
    large = [2**63 + 1, 2**63, -1]
    assert table(large)["label"].levels == (-1, 2**63, 2**63 + 1)
