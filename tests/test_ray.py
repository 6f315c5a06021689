"""Units of work on a real Ray cluster of this machine: ``ray start --head``, with several workers."""

import functools
import json
import os
import pickle
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest

from setsup.errors import DataError, SetsupError
from setsup.files.atomic import is_temporary
from setsup.jobs import Ray, Unit, ray_worker, run
from setsup.jobs.cluster import Cluster
from setsup.jobs.ray_driver import _fitting, _Most, _too_small
from setsup.jobs.ray_worker import About, do_unit, task
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render
from setsup_cli.main import main
from tests.rendered_scenes import Crayon, Dots
from tests.track_models import Model
from tests.true_files import mnist

CHECKOUT = Path(__file__).resolve().parents[1]
CORES = 2
COMMAND = [sys.executable, "-c", "import sys; from setsup_cli.main import main; sys.exit(main())"]

pytestmark = [
    pytest.mark.long("Ray clusters"),
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed"),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="/proc tells about processes on Linux only"),
]


@pytest.fixture(scope="module", autouse=True)
def address() -> Iterator[str]:
    """A cluster of two cores and a GPU that there is not; only who has its token may use it."""
    # workers need not import this module, and with it all that it needs
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))  # paths of sockets are short
    words = "start --head --block --port=0 --min-worker-port=0 --max-worker-port=0 --include-dashboard=false"
    sizes = f"--num-cpus={CORES} --num-gpus=1 --object-store-memory=80000000 --temp-dir={folder}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")  # what else takes this machine's memory, kills no unit
        patch.delenv("RAY_ADDRESS", raising=False)
        with (folder / "said").open("w+") as said:
            head = subprocess.Popen(
                [Path(sys.executable).with_name("ray"), *words.split(), *sizes.split()],
                stdout=said,
                stderr=said,
                cwd=folder,
                process_group=0,
            )
            try:
                yield started(folder / "said", head)
            finally:
                head.terminate()
                try:
                    head.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(head.pid, signal.SIGKILL)
                    head.wait()
                shutil.rmtree(folder, ignore_errors=True)
                cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def started(said: Path, head: "subprocess.Popen[bytes]") -> str:
    sign = "ray start --address='"
    until(lambda: sign in said.read_text() or head.poll() is not None, 60)
    text = said.read_text()
    assert sign in text, text
    return text.partition(sign)[2].partition("'")[0]


def until(true: Callable[[], Any], seconds: float = 30) -> bool:
    """Whether something becomes true; patient, because machines are busy."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(true())


def units(count: int) -> list[Unit[int]]:
    return [Unit(f"number {number}", number) for number in range(count)]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def drivers() -> list[str]:
    """Processes of ours that speak with Ray."""
    found = [path for path in Path("/proc").iterdir() if path.name.isdecimal() and alive(int(path.name))]
    texts = [(path / "cmdline").read_bytes() for path in found if (path / "cmdline").exists()]
    return [text.decode() for text in texts if b"setsup.jobs.ray_driver" in text and str(CHECKOUT).encode() in text]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# -- results -----------------------------------------------------------------------------------------------------------


def square(number: int) -> tuple[int, int, str]:
    time.sleep(0.01)
    return number * number, os.getpid(), os.getcwd()


def hold(folder: Path, number: int) -> int:
    """Work for long, and say who does."""
    (folder / f"pid-{os.getpid()}").touch()
    if number == 1:
        assert until(lambda: len(list(folder.iterdir())) >= 2)
        return number // 0
    time.sleep(120)
    return number


def die(folder: Path, times: int, number: int) -> int:
    """Kill the process at number 3, so many times."""
    if number == 3:
        died = len(list(folder.iterdir()))
        if died < times:
            (folder / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_several_workers_give_what_local_ones_give_until_one_is_killed_again_and_again(
    address: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """One connection serves several works; a worker that is killed costs nothing but time, a token is taken away."""
    offset = 7
    asked, most = [0], [0]

    class Counting(Cluster):
        def _ask(self, *what: Any) -> None:
            asked[0] += what[0] == "unit"
            most[0] = max(most[0], asked[0])
            super()._ask(*what)

        def _told(self) -> tuple[Any, ...]:
            told = super()._told()
            asked[0] -= told[0] == "done"
            return told

    with Counting(Ray(address)) as connected:
        found = run(square, units(300), on=connected)
        assert [value for value, _, _ in found] == [number**2 for number in range(300)]
        assert len({pid for _, pid, _ in found}) == CORES
        assert os.getpid() not in {pid for _, pid, _ in found}
        assert {folder for _, _, folder in found} == {os.getcwd()}
        assert most[0] == 2 * CORES  # and not 300 at a time
        assert run(lambda number: number + offset, units(4), on=connected) == [7, 8, 9, 10]
        assert run(square, [], on=connected) == []
        ((token,),) = run(lambda folder: os.listdir(folder), [Unit("", tmp_path)], on=connected, folder=tmp_path)
        assert is_temporary(token)  # so that whoever tidies the folder up takes away what a kill has left
        assert not list(tmp_path.iterdir())
        assert not caplog.messages
        assert run(functools.partial(die, tmp_path, 1), units(12), on=connected) == list(range(12))
        (message,) = caplog.messages
        with pytest.raises(
            SetsupError, match=r"the cluster lost number 3 3 times .*possibly because a machine ran out of memory"
        ):
            run(functools.partial(die, tmp_path, 9), [Unit("number 3", 3)], on=connected)
        assert len(list(tmp_path.iterdir())) == 1 + 3
    assert message.startswith("the cluster lost number 3 (WorkerCrashedError: ")
    assert message.endswith("; starting it again")
    assert capfd.readouterr() == ("", "")
    assert not drivers()


def test_the_first_error_ends_the_work_and_says_where(address: str, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError) as error:
        run(functools.partial(hold, tmp_path), units(20), on=Ray(address))
    assert error.value.__notes__[-1] == "in number 1, in a worker process"
    pids = [int(path.name.removeprefix("pid-")) for path in tmp_path.iterdir()]
    assert 2 <= len(pids) <= CORES
    assert until(lambda: not any(map(alive, pids)), 5)
    assert time.monotonic() - began < 60  # the others had slept for two minutes


def test_parts_of_a_gpu(address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Of one GPU, two halves: so many units run at a time, and not the four for which there are cores."""

    def shown(number: int) -> tuple[float, float, str]:
        began = time.monotonic()
        time.sleep(0.3)
        return began, time.monotonic(), os.environ["CUDA_VISIBLE_DEVICES"]

    found = run(shown, units(6), on=Ray(address, gpus=0.5, cpus=0.5))
    assert {device for _, _, device in found} == {"0"}
    together = [sum(a < end and b > began for a, b, _ in found) for began, end, _ in found]
    assert max(sum(a <= began < b for a, b, _ in found) for began, _, _ in found) == 2, together

    said = []

    def give_up(self: Cluster, *told: float) -> None:
        said.append(told)
        raise KeyboardInterrupt

    monkeypatch.setattr(Cluster, "_wait_for_machines", give_up)
    with pytest.raises(KeyboardInterrupt):
        run(square, units(2), on=Ray(address, gpus=2))
    assert said == [(CORES, 1)]
    monkeypatch.undo()
    Cluster._wait_for_machines(SimpleNamespace(on=Ray(gpus=2)), CORES, 1)  # type: ignore[arg-type]
    (message,) = caplog.messages
    assert message.startswith(
        "a unit requires 1 core and 2 GPUs, but no machine of the cluster has more than 2 cores and 1 "
    )


# -- what is amiss -----------------------------------------------------------------------------------------------------


def test_another_machine_has_no_such_folder(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "touch", lambda self: None)  # what the other has under that path: no such file
    with pytest.raises(
        DataError, match=r"cannot access .*shared of the machine that started the work; choose a folder"
    ):
        run(square, units(1), on=Ray(address), folder=tmp_path / "shared")


def test_another_machine_has_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    about = pickle.dumps(About("0123", version("setsup"), None, os.getcwd()))
    monkeypatch.setattr(ray_worker, "version", lambda name: "9.0.7")
    kind, said = do_unit([], about, b"")
    assert kind == "amiss"
    assert "a machine of the cluster, has setsup 9.0.7; install the same version" in said


def test_a_machine_without_setsup() -> None:
    """Ray is given code, not the name of a function in a package that may be missing there."""
    script = """
    import pickle, sys
    sys.modules["setsup"] = None
    print(pickle.loads(sys.stdin.buffer.read())([], b"", b""))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        input=cloudpickle.dumps(task([])),
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith(b"('amiss', ")
    assert b"a machine of the cluster, cannot import setsup (" in done.stdout
    assert b"install the same version on all machines" in done.stdout


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", r"^no response from 127.0.0.1:1 \(Connection refused\); make sure that the cluster is running"),
        ("ray://127.0.0.1:1", r"^no response from ray://127.0.0.1:1 "),
        ("cluster", r"^the address of a Ray cluster must be HOST:PORT, ray://HOST:PORT or auto, not 'cluster'$"),
        ("host:99999999", "the address of a Ray cluster must be"),
    ],
    indirect=False,
)
def test_addresses_that_are_none(address: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        run(square, units(3), on=Ray(address))


def test_ray_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('no ray')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DataError, match=r"ray is required but not installed: pip install '\.\[ray\]'"):
        run(square, units(3), on=Ray())


@pytest.mark.parametrize("options", [{"gpus": -1}, {"gpus": 1.5}, {"cpus": 0}, {"cpus": float("nan")}, {"gpus": "1"}])
def test_needs_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(SetsupError, match=r"(cpus|gpus) must be"):
        Ray(**options)


def test_a_cluster_decides_how_many_processes(tmp_path: Path) -> None:
    with pytest.raises(SetsupError, match="on a cluster, which schedules the units itself"):
        run(square, units(3), processes=2, on=Ray())
    with pytest.raises(SetsupError, match="on a cluster, which schedules"):
        render(RenderedDataset(Dots(), renderer=Crayon()), tmp_path / "out", processes=2, on=Ray())


# -- drivers that end --------------------------------------------------------------------------------------------------

LONG = """
import os, sys, signal, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
from setsup.jobs import Ray, Unit, run
def wait(number):
    Path(sys.argv[2], str(os.getpid())).touch()
    time.sleep(120)
    Path(sys.argv[2], "done").touch()
try:
    run(wait, [Unit(str(n), n) for n in range(9)], on=Ray(sys.argv[1]))
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_units_end_with_who_began_them(address: str, tmp_path: Path, how: int) -> None:
    code = LONG.replace("sys.argv[2]", repr(str(tmp_path)))
    child = subprocess.Popen(
        [sys.executable, "-c", code, address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT
    )
    assert until(lambda: len(list(tmp_path.iterdir())) == CORES, 60)
    child.send_signal(how)
    out, err = child.communicate(timeout=40)
    assert (out, err) == ("stopped\n" if how == signal.SIGINT else "", "")
    pids = [int(path.name) for path in tmp_path.iterdir()]
    # who was interrupted has waited for them
    assert until(lambda: not any(map(alive, pids)), 1 if how == signal.SIGINT else 20)
    assert until(lambda: not drivers(), 20)


def test_a_cluster_of_its_own(tmp_path: Path) -> None:
    """It is started, and stopped: no process is left, and no file but those that Ray has in its folder for sessions."""
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    script = "from setsup.jobs import *\nprint(run(lambda n: n + 1, [Unit('', n) for n in range(5)], on=Ray()))"
    before = set(Path("/tmp").iterdir())
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "RAY_TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            cwd=CHECKOUT,
            timeout=90,
        )
        assert (done.stdout, done.stderr, done.returncode) == ("[1, 2, 3, 4, 5]\n", "", 0)
        sessions = [path for path in folder.rglob("session_2*") if path.is_dir()]
        assert sessions
        commands = [path / "cmdline" for path in Path("/proc").iterdir() if path.name.isdecimal()]
        texts = [path.read_bytes() for path in commands if path.exists()]
        assert not [text for text in texts if sessions[0].name.encode() in text]
        left = {path.name for path in set(Path("/tmp").iterdir()) - before}
        assert not [name for name in left if "ray" in name or "setsup" in name]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_cluster_of_its_own_that_is_too_small(tmp_path: Path) -> None:
    """Nobody can join it, so that nothing is waited for, and nothing begun."""
    script = "import setsup; from setsup.jobs import Ray; few = setsup.load('shapes3d-procedural').select([0])"
    script += "; setsup.write_shards(few, 'x', on=Ray(gpus=3))"
    folder = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "RAY_TMPDIR": str(folder), "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=90,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    last = done.stderr.splitlines()[-1]
    assert "DataError: a unit requires 1 core and 3 GPUs, but the Ray cluster of this machine has only " in last
    assert last.endswith("; request less, or pass the address of a cluster that has them (address=)")
    assert list(tmp_path.iterdir()) == []


NEEDS = [({}, 2), ({"cpus": 2}, 1), ({"cpus": 999}, 0), ({"cpus": 0.5}, 4), ({"cpus": 0.5, "gpus": 0.25}, 4)]
NEEDS += [({"gpus": 1}, 1), ({"gpus": 3}, 0)]


@pytest.mark.parametrize(("need", "fitting"), NEEDS)
def test_units_that_fit_a_machine(need: dict[str, float], fitting: int) -> None:
    assert _fitting({"CPU": 2.0, "GPU": 1.0}, Ray(**need)) == fitting
    assert _fitting({"CPU": 2.0}, Ray(**need)) == (0 if "gpus" in need else fitting)


def test_cores_that_the_cluster_of_this_machine_has_not() -> None:
    said = "a unit requires 999 cores and no GPU, but the Ray cluster of this machine has only 2 cores and 1 GPU; "
    assert str(_too_small(Ray(cpus=999), _Most(0, 2.0, 1.0))).startswith(said)


# -- pictures ----------------------------------------------------------------------------------------------------------


def drawn(folder: Path) -> int:
    path = folder / "rendered.progress"
    return sum(map(bool, path.read_bytes())) if path.exists() else 0


def test_pictures_are_the_same_bytes_though_their_driver_is_killed(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("embreex")
    recipe = ["shapes3d", "--size", "64", "64", "--renderer", "embree", "--modalities", "image"]
    where = ["--where", "floor_hue == 0.1 and wall_hue == 0.6 and object_hue == 0.1 and orientation < 0", "--json"]
    words = ["render", *recipe, *where, "--out"]
    assert main([*words, str(tmp_path / "local")]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 224
    folder = tmp_path / "cluster"
    remote = [*words, str(folder), "--on", "ray", "--ray-address", address, "--ray-gpus", "0.25"]
    child = subprocess.Popen([*COMMAND, *remote], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert until(lambda: drawn(folder) > 0, 60)
    child.kill()
    assert child.communicate() == (b"", b"")
    done = drawn(folder)
    assert 0 < done < 224
    assert list(folder.glob(".setsup-*"))  # what told that the folder is the same
    again = subprocess.run([*COMMAND, *remote], capture_output=True, text=True, check=True)
    assert all(line.startswith("setsup: rendering") for line in again.stderr.splitlines())  # progress, if it is slow
    assert json.loads(again.stdout)["drawn_now"] <= 224 - done
    assert contents(folder) == contents(tmp_path / "local")
    assert not list(tmp_path.glob("*.lock"))


# -- overlaps ----------------------------------------------------------------------------------------------------------


def test_overlaps_are_the_same_bytes(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How a command that was killed goes on, is the same wherever its units run."""
    monkeypatch.chdir(tmp_path)
    Model(tmp_path / "cloud", views=150)
    words = ["overlap", "cloud", "--out"]
    assert main([*words, "local.overlap"]) == 0
    assert main([*words, "cluster.overlap", "--on", "ray", "--ray-address", address]) == 0
    assert Path("cluster.overlap").read_bytes() == Path("local.overlap").read_bytes()
    assert sorted(path.name for path in tmp_path.glob("*.overlap*")) == ["cluster.overlap", "local.overlap"]


# -- shards ------------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_shards_are_the_same_bytes_whoever_ends(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The driver is killed, and then the one that goes on is told to stop."""
    mnist.write(tmp_path / "release", per_split=320)
    words = ["shard", "mnist", "--root", str(tmp_path / "release"), "--order", "shuffle", "--per-shard", "4", "--json"]
    assert main([*words, "--out", str(tmp_path / "local")]) == 0
    remote = [*COMMAND, *words, "--out", str(tmp_path / "cluster"), "--on", "ray", "--ray-address", address]

    def finished() -> set[str]:
        return {path.stem for path in (tmp_path / "cluster" / ".setsup" / "parts").glob("[0-9]*.parquet")}

    for how, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 130)):
        before = finished()
        child = subprocess.Popen(remote, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert until(lambda before=before: finished() - before, 60)  # type: ignore[misc]
        child.send_signal(how)
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out) == (code, "")
        assert until(lambda: not drivers(), 20)  # which have ended what ran
        assert before < finished()
        assert len(finished()) < 160
    assert json.loads(err.splitlines()[-1])["error"].endswith(" of 160 shards; run the same command to resume")
    done = finished()
    again = subprocess.run(remote, capture_output=True, text=True, check=True)
    assert json.loads(again.stdout)["written_now"] <= 640 - 4 * len(done)
    assert contents(tmp_path / "cluster") == contents(tmp_path / "local")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster", "local", "release"]
