"""The formulas on the page about planning are those of the script, and agree with what it simulates."""

import math
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import hypergeom

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / "plan_shards.py"))


def numbers(line: list[str]) -> list[float]:
    return [float(cell.replace(",", "").rstrip("%")) for cell in line[1:]]


def test_rows_between_neighbours_have_the_distribution_of_draws_without_repeats(script: dict[str, Any]) -> None:
    plan = script["Plan"](size=5)
    found = [script["chance"](plan, 12, apart) for apart in range(1, 9)]
    assert sum(found) == pytest.approx(1)
    # the first neighbour is more than d rows away where the n - 1 others lie beyond: all gaps have the law of the first
    beyond = [hypergeom(12, apart, 5).pmf(0) for apart in range(1, 9)]
    assert np.cumsum(found) == pytest.approx(1 - np.array(beyond))


@pytest.mark.long("documented pages and examples")
def test_reads_and_bytes_of_a_set(script: dict[str, Any]) -> None:
    for line in script["requests_table"]()[1:]:
        reads, drawn, read, brought, wanted = numbers(line)
        assert drawn == pytest.approx(reads, rel=0.03, abs=0.4), line  # see where the script cuts at MOST
        assert brought == pytest.approx(read, rel=0.02, abs=0.06), line
        assert wanted <= brought + 0.05


def test_seconds_of_a_batch(script: dict[str, Any]) -> None:
    lines = script["seconds_table"]()[1:]
    for line in lines:
        _, seconds, queue, images, workers, asked, prefixes = numbers(line)
        assert queue == pytest.approx(seconds, rel=0.05), line
        assert images == pytest.approx(256 / seconds, rel=0.03)
        assert workers == math.ceil(500 / images)
        assert prefixes == math.ceil(asked / 5500)
    assert [numbers(line)[0] for line in lines] == sorted(numbers(line)[0] for line in lines)


def test_what_a_prefix_gives(script: dict[str, Any]) -> None:
    for line in script["store_table"]()[1:]:
        asked, given, queue = numbers(line)
        assert given == min(asked, 5500)
        assert 0.8 * given < queue <= 1.01 * given, line


@pytest.mark.long("documented pages and examples")
def test_hits_of_a_cache(script: dict[str, Any]) -> None:
    for line in script["hits_table"]()[1:]:
        said, contiguous, scattered = numbers(line)
        assert contiguous == pytest.approx(said, rel=0.1, abs=0.3)
        assert scattered == pytest.approx(said, rel=0.1, abs=0.3)


def test_bytes_of_the_index(script: dict[str, Any]) -> None:
    lines = {line[0].strip("`"): line[1:] for line in script["index_table"]()[1:]}
    stored = {name: float(line[0]) for name, line in lines.items()}
    mapped = {name: int(line[1]) for name, line in lines.items()}
    # no code is shorter than the entropy of what it says
    for name, bits in {"camera": 4, "light": 5, "image.check": 32}.items():
        assert bits / 8 <= stored[name] + 0.005 < bits / 8 + 0.1
    assert [mapped[name] for name in ("identity", "camera", "azimuth", "__shard__")] == [2, 1, 4, 4]
    assert mapped["image.offset"] + mapped["image.size"] + mapped["image.check"] == 20
    assert mapped.pop("together") == sum(mapped.values())
    assert stored.pop("together") == pytest.approx(sum(stored.values()), abs=0.06)


def test_the_page_shows_every_table(script: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "planning.md").read_text()
    for name in script["TABLES"]:
        assert f"<!-- setsup: planned {name} -->" in page
    assert f"{script['PLAN'].stride:,}" in page


# -- the sentences -----------------------------------------------------------------------------------------------------


PAGE = " ".join((ROOT / "docs" / "planning.md").read_text().split())


def said(pattern: str) -> list[float]:
    """Numbers that a sentence of the page gives, which stands there once."""
    found = re.findall(pattern.replace("NUMBER", r"([\d.,]*\d)"), PAGE)
    assert len(found) == 1, (pattern, found)
    return [float(one.replace(",", "")) for one in (found[0] if isinstance(found[0], tuple) else found)]


def test_sentences_about_requests_have_the_numbers_of_the_tables(script: dict[str, Any]) -> None:
    plan, small = script["PLAN"], script["Plan"](member=10_000)
    size, reads, group = said(r"A set of NUMBER rows takes NUMBER requests on average in a group of NUMBER, since")
    assert (size, reads) == (plan.size, round(script["requests"](plan, int(group))[0], 1))
    (group,) = said(r"in a group of NUMBER, almost every row takes a request")
    assert script["requests"](plan, int(group))[0] == pytest.approx(plan.size, rel=0.02)
    shares = [one.stride / (script["GAP"] + one.member) for one in (plan, small)]
    assert said(r"here NUMBER, and NUMBER for images of 10 kB") == [round(share, 2) for share in shares]
    (stride,) = said(r"1,024 \| NUMBER \|")
    assert stride == plan.stride


def test_sentences_about_the_store_have_the_numbers_of_the_tables(script: dict[str, Any]) -> None:
    plan = script["PLAN"]
    reads = plan.sets * plan.size  # of scattered sets: one a picture
    ask = reads / script["seconds"](plan, reads, reads * plan.member)
    limit, threads, ranks, images = said(
        r"\| NUMBER requests/s \| one prefix of S3: more than NUMBER ranks with scattered sets and one thread each, or "
        r"more than NUMBER that read NUMBER images per second"
    )
    assert (limit, images) == (plan.limit, plan.images)
    assert threads * ask <= limit < (threads + 1) * ask
    assert ranks * images <= limit < (ranks + 1) * images
    drawn, wanted, size, total, each = said(
        r"bound: NUMBER ranks × NUMBER images × NUMBER kB are NUMBER GB/s, or NUMBER GB/s per machine"
    )
    assert (drawn, wanted, size) == (plan.ranks, plan.images, plan.member / 1000)
    assert total == round(drawn * wanted * size / 1e6)
    assert each == round(total / 128, 1)


def test_sentences_about_the_index_have_the_numbers_of_the_table(script: dict[str, Any]) -> None:
    plan = script["PLAN"]
    stored, mapped, _ = script["index_table"]()[-1][1:]
    (whole,) = said(r"downloads all of it once, NUMBER GB")
    assert whole == round(float(stored) * plan.rows / 1e9)
    (group,) = said(r"single row groups \(NUMBER MB each")
    assert group == pytest.approx(float(stored) * script["GROUP"] / 1e6, abs=0.1)
    (memory,) = said(r"once the NUMBER GB are in memory")
    (row,) = said(r"NUMBER bytes per row on each machine's disk")
    assert memory == row == int(mapped) * plan.rows / 1e9


def test_sentences_about_writing_follow_from_one_another() -> None:
    for line in re.findall(
        r"\| (?:npy|jpeg, quality 95|png|webp, lossless) \| \d+ kB \| ([\d,]+) \| ([\d,]+) \|", PAGE
    ):
        million, hours = (float(one.replace(",", "")) for one in line)
        assert hours == pytest.approx(million * 1000 / 3600, rel=0.07), line
    speed, hours = said(r"SHA-256, NUMBER GB/s per core here\): NUMBER core hours for 100 TB")
    assert hours == round(100_000 / speed / 3600)
    one, many = said(r"100 TB at 1 GB/s per machine take NUMBER hours on one machine, NUMBER minutes on 128")
    assert (one, many) == (round(100_000 / 3600), round(100_000 / 128 / 60))
