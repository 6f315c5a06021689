"""Verbs that are killed and started again end with the same bytes: three of them here, all by `make smoke`."""

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import h5py
import numpy as np
import pytest

import setsup
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render as render_rows
from setsup.scenes.recipes import Room
from setsup.shards import write_shards
from tests.kills import COMMAND, Sandbox, Work, kill_at_moments, kill_at_steps, state
from tests.track_models import Model
from tests.true_files import mnist, shapenet_renderings, stl10

FEW, MANY = 3, 50
"""Kills of each verb in every run of the tests, and under `make smoke`."""

Build = Callable[[bool, str], Work]
"""Makes a work: larger where it is killed often, and with the address of a mirror."""


# -- the works ---------------------------------------------------------------------------------------------------------


def finished_shards(folder: Path) -> list[Path]:
    """Tars whose part of the index is there, too."""
    out = folder / "out"
    return [out / f"data-{part.stem}.tar" for part in (out / ".setsup" / "parts").glob("[0-9]*.parquet")]


def shard(large: bool, mirror: str, order: str = "shuffle") -> Work:
    """Half of the runs by two processes: the bytes are the same."""
    words = ["shard", "mnist", "--root", "release", "--out", "out", "--order", order, "--per-shard", 10]
    return Work(
        [words, [*words, "--processes", 2]],
        lambda folder: mnist.write(folder / "release", per_split=400 if large else 100),
        settled=finished_shards,
    )


def index(large: bool, mirror: str) -> Work:
    """Tars as others write them."""
    tars, samples = (20, 2500) if large else (4, 200)

    def begin(folder: Path) -> None:
        (folder / "tars").mkdir()
        for number in range(tars):
            with tarfile.open(folder / "tars" / f"train-{number:03}.tar", "w") as tar:
                for row in range(number * samples, (number + 1) * samples):
                    content = json.dumps({"kind": f"kind {row % 7}", "number": row}).encode()
                    member = tarfile.TarInfo(f"{row:08}.json")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))

    return Work([["index", "tars"]], begin)


def repair(large: bool, mirror: str) -> Work:
    """A set of setsup that lost all but its tars and the second copy."""

    def begin(folder: Path) -> None:
        write_shards(setsup.load("shapes3d-procedural").select(range(2000 if large else 60)), folder / "set")
        for name in ("shards.json", "index.parquet", "README.md"):
            (folder / "set" / name).unlink()

    return Work([["index", "set"]], begin)


def prepare(large: bool, mirror: str) -> Work:
    """Chunks to an array: Shapes3D as published, of some rows."""
    rows = 6000 if large else 900

    def begin(folder: Path) -> None:
        floor, wall, thing, scale, shape, turn = np.unravel_index(np.arange(rows), (10, 10, 10, 8, 4, 15))
        sizes, turns = np.linspace(0.75, 1.25, 8), np.linspace(-30, 30, 15)
        with h5py.File(folder / "3dshapes.h5", "w") as file:
            images = file.create_dataset("images", (rows, 64, 64, 3), "uint8", chunks=(150, 16, 16, 3), compression=1)
            file["labels"] = np.stack([floor / 10, wall / 10, thing / 10, sizes[scale], shape, turns[turn]], axis=1)
            images[:] = (np.arange(rows) % 256).astype(np.uint8)[:, None, None, None]

    return Work([["prepare", "shapes3d", "--root", "."]], begin)


def prepare_unpacking(large: bool, mirror: str) -> Work:
    """A packed archive to a folder of files."""

    def begin(folder: Path) -> None:
        stl10.write(folder / "release")
        with tarfile.open(folder / "stl10_binary.tar.gz", "w:gz") as tar:
            tar.add(folder / "release" / "stl10_binary", "stl10_binary")
        shutil.rmtree(folder / "release")

    return Work([["prepare", "stl10", "--root", "."]], begin)


def prepare_indexing(large: bool, mirror: str) -> Work:
    """Archives to arrays that say where their pictures lie, and to indexes of members in the cache."""

    def begin(folder: Path) -> None:
        (folder / "release").mkdir()
        shapenet_renderings.write(folder / "release", ("cars", "planes", "chairs") if large else ("planes",))

    return Work([["prepare", "shapenet-renderings", "--root", "release"]], begin)


def render(large: bool, mirror: str) -> Work:
    """Half of the runs by two processes: the bytes are the same."""
    pytest.importorskip("embreex")
    where = f"floor_hue == 0.1 and wall_hue == 0.6 and object_hue {'<' if large else '=='} {0.3 if large else 0}"
    words = ["render", "shapes3d", "--out", "out", "--size", 16, 24, "--renderer", "embree", "--where", where]
    return Work([words, [*words, "--processes", 2]])


def render_by_overlap(large: bool, mirror: str) -> Work:
    """Pairs are measured, and then rendered; half of the runs by two processes."""
    pytest.importorskip("embreex")
    words = ["render", "shapes3d", "--out", "out", "--size", 16, 24, "--renderer", "embree", "--overlap", ".5-.8"]
    words += ["--matches", 600 if large else 30, "--where", "floor_hue == 0.1 and wall_hue == 0.6"]
    return Work([words, [*words, "--processes", 2]])


def render_frames(large: bool, mirror: str) -> Work:
    """Frames of a room with their flow, whose progress has four bytes a row; half of the runs by two processes."""
    pytest.importorskip("embreex")
    words = ["render", "room", "--out", "out", "--size", 24, 32, "--renderer", "embree", "--rooms", 1, "--count", 0, 1]
    words += ["--moving", 2, "--frames", 240 if large else 24]
    return Work([words, [*words, "--processes", 2]])


def overlap_tracks(large: bool, mirror: str) -> Work:
    """Half of the runs by two processes: the bytes are the same."""
    words = ["overlap", "cloud", "--out", "cloud.overlap"]
    return Work(
        [words, [*words, "--processes", 2]],
        lambda folder: Model(folder / "cloud", views=320 if large else 130, points=400),
    )


def overlap_depth(large: bool, mirror: str) -> Work:
    """A scene of many views, which are sampled and then compared; half of the runs by two processes."""
    pytest.importorskip("embreex")

    def begin(folder: Path) -> None:
        rooms = RenderedDataset(Room(rooms=1, pairs=260 if large else 110, size=(24, 32)), renderer="embree")
        render_rows(rooms, folder / "room", ["depth"])

    words = ["overlap", "room", "--scene", "room", "--candidates", 32, "--out", "room.overlap"]
    return Work([words, [*words, "--processes", 2]], begin)


def fetch(large: bool, mirror: str) -> Work:
    """From a mirror that takes its time."""
    published = [{**file, "urls": [f"{mirror}/{file['path']}"]} for file in RELEASE]
    return Work([["fetch", "mnist", "--root", "release"]], code=FETCH.format(json.dumps(published)) + COMMAND)


FETCH = """
import json
from dataclasses import replace
import setsup_cli.commands.fetch
from setsup.files import ManifestFile, load_manifest
published = tuple(ManifestFile(**file) for file in json.loads({!r}))
setsup_cli.commands.fetch.load_manifest = lambda name: replace(load_manifest(name), files=published)
"""

WORKS: dict[str, Build] = {
    "shard": shard,
    "index": index,
    "index, repairing": repair,
    "prepare": prepare,
    "prepare, unpacking": prepare_unpacking,
    "prepare, indexing": prepare_indexing,
    "render": render,
    "render, by overlap": render_by_overlap,
    "render, frames": render_frames,
    "overlap, tracks": overlap_tracks,
    "overlap, depth": overlap_depth,
    "fetch": fetch,
}


# -- the mirror --------------------------------------------------------------------------------------------------------

RELEASE: list[dict[str, object]] = []
"""What was published: filled by the mirror."""

_SECONDS = 0.7  # that all files take


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of a small release that takes its time, and goes on where it was left."""
    folder = tmp_path_factory.mktemp("release")
    mnist.write(folder, per_split=1000)
    files = {f"/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
    piece = 1 << 13
    pause = _SECONDS * piece / sum(map(len, files.values()))
    RELEASE[:] = [
        {"path": name[1:], "size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        for name, body in files.items()
    ]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:  # the name is the server's
            self.close_connection = True
            body, asked = files[self.path], self.headers.get("Range")
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(len(body) - start))
            self.send_header("ETag", '"1"')
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            try:
                self.end_headers()
                for place in range(start, len(body), piece):
                    self.wfile.write(body[place : place + piece])
                    time.sleep(pause)
            except ConnectionError:  # who asked was killed
                pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


# -- killed ------------------------------------------------------------------------------------------------------------


LONG = pytest.mark.long("kills and interruptions")


@LONG
@pytest.mark.parametrize(
    "name", ["prepare", "shard", "fetch", "overlap, depth", "render, by overlap", "render, frames"]
)
def test_some_kills(tmp_path: Path, mirror: str, name: str) -> None:
    figures = kill_at_moments(tmp_path / "killed", WORKS[name](False, mirror), FEW)
    assert figures.kills == FEW


@pytest.mark.smoke
@pytest.mark.parametrize("name", WORKS)
def test_many_kills(tmp_path: Path, mirror: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    figures = kill_at_moments(tmp_path / "killed", WORKS[name](True, mirror), MANY)
    with capsys.disabled():
        sys.stdout.write(f"\n{name}: {figures}\n")
    assert figures.kills == MANY
    assert figures.before + figures.within > MANY // 4  # otherwise this would show little


@pytest.mark.smoke
@pytest.mark.parametrize("name", WORKS)
def test_a_kill_before_every_step(tmp_path: Path, mirror: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where each file is opened, renamed or removed, which kills at random seldom hit."""
    work = WORKS[name](False, mirror)
    figures = kill_at_steps(tmp_path / "killed", Work(work.words[:1], work.begin, work.code, work.settled), MANY)
    with capsys.disabled():
        sys.stdout.write(f"\n{name}, before each step: {figures}\n")


# -- two at a time -----------------------------------------------------------------------------------------------------


@LONG
def test_two_jobs_that_write_the_same(tmp_path: Path) -> None:
    """The second waits for the first, which is held until it does: else it might come when all is done."""
    sandbox = Sandbox(tmp_path / "two", shard(False, ""))
    sandbox.fresh()
    first = sandbox.start(KILL_AT="6", SIGNAL=str(int(signal.SIGSTOP)))  # when it has the lock
    os.waitpid(first.pid, os.WUNTRACED)
    second = sandbox.start()
    while "is waiting for" not in sandbox.said(second) and second.poll() is None:
        time.sleep(0.01)
    os.kill(first.pid, signal.SIGCONT)
    for child in (first, second):
        assert child.wait(60) == 0, sandbox.said(child)
    sandbox.check("two at a time")
    assert "is waiting for" in sandbox.said(second)


@LONG
def test_another_job_never_mixes_in(tmp_path: Path) -> None:
    """Whoever comes first has the place, the other is told; also where it comes when all is done."""
    sandbox = Sandbox(tmp_path / "two", shard(False, ""))
    other = Sandbox(tmp_path / "other", shard(False, "", order="by:digit"))
    sandbox.fresh()
    children = [sandbox.start(), sandbox.start(other.work.words[0])]
    codes = [child.wait(60) for child in children]
    assert sorted(codes) == [0, 2]
    first, second = (children[codes.index(code)] for code in (0, 2))
    assert "setsup: " in sandbox.said(second)
    assert "Traceback" not in sandbox.said(second)
    assert "choose another place" in sandbox.said(second)
    assert state(sandbox.now / "out") == state((sandbox if first is children[0] else other).now / "out")


# -- a disk that is full -----------------------------------------------------------------------------------------------

FULL = """
mount -t tmpfs -o size=150k tmpfs "$1" || exit 77
top=$1 kept=$2; shift 2
"$@"; echo "code $?"
cp -r "$top/out" "$kept/half"
mount -o remount,size=64m "$top"
"$@"; echo "code $?"
cp -r "$top/out" "$kept/whole"
"""


@LONG
def test_a_full_disk_leaves_no_half_shard_and_the_same_command_goes_on(tmp_path: Path) -> None:
    whole = Sandbox(tmp_path / "sandbox", shard(False, ""))
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    kept.mkdir()
    words = [str(disk / "out") if word == "out" else str(word) for word in whole.work.words[0]]
    inside = ["sh", "-c", FULL, "sh", str(disk), str(kept), sys.executable, "-c", COMMAND, *words]
    try:
        done = subprocess.run(
            ["unshare", "--mount", "--map-root-user", *inside], capture_output=True, text=True, cwd=whole.now
        )
    except FileNotFoundError:
        pytest.skip("this system has no unshare command")
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("this system does not let the tests mount a disk")
    assert [line for line in done.stdout.splitlines() if line.startswith("code ")] == ["code 2", "code 0"], done
    assert "the disk is full; free some space there" in done.stderr
    assert "Traceback" not in done.stderr
    wanted, half = state(whole.now / "out"), state(kept / "half")
    tars = {name: content for name, content in half.items() if name.endswith(".tar")}
    assert 0 < len(tars) < 20
    assert tars.items() <= wanted.items()
    assert not [name for name in half if ".tmp" in name]
    assert state(kept / "whole") == wanted
