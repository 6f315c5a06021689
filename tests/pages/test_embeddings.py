"""Embeddings on a page: points, colours, rows, images and neighbours, against numpy and by hand."""

import base64
import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import setsup
from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.pages import export, open_embeddings, page_of
from setsup.pages.answers import digest, key_of
from setsup.pages.projecting import drawing_order, neighbours, project
from setsup.pages.shell import static
from setsup.reports.colors import (
    ACCESSIBLE,
    GROUNDS,
    accessible_cycle,
    accessible_ramp,
    color_rows,
    on_grounds,
    rgb,
)
from tests.fuzzing import survives
from tests.pages.sources import HOSTILE, awkward
from tests.pages.test_export import read


def ask(source, /, **question):
    page = page_of({}, embeddings=[source])
    answer = page.get(key_of({"s": "e0", **{name: str(value) for name, value in question.items()}}))
    return json.loads(answer.content) if answer.media == "application/json" else answer.content


def numbers(found):
    return np.frombuffer(base64.b64decode(found["data"]), np.dtype(found["type"]).newbyteorder("<"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What `setsup embed` writes of some rows of a dataset with hostile names; one embedding is not finite."""
    out = tmp_path_factory.mktemp("embeddings")
    rows = np.array([5, 2, 23, 0, 7, 3, 11, 19, 20, 21])
    found = np.random.default_rng(1).normal(size=(10, 5)).astype(np.float32)
    found[4, 2] = np.nan
    np.save(out / "embeddings.npy", found)
    np.save(out / "rows.npy", rows)
    pq.write_table(awkward().factors.select(rows).to_arrow(), out / "factors.parquet")
    return out


@pytest.fixture
def source(folder):
    return open_embeddings(folder, [setsup.load("shapes3d-procedural"), awkward()])[0]


def test_points_are_projections_of_the_finite_embeddings(source, folder):
    found, stored = ask(source, q="points"), np.load(folder / "embeddings.npy")
    assert (found["count"], found["of"], found["left_out"]) == (9, 10, 1)
    rows, stored_rows = numbers(found["rows"]), np.load(folder / "rows.npy")
    assert sorted(rows.tolist()) == sorted(np.delete(stored_rows, 4).tolist())
    places = [stored_rows.tolist().index(row) for row in rows.tolist()]
    centred = stored[places].astype(np.float64) - np.delete(stored, 4, axis=0).mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    expected = np.abs(centred @ directions[:2].T)  # each direction has a sign of its own
    np.testing.assert_allclose(np.abs(numbers(found["points"]).reshape(-1, 2)), expected, atol=1e-5)
    assert found["method"].startswith("the first two principal components, with ")


def test_neighbours_are_those_of_brute_force(source, folder):
    rows = numbers(ask(source, q="points")["rows"]).tolist()
    stored_rows, stored = np.load(folder / "rows.npy").tolist(), np.load(folder / "embeddings.npy").astype(np.float64)
    points = stored[[stored_rows.index(row) for row in rows]]
    for start in range(9):
        found = ask(source, q="near", start=start)
        apart = np.sqrt(((points - points[start]) ** 2).sum(axis=1))
        apart[start] = np.inf
        order = np.argsort(apart, kind="stable")[:8]
        assert found["places"] == [order.tolist()]
        np.testing.assert_allclose(found["distances"], [apart[order]], rtol=6e-6)
    few = replace(source, most=3)
    assert ask(few, q="near", start=0)["places"][0][2:] == [-1] * 6


def test_neighbours_by_blocks_are_the_same(monkeypatch):
    points = np.random.default_rng(0).integers(0, 3, (60, 3)).astype(np.float32)  # with many ties
    order, places = np.arange(60)[::-1].copy(), np.array([0, 17, 59])
    whole = neighbours(points, order, places, 5)
    monkeypatch.setattr("setsup.pages.projecting._BLOCK", 21)
    for one, other in zip(neighbours(points, order, places, 5), whole, strict=True):
        np.testing.assert_array_equal(one, other)
    assert drawing_order(points)[0].tolist() != list(range(60))
    some, _ = drawing_order(points, 7)
    assert some.tolist() == drawing_order(points)[0][:7].tolist()


def test_one_and_two_dimensions_need_no_projection():
    points, words = project(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 0]))
    assert points.tolist() == [[3, 4], [1, 2]]
    assert "as they are" in words
    points, _ = project(np.array([[5.0], [1.0], [3.0]]), np.arange(3))
    assert points.tolist() == [[5, 0], [1, 1], [3, 2]]
    with pytest.raises(DataError, match="collapsed"):
        project(np.ones((4, 3)), np.arange(4))
    with pytest.raises(DataError, match="none of the embeddings is finite"):
        project(np.ones((4, 3)), np.arange(0))


def test_rows_and_images_are_those_of_the_dataset(source):
    from setsup.pages.images import sprite

    rows = numbers(ask(source, q="points")["rows"]).tolist()
    dataset = awkward()
    for start, row in enumerate(rows):
        found = ask(source, q="rows", start=start)
        assert found["rows"] == [row]
        code = int(dataset.factors.codes(HOSTILE[0], [row])[0])
        assert found["values"][HOSTILE[0]] == [(*HOSTILE, "plain")[code] if code >= 0 else ""]
        assert ask(source, q="thumbs", start=start) == sprite(dataset, [row], "image", 64).content


def test_colors_tell_levels_and_what_is_unknown(source):
    rows = numbers(ask(source, q="points")["rows"])
    found = ask(source, q="colours", factor=HOSTILE[0])
    assert [one["name"] for one in found["legend"]] == [
        *HOSTILE,
        "plain",
    ]  # row 7 is not finite
    np.testing.assert_array_equal(numbers(found["codes"]), rows % 5)
    named = on_grounds([rgb(name) for name in ACCESSIBLE[:5]])
    assert [found["colours"][:5], found["dark"][:5]] == [list(some) for some in zip(*named, strict=True)]
    yaw = ask(source, q="colours", factor="yaw")
    assert yaw["scale"] == [0, 360]
    assert yaw["legend"] == [{"name": "unknown", "colour": 200, "count": 1}]  # row 3
    np.testing.assert_array_equal(numbers(yaw["codes"]), np.where(rows == 3, 200, rows * 15 % 360 * 200 // 360))


def test_many_levels_leave_colors_for_the_most_frequent():
    codes = np.repeat(np.arange(14), np.arange(1, 15))
    table = FactorTable([Factor("who", Kind.NOMINAL, tuple("abcdefghijklmn"))], {"who": codes})
    found = color_rows(table, "who", np.arange(len(codes)))
    assert [name for name, _, _ in found.legend] == [*"fghijklmn", "5 others"]
    assert found.legend[-1][2] == 1 + 2 + 3 + 4 + 5
    assert [int(np.sum(found.codes == color)) for _, color, _ in found.legend] == [count for *_, count in found.legend]
    numbered = FactorTable([Factor("at", Kind.ORDINAL, tuple(range(300)))], {"at": np.arange(300)})
    scale = color_rows(numbered, "at", np.arange(300))
    assert scale.scale == (0, 299)
    assert (np.diff(scale.codes.astype(int)) >= 0).all()


def test_colors_are_told_apart_with_few_cones():
    """Of ten names, a scale and a cycle, under G. M. Machado et al.'s simulated protanopia and deuteranopia (2009)."""
    simulated = {
        "protanopia": [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        "deuteranopia": [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ],
    }
    scales = [
        np.array([rgb(name) for name in ACCESSIBLE]),
        accessible_ramp(np.linspace(0, 1, 6)),
        accessible_cycle(np.arange(8) / 8),
    ]
    for matrix, place in itertools.product(([[1, 0, 0], [0, 1, 0], [0, 0, 1]], *simulated.values()), range(2)):
        drawn = [np.array([rgb(pair[place]) for pair in on_grounds(colors)]) for colors in scales]
        seen = [_lab(colors, np.array(matrix)) for colors in drawn]
        for colors, least in zip(seen, ((0.045, 0.065, 0.07), (0.05, 0.07, 0.07))[place], strict=True):
            apart = np.linalg.norm(colors[:, None] - colors, axis=-1)
            assert apart[np.triu_indices(len(colors), 1)].min() > least
        assert (np.diff(seen[1][:, 0]) > 0.02).all()  # the scale is ever lighter


def test_colors_stand_out_of_light_and_of_dark_ground():
    """A contrast of 3:1, as WCAG 2.2 defines it (criterion 1.4.11), for all colours of points."""
    levels = FactorTable(
        [Factor("name", Kind.NOMINAL, tuple("abcdefghijkl")), Factor("turn", Kind.CYCLIC, tuple(range(7)))],
        {"name": np.append(np.arange(12), -1), "turn": np.arange(13) % 7},
    )
    numbers = FactorTable(
        [Factor("yaw", Kind.CONTINUOUS, None, "deg", 360.0), Factor("size", Kind.CONTINUOUS, None)],
        {name: np.append(np.linspace(0, 359, 12), np.nan).astype(np.float32) for name in ("yaw", "size")},
    )
    style = static("style.css").decode()
    assert [f"--card: {ground}" in style for ground in ("#fff", GROUNDS[1])] == [True, True]
    for table, name in ((levels, "name"), (levels, "turn"), (numbers, "yaw"), (numbers, "size")):
        found = color_rows(table, name, np.arange(13))
        for place, ground in enumerate(GROUNDS):
            light = np.array([_luminance(rgb(pair[place])) for pair in found.colors]) + 0.05
            paper = _luminance(rgb(ground)) + 0.05
            assert np.maximum(light / paper, paper / light).min() >= 3


def _luminance(color):
    linear = np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _lab(colors, matrix):
    """OKLab of sRGB as someone with other cones sees it."""
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ matrix.T, 0, 1)
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    lab = np.array(
        [
            [0.2104542553, 0.793617785, -0.0040720468],
            [1.9779984951, -2.428592205, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.808675766],
        ]
    )
    return np.cbrt(seen @ cones.T) @ lab.T


def test_an_exported_page_has_some_rows_with_all_their_answers(source, folder, tmp_path):
    out = export(page_of({}, embeddings=[source]), tmp_path / "page.html", rows=6)
    text = out.read_text()
    found = read(text)
    about = found[digest("")]["sources"]["e0"]
    assert (about["shown"], about["chunk"]) == (6, 64)
    near = found[digest(key_of({"s": "e0", "q": "near", "start": "0"}))]
    assert np.shape(near["places"]) == (6, 8)
    assert {place for places in near["places"] for place in places} <= {-1, 0, 1, 2, 3, 4, 5}
    assert found[digest(key_of({"s": "e0", "q": "points"}))]["count"] == 6
    assert str(folder.parent) not in text
    assert f"setsup explore FOLDER/{folder.name}" in text


def test_images_of_other_data_are_not_shown(folder):
    other = awkward().select(np.arange(23, -1, -1))
    source = open_embeddings(folder, [other])[0]
    assert source.about()["thumbs"] is None
    with pytest.raises(DataError, match="not included"):
        ask(source, q="thumbs", start=0)
    assert ask(source, q="rows", start=0)["rows"]


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("rows.npy", np.arange(9), r"a non-negative integer \(a row number\) for each of 10 rows"),
        ("embeddings.npy", np.zeros((9, 2)), "must be a numeric array with one embedding for each of 10 rows"),
        ("embeddings.npy", np.zeros((10, 4, 4, 2)), "contains maps"),
        ("embeddings.npy", np.array([None] * 10), "cannot be read"),
    ],
)
def test_what_does_not_fit_is_one_error(folder, tmp_path, file, content, sentence):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    np.save(tmp_path / file, content)
    with pytest.raises(DataError, match=sentence):
        open_embeddings(tmp_path)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("file", ["embeddings.npy", "rows.npy"])
def test_damaged_embeddings_are_read_or_refused_in_one_sentence(folder, tmp_path, file):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    datasets = [awkward()]

    def read(content):
        (tmp_path / file).write_bytes(content)
        for source in open_embeddings(tmp_path, datasets):
            for question in (
                {"q": "points"},
                {"q": "near", "start": 0},
                {"q": "rows", "start": 0},
                {"q": "colours", "factor": source.factors.names[0]},
            ):
                ask(source, **question)

    assert survives((folder / file).read_bytes(), read, 300, head=128) > 100


def test_questions_about_no_point_are_refused(source):
    for question in (
        {"q": "near", "start": 9},
        {"q": "rows", "start": -1},
        {"q": "colours", "factor": "none"},
        {"q": "x"},
    ):
        with pytest.raises(SetsupError):
            ask(source, **question)
    with pytest.raises(DataError, match="multiple of 4"):
        ask(replace(source, chunk=4), q="near", start=2)
