"""How draws are laid out on a page, and that questions of a page name no file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setsup
from setsup.errors import SamplerError
from setsup.pages import page_of
from setsup.pages.answers import key_of
from setsup.pages.questions import questions
from setsup.pages.sampler_page import KINDS, SamplerSource
from setsup.samplers import NeighbourSampler
from tests.samplers.overlap_distributions import table_of

SHAPES = setsup.load("shapes3d-procedural").where("scale == 0.75 and floor_hue == 0 and wall_hue == 0")
TABLE = SHAPES.factors
NEAR = (np.arange(len(TABLE))[:, None] + np.arange(1, 6)) % len(TABLE)


def draw(sampler: Any, step: int = 3, page: Any = None) -> dict[str, Any]:
    """A draw as a page tells it, of the sampler that the page begins with."""
    page = page or page_of({"": SHAPES}, {"": sampler})
    text = json.dumps(page.sources["s0"].plain(sampler))
    return json.loads(page.get(key_of({"s": "s0", "q": "draw", "sampler": text, "step": str(step)})).content)


def values(name: str, rows: Any) -> list[Any]:
    return TABLE.values(name, rows).tolist()


def words(value: Any) -> str:
    """A value as everywhere else: four digits where it is not an integer."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize(
    ("sampler", "roles"),
    [
        (setsup.TripletSampler(TABLE, ["shape"], triplets=3), ["anchor", "positive", "negative"]),
        (NeighbourSampler(TABLE, NEAR, positive="shape == anchor.shape", sets=3), ["anchor", "positive"]),
        (NeighbourSampler(TABLE, NEAR, sets=3), ["anchor", "neighbour"]),
        (setsup.FactorPairSampler(TABLE, pairs=3, k=1), ["first", "second"]),
        (setsup.EpisodeSampler(TABLE, "shape", ways=2, shots=1, queries=2), ["support", "query", "query"]),
    ],
    ids=lambda one: "" if isinstance(one, list) else type(one).__name__,
)
def test_positions_are_named_and_compared_with_the_first(sampler: Any, roles: list[str]) -> None:
    for one, rows in zip(draw(sampler)["sets"], sampler[3].indices, strict=True):
        assert one["roles"] == roles
        assert one["rows"] == rows.tolist()
        for other, found in zip(rows[1:], one["compared"], strict=True):
            pairs = {name: values(name, [rows[0], other]) for name in TABLE.names}
            assert found["shared"] == [name for name, (a, b) in pairs.items() if a == b]
            assert list(found["differs"]) == [name for name, (a, b) in pairs.items() if a != b]
            for name, said in found["differs"].items():
                unit = f" {TABLE[name].unit}" if TABLE[name].unit else ""
                assert said == [f"{words(value)}{unit}" for value in pairs[name]]


def test_orbits_have_their_canonical_row_and_what_their_members_differ_in() -> None:
    orbits = setsup.OrbitSampler(TABLE, ["object_hue", "shape"], sets=3, size=4, canonical={"orientation": 0.0})
    drawn = orbits[3]
    for one, rows, canonical in zip(draw(orbits)["sets"], drawn.indices, drawn.canonical, strict=True):
        assert one["canonical"] == canonical
        assert one["members"] == {"orientation": [words(value) for value in values("orientation", rows)]}
    asked = list(questions(page_of({"": SHAPES}, {"": orbits}), 1, 4))
    thumbs = [question["rows"] for question in asked if question.get("q") == "thumbs"]
    assert set(map(str, drawn.canonical.tolist())) <= set(thumbs)


def test_mixtures_and_zips_say_where_sets_and_rows_come_from() -> None:
    base = setsup.SetSampler(TABLE, [["shape"], []], where="object_hue < 0.5", size=6)
    mixed = setsup.Mixture(base, pool="object_hue >= 0.5", sets=[1], p=0.5)
    first, second = draw(mixed)["sets"]
    assert "pool" not in first
    assert second["pool"] == [value >= 0.5 for value in values("object_hue", mixed[3].indices[1])]
    assert any(second["pool"])
    both = setsup.Zip(setsup.TripletSampler(TABLE, "shape", triplets=1), setsup.SetSampler(TABLE, ["shape"], size=5))
    triplet, *sets = draw(both)["sets"]
    assert (triplet["of"], sets[0]["of"]) == ("TripletSampler, number 0 of the zip", "SetSampler, number 1 of the zip")
    assert triplet["rows"] == both[3].indices[0].tolist()
    assert triplet["mask"] == [True] * 3 + [False] * 2
    assert len(triplet["compared"]) == 2
    assert all("roles" not in one for one in sets)


def test_draws_by_weight_say_so_and_do_not_vary_by_it() -> None:
    weighted = draw(setsup.SetSampler(TABLE, ["shape"], size=6, weights="object_hue"))
    assert weighted["weights"] == "object_hue"
    assert [list(one["varying"]) for one in weighted["sets"]] == [
        [name for name in TABLE.names if name not in ("shape", "object_hue")]
    ] * 2
    near = draw(NeighbourSampler(TABLE, NEAR, sets=3, weights="object_hue"))
    assert near["weights"] == "object_hue"
    told = [[*one["compared"][0]["shared"], *one["compared"][0]["differs"]] for one in near["sets"]]
    assert not any("object_hue" in names for names in told)
    assert draw(setsup.SetSampler(TABLE, ["shape"], size=6))["weights"] == ""


def test_samplers_of_samplers_can_be_chosen() -> None:
    """What the form makes has no fingerprint in the samplers within."""
    assert {"NeighbourSampler", "Mixture", "Zip"} <= {kind.__name__ for kind in KINDS}
    page = page_of({"": SHAPES})
    assert [one["name"] for one in page.about()["sources"]["s0"]["kinds"]["Zip"]] == ["samplers"]
    sets = {"sampler": "SetSampler", "arguments": {"inactive": ["shape"], "size": 4}}
    text = json.dumps({"sampler": "Zip", "arguments": {"samplers": [sets, sets]}})
    found = json.loads(page.get(key_of({"s": "s0", "q": "draw", "sampler": text, "step": "9"})).content)
    alone = setsup.SetSampler(TABLE, ["shape"], size=4)
    assert [one["rows"] for one in found["sets"]] == setsup.Zip(alone, alone)[9].indices.tolist()


@pytest.fixture
def near(tmp_path: Path) -> NeighbourSampler:
    np.save(tmp_path / "near.npy", NEAR)
    return NeighbourSampler(TABLE, {7: tmp_path / "near.npy"}, sets=2)


def test_neighbour_tables_have_names(near: NeighbourSampler, tmp_path: Path) -> None:
    page = page_of({"": SHAPES}, {"": near})
    about = page.about()["sources"]["s0"]
    assert (about["tables"], about["begin"]) == (["near.npy"], "7")
    assert about["first"]["arguments"]["neighbours"] == '{"7":"near.npy"}'
    found = draw(near, 8, page)
    assert [one["rows"] for one in found["sets"]] == near[8].indices.tolist()
    assert str(tmp_path) not in json.dumps([page.about(), found])
    assert "'neighbours': {7: 'near.npy'}" in found["python"].replace("'7'", "7")
    scope: dict[str, Any] = {"SHAPES": SHAPES}
    code = found["python"].replace("setsup.open(...)", "SHAPES").replace("'near.npy'", repr(str(tmp_path / "near.npy")))
    assert "# neighbours has the name of a table" in code
    exec(code, scope)  # noqa: S102 it is what a reader would run
    np.testing.assert_array_equal(scope["draw"].indices, near[8].indices)
    asked = next(question for question in questions(page, 1, 2) if question.get("q") == "reach")
    assert len(json.loads(page.get(key_of(asked)).content)["groups"]) == len(near.reach(7).groups)
    steps = [question["step"] for question in questions(page, 1, 2) if question.get("q") == "draw"]
    assert steps == ["7", "8"]
    large = NeighbourSampler(TABLE, NEAR, sets=2)
    source = SamplerSource(SHAPES, first=setsup.Zip(large, near))
    assert list(source.tables) == ["neighbours", "near.npy"]
    assert list(source.plain(large)["arguments"]["neighbours"].values()) == ["neighbours"]


def test_overlap_tables_have_names(tmp_path: Path) -> None:
    overlaps = table_of(TABLE, (9, 8), by="shape")
    overlaps.save(tmp_path / "views.overlap")
    options: dict[str, Any] = {"overlap": (0.2, 0.9), "sets": 3}
    file, memory = (
        setsup.OverlapSampler(TABLE, source, **options) for source in (tmp_path / "views.overlap", overlaps)
    )
    for sampler, name in ((file, "views.overlap"), (memory, "overlaps")):
        page = page_of({"": SHAPES}, {"": sampler})
        about = page.about()["sources"]["s0"]
        assert about["tables"] == [name]
        assert about["first"]["arguments"]["overlaps"] == f'"{name}"'
        found = draw(sampler, 5, page)
        assert [one["rows"] for one in found["sets"]] == sampler[5].indices.tolist()
        assert found["sets"][0]["roles"] == ["first", "second"]
        json.dumps(found, allow_nan=False)
        assert str(tmp_path) not in json.dumps([page.about(), found])
        assert "# overlaps has the name of a table" in found["python"]
        for given in (str(tmp_path / "views.overlap"), file.arguments["overlaps"], "other", None, [[1]]):
            text = json.dumps({"sampler": "OverlapSampler", "arguments": {"overlaps": given, "overlap": [0.2, 0.9]}})
            with pytest.raises(SamplerError, match=f"overlaps on a page must be one of {name}"):
                page.get(key_of({"s": "s0", "q": "draw", "sampler": text, "step": "0"}))


@pytest.mark.parametrize(
    "neighbours",
    [
        "{path}",
        {"0": "{path}"},
        {"0": {"path": "{path}", "digest": "0" * 32}},
        {"path": "{path}", "digest": "0" * 32},
        "/etc/passwd",
        "another.npy",
        None,
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_no_question_reads_a_file(near: NeighbourSampler, tmp_path: Path, neighbours: Any, inside: bool) -> None:
    given = json.loads(json.dumps(neighbours).replace("{path}", str(tmp_path / "near.npy")))
    asked: dict[str, Any] = {"sampler": "NeighbourSampler", "arguments": {"neighbours": given}}
    if inside:
        asked = {"sampler": "Zip", "arguments": {"samplers": [asked]}}
    for text in (json.dumps(asked), json.dumps({**asked, "arguments": list(map(list, asked["arguments"].items()))})):
        question = key_of({"s": "s0", "q": "draw", "sampler": text, "step": "0"})
        with pytest.raises(SamplerError, match=r"neighbours on a page must be|mapping of names"):
            page_of({"": SHAPES}, {"": near}).get(question)


def test_sets_are_told_as_in_reports() -> None:
    """Also what is no factor of variation, such as the part of a joint dataset."""
    both = setsup.concat(SHAPES.where("shape == 'cube'"), SHAPES.where("shape == 'sphere'"))
    sampler = setsup.SetSampler(both.factors, [["shape"], []], size=6)
    found = draw(sampler, page=page_of({"": both}, {"": sampler}))["sets"]
    for one, told in zip(found, setsup.reports.describe(both.factors, sampler[3]), strict=True):
        assert one["varying"] == {name: varies.distinct for name, varies in told.varies.items()}
        assert ", ".join(f"{name} = {value}" for name, value in one["fixed"].items()) in told.fixed_words(both.factors)
    assert found[1]["varying"]["part"] == len(set(both.factors.values("part", found[1]["rows"]).tolist()))
