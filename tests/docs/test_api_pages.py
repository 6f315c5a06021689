"""The reference names what there is."""

import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest

from setsup.files import load_manifest, manifest_names

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "api"
PAGES = sorted(FOLDER.rglob("*.md"))
ENTRIES = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("::: ")]
NAMES = [
    name
    for name in manifest_names()
    if (load_manifest(name).adapter or "").startswith(("setsup.datasets.benchmarks.", "setsup_papers."))
]


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_has_how_each_benchmark_opens(name):
    adapter = load_manifest(name).adapter
    assert any(entry.startswith(f"::: {adapter}.") and entry.endswith(".open") for entry in ENTRIES), (
        f"add `::: {adapter}.open` to a page of docs/api/benchmarks, or of its paper"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(FOLDER).as_posix())
def test_what_a_page_names_is_there(page):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("lightning", reason="lightning is not installed")
    found = re.findall(r"(?m)^::: (\S+)(?:\n    options:\n      members: \[(.*?)\])?", page.read_text(encoding="utf-8"))
    for name, members in found:
        owner = pkgutil.resolve_name(name)
        for member in filter(None, members.split(", ")):
            assert hasattr(owner, member), f"{page.name} names {name}.{member}"
    twice = [name for name, times in Counter(name for name, members in found).items() if times > 1]
    assert not twice
