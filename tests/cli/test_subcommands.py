import importlib.metadata
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from setsup.files import manifest_names
from tests.cli.refusals import refused

Run = Callable[..., Any]


class TestDatasets:
    def test_every_manifest_is_listed(self, setsup: Run) -> None:
        found = setsup("datasets", "--json")
        assert found.code == 0
        listed = {entry["name"]: entry for entry in found.json}
        assert sorted(listed) == manifest_names()
        assert listed["mnist"]["samples"] == 70_000
        assert listed["mnist"]["factors"] == ["digit", "split"]
        assert listed["mnist"]["present"] is False
        assert listed["shapes3d-procedural"]["present"] is None
        words = setsup("datasets").out
        assert all(name in words for name in listed)

    def test_what_is_here_is_said(
        self, setsup: Run, genuine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "mnist").symlink_to(genuine / "mnist")
        monkeypatch.setenv("SETSUP_DATA", str(tmp_path))
        listed = {entry["name"]: entry["present"] for entry in setsup("datasets", "--json").json}
        assert listed["mnist"] is listed["affine-mnist"] is listed["colored-mnist"] is True  # made of the same files
        assert listed["shapes3d"] is False

    def test_data_sets_of_other_packages(self, setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        entry = importlib.metadata.EntryPoint("my-rooms", "nowhere.rooms:open", "setsup.datasets")
        monkeypatch.setattr("setsup.files.manifests.packages.entry_points", lambda group: [entry])
        listed = {entry["name"]: entry for entry in setsup("datasets", "--json").json}
        assert listed["my-rooms"]["package"] == "nowhere.rooms"
        assert "my-rooms" in setsup("datasets").out
        assert "nowhere.rooms" in setsup("fetch", "my-rooms").err


@pytest.mark.parametrize("words", [["datasets"], ["info"], ["info", "shapes3d"]])
def test_words_stay_whole_on_a_narrow_terminal(setsup: Run, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    piped = setsup(*words).out
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    shown = re.sub("\x1b\\[[0-9;]*m", "", setsup(*words).out)
    assert max(map(len, shown.splitlines()[:20])) <= 80
    assert {word for word in shown.split() if "─" not in word} == {word for word in piped.split() if "─" not in word}


class TestInfo:
    def test_a_card_without_the_data(self, setsup: Run) -> None:
        found = setsup("info", "mnist")
        assert found.code == 0
        assert "70,000 rows" in found.out
        assert "`setsup fetch mnist`" in found.out
        assert "@article{lecun1998gradient" in found.out
        data = setsup("info", "mnist", "--json").json
        assert (data["opened"], data["sample"]) == (False, None)
        assert [factor["name"] for factor in data["factors"]] == ["digit", "split"]

    def test_hosts_stand_in_the_order_asked_with_what_names_them(self, setsup: Run) -> None:
        card = setsup("info", "fashion-mnist").out
        about = setsup("info", "fashion-mnist", "--json").json["addresses"]
        assert [host["host"].partition(".")[0] for host in about["hosts"]] == ["raw", "fashion-mnist", "fashion-mnist"]
        assert {tuple(host["files"]) for host in about["hosts"]} == {tuple(about["urls"])}
        places = [card.index(f"\n{host['host']} ") for host in about["hosts"]]
        assert places == sorted(places)
        assert all(host["seen_in"] in " ".join(card.split()) for host in about["hosts"])
        assert setsup("info", "shapes3d-procedural", "--json").json["addresses"]["hosts"] == []

    def test_a_card_with_the_data(self, setsup: Run, genuine: Path) -> None:
        found = setsup("info", "mnist", "--root", genuine / "mnist")
        assert found.code == 0
        data = setsup("info", "mnist", "--root", genuine / "mnist", "--json").json
        digits = next(factor for factor in data["factors"] if factor["name"] == "digit")
        # counts of the training set and of the test set as they are commonly published, added
        train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        test = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
        assert digits["counts"] == [a + b for a, b in zip(train, test, strict=True)]
        assert data["sample"] == {"digit": 5, "split": "train"}
        assert "row 0: digit = 5, split = train" in found.out

    def test_the_default(self, setsup: Run) -> None:
        found = setsup("info")
        assert found.code == 0
        assert "cube, cylinder, sphere, capsule" in found.out
        assert "120,000" in found.out
        assert "split dcodr, parts train (10.4 %) and test (10 %), by shape: " in found.out
        assert "480,000 rows; image 64 × 64 × 3 uint8 srgb\n" in found.out

    def test_a_table(self, setsup: Run, photos: Path) -> None:
        data = setsup("info", "--table", photos, "--kinds", "age=continuous", "--json").json
        factors = {factor["name"]: factor for factor in data["factors"]}
        assert factors["light"]["counts"] == [24, 24]
        assert factors["age"]["levels"] is None
        assert "Chidi" in setsup("info", "--table", photos).out

    def test_the_card_of_tables(self, setsup: Run) -> None:
        found = setsup("info", "table")
        assert found.code == 0
        assert "--table FILE" in found.out
        assert "any number of rows (your own files); " in found.out

    def test_unknown_names(self, setsup: Run) -> None:
        found = setsup("info", "shapes3d-procedual")
        refused(found, "'shapes3d-procedural'", "`setsup datasets`")

    def test_a_root_without_the_files(self, setsup: Run, tmp_path: Path) -> None:
        found = setsup("info", "mnist", "--root", tmp_path)
        assert found.code == 2
        assert str(tmp_path) in found.err


class TestFetchAndPrepare:
    @pytest.mark.long("large or genuine files")
    def test_files_that_are_there_are_checked(self, setsup: Run, genuine: Path) -> None:
        found = setsup("fetch", "mnist", "--root", genuine / "mnist")
        assert (found.code, found.err) == (0, "")
        assert found.out.splitlines()[-1] == str(genuine / "mnist")
        data = setsup("fetch", "mnist", "--root", genuine / "mnist", "--json").json
        assert len(data["files"]) == 4

    @pytest.mark.parametrize("verb", ["fetch", "prepare"])
    def test_unknown_names(self, setsup: Run, verb: str) -> None:
        found = setsup(verb, "mnits")
        assert (found.code, found.out) == (2, "")
        assert found.err.startswith("setsup: unknown dataset 'mnits'; did you mean 'mnist'")
        assert found.err.endswith("? (`setsup datasets` lists them)\n")

    def test_checking_says_what_is_there(self, setsup: Run, tmp_path: Path) -> None:
        (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(b"no labels")
        found = setsup("fetch", "mnist", "--root", tmp_path, "--check")
        assert (found.code, found.err) == (1, "")
        assert [line.split()[1] for line in found.out.splitlines()[2:6]] == ["missing", "wrong", "missing", "missing"]
        data = setsup("fetch", "mnist", "--root", tmp_path, "--check", "--json").json
        files = data["files"]
        assert [entry["state"] for entry in files] == ["missing", "wrong", "missing", "missing"]
        assert "truncated or damaged" in files[1]["problem"] or "has md5" in files[1]["problem"]
        assert files[0]["path"] == str(tmp_path / "train-images-idx3-ubyte.gz")
        assert (data["opens"], data["rows"]) == (False, None)
        assert "train-images-idx3-ubyte.gz" in data["why_not"]
        assert found.out.splitlines()[-1] == f"does not open: {data['why_not']}"

    def test_checking_genuine_files(self, setsup: Run, genuine: Path) -> None:
        found = setsup("fetch", "mnist", "--root", genuine / "mnist", "--check", "--json")
        assert (found.code, [entry["state"] for entry in found.json["files"]]) == (0, ["right"] * 4)
        assert (found.json["opens"], found.json["rows"], found.json["why_not"]) == (True, 70_000, None)

    def test_what_needs_none_of_it(self, setsup: Run) -> None:
        assert "no files to fetch" in setsup("fetch", "shapes3d-procedural").err
        assert setsup("fetch", "shapes3d-procedural", "--check").out.splitlines()[-1] == "opens: 480,000 rows"
        for name in ("mnist", "shapes3d-procedural"):
            found = setsup("prepare", name)
            assert (found.code, found.err) == (0, "")
            assert found.out.startswith(f"{name} needs no preparation")
        assert setsup("prepare", "mnist", "--json").json == {"name": "mnist", "arrays": []}

    def test_preparing_absent_files(self, setsup: Run, tmp_path: Path) -> None:
        refused(setsup("prepare", "shapes3d", "--root", tmp_path), "3dshapes.h5")


class TestCache:
    @pytest.fixture
    def filled(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        folder = tmp_path / "cache"
        for name, size in (("groups", 10), ("mnist", 2000), ("thesis", 5)):
            (folder / name).mkdir(parents=True)
            (folder / name / "content").write_bytes(bytes(size))
        monkeypatch.setenv("SETSUP_CACHE", str(folder))
        return folder

    def sizes(self, found: Any) -> dict[str, int]:
        assert found.code == 0
        return {entry["name"]: entry["bytes"] for entry in json.loads(found.out)["entries"]}

    def test_what_is_cached(self, setsup: Run, filled: Path) -> None:
        assert self.sizes(setsup("cache", "--json")) == {"groups": 10, "mnist": 2000}
        found = setsup("cache")
        assert "2.0 kB" in found.out
        assert found.out.splitlines()[-1] == str(filled)

    def test_clearing_keeps_what_was_fetched_and_what_is_not_ours(self, setsup: Run, filled: Path) -> None:
        assert self.sizes(setsup("cache", "--clear", "--json")) == {"mnist": 2000}
        assert sorted(path.name for path in filled.iterdir()) == ["mnist", "thesis"]
        assert self.sizes(setsup("cache", "--clear", "mnist", "mnist", "--json")) == {}
        assert [path.name for path in filled.iterdir()] == ["thesis"]

    @pytest.mark.parametrize("name", ["thesis", "..", "/", "group", ""])
    def test_only_entries_can_be_cleared(self, setsup: Run, filled: Path, name: str) -> None:
        found = setsup("cache", "--clear", "groups", name)
        assert (found.code, found.out) == (2, "")
        assert (filled / "groups" / "content").is_file(), "nothing is removed when a name is wrong"

    def test_an_empty_folder_is_not_listed(self, setsup: Run, filled: Path) -> None:
        """A download that failed at once leaves one."""
        (filled / "norb").mkdir()
        (filled / "prepared" / "empty").mkdir(parents=True)
        assert self.sizes(setsup("cache", "--json")) == {"groups": 10, "mnist": 2000}

    def test_links_are_left_alone(self, setsup: Run, filled: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (filled / "prepared").symlink_to(tmp_path / "elsewhere")
        assert setsup("cache", "--clear", "groups", "prepared").code == 2
        assert (tmp_path / "elsewhere").is_dir()
        assert (filled / "groups" / "content").is_file(), "nothing is removed when one may not be"

    def test_an_empty_cache(self, setsup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "none"))
        assert "nothing is cached" in setsup("cache").out
        assert setsup("cache", "--clear").code == 0
        assert not (tmp_path / "none").exists()


class TestDoctor:
    @pytest.mark.long("large or genuine files")
    def test_what_works_here(self, setsup: Run) -> None:
        found = setsup("doctor", "--json")
        checks = {check["name"]: check for check in found.json}
        assert found.code == 0
        assert checks["numpy"]["detail"] == importlib.metadata.version("numpy")
        assert checks["cache"]["state"] == "ok"
        assert {"python", "torch", "GL", "cyclopts", "trimesh"} <= set(checks)
        assert setsup("doctor").code == 0

    def test_a_cache_that_cannot_be_written(self, setsup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "file" / "cache"))
        found = setsup("doctor")
        assert found.code == 2
        assert "SETSUP_CACHE" in found.out


@pytest.mark.long("large or genuine files")
def test_bench(setsup: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup_cli.commands.bench._SECONDS", 0.01)
    monkeypatch.setattr("setsup_cli.commands.bench._DRAWS", 1)
    data = setsup("bench", "--json").json
    assert data["dataset"] == "shapes3d-procedural"
    assert data["inactive"] == ["floor_hue"]
    assert all(rate["rate"] > 0 for rate in data["rates"])
    found = setsup("bench", "--inactive", "shape")
    assert (found.code, found.err) == (0, "")
    assert "draws/s" in found.out
    assert "images, first time" in found.out
    assert "images, afterwards" in found.out
    assert "placing a shape in a pose" in found.out
    assert setsup("bench", "--inactive", "shap").code == 2
