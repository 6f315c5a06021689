"""The notebook runs without a display or network, and its stored outputs are what it gives."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks import NOTEBOOK, execute

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

LONG = pytest.mark.long("documented pages and examples")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a kernel runs; it writes nothing to the user's home."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    return tmp_path


def outputs(notebook: Any) -> Iterator[tuple[str, ...]]:
    """What cells print; of images and HTML that there are some, since their bytes depend on fonts and libraries."""
    for cell in notebook.cells:
        for one in cell.get("outputs", []):
            if one.output_type == "stream":
                yield one.name, one.text
            else:
                yield one.output_type, *sorted({"image/png", "text/html"} & set(one.data))


def rounded(words: str) -> str:
    """A text without the digits of what linear algebra computed, which differ between machines."""
    return re.sub(r"\d[\d.e+]*", "0", words) if "%" in words or "variance" in words else words


def test_the_stored_notebook_is_valid_and_small() -> None:
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    assert NOTEBOOK.stat().st_size < 300_000
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == list(
        range(1, 1 + sum(cell.cell_type == "code" for cell in notebook.cells))
    )
    learned = next(text for _, text in outputs(notebook) if "same level as the neighbour" in text)
    shares = {line.split()[0]: int(line.split()[-1].rstrip("%")) for line in learned.splitlines()[1:]}
    assert shares["wall_hue"] >= 98 > 40 > max(share for name, share in shares.items() if name != "wall_hue")
    assert all(name in ("stdout", "execute_result") for name, *_ in outputs(notebook))


@LONG
def test_the_stored_outputs_are_current(folder: Path) -> None:
    stored, fresh = nbformat.read(NOTEBOOK, 4), nbformat.read(NOTEBOOK, 4)
    execute(fresh, folder)
    found, kept = ([tuple(map(rounded, one)) for one in outputs(each)] for each in (fresh, stored))
    assert found == kept, "run `python tests/notebooks.py`"


PROGRESS = """\
import time
from setsup.progress import progress

with progress(20, "reading <b>", "rows") as advance:
    for _ in range(14):
        time.sleep(0.05)
        advance()
    1 / 0
"""


@LONG
def test_progress_is_a_bar_that_disappears(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    real = nbclient.NotebookClient.process_message

    def record(client: Any, message: Any, cell: Any, index: int) -> Any:
        if message["msg_type"] in ("display_data", "update_display_data"):
            shown.append(message["content"]["data"])
        return real(client, message, cell, index)

    monkeypatch.setattr(nbclient.NotebookClient, "process_message", record)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(PROGRESS)])
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        execute(notebook, folder)
    first, last = shown
    assert first["text/plain"].startswith("reading <b>: ")
    assert " of 20 rows, " in first["text/plain"]
    assert first["text/html"].startswith("<progress value=")
    assert "reading &lt;b&gt;: " in first["text/html"]
    assert last == {"text/plain": "", "text/html": ""}
    assert [one.output_type for one in notebook.cells[0].outputs] == ["display_data", "error"]  # no escape codes
