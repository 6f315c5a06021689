"""Tables of dependencies and of measurements."""

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from setsup.optional import LIBRARIES

USES = {library.package.lower(): library.use for library in LIBRARIES.values()} | {
    "cloudpickle": "sending definitions of a script or notebook to the loader's worker processes",
    "cyclopts": "arguments and options of the command, from typed dataclasses; help; shell completion",
    "filelock": "locks: if several processes need the same file, one builds it and the others wait",
    "google-crc32c": "checksums of TFRecords",
    "h5py": "published files in HDF5, such as `3dshapes.h5`, and MATLAB 7.3",
    "kornia-rs": "decoding PNG",
    "numpy": "all arrays, including draws",
    "pillow": "images that the faster decoders do not support; contact sheets",
    "platformdirs": "the location of the user's cache folder",
    "pyarrow": "memory-mapped factor tables on disk; CSV and Parquet, block by block",
    "pyyaml": "manifests, with its safe loader",
    "requests": "downloads that resume, try one mirror after another, and detect web pages in place of archives",
    "rich": "tables and progress bars on the terminal",
    "scipy": "`.mat` files up to 7.2; quantiles, nearest points, distances; groups of millions of rows",
    "simplejpeg": "decoding JPEG",
    "axe-playwright-python": "includes axe-core (MPL-2.0), which finds accessibility faults in tests of pages",
    "mkdocs": "this site",
    "mkdocs-material": "the theme and the search of this site, which work offline",
    "mkdocstrings": "the API reference, from the docstrings",
    "hatchling": "builds the wheel",
    "build": "builds the wheel and the source archive in a test",
    "flask": "runs moto's server",
    "flask-cors": "runs moto's server",
    "check-jsonschema": "checks files that hosts of code read by their schemas",
    "hypothesis": "tests over random tables and mutated files",
    "ipykernel": "kernel in which tests run the notebook",
    "import-linter": "checks that imports follow the layers of the architecture",
    "mlcroissant": "the other reader of Croissant: tests compare what it gives with what setsup wrote",
    "moto": "a server that speaks S3, for tests of stores",
    "mypy": "checks types",
    "nbclient": "runs the notebook in the tests",
    "nbformat": "reads and writes the notebook",
    "playwright": "drives a browser, for tests of pages",
    "pytest": "runs the tests",
    "pytest-xdist": "runs the tests on all cores",
    "pytorch-metric-learning": "losses in an example with domain batches",
    "ruff": "linter and formatter",
    "tensorboard": "tests of `setsup train --log tensorboard`",
    "scipy-stubs": "types of scipy, for mypy",
    "pandas-stubs": "types of pandas, for mypy",
    "torchdata": "tests that its loaders can resume setsup's",
    "types-pyyaml": "types of PyYAML, for mypy",
    "types-requests": "types of requests, for mypy",
    "webdataset": "tests that it reads setsup's shards, and that setsup reads its shards",
}
"""What each dependency is for, by name in lower case."""

STATED = {"axe-playwright-python": "MIT; axe-core MPL-2.0", "mlcroissant": "Apache-2.0"}
"""Licences that stand in a package's files and not in its metadata."""

REASONS = {
    "cloudpickle": "pickling functions and classes by value depends on Python's internals",
    "cyclopts": "typed parsing has many special cases; its errors are public exceptions",
    "filelock": "the system releases its locks when a process dies, on Linux and macOS",
    "google-crc32c": "a checksum in Python would be the slowest part of reading",
    "h5py": "the reference reader of a large format",
    "kornia-rs": "takes a third of Pillow's time, and verifies checksums",
    "numpy": "all libraries of the field use its arrays",
    "pillow": "there are many decoders, and safe ones are hard to write",
    "platformdirs": "each operating system has its own rules",
    "pyarrow": "fast readers, and a stable format that can be memory-mapped",
    "pyyaml": "YAML has many special cases",
    "requests": "handles HTTP, TLS and proxies; pooch can neither resume nor try mirrors",
    "rich": "handles widths and colors, and terminals without colors",
    "scipy": "a format with many special cases; functions that are hard to compute accurately",
    "simplejpeg": "takes half of Pillow's time, and reports libjpeg-turbo's warnings",
    "torch": "most trainers use it",
    "kornia": "its operations are batched, differentiable and tested",
    "lightning": "its trainer is supported",
    "transformers": "its trainer is supported",
    "accelerate": "transformers' trainer requires it",
    "matplotlib": "axes, ticks and legends have many special cases",
    "scikit-image": "there are many definitions of thinning; this one is published and compiled",
    "scikit-learn": "compiled reference code of the fast t-SNE method",
    "umap-learn": "code of the method's authors",
    "datasets": "defines the format",
    "pandas": "defines the format",
    "trimesh": "mesh formats have many special cases",
    "embreex": "fast and watertight ray casting is a field of research",
    "rtree": "trimesh requires it",
    "moderngl": "a concise interface to OpenGL of 0.3 MB",
    "pyrender2": "the renderer, maintained for numpy 2",
    "pyopengl": "pyrender2 requires it",
    "fsspec": "each store has a protocol with credentials, retries and signatures, and a library for it",
    "gcsfs": "fsspec's library for Google Cloud Storage",
    "huggingface_hub": "the library of the Hub",
    "s3fs": "fsspec's library for S3, based on the vendor's botocore",
    "ray": "scheduling that survives the loss of machines is a field of research",
    "av": "includes FFmpeg, which supports all common codecs",
    "opencv-python-headless": "its kernels are vectorised by hand; its detectors are trained",
    "scenedetect-headless": "its measure of change is well tested",
}
"""Why the work of a dependency that users get is not done by code of our own."""


def dependencies(project: Path, extra: str) -> str:
    """Table of the core's dependencies, or of those of an extra."""
    found = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    wanted = found["optional-dependencies"][extra] if extra else found["dependencies"]
    requirements = [re.match(r"([\w.-]+)(?:\[[^]]*\])?(?:>=([^,]*))?", line).groups() for line in wanted]
    reasoned = all(name.lower() in REASONS for name, _ in requirements)
    heads = ["package", "at least", "used for", *(["why a dependency"] if reasoned else []), "licence"]
    rows = [heads, ["---"] * len(heads)]
    for name, floor in requirements:
        reason = [REASONS[name.lower()]] if reasoned else []
        rows.append([name, floor or "", USES[name.lower()], *reason, licence(name)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def licence(name: str) -> str:
    """Licence of an installed package, as its metadata states it."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return "not installed here"
    if expression := STATED.get(name.lower()) or about.get("License-Expression"):
        return expression
    kinds = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    text = (about.get("License") or "").strip().removeprefix("UNKNOWN")
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
    for later in found.get("later", ()):  # rows of topics that another run has measured since
        about += f"\n- {later['topics']}: {later['on']}"
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
