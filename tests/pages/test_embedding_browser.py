"""Embeddings and results in a browser: points are where they belong, and what is shown is what Python says."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.scatter import AS_A_GPU, BROWSER, SOFTWARE, frame_times
from setsup.pages import export, open_embeddings, page_of
from setsup.reports.colors import ACCESSIBLE, on_grounds, rgb
from tests.pages.sources import HOSTILE, awkward

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = [
    pytest.mark.long("browser"),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is here: apt install chromium"),
]
EITHER = ("live", "file")
"""A server or none: a folder answers like a file."""
SCRIPTS = {
    "WebGL2": AS_A_GPU,
    "Canvas 2D": """const asked = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, options) {
          return kind === 'webgl2' ? null : asked.call(this, kind, options);
        };""",
}
"""WebGL also by software, where the page would take a 2D canvas; and no WebGL."""
DATA = awkward()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Embeddings of all rows of a dataset with hostile names, in three dimensions."""
    out = tmp_path_factory.mktemp("embeddings")
    np.save(out / "embeddings.npy", np.random.default_rng(4).normal(size=(24, 3)).astype(np.float32) * [4, 2, 1])
    np.save(out / "rows.npy", np.arange(24))
    pq.write_table(DATA.factors.to_arrow(), out / "factors.parquet")
    return out


@pytest.fixture(scope="module")
def addresses(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    page = page_of({"awkward": DATA}, embeddings=open_embeddings(folder, [DATA]))
    out = tmp_path_factory.mktemp("pages")
    found = {
        "folder": export(page, out / "page", rows=24, steps=2).as_uri(),
        "file": export(page, out / "page.html", rows=24, steps=2).as_uri(),
    }
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    from setsup.pages import serve

    told, ready = [], threading.Event()

    def tell(address: str) -> None:
        told.append(address)
        ready.set()

    threading.Thread(target=serve, args=(page,), kwargs={"ready": tell}, daemon=True).start()
    assert ready.wait(30)
    return {**found, "live": told[0]}


@pytest.fixture(scope="module")
def started() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=list(SOFTWARE))
        yield opened
        opened.close()


@pytest.fixture(scope="module", params=["WebGL2", "Canvas 2D"])
def browser(request: pytest.FixtureRequest, started: Any) -> Any:
    """A browser with WebGL by software; `by` says what draws."""
    started.by = request.param
    return started


@pytest.fixture
def opened(browser: Any, addresses: dict[str, str]) -> Iterator[Any]:
    """Open a page; at the end its console was empty, and nothing was asked of another host."""
    contexts, wrong = [], []

    def open_page(transport: str, width: int = 1200) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, service_workers="block")
        context.add_init_script(SCRIPTS[browser.by])
        contexts.append(context)
        page, address = context.new_page(), addresses[transport]
        page.set_default_timeout(60_000)
        start = address.partition("?")[0] if transport == "live" else address.rpartition("/")[0]
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on("request", lambda one: one.url.startswith((start, "data:")) or wrong.append(one.url))
        page.goto(address)
        page.get_by_role("tab", name="Embeddings").click()
        page.wait_for_selector(f"canvas[data-by='{browser.by}']")
        page.get_by_role("group", name=re.compile("^Colours of ")).wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong


PLACES = "() => [...Array(24).keys()].map(one => document.querySelector('canvas[data-by]').scatter.where(one))"


def pixel(page: Any, point: int, right: float = 0) -> list[int]:
    """The colour that the plot has at a point, read back from its canvas right after it was drawn."""
    return page.evaluate(
        """([point, right]) => {
            const canvas = document.querySelector('canvas[data-by]'), ratio = canvas.width / canvas.clientWidth;
            const [x, y] = canvas.scatter.where(point).map(one => Math.round(one * ratio));
            canvas.scatter.draw();
            const gl = canvas.dataset.by === 'WebGL2' ? canvas.getContext('webgl2') : null;
            if (!gl) {
                const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
                copy.drawImage(canvas, -x - right, -y);
                return [...copy.getImageData(0, 0, 1, 1).data];
            }
            const found = new Uint8Array(4);
            gl.readPixels(x + right, canvas.height - 1 - y, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, found);
            return [...found];
        }""",
        [point, right],
    )


def rows_in_order(folder: Path) -> list[int]:
    (source,) = open_embeddings(folder, [DATA])
    return source.order.tolist()  # of all rows, each is its own number


def middle(page: Any, point: int) -> tuple[float, float]:
    canvas = page.locator("canvas[data-by]")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    x, y = page.evaluate("point => document.querySelector('canvas[data-by]').scatter.where(point)", point)
    return box["x"] + x, box["y"] + y


def free(page: Any) -> list[int]:
    """Points that no other one lies on."""
    places = page.evaluate(PLACES)
    apart = np.linalg.norm(np.array(places)[:, None] - places, axis=-1) + 1e9 * np.eye(24)
    size = page.evaluate("document.querySelector('canvas[data-by]').scatter.size()")
    return np.flatnonzero(apart.min(axis=1) > 1.5 * size).tolist()


@pytest.mark.parametrize("transport", EITHER)
def test_points_are_drawn_where_they_belong_in_their_colors(opened: Any, transport: str, folder: Path) -> None:
    page, order = opened(transport), rows_in_order(folder)
    (source,) = open_embeddings(folder, [DATA])
    points, _ = source.points
    shown = np.array(page.evaluate(PLACES))
    # the plot is the projection, moved and scaled alike along both axes, y upwards
    both = np.stack([points[:, 0], -points[:, 1]], axis=1)
    scale = np.ptp(shown, axis=0) / np.ptp(both, axis=0)
    assert scale[0] == pytest.approx(scale[1], rel=1e-3)
    np.testing.assert_allclose(shown - shown[0], (both - both[0]) * scale[0], atol=0.05)
    alone, codes = free(page), DATA.factors.codes(HOSTILE[0], order)
    assert len(alone) > 8
    named = on_grounds([rgb(name) for name in ACCESSIBLE])
    for point in alone:
        color = named[codes[point]][0] if codes[point] >= 0 else "#7b8794"
        expected = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
        assert pixel(page, point) == [*expected, 255]
    ratio = page.evaluate(
        "() => { const c = document.querySelector('canvas[data-by]'); return c.width / c.clientWidth; }"
    )
    size = page.evaluate("document.querySelector('canvas[data-by]').scatter.size()")
    assert pixel(page, alone[0], round(0.8 * size * ratio))[3] in (0, 255)
    assert all(pixel(page, point, round(0.65 * size * ratio))[3] == 0 for point in alone[:1])


def test_points_have_their_colors_once_the_legend_is_there(started: Any, addresses: dict[str, str]) -> None:
    """Also before the next frame: effects that follow it come late where the machine is busy."""
    page = started.new_page()
    page.add_init_script(SCRIPTS["Canvas 2D"])
    page.add_init_script(
        """window.seen = null;
        new MutationObserver(() => {
            if (window.seen || !document.querySelector('.legend')) return;
            const canvas = document.querySelector('.points canvas');
            if (canvas.scatter) canvas.scatter.draw();
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            window.seen = [...new Set([...new Uint32Array(pixels.buffer)])].length - 1;
        }).observe(document, {childList: true, subtree: true});"""
    )
    page.goto(addresses["file"])
    page.get_by_role("tab", name="Embeddings").click()
    page.wait_for_function("() => window.seen !== null")
    assert page.evaluate("window.seen") > 1  # colors beside the ground: one, where all points were drawn alike
    page.close()


@pytest.mark.parametrize("transport", EITHER)
def test_hover_shows_the_row_and_a_click_its_neighbours(opened: Any, transport: str, folder: Path) -> None:
    page, order = opened(transport), rows_in_order(folder)
    stored = np.load(folder / "embeddings.npy").astype(np.float64)
    for point in free(page)[:2]:
        row = order[point]
        page.mouse.move(*middle(page, point))
        page.locator(".tip", has_text=f"row {row}").wait_for()
        pixels = page.wait_for_function(
            """() => { const image = document.querySelector('.tip img');
            if (!image || !image.complete || !image.naturalWidth) return null;
            const at = image.style.objectPosition.match(/-?[0-9.]+/g).map(Number);
            const canvas = document.createElement('canvas');
            canvas.width = canvas.height = 64;
            const context = canvas.getContext('2d'); context.drawImage(image, at[0], at[1]);
            return [...context.getImageData(0, 0, 64, 64).data]; }"""
        ).json_value()
        found = np.array(pixels).reshape(64, 64, 4)[8:56, :, :3].astype(float)  # 12 × 16 pixels, enlarged to 48 × 64
        expected = np.kron(DATA.fetch(row)["image"], np.ones((4, 4, 1)))
        others = [np.abs(found - np.kron(DATA.fetch(one)["image"], np.ones((4, 4, 1)))).mean() for one in range(24)]
        assert np.abs(found - expected).mean() == min(others)
        page.mouse.click(*middle(page, point))
        page.get_by_role("heading", name=f"Row {row} and its nearest neighbours").wait_for()
        page.locator(".near button").nth(7).wait_for()
        apart = np.linalg.norm(stored - stored[row], axis=1)
        apart[row] = np.inf
        nearest = np.argsort(apart)[:8]
        labels = page.locator(".near button").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
        told = [re.match(r"row (\d+), distance ([0-9.e+-]+)", label).groups() for label in labels]
        assert [int(one) for one, _ in told] == nearest.tolist()
        np.testing.assert_allclose([float(one) for _, one in told], apart[nearest], rtol=6e-3)
    page.locator(".near button").first.click()
    page.get_by_role("heading", name=f"Row {nearest[0]} and its nearest neighbours").wait_for()


def test_keys_move_zoom_and_pick(opened: Any, folder: Path) -> None:
    page, order = opened("file"), rows_in_order(folder)
    canvas, where = page.locator("canvas[data-by]"), "() => document.querySelector('canvas[data-by]').scatter.where(3)"
    before = page.evaluate(where)
    canvas.focus()
    page.keyboard.press("ArrowLeft")
    moved = page.evaluate(where)
    assert moved[0] > before[0] + 20
    assert moved[1] == pytest.approx(before[1])
    page.keyboard.press("+")
    assert page.evaluate("document.querySelector('canvas[data-by]').scatter.zoom") == pytest.approx(1.5)
    page.keyboard.press("0")
    assert page.evaluate(where) == pytest.approx(before)
    box = canvas.bounding_box()
    apart = np.array(page.evaluate(PLACES)) - [box["width"] / 2, box["height"] / 2]
    nearest = int(np.argmin(np.linalg.norm(apart, axis=1)))
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=f"Row {order[nearest]} and its nearest neighbours").wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Nothing is picked yet.").wait_for()
    page.mouse.move(box["x"] + 50, box["y"] + 60)
    page.mouse.wheel(0, -300)
    page.wait_for_function("() => document.querySelector('canvas[data-by]').scatter.zoom > 1.2")
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 60)
    page.mouse.up()
    page.get_by_text("Nothing is picked yet.").wait_for()  # a drag picks nothing


def test_a_legend_of_hostile_names_shows_levels_alone(opened: Any, folder: Path) -> None:
    page, order = opened("file", 390), rows_in_order(folder)
    names = page.locator(".legend .level").all_inner_texts()
    assert [re.sub(r"\s+", " ", name) for name in names[:4]] == [re.sub(r"\s+", " ", name) for name in HOSTILE]
    assert page.evaluate("document.querySelectorAll('#page img[src=x]').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1")
    page.locator(".legend button").nth(1).click()
    page.locator(".legend button[aria-pressed=true]").wait_for()
    page.wait_for_timeout(200)  # the next frame
    codes, alone = DATA.factors.codes(HOSTILE[0], order), free(page)
    assert {pixel(page, point)[3] for point in alone if codes[point] == 1} <= {255}
    assert {pixel(page, point)[3] for point in alone if codes[point] != 1} == {0}
    page.get_by_role("button", name="Show all levels").click()
    page.wait_for_timeout(200)
    assert {pixel(page, point)[3] for point in alone} == {255}
    page.get_by_role("combobox", name="Colour").select_option("yaw")
    page.locator("canvas.ramp").wait_for()
    assert page.locator(".legend .ends").inner_text().split() == ["0", "deg", "360", "deg"]


def test_everything_that_is_used_has_a_name(opened: Any) -> None:
    from tests.pages.test_browser import NAMELESS

    page = opened("file")
    page.mouse.click(*middle(page, free(page)[0]))
    page.locator(".near button").first.wait_for()
    assert page.evaluate(NAMELESS) == []
    names = page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
    assert len(set(names)) == len(names)


def test_a_million_points_without_a_gpu(started: Any) -> None:
    """The budget: 100,000 points at 15 frames a second, a million within a second."""
    page = started.new_page(viewport={"width": 1000, "height": 800})
    for count, most in ((100_000, 1 / 15), (1_000_000, 1)):
        seconds, name = frame_times(page, count)
        assert name == "Canvas 2D"
        assert np.median(seconds) <= most, (count, seconds)
    page.close()


def test_two_embeddings_side_by_side_share_the_picked_row(started: Any, folder: Path, tmp_path: Path) -> None:
    (first,) = open_embeddings(folder, [DATA], name="first")
    (second,) = open_embeddings(folder, [DATA], name="second")
    second.embeddings = second.embeddings[::-1].copy()
    address = export(page_of({"awkward": DATA}, embeddings=[first, second]), tmp_path / "two.html", rows=24).as_uri()
    page = started.new_page(viewport={"width": 1200, "height": 900})
    page.goto(address)
    page.get_by_role("tab", name="Embeddings").click()
    page.get_by_label("Beside it").select_option(label="second")
    page.wait_for_function("() => document.querySelectorAll('canvas[data-by]').length === 2")
    left, right = page.locator("canvas[data-by]").all()
    assert left.bounding_box()["y"] == right.bounding_box()["y"]
    left.focus()
    left.press("Enter")
    headings = page.get_by_role("heading", name=re.compile("^Row .* and its nearest neighbours"))
    page.wait_for_function(
        "() => [...document.querySelectorAll('h3')].filter(one => /nearest neigh/.test(one.textContent)).length === 2"
    )
    one, other = headings.all_inner_texts()
    assert one == other
    page.get_by_label("Beside it").select_option(label="none")
    page.wait_for_function("() => document.querySelectorAll('canvas[data-by]').length === 1")
    page.close()
