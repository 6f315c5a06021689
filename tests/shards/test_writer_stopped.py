"""Shards whose writing was stopped, and begun again or by two at once."""

import errno
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.shards.writing import parts, writer
from setsup.shards.writing.writer import write_shards
from tests.sharded import Varied, contents
from tests.shards.sets import FEW, NAMES, in_store

# -- stopped and started again -------------------------------------------------------------------------------------


@pytest.mark.long("kills and interruptions")
@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_in_the_middle_leaves_what_is_finished(tmp_path, processes):
    folder = tmp_path / "set"
    settings = {"per_shard": 10, "modalities": NAMES}
    with pytest.raises(RuntimeError, match="row 33 is broken"):
        write_shards(Varied(broken=33), folder, processes=processes, **settings)
    left = contents(folder)
    assert ".setsup/plan.json" in left
    assert "data-00003.tar" not in left
    if processes == 1:
        assert {f"data-{number:05}.tar" for number in range(3)} <= set(left)
        assert not any("tmp" in name or "tar-" in name for name in left)
    finished = [name for name in left if name.endswith(".tar") and f".setsup/parts/{name[5:10]}.parquet" in left]
    before = {name: (folder / name).stat().st_mtime_ns for name in finished}
    said = []
    write_shards(Varied(), folder, processes=processes, on_start=lambda plan, rows: said.append(rows), **settings)
    assert said == [10 * len(finished)]
    assert {name: (folder / name).stat().st_mtime_ns for name in finished} == before
    write_shards(Varied(), tmp_path / "fresh", **settings)
    assert contents(folder) == contents(tmp_path / "fresh")


def _interrupted(tmp_path, monkeypatch, folder, error):
    """Stop the writing of the last shards by an error in whatever the store does."""
    from setsup.shards.stores.local import LocalStore

    put = LocalStore.put

    def failing(self, name, path):
        if name == "data-00003.tar":
            raise error
        put(self, name, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "put", failing)
        write_shards(Varied(), folder, **FEW)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DataError("the store fails")])
def test_ctrl_c_and_a_failing_store_leave_no_half_shard(tmp_path, monkeypatch, whole, error):
    folder = tmp_path / "set"
    with pytest.raises(type(error)):
        _interrupted(tmp_path, monkeypatch, folder, error)
    left = contents(folder)
    assert {name: content for name, content in left.items() if not name.startswith(".setsup/")} == {
        name: content for name, content in contents(whole).items() if name in {f"data-{n:05}.tar" for n in range(3)}
    }
    assert sorted(name for name in left if name.startswith(".setsup/")) == [
        *(f".setsup/parts/{number:05}.parquet" for number in range(3)), ".setsup/plan.json",
    ]  # fmt: skip
    assert not (tmp_path / "set.lock").exists()
    write_shards(Varied(), folder, **FEW)
    assert contents(folder) == contents(whole)


def test_a_full_disk_is_told_in_a_sentence(tmp_path, monkeypatch):
    class Full(parts.Tar):
        def end(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(parts, "Tar", Full)
        with pytest.raises(DataError, match=r"cannot write .*data-00000\.tar: the disk is full; free some space"):
            write_shards(Varied(5), tmp_path / "set")
    assert sorted(contents(tmp_path / "set")) == [".setsup/plan.json"]


def test_too_little_room_is_noticed_before(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=500))
    # 24 bytes of a pair, 120 of a depth, 2 of a weight; what the pictures take nobody knows
    with pytest.raises(
        DataError, match=r"writing shards of varied requires 730 bytes in .*, but only 500 bytes are available"
    ):
        write_shards(Varied(5), tmp_path / "set")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("gone", [["data-00001.tar"], ["data-00000.tar", ".setsup/parts/00002.parquet"], ["cut"]])
def test_shards_that_are_gone_or_cut_off_are_written_again(tmp_path, monkeypatch, whole, gone):
    folder = tmp_path / "set"
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tmp_path, monkeypatch, folder, KeyboardInterrupt())
    for name in gone:
        if name == "cut":
            os.truncate(folder / "data-00001.tar", 3000)
        else:
            (folder / name).unlink()
    write_shards(Varied(), folder, **FEW)
    assert contents(folder) == contents(whole)


def test_a_damaged_part_is_named(tmp_path, monkeypatch):
    folder = tmp_path / "set"
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tmp_path, monkeypatch, folder, KeyboardInterrupt())
    (folder / ".setsup/parts/00001.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match=r"parts/00001\.parquet is damaged .*remove it and run the same command again"):
        write_shards(Varied(), folder, **FEW)


@pytest.mark.parametrize("stop", ["README.md", "shards.json", "index.parquet", "clear"])
def test_a_stop_at_the_very_end_is_fixed(tmp_path, monkeypatch, whole, stop):
    from setsup.shards.stores.local import LocalStore

    put_bytes, put = LocalStore.put_bytes, LocalStore.put

    def failing(self, name, content, *, fresh=False):
        if name == stop:
            (self.folder / f".{Path(name).stem}-01234567-0123456789ab.tmp{Path(name).suffix}").write_bytes(content[:9])
            raise KeyboardInterrupt
        return put_bytes(self, name, content, fresh=fresh)

    def failing_put(self, name, path):
        if name == stop:
            raise KeyboardInterrupt
        put(self, name, path)

    def not_cleared(self):
        raise KeyboardInterrupt

    folder = tmp_path / "set"
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "put_bytes", failing)
        patch.setattr(LocalStore, "put", failing_put)
        if stop == "clear":
            patch.setattr(writer._Work, "_clear", not_cleared)
        with pytest.raises(KeyboardInterrupt):
            write_shards(Varied(), folder, **FEW)
    assert (folder / "shards.json").exists() == (stop == "clear")
    assert (folder / ".setsup").exists()
    said = []
    write_shards(Varied(), folder, on_start=lambda plan, rows: said.append((plan.rows, rows)), **FEW)
    assert said == [(50, 50)]
    assert contents(folder) == contents(whole)
    assert not (folder / ".setsup").exists()


@pytest.mark.long("kills and interruptions")
def test_a_kill_is_fixed(tmp_path, whole):
    folder = tmp_path / "set"
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from setsup.shards.stores.local import LocalStore
from setsup.shards.writing.writer import write_shards
from tests.sharded import Varied
from tests.shards.sets import FEW
put = LocalStore.put
def killing(self, name, path):
    if name == "data-00002.tar":
        os.kill(os.getpid(), signal.SIGKILL)
    put(self, name, path)
LocalStore.put = killing
write_shards(Varied(), {str(folder)!r}, **FEW)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert any(name.startswith(".setsup/data-00002.tar-") for name in contents(folder))
    left = []
    write_shards(Varied(), folder, on_start=lambda plan, rows: left.extend(contents(folder / ".setsup")), **FEW)
    assert sorted(left) == ["parts/00000.parquet", "parts/00001.parquet", "plan.json"]
    assert contents(folder) == contents(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


# -- two jobs ------------------------------------------------------------------------------------------------------


def test_a_finished_set_is_opened(tmp_path, whole):
    folder = tmp_path / "set"
    shutil.copytree(whole, folder)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(write_shards(Varied(), folder, **FEW)) == 50
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.long("kills and interruptions")
@pytest.mark.parametrize("processes", [1, 2])
def test_tars_of_a_finished_set_that_are_lost_are_written_again(tmp_path, whole, processes):
    """Those alone; content is not looked at, and what verify() names comes back once it is removed."""
    folder, said = tmp_path / "set", []
    shutil.copytree(whole, folder)
    (folder / "data-00001.tar").unlink()
    os.truncate(folder / "data-00003.tar", 700)
    content = (folder / "data-00000.tar").read_bytes()
    (folder / "data-00000.tar").unlink()
    (folder / "data-00000.tar").write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    sizes = {shard[0]: shard[1] for shard in json.loads((whole / "shards.json").read_text())["shards"]}
    more = {"processes": processes, "on_start": lambda plan, rows: said.append(plan.rows - rows), **FEW}
    shards = write_shards(Varied(), folder, **more)
    assert said == [sizes["data-00001.tar"] + sizes["data-00003.tar"]]
    after = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"data-00001.tar", "data-00003.tar"}
    assert shards.verify() == ["data-00000.tar"]
    (folder / "data-00000.tar").unlink()
    assert write_shards(Varied(), folder, **more).verify() == []
    assert contents(tmp_path) == {f"set/{name}": content for name, content in contents(whole).items()}
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []


@pytest.mark.long("kills and interruptions")
def test_a_lost_tar_of_a_bucket_is_written_again(bucket, whole):
    import fsspec

    said = []
    more = {"storage_options": bucket.options, "on_start": lambda plan, rows: said.append(plan.rows - rows), **FEW}
    write_shards(Varied(), bucket.url, **more)
    system = fsspec.filesystem("s3", **bucket.options)
    system.rm_file(f"{bucket.url}/data-00004.tar")
    system.pipe_file(f"{bucket.url}/data-00002.tar", b"cut")
    write_shards(Varied(), bucket.url, **more)
    shards = json.loads((whole / "shards.json").read_text())["shards"]
    assert said == [50, shards[2][1] + shards[4][1]]
    assert in_store(bucket.url, bucket.options) == contents(whole)


def test_a_lost_tar_is_not_replaced_by_other_rows(tmp_path, whole):
    """Of which only those are noticed before that are looked at."""

    class Other(Varied):
        def row(self, row, name):
            return super().row(row + 1000 * (row not in (0, 24, 49) and row % 7 == 3), name)

    folder = tmp_path / "set"
    looked = {"modalities": ["depth"]}
    write_shards(Varied(), folder, per_shard=12, **looked)
    (folder / "data-00000.tar").unlink()
    before = contents(folder)
    with pytest.raises(DataError, match=r"data-00000\.tar is missing and cannot be written again.* write them again"):
        write_shards(Other(), folder, per_shard=12, **looked)
    assert contents(folder) == before
    assert not (folder / ".setsup").exists()


@pytest.mark.parametrize(("cut", "said"), [(None, "is missing"), (9, "has 9 bytes, not ")])
def test_a_finished_set_without_its_index_is_refused(tmp_path, whole, cut, said):
    folder = tmp_path / "set"
    shutil.copytree(whole, folder)
    if cut is None:
        (folder / "index.parquet").unlink()
    else:
        os.truncate(folder / "index.parquet", cut)
    before = contents(folder)
    with pytest.raises(DataError, match=rf"index\.parquet {said}.*; restore it from the tars with `setsup index"):
        write_shards(Varied(), folder, **FEW)
    assert contents(folder) == before


def test_a_catalogue_of_other_tars_is_refused(tmp_path, whole):
    folder = tmp_path / "set"
    shutil.copytree(whole, folder)
    text = (folder / "shards.json").read_text()
    (folder / "shards.json").write_text(text.replace("data-00002.tar", "data-00007.tar"))
    with pytest.raises(DataError, match=r"shards\.json is damaged: it lists different tars; fetch it again"):
        write_shards(Varied(), folder, **FEW)


@pytest.mark.long("Ray clusters")
def test_a_cluster_that_cannot_be_used_leaves_nothing_behind(tmp_path, memory):
    from setsup.jobs import Ray

    pytest.importorskip("ray")
    for place in (tmp_path / "set", memory):
        with pytest.raises(DataError, match=r"no response from 127\.0\.0\.1:1 "):
            write_shards(Varied(), place, on=Ray("127.0.0.1:1"), **FEW)
    assert list(tmp_path.iterdir()) == []
    assert in_store(memory) == {}
    write_shards(Varied(5), tmp_path / "set")  # by any other plan


@pytest.mark.parametrize(
    ("dataset", "change"),
    [
        (Varied(51), {}),
        (Varied(), {"order": "keep"}),
        (Varied(), {"per_shard": 20}),
        (Varied(), {"format": "npy"}),
        (Varied(), {"modalities": NAMES}),
        (Varied(names=NAMES), {}),
    ],
)
def test_other_work_is_refused(tmp_path, monkeypatch, whole, dataset, change):
    folder = tmp_path / "set"
    shutil.copytree(whole, folder)
    with pytest.raises(DataError, match=r"other shards: 50 rows of varied in 5 shards in the order 'by:category'"):
        write_shards(dataset, folder, **{**FEW, **change})
    assert contents(folder) == contents(whole)
    begun = tmp_path / "begun"
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tmp_path, monkeypatch, begun, KeyboardInterrupt())
    before = contents(begun)
    with pytest.raises(DataError, match=r"was started with .*; use the same settings, choose another place, or remove"):
        write_shards(dataset, begun, **{**FEW, **change})
    assert contents(begun) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun", "set"]


def test_other_work_is_refused_at_once_while_the_first_goes_on(tmp_path):
    folder, errors = tmp_path / "set", []

    def other():
        try:
            write_shards(Varied(), folder, per_shard=20)
        except DataError as error:
            errors.append(str(error))

    def begun(plan, rows):  # the first work has the lock of the folder
        thread = threading.Thread(target=other, daemon=True)
        thread.start()
        thread.join(60)

    write_shards(Varied(), folder, on_start=begun, **FEW)
    assert len(errors) == 1
    assert "was started with" in errors[0]


def test_other_rows_of_equal_factors_are_other_work(tmp_path):
    class Plain(Varied):
        def __init__(self):
            super().__init__(6, NAMES)
            self.factors = FactorTable([Factor("one", Kind.ORDINAL, (1,))], {"one": np.zeros(6, int)})

    write_shards(Plain().select([0, 1, 2, 3, 5]), tmp_path / "set")
    with pytest.raises(DataError, match="contains other shards"):
        write_shards(Plain().select([0, 4, 2, 3, 5]), tmp_path / "set")


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "thesis.tex").touch()
    with pytest.raises(DataError, match=r"contains other files \(thesis\.tex\); choose a new place"):
        write_shards(Varied(5), tmp_path / "set")
    assert list(contents(tmp_path)) == ["set/thesis.tex"]
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write .*/file: a file exists where a folder is required"):
        write_shards(Varied(5), tmp_path / "file")


@pytest.mark.parametrize("name", ["data-00000.tar-old", ".notes-0123456789ab.tmp"])
def test_files_that_only_look_like_what_a_kill_leaves_stay(tmp_path, name):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / name).write_text("mine")
    (folder / "thesis.tex").touch()
    with pytest.raises(DataError, match="contains other files"):
        write_shards(Varied(5), folder)
    assert (folder / name).read_text() == "mine"
    (folder / name).unlink()
    (folder / "thesis.tex").unlink()
    write_shards(Varied(5), folder)
    (folder / name).write_text("mine")
    write_shards(Varied(5), folder)
    assert (folder / name).read_text() == "mine"


@pytest.mark.long("kills and interruptions")
def test_two_jobs_at_once_in_a_folder(tmp_path, whole):
    """The second waits for the first, and finds all done."""
    context = multiprocessing.get_context("spawn")
    jobs = [context.Process(target=_job, args=(str(tmp_path / "set"),)) for _ in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert [job.exitcode for job in jobs] == [0, 0]
    assert contents(tmp_path / "set") == contents(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def _job(folder):
    write_shards(Varied(), folder, **FEW)


def test_two_jobs_at_once_in_a_store(memory, whole):
    """Neither waits, and both end well: whatever the one does between two steps of the other."""
    from setsup.shards.stores.remote import RemoteStore

    url = memory
    put, nested = RemoteStore.put, []

    def interleaved(self, name, path):
        put(self, name, path)
        if name == "data-00002.tar" and not nested:
            nested.append(name)
            write_shards(Varied(), url, **FEW)  # the other job does all the rest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RemoteStore, "put", interleaved)
        write_shards(Varied(), url, **FEW)
    assert nested
    assert in_store(url) == contents(whole)
    with pytest.raises(
        DataError, match="contains other shards: 50 rows of varied in 5 shards in the order 'by:category'"
    ):
        write_shards(Varied(), url, per_shard=12)


def test_three_threads_at_once_in_a_store(memory, whole):
    url, errors = memory, []

    def job():
        try:
            write_shards(Varied(), url, **FEW)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=job) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert in_store(url) == contents(whole)
