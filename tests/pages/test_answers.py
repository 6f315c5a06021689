"""What a page answers, beside what Python says of the same data."""

import io
import json
import shlex

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError, FactorError, RowError, SamplerError, SetsupError
from setsup.factors.expression import literal, quote
from setsup.pages import page_of
from setsup.pages.answers import Query, digest, key_of
from setsup.pages.dataset_page import PAGE_ROWS
from setsup.pages.draw_sheet import describe_draw
from setsup.pages.sampler_page import first_sampler, sampler_text
from setsup_cli.main import main
from tests.pages.sources import HOSTILE, awkward, uneven

SHAPES = setsup.load("shapes3d-procedural")
PAGE = page_of({"shapes3d-procedural": SHAPES})


def ask(page, /, **question):
    answer = page.get(key_of({name: str(value) for name, value in question.items()}))
    return json.loads(answer.content) if answer.media == "application/json" else answer


def picture(answer):
    return np.asarray(Image.open(io.BytesIO(answer.content)))


def test_the_page_says_what_there_is():
    about = ask(PAGE)
    assert about["sources"]["d0"]["rows"] == 480_000
    assert [one["name"] for one in about["sources"]["d0"]["factors"]] == list(SHAPES.factors.names)
    assert about["sources"]["d0"]["licence"] == "Apache-2.0"
    assert about["sources"]["s0"]["first"]["fingerprint"] == SHAPES.factors.fingerprint


@pytest.mark.parametrize("where", ["", "wall_hue == 0.1", "shape == 'cube' and scale >= 1.0", "scale > 7"])
def test_counts_and_joint_counts(where):
    rows = SHAPES.factors.rows(where) if where else np.arange(len(SHAPES))
    found = ask(PAGE, s="d0", q="counts", where=where)
    assert found["rows"] == len(rows)
    for name in SHAPES.factors.names:
        expected = np.bincount(SHAPES.factors.codes(name, rows), minlength=len(SHAPES.factors[name]))
        assert found["factors"][name] == {"counts": expected.tolist(), "unknown": 0}
    joint = ask(PAGE, s="d0", q="joint", x="shape", y="scale", where=where)["counts"]
    codes = SHAPES.factors.codes("shape", rows) * 8 + SHAPES.factors.codes("scale", rows)
    assert joint == np.bincount(codes, minlength=32).reshape(4, 8).tolist()


def test_filters_by_a_level_mean_that_level_whatever_it_is_called():
    dataset = awkward()
    page = page_of({"": dataset})
    for factor in dataset.factors.factors:
        for code, level in enumerate(factor.levels or ()):
            found = ask(page, s="d0", q="counts", where=f"{quote(factor.name)} == {literal(level)}")
            assert found["rows"] == int((dataset.factors.codes(factor.name) == code).sum())
    found = ask(page, s="d0", q="counts", where="")["factors"]
    assert found[HOSTILE[0]]["unknown"] == 1
    assert found["yaw"]["unknown"] == 1
    assert sum(found["yaw"]["counts"]) == 23


@pytest.mark.parametrize("where", ["", "shape == 'cube' and wall_hue == 0.5"])
def test_every_row_is_on_one_page_in_either_order(where):
    small = SHAPES.where("scale == 0.75 and orientation == 0 and floor_hue == 0")
    page = page_of({"small": small})
    rows = small.factors.rows(where) if where else np.arange(len(small))
    for order in ("table", "random"):
        found = []
        for number in range(-(-len(rows) // PAGE_ROWS)):
            answer = ask(page, s="d0", q="rows", order=order, page=number, where=where)
            assert answer["count"] == len(rows)
            found += answer["rows"]
            for name, values in answer["values"].items():
                assert values == [str(one) for one in small.factors.values(name, answer["rows"])]
        assert sorted(found) == rows.tolist()
        assert (found == rows.tolist()) == (order == "table")
    beyond = ask(page, s="d0", q="rows", order="random", page=1000, where=where)
    assert beyond["rows"] == []


def test_thumbnails_and_whole_images_are_those_of_the_rows():
    rows = [5, 77_777, 479_999, 5]
    sheet = picture(ask(PAGE, s="d0", q="thumbs", rows=",".join(map(str, rows))))
    assert sheet.shape == (64, 8 * 64, 3)
    for place, row in enumerate(rows):
        shown = sheet[:, place * 64 : place * 64 + 64].astype(int)
        assert np.abs(shown - SHAPES.fetch(row)["image"]).mean() < 6
    whole = picture(ask(PAGE, s="d0", q="image", row=77_777, modality="image"))
    np.testing.assert_array_equal(whole, SHAPES.fetch(77_777)["image"])
    told = ask(PAGE, s="d0", q="row", row=77_777)
    assert told["values"] == {name: str(value) for name, value in SHAPES.factors.row(77_777).items()}
    assert told["modalities"] == [{"name": "image", "words": "uint8 64 × 64 × 3", "image": True}]


def test_photographs_of_several_sizes_have_thumbnails(tmp_path):
    for name, size, color in (("a", (40, 20), (200, 0, 0)), ("b", (300, 400), (0, 0, 200))):
        Image.new("RGB", size, color).save(tmp_path / f"{name}.png")
    (tmp_path / "photos.csv").write_text("path,name\na.png,a\nb.png,b\n")
    page = page_of({"photos": setsup.open(tmp_path / "photos.csv")})
    sheet = picture(ask(page, s="d0", q="thumbs", rows="0,1,0"))
    assert sheet[32, 32 : 3 * 64 : 64, :3].argmax(-1).tolist() == [0, 2, 0]
    clear = sheet[:, : 2 * 64, 3].reshape(64, 2, 64) == 0  # the page is seen beside and above what is no square
    assert clear[:, 0].sum() == 64 * 64 - 40 * 20
    assert clear[:, 1].sum() == 64 * (64 - 48)


def test_arrays_that_are_no_images_are_shown_or_said():
    depth = np.linspace(1, 3, 4 * 8 * 9, dtype=np.float32).reshape(4, 8, 9)
    depth[0, 0, 0] = np.nan
    dataset = setsup.from_arrays({"depth": depth, "code": np.arange(12).reshape(4, 3)}, factors={"a": [0, 0, 1, 1]})
    page = page_of({"": dataset})
    told = {one["name"]: one for one in ask(page, s="d0", q="row", row=1)["modalities"]}
    assert told["depth"]["image"]
    assert "from black to white" in told["depth"]["words"]
    assert told["code"]["words"].endswith(": 3, 4, 5")
    grey = picture(ask(page, s="d0", q="image", row=3, modality="depth"))
    assert grey.shape == (8, 9)
    assert (grey.min(), grey.max()) == (0, 255)
    with pytest.raises(DataError, match="cannot show the image: int64"):
        ask(page, s="d0", q="image", row=0, modality="code")
    with pytest.raises(DataError, match="has no images"):
        ask(page, s="d0", q="thumbs", rows="0")


@pytest.mark.parametrize("step", [0, 7, 2**62 + 1, 2**63 - 1])
@pytest.mark.parametrize("make", [
    lambda table: setsup.SetSampler(table, ["wall_hue"], size=6, sets=3, seed=2**64 - 1),
    lambda table: setsup.OrbitSampler(table, "shape", size=3, sets=2, canonical="first"),
    lambda table: setsup.FactorPairSampler(table, 4, k=2),
    lambda table: setsup.SetSampler(table, ["wall_hue"], size={0: 4, 9: 6}),
])  # fmt: skip
def test_draws_are_those_of_the_sampler(step, make):
    sampler = make(SHAPES.factors)
    found = ask(PAGE, s="s0", q="draw", sampler=sampler_text(sampler), step=step)
    draw = sampler[step]
    assert [one["rows"] for one in found["sets"]] == draw.indices.tolist()
    assert found["step"] == str(step)
    for place, one in enumerate(found["sets"]):
        for name, value in one["fixed"].items():
            level = SHAPES.factors[name].levels[int(draw.inactive[name][place])]
            assert value.split(" ")[0] == (f"{level:.4g}" if isinstance(level, float) else level)
        rows = draw.indices[place] if draw.mask is None else draw.indices[place][draw.mask[place]]
        for name, values in one["varying"].items():
            assert values == len(np.unique(SHAPES.factors.codes(name, rows)))
        if draw.canonical is not None:
            assert one["canonical"] == draw.canonical[place]
        if draw.mask is not None:
            assert one.get("mask", [True] * len(draw.mask[place])) == draw.mask[place].tolist()
    assert json.loads(found["described"]["arguments"]["seed"]) == sampler.arguments["seed"]


def test_python_and_command_give_the_same_draw(tmp_path, capsys):
    sampler = setsup.SetSampler(SHAPES.factors, ["wall_hue", "shape"], size=3, sets=2, seed=4, where="scale == 0.75")
    found = ask(PAGE, s="s0", q="draw", sampler=sampler_text(sampler), step=2)
    scope: dict = {}
    exec(found["python"], scope)  # noqa: S102 it is what a reader would run
    np.testing.assert_array_equal(scope["draw"].indices, sampler[2].indices)
    np.testing.assert_array_equal(scope["arrays"]["image"], SHAPES.fetch(sampler[2].indices)["image"])
    assert main([*shlex.split(found["command"])[1:], "--json", "--out", str(tmp_path / "sheet")]) == 0
    assert json.loads(capsys.readouterr().out)["draws"][2]["indices"] == sampler[2].indices.tolist()


def test_python_and_command_run_on_images_of_several_sizes(tmp_path, monkeypatch, capsys):
    lines = ["path,subject"]
    for row in range(8):
        Image.new("RGB", (40 + row, 30 - row), (30 * row, 9, 9)).save(tmp_path / f"{row}.png")
        lines.append(f"{row}.png,s{row % 2}")
    (tmp_path / "photos.csv").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    page = page_of({"photos.csv": setsup.open("photos.csv")}, options={"photos.csv": {}})
    sampler = setsup.SetSampler(setsup.open("photos.csv").factors, ["subject"], size=3, sets=2)
    found = ask(page, s="s0", q="draw", sampler=sampler_text(sampler), step=2)
    scope: dict = {}
    exec(found["python"], scope)  # noqa: S102 it is what a reader would run
    shapes = [one["image"].shape for one in scope["arrays"]]
    assert shapes == [(30 - row, 40 + row, 3) for row in sampler[2].indices.ravel()]
    assert main([*shlex.split(found["command"])[1:], "--json", "--out", str(tmp_path / "sheet")]) == 0
    assert json.loads(capsys.readouterr().out)["draws"][2]["indices"] == sampler[2].indices.tolist()


def test_ranks_draw_their_share():
    sampler = setsup.SetSampler(SHAPES.factors, ["wall_hue"], size=4)
    for rank in range(3):
        found = ask(PAGE, s="s0", q="draw", sampler=sampler_text(sampler), step=5, rank=rank, world=3)
        assert found["step"] == str(15 + rank)
        assert [one["rows"] for one in found["sets"]] == sampler[15 + rank].indices.tolist()
    with pytest.raises(SamplerError, match="beyond the last step"):
        ask(PAGE, s="s0", q="draw", sampler=sampler_text(sampler), step=2**63 - 1, rank=0, world=2)


def test_reach_row_when_and_coverage():
    dataset = uneven()
    page = page_of({"animals": dataset})
    sampler = setsup.SetSampler(dataset.factors, ["species"], size=2, sets=1, on_small_group="drop")
    text = sampler_text(sampler)
    reach = ask(page, s="s0", q="reach", sampler=text)
    (groups,) = reach["groups"]
    assert groups["never"][0]["first"] == ["species = emu"]
    assert "on_small_group='short'" in groups["never"][0]["option"]
    assert groups["first"] == [
        {"group": "species = cat", "rows": 5, "chance": 0.5},
        {"group": "species = dog", "rows": 3, "chance": 0.5},
    ]
    row = ask(page, s="s0", q="row", sampler=text, row=0)
    assert (row["chance"], row["wait"]) == (pytest.approx(0.2), pytest.approx(5))
    assert ask(page, s="s0", q="row", sampler=text, row=8)["reasons"][0]["option"].startswith("lower size")
    assert ask(page, s="s0", q="row", sampler=text, row=8)["wait"] is None
    when = ask(page, s="s0", q="when", sampler=text, row=0, step=2**62)
    first = int(when["steps"][0])
    assert first == int(sampler.when(0, 2**62, 2**62 + 1000)[0])
    never = ask(page, s="s0", q="when", sampler=text, row=8, step=10)
    assert never == {"steps": [], "until": "100010", "ends": False}
    coverage = ask(page, s="s0", q="coverage", sampler=text)
    for stop, rows in list(zip(coverage["steps"], coverage["rows"], strict=True))[:8]:
        assert rows == len(np.unique(sampler.block(0, stop).indices))
    assert coverage["of"] == 9


def test_a_sampler_of_another_table_is_refused():
    sampler = setsup.SetSampler(uneven().factors, ["species"], size=1)
    with pytest.raises(SamplerError, match="table with the fingerprint"):
        ask(PAGE, s="s0", q="draw", sampler=sampler_text(sampler), step=0)


def test_the_first_sampler_draws_from_what_there_is():
    assert first_sampler(SHAPES.factors).arguments["inactive"] == ["floor_hue"]
    table = setsup.FactorTable.from_values({"id": ["a", "b", "c"]})
    assert first_sampler(table) is None
    dataset = setsup.from_arrays({"number": np.arange(3.0)}, factors=table)
    assert ask(page_of({"x": dataset}))["sources"]["s0"]["first"] is None
    draw = setsup.SetSampler(uneven().factors, ["species"], size=1)[0]
    json.dumps(describe_draw(uneven().factors, draw)["sets"][0]["fixed"])


@pytest.mark.parametrize(
    ("question", "error", "words"),
    [
        ({"s": "x"}, DataError, "no source"),
        ({"s": "../../etc"}, DataError, "no source"),
        ({"s": "d0"}, DataError, "has no parameter q"),
        ({"s": "d0", "q": "nothing"}, DataError, "q must be one of"),
        ({"s": "d0", "q": "counts", "where": "a" * 2001}, DataError, "more than 2,000"),
        ({"s": "d0", "q": "counts", "where": "__import__('os')"}, FactorError, "a function call"),
        ({"s": "d0", "q": "rows", "order": "table", "page": "-1"}, DataError, "integer from 0"),
        ({"s": "d0", "q": "rows", "order": "table", "page": "٣"}, DataError, "integer from 0"),
        ({"s": "d0", "q": "row", "row": "480000"}, DataError, "to 479,999"),
        ({"s": "d0", "q": "thumbs", "rows": "0," * 64 + "0"}, DataError, "up to 64"),
        ({"s": "d0", "q": "image", "row": "0", "modality": "/etc/passwd"}, DataError, "must be one of"),
        ({"s": "d0", "q": "joint", "x": "shape", "y": "nothing"}, FactorError, "unknown factor"),
        ({"s": "s0", "q": "draw", "sampler": "[" * 5000, "step": "0"}, DataError, "not valid JSON"),
        ({"s": "s0", "q": "draw", "sampler": "{}", "step": "0"}, SamplerError, "description of a sampler must have"),
        ({"s": "s0", "q": "draw", "sampler": "[]", "step": "0"}, SamplerError, "description of a sampler must have"),
        ({"s": "s0", "q": "draw", "sampler": '{"sampler":"SetSampler","arguments":{"inactive":["shape"],"size":4000}}',
          "step": "0"}, SamplerError, "too large to show"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_one_sentence(question, error, words):
    with pytest.raises(error, match=words) as found:
        PAGE.get(key_of(question))
    assert isinstance(found.value, SetsupError)
    assert not isinstance(found.value, RowError) or words


@pytest.mark.parametrize("key", ["s=d0&s=d0", "&&&", "a", "x" * 20_000, "&".join(f"a{n}=1" for n in range(17))])
def test_keys_that_are_no_questions(key):
    with pytest.raises(DataError):
        Query.parse(key)


def test_digests_are_those_of_the_published_function():
    # of the test suite of FNV: fnv1a 64
    assert digest("") == "cbf29ce484222325"
    assert digest("a") == "af63dc4c8601ec8c"
    assert digest("foobar") == "85944171f73967e8"


def test_large_tables_are_estimated_from_rows_that_are_the_same_each_time(monkeypatch):
    assert ask(PAGE)["sources"]["d0"]["sample"] == 0
    monkeypatch.setattr("setsup.pages.dataset_page._LARGE", 1000)
    page = page_of({"": SHAPES})
    sample = ask(page)["sources"]["d0"]["sample"]
    for where in ("", "wall_hue == 0.1 or shape == 'cube'", "scale > 7"):
        found, exact = (ask(page, s="d0", q=q, where=where) for q in ("estimate", "counts"))
        assert found["sample"] == sample == 32_768
        assert found == ask(page_of({"": SHAPES}), s="d0", q="estimate", where=where)
        # what the page says of it: 1.96 standard errors of a share are at most .6 %; five are never left
        most = 5 * 0.5 / np.sqrt(sample) * len(SHAPES)
        assert abs(found["rows"] - exact["rows"]) < most
        for name, one in exact["factors"].items():
            assert np.abs(np.subtract(found["factors"][name]["counts"], one["counts"])).max() < most
    counted = ask(page, s="d0", q="estimate", where="count(shape) == 120000")
    assert counted == ask(page, s="d0", q="counts", where="")  # about the whole table: not to be estimated


NEAR = (np.arange(12)[:, None] + np.arange(1, 4)) % 12
TWELVE = setsup.FactorTable.from_values({"kind": [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2], "place": [0, 1, 2] * 4})
TWELVE_PAGE = page_of({"": setsup.from_arrays({"number": np.arange(12)}, factors=TWELVE)})
CHANGING = {
    "one size": ({0: 2, 3: 3}, lambda size: setsup.SetSampler(TWELVE, ["kind"], size=size, sets=2)),
    "sizes of sets": ([3, {0: 1, 2: 2}], lambda size: setsup.SetSampler(TWELVE, ["kind"], size=size, sets=2)),
    "factors": ({0: 1, 4: 2}, lambda k: setsup.FactorPairSampler(TWELVE, 2, k=k)),
    "neighbours": ({0: NEAR, 3: NEAR[:, :1]}, lambda near: setsup.NeighbourSampler(TWELVE, near, sets=2)),
    "within a zip": (
        {0: 1, 2: 2},
        lambda size: setsup.Zip(
            setsup.SetSampler(TWELVE, ["kind"], size=size, sets=1), setsup.SetSampler(TWELVE, [], size=2, sets=1)
        ),
    ),
    "a rising share": (
        {"end": 0.5, "every": 2, "levels": 3},
        lambda p: setsup.Mixture(
            setsup.SetSampler(TWELVE, [], sets=2, size=2, where="kind < 2"), pool="kind == 2", sets=[1], p=p
        ),
    ),
}


@pytest.mark.parametrize("name", CHANGING)
def test_chances_are_those_of_the_options_of_a_step(name):
    """Asked as the page asks, at the step that the draw names, they are those of each step."""
    plain, make = CHANGING[name]
    sampler = make(plain)
    text, asked = sampler_text(sampler), set()
    for step in range(6):
        since = ask(TWELVE_PAGE, s="s0", q="draw", sampler=text, step=step)["since"]
        asked.add(since)
        chances = [ask(TWELVE_PAGE, s="s0", q="row", sampler=text, row=row, step=since)["chance"] for row in range(12)]
        expected = sampler.reach(step).chance(np.arange(12))
        np.testing.assert_allclose(np.array(chances, dtype=float), expected)
    assert 1 < len(asked) < 6  # steps with the same options have one answer


def test_chances_at_a_later_step_are_those_of_its_draws():
    """Sets of one row, and one of two from step 100 on: by enumeration, and as often as the draws have the row."""
    sampler = setsup.SetSampler(TWELVE, ["kind"], size=[1, {0: 1, 100: 2}], sets=2)
    for step, often in ((99, 1), (100, 2), (2**62, 2)):
        since = ask(TWELVE_PAGE, s="s0", q="draw", sampler=sampler_text(sampler), step=step)["since"]
        assert since == ("0" if step < 100 else "100")
        found = ask(TWELVE_PAGE, s="s0", q="row", sampler=sampler_text(sampler), row=0, step=since)["chance"]
        assert found == pytest.approx(1 - (1 - 1 / 9) * (1 - often / 9))  # of 3 kinds, of the 3 rows of this one
    draws = sampler.block(2**62, 2**62 + 20_000)
    share = float(((draws.indices == 0) & draws.mask).any(axis=(1, 2)).mean())
    assert abs(share - found) < 5 * np.sqrt(found * (1 - found) / 20_000)


def test_finite_samplers_are_shown_to_their_end():
    epoch = setsup.EpochSampler(TWELVE, size=4, epochs=1)
    text = sampler_text(epoch)
    found = ask(TWELVE_PAGE, s="s0", q="draw", sampler=text, step=0)
    assert (found["last"], found["since"]) == ("2", "0")
    assert ask(TWELVE_PAGE, s="s0", q="draw", sampler=text, step=0, rank=1, world=2)["last"] == "0"
    coverage = ask(TWELVE_PAGE, s="s0", q="coverage", sampler=text)
    assert (coverage["steps"], coverage["rows"]) == ([1, 2, 3], [4, 8, 12])
    row = int(epoch[1].indices[0, 0])
    assert ask(TWELVE_PAGE, s="s0", q="when", sampler=text, row=row, step=0)["steps"] == ["1"]
    for step in (2, 3):  # the last one, and the end, after it
        never = ask(TWELVE_PAGE, s="s0", q="when", sampler=text, row=row, step=step)
        assert never == {"steps": [], "until": "3", "ends": True}


def test_the_last_step_of_all_is_searched():
    sampler = setsup.SetSampler(TWELVE, ["kind"], size=2, sets=2)
    row = int(sampler[2**63 - 1].indices[0, 0])
    asked = {"s": "s0", "q": "when", "sampler": sampler_text(sampler), "row": row}
    assert ask(TWELVE_PAGE, **asked, step=2**63 - 1)["steps"] == [str(2**63 - 1)]
    assert ask(TWELVE_PAGE, **asked, step=2**63) == {"steps": [], "until": str(2**63), "ends": True}
    assert ask(TWELVE_PAGE)["sources"]["s0"]["last"] == str(2**63 - 1)


def test_when_is_told_in_steps_of_a_rank():
    sampler = setsup.NeighbourSampler(TWELVE, {5: NEAR}, sets=2)
    asked = {"s": "s0", "q": "when", "sampler": sampler_text(sampler), "row": 3}
    for rank in range(4):
        expected = [step for step in range(40) if 4 * step + rank >= 5 and 3 in sampler[4 * step + rank].indices]
        for start in (0, 1, 7):
            steps = ask(TWELVE_PAGE, **asked, step=start, rank=rank, world=4)["steps"]
            assert [int(one) for one in steps if int(one) < 40] == [one for one in expected if one >= start][:16]
    epoch = setsup.EpochSampler(TWELVE, size=4, epochs=1)  # rank 1 of 2 has one draw, and one that only pads
    asked = {"s": "s0", "q": "when", "sampler": sampler_text(epoch), "row": int(epoch[2].indices[0, 0]), "world": 2}
    assert ask(TWELVE_PAGE, **asked, step=0, rank=0)["steps"] == ["1"]
    assert ask(TWELVE_PAGE, **asked, step=0, rank=1) == {"steps": [], "until": "1", "ends": True}


def test_samplers_that_begin_later_are_counted_from_there():
    sampler = setsup.NeighbourSampler(TWELVE, {5: NEAR}, sets=2)
    coverage = ask(TWELVE_PAGE, s="s0", q="coverage", sampler=sampler_text(sampler))
    for stop, rows in list(zip(coverage["steps"], coverage["rows"], strict=True))[:4]:
        assert rows == len(np.unique(sampler.block(5, 5 + stop).indices))
    row = int(sampler[5].indices[0, 0])
    assert ask(TWELVE_PAGE, s="s0", q="when", sampler=sampler_text(sampler), row=row, step=0)["steps"][0] == "5"


def test_neighbour_tables_of_questions_are_not_kept():
    dataset = setsup.from_arrays({"number": np.arange(60)}, factors={"kind": np.arange(60) % 3})
    page = page_of({"": dataset})
    for shift in (1, 2):
        near = (np.arange(60)[:, None] + shift + np.arange(10)) % 60  # more numbers than a table without a name has
        sampler = setsup.NeighbourSampler(dataset.factors, near, sets=2)
        found = ask(page, s="s0", q="draw", sampler=sampler_text(sampler), step=0)
        assert json.loads(found["described"]["arguments"]["neighbours"]) == {"0": near.tolist()}
    assert page.sources["s0"].about()["tables"] == []


@pytest.mark.parametrize(
    ("sampler", "sentence"),
    [
        ('{"sampler":"SetSampler","fingerprint":"\\udfff","arguments":{}}', "half of a surrogate pair"),
        ('{"sampler":"SetSampler","arguments":{"\\ud800":1}}', "half of a surrogate pair"),
        ("[" * 900 + "]" * 900, "nested more than 64 levels deep"),
    ],
)
def test_what_no_answer_could_repeat_is_refused(sampler, sentence):
    with pytest.raises(DataError, match=sentence):
        PAGE.get(key_of({"s": "s0", "q": "draw", "step": "0", "sampler": sampler}))
