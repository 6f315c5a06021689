"""A run folder says what is in it, and whatever happened to its files, one sentence or the right thing comes out."""

import json
import math
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.experiments import Data, Measured, Run, RunConfig, load_trained, open_run, smoke, train  # noqa: E402
from setsup.experiments.runs.run import Progress  # noqa: E402
from setsup.experiments.runs.run_folder import begin  # noqa: E402
from tests.experiments.small import DROPOUT, PLAIN, Tiny  # noqa: E402
from tests.fuzzing import mutations  # noqa: E402

HERE = RunConfig(workers=0)
SHORT = replace(PLAIN, steps=5, checkpoint_every=3)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed after its first checkpoint."""
    folder = tmp_path_factory.mktemp("runs") / "stopped"
    train(SHORT, folder, config=HERE)
    state = torch.load(folder / "last.ckpt", weights_only=True)
    shorter = train(replace(SHORT, steps=3), folder.with_name("shorter"), config=HERE)
    shutil.copy(shorter.checkpoint, folder / "last.ckpt")
    assert state["global_step"] == 5
    return folder


@pytest.fixture
def folder(stopped: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged."""
    return Path(shutil.copytree(stopped, tmp_path / "run"))


def described(folder: Path, **changed: Any) -> None:
    """Change what run.json holds; None takes it out."""
    path = folder / "run.json"
    found = json.loads(path.read_text()) | changed
    path.write_text(json.dumps({name: value for name, value in found.items() if value is not None}))


def refused(error: type[SetsupError], sentence: str, *ways: Callable[[], object]) -> None:
    """Every way ends in one sentence."""
    for way in ways:
        with pytest.raises(error, match=sentence) as caught:
            way()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 700


def ways(folder: Path) -> list[Callable[[], object]]:
    """All that a user may do with a run."""
    return [
        lambda: load_trained(open_run(folder, SHORT), device="cpu"),
        lambda: train(SHORT, folder, config=HERE),
    ]


@pytest.mark.long("trainings")
def test_a_run_says_what_was_trained(stopped: Path) -> None:
    run = open_run(stopped, SHORT)
    assert (run.folder, run.preset, run.seed, run.substitute) == (stopped, SHORT, 0, False)
    assert (run.progress().steps, run.finished) == (3, False)
    assert run.progress().seconds > 0
    assert run.progress().images == 3 * 2 * 4
    about = json.loads((stopped / "run.json").read_text())
    assert about["versions"]["torch"] == torch.__version__
    assert about["config"]["precision"] == "float32"
    assert about["settings"]["method.rate"] == 1e-3
    assert about["root"] is None


def test_a_run_belongs_to_every_preset_that_trains_the_same(stopped: Path) -> None:
    run = open_run(stopped, SHORT)
    assert run.difference(replace(SHORT, name="small/other", shows="something else", evaluations={"a": None})) == {}
    assert run.difference(PLAIN) == {"steps": (30, 5)}, "how often checkpoints are kept changes nothing that is learned"
    assert run.difference(replace(SHORT, seeds=7)) == {}
    other = replace(SHORT, method=Tiny(rate=1.0))
    assert run.difference(other) == {"method.rate": (1.0, 1e-3)}


def test_settings_that_were_changed_for_a_run_come_back(tmp_path: Path) -> None:
    changed = replace(SHORT, method=Tiny(rate=0.5, halve_every=2))
    begin(tmp_path, changed, 7, root="~/there", substitute=True, config={"precision": "bf16"})
    run = open_run(tmp_path, SHORT)
    assert (run.preset, run.seed, run.substitute) == (changed, 7, True)
    assert run.description["root"] == str(Path.home() / "there")
    assert (run.progress().steps, run.progress().seconds, run.finished) == (0, 0, False)


@dataclass(frozen=True, kw_only=True)
class Twin(Tiny):
    """Another method with the same settings."""


@dataclass(frozen=True, kw_only=True)
class Later(Tiny):
    """What Tiny is in the next version."""

    margin: float = 0.0


def of_earlier(folder: Path) -> dict[str, Any]:
    """Make run.json what it was before it had classes and all settings."""
    found = json.loads((folder / "run.json").read_text())
    new = ("data", "sampler", "method", "data.where", "data.options")
    described(folder, settings={name: value for name, value in found["settings"].items() if name not in new})
    return found


def test_a_method_with_the_same_settings_is_another(folder: Path) -> None:
    twin = replace(SHORT, method=Twin())
    run = open_run(folder, SHORT)
    assert run.difference(twin) == {"method": ("Twin", "Tiny")}
    refused(SetsupError, "method is 'Tiny' in that run, not 'Twin'", lambda: train(twin, folder, config=HERE))
    refused(SetsupError, "setting method must be a Twin, not 'Tiny'", lambda: open_run(folder, twin))
    of_earlier(folder)
    assert open_run(folder, SHORT).preset == SHORT
    assert train(SHORT, folder, config=HERE).finished


def test_a_new_setting_does_not_keep_a_run_from_going_on(folder: Path) -> None:
    found = of_earlier(folder)
    changed = replace(SHORT, method=Later(margin=0.5))
    assert open_run(folder, changed).preset.method == Later(), "it was trained as the default has it"
    refused(SetsupError, r"method.margin is 0\.0 in that run, not 0\.5", lambda: train(changed, folder, config=HERE))
    now = replace(SHORT, method=Later())
    assert open_run(folder, now).preset == now
    assert train(now, folder, config=HERE).finished
    kept = json.loads((folder / "run.json").read_text())["settings"]
    assert kept == found["settings"] | {"method": "Later", "method.margin": 0.0}


def test_the_name_of_a_stand_in_that_was_not_taken_is_of_no_account(tmp_path: Path) -> None:
    one, other = (replace(SHORT, data=Data("shapes3d-procedural", substitute=name)) for name in (None, "mnist"))
    assert begin(tmp_path / "a", one, 0, config={"precision": "float32"}).difference(other) == {}
    stood_in = begin(tmp_path / "b", one, 0, substitute=True, config={"precision": "float32"})
    assert stood_in.difference(other) == {"data.substitute": ("mnist", None)}
    run = train(replace(one, steps=2), tmp_path / "c", config=HERE)
    assert train(replace(other, steps=2), run.folder, config=HERE).finished


def test_data_that_were_moved_are_the_same_data(tmp_path: Path) -> None:
    def at(place: str | None, size: int = 64) -> Any:
        options = (("size", (size, size)), *((("zappos", place),) if place else ()))
        return replace(SHORT, data=Data("edges2shoes", options=options))

    config = {"precision": "float32"}
    begin(tmp_path, at("/mnt/a"), 0, config=config)
    (tmp_path / "last.ckpt").touch()
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "progress", lambda _: Progress(1, 1.0, 8))
        for place in ("/mnt/b", None, "/mnt/c"):
            begin(tmp_path, at(place), 0, config=config)
            assert open_run(tmp_path, SHORT).preset == at(place), "what was given last is remembered"
    run = open_run(tmp_path, SHORT)
    assert run.difference(at("/mnt/a")) == {}
    assert run.difference(at("/mnt/a", 32)).keys() == {"data.options"}
    refused(
        SetsupError,
        r"data.options is \[\['size', \[64, 64\]\]\] in that run, not \[\['size', \[32, 32\]\]\]",
        lambda: begin(tmp_path, at("/mnt/c", 32), 0, config=config),
    )
    for damaged in ([3], [[]], [[{}, 1]], {"zappos": 1}, "text"):
        settings = json.loads((tmp_path / "run.json").read_text())["settings"]
        described(tmp_path, settings=settings | {"data.options": damaged})
        refused(
            SetsupError, "contains another run: data.options", lambda: begin(tmp_path, at("/mnt/c"), 0, config=config)
        )


def test_a_measurement_opens_the_data_where_the_run_found_them(folder: Path) -> None:
    settings = json.loads((folder / "run.json").read_text())["settings"] | {"data.options": [["zappos", "/mnt/a"]]}
    described(folder, settings=settings)
    run = open_run(folder, SHORT)
    asked = replace(SHORT, name="small/other")
    trained = load_trained(run, device="cpu", preset=asked)
    assert (trained.name, trained.data) == (asked.name, run.preset.data)
    assert run.preset.data.options == (("zappos", "/mnt/a"),)


def test_the_folder_of_nobody(tmp_path: Path) -> None:
    root = "~nobody-of-that-name/x"
    refused(DataError, "unknown home folder", lambda: begin(tmp_path / "a", SHORT, 0, root=root, config={}))


def test_each_way_of_going_on_is_remembered(folder: Path) -> None:
    before = json.loads((folder / "run.json").read_text())
    assert open_run(folder, SHORT).draws_per_step == (1,)
    config = before["config"] | {"devices": 2, "nodes": 2}
    run = begin(folder, SHORT, 0, config=config)
    (session,) = run.description["later"]
    assert session == {"from_step": 3, "config": config, "versions": before["versions"]}
    assert run.draws_per_step == (1, 4)
    assert begin(folder, SHORT, 0, config=config).description == run.description, "once"
    assert json.loads((folder / "run.json").read_text()) == run.description
    assert train(SHORT, folder, config=HERE).finished
    assert open_run(folder, SHORT).draws_per_step == (1, 4, 1)
    kept = (folder / "run.json").read_text()
    train(SHORT, folder, config=RunConfig(workers=1))
    assert (folder / "run.json").read_text() == kept, "nothing went on"


@pytest.mark.parametrize("later", [3, [3], [{}], [{"config": {"devices": "two"}}]])
def test_what_is_said_of_going_on_may_be_damaged(folder: Path, later: Any) -> None:
    described(folder, later=later)
    refused(DataError, "run.json has no valid 'devices and nodes'", *ways(folder))


@pytest.mark.parametrize("end", ['{"step": 5, "lo', "12", '{"loss": 3}', "[]", ""])
def test_the_last_whole_line_of_metrics_counts(folder: Path, end: str) -> None:
    path = folder / "metrics.jsonl"
    path.write_text('{"step": 1, "loss": 9}\n{"step": 2, "loss": 4.0, "rate": null}\n' + end)
    assert open_run(folder, SHORT).metrics() == {"loss": 4.0, "rate": None}
    path.write_text(end)
    assert open_run(folder, SHORT).metrics() == {}
    path.unlink()
    assert open_run(folder, SHORT).metrics() == {}


def test_a_shrunk_run_opens_shrunk(tmp_path: Path) -> None:
    begin(tmp_path, smoke(SHORT), 0, config={"precision": "float32"})
    assert open_run(tmp_path, SHORT).preset == smoke(SHORT)


def test_where_there_is_no_run(tmp_path: Path, stopped: Path) -> None:
    missing = "no run found in .*: run.json is missing; `setsup train PRESET` starts one"
    refused(DataError, missing, lambda: open_run(tmp_path))
    sentence = f"no run found in .*; it contains the runs .*shorter, {stopped}"
    refused(DataError, sentence, lambda: open_run(stopped.parent))
    refused(SetsupError, "is a run of 'small/plain', but no installed preset has that name", lambda: open_run(stopped))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"seed": 1},
            "contains another run: seed is 1 in that run, not 0; choose another --out, or use the same settings",
        ),
        ({"preset": "abc/fig3a"}, "contains another run: preset is 'abc/fig3a' in that run, not 'small/plain'"),
        ({"substitute": True}, "contains another run: substitute is True in that run, not False"),
        ({"config": {"precision": "bf16"}}, "contains another run: precision is 'bf16' in that run, not 'float32'"),
        ({"settings": {"steps": 5}}, "contains another run: .*data.name is None in that run"),
        ({"seed": "zero"}, "run.json has no valid 'seed'"),
        ({"seed": None}, "run.json has no valid 'seed'"),
        ({"preset": None}, "run.json has no valid 'preset'"),
        ({"preset": ["small/plain"]}, "run.json has no valid 'preset'"),
        ({"substitute": None}, "run.json has no valid 'substitute'"),
        ({"settings": [1]}, "run.json has no valid 'settings'"),
        ({"config": None}, "run.json has no valid 'config'"),
        ({"config": {}}, "run.json has no valid 'precision'"),
    ],
)
def test_another_description_is_not_trained_on(folder: Path, changed: dict[str, Any], sentence: str) -> None:
    described(folder, **changed)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    refused(SetsupError, sentence, lambda: train(SHORT, folder, config=HERE))
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"steps": "many"}, "setting steps must be int, not 'many'"),
        ({"method.rate": None}, "setting rate must be float, not None"),
        ({"method.speed": 1}, "unknown setting 'method.speed'"),
        ({"method": {}}, "setting method must be a Tiny, not {}"),
    ],
)
def test_settings_that_are_none_are_not_opened(folder: Path, settings: dict[str, Any], sentence: str) -> None:
    described(folder, settings=json.loads((folder / "run.json").read_text())["settings"] | settings)
    refused(SetsupError, sentence, lambda: open_run(folder, SHORT))


def test_another_seed_preset_or_precision_is_refused(folder: Path) -> None:
    refused(SetsupError, "seed is 0 in that run, not 3", lambda: train(SHORT, folder, seed=3, config=HERE))
    refused(
        SetsupError,
        "preset is 'small/plain' in that run, not 'small/dropout'",
        lambda: train(DROPOUT, folder, config=HERE),
    )
    refused(
        SetsupError,
        "smoke is False in that run, not True",
        lambda: train(replace(SHORT, shrunk=True), folder, config=HERE),
    )
    bf16 = RunConfig(workers=0, precision="bf16")
    refused(SetsupError, "precision is 'float32' in that run, not 'bf16'", lambda: train(SHORT, folder, config=bf16))
    longer = replace(SHORT, steps=6, method=Tiny(rate=1.0))
    refused(
        SetsupError,
        r"steps is 5 in that run, not 6, method.rate is 0.001 in that run, not 1.0|method.rate is 0.001 in that run, "
        r"not 1.0, steps is 5 in that run, not 6",
        lambda: train(longer, folder, config=HERE),
    )


def test_how_many_seeds_and_checkpoints_does_not_make_another_run(folder: Path) -> None:
    other = replace(SHORT, seeds=9, checkpoint_every=1)
    run = train(other, folder, config=HERE)
    assert run.finished
    assert open_run(folder, SHORT).preset == other, "what was asked last is remembered"


def test_a_description_that_is_gone_or_broken(folder: Path) -> None:
    path = folder / "run.json"
    whole = path.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"[1]", b"null", b"\xff\xfe", b'{"preset": "small/plain"'):
        path.write_bytes(content)
        refused(DataError, "run.json (cannot be read|is not a JSON object)", *ways(folder))
    path.unlink()
    refused(DataError, "run.json cannot be read", lambda: train(SHORT, folder, config=HERE))
    path.mkdir()
    refused(DataError, "run.json cannot be read", *ways(folder))


def test_descriptions_damaged_in_many_ways(folder: Path) -> None:
    path = folder / "run.json"
    whole = path.read_bytes()
    refusals, opened = [], 0
    for content in mutations(whole, 300, head=len(whole)):
        path.write_bytes(content)
        try:
            run = open_run(folder, SHORT)
            run.difference(SHORT)
            begin(folder, SHORT, 0, config={"precision": "float32"})
            opened += 1
        except SetsupError as error:
            refusals.append(str(error))
    assert opened > 0
    assert len(refusals) > 0
    assert not [sentence for sentence in refusals if "\n" in sentence]


def test_runs_of_earlier_versions_are_read_and_resumed(folder: Path) -> None:
    """Their names of settings, and of the callback in checkpoints, were others."""
    now = json.loads((folder / "run.json").read_text())
    former = {"config": "how", "substitute": "stand_in", "sampler": "drawing", "method": "learning"}

    def rename(values: dict[str, Any]) -> dict[str, Any]:
        heads = {name: name.partition(".") for name in values}
        old = {name: former.get(head, head) + dot + rest for name, (head, dot, rest) in heads.items()}
        return {old[name].replace("data.substitute", "data.stand_in"): value for name, value in values.items()}

    later = [{"from_step": 1, "how": now["config"] | {"devices": 2}, "versions": {}}]
    then = rename(now) | {"settings": rename(now["settings"]), "later": later}
    assert {"how", "stand_in", "settings", "later"} < then.keys()
    assert {"drawing.size", "learning.rate", "data.stand_in"} < then["settings"].keys()
    (folder / "run.json").write_text(json.dumps(then))
    state = torch.load(folder / "last.ckpt", weights_only=True)
    seconds = state["callbacks"]["CheckpointCallback"]["seconds"]
    state["callbacks"]["Keeper"] = state["callbacks"].pop("CheckpointCallback")
    torch.save(state, folder / "last.ckpt")
    run = open_run(folder, SHORT)
    assert run.difference(SHORT) == {}
    assert (run.substitute, run.draws_per_step, run.progress().seconds) == (False, (1, 2), seconds)
    assert train(SHORT, folder, config=HERE).finished
    assert open_run(folder, SHORT).progress().seconds > seconds
    found = json.loads((folder / "run.json").read_text())
    assert found["settings"] == now["settings"]
    assert found.keys() == now.keys() | {"later"}


def test_a_folder_in_which_nothing_was_trained_is_overwritten(folder: Path) -> None:
    (folder / "last.ckpt").unlink()
    refused(
        SetsupError, "seed is 0 in that run, not 3", lambda: begin(folder, SHORT, 3, config={"precision": "float32"})
    )
    (folder / "metrics.jsonl").write_text("")
    (folder / "run.json").write_text("broken")
    assert begin(folder, SHORT, 3, config={"precision": "float32"}).seed == 3
    assert open_run(folder, SHORT).seed == 3


class Evil:
    """Runs a command when it is unpickled by something that trusts it."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def test_a_malicious_checkpoint_is_refused_and_not_executed(folder: Path, tmp_path: Path) -> None:
    marker, path = tmp_path / "executed", folder / "last.ckpt"
    whole = torch.load(path, weights_only=True)
    for key in ("state_dict", "callbacks", "loops", "hyper_parameters", "pytorch-lightning_version"):
        torch.save(whole | {key: Evil(marker)}, path)
        refused(DataError, r"last.ckpt was not loaded \(it contains more than tensors and plain values", *ways(folder))
    for content in (pickle.dumps(Evil(marker)), pickle.dumps(whole | {"state_dict": Evil(marker)}, protocol=2)):
        path.write_bytes(content)
        refused(DataError, "last.ckpt is (not opened|damaged)", *ways(folder))
    assert not marker.exists()
    torch.save(whole | {"state_dict": Evil(marker)}, path)
    torch.load(path, weights_only=False)
    assert marker.exists(), "the trap works"


@pytest.mark.long("trainings")
def test_a_checkpoint_that_is_none_of_this_run(folder: Path) -> None:
    path = folder / "last.ckpt"
    whole = torch.load(path, weights_only=True)
    for other in (
        [1, 2],
        {"model": torch.zeros(2)},
        whole | {"callbacks": {}},
        {name: part for name, part in whole.items() if name != "optimizer_states"},
        {name: part for name, part in whole.items() if name != "LightningBatches"},
    ):
        torch.save(other, path)
        refused(DataError, "last.ckpt is not a checkpoint of a run; remove the file and train again", *ways(folder))
    weights = whole["state_dict"]
    for others in (
        {},
        {f"encoder.{name}": weight for name, weight in weights.items()},
        {name: weight[:1] for name, weight in weights.items()},
        weights | {"encoder.9.weight": torch.zeros(1)},
        dict.fromkeys(weights, 3),
        [1],
    ):
        torch.save(whole | {"state_dict": others}, path)
        refused(
            SetsupError,
            "last.ckpt do not fit the method of small/plain .*restore the method",
            *ways(folder),
        )


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.9, 0.999])
def test_a_checkpoint_cut_off_is_refused(folder: Path, share: float) -> None:
    path = folder / "last.ckpt"
    os.truncate(path, int(share * path.stat().st_size))
    refused(DataError, "last.ckpt is (damaged|not opened)", *ways(folder))


@pytest.mark.long("fuzzing")
def test_checkpoints_damaged_in_many_ways_are_refused_or_whole(folder: Path) -> None:
    path = folder / "last.ckpt"
    content = path.read_bytes()
    whole = load_trained(open_run(folder, SHORT), device="cpu").method.state_dict()
    refusals, rounds = [], 400
    for damaged in mutations(content, rounds, head=4096):
        path.write_bytes(damaged)
        try:
            found = load_trained(open_run(folder, SHORT), device="cpu").method.state_dict()
        except SetsupError as error:
            refusals.append(str(error))
        else:
            assert all(torch.equal(found[name], weight) for name, weight in whole.items())
    assert len(refusals) > 0.9 * rounds
    assert not [sentence for sentence in refusals if "\n" in sentence]


def test_every_bit_of_a_weight_counts(folder: Path) -> None:
    path = folder / "last.ckpt"
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as parts:
        largest = max(parts.infolist(), key=lambda part: part.file_size)
    content[largest.header_offset + 200 + largest.file_size // 2] ^= 1
    path.write_bytes(content)
    refused(DataError, f"last.ckpt is damaged .*{largest.filename}", *ways(folder))


@pytest.mark.parametrize("content", [b"", b"12\n", b"[]\n", b'{"loss": 3}\n', b'{"step": "one"}\n', b"\xff\0\n", None])
def test_metrics_that_are_damaged_or_gone_do_not_stop_a_run(folder: Path, content: bytes | None) -> None:
    path = folder / "metrics.jsonl"
    first = path.read_bytes().splitlines(keepends=True)[0]
    if content is None:
        path.unlink()
    else:
        path.write_bytes(first + content)
    assert train(SHORT, folder, config=HERE).finished
    steps = [json.loads(line)["step"] for line in path.read_text().splitlines()]
    assert steps == ([4, 5] if content is None else [1, 4, 5])


def test_measurements_are_kept_beside_each_other(folder: Path) -> None:
    run = open_run(folder, SHORT)
    assert run.results() == {}
    picture = Image.fromarray(np.full((4, 5, 3), 9, np.uint8))
    found = Measured({"a": np.float32(0.5)}, {"b": (np.arange(2), [0.5, 1])}, {"map": picture})
    run.save("first", found, {"samples": 3})
    run.save("second", Measured({"c": 1}), {})
    run.save("second", Measured({"c": 2}), {})
    kept = open_run(folder, SHORT).results()
    assert list(kept) == ["first", "second"]
    expected = {
        "about": {"samples": 3},
        "steps": 3,
        "values": {"a": 0.5},
        "curves": {"b": [[0.0, 1.0], [0.5, 1.0]]},
        "pictures": ["first-map.png"],
    }
    assert expected.items() <= kept["first"].items()
    assert kept["second"]["values"] == {"c": 2.0}
    with Image.open(folder / "first-map.png") as drawn:
        assert np.array_equal(np.asarray(drawn), np.asarray(picture))


def test_pictures_of_an_earlier_measurement_go(folder: Path) -> None:
    run, picture = open_run(folder, SHORT), Image.new("RGB", (4, 5))
    (folder / "mine.png").touch()
    run.save("first", Measured(pictures={"a": picture, "b": picture}), {})
    run.save("second", Measured(pictures={"a": picture}), {})
    run.save("first", Measured(pictures={"b": picture, "c": picture}), {})
    names = {path.name for path in folder.glob("*.png")}
    assert names == {"first-batch.png", "mine.png", "first-b.png", "first-c.png", "second-a.png"}
    run.save("second", Measured(), {})
    assert not (folder / "second-a.png").exists()


def test_numbers_that_are_not_finite_are_null(folder: Path) -> None:
    curve = ([1.0, 2.0], [math.nan, 0.5])
    open_run(folder, SHORT).save("first", Measured({"a": math.nan, "b": -math.inf, "c": 1}, {"d": curve}), {})
    text = (folder / "evaluation.json").read_text()
    entry = json.loads(text, parse_constant=lambda word: pytest.fail(word))["first"]
    assert entry["values"] == {"a": None, "b": None, "c": 1.0}
    assert entry["curves"] == {"d": [[1.0, 2.0], [None, 0.5]]}


def test_measurements_of_two_at_a_time_are_all_kept(folder: Path) -> None:
    run = open_run(folder, SHORT)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: run.save(f"no {number}", Measured({"a": number}), {}), range(16)))
    assert {name: entry["values"]["a"] for name, entry in run.results().items()} == {f"no {n}": n for n in range(16)}
    assert not list(folder.glob("*.lock"))


def test_measurements_that_are_broken(folder: Path) -> None:
    (folder / "evaluation.json").write_text('{"first": ')
    run: Run = open_run(folder, SHORT)
    refused(DataError, "evaluation.json cannot be read", run.results)
