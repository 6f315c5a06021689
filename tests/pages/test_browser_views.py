"""Correspondences and sheets of draws in a browser: live, as a folder and as a file, as Python has them."""

import re
import shutil
from typing import Any

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("embreex", reason="embreex is not installed")

import setsup
from setsup.correspondence import PixelPairSampler, Status, spatial
from setsup.pages import Page, export, page_of
from tests.pages.test_browser import EITHER, _served, browser, opened, rows_of, shown
from tests.pages.views import HEIGHT, WIDTH, color_run, shifted, views

__all__ = ["browser", "opened"]  # fixtures

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.long("browser"),
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is here: apt install chromium"),
]

SHAPES = setsup.load("shapes3d-procedural").where("scale == 0.75 and floor_hue == 0 and wall_hue == 0")
ORBITS = setsup.OrbitSampler(SHAPES.factors, ["object_hue", "shape"], sets=2, size=4, canonical={"orientation": 0.0})
TRIPLETS = setsup.TripletSampler(SHAPES.factors, ["shape"], triplets=2)

MAP = """async ([rows]) => {
  const map = mapOf(await setsup.get({s: "c0", q: "partners", rows}));
  return [[...map.x].map(String), [...map.y].map(String), [...map.status]];
}"""

# what is said and marked for each pixel of view 1, while the pointer moves over all of them
HOVERED = """async ([width, height]) => {
  const scene = document.querySelector('.scene.chosen'), found = [];
  const settled = () => new Promise(done => setTimeout(done));
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) {
    const box = scene.getBoundingClientRect();
    const at = {clientX: box.left + (x + 0.5) / width * box.width, clientY: box.top + (y + 0.5) / height * box.height};
    scene.dispatchEvent(new PointerEvent('pointermove', {...at, bubbles: true}));
    await settled();
    const marks = [...document.querySelectorAll('.scene')].map(one => [...one.querySelectorAll('.mark')].map(
      mark => [mark.className, mark.style.left, mark.style.top]));
    found.push([document.querySelector('.told p').textContent, marks]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Address of each page by each transport."""
    folder, found = tmp_path_factory.mktemp("views"), {}
    (folder / "photographs").mkdir()
    runs = [color_run(folder)]
    pages: dict[str, Page] = {
        "views": page_of({"": views()}),
        "learned": page_of({"": shifted(folder / "photographs")}, runs=runs),
        "orbits": page_of({"": SHAPES}, {"": ORBITS}),
        "triplets": page_of({"": SHAPES}, {"": TRIPLETS}),
    }
    for name, page in pages.items():
        found[name, "folder"] = export(page, folder / name, rows=6, steps=3).as_uri()
        found[name, "file"] = export(page, folder / f"{name}.html", rows=6, steps=3).as_uri()
        found[name, "live"] = _served(page)
    return found


def correspondences(page: Any) -> None:
    page.get_by_role("tab", name="Correspondences").click()
    page.locator(".scene.chosen").wait_for()


def told(page: Any, text: str) -> None:
    page.locator(".told").get_by_text(text).wait_for()


@pytest.mark.parametrize("transport", EITHER)
def test_every_partner_is_the_one_that_is_traced(opened: Any, transport: str) -> None:
    page, dataset = opened("views", transport), views()
    correspondences(page)
    one, two = PixelPairSampler(dataset, pairs=1)[0].indices[0].tolist()
    pairs = spatial(dataset.scene(one), dataset.camera(one), dataset.camera(two))
    x, y, status = page.evaluate(MAP, [f"{one},{two}"])
    np.testing.assert_array_equal(np.array([x, y], dtype=np.float64).T.astype(np.float32), pairs.points2.astype("f4"))
    assert status == pairs.status.tolist()
    # it begins where there is something to be seen: at the visible pixel nearest to the middle
    visible = [place for place in range(WIDTH * HEIGHT) if pairs.status[place] == Status.VISIBLE]
    first = min(visible, key=lambda place: (place % WIDTH - WIDTH // 2) ** 2 + (place // WIDTH - HEIGHT // 2) ** 2)
    told(page, f"Pixel ({first % WIDTH}, {first // WIDTH}) of view 1: visible")
    hovered = page.evaluate(HOVERED, [WIDTH, HEIGHT])
    seen = set()
    for place, (words, marks) in enumerate(hovered):
        name, (px, py) = Status(pairs.status[place]).name.lower(), pairs.points2[place]
        seen.add(name)
        assert words.strip().startswith(
            f"Pixel ({place % WIDTH}, {place // WIDTH}) of view 1: {name.replace('_', ' ')}"
        )
        numbers = re.search(r"(?:partner in view 2 is|would be at) \((-?[\d.]+), (-?[\d.]+)\)", words)
        assert (numbers is None) == (name == "no_surface")
        assert ("partner in view 2" in words) == (name == "visible")
        if numbers is not None:
            assert np.allclose([float(numbers[1]), float(numbers[2])], [px, py], atol=0.00501)
        first, second = marks
        assert [kind for kind, *_ in first] == [f"mark {name}"]
        assert [kind for kind, *_ in second] == ([] if name == "no_surface" else [f"mark {name}"])
        if name in ("visible", "occluded"):
            left, top = (float(one.removesuffix("%")) for one in second[0][1:])
            assert np.allclose([left, top], [(px + 0.5) / WIDTH * 100, (py + 0.5) / HEIGHT * 100], atol=1e-3)
    assert {"visible", "occluded", "outside"} <= seen
    counts = page.locator(".legend tr").all_inner_texts()
    assert [int(text.split("\t")[1].replace(",", "")) for text in counts] == np.bincount(
        pairs.status, minlength=4
    ).tolist()


@pytest.mark.parametrize("transport", EITHER)
def test_pairs_are_scrubbed_and_pixels_moved_by_keys(opened: Any, transport: str) -> None:
    page, dataset = opened("views", transport), views()
    correspondences(page)
    sampler = PixelPairSampler(dataset, pairs=1)

    def rows_are(step: int) -> None:
        one, two = sampler[step].indices[0].tolist()
        page.get_by_text(f"Rows {one} and {two}. Shared:").wait_for()

    rows_are(0)
    page.get_by_role("button", name="Next pair").click()
    rows_are(1)
    page.get_by_role("textbox", name="Pair").press("ArrowRight")
    rows_are(2)
    scene = page.get_by_role("application")
    scene.hover(position={"x": 3, "y": 3})
    told(page, "Pixel (0, 0) of view 1")
    scene.focus()
    for key, said in (("ArrowRight", "(1, 0)"), ("ArrowDown", "(1, 1)"), ("Shift+ArrowDown", "(1, 11)")):
        scene.press(key)
        told(page, f"Pixel {said} of view 1")
    page.get_by_role("checkbox").check()
    page.wait_for_function("() => document.querySelector('.scene.chosen canvas').width === 640")
    drawn = page.evaluate(
        """() => { const cover = document.querySelector('.scene.chosen canvas');
        const data = cover.getContext('2d').getImageData(0, 0, cover.width, cover.height).data, found = [];
        const wide = cover.width / 32;
        for (let y = 0; y < 24; y += 1) for (let x = 0; x < 32; x += 1) {
          found.push(data[4 * ((y * wide + 2) * cover.width + x * wide + 2) + 3] > 0);
        }
        return found; }"""
    )
    one, two = sampler[2].indices[0].tolist()
    pairs = spatial(dataset.scene(one), dataset.camera(one), dataset.camera(two))
    assert drawn == (~pairs.visible).tolist()
    page.wait_for_function("() => location.hash.endsWith('&x=1&y=11')")
    with page.context.expect_page() as event:  # the link is the pair and the pixel
        page.evaluate("window.open(location.href)")
    event.value.set_default_timeout(60_000)
    told(event.value, "Pixel (1, 11) of view 1")
    event.value.get_by_text(f"Rows {one} and {two}. Shared:").wait_for()
    if transport != "live":
        assert page.get_by_role("button", name="Swap the views").is_disabled()
        page.get_by_role("button", name="Next pair").click()  # there is none
        rows_are(2)
        return
    page.get_by_role("button", name="Swap the views").click()
    page.get_by_text(f"Rows {two} and {one}. Shared:").wait_for()
    page.get_by_role("textbox", name="Rows").fill("0, 3")
    page.get_by_role("button", name="Show these rows").click()
    page.get_by_role("alert").get_by_text("different scenes").wait_for()
    page.get_by_role("textbox", name="Pair").fill(str(2**63 - 1))
    rows_are(2**63 - 1)


@pytest.mark.parametrize("transport", EITHER)
def test_learned_matches_stand_beside_the_exact_ones(opened: Any, transport: str) -> None:
    page = opened("learned", transport, more="#view=pairs&d=d0&pair=0&x=40&y=20")
    found = page.get_by_text(re.compile(r"^Rows \d and \d\. Shared:"))
    found.wait_for()
    right = found.inner_text().startswith("Rows 0 and 1")
    partner = (8, 20) if right else (72, 20)
    told(page, f"its partner in view 2 is ({partner[0]:.2f}, {partner[1]:.2f})")
    told(page, f"({partner[0]:.2f}, {partner[1]:.2f}) of view 2, 0.00 pixels from the exact partner")
    page.get_by_text("100.0 % are matched to within 1 pixel").wait_for()
    assert page.locator(".scene .mark.learned").count() == 1
    page.get_by_role("combobox", name="Matches of").select_option("")
    page.locator(".scene .mark.learned").wait_for(state="detached")


@pytest.mark.parametrize("transport", EITHER)
def test_orbits_have_their_canonical_image(opened: Any, transport: str) -> None:
    page = opened("orbits", transport)
    page.get_by_role("tab", name="Sampler").click()
    page.locator(".orbit").first.wait_for()
    draw = ORBITS[0]
    assert rows_of(page) == [
        [int(canonical), *rows.tolist()] for canonical, rows in zip(draw.canonical, draw.indices, strict=True)
    ]
    for place, rows in enumerate(draw.indices):
        block = page.locator(".set").nth(place)
        assert block.locator(".orbit > .canonical").inner_text().startswith("canonical")
        captions = block.locator(".grow-members figcaption").all_inner_texts()
        expected = SHAPES.factors.values("orientation", rows).tolist()
        assert [text.split()[-1] for text in captions] == [f"{value:.4g}" for value in expected]
        assert [text.startswith("canonical") for text in captions] == (rows == draw.canonical[place]).tolist()
    # canonical images and members are asked for apart, and an image stands on the page only once it is answered
    page.wait_for_function("() => !document.querySelector('.set .no-image')")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.set img')].every(one => one.complete && one.naturalWidth)"
    )
    assert page.locator(".set img").count() == draw.indices.size + len(draw.canonical)


@pytest.mark.parametrize("transport", EITHER)
def test_triplets_say_what_is_shared_and_what_differs(opened: Any, transport: str) -> None:
    page = opened("triplets", transport)
    page.get_by_role("tab", name="Sampler").click()
    assert shown(page, TRIPLETS[0])
    for block, rows in zip(page.locator(".set").all(), TRIPLETS[0].indices, strict=True):
        assert block.locator(".role strong:first-child").all_inner_texts()[::2][:1] == ["anchor"]
        for role, row in (("positive", rows[1]), ("negative", rows[2])):
            text = block.locator(f".role.{role}").inner_text()
            equal = {name: bool(np.equal(*SHAPES.factors.codes(name, [rows[0], row]))) for name in SHAPES.factors.names}
            shares, differs = re.search(r"shares with the anchor: (.*)\n\s*differs: (.*)", text).groups()
            assert shares.split(", ") == [name for name, yes in equal.items() if yes]
            assert re.findall(r"(\w+) \S+(?: turn| deg)? →", differs) == [
                name for name, yes in equal.items() if not yes
            ]
    if transport == "live":  # two of them side by side, and their rows beside those of a pool
        page.get_by_role("combobox", name="Kind").select_option("Zip")
        page.get_by_role("button", name="Draw", exact=True).click()
        assert shown(page, setsup.Zip(TRIPLETS, TRIPLETS)[0])
        assert page.locator(".role.anchor").count() == 4


@pytest.mark.parametrize("width", [1200, 390])
def test_views_stand_side_by_side_on_a_phone_too(opened: Any, width: int) -> None:
    page = opened("learned", "file", width)
    correspondences(page)
    page.locator(".scene .mark.learned").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1")
    one, two = (page.locator(".scene").nth(place).bounding_box() for place in (0, 1))
    assert one["y"] == two["y"]  # side by side
    assert one["x"] + one["width"] < two["x"]
