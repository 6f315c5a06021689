"""Run a notebook as the tests do; ``python tests/notebooks.py`` stores the outputs of the quick start again."""

import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[1] / "examples" / "quickstart.ipynb"


def execute(notebook: Any, folder: Path) -> None:
    """Run all cells in a folder; what they print is one output a cell, and nothing has a date."""
    from nbclient import NotebookClient

    NotebookClient(
        notebook,
        timeout=120,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute()


def store() -> None:
    """Run the notebook and write it with its outputs; of each image the PNG alone."""
    import nbformat

    notebook = nbformat.read(NOTEBOOK, 4)
    with tempfile.TemporaryDirectory() as folder:
        execute(notebook, Path(folder))
    notebook.metadata["language_info"] = {"name": "python"}  # without the version of the machine
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/jpeg", None)
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    store()
