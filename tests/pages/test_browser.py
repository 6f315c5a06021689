"""The page in a browser: live, as a folder and as a file, what is shown is what Python says."""

import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import setsup
from setsup.pages import export, open_embeddings, page_of
from setsup.pages.commands import command_line, python_code
from setsup.pages.dataset_page import DatasetSource
from setsup.pages.opened import Opening
from setsup.pages.sampler_page import first_sampler, sampler_text
from tests.pages.sources import HOSTILE, awkward, numbers, uneven
from tests.pages.views import views

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.long("browser"),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is here: apt install chromium"),
]

SHAPES = setsup.load("shapes3d-procedural")
PAGES = {"shapes": SHAPES, "animals": uneven(), "awkward": awkward()}
TRANSPORTS = ("live", "folder", "file")
EITHER = ("live", "file")
"""A server or none: a folder answers like a file, which tests of all three see."""


NAMELESS = """() => {
  const named = one => one.getAttribute('aria-label') || one.textContent.trim()
    || [...(one.labels || [])].some(label => label.textContent.trim());
  const used = document.querySelectorAll('button, input, select, textarea');
  return [...used].filter(one => !named(one)).map(one => one.outerHTML);
}"""


EPOCHS = setsup.EpochSampler(
    SHAPES.factors, size=64, epochs=1, where="scale == 0.75 and shape == 'cube' and wall_hue < 0.2"
)

# rows of every bar of continuous factors, and its filter
BARS = """async () => {
  const about = (await setsup.get({})).sources.d0, all = await setsup.get({s: 'd0', q: 'counts', where: ''});
  return about.factors.flatMap(factor => [...bins(factor, all.factors[factor.name])].map(
    (bar, place) => [all.factors[factor.name].counts[place], bar.expression]));
}"""

# questions take a while, and those for draws are noted
SLOW = """() => {
  const get = setsup.get;
  window.asked = [];
  setsup.get = async question => {
    if (question.q === 'draw') asked.push(question.step);
    await new Promise(done => setTimeout(done, 100));
    return get(question);
  };
}"""

# what is asked while the rank of a run is chosen, and then another run
RANKS = """async () => {
  const asked = [], place = document.body.appendChild(document.createElement('div')), get = setsup.get;
  setsup.get = async question => { asked.push(question); throw new Error('nothing'); };
  const settled = () => new Promise(done => setTimeout(done, 50));
  const about = {metrics: [], shown: [], steps: 9, trained: 9, parts: 1, images: false};
  const run = (id, devices) => ({id, about: {...about, name: id, folder: id, devices}});
  render(html`<${RunsView} runs=${[run('x', 2), run('y', 1)]} />`, place);
  const change = async (name, value, type) => {
    const label = [...place.querySelectorAll('label')].find(one => one.textContent.startsWith(name));
    label.control.value = value;
    label.control.dispatchEvent(new Event(type, {bubbles: true}));
    await settled();
  };
  await settled();
  await change('Step', '3', 'input');
  const rank = place.querySelector('input[type=number]');
  if (rank.disabled) rank.disabled = false;
  await change('Rank', '1', 'change');
  await change('Run', 'y', 'change');
  render(null, place);
  place.remove();
  setsup.get = get;
  return asked;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"]
        )
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
    found["numbers", "live"] = _served(page_of({"numbers": numbers()}))
    return found


@pytest.fixture(scope="module")
def trained(addresses: dict[tuple[str, str], str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run, which pages called "run" show beside views of scenes, a dataset with hostile names, and its embeddings."""
    pytest.importorskip("lightning", reason="lightning is not installed")
    from setsup.experiments import find_report, report_on, train
    from setsup.experiments.report.registry import fill_reports
    from setsup.pages import report_page
    from tests.experiments.small import PLAIN

    folder = tmp_path_factory.mktemp("runs")
    run = train(replace(PLAIN, steps=12), folder / "seed-0")
    (folder / "embeddings").mkdir()
    np.save(folder / "embeddings" / "embeddings.npy", np.random.default_rng(4).normal(size=(24, 3)).astype(np.float32))
    np.save(folder / "embeddings" / "rows.npy", np.arange(24))
    pq.write_table(PAGES["awkward"].factors.to_arrow(), folder / "embeddings" / "factors.parquet")
    embeddings = open_embeddings(folder / "embeddings", [PAGES["awkward"]])
    page = page_of({"views": views(), "awkward": PAGES["awkward"]}, runs=[run], embeddings=embeddings)
    addresses["run", "live"] = _served(page)
    reports = [report_on(find_report("abc/fig4a"), ()), *fill_reports([run])]
    (folder / "report.html").write_text(report_page(reports), encoding="utf-8")
    addresses["report", "file"] = (folder / "report.html").as_uri()
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
        page.wait_for_selector("[role=tab]")
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
        # one bar of each factor: another replaces it, and clicked again it is left out
        box = page.get_by_role("textbox", name="Rows where")
        page.get_by_role("button", name="floor_hue 0.1: 1,200 rows").click()
        page.get_by_text("1,200 of 480,000 rows satisfy the filter").wait_for()
        page.get_by_role("button", name="floor_hue 0.2: 0 rows").click()
        page.wait_for_function("() => document.querySelector('.filter input').value.endsWith('0.2')")
        assert box.input_value() == '`wall_hue` == 0.0 and `shape` == "cube" and `floor_hue` == 0.2'
        assert page.locator(".bar[aria-pressed=true]").count() == 3
        page.get_by_role("button", name="floor_hue 0.2: 1,200 rows").click()
        page.get_by_text("12,000 of 480,000 rows satisfy the filter").wait_for()
        box.fill("wall_hue == ")
        page.get_by_role("button", name="Apply").click()
        page.get_by_role("alert").wait_for()
        page.get_by_text('12,000 of 480,000 rows satisfy `wall_hue` == 0.0 and `shape` == "cube"').wait_for()
        box.fill("scale > 0.9 and shape != 'cube'")
        page.get_by_role("button", name="Apply").click()
        page.get_by_text("225,000 of 480,000 rows satisfy the filter").wait_for()
        expected = SHAPES.factors.counts("orientation", "scale > 0.9 and shape != 'cube'")
        assert list(table_of(page, "orientation").values()) == expected.tolist()
        # a bar adds to what is typed, also where its condition stands there
        box.fill('(floor_hue == 0.1) and `shape` == "cube"')
        page.get_by_role("button", name="Apply").click()
        page.get_by_text("12,000 of 480,000 rows satisfy the filter").wait_for()
        page.get_by_role("button", name="shape cube: 12,000 rows").click()
        page.get_by_role("button", name="wall_hue 0.0: 1,200 rows").click()
        page.get_by_text("1,200 of 480,000 rows satisfy the filter").wait_for()
    page.get_by_role("button", name="Clear").click()
    page.get_by_text("480,000 of 480,000 rows").wait_for()
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
    loaded = page.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
    asked = [one for one in loaded if "/get?" in one or "/data/" in one]
    assert len(set(asked)) == len(asked), "an answer was asked for twice"
    if transport == "live":
        _bars_count_what_they_say(opened("numbers", "live"))


def _bars_count_what_they_say(page: Any) -> None:
    """Each bar of continuous factors, by the filter that a click on it sets, and some of them clicked."""
    page.get_by_text("300 of 300 rows").wait_for()
    told = page.evaluate(BARS)
    assert len(told) == 40 * len(numbers().factors.names)
    assert [rows for rows, _ in told] == [len(numbers().factors.rows(expression)) for _, expression in told]
    for name in numbers().factors.names:
        figure = page.locator("figure.histogram").filter(has=page.locator("figcaption", has_text=name)).first
        bar = figure.locator(".bar").last
        rows = re.search(r"(\d+) rows?$", bar.get_attribute("aria-label"))[1]
        bar.click()
        page.get_by_text(f"{rows} of 300 rows satisfy the filter").wait_for()
        page.get_by_role("button", name="Clear").click()
        page.get_by_text("300 of 300 rows", exact=True).wait_for()


@pytest.mark.parametrize("transport", EITHER)
def test_two_factors_are_a_heat_map(opened: Any, transport: str) -> None:
    page, table = opened("awkward", transport), PAGES["awkward"].factors
    page.get_by_role("combobox", name="Lines").select_option(HOSTILE[2])
    page.get_by_role("combobox", name="Columns").select_option(HOSTILE[1])
    counts = table.joint_counts([HOSTILE[2], HOSTILE[1]])
    rows = page.locator("section[aria-labelledby=joint-heading] tbody tr")
    page.wait_for_function(
        "() => document.querySelectorAll('section[aria-labelledby=joint-heading] tbody td').length === 6"
    )
    assert [[int(one) for one in row.locator("td").all_inner_texts()] for row in rows.all()] == counts.tolist()
    pixels = np.array(
        page.evaluate(
            """() => { const heat = document.querySelector('canvas.heat');
            const all = heat.getContext('2d').getImageData(0, 0, heat.width, heat.height);
            return [heat.height, heat.width, [...all.data]]; }"""
        )[2]
    ).reshape(3 * 28, 2 * 28, 4)
    shares = counts / counts.max()
    for (down, across), share in np.ndenumerate(shares):
        # from nearly white to a dark blue; what occurs at all is told from what does not
        part = 0.12 + 0.88 * share if share else 0
        expected = [247 - 214 * part, 250 - 147 * part, 252 - 80 * part, 255]
        np.testing.assert_allclose(pixels[28 * down + 10, 28 * across + 10], expected, atol=1)


def test_axes_of_the_map_have_their_levels_and_a_chart_is_one_tab_stop(opened: Any) -> None:
    page = opened("shapes", "live")
    page.locator(".map .levels").first.wait_for()
    (across, down) = (page.locator(f".map .levels{kind}") for kind in (".across", ":not(.across)"))
    levels = list(map(str, SHAPES.factors["floor_hue"].levels))
    assert down.locator("span").all_inner_texts() == levels
    assert set(across.locator("span").all_inner_texts()) <= set(map(str, SHAPES.factors["wall_hue"].levels))
    assert across.locator("span").first.inner_text() == "0.0"
    heat = page.locator("canvas.heat").bounding_box()
    for place, label in enumerate(down.locator("span").all()):
        box = label.bounding_box()
        middle = heat["y"] + (place + 0.5) / len(levels) * heat["height"]
        assert abs(box["y"] + box["height"] / 2 - middle) < 2
    bars = page.get_by_role("group", name="Rows by wall_hue", exact=True).get_by_role("button")
    bars.first.focus()
    focused = "() => document.activeElement.getAttribute('aria-label')"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused).startswith("wall_hue 0.1:")
    page.keyboard.press("End")
    assert page.evaluate(focused).startswith("wall_hue 0.9:")
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(focused).startswith("wall_hue 0.9:")  # where the keys left it
    page.keyboard.press("Enter")
    page.get_by_text("48,000 of 480,000 rows satisfy the filter").wait_for()


@pytest.mark.parametrize("transport", EITHER)
def test_rows_in_either_order_and_one_in_full(opened: Any, transport: str) -> None:
    page, source = opened("shapes", transport), DatasetSource(SHAPES)
    for order, name in (("table", "of the table"), ("random", "random, the same each time")):
        page.get_by_label("Order").select_option(name)
        for number in (0, 1):
            expected, count = source.rows("", order, number)
            assert count == len(SHAPES)
            page.wait_for_function(
                "row => document.querySelector('.thumbs .thumb')?.title.startsWith(`row ${row}: `)",
                arg=f"{expected[0]:,}",
            )
            titles = page.locator(".thumbs .thumb").evaluate_all("all => all.map(one => one.title)")
            assert [title.partition(":")[0] for title in titles] == [f"row {row:,}" for row in expected]
            if number == 0:
                page.get_by_role("button", name="Next").click()
    # an exported page says that it ends before the dataset does
    last = page.get_by_role("button", name="Next")
    assert last.is_disabled() == (transport != "live")
    assert page.get_by_text("the first 96 of 480,000 rows").count() == (transport != "live")
    page = opened("awkward", transport)
    page.get_by_role("button", name=re.compile("^row 5: ")).click()
    page.get_by_role("heading", name="Row 5").wait_for()
    page.locator(".modalities figure").nth(1).wait_for()
    told = page.locator("section.detail dl div").evaluate_all(
        "all => all.map(one => [...one.children].map(c => c.textContent))"
    )
    values = PAGES["awkward"].factors.row(5)
    assert dict(told) == {name: f"{value:g}" if name == "yaw" else str(value) for name, value in values.items()}
    page.wait_for_function(
        "() => { const all = [...document.querySelectorAll('.whole-image')];"
        " return all.length === 2 && all.every(one => one.complete && one.naturalWidth === 16); }"
    )
    assert "from black to white" in page.locator(".modalities figcaption").nth(1).inner_text()


@pytest.mark.parametrize("transport", EITHER)
def test_chances_coverage_and_code_of_a_draw(opened: Any, transport: str) -> None:
    page, table = opened("animals", transport), PAGES["animals"].factors
    page.get_by_role("tab", name="Sampler").click()
    sampler = first_sampler(table)
    assert shown(page, sampler[0])
    page.locator(".set .thumb").first.click()
    reached = sampler.reach().row(int(sampler[0].indices[0, 0]))
    page.get_by_text(f"Chance in a step: {100 * reached.chance:#.3g} %").wait_for()
    page.get_by_text(f"on average it is drawn every {round(reached.wait)} steps").wait_for()
    assert page.get_by_role("button", name="When is it drawn next?").is_enabled() == (transport == "live")
    if transport == "live":
        page.get_by_role("button", name="Count the rows of the first steps").click()
    lines = page.locator("section[aria-label=Coverage] tbody tr")
    lines.first.wait_for()
    for line in lines.all_inner_texts()[:4]:
        steps, rows, _ = line.split("\t")
        assert int(rows) == len(np.unique(sampler.block(0, int(steps)).indices))
    assert page.get_by_label("Python").input_value() == python_code(Opening("animals"), sampler, 0)
    assert page.get_by_label("Command line").input_value() == command_line(Opening("animals"), sampler, 0)
    assert page.get_by_text("Python's default, error, refuses such a sampler").count() == 1


@pytest.mark.parametrize("transport", EITHER)
def test_two_samplers_side_by_side(opened: Any, transport: str) -> None:
    page, first = opened("shapes", transport), first_sampler(SHAPES.factors)
    page.get_by_role("tab", name="Sampler").click()
    page.get_by_role("button", name="Compare with a second sampler").click()
    second = page.locator(".panel").nth(1)
    told, step = second.get_by_role("status"), second.get_by_role("textbox", name="Step")
    step.fill("1e3")
    assert told.inner_text().startswith("A step is a whole number. Steps go from 0 to 9,223,372,036,854,775,807.")
    step.fill("2")
    assert told.inner_text() == ""
    expected = [first[0], first[2]]
    if transport == "live":  # another seed, of another number of ranks
        second.get_by_role("textbox", name="seed").fill("7")
        second.get_by_role("button", name="Draw", exact=True).click()
        second.get_by_role("textbox", name="of", exact=True).fill("3")
        second.get_by_role("textbox", name="Rank").fill("1")
        expected[1] = setsup.SetSampler(SHAPES.factors, ["floor_hue"], size=8, sets=2, on_small_group="drop", seed=7)[7]
    row = str(expected[1].indices[0, 0])
    page.wait_for_function(
        "row => [...document.querySelectorAll('.panel:nth-child(2) .set .thumb')]"
        ".some(one => one.title.replace(/\\D/g, '') === row)",
        arg=row,
    )
    assert rows_of(page) == [*expected[0].indices.tolist(), *expected[1].indices.tolist()]
    assert "step=0" in page.url  # the link is of the first one


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
        assert "setsup explore shapes3d-procedural" in page.locator("p[role=status]").first.inner_text()
        assert page.get_by_role("alert").count() == 0
        return
    page.get_by_role("textbox", name="Step").fill(str(2**63 - 1))
    assert shown(page, sampler[2**63 - 1])
    page.get_by_role("button", name="Next step").click()  # there is none
    assert shown(page, sampler[2**63 - 1])
    page.get_by_role("textbox", name="inactive").fill("wall_hue, shape")
    page.get_by_role("textbox", name="seed").fill(str(2**64 - 1))
    page.get_by_role("button", name="Draw", exact=True).click()
    page.get_by_role("textbox", name="Step").fill("9")
    other = setsup.SetSampler(SHAPES.factors, ["wall_hue", "shape"], size=8, on_small_group="drop", seed=2**64 - 1)
    assert shown(page, other[9])
    page.get_by_role("textbox", name="of", exact=True).fill("4")
    page.get_by_role("textbox", name="Rank").fill("3")
    assert shown(page, other[39])
    page.locator(".set .thumb").first.click()
    page.get_by_role("button", name="When is it drawn next?").click()
    page.get_by_text("of rank 3.").wait_for()
    following = other.shard(3, 4).when(int(other[39].indices[0, 0]), 10, 10 + 2**17)
    assert page.get_by_role("button", name=re.compile("^step ")).first.inner_text() == f"step {following[0]:,}"
    page.get_by_role("button", name=re.compile("^step ")).first.click()
    assert shown(page, other[4 * int(following[0]) + 3])
    page.wait_for_function("() => location.hash.endsWith('&rank=3&world=4')")
    with page.context.expect_page() as event:  # the link is the experiment, on the same rank
        page.evaluate("window.open(location.href)")
    event.value.set_default_timeout(60_000)
    assert shown(event.value, other[4 * int(following[0]) + 3])
    event.value.close()
    page.get_by_role("textbox", name="Step").fill("9")
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
    # of steps that are passed, the newest is asked for
    page.evaluate(SLOW)
    for _ in range(40):
        page.get_by_role("textbox", name="Step").press("ArrowRight")
    assert shown(page, other[int(following[0]) + 40])
    page.wait_for_function("step => asked.at(-1) === step", arg=str(following[0] + 40))
    assert page.evaluate("asked.length") < 20
    # a finite sampler ends at its last step
    page.get_by_text("Paste or copy a sampler as data").click()
    page.get_by_role("textbox", name="Step").fill("3")
    assert shown(page, other[3])
    page.get_by_label("as JSON").fill(sampler_text(EPOCHS))
    page.get_by_label("as JSON").blur()
    assert shown(page, EPOCHS[3])
    page.get_by_role("textbox", name="Step").fill("200")
    page.get_by_text(f"step {len(EPOCHS) - 1}: ").wait_for()
    assert shown(page, EPOCHS[len(EPOCHS) - 1])
    assert page.get_by_role("slider").get_attribute("max") == str(len(EPOCHS) - 1)
    page.locator(".set .thumb").first.click()
    page.get_by_role("button", name="When is it drawn next?").click()
    page.get_by_text("Not again, up to the last step.").wait_for()
    assert page.get_by_role("alert").count() == 0


@pytest.mark.parametrize("transport", EITHER)
def test_it_takes_few_clicks_to_the_groups_that_cannot_be_drawn(opened: Any, transport: str) -> None:
    page = opened("animals", transport)
    page.get_by_role("tab", name="Sampler").click()  # 1
    page.get_by_text("Never drawn: 1 group, 1 row.").wait_for()
    assert page.locator(".never li").all_inner_texts() == ["species = emu"]
    assert "on_small_group='short'" in page.locator(".never em").inner_text()
    page.get_by_text("Chance of each group").click()  # 2
    assert page.locator("table", has_text="chance in a step").locator("tbody tr").all_inner_texts() == [
        "species = cat\t5\t75.0 %",
        "species = dog\t3\t75.0 %",
    ]


@pytest.mark.parametrize(("transport", "width"), [("live", 1200), ("file", 390)])
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
        ("file", 390, {"color_scheme": "dark", "reduced_motion": "reduce"}),
    ],
)
def test_axe_finds_no_fault_in_any_view(
    opened: Any, addresses: Any, trained: Any, transport: str, width: int, how: dict[str, str]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    page = opened("run", transport, width, **how)
    tabs = page.get_by_role("tab").all()
    assert [tab.inner_text() for tab in tabs] == ["Dataset", "Sampler", "Correspondences", "Runs", "Embeddings"]
    for tab in tabs:
        tab.click()
        page.get_by_role("tabpanel", name=tab.inner_text()).wait_for()
        page.wait_for_timeout(500)
        _unfold(page)
        found = axe.run(page, options={"preload": False})  # it would ask for the style again, which pages forbid
        assert found.violations_count == 0, f"{tab.inner_text()}: {found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1")
        names = page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
        assert len(set(names)) == len(names)
    page.emulate_media(forced_colors="active")
    found = axe.run(page, options={"preload": False})
    assert found.violations_count == 0, f"forced colours: {found.generate_report()}"
    report = page.context.new_page()
    report.goto(addresses["report", "file"])
    report.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    found = axe.run(report, options={"preload": False})
    assert found.violations_count == 0, f"report: {found.generate_report()}"
    assert report.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1")
    for cell in report.get_by_text("≈ 0").all():  # a value of the paper
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


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


@pytest.mark.parametrize("transport", EITHER)
def test_a_link_of_another_table_is_refused(opened: Any, addresses: dict[tuple[str, str], str], transport: str) -> None:
    from urllib.parse import urlencode

    text = sampler_text(first_sampler(SHAPES.factors))
    link = "#" + urlencode({"view": "sampler", "d": "d0", "sampler": text, "step": "3"})
    page = opened("animals", transport, more=link)
    role, told = ("alert", "table with the fingerprint") if transport == "live" else ("status", "without this answer")
    page.locator(f"p[role={role}]").wait_for()
    assert told in page.locator(f"p[role={role}]").inner_text()
    assert page.locator(".set").count() == 0


@pytest.mark.parametrize("transport", EITHER)
def test_a_link_is_of_one_dataset(opened: Any, trained: Any, transport: str) -> None:
    from urllib.parse import urlencode

    sampler, other = first_sampler(PAGES["awkward"].factors), first_sampler(views().factors)
    link = {"view": "sampler", "d": "d1", "sampler": sampler_text(sampler), "step": "2"}
    page = opened("run", transport, more="#" + urlencode(link))
    assert shown(page, sampler[2])
    page.get_by_role("combobox", name="Dataset").select_option("d0")
    assert shown(page, other[0])
    assert page.get_by_role("alert").count() == 0
    page.get_by_role("combobox", name="Dataset").select_option("d1")
    assert shown(page, sampler[2])
    page.evaluate("link => { location.hash = link; }", urlencode({**link, "step": "1"}))  # as when it is pasted
    assert shown(page, sampler[1])
    # nor does the rank of one run stay for another
    asked = page.evaluate(RANKS)
    assert [(one["s"], one.get("rank")) for one in asked if one["q"] == "batch"] == [("x", None), ("x", 1), ("y", None)]


def test_no_other_site_and_no_other_host_gets_an_answer(browser: Any, addresses: dict[tuple[str, str], str]) -> None:
    """In a browser that has the page's cookie: what others ask, what is no file, another name of this machine."""
    address = addresses["animals", "live"]
    start, _, token = address.partition("/?")
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector("h1")
        ask = "address => fetch(address).then(found => found.status)"
        for path in ("/static/..%5c..%5cserver.py", "/static/%2e%2e%2fserver.py", "/static/..%2f..%2fpage.py"):
            assert page.evaluate(ask, path) == 404
        assert page.evaluate("() => fetch('/get?q=counts&s=d0', {method: 'POST'}).then(found => found.status)") == 405
        # the name of another host that leads here: neither token nor cookie helps
        rebound = f"http://evil.example:{start.rpartition(':')[2]}"
        assert context.new_page().goto(f"{rebound}/?{token}").status == 403
        # a page of another site, in the same browser: it reads nothing, and its requests are refused
        other, statuses = context.new_page(), []
        other.route(
            "http://other.example/", lambda route: route.fulfill(body="<h1>other</h1>", content_type="text/html")
        )
        other.on("response", lambda one: statuses.append(one.status) if one.url.startswith(start) else None)
        other.goto("http://other.example/")
        asking = "address => fetch(address, {credentials: 'include'}).then(() => 'read', () => 'refused')"
        assert other.evaluate(asking, f"{start}/get?q=counts&s=d0&where=") == "refused"
        image = "address => new Promise(done => { const one = new Image(); one.onload = () => done('shown');"
        image += " one.onerror = () => done('refused'); one.src = address; })"
        assert other.evaluate(image, f"{start}/get?q=thumbs&rows=0&s=d0") == "refused"
        assert set(statuses) <= {403}
        # nor does it show the page in a frame
        other.evaluate(
            "address => document.body.append(Object.assign(document.createElement('iframe'), {src: address}))", start
        )
        other.wait_for_timeout(500)
        assert all(not frame.locator("#page").count() for frame in other.frames[1:])


@pytest.mark.parametrize("transport", EITHER)
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
    curve = """() => document.querySelector('.plot polyline').getAttribute('points').split(' ')
      .map(point => +point.split(',')[1])"""
    tick = """() => [...document.querySelectorAll('.ticks.up span')]
      .map(label => [+label.textContent, parseFloat(label.style.top) * 3])"""
    for logarithmic, put in ((False, lambda value: value), (True, np.log)):
        page.get_by_label("Logarithmic").set_checked(logarithmic)
        page.wait_for_function("() => document.querySelectorAll('.ticks.up span').length > 1")
        heights = 300 * (1 - (put(loss) - put(loss.min())) / np.ptp(put(loss)))
        np.testing.assert_allclose(page.evaluate(curve), heights, atol=0.06)
        for value, top in page.evaluate(tick):  # a label stands where its value is
            assert top == pytest.approx(300 * (1 - (put(value) - put(loss.min())) / np.ptp(put(loss))), abs=0.2)
    # of an exported page, the step before is one that it has
    there = page.evaluate("async () => (await setsup.get({})).sources.r0.shown") or list(range(1, 13))
    page.get_by_role("button", name="Previous step").click()
    page.get_by_text(f"step {there[-2]}, draw {there[-2] - 1} of the sampler").wait_for()
    assert shown(page, trained_on(run, there[-2]).draw)
