"""Runs on a page: curves as they are logged, and the batches that were trained on."""

import io
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

import setsup  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import Measured, find_preset, train, trained_on  # noqa: E402
from setsup.experiments.training.monitoring.first_batch import batch_sheet  # noqa: E402
from setsup.pages import export, page_of  # noqa: E402
from setsup.pages.answers import key_of  # noqa: E402
from setsup.pages.run_page import read_metrics, spikes, thin  # noqa: E402
from tests.experiments.small import AUGMENTED  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    preset = replace(AUGMENTED, steps=6)
    return train(preset, tmp_path_factory.mktemp("runs") / "seed-5", seed=5)


def ask(page, /, **question):
    answer = page.get(key_of({name: str(value) for name, value in question.items()}))
    return json.loads(answer.content) if answer.media == "application/json" else answer.content


def test_curves_are_those_of_the_run(run):
    page = page_of({}, runs=[run])
    about = ask(page)["sources"]["r0"]
    assert (about["trained"], about["steps"], about["folder"]) == (6, 6, "seed-5")
    lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
    for metric in about["metrics"]:
        found = ask(page, s="r0", q="curve", metric=metric)
        assert found == {"steps": list(range(1, 7)), "values": [line[metric] for line in lines], "of": 6, "spikes": []}


def test_batches_are_those_that_were_trained_on(run):
    page = page_of({}, runs=[run])
    for step in (1, 4, 6):
        found, expected = ask(page, s="r0", q="batch", step=step), trained_on(run, step)
        assert [one["rows"] for one in found["sets"]] == expected.batch["indices"].tolist()
        assert found["draw"] == str(step - 1)
        sheet = np.asarray(Image.open(io.BytesIO(ask(page, s="r0", q="sheet", step=step))))
        views = getattr(run.preset.method, "views", ())
        np.testing.assert_array_equal(sheet, np.asarray(batch_sheet(expected.batch, views, 80)))
    with pytest.raises(SetsupError, match="from 1 to 6"):
        ask(page, s="r0", q="batch", step=7)
    with pytest.raises(SetsupError, match="the rank"):
        ask(page, s="r0", q="batch", step=1, rank=1)


def test_results_are_those_of_the_report(run, tmp_path):
    from setsup.experiments.report.cells import table_heads, table_rows
    from setsup.experiments.report.registry import fill_reports

    measured = replace(run, folder=tmp_path / "seed-5", preset=replace(run.preset, name="abc/fig4a"))
    measured.folder.mkdir()
    values = {"wall_hue": 0.02, "object_hue": 1.5, "floor_hue": 1.4, "scale": 0.01, "shape": 0.02, "orientation": 0.03}
    measured.save("information", Measured(values), {})
    filled, *others = fill_reports([measured])
    found, *shown = ask(page_of({}, runs=[measured]), s="t0", q="tables")["reports"]
    assert [one["name"] for one in shown] == [one.report.name for one in others]
    assert (found["name"], found["heads"]) == ("abc/fig4a", table_heads(filled))
    assert [one["cells"] for one in found["rows"]] == table_rows(filled)
    kinds = {one["cells"][1]: one["kind"] for one in found["rows"]}
    assert kinds["the paper"] == "quoted"
    assert next(one for one in found["rows"] if "0.02" in one["cells"])["kind"] == "ours"
    assert [one["lines"] for one in found["verdicts"]] == [list(one.lines) for one in filled.verdicts]
    text = export(page_of({}, runs=[measured]), tmp_path / "page.html", steps=1).read_text()
    assert str(tmp_path) not in text
    assert '"kind":"quoted"' in text


@pytest.mark.parametrize("start", [".", "seed-5", "elsewhere"])
def test_commands_of_an_exported_run_name_its_folder(run, start, tmp_path, monkeypatch):
    """From the folder of the export they run as they are; elsewhere, what FOLDER stands for is said."""
    from setsup.experiments.runs.run_folder import open_run

    (tmp_path / "elsewhere").mkdir()
    copytree(run.folder, tmp_path / "seed-5")
    monkeypatch.chdir(tmp_path / start)
    given = {".": tmp_path / "seed-5", "seed-5": Path(), "elsewhere": Path("../seed-5")}[start]
    preset = replace(run.preset, evaluations=find_preset("abc/fig4a").evaluations)
    copied = replace(open_run(given, preset), preset=replace(preset, name="abc/fig4a"))
    page = page_of({}, runs=[copied])
    text = export(page, tmp_path / "page.html", steps=1).read_text()
    assert str(tmp_path) not in text
    shown = {".": "seed-5", "seed-5": ".", "elsewhere": "FOLDER/seed-5"}[start]
    assert f'"command":"setsup explore {shown}"' in text
    assert ("FOLDER stands for" in text) == (start == "elsewhere")
    live, found = (ask(page, s="t0", q="tables"), json.loads(re.search(r'\{"reports":.*?\}(?=\);)', text)[0]))
    assert [one["rows"] for one in live["reports"]] == [one["rows"] for one in found["reports"]]
    commands = [shlex.split(one) for one in found["reports"][0]["commands"]]
    assert ["setsup", "eval", shown] in [command[:3] for command in commands]


def test_a_run_of_no_report_has_a_table_of_its_values(run):
    (found,) = ask(page_of({}, runs=[run]), s="t0", q="tables")["reports"]
    assert found["name"] == run.preset.name


def test_embeddings_of_a_run_are_shown_with_its_images(run, tmp_path):
    import pyarrow.parquet as pq

    shapes = setsup.load("shapes3d-procedural")
    rows = np.array([3, 77, 5000, 41])
    for name in ("embeddings-shapes3d-procedural-part", "embeddings-maps"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "rows.npy", rows)
        pq.write_table(shapes.factors.select(rows).to_arrow(), tmp_path / name / "factors.parquet")
    np.save(tmp_path / "embeddings-shapes3d-procedural-part" / "embeddings.npy", np.eye(4, 3, dtype=np.float32))
    np.save(tmp_path / "embeddings-maps" / "embeddings.npy", np.zeros((4, 2, 2, 3)))
    page = page_of({}, runs=[replace(run, folder=tmp_path)])
    sources = ask(page)["sources"]
    assert [name for name in sources if name.startswith("e")] == ["e0"]
    assert sources["e0"]["name"] == "small/augmented, seed 5: embeddings-shapes3d-procedural-part"
    assert (sources["e0"]["data"], sources["e0"]["thumbs"]) == ("shapes3d-procedural", "image")
    assert page.command == f"setsup explore {tmp_path}"


def test_no_spike_is_lost_in_a_thinned_curve():
    values = np.random.default_rng(0).normal(size=100_000)
    values[[77, 54_321]] = 50, -50
    found = thin(np.arange(100_000), values)
    assert len(found["steps"]) <= 2000
    assert {77, 54_321} <= set(found["steps"].tolist())
    np.testing.assert_array_equal(found["values"], values[found["steps"]])


def test_spikes_stand_out_from_what_is_around_them():
    steps = np.arange(1, 401)
    values = 5 * np.exp(-steps / 60) + 0.01 * np.random.default_rng(0).normal(size=400)  # largest at the start
    assert spikes(steps, values) == []
    values[[99, 100, 299]] += 0.5, 0.3, 0.9  # two of them next to each other are one
    assert spikes(steps, values) == [300, 100]
    assert spikes(steps[:5], values[:5]) == []


def test_lines_that_were_cut_off_end_a_curve(run, tmp_path):
    cut = replace(run, folder=tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2.5}\n{"step": 2, "loss": null, "new": true}\n{"st')
    steps, metrics = read_metrics(cut)
    assert steps.tolist() == [1, 2]
    np.testing.assert_array_equal(metrics["loss"], [2.5, np.nan])
    assert np.isnan(metrics["new"]).all()
    assert read_metrics(replace(run, folder=tmp_path / "none"))[0].tolist() == []


def test_an_exported_run_has_some_steps_and_the_peaks(run, tmp_path):
    text = export(page_of({}, runs=[run]), tmp_path / "page.html", steps=2).read_text()
    _, metrics = read_metrics(run)
    shown = {1, 6, *(int(np.argmax(values)) + 1 for values in metrics.values())}
    assert f'"shown":{json.dumps(sorted(shown), separators=(",", ":"))}' in text
    assert str(tmp_path) not in text
    assert str(run.folder.parent) not in text


def test_data_of_a_run_are_opened_once(run, monkeypatch):
    opened, find = [], type(run.preset).open_data
    monkeypatch.setattr(type(run.preset), "open_data", lambda *given, **more: opened.append(1) or find(*given, **more))
    page = page_of({}, runs=[run])
    for step in (1, 2, 3):
        for asked in ("batch", "sheet"):
            ask(page, s="r0", q=asked, step=step)
    assert opened == [1]


def test_metrics_of_a_live_training_are_those_logged_by_now(run, tmp_path):
    (tmp_path / "seed-5").mkdir()
    path = tmp_path / "seed-5" / "metrics.jsonl"
    page = page_of({}, runs=[replace(run, folder=path.parent)])
    assert ask(page)["sources"]["r0"]["metrics"] == []
    path.write_text('{"step": 1, "loss": 2.5}\n')
    about = ask(page)["sources"]["r0"]
    assert (about["metrics"], about["trained"]) == (["loss"], 1)
    with path.open("a") as log:
        log.write('{"step": 2, "loss": 1.5, "rate": 0.1}\n')
    assert ask(page)["sources"]["r0"]["metrics"] == ["loss", "rate"]
    assert ask(page, s="r0", q="curve", metric="loss")["values"] == [2.5, 1.5]
