"""Presets are found by name: setsup's own, those of installed packages, and those in a file."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import DataError, SetsupError
from setsup.experiments import find_preset, open_run, presets
from setsup.experiments.runs.run_folder import begin
from setsup.methods.recipes import evaluation_transform, recipe, recipes

FILE = """
from dataclasses import dataclass

from setsup.experiments import Data, Preset
from setsup.experiments.sets import Sets


@dataclass(frozen=True)
class Mine:
    rate: float = 0.5

    def build(self, table, generator):
        raise NotImplementedError


def preset(name):
    data = Data("shapes3d-procedural")
    return Preset(name=name, shows="mine", data=data, sampler=Sets(inactive=("shape",)), method=Mine(), steps=3)


"""
ONE = FILE + 'PRESETS = [preset("mine/first")]\n'
TWO = FILE + 'PRESETS = [preset("mine/first"), preset("mine/second")]\n'
THIRD = FILE + 'PRESETS = (preset("mine/third"),)\n'


def install(folder: Path, entries: str, modules: dict[str, str]) -> None:
    """What pip leaves of a package."""
    for name, content in modules.items():
        (folder / f"{name}.py").write_text(content)
    about = folder / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[setsup.experiments]\n{entries}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in list(sys.modules):
        if name.startswith("theirs_"):
            monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_own_presets_have_unique_names_that_say_the_paper() -> None:
    names = list(presets())
    assert len(names) == len(set(names)) > 20
    for name, preset in presets().items():
        assert preset.name == name
        assert name.partition("/")[0] in ("abc", "dcodr", "orbits", "orbit-joint", "cmc", "multiview", "pixels")
        assert preset.shows


def test_an_installed_package_brings_presets_along(site: Path) -> None:
    install(site, "first = theirs_first\nthird = theirs_third", {"theirs_first": TWO, "theirs_third": THIRD})
    assert list(presets())[-3:] == ["mine/first", "mine/second", "mine/third"]
    assert find_preset("mine/second").method.rate == 0.5
    with pytest.raises(SetsupError, match="unknown preset 'mine/secnd'; did you mean 'mine/second'"):
        find_preset("mine/secnd")


def test_another_package_does_not_take_the_place_of_own_presets(site: Path) -> None:
    install(site, "first = theirs_own", {"theirs_own": FILE + 'PRESETS = [preset("abc/fig3a"), preset("mine/a")]\n'})
    assert find_preset("abc/fig3a").method != find_preset("mine/a").method
    assert find_preset("abc/fig3a").steps == 2_000


@pytest.mark.parametrize(
    ("entries", "content", "sentence"),
    [
        ("a = theirs_absent", None, r"the experiments 'a' \(theirs_absent\) cannot be imported: .*theirs_absent"),
        ("a = theirs_bad:nothing", "", r"the experiments 'a' \(theirs_bad:nothing\) cannot be imported"),
        ("a = theirs_bad", "PRESETS = []", "theirs_bad defines no presets; add PRESETS"),
        ("a = theirs_bad", "PRESETS = 3", "theirs_bad defines no presets"),
        ("a = theirs_bad", "PRESETS = 'abc'", "theirs_bad defines no presets"),
        ("a = theirs_bad", "", "theirs_bad defines no presets"),
        ("a = theirs_bad", "import no_such_module", "cannot be imported: No module named 'no_such_module'"),
        ("a = theirs_bad", "1 / 0", "cannot be imported: division by zero; repair or uninstall the package theirs"),
        ("a = theirs_bad", "def", r"cannot be imported: .*theirs_bad.py, line 1"),
    ],
)
def test_a_package_that_is_broken_is_named(site: Path, entries: str, content: str | None, sentence: str) -> None:
    install(site, entries, {} if content is None else {"theirs_bad": content})
    with pytest.raises(SetsupError, match=sentence):
        presets()
    with pytest.raises(SetsupError, match=sentence):
        find_preset("mine/first")
    assert find_preset("abc/fig3a").steps == 2_000, "setsup's own are found all the same"


@pytest.mark.parametrize("folder", [".", "with.py.in it", ".pyenv/a.pyx"])
def test_presets_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    home = tmp_path / folder
    home.mkdir(parents=True, exist_ok=True)
    (home / "one.py").write_text(ONE)
    (home / "two.py").write_text(TWO)
    assert find_preset(f"{home}/one.py").name == "mine/first"
    assert find_preset(f"{home}/one.py:").name == "mine/first"
    assert find_preset(f"{home}/one.py:mine/first") == find_preset(f"{home}/one.py")
    assert find_preset(f"{home}/two.py:mine/second").name == "mine/second"
    monkeypatch.chdir(home)
    assert find_preset("two.py:mine/first") == find_preset(f"{home}/two.py:mine/first")
    monkeypatch.setenv("HOME", str(home))
    assert find_preset("~/one.py").name == "mine/first"
    for name in ("two.py", "two.py:", "two.py:mine/third"):
        with pytest.raises(
            SetsupError,
            match=r"two.py defines several presets \(mine/first, mine/second\); choose one, .*two.py:mine/first",
        ):
            find_preset(name)


def test_a_run_of_a_preset_in_a_file_opens_with_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(TWO)
    preset = find_preset(f"{tmp_path}/own.py:mine/second")
    changed = replace(preset, steps=9)
    begin(tmp_path / "run", changed, 0, config={"precision": "float32"})
    assert open_run(tmp_path / "run", preset).preset == changed
    # the run remembers the file
    assert open_run(tmp_path / "run").preset == changed
    assert open_run(tmp_path / "run", find_preset(f"{tmp_path}/own.py:mine/first")).preset == changed
    path = tmp_path / "run" / "run.json"
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in kept.items() if key != "preset_file"}))
    with pytest.raises(SetsupError, match="is a run of 'mine/second', but no installed preset has that name"):
        open_run(tmp_path / "run")
    path.write_text(json.dumps(kept | {"preset_file": ["own.py"]}))
    with pytest.raises(DataError, match=r"run\.json has no valid 'preset_file'"):
        open_run(tmp_path / "run")
    path.write_text(json.dumps(kept | {"preset_file": str(tmp_path / "gone.py")}))
    with pytest.raises(SetsupError, match=r"in .*gone.py, which no longer exists; pass the file at its new path"):
        open_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "defines no presets; add PRESETS"),
        ("PRESETS = [1]", "defines no presets"),
        ("PRESETS = None", "defines no presets"),
        ("\nPRESETS = [}", r"SyntaxError"),
        ("\n\n1 / 0", "broken.py, line 3 failed with ZeroDivisionError: division by zero"),
        ("import no_such_module", "line 1 failed with ModuleNotFoundError: No module named 'no_such_module'"),
        (FILE + 'PRESETS = [preset("a"), preset("b"), preset("a")]', "defines two presets named 'a'"),
    ],
)
def test_a_file_that_is_broken(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "broken.py").write_text(content)
    with pytest.raises(SetsupError, match=sentence) as caught:
        find_preset(f"{tmp_path}/broken.py")
    assert str(tmp_path) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("absent.py", "absent.py:mine/first"):
        with pytest.raises(DataError, match=r"absent.py does not exist; pass the name of a preset, or a Python file"):
            find_preset(f"{tmp_path}/{name}")
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(SetsupError, match=r"folder\.py"):
        find_preset(f"{tmp_path}/folder.py")


@pytest.mark.parametrize("name", ["", ".py", "abc", "abc/", "abc/fig3a.pyc", "my.py/first", "abc/fig3a "])
def test_names_of_no_preset(name: str) -> None:
    with pytest.raises(SetsupError, match="unknown preset"):
        find_preset(name)


def test_a_file_imports_its_neighbours_as_a_script_does(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_mine.py").write_text("STEPS = 7\n")
    own = "from dataclasses import replace\nimport neighbour_of_mine\n" + FILE
    (tmp_path / "own.py").write_text(f'{own}PRESETS = [replace(preset("a"), steps=neighbour_of_mine.STEPS)]\n')
    before = list(sys.path)
    assert find_preset(f"{tmp_path}/own.py").steps == 7
    assert sys.path == before
    (tmp_path / "broken.py").write_text("import no_such_neighbour")
    with pytest.raises(SetsupError, match="no_such_neighbour"):
        find_preset(f"{tmp_path}/broken.py")
    assert sys.path == before


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "own.py").write_text(FILE + f'PRESETS = [preset("mine/{name}")]\n')
        found.append(find_preset(f"{tmp_path}/{name}/own.py"))
    for preset in found:
        kind = type(preset.method)
        assert getattr(sys.modules[kind.__module__], kind.__qualname__) is kind


def test_another_package_does_not_change_what_is_done_to_images_of_own_recipes(site: Path) -> None:
    content = "def grey(*, seed, stream):\n    return print\n\n\n"
    content += "RECIPES = {'theirs': grey, 'dcodr': grey}\nEVALUATION_TRANSFORMS = {'theirs': len, 'dcodr': len}\n"
    install(site, "a = theirs_recipes", {"theirs_recipes": content})
    assert recipe("theirs") is print
    assert evaluation_transform("theirs") is len
    assert recipe("dcodr") is not print
    assert evaluation_transform("dcodr") is None
    assert recipes().count("dcodr") == 1
    assert recipes()[-1] == "theirs"


def test_recipes_of_a_broken_package_hide_no_own_ones(site: Path) -> None:
    install(site, "a = theirs_recipes", {"theirs_recipes": "1 / 0"})
    assert evaluation_transform("dcodr") is None
    assert evaluation_transform("cmc-resnet") is not None
    with pytest.raises(
        SetsupError, match=r"the experiments 'a' \(theirs_recipes\) cannot be imported: division by zero"
    ):
        recipe("theirs")
