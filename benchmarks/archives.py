"""Archives: opening with a kept index, the first listing, and random sets of files out of zip and tar."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import numpy as np

from benchmarks.measure import Side, Spread, alternate, ratio, sized
from benchmarks.rows import Row, at_least, at_most, rate
from setsup.files import cache_folder, open_members

__all__ = ["opened", "rows"]

TOPIC = "archives"
MANY, SOME = sized(500_000, 4_000), sized(50_000, 1_000)
PICTURES, PICTURE, SIZE = sized(5_000, 200), 20_000, 64
PROCESSES = sized(6, 2)
PER_FOLDER = 1_000
HOLDS = [r"list\.txt", r"images/\d+/\d+\.png"]
PATTERN = r"images/(?P<object>\d+)/(?P<view>\d+)\.png"
KINDS = ("folder", "zip", "tar")
LONG_AGO = 1_600_000_000


def rows(full: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        for kind in KINDS:
            yield from _listing(Path(name), kind)
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        # half a million files take a folder a minute, and 2 GB of the smallest pieces of a disk
        for kind in KINDS if full else KINDS[1:]:
            yield from _opening(Path(name), kind)
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as name:
        yield from _reading(Path(name))


# -- opening -----------------------------------------------------------------------------------------------------------


def _opening(folder: Path, kind: str) -> Iterator[Row]:
    """Open a release of many files below a wrapping folder in fresh processes, its index kept by an earlier one."""
    source = _written(folder, kind, _names(MANY, "release/"), b"")
    found = [_in_a_process(source) for _ in range(PROCESSES)][1:]
    what = f"{MANY:,} files in a {kind}, index kept: open and find the release"
    for key, unit, limit in (("seconds", "s", 0.5), ("peak", "MB", 300.0)):
        spread = Spread.of([measured[key] for measured in found])
        yield Row(
            TOPIC, what, f"{spread.median:.3g} {unit}", "limit", f"{limit:g} {unit}", spread, unit, at_most(limit)
        )
    spread = Spread.of([measured["matching"] for measured in found])
    yield Row(TOPIC, f"{MANY:,} names in a {kind} matched, two groups taken", "", "", "", spread, "s")
    _remove(source)


def _in_a_process(source: Path) -> dict[str, float]:
    command = [sys.executable, "-c", f"from benchmarks.archives import opened; opened({str(source)!r})"]
    measured: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return measured


def opened(source: str) -> None:
    """Print seconds (with the import of pyarrow, without that of numpy) and megabytes of opening a release, as JSON."""
    start = time.perf_counter()
    from setsup.files import find_members

    members = find_members("release", source, HOLDS)
    members.read(members.place(_picture(MANY // 4)))
    seconds, peak = time.perf_counter() - start, _peak()
    if len(members) != MANY:
        raise RuntimeError(f"{source} has {len(members):,} files")
    start = time.perf_counter()
    places, _ = members.matching(PATTERN)
    if len(places) != MANY - 1:
        raise RuntimeError(f"{source} has {len(places):,} pictures")
    print(json.dumps({"seconds": seconds, "peak": peak, "matching": time.perf_counter() - start}))


def _peak() -> float:
    """Megabytes of this program alone; what getrusage tells of a new process is what its parent had."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1000
    return float("nan")


# -- listing -----------------------------------------------------------------------------------------------------------


def _listing(folder: Path, kind: str) -> Iterator[Row]:
    source = _written(folder, kind, _names(SOME), bytes(100))
    anew = Side(lambda: open_members(source), SOME, before=_forget)
    how = {"blocks": 7, "warm": True}
    others: dict[str, tuple[str, Callable[[], object]]] = {
        "folder": ("os.walk and os.stat", lambda: _walked(source)),
        "zip": ("zipfile.ZipFile", lambda: len(_zip_names(source))),
        "tar": ("tarfile, next() to the end", lambda: len(_tar_names(source))),
    }
    against, other = others[kind]
    found = alternate({"ours": anew, "other": Side(other, SOME)}, **how)
    speed = Spread.of(1e-3 / found["ours"])
    what = f"first listing of {SOME:,} files in a {kind}"
    said = rate(found["ours"], "files"), against, rate(found["other"], "files")
    yield Row(TOPIC, what, *said, speed, "k files/s", at_least(20))
    yield Row(TOPIC, what, *said, ratio(found["other"], found["ours"]), "×", at_least(10) if kind == "tar" else None)
    _remove(source)


def _forget() -> None:
    shutil.rmtree(cache_folder() / "members", ignore_errors=True)


def _walked(source: Path) -> int:
    return sum(os.stat(os.path.join(top, name)).st_size for top, _, names in os.walk(source) for name in names)


def _zip_names(source: Path) -> list[str]:
    with zipfile.ZipFile(source) as file:
        return file.namelist()


def _tar_names(source: Path) -> list[str]:
    with tarfile.open(source) as file:
        return [info.name for info in file]


# -- reading -----------------------------------------------------------------------------------------------------------


def _reading(folder: Path) -> Iterator[Row]:
    """Share of what the same files give in a folder, all of them in the page cache."""
    content = np.random.default_rng(0).bytes(PICTURE)
    names = _names(PICTURES)
    opened = {kind: open_members(_written(folder, kind, names, content)) for kind in KINDS}
    for members in opened.values():
        for place in range(len(members)):
            members.read(place)
    plain = [str(opened["folder"].path(place)) for place in range(PICTURES)]
    sides = {kind: Side(_reader(members.read, number), SIZE) for number, (kind, members) in enumerate(opened.items())}
    found = alternate({**sides, "plain": Side(_reader(lambda place: _content(plain[place]), 9), SIZE)})
    for kind in KINDS[1:]:
        share = ratio(100 * found["folder"], found[kind])
        what = f"random sets of {SIZE} files of {PICTURE // 1000} kB from a {kind}"
        said = rate(found[kind], "files"), "from a folder", rate(found["folder"], "files")
        yield Row(TOPIC, what, *said, share, "%", at_least(80))
    share = ratio(100 * found["plain"], found["folder"])
    said = rate(found["folder"], "files"), "open(path).read()", rate(found["plain"], "files")
    yield Row(TOPIC, f"random sets of {SIZE} files of {PICTURE // 1000} kB from a folder", *said, share, "%")


def _reader(read: Callable[[int], bytes], seed: int) -> Callable[[], object]:
    sets = cycle(np.random.default_rng(seed).integers(0, PICTURES, (512, SIZE)).tolist())
    return lambda: [read(place) for place in next(sets)]


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


# -- files -------------------------------------------------------------------------------------------------------------


def _names(count: int, below: str = "") -> list[str]:
    """As many names: a list, and pictures in folders."""
    return [f"{below}list.txt", *(below + _picture(number) for number in range(count - 1))]


def _picture(number: int) -> str:
    return f"images/{number // PER_FOLDER:06d}/{number % PER_FOLDER:04d}.png"


def _written(folder: Path, kind: str, names: list[str], content: bytes) -> Path:
    """Write files of one content as a folder, a zip that is not compressed, or a tar; long ago."""
    source = folder / f"release.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(source, "w") as packed:
            for name in names:
                packed.writestr(name, content)
    elif kind == "tar":
        with source.open("wb") as file:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                file.write(info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512))
            file.write(bytes(1024))
    else:
        for name in names:
            path = os.path.join(source, name)
            if name.endswith(("list.txt", "0000.png")):
                os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        for top, *_ in os.walk(source):
            os.utime(top, (LONG_AGO, LONG_AGO))
    os.utime(source, (LONG_AGO, LONG_AGO))
    return source


def _remove(source: Path) -> None:
    shutil.rmtree(source) if source.is_dir() else source.unlink()
