"""What objects show of themselves in notebooks: well-formed, escaped, small, and never an error."""

import time
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import setsup
from setsup.correspondence import PixelPairs
from setsup.datasets import BaseDataset, Modality
from setsup.errors import DamagedFile
from setsup.experiments.trained_run import TrainedRun
from setsup.factors import Factor, FactorTable, Kind
from setsup.html import block, facts, lines, table, text

EVIL = "</td><script>alert('x')</script>\"&\x1b[31m"


class Reader(HTMLParser):
    """Checks that tags are closed in order; collects tags, attributes and text."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += f"{data}\n"


def read(shown: Any) -> Reader:
    content = shown if isinstance(shown, str) else shown._repr_html_()
    found = Reader(content)
    assert found.tags <= {"div", "strong", "table", "tr", "th", "td", "img", "pre"}
    assert found.attributes <= {"style", "alt", "src"}
    assert "background:" not in content.replace("background: none", "")  # a notebook's own colours
    assert "\x1b" not in content
    return found


class Images(BaseDataset):
    """Images that are counted as they are read."""

    def __init__(self, rows: int = 1000, wrong: Exception | None = None, name: str = EVIL) -> None:
        self.name, self.wrong, self.count = name, wrong, 0
        self.factors = FactorTable.from_values({EVIL: [f"{EVIL}{row}" for row in range(rows)], "b": [1] * rows})
        self.modalities = {"image": Modality((5, 7, 3), "uint8", color="srgb"), "depth": Modality((5,), "float32", "m")}

    def _read(self, name: str, rows: Any, out: Any) -> Any:
        assert name == "image"
        self.count += len(rows)
        if self.wrong is not None:
            raise self.wrong
        out[...] = 7
        return out


def test_parts_are_escaped() -> None:
    assert text(EVIL) == "&lt;/td&gt;&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&quot;&amp; [31m"
    assert text("x" * 500) == "x" * 79 + "…"
    made = block(EVIL, facts([EVIL, "", EVIL]), table((EVIL,), [[EVIL]], 5, EVIL), lines(EVIL))
    assert read(made).words.count("<script>") == 7


def test_a_dataset_shows_a_few_images() -> None:
    dataset = Images()
    found = read(dataset)
    assert "img" in found.tags
    assert "1,000 rows" in found.words
    assert "depth: 5 float32 m" in found.words
    assert 1 <= dataset.count <= 6
    assert len(dataset._repr_html_()) < 20_000
    assert "img" in read(dataset.where("b == 1")).tags
    assert "img" in read(setsup.concat(Images(name="a"), Images(name="b"))).tags


@pytest.mark.parametrize(
    ("wrong", "words"),
    [(DamagedFile(f"a.png {EVIL} is damaged"), "no images: a.png </td>"), (ZeroDivisionError(), "ZeroDivisionError")],
)
def test_unreadable_images_do_not_break_the_display(wrong: Exception, words: str) -> None:
    found = read(Images(wrong=wrong))
    assert "img" not in found.tags
    assert words in found.words
    assert "1,000 rows" in found.words


def test_no_image_is_read_where_one_takes_long() -> None:
    dataset = Images()
    dataset.previews = False
    assert "img" not in read(dataset).tags
    assert "img" not in read(dataset.select([1])).tags
    assert "img" not in read(setsup.concat(dataset, Images())).tags
    assert dataset.count == 0


def test_slow_images_stop_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    dataset = Images()
    read(dataset)
    assert dataset.count == 1


@pytest.mark.parametrize("shape", [(4, 6, 1), (4, 6, 2), (4, 6, 4), (300, 900, 3), (1, 2000, 3), (2000, 1, 3)])
def test_images_of_any_shape(shape: tuple[int, ...]) -> None:
    dataset = Images()
    dataset.modalities = {"image": Modality(shape, "uint8", color="srgb")}
    assert "img" in read(dataset).tags


@pytest.mark.long("large or genuine files")
def test_empty_and_large_tables() -> None:
    empty = setsup.load("shapes3d-procedural").select([])
    assert "0 rows" in read(empty).words
    assert "0 rows" in read(empty.factors).words
    started = time.perf_counter()
    large = FactorTable(
        [Factor("id", Kind.NOMINAL, tuple(f"name {number}" for number in range(1_000_000)), role="key")]
        + [Factor(f"f{number}", Kind.ORDINAL, (1, 2), within="id") for number in range(20)]
    )
    made = time.perf_counter()
    found = read(large)
    assert time.perf_counter() - made < max(0.2, made - started)
    assert "1,000,000" in found.words
    assert "name 5, …" in found.words
    assert "name 6" not in found.words
    assert "nominal, key" in found.words
    assert "ordinal, within id" in found.words
    wide = FactorTable.from_values({f"f{number}": [0, 1] for number in range(500)})
    assert "… and 476 more factors" in read(wide).words
    mixed = FactorTable([Factor("x", Kind.CONTINUOUS, unit="m")], {"x": np.zeros(3, np.float32)})
    assert "numbers, m" in read(mixed).words


def test_samplers_reports_and_draws() -> None:
    table_of = Images(24).factors
    sampler = setsup.SetSampler(table_of, inactive=["b"], size=12, sets=40, where="b == 1", seed=5)
    found = read(sampler)
    for words in ("SetSampler", "without end", "from 24 rows", "b == 1", "independent"):
        assert words in found.words
    weighted = setsup.EpochSampler(table_of, size=4, epochs=3, seed=0)
    assert "18 draws" in read(weighted).words
    report = sampler.report()
    assert read(report).words.rstrip("\n") == str(report).replace("\x1b", " ")
    assert repr(report) == str(report)
    draw = read(sampler[0])
    assert "Draw of 40 sets of 12 rows" in draw.words
    assert "… and 32 more sets" in draw.words
    assert "3 steps, each 40 sets" in read(sampler.block(0, 3)).words
    padded = setsup.Draw(
        np.zeros((1, 2), np.int64), {EVIL: np.array([np.nan])}, np.array([[True, False]]), np.zeros(1, np.int64)
    )
    assert "padding: 1 position · each with a canonical member" in read(padded).words
    assert "not fixed" in read(padded).words
    assert "Draw" in read(setsup.Draw(np.zeros(3, np.int64))).words  # not a draw's shape, and no error


def test_pixel_pairs() -> None:
    pairs = PixelPairs([[4, 7], [5, 7]], [[1, 7.5], [9, 7]], [[0, 0, 1], [1, 0, 1]], [3, 3], [0, 1])
    assert read(pairs).words.split() == "2 pixel pairs status pairs visible 1 occluded 1 outside 0 no surface 0".split()
    assert "0 pixel pairs" in read(pairs.select([])).words


def test_a_trained_run() -> None:
    weights = SimpleNamespace(numel=lambda: 1234)
    method: Any = SimpleNamespace(parameters=lambda: iter([weights, weights]))
    found = read(TrainedRun("preset", method, 3, Path("/runs/<b>")))
    for words in ("TrainedRun preset", "2,468 parameters", "/runs/<b>", "cpu, float32"):
        assert words in found.words
    broken: Any = SimpleNamespace()
    assert read(TrainedRun("preset", broken, 3, Path("x"))).words.split() == ["TrainedRun"]
