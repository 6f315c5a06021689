"""The command on small releases in their true formats."""

import importlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a small release, written when it is first asked for."""
    folder = tmp_path_factory.mktemp("releases")

    def written(name: str) -> Path:
        if not (folder / name).exists():
            (folder / name).mkdir()
            importlib.import_module(f"tests.true_files.{name.replace('-', '_')}").write(folder / name)
        return folder / name

    return written


class TestChecking:
    @pytest.mark.long("large or genuine files")
    @pytest.mark.parametrize("name", ["shapenet", "scenenn", "shapenet-renderings"])
    def test_what_opens_is_no_fault(self, setsup: Run, releases: Callable[[str], Path], name: str) -> None:
        found = setsup("fetch", name, "--root", releases(name), "--check")
        assert found.code == 0, found.out
        rows = setsup("info", name, "--root", releases(name), "--json").json["samples"]
        assert found.out.splitlines()[-1] == f"opens: {rows:,} rows"
        data = setsup("fetch", name, "--root", releases(name), "--check", "--json").json
        assert (data["opens"], data["rows"], data["why_not"]) == (True, rows, None)

    def test_a_wrong_file_is_one_even_where_it_opens(self, setsup: Run, releases: Callable[[str], Path]) -> None:
        # the lists of a small release are not those that were published
        found = setsup("fetch", "keypointnet", "--root", releases("keypointnet"), "--check", "--json")
        assert (found.code, found.json["opens"], found.json["rows"]) == (1, True, 15)
        assert {"wrong", "missing"} <= {file["state"] for file in found.json["files"]}

    def test_wrapped_releases_and_archives(self, setsup: Run, releases: Callable[[str], Path], tmp_path: Path) -> None:
        shutil.copytree(releases("scenenn"), tmp_path / "data" / "my" / "scenes")
        archive = shutil.make_archive(str(tmp_path / "rooms"), "zip", releases("scenenn"))
        for root in (tmp_path / "data", archive):
            found = setsup("fetch", "scenenn", "--root", root, "--check")
            assert (found.code, found.err) == (0, "")
            assert "not needed: the dataset opens" in found.out
            assert "opens: 36 rows" in found.out.splitlines()

    @pytest.mark.long("large or genuine files")
    def test_half_an_archive(self, setsup: Run, releases: Callable[[str], Path], tmp_path: Path) -> None:
        archive = Path(shutil.make_archive(str(tmp_path / "multi-pie"), "zip", releases("multi-pie")))
        archive.write_bytes(archive.read_bytes()[:20_000])
        for root in (tmp_path, archive):
            found = setsup("fetch", "multi-pie", "--root", root, "--check")
            assert (found.code, found.err) == (1, "")
            assert "\ndoes not open: " in found.out
            assert "\n1. Order Multi-PIE" in found.out
            assert found.out.splitlines()[-1] == f"folder: {tmp_path}"
            assert setsup("fetch", "multi-pie", "--root", root, "--check", "--json").json["opens"] is False

    def test_a_published_archive_that_is_named_is_compared(self, setsup: Run, tmp_path: Path) -> None:
        (tmp_path / "nips2015-analogy-data.tar.gz").write_bytes(b"half of it")
        found = setsup("fetch", "cars3d", "--root", tmp_path / "nips2015-analogy-data.tar.gz", "--check", "--json")
        assert (found.code, found.json["files"][0]["state"]) == (1, "wrong")


class TestFetching:
    def test_the_licence_comes_before_the_refusal(self, setsup: Run, tmp_path: Path) -> None:
        found = setsup("fetch", "multi-pie", "--root", tmp_path)
        assert found.code == 2
        assert found.out.startswith("licence: licence of Carnegie Mellon University · ")
        assert "private persons" in found.out.splitlines()[0]
        assert found.out.splitlines()[1].startswith("to be signed: the licence agreement")
        assert f"`setsup fetch multi-pie --root {tmp_path} --check`" in found.err
        silent = setsup("fetch", "multi-pie", "--root", tmp_path, "--json")
        assert (silent.code, silent.out, f"setsup: {json.loads(silent.err)['error']}\n") == (2, "", found.err)

    def test_nothing_is_fetched_into_an_archive(self, setsup: Run, tmp_path: Path) -> None:
        archive = tmp_path / "mine.zip"
        archive.write_bytes(b"PK")
        gated = setsup("fetch", "multi-pie", "--root", archive)
        assert gated.code == 2
        assert gated.out.splitlines()[-1] == f"folder: {tmp_path}"
        assert f"into {tmp_path}, and check with `setsup fetch multi-pie --root {tmp_path} --check`" in gated.err
        free = setsup("fetch", "mnist", "--root", archive)
        assert free.code == 2
        assert f"`setsup fetch mnist --root {tmp_path}`" in free.err
        assert f"`setsup fetch mnist --root {archive} --check`" in free.err
        assert list(tmp_path.iterdir()) == [archive]


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("name", ["cars3d", "shapenet-renderings", "scenenn"])
def test_preparing_prints_all_files_that_serve(
    setsup: Run, releases: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    root = shutil.copytree(releases(name), tmp_path / "release")
    found = setsup("prepare", name, "--root", root, "--json")
    assert found.code == 0, found.err
    files = [Path(file) for file in found.json["arrays"]]
    assert len(files) == {"cars3d": 2, "shapenet-renderings": 3, "scenenn": 6}[name]
    assert all(file.is_file() for file in files)
    assert setsup("prepare", name, "--root", root).out.splitlines() == [str(file) for file in files]


class TestInfo:
    @pytest.mark.long("large or genuine files")
    def test_what_a_data_set_has_beside(self, setsup: Run, releases: Callable[[str], Path]) -> None:
        found = setsup("info", "pascal3d", "--root", releases("pascal3d"))
        lines = found.out.splitlines()
        assert (
            "also has: cad_model(category, index), cameras(rows), paths(indices), photo(row); "
            "see setsup.datasets.benchmarks.pascal3d" in lines
        )
        words = "options: size=N,N, margin=NUMBER, jitter=NUMBER, seed=N; "
        assert words + 'as in setsup.open("pascal3d", size=...), or --option size=N,N' in lines
        assert any(line.startswith("split abc, parts car and chair: ") for line in lines)
        part = setsup("info", "pascal3d", "--root", releases("pascal3d"), "--split", "abc-car", "--json").json
        assert part["beside"] == ["cad_model(category, index)", "cameras(rows)", "paths(indices)", "photo(row)"]

    def test_modalities_with_what_they_mean(self, setsup: Run) -> None:
        found = setsup("info", "pascal3d")
        words = [" ".join(line.split()) for line in found.out.splitlines()]
        assert any(
            line.startswith("as many rows as the files contain (a row for each annotated object") for line in words
        )
        assert "box 4 float32 px x1, y1, x2, y2 as annotated, counted from 1, both ends within" in words
        assert any(line.startswith("theta continuous deg; rotation in the plane") for line in words)
        assert "also has" not in found.out
        data = setsup("info", "pascal3d", "--json").json
        assert data["beside"] is None
        assert data["options"] == ["size=N,N", "margin=NUMBER", "jitter=NUMBER", "seed=N"]
        assert data["modalities"][1]["description"].startswith("x1, y1")


class TestSampling:
    @pytest.mark.parametrize(
        ("words", "note", "shape"),
        [
            (("--domain", "category", "--size", 4), "sets 3: the number of groups", (1, 3, 4)),
            (("--orbit", "category"), "sets 3: the number of groups", (1, 3, 5)),
            (("--orbit", "category", "--sets", 2), "", (1, 2, 5)),
        ],
    )
    def test_no_more_sets_than_groups(
        self,
        setsup: Run,
        releases: Callable[[str], Path],
        tmp_path: Path,
        words: tuple[object, ...],
        note: str,
        shape: tuple[int, ...],
    ) -> None:
        found = setsup("sample", "keypointnet", "--root", releases("keypointnet"), *words)
        assert (found.code, found.err) == (0, "")
        notes = [line for line in found.out.splitlines() if line.startswith(("size ", "sets "))]
        assert [line.startswith(note) for line in notes] == [True] * bool(note)
        assert np.load(tmp_path / "setsup-samples" / "draws.npz")["indices"].shape == shape

    def test_large_data_sets_keep_the_defaults(self, setsup: Run, tmp_path: Path) -> None:
        assert "\nsets " not in setsup("sample", "--domain", "wall_hue", "--size", 2).out
        assert np.load(tmp_path / "setsup-samples" / "draws.npz")["indices"].shape == (1, 4, 2)
