"""``setsup train``: short names of settings, and settings that the data complete."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Preset, presets  # noqa: E402
from setsup_cli.commands.train import short_options  # noqa: E402
from tests.cli.refusals import refused  # noqa: E402
from tests.experiments.fitted import WHOLE, FlatSettings  # noqa: E402

Run = Callable[..., Any]

FILE = str(Path(__file__).parents[1] / "experiments" / "fitted.py")
OWN = f"{FILE}:fitted/whole"


def settings_of(folder: str) -> Any:
    return json.loads(Path(folder, "run.json").read_text())["settings"]


def orbits(settings: Any) -> list[Any]:
    return [settings["sampler.orbit"], settings["method.orbit"]]


def printed(setsup: Run, *words: object) -> Any:
    found = setsup("train", *words, "--print-config", "--json")
    assert found.code == 0, found.err
    return found.json["settings"]


def test_a_short_name_sets_all_settings_that_have_it(setsup: Run) -> None:
    asked = ("--orbit", "wall_hue", "shape", "--canonical", "object_hue >= 0.5", "--steps", 1)
    found = setsup("train", OWN, *asked, "--out", "run", "--json")
    assert found.code == 0, found.err
    assert found.json["changed"] == {
        "sampler.orbit": ["wall_hue", "shape"],
        "sampler.canonical": "object_hue >= 0.5",
        "method.orbit": ["wall_hue", "shape"],
        "steps": 1,
    }
    kept = settings_of("run/seed-0")
    assert orbits(kept) == [["wall_hue", "shape"]] * 2
    assert kept["method.image"] == [3, 64, 64]
    again = setsup("train", OWN, *asked, "--out", "run", "--json")
    assert (again.code, again.json["runs"][0]["from_step"]) == (0, 1)


def test_what_is_changed_is_printed_as_it_is_given(setsup: Run) -> None:
    def line(*words: str) -> str:
        out: str = setsup("train", OWN, *words, "--steps", 1, "--dry-run").out
        return next(one for one in out.splitlines() if one.startswith("changed: "))

    assert line("--orbit", "wall_hue") == "changed: orbit wall_hue (not shape), steps 1 (not 2)"
    both = "changed: sampler.orbit wall_hue (not shape), method.orbit object_hue (not shape), steps 1 (not 2)"
    assert line("--sampler.orbit", "wall_hue", "--method.orbit", "object_hue") == both
    assert line("--sampler.orbit", "wall_hue") == "changed: sampler.orbit wall_hue (not shape), steps 1 (not 2)"


def test_long_and_short_names_together(setsup: Run) -> None:
    settings = printed(setsup, OWN, "--sampler.orbit", "wall_hue", "--method.orbit", "object_hue")
    assert [settings["sampler"]["orbit"], settings["method"]["orbit"]] == [["wall_hue"], ["object_hue"]]
    settings = printed(setsup, OWN, "--sampler.orbit", "wall_hue", "--orbit", "wall_hue")
    assert [settings["sampler"]["orbit"], settings["method"]["orbit"]] == [["wall_hue"]] * 2
    assert settings["method"]["image"] is None, "as it is asked for"
    for other in ("wall_hue", "shape"):  # the second is the default
        found = setsup("train", OWN, "--orbit", "object_hue", "--sampler.orbit", other)
        refused(found, "--orbit and --sampler.orbit have different values; use only one of them")
    assert printed(setsup, OWN, "--canonical", "none")["sampler"]["canonical"] is None


def test_a_short_name_wins_over_a_file_of_settings(setsup: Run, tmp_path: Path) -> None:
    text = setsup("train", OWN, "--print-config", "--orbit", "wall_hue", "--canonical", "first").out
    (tmp_path / "mine.yaml").write_text(text)
    settings = printed(setsup, "--config", "mine.yaml", "--orbit", "object_hue")
    assert [settings["sampler"]["orbit"], settings["method"]["orbit"]] == [["object_hue"]] * 2
    assert settings["sampler"]["canonical"] == "first"
    back = printed(setsup, "--config", "mine.yaml", "--orbit", "shape")  # as the preset has it
    assert [back["sampler"]["orbit"], back["method"]["orbit"]] == [["shape"]] * 2


def test_a_sweep_over_a_short_name(setsup: Run) -> None:
    words = ("train", OWN, "--steps", 1, "--sweep", "orbit=wall_hue,wall_hue shape", "--out", "runs")
    found = setsup(*words, "--json")
    assert found.code == 0, found.err
    assert [point["values"] for point in found.json["sweep"]] == [
        {"orbit": ["wall_hue"]},
        {"orbit": ["wall_hue", "shape"]},
    ]
    for folder, orbit in (("orbit=wall_hue", ["wall_hue"]), ("orbit=wall_hue shape", ["wall_hue", "shape"])):
        assert orbits(settings_of(f"runs/{folder}/seed-0")) == [orbit, orbit]
        assert settings_of(f"runs/{folder}/seed-0")["method.image"] == [3, 64, 64]
    again = setsup(*words, "--json")
    assert [run["from_step"] for point in again.json["sweep"] for run in point["runs"]] == [1] * 2
    twice = setsup("train", OWN, "--sweep", "orbit=wall_hue", "--sweep", "method.orbit=shape")
    assert (twice.code, "--sweep method.orbit=… is specified twice" in twice.err) == (2, True)


def test_evaluations_and_reports_take_the_run(setsup: Run) -> None:
    whole = f"{FILE}:fitted/halved"
    plan = setsup("train", whole, "--dry-run", "--json")
    assert (plan.code, plan.json["runs"][0]["parameters"]) == (0, 2 * 3 * 32 * 32 + 2), plan.err
    assert setsup("train", whole, "--out", "runs/one").code == 0
    found = setsup("eval", "runs/one/seed-0", "--preset", FILE, "--device", "cpu", "--json")
    assert found.code == 0, found.err
    shown = setsup("report", whole, "--json")
    assert shown.code == 0, shown.err
    [[line]] = [row["lines"] for row in shown.json["rows"]]
    assert line["differs"] == []
    assert line["values"]["untrained"]["mean"] == 6144


def test_help_says_what_a_short_name_sets(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = " ".join(setsup("train", OWN, "--help").out.split())
    assert "--orbit [TEXT ...]" in shown
    assert "Factors that members share; sets --sampler.orbit and --method.orbit." in shown
    assert "The canonical member; sets --sampler.canonical. [default: none]" in shown
    assert "--sampler.orbit" in shown


def marked(short: Any, kind: Any = str, value: Any = "a") -> Preset:
    """A preset with one setting of a short name."""
    namespace = {"__annotations__": {"mark": kind}, "mark": field(default=value, metadata={"option": short})}
    settings = dataclass(frozen=True, kw_only=True)(type("Marked", (FlatSettings,), namespace))
    return replace(WHOLE, method=settings())


@pytest.mark.parametrize(
    ("preset", "sentence"),
    [
        *(
            (
                marked(short),
                rf"method.mark cannot have the short name '{short}', which is another option; choose another",
            )
            for short in ("out", "seed", "seeds", "n", "o", "steps", "sampler", "clip_norm", "help", "json", "q")
        ),
        (marked("a-b"), "'a-b', which must consist of letters, digits and _"),
        (marked("help me"), "which must consist of letters"),
        (marked("orbit"), "sampler.orbit and method.orbit and method.mark .* 'orbit': their types differ"),
        (
            marked("mark", tuple[tuple[int, ...], ...], ()),
            "method.mark .* 'mark': its type cannot be written as an option",
        ),
    ],
)
def test_short_names_that_cannot_be_options(preset: Preset, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence):
        short_options(preset)


def test_all_presets_have_short_names_that_are_free() -> None:
    for preset in presets().values():
        short_options(preset)
