"""Pages of ``setsup explore``: counting, filters, images of a step, bytes, and the first paint in a browser.

Counting is compared with a pass of ``np.bincount`` over each column, and a filter with numpy's comparison and that pass
over the rows that it keeps. Bytes, and times that a reader waits for, are held to budgets.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import setsup
from benchmarks.measure import Side, Spread, alternate, ratio, sized
from benchmarks.memory import Numbers
from benchmarks.rows import Bound, Row, at_least, at_most, duration
from setsup import Factor, FactorTable, Kind
from setsup.pages import Page, export, page_of
from setsup.pages.answers import key_of
from setsup.pages.embedding_page import EmbeddingSource
from setsup.pages.sampler_page import sampler_text
from setsup.pages.shell import FILES, static

__all__ = ["large", "rows"]

TOPIC = "explore"
SIZES = (10, 10, 10, 8, 4, 15, 2, 26, 100, 12)
ROWS = sized(10_000_000, 20_000)
EXPORTED = sized(4096, 48)
WHERE = "f0 == 3 and f4 <= 2"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def rows(full: bool) -> Iterator[Row]:
    size = sum(len(static(name)) for name in FILES) / 1e3
    yield budget("scripts and styles of the page", size, "kB", at_most(150))
    yield from counting()
    yield from numbers()
    if full:
        yield from of_100_million()
    data = setsup.load("shapes3d-procedural")
    page = page_of({"shapes3d-procedural": data})
    yield from images(page)
    yield exported(page, "")
    yield exported(page_of({"shapes3d-procedural": data}, embeddings=[embedded(data)]), ", and an embedding")
    yield from first_paint(page)


def budget(what: str, value: float, unit: str, bound: Bound) -> Row:
    return Row(TOPIC, what, f"{value:.3g} {unit}", "", "", Spread.of([value]), unit, bound)


def timed(what: str, found: Any, most: float) -> Row:
    return Row(TOPIC, what, duration(found), "", "", Spread.of(found), "s", at_most(most))


def columns(count: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    return {f"f{place}": random.integers(0, size, count, dtype=np.uint8) for place, size in enumerate(SIZES)}


def table_of(codes: dict[str, Any]) -> FactorTable:
    factors = [Factor(f"f{place}", Kind.ORDINAL, tuple(range(size))) for place, size in enumerate(SIZES)]
    return FactorTable(factors, codes)


def asks(page: Page, /, **question: str) -> Callable[[], object]:
    key = key_of(question)
    return lambda: page.get(key)


def counting() -> Iterator[Row]:
    """Answers about 10 M rows of 10 factors: all counts, and all counts under a filter that is applied first."""
    codes = columns(ROWS)
    table = table_of(codes)
    pages: list[Page] = []

    def forget() -> None:  # a page keeps the rows of its last filters
        pages[:] = [page_of({"numbers": Numbers(table)})]

    def passes(kept: Callable[[Any], Any], where: Callable[[], Any]) -> object:
        mask = where()
        return [
            np.bincount(kept((column, mask)), minlength=size)
            for column, size in zip(codes.values(), SIZES, strict=True)
        ]

    sides = {
        "count": Side(lambda: pages[0].get(key_of({"s": "d0", "q": "counts", "where": ""})), before=forget),
        "passes": Side(lambda: passes(lambda one: one[0], lambda: None)),
        "filter": Side(lambda: pages[0].get(key_of({"s": "d0", "q": "counts", "where": WHERE})), before=forget),
        "filtered": Side(lambda: passes(lambda one: one[0][one[1]], lambda: (codes["f0"] == 3) & (codes["f4"] <= 2))),
    }
    found = alternate(sides, blocks=5)
    for ours, other, what in (("count", "passes", "counted"), ("filter", "filtered", "filtered and counted")):
        what = f"10 M rows of 10 factors {what}"
        yield timed(what, found[ours], 0.5)
        times = ratio(found[other], found[ours])
        yield Row(
            TOPIC,
            what,
            duration(found[ours]),
            "np.bincount of each column",
            duration(found[other]),
            times,
            "×",
            at_least(1),
        )


def numbers() -> Iterator[Row]:
    """A continuous factor of 10 M rows, counted in the bins that the page shows."""
    values = np.random.default_rng(0).normal(size=ROWS).astype(np.float32)
    table = FactorTable([Factor("x", Kind.CONTINUOUS, None)], {"x": values})
    sides = {"ours": Side(lambda: table.histogram("x", 40)), "numpy": Side(lambda: np.histogram(values, 40))}
    found = alternate(sides, blocks=5)
    what = "10 M rows of a continuous factor in 40 bins"
    yield timed(what, found["ours"], 0.1)
    times = ratio(found["numpy"], found["ours"])
    theirs = duration(found["numpy"])
    yield Row(TOPIC, what, duration(found["ours"]), "np.histogram", theirs, times, "×", at_least(1))


def of_100_million() -> Iterator[Row]:
    """Answers about columns that are mapped from a file, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
        path = Path(folder) / "table.arrow"
        table_of(columns(100_000_000)).save(path)
        command = [sys.executable, "-c", f"from benchmarks.explore import large; large({str(path)!r})"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    what = "100 M mapped rows of 10 factors"
    yield budget(f"{what}: estimate from {found['sample']:,} rows", found["estimate"], "s", at_most(0.5))
    yield budget(f"{what}: filtered and counted", found["exact"], "s", at_most(5))
    yield budget(f"{what}: memory beyond them", found["memory"] / 2**30, "GiB", at_most(1))


def large(path: str) -> None:
    """Print seconds of an estimate and of exact counts under a filter, and the memory of these, as JSON."""
    page = page_of({"numbers": Numbers(FactorTable.open(path))})
    found: dict[str, Any] = {}
    for name in ("estimate", "exact"):
        question = asks(page, s="d0", q="estimate" if name == "estimate" else "counts", where=WHERE)
        start = time.perf_counter()
        answer: Any = question()
        found[name] = time.perf_counter() - start
        found["sample"] = json.loads(answer.content).get("sample", found.get("sample"))
    page = page_of({"numbers": Numbers(FactorTable.open(path))})
    tracemalloc.start()
    asks(page, s="d0", q="counts", where=WHERE)()
    asks(page, s="d0", q="rows", order="random", page="7", where=WHERE)()
    found["memory"] = tracemalloc.get_traced_memory()[1]
    print(json.dumps(found))


def images(page: Page) -> Iterator[Row]:
    """A step whose draw has 64 rows: the draw and its thumbnails, once scenes are cast, and while they are."""
    dataset: Any = page.sources["d0"].dataset
    sampler = setsup.SetSampler(dataset.factors, ["wall_hue"], size=32, sets=2)
    steps = iter(range(1 << 30))
    text = sampler_text(sampler)

    def step() -> None:
        number = next(steps)
        asks(page, s="s0", q="draw", sampler=text, step=str(number))()
        for some in sampler[number].indices:
            asks(page, s="d0", q="thumbs", rows=",".join(map(str, some)))()

    what = "a step with 64 thumbnails of shapes3d-procedural"
    start = time.process_time()
    step()
    cold = Spread.of([time.process_time() - start])
    yield Row(TOPIC, f"{what}, the first one", duration(np.array([cold.median])), "", "", cold, "s")
    dataset.fetch(np.arange(sized(480, 1)))  # of each scale, shape and orientation one
    yield timed(what, alternate({"ours": Side(step)})["ours"], 0.05)


def embedded(dataset: Any) -> EmbeddingSource:
    """Random numbers in place of embeddings, whose neighbours take as many bytes."""
    random = np.random.default_rng(0)
    rows = random.choice(len(dataset), EXPORTED, replace=False)
    numbers = random.normal(size=(EXPORTED, 64)).astype(np.float32)
    return EmbeddingSource("numbers", numbers, rows, dataset.factors.select(rows), dataset)


def exported(page: Page, more: str) -> Row:
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
        size = export(page, Path(folder) / "page.html", rows=EXPORTED).stat().st_size / 1e6
    return budget(f"exported file, {EXPORTED:,} rows{more}", size, "MB", at_most(25))


def first_paint(page: Page) -> Iterator[Row]:
    """Seconds until Chromium paints the page, live, after those until the page is there to be asked."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright

        from setsup.pages import serve
    except ImportError:
        return
    if browser is None:
        return
    told: list[str] = []
    ready = threading.Event()

    def tell(address: str) -> None:
        told.append(address)
        ready.set()

    threading.Thread(target=serve, args=(page,), kwargs={"ready": tell}, daemon=True).start()
    ready.wait(30)
    seconds = []
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for _ in range(sized(9, 1)):
            context = opened.new_context()
            shown = context.new_page()
            shown.goto(told[0])
            shown.wait_for_selector("h1")
            shown.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
            seconds.append(shown.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1e3)
            context.close()
        opened.close()
    yield timed("first paint in Chromium, live", np.array(seconds), 0.3)
