"""Tables of dependencies and of measurements."""

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

USES = {
    "filelock": (
        "two processes that want the same file: one builds, the others wait",
        "a lock that the system frees when its holder dies, alike on Linux and macOS",
    ),
    "h5py": ("published files in HDF5, such as `3dshapes.h5`", "the format is large, and the library its reference"),
    "numpy": ("all arrays, draws included", ""),
    "pillow": ("decoding images, contact sheets", "decoders are hard to make safe"),
    "platformdirs": ("where the user's cache folder is", "each system has its own rules"),
    "pyarrow": (
        "factor tables on disk, mapped into memory; CSV and Parquet, block by block",
        "fast readers and a stable format",
    ),
    "pyyaml": ("manifests, by its safe loader", "YAML has many corners"),
    "requests": (
        "downloads that resume, try one mirror after another and detect web pages in place of archives",
        "HTTP, TLS and proxies; in place of pooch, which cannot resume and takes one address a file",
    ),
    "rich": ("tables and progress bars on the terminal", "widths, colours and terminals that lack them"),
    "scipy": ("the index of groups, a sparse matrix whose rows are counted in compiled code", "counting in C"),
    "tyro": ("options of the command, from typed dataclasses", "parsing and help from one declaration"),
    "datasets": ("factor tables from and to Hugging Face `datasets`", "it is the format"),
    "pandas": ("factor tables from and to data frames", "it is the format"),
    "mkdocs": ("this site", "a site generator that is extended by hooks"),
    "mkdocs-material": ("its theme and search, which need no network", ""),
    "mkdocstrings": ("the API reference, from the docstrings", ""),
    "hatchling": ("builds the wheel", "the build back end itself"),
    "build": ("builds wheel and source archive in a test", ""),
    "hypothesis": ("tests over random tables and mutated files", "it shrinks what fails to a small example"),
    "import-linter": ("holds imports to the layers of the house", ""),
    "mypy": ("checks types", ""),
    "pytest": ("runs the tests", ""),
    "ruff": ("finds faults and formats", ""),
    "scipy-stubs": ("types of scipy, for mypy", ""),
    "types-pyyaml": ("types of PyYAML, for mypy", ""),
    "types-requests": ("types of requests, for mypy", ""),
}
"""What each dependency is for, and why its work is not done by code of our own; by normalised name."""


def dependencies(project: Path, extra: str) -> str:
    """Table of the core's dependencies, or of those of an extra."""
    found = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    wanted = found["optional-dependencies"][extra] if extra else found["dependencies"]
    rows = ["| package | at least | what for | why not ours | licence |", "|---|---|---|---|---|"]
    for requirement in wanted:
        name, floor = re.match(r"([\w.-]+)(?:\[[^]]*\])?(?:>=(.*))?", requirement).groups()
        use, reason = USES[name.lower()]
        rows.append(f"| {name} | {floor or ''} | {use} | {reason} | {licence(name)} |")
    return "\n".join(rows)


def licence(name: str) -> str:
    """Licence of an installed package, as its metadata states it."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return "not installed here"
    if expression := about.get("License-Expression"):
        return expression
    kinds = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    text = (about.get("License") or "").strip()
    # some packages put the whole text there
    return text if text and "\n" not in text and len(text) < 40 else ", ".join(kinds) or "not stated"


def benchmarks(path: Path) -> str:
    """Measurements that ``python -m benchmarks --json`` wrote, or how to make them."""
    if not path.is_file():
        return (
            "!!! note\n\n    No measurements came with this build. Run `make bench`: it prints them for your machine."
        )
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        "| topic | what | setsup | against | | ratio | quartiles | required | |",
        "|---|---|--:|---|--:|--:|---|--:|---|",
    ]
    rows += [_measured(row) for row in found["rows"]]
    about = "\n".join(f"- {line}" for line in found["about"])
    return "\n".join(rows) + f"\n\nMeasured with:\n\n{about}"


def _measured(row: dict[str, Any]) -> str:
    figure, unit = row["figure"], row["unit"]
    cells = [
        row["topic"],
        row["what"],
        row["ours"],
        row["against"],
        row["other"],
        f"{_number(figure['median'])} {unit}",
        f"{_number(figure['low'])} – {_number(figure['high'])}",
        f"{row['bound']} {unit}" if row["bound"] else "",
        row["verdict"],
    ]
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
