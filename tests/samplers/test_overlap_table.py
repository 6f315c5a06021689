"""Tables of overlap: finding pairs, files and their damage."""

import json
import pickle
import struct

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.files.array_file import digest_of
from setsup.samplers.overlap import checks
from setsup.samplers.overlap.table import OverlapTable

ABOUT = {"dataset": "views", "fingerprint": "0" * 32, "rows": 100, "source": "scenes", "settings": {"pixels": 192}}
COLUMNS = ("first", "second", "overlap", "angle", "scale", "unknown", "decided", "views", "sampled", "starts", "counts",
           "excluded", "excluded_starts")  # fmt: skip


def columns(views=(12, 3), seed=0, share=0.3):
    """Columns of scenes of so many views: rows in some order, random pairs measured, others excluded or not tried."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(100)[: sum(views)]
    scenes = [np.sort(some) for some in np.split(rows, np.cumsum(views)[:-1])]
    pairs, counts, bits = [], [], []
    for some in scenes:
        fate = rng.choice(3, (len(some), len(some)), p=(share, 0.4, 0.6 - share))
        np.fill_diagonal(fate, 2)
        pairs.append(np.stack([some[place] for place in np.nonzero(fate == 0)], axis=1))
        excluded = fate == 1
        possible = len(some) * (len(some) - 1)
        counts.append((possible, excluded.sum(), len(pairs[-1]), possible - excluded.sum() - len(pairs[-1])))
        bits.append(np.packbits(excluded.reshape(-1)))
    pairs = np.concatenate(pairs)
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    count = len(pairs)
    return {
        "first": pairs[:, 0], "second": pairs[:, 1], "overlap": rng.random(count), "angle": rng.random(count) * 90,
        "scale": rng.random(count) + 0.5, "unknown": np.zeros(count), "decided": np.full(count, 192),
        "views": np.concatenate(scenes), "sampled": np.full(sum(views), 192),
        "starts": np.cumsum([0, *views]), "counts": np.array(counts), "excluded": np.concatenate(bits),
        "excluded_starts": np.cumsum([0, *map(len, bits)]), "about": ABOUT,
    }  # fmt: skip


@pytest.fixture
def table():
    return OverlapTable(**columns())


def test_pairs_are_found(table):
    everything = np.arange(-1, 101)
    found = table.find(everything[:, None], everything)
    assert found.shape == (102, 102)
    listed = {(int(a), int(b)): place for place, (a, b) in enumerate(zip(table.first, table.second, strict=True))}
    assert {(a - 1, b - 1): int(found[a, b]) for a, b in np.argwhere(found >= 0).tolist()} == listed
    assert table.find(int(table.first[3]), int(table.second[3])) == 3


def test_excluded_pairs(table):
    everything = np.arange(-1, 101)
    excluded = table.is_excluded(everything[:, None], everything)
    assert excluded.sum() == table.counts[:, 1].sum()
    assert not (excluded & (table.find(everything[:, None], everything) >= 0)).any()
    for scene in range(2):
        rows = table.views[table.starts[scene] : table.starts[scene + 1]]
        bits = table.excluded[table.excluded_starts[scene] : table.excluded_starts[scene + 1]]
        matrix = np.unpackbits(bits)[: len(rows) ** 2].reshape(len(rows), -1).astype(bool)
        assert np.array_equal(table.is_excluded(rows[:, None], rows), matrix)
    assert not table.is_excluded(int(table.views[0]), int(table.views[-1]))


def test_a_table_without_pairs():
    none = {name: np.empty(0) for name in COLUMNS}
    empty = OverlapTable(**{**none, "starts": [0], "excluded_starts": [0], "counts": np.empty((0, 4)), "about": ABOUT})
    assert len(empty) == 0
    assert empty.find([1, 2], [2, 1]).tolist() == [-1, -1]
    assert not empty.is_excluded([1, 2], [2, 1]).any()


def test_files(table, tmp_path):
    file = tmp_path / "views.overlap"
    table.save(file)
    opened = OverlapTable.open(file)
    for name in COLUMNS:
        assert np.array_equal(getattr(opened, name), getattr(table, name), equal_nan=name in ("overlap", "angle"))
        assert getattr(opened, name).dtype == getattr(table, name).dtype
    assert opened.about == table.about
    assert opened.digest == table.digest
    assert opened.path == file
    assert not opened.overlap.flags.writeable
    opened.save(tmp_path / "again.overlap")
    assert (tmp_path / "again.overlap").read_bytes() == file.read_bytes()
    for one in (table, opened):
        again = pickle.loads(pickle.dumps(one))
        assert again.digest == table.digest
        assert again.path == one.path
    sent = pickle.dumps(opened)
    assert len(sent) < 1000
    OverlapTable(**columns(seed=1)).save(file)
    with pytest.raises(DataError, match="has changed"):
        pickle.loads(sent)


def test_missing_and_other_files(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        OverlapTable.open(tmp_path / "none")
    for content in (b"", b"abc", b"\x93NUMPY" + bytes(200), b"PK\x03\x04" + bytes(100)):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(DataError, match="is not an overlap table"):
            OverlapTable.open(tmp_path / "other")


def test_damaged_files(table, tmp_path):
    """Cut off anywhere, or with any byte changed: one sentence, and never another table."""
    file = tmp_path / "views.overlap"
    table.save(file)
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    changed = [whole[:cut] for cut in rng.integers(0, len(whole), 60).tolist()] + [whole + b"\0"]
    for place in [*range(40), *rng.integers(0, len(whole), 200).tolist()]:
        other = bytearray(whole)
        other[place] ^= 1 << rng.integers(8)
        changed.append(bytes(other))
    for content in changed:
        file.write_bytes(content)
        with pytest.raises(DataError) as raised:
            OverlapTable.open(file)
        assert "\n" not in str(raised.value)
        assert str(file) in str(raised.value)


def hostile(file, changes, about=None, arrays=None):
    """Write columns that do not fit together, with the right digest."""
    table = OverlapTable(**columns())
    content = {name: getattr(table, name) for name in COLUMNS} | changes
    said = {**ABOUT, **(about or {})}
    head = {"about": said, "arrays": {name: [one.dtype.str, list(one.shape)] for name, one in content.items()},
            "digest": digest_of(said, content)}  # fmt: skip
    head["arrays"] |= arrays or {}
    text = json.dumps(head).encode()
    with file.open("wb") as out:
        out.write(struct.pack("<8sQ", b"setsupO1", len(text)) + text)
        for one in content.values():
            out.write(bytes(-out.tell() % 64) + one.tobytes())


@pytest.mark.parametrize("bad", [
    {"changes": {"second": np.zeros(3, "<i8")}}, {"changes": {"overlap": np.full(33, 1.5, "<f4")}},
    {"changes": {"starts": np.array([0, 15, 15], "<i8")}}, {"changes": {"starts": np.array([0, 99, 15], "<i8")}},
    {"changes": {"views": np.arange(100, 115)}}, {"changes": {"views": np.zeros(15, "<i8")}},
    {"changes": {"counts": np.zeros((2, 4), "<i8")}}, {"changes": {"first": np.zeros(33, "<i8")}},
    {"changes": {"excluded_starts": np.array([0, 2, 20], "<i8")}}, {"changes": {"excluded": np.zeros(5, "u1")}},
    {"changes": {}, "about": {"rows": "many"}}, {"changes": {}, "about": {"rows": 5}},
    {"changes": {}, "arrays": {"first": ["<i8", [-33]]}}, {"changes": {}, "arrays": {"first": ["<i8", [2**70]]}},
    {"changes": {}, "arrays": {"first": ["|O", [33]]}}, {"changes": {}, "arrays": {"more": ["<i8", [33]]}},
    {"changes": {}, "arrays": {"first": 3}}, {"changes": {}, "arrays": {"counts": ["<i8", [4, 2]]}},
])  # fmt: skip
def test_columns_that_do_not_fit(bad, tmp_path):
    file = tmp_path / "views.overlap"
    hostile(file, {})
    assert len(OverlapTable.open(file)) > 0
    hostile(file, **bad)
    with pytest.raises(DataError) as raised:
        OverlapTable.open(file)
    assert "\n" not in str(raised.value)


def with_pair(first, second):
    """Columns in which one pair is of other rows."""
    found = columns()
    order = np.lexsort((np.r_[found["second"][1:], second], np.r_[found["first"][1:], first]))
    found["first"] = np.r_[found["first"][1:], first][order]
    found["second"] = np.r_[found["second"][1:], second][order]
    return found


def test_pairs_are_of_two_views_of_one_scene():
    views, starts = columns()["views"], columns()["starts"]
    for second in (views[0], views[starts[1]]):
        with pytest.raises(DataError, match="a pair is not of two views of one scene"):
            OverlapTable(**with_pair(views[0], second))


def test_views_of_a_scene_are_in_order():
    found = columns()
    found["views"] = found["views"][[1, 0, *range(2, len(found["views"]))]]
    with pytest.raises(DataError, match="the views of a scene are not in order"):
        OverlapTable(**found)


def changed(name, place, value):
    """The columns of :func:`columns`, one value of them changed."""
    found = columns()
    found[name] = np.array(found[name])
    found[name][place] = value
    return found


def moved(here, there):
    """One pair of the first scene is counted elsewhere."""
    found = columns()
    found["counts"][0, [here, there]] += (-1, 1)
    return found


def measured_and_excluded():
    """A pair that is measured is in the matrix of excluded pairs as well, and counted there."""
    found = columns()
    pair = found["first"][0], found["second"][0]
    scene = int(np.flatnonzero(found["views"] == pair[0])[0] >= found["starts"][1])
    start, stop = found["starts"][scene : scene + 2]
    rows = found["views"][start:stop].tolist()
    a, b = found["excluded_starts"][scene : scene + 2]
    bits = np.unpackbits(found["excluded"][a:b])
    bits[rows.index(pair[0]) * len(rows) + rows.index(pair[1])] = 1
    found["excluded"][a:b] = np.packbits(bits)
    found["counts"][scene] += (0, 1, 0, -1)
    return found


@pytest.mark.parametrize(("bad", "words"), [
    (lambda: changed("counts", (0, slice(None)), (130, 50, 40, 40)), "scene 0 counts 130 possible pairs of 132"),
    (lambda: moved(1, 3), "scene 0 counts .* excluded pairs of"),
    (lambda: moved(3, 2), "scene 0 counts .* measured pairs, and lists"),
    (lambda: changed("counts", (0, slice(1, 4)), (-1, 132, 1)), "do not add up"),
    (lambda: changed("angle", 3, -1.0), "an angle is not from 0 to 180"),
    (lambda: changed("angle", 3, 181.0), "an angle is not from 0 to 180"),
    (lambda: changed("angle", 3, np.inf), "an angle is not from 0 to 180"),
    (lambda: changed("scale", 5, -0.5), "a ratio of scales is not a positive number"),
    (lambda: changed("scale", 5, np.inf), "a ratio of scales is not a positive number"),
    (lambda: changed("overlap", 5, np.inf), "an overlap is not from 0 to 1"),
    (lambda: changed("unknown", 0, 1.5), "a share of unknown sample pixels is not from 0 to 1"),
    (lambda: changed("decided", 0, -4), "a number of decided sample pixels"),
    (lambda: changed("decided", 0, 193), "a number of decided sample pixels"),
    (lambda: changed("decided", 0, 15), "an overlap is known from fewer than 16 decided sample pixels"),
    (lambda: changed("sampled", 0, -1), "a number of sample pixels is negative"),
    (lambda: changed("excluded", 0, 255), "row .* is excluded from itself"),
    (lambda: changed("excluded", -1, columns()["excluded"][-1] | 1), "has bits of no pair"),
    (measured_and_excluded, "a pair is measured, and excluded as well"),
    (lambda: columns() | {"about": {**ABOUT, "source": "guesses"}}, "its source is 'guesses'"),
])  # fmt: skip
def test_impossible_values_are_refused(bad, words, tmp_path):
    """In memory, and in a file whose digest is right."""
    found = bad()
    with pytest.raises(DataError, match=words):
        OverlapTable(**found)
    file = tmp_path / "views.overlap"
    dtypes = {name: getattr(OverlapTable(**columns()), name).dtype for name in COLUMNS}
    hostile(file, {name: np.asarray(found[name]).astype(dtypes[name]) for name in COLUMNS}, found["about"])
    with pytest.raises(DataError, match=f"views.overlap is damaged: .*{words}.*; remove the file") as raised:
        OverlapTable.open(file)
    assert "\n" not in str(raised.value)


def test_unknown_measures_are_possible():
    found = columns()
    for name in ("overlap", "angle", "scale", "unknown"):
        found[name][2] = np.nan
    found["decided"][2] = 0
    assert np.isnan(OverlapTable(**found).overlap[2])


def test_tables_are_looked_at_by_blocks(monkeypatch):
    """Blocks of any size see the same faults, those between two blocks included."""
    good, pairs = columns(), len(columns()["first"])
    for block in (1, 2, 7, pairs, pairs + 1):
        monkeypatch.setattr(checks, "_PAIRS", block)
        monkeypatch.setattr(checks, "_BYTES", block)
        assert len(OverlapTable(**good)) == pairs
        for place in range(1, pairs):
            swapped = np.arange(pairs)
            swapped[[place - 1, place]] = place, place - 1
            with pytest.raises(DataError, match="its pairs are not in order"):
                OverlapTable(**{**good, "first": good["first"][swapped], "second": good["second"][swapped]})
