"""Decoding JPEG and PNG: what ``fetch`` gives, against the bare decoder in a loop; and the bare decoders themselves."""

import io
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.peers import peer
from benchmarks.rows import Row, at_least, rate
from setsup.datasets import Dataset, images
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.own.table import ImageTable, open_table
from setsup.files.archives.members import open_members

__all__ = ["over", "rows"]

TOPIC = "decoding"
CLOCK: dict[str, Any] = {"clock": time.perf_counter, "seconds": 0.2, "blocks": 11}
PICTURES, SIDE, SET = sized(256, 64), 256, 64

Decoder = Callable[[bytes], Any]


def rows(full: bool) -> Iterator[Row]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    before = images.threads
    try:
        for kind, end in (("JPEG", "jpg"), ("PNG", "png")):
            with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
                paths = _pictures(Path(folder), kind, end)
                for threads in sorted({1, min(cores, 8)}):
                    images.threads = threads
                    yield from _fetching(Path(folder), paths, kind, threads)
                    yield from _bare(paths, kind, threads)
    finally:
        images.threads = before


def _fetching(folder: Path, paths: Sequence[Path], kind: str, threads: int) -> Iterator[Row]:
    """Share of the limit, in per cent: the same files read and decoded in a loop by as many threads."""
    chosen, decode = next(iter(_decoders(kind).items()))
    table = open_table(folder / "photos.csv")
    members = open_members(folder / "photos.zip")
    zipped = ImageTable(
        "zip", table.factors, MemberImages(members, members.places([path.name for path in paths])), None
    )
    sets = np.random.default_rng(0).permuted(np.tile(np.arange(PICTURES), (64, 1)), axis=1)[:, :SET]
    for where, dataset in (("files in a folder", table), ("an uncompressed zip", zipped)):
        ours, bare, same = (iter(np.tile(sets, (999, 1))) for _ in range(3))
        out, other = ({"image": np.empty((SET, SIDE, SIDE, 3), np.uint8)} for _ in range(2))

        def fetch(dataset: Dataset = dataset, turns: Iterator[Any] = ours, out: dict[str, Any] = out) -> None:
            dataset.fetch_into(next(turns), out)

        def loop(turns: Iterator[Any] = bare) -> None:
            over([paths[row] for row in next(turns)], lambda path: decode(path.read_bytes()), threads)

        def gather(turns: Iterator[Any] = same, slots: npt.NDArray[np.uint8] = other["image"]) -> None:
            def fill(item: tuple[int, int]) -> None:
                slots[item[0]] = decode(paths[item[1]].read_bytes())

            over(list(enumerate(next(turns))), fill, threads)

        sides = {"ours": Side(fetch, SET), "bare": Side(loop, SET), "same": Side(gather, SET)}
        if _by_spdl_works(paths[0]):
            third = iter(np.tile(sets, (999, 1)))

            def by_spdl(turns: Iterator[Any] = third) -> None:
                _by_spdl([paths[row] for row in next(turns)], threads)

            sides["SPDL"] = Side(by_spdl, SET)
        found = alternate(sides, **CLOCK)
        what = f"{kind} of {SIDE} × {SIDE}, sets of {SET}, {where}, {_said(threads)}"
        for name, against, bound in (
            ("bare", f"{chosen} on files, pictures thrown away", at_least(90)),
            ("same", f"{chosen} on files, copied into one array", None),
        ):
            share = ratio(100 * found[name], found["ours"])
            said = rate(found["ours"], "images"), against, rate(found[name], "images")
            yield Row(TOPIC, what, *said, share, "%", bound)
        if "SPDL" in found:
            said = rate(found["ours"], "images"), "SPDL (FFmpeg) into one array", rate(found["SPDL"], "images")
            yield Row(TOPIC, what, *said, ratio(found["SPDL"], found["ours"]))


def _by_spdl_works(path: Path) -> bool:
    """Whether SPDL is installed, and finds the libraries of FFmpeg, which it does not bring."""
    if peer("spdl-io") is None:
        return False
    try:
        _by_spdl([path], 1)
    except RuntimeError as error:
        print(f"SPDL was not measured: {str(error)[:100]}", file=sys.stderr)
        return False
    return True


def _by_spdl(paths: Sequence[Path], threads: int) -> npt.NDArray[np.uint8]:
    """One array of what files hold, decoded in as many threads."""
    spdl: Any = peer("spdl-io")

    def frames(path: Path) -> Any:
        return spdl.decode_packets(spdl.demux_image(str(path)))

    with ThreadPoolExecutor(threads) as pool:
        decoded = list(pool.map(frames, paths))
    return np.asarray(spdl.to_numpy(spdl.convert_frames(decoded)))


def _bare(paths: Sequence[Path], kind: str, threads: int) -> Iterator[Row]:
    """How much longer other decoders take for the same content in memory."""
    contents = [path.read_bytes() for path in paths[:SET]]
    decoders = _decoders(kind)

    def side(decode: Decoder) -> Side:
        return Side(lambda: over(contents, decode, threads), SET)

    found = alternate({name: side(decode) for name, decode in decoders.items()}, **CLOCK)
    chosen, *others = decoders
    for name in others:
        said = rate(found[chosen], "images"), f"{name}, the same", rate(found[name], "images")
        what = f"bare {chosen}, {kind} of {SIDE} × {SIDE}, {_said(threads)}"
        yield Row(TOPIC, what, *said, ratio(found[name], found[chosen]))


def _decoders(kind: str) -> dict[str, Decoder]:
    """Bare decoders of a kind by name, the one that setsup uses first."""
    from kornia_rs.io import decode_image_jpegturbo, decode_image_png_u8
    from simplejpeg import decode_jpeg

    found: dict[str, Decoder]
    if kind == "PNG":
        found = {"kornia-rs": lambda content: decode_image_png_u8(content, (SIDE, SIDE), "rgb")}
    else:
        found = {"simplejpeg": decode_jpeg, "kornia-rs": lambda content: decode_image_jpegturbo(content, "rgb")}
    found["Pillow"] = _by_pillow
    if (cv2 := peer("opencv-python-headless")) is not None:
        cv2.setNumThreads(1)
        found["OpenCV"] = lambda content: cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR_RGB)
    return found


def _by_pillow(content: bytes) -> npt.NDArray[np.uint8]:
    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image)


def over(items: Sequence[Any], function: Callable[[Any], object], threads: int) -> None:
    """Loop in as many threads; results are thrown away."""
    turns = iter(items)

    def work() -> None:
        for item in turns:
            function(item)

    if threads == 1:
        work()
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result()


def _said(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def _pictures(folder: Path, kind: str, end: str) -> list[Path]:
    """Smooth pictures with some noise, as files, a table of them and an uncompressed zip."""
    random = np.random.default_rng(4)
    lines, paths = ["path,subject"], []
    for number in range(PICTURES):
        coarse = Image.fromarray(random.integers(0, 256, (6, 6, 3), dtype=np.uint8)).resize((SIDE, SIDE))
        noisy = np.asarray(coarse, dtype=np.int16) + random.integers(-8, 9, (SIDE, SIDE, 3))
        paths.append(folder / f"{number:03}.{end}")
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(
            paths[-1], kind, **({"quality": 90} if end == "jpg" else {})
        )
        lines.append(f"{paths[-1].name},{number % 2}")
    (folder / "photos.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with zipfile.ZipFile(folder / "photos.zip", "w") as file:
        for path in paths:
            file.write(path, path.name)
    return paths
