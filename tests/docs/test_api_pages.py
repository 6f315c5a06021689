"""The reference names what there is."""

from pathlib import Path

import pytest

from setsup.files import load_manifest, manifest_names

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api" / "benchmarks.md").read_text(encoding="utf-8")
NAMES = [name for name in manifest_names() if load_manifest(name).adapter.startswith("setsup.datasets.benchmarks.")]


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_has_how_each_benchmark_opens(name):
    adapter = load_manifest(name).adapter
    assert any(line.startswith(f"::: {adapter}.") and line.endswith(".open") for line in PAGE.splitlines()), (
        f"add `::: {adapter}.open` to docs/api/benchmarks.md"
    )
