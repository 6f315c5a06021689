"""Runs of presets as they were before they were corrected: readable, and never pooled with new ones.

``former_presets.json`` has the settings that runs of an earlier version keep in ``run.json`` and ``evaluation.json``.
"""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from setsup.experiments import find_preset, find_report, report_on
from setsup.experiments.runs.run_folder import open_run
from setsup.experiments.settings import describe, flatten

FORMER = {one["preset"]: one for one in json.loads(Path(__file__).with_name("former_presets.json").read_text())}

CHANGED = {
    "cmc/fig6-m64": ("cmc/fig6", "conv5: accuracy", "steps 395,903 → 237,542"),
    "cmc/imagenet-resnet50": ("cmc/table2", "pool: accuracy", "layers.decays 60 75 90 → 60 80"),
    "cmc/stl10-nce": ("cmc/table5", "conv5: accuracy", "layers.betas 0.5 0.999 → none"),
    "cmc/nyu-contrast-depth": ("cmc/table4", "conv5: accuracy", "layers.rate 0.001 → 0.1"),
    "abc/table2-cars": ("abc/table2-cars", "median error", "sampler.every 6,000 → none"),
    "abc/table2-cars-regression": ("abc/table2-cars", "median error", "method.angles azimuth elevation theta →"),
    "abc/table2-cars-small": ("abc/table2-cars-small", "median error", "sampler.every 150 → none"),
    "abc/figS5-cosine-0.1": ("abc/figS5", "median error", "method.angles azimuth elevation theta →"),
    "dcodr/cars3d-lord-latent": ("dcodr/cars3d-lord-latent", "seconds per epoch", "method.lazy_codes False → True"),
    "dcodr/cars3d-lord": ("dcodr/table2", "domain: accuracy", "method.lazy_codes False → True"),
}
"""By preset: a report with it, a value, and words of what is different."""

SAME = {
    "dcodr/cars3d-lord-small": ("dcodr/cars3d-lord-small", "domain: accuracy"),
    "pixels/colors-inf-010": ("pixels/colors-inf-010", "ID"),
}


def stored(folder: Path, described: dict[str, Any], seed: int, key: str, value: float) -> Path:
    """A finished run as it lies on the disk, whose evaluations all have the value."""
    folder.mkdir(parents=True)
    steps = described["settings"]["steps"]
    about = {
        "preset": described["preset"],
        "seed": seed,
        "substitute": False,
        "settings": described["settings"],
        "config": {"precision": "float32"},
    }
    (folder / "run.json").write_text(json.dumps(about))
    entries = {
        name: {"about": settings, "steps": steps, "values": {key: value}, "curves": {}, "pictures": []}
        for name, settings in described["evaluations"].items()
    }
    (folder / "evaluation.json").write_text(json.dumps(entries))
    return folder


def now(name: str) -> dict[str, Any]:
    preset = find_preset(name)
    evaluations = {key: describe(one) for key, one in preset.evaluations.items()}
    return json.loads(json.dumps({"preset": name, "settings": flatten(preset), "evaluations": evaluations}))


@pytest.mark.parametrize("name", CHANGED)
def test_a_run_of_a_former_preset_stands_beside_new_ones(name: str, tmp_path: Path) -> None:
    report, key, words = CHANGED[name]
    old = stored(tmp_path / "old", FORMER[name], 0, key, 0.25)
    new = [stored(tmp_path / f"new-{seed}", now(name), seed, key, value) for seed, value in ((0, 0.5), (1, 0.75))]
    run = open_run(old)
    assert (run.preset.steps, run.seed) == (FORMER[name]["settings"]["steps"], 0)
    filled = report_on(find_report(report), [tmp_path])
    assert not filled.notes
    lines = [line for line in filled.lines if line.row.preset == name and line.folders]
    before, after = ([line for line in lines if bool(line.differs) is differs] for differs in (True, False))
    for line in before:
        assert line.folders == (str(old),)
        assert not line.comparable  # no claim is tested by it
        assert words in ", ".join(line.differs)
    for line in after:
        assert set(line.folders) == set(map(str, new))
    assert before
    assert after
    means = {spread.mean for line in lines for spread in line.values.values()}
    assert means <= {0.25, 0.625}, "never the mean of all three"


@pytest.mark.parametrize("name", SAME)
def test_runs_of_presets_that_were_not_changed_are_still_their_own(name: str, tmp_path: Path) -> None:
    report, key = SAME[name]
    stored(tmp_path / "old", FORMER[name], 0, key, 0.25)
    stored(tmp_path / "new", now(name), 1, key, 0.5)
    lines = [line for line in report_on(find_report(report), [tmp_path]).lines if line.folders]
    assert {line.row.preset for line in lines} == {name}
    line = lines[0]
    assert (line.seeds, line.differs, line.comparable) == ((0, 1), (), True)


def test_runs_with_the_schedule_of_the_code_are_those_of_its_preset(tmp_path: Path) -> None:
    """Until it was corrected, figure 6 had the schedule of the published code, which is a preset of its own now."""
    old = stored(tmp_path / "old", FORMER["cmc/fig6-m64"], 0, "conv5: accuracy", 0.25)
    lines = [line for line in report_on(find_report("cmc/fig6-code"), [tmp_path]).lines if line.folders]
    assert [(line.folders, line.differs, line.row.preset) for line in lines] == [((str(old),), (), "cmc/fig6-m64-code")]
