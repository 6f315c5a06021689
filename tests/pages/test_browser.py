"""The page in a browser: live, as a folder and as a file, what is shown is what Python says."""

import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import setsup
from setsup.pages import export, page_of
from setsup.pages.sampler_page import first_sampler, sampler_text
from tests.pages.sources import HOSTILE, awkward, uneven

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.long("browser"),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is here: apt install chromium"),
]

SHAPES = setsup.load("shapes3d-procedural")
PAGES = {"shapes": SHAPES, "animals": uneven(), "awkward": awkward()}
TRANSPORTS = ("live", "folder", "file")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Address of each page by each transport."""
    found = {}
    folder = tmp_path_factory.mktemp("pages")
    for name, dataset in PAGES.items():
        page = page_of({"shapes3d-procedural" if name == "shapes" else name: dataset})
        found[name, "folder"] = export(page, folder / name, rows=96, steps=4).as_uri()
        found[name, "file"] = export(page, folder / f"{name}.html", rows=96, steps=4).as_uri()
        found[name, "live"] = _served(page)
    return found


@pytest.fixture(scope="module")
def trained(addresses: dict[tuple[str, str], str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run, which pages called "run" show beside a dataset with hostile names."""
    pytest.importorskip("lightning", reason="lightning is not installed")
    from setsup.experiments import train
    from tests.experiments.small import PLAIN

    folder = tmp_path_factory.mktemp("runs")
    run = train(replace(PLAIN, steps=12), folder / "seed-0")
    page = page_of({"awkward": PAGES["awkward"]}, runs=[run])
    addresses["run", "live"] = _served(page)
    for transport, name in (("file", "page.html"), ("folder", "page")):
        addresses["run", transport] = export(page, folder / name, rows=96, steps=3).as_uri()
    return run


def _served(page: Any) -> str:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    from setsup.pages import serve

    told, ready = [], threading.Event()

    def tell(address: str) -> None:
        told.append(address)
        ready.set()

    threading.Thread(target=serve, args=(page,), kwargs={"ready": tell}, daemon=True).start()
    assert ready.wait(30)
    return told[0]


@pytest.fixture
def opened(browser: Any, addresses: dict[tuple[str, str], str]) -> Iterator[Any]:
    """Open a page; at the end its console was empty, and nothing was asked of another host."""
    contexts, wrong = [], []

    def open_page(name: str, transport: str, width: int = 1200, more: str = "", **how: str) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, service_workers="block", **how)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        address = addresses[name, transport]
        start = address.partition("?")[0] if transport == "live" else address.rpartition("/")[0]
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on("request", lambda one: one.url.startswith((start, "data:")) or wrong.append(one.url))
        page.goto(address + more)
        page.wait_for_selector("h1")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong


def table_of(page: Any, name: str) -> dict[str, int]:
    """Counts of a factor, from the table beside its bars."""
    figure = page.locator("figure.histogram").filter(has=page.locator("figcaption", has_text=name)).first
    figure.locator("tbody tr").first.wait_for(state="attached")
    rows = figure.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(one => one.textContent))"
    )
    return {label: int(count.replace(",", "")) for label, count, *_ in rows}


def rows_of(page: Any) -> list[list[int]]:
    """Rows of the sets of a draw, from what their images are called."""
    sets = page.locator(".set").evaluate_all(
        "sets => sets.map(one => [...one.querySelectorAll('.thumb')].map(thumb => thumb.title))"
    )
    return [[int(re.sub(r"\D", "", title)) for title in titles] for titles in sets]


def shown(page: Any, draw: Any) -> bool:
    page.wait_for_function(
        "row => [...document.querySelectorAll('.set .thumb')].some(one => one.title.replace(/\\D/g, '') === row)",
        arg=str(draw.indices[0, 0]),
    )
    return rows_of(page) == draw.indices.tolist()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_dataset(opened: Any, transport: str) -> None:
    page = opened("shapes", transport)
    page.get_by_text("480,000 of 480,000 rows").wait_for()
    for name in SHAPES.factors.names:
        counts = SHAPES.factors.counts(name)
        assert table_of(page, name) == dict(zip(map(str, SHAPES.factors[name].levels), counts.tolist(), strict=True))
    page.get_by_role("button", name="wall_hue 0.0: 48,000 rows").click()
    page.get_by_text("48,000 of 480,000 rows satisfy the filter").wait_for()
    assert list(table_of(page, "wall_hue").values()) == [48_000] + 9 * [0]
    assert set(table_of(page, "shape").values()) == {12_000}
    if transport == "live":
        page.get_by_role("button", name="shape cube: 12,000 rows").click()
        page.get_by_text("12,000 of 480,000 rows satisfy the filter").wait_for()
        rows = SHAPES.factors.rows("wall_hue == 0 and shape == 'cube'")
        page.wait_for_function(
            "row => document.querySelector('.thumbs .thumb').title.startsWith('row ' + row)", arg=f"{rows[0]:,}"
        )
        assert list(table_of(page, "scale").values()) == 8 * [1500]
        box = page.get_by_role("textbox", name="Rows where")
        box.fill("wall_hue == ")
        page.get_by_role("button", name="Apply").click()
        page.get_by_role("alert").wait_for()
        page.get_by_text("12,000 of 480,000 rows satisfy the filter").wait_for()
    page.get_by_role("button", name="Clear").click()
    page.get_by_text("480,000 of 480,000 rows").wait_for()
    assert page.locator("canvas.heat").count() == 1
    page.get_by_role("button", name=re.compile("^row 3: ")).click()
    page.get_by_role("heading", name="Row 3").wait_for()
    pixels = page.wait_for_function(
        """() => { const image = document.querySelector('.whole-image');
        if (!image || !image.complete || !image.naturalWidth) return null;
        const canvas = document.createElement('canvas');
        canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
        const context = canvas.getContext('2d'); context.drawImage(image, 0, 0);
        return [...context.getImageData(0, 0, canvas.width, canvas.height).data]; }"""
    ).json_value()
    np.testing.assert_array_equal(np.array(pixels).reshape(64, 64, 4)[..., :3], SHAPES.fetch(3)["image"])


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_draws_of_a_sampler(opened: Any, transport: str) -> None:
    page, sampler = opened("shapes", transport), first_sampler(SHAPES.factors)
    page.get_by_role("tab", name="Sampler").click()
    assert shown(page, sampler[0])
    page.get_by_role("button", name="Next step").click()
    assert shown(page, sampler[1])
    page.get_by_role("textbox", name="Step").press("ArrowRight")
    assert shown(page, sampler[2])
    if transport != "live":
        page.get_by_role("textbox", name="Step").fill("4")
        page.get_by_text("exported without this answer").first.wait_for()
        assert "setsup explore shapes3d-procedural" in page.get_by_role("alert").first.inner_text()
        return
    page.get_by_role("textbox", name="Step").fill(str(2**63 - 1))
    assert shown(page, sampler[2**63 - 1])
    page.get_by_role("button", name="Next step").click()  # there is none
    assert shown(page, sampler[2**63 - 1])
    page.get_by_role("textbox", name="inactive").fill("wall_hue, shape")
    page.get_by_role("textbox", name="seed").fill(str(2**64 - 1))
    page.get_by_role("button", name="Draw", exact=True).click()
    page.get_by_role("textbox", name="Step").fill("9")
    other = setsup.SetSampler(SHAPES.factors, ["wall_hue", "shape"], size=8, small="drop", seed=2**64 - 1)
    assert shown(page, other[9])
    page.get_by_role("textbox", name="of", exact=True).fill("4")
    page.get_by_role("textbox", name="Rank").fill("3")
    assert shown(page, other[39])
    page.get_by_role("textbox", name="of", exact=True).fill("1")
    page.get_by_role("textbox", name="Rank").fill("0")
    assert shown(page, other[9])
    page.locator(".set .thumb").first.click()
    row = int(other[9].indices[0, 0])
    page.get_by_role("button", name="When is it drawn next?").click()
    page.get_by_role("button", name=re.compile("^step ")).first.wait_for()
    following = other.when(row, 10, 10 + 2**17)
    assert page.get_by_role("button", name=re.compile("^step ")).first.inner_text() == f"step {following[0]:,}"
    page.get_by_role("button", name=re.compile("^step ")).first.click()
    assert shown(page, other[int(following[0])])
    with page.context.expect_page() as event:  # the link is the experiment
        page.evaluate("window.open(location.href)")
    event.value.set_default_timeout(60_000)
    assert shown(event.value, other[int(following[0])])


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_it_takes_few_clicks_to_the_groups_that_cannot_be_drawn(opened: Any, transport: str) -> None:
    page = opened("animals", transport)
    page.get_by_role("tab", name="Sampler").click()  # 1
    page.get_by_text("Never drawn: 1 group, 1 row.").wait_for()
    assert page.locator(".never li").all_inner_texts() == ["species = emu"]
    assert "small='short'" in page.locator(".never em").inner_text()
    page.get_by_text("Chance of each group").click()  # 2
    assert page.locator("table", has_text="chance in a step").locator("tbody tr").all_inner_texts() == [
        "species = cat\t5\t75.0 %",
        "species = dog\t3\t75.0 %",
    ]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("width", [1200, 390])
def test_hostile_names_are_text(opened: Any, transport: str, width: int) -> None:
    page, dataset = opened("awkward", transport, width), PAGES["awkward"]
    assert page.locator("h1").inner_text() == "</script>awkward"
    counts = table_of(page, HOSTILE[0][:12])
    expected = dict(zip((*HOSTILE, "plain"), dataset.factors.counts(HOSTILE[0]).tolist(), strict=True))
    assert counts == {**expected, "unknown": 1}
    for place in range(4):
        page.locator("figure.histogram").first.locator(".bar").nth(place).click()
        page.get_by_text(f"{expected[HOSTILE[place]]} of 24 rows satisfy the filter").wait_for()
        assert list(table_of(page, HOSTILE[0][:12]).values())[place] == expected[HOSTILE[place]]
        page.get_by_role("button", name="Clear").click()
    page.get_by_role("tab", name="Sampler").click()
    page.locator(".set").first.wait_for()
    for view in ("Dataset", "Sampler"):
        page.get_by_role("tab", name=view).click()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1")
        assert page.evaluate("document.querySelectorAll('#page img[src=x]').length") == 0


@pytest.mark.parametrize(
    ("transport", "width", "how"),
    [
        ("live", 1200, {"color_scheme": "light"}),
        ("folder", 390, {"color_scheme": "dark"}),
        ("file", 1200, {"color_scheme": "dark", "reduced_motion": "reduce", "forced_colors": "active"}),
    ],
)
def test_axe_finds_no_fault_in_any_view(
    opened: Any, trained: Any, transport: str, width: int, how: dict[str, str]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page = opened("run", transport, width, **how)
    for tab in page.get_by_role("tab").all():
        tab.click()
        page.get_by_role("tabpanel", name=tab.inner_text()).wait_for()
        page.wait_for_timeout(500)
        _unfold(page)
        found = axe.run(page, options={"preload": False})  # it would ask for the style again, which pages forbid
        assert found.violations_count == 0, f"{tab.inner_text()}: {found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1")
        names = page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
        assert len(set(names)) == len(names)


def _unfold(page: Any) -> None:
    """Show what a view hides at first: tables beside bars, one row in full, a second sampler, the batch of a step."""
    for name in ("Compare with a second sampler", "Count the rows of the first steps", re.compile("^step ")):
        for button in page.get_by_role("button", name=name).all():
            if button.is_enabled():
                button.click()
    for place in ("button.thumb", "img.sheet"):
        if page.locator(place).count():
            page.locator(place).first.click()
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.wait_for_timeout(500)


def test_the_token_leaves_the_address_and_the_cookie_stays(opened: Any, addresses: dict[tuple[str, str], str]) -> None:
    page = opened("animals", "live")
    assert "token" not in page.url
    page.reload()
    page.wait_for_selector("h1")
    assert page.evaluate("document.cookie") == ""
    # a page of another site is refused: without the token there is no cookie
    bare = page.context.browser.new_context().new_page()
    assert bare.goto(addresses["animals", "live"].partition("?")[0]).status == 403
    bare.context.close()


def test_a_link_of_another_table_is_refused(opened: Any) -> None:
    from urllib.parse import urlencode

    text = sampler_text(first_sampler(SHAPES.factors))
    page = opened(
        "animals", "folder", more="#" + urlencode({"view": "sampler", "d": "d0", "sampler": text, "step": "3"})
    )
    page.get_by_role("alert").wait_for()
    assert page.locator(".set").count() == 0


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_it_takes_few_clicks_to_the_batch_at_a_spike(opened: Any, trained: Any, transport: str) -> None:
    from setsup.experiments import trained_on
    from setsup.pages.run_page import read_metrics

    run, page = trained, opened("run", transport)
    page.get_by_role("tab", name="Runs").click()  # 1
    steps, metrics = read_metrics(run)
    peak = int(steps[np.argmax(metrics["loss"])])
    page.get_by_role("button", name=re.compile("^step ")).first.click()  # 2
    page.get_by_text(f"step {peak}, draw {peak - 1} of the sampler, rank 0 of 1").wait_for()
    assert shown(page, trained_on(run, peak).draw)
    page.wait_for_function(
        "() => { const sheet = document.querySelector('img.sheet'); return sheet && sheet.naturalWidth > 0; }"
    )
    box = page.locator(".plot svg").bounding_box()
    loss = metrics["loss"]
    height = (loss.max() - loss[-1]) / np.ptp(loss) * (box["height"] - 2)
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + 1 + height)
    page.get_by_text("step 12, draw 11 of the sampler").wait_for()
    assert shown(page, trained_on(run, 12).draw)
