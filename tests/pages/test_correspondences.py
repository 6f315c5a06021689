"""Partners of pixels on a page: those that Python gives, for every source that says which pixels show the same."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("embreex", reason="embreex is not installed")

import setsup
from setsup.correspondence import PixelPairSampler, RenderedPairs, Status, open_photographs, pair_table, spatial
from setsup.errors import DataError, SetsupError
from setsup.pages import Page, page_of
from setsup.pages.answers import key_of
from setsup.pages.correspondence_page import CorrespondenceSource
from setsup.pages.dataset_page import DatasetSource
from setsup.pages.questions import questions
from setsup.rendered.writing import render
from setsup.scenes.recipes import Shapes3D
from tests.pages.sources import uneven
from tests.pages.views import HEIGHT, WIDTH, color_run, shifted, views


def ask(page: Any, /, **question: Any) -> Any:
    return json.loads(page.get(key_of({name: str(value) for name, value in question.items()})).content)


def numbers(found: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(found["data"]), np.dtype(found["type"]).newbyteorder("<"))


def arrays(answer: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Places (h, w, 2) and statuses (h, w) of an answer."""
    x, y, status = (numbers(answer[name]).reshape(answer["shape"]) for name in ("x", "y", "status"))
    return np.stack([x, y], axis=-1), status


@pytest.fixture(scope="module")
def page() -> Any:
    return page_of({"": views()})


@pytest.mark.parametrize("step", [0, 1, 2**63 - 1])
def test_pairs_are_those_of_the_sampler_and_partners_those_that_are_traced(page: Any, step: int) -> None:
    dataset = views()
    one, two = PixelPairSampler(dataset, pairs=1)[step].indices[0].tolist()
    told = ask(page, s="c0", q="pair", step=step)
    assert told["rows"] == [one, two]
    assert told["sizes"] == [[HEIGHT, WIDTH]] * 2
    assert told["agree"] == {"scene": str(dataset.factors.values("scene", one).item())}
    assert told["differ"] == {"place": [str(dataset.factors.values("place", row).item()) for row in (one, two)]}
    places, status = arrays(ask(page, s="c0", q="partners", rows=f"{one},{two}"))
    wanted = spatial(dataset.scene(one), dataset.camera(one), dataset.camera(two))
    np.testing.assert_array_equal(status.ravel(), wanted.status)
    np.testing.assert_array_equal(places.reshape(-1, 2), wanted.points2.astype(np.float32))


def test_statuses_and_places_follow_from_the_disparity(page: Any) -> None:
    """Cameras are 2 m apart and look along y: a point at distance d moves by focal · 2 / d pixels."""
    answer = ask(page, s="c0", q="partners", rows="0,1")
    places, status = arrays(answer)
    middle = HEIGHT // 2
    x = np.arange(WIDTH)
    place = (x - (WIDTH - 1) / 2) / 24  # of the ray through a pixel, at distance 1
    near = np.abs(-1 + 4 * place) < 0.6
    far = ~near & (np.abs(-1 + 6 * place) < 4.5)
    there = np.where(near, x - 24 * 2 / 4, np.where(far, x - 24 * 2 / 6, np.nan))
    np.testing.assert_allclose(places[middle, :, 0], there, atol=1e-5)
    np.testing.assert_allclose(places[middle, near | far, 1], middle, atol=1e-5)
    behind = -1 + 6 * place  # where the ray from the right camera to a far point passes the near square
    hidden = far & (np.abs(1 + (behind - 1) * 4 / 6) < 0.6)
    outside = (near | far) & ~((there >= -0.5) & (there < WIDTH - 0.5))
    expected = np.where(hidden & ~outside, Status.OCCLUDED, Status.VISIBLE)
    expected = np.where(outside, Status.OUTSIDE, np.where(near | far, expected, Status.NO_SURFACE))
    np.testing.assert_array_equal(status[middle], expected)
    assert set(status.ravel().tolist()) == {int(one) for one in Status if one != Status.UNKNOWN}
    assert answer["counts"] == np.bincount(status.ravel(), minlength=5).tolist()


def test_of_large_views_a_grid_of_pixels_has_partners(page: Any) -> None:
    whole = arrays(ask(page, s="c0", q="partners", rows="0,1"))
    source = CorrespondenceSource(views(), shown=HEIGHT * WIDTH // 4)
    found = ask(Page("", {"c0": source}), s="c0", q="partners", rows="0,1")
    assert (found["stride"], found["shape"]) == (2, [HEIGHT // 2, WIDTH // 2])
    for some, every in zip(arrays(found), whole, strict=True):
        np.testing.assert_array_equal(some, every[::2, ::2])
    assert sum(found["counts"]) == HEIGHT * WIDTH


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"q": "partners", "rows": "0,0"}, "cannot be both views"),
        ({"q": "partners", "rows": "0,3"}, "different scenes"),
        ({"q": "partners", "rows": "0,6"}, "from 0 to 5"),
        ({"q": "partners", "rows": "0"}, "must be two"),
        ({"q": "pair", "step": 2**63}, "must be an integer"),
        ({"q": "learned", "rows": "0,1", "run": "r0"}, "run must be one of"),
        ({"q": "thumbs"}, "q must be one of"),
    ],
)
def test_what_cannot_be_answered_is_said(page: Any, question: dict[str, Any], said: str) -> None:
    with pytest.raises(SetsupError, match=said):
        ask(page, s="c0", **question)


def test_views_that_are_too_large_are_refused(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setsup.pages.correspondence_page._LARGEST", HEIGHT * WIDTH - 1)
    with pytest.raises(DataError, match="24 × 32 pixels"):
        ask(page_of({"": views()}), s="c0", q="partners", rows="0,1")


@pytest.mark.long("renders to disk")
def test_pairs_on_disk_have_the_partners_that_were_stored(tmp_path: Path) -> None:
    recipe = Shapes3D(size=(16, 20))
    render(RenderedPairs(recipe, pair_table(recipe, pairs=2, seed=2), "embree"), tmp_path / "pairs")
    dataset = setsup.open(tmp_path / "pairs")
    page = page_of({str(tmp_path / "pairs"): dataset})
    one, two = ask(page, s="c0", q="pair", step=3)["rows"]
    assert one // 2 == two // 2
    places, status = arrays(ask(page, s="c0", q="partners", rows=f"{one},{two}"))
    stored = dataset.fetch(one, ["partners", "status"])
    np.testing.assert_array_equal(places, stored["partners"])
    np.testing.assert_array_equal(status, stored["status"])
    with pytest.raises(SetsupError, match="not the two views of a pair"):
        ask(page, s="c0", q="partners", rows="0,2")
    known: dict[str, Any] = {}
    exec(ask(page, s="c0", q="pair", step=3)["python"], known)  # noqa: S102  # what is shown for copying
    np.testing.assert_array_equal(known["found"]["partners"], stored["partners"])


def test_photographs_of_several_sizes_have_partners_by_their_homographies(tmp_path: Path) -> None:
    Image.new("RGB", (10, 8)).save(tmp_path / "1.png")
    Image.new("RGB", (6, 8)).save(tmp_path / "2.png")
    (tmp_path / "H_1_2").write_text("1 0 -3\n0 1 0\n0 0 1\n")
    page = page_of({str(tmp_path): open_photographs(tmp_path)})
    assert ask(page, s="c0", q="pair", rows="0,1")["sizes"] == [[8, 10], [8, 6]]
    places, status = arrays(ask(page, s="c0", q="partners", rows="0,1"))
    x, y = np.meshgrid(np.arange(10), np.arange(8))
    np.testing.assert_array_equal(places, np.stack([x - 3, y], axis=-1))
    np.testing.assert_array_equal(status, np.where((x >= 3) & (x < 9), Status.VISIBLE, Status.OUTSIDE))


def test_only_data_with_pairs_of_views_have_them() -> None:
    assert list(page_of({"animals": uneven()}).sources) == ["d0", "s0"]
    assert list(page_of({"": views().where("place == 1")}).sources) == ["d0", "s0"]  # one view of each scene
    assert "c0" in page_of({"": views().select([3, 4, 5])}).sources


def test_an_export_has_some_pairs_with_their_partners_and_images() -> None:
    page = Page("", {"d0": DatasetSource(views()), "c0": CorrespondenceSource(views(), pairs=2)})
    assert ask(page)["sources"]["c0"]["last"] == "1"
    asked = [one for one in questions(page, 6, 2) if one.get("s") == "c0"]
    pairs = [PixelPairSampler(views(), pairs=1)[step].indices[0].tolist() for step in range(2)]
    assert asked == [
        question
        for step, (one, two) in enumerate(pairs)
        for question in (
            {"s": "c0", "q": "pair", "step": str(step)},
            {"s": "c0", "q": "partners", "rows": f"{one},{two}"},
        )
    ]
    images = [{"s": "d0", "q": "image", "row": str(row), "modality": "image"} for pair in pairs for row in pair]
    assert all(one in list(questions(page, 6, 2)) for one in images)


@pytest.mark.long("trains")
def test_learned_partners_are_those_of_the_nearest_features(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed")
    page = page_of({"": shifted(tmp_path)}, runs=[color_run(tmp_path)])
    assert ask(page)["sources"]["c0"]["runs"] == {"r0": "small/colors, seed 0"}
    asked = {"s": "c0", "q": "learned", "run": "r0"}
    assert ask(page, **asked, rows="0,1", pixel="50,20") == {"partner": [18.0, 20.0], "distance": 0.0}
    assert ask(page, **asked, rows="1,0", pixel="18,20") == {"partner": [50.0, 20.0], "distance": 0.0}
    found = ask(page, **asked, rows="0,1")
    assert found["stride"] == 2
    x, y = (numbers(found[name]).reshape(found["shape"]) for name in "xy")
    there = np.mgrid[0:64:2, 0:96:2][::-1]
    shared = there[0] >= 32
    assert found["visible"] == shared.sum() == 32 * 32
    assert np.array_equal(x[shared], there[0][shared] - 32)
    assert np.array_equal(y[shared], there[1][shared])
    assert (found["median"], set(found["within"].values())) == (0.0, {32 * 32})
    for pixel in ("96,0", "0,64", "5", "-1,0"):
        with pytest.raises(SetsupError, match="pixel must be"):
            ask(page, **asked, rows="0,1", pixel=pixel)
