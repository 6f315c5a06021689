"""Tables of dependencies and of measurements."""

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from setsup.optional import LIBRARIES

USES = {library.package.lower(): library.use for library in LIBRARIES.values()} | {
    "cloudpickle": "what a script or notebook defines, sent to the loader's worker processes",
    "cyclopts": "arguments and options of the command, from typed dataclasses; their help; completion in shells",
    "filelock": "two processes that want the same file: one builds, the others wait",
    "google-crc32c": "the checksums of TFRecords",
    "h5py": "published files in HDF5, such as `3dshapes.h5`, and MATLAB 7.3",
    "kornia-rs": "decoding PNG",
    "numpy": "all arrays, draws included",
    "pillow": "images that the faster decoders leave to it, contact sheets",
    "platformdirs": "where the user's cache folder is",
    "pyarrow": "factor tables on disk, mapped into memory; CSV and Parquet, block by block",
    "pyyaml": "manifests, by its safe loader",
    "requests": "downloads: resume, one mirror after another, web pages in place of archives noticed",
    "rich": "tables and progress bars on the terminal",
    "scipy": "`.mat` files up to 7.2; quantiles, nearest points, distances; groups of millions of rows",
    "simplejpeg": "decoding JPEG",
    "axe-playwright-python": "holds axe-core (MPL-2.0), which finds faults of accessibility in tests of pages",
    "mkdocs": "this site",
    "mkdocs-material": "its theme and search, which need no network",
    "mkdocstrings": "the API reference, from the docstrings",
    "hatchling": "builds the wheel",
    "build": "builds wheel and source archive in a test",
    "flask": "what moto's server runs in",
    "flask-cors": "likewise",
    "hypothesis": "tests over random tables and mutated files",
    "ipykernel": "the kernel in which tests run the notebook",
    "import-linter": "holds imports to the layers of the house",
    "moto": "a server that speaks S3, for tests of stores",
    "mypy": "checks types",
    "nbclient": "runs the notebook in the tests",
    "nbformat": "reads and writes the notebook",
    "playwright": "drives a browser, for tests of pages",
    "pytest": "runs the tests",
    "pytest-xdist": "runs them on all cores",
    "pytorch-metric-learning": "an example of its losses on domain batches",
    "ruff": "finds faults and formats",
    "tensorboard": "tests of `setsup train --log tensorboard`",
    "scipy-stubs": "types of scipy, for mypy",
    "pandas-stubs": "types of pandas, for mypy",
    "torchdata": "tests that its loaders resume ours",
    "types-pyyaml": "types of PyYAML, for mypy",
    "types-requests": "types of requests, for mypy",
    "webdataset": "tests that it reads our shards, and that we read its",
}
"""What each dependency is for, by name in lower case."""

STATED = {"axe-playwright-python": "MIT; axe-core MPL-2.0"}
"""Licences that stand in a package's files and not in its metadata."""

REASONS = {
    "cloudpickle": "functions and classes by value are a matter of Python's internals",
    "cyclopts": "typed parsing has many corners; its errors are public exceptions, which become our one sentence",
    "filelock": "a lock that the system frees when its holder dies, alike on Linux and macOS",
    "google-crc32c": "a checksum in Python would be the slowest part of reading",
    "h5py": "a large format; this is its reference reader",
    "kornia-rs": "a third of Pillow's time, and it looks at the checksums",
    "numpy": "everything in the field takes its arrays",
    "pillow": "decoders are many and hard to make safe",
    "platformdirs": "each system has its own rules",
    "pyarrow": "fast readers, and a stable format that maps into memory",
    "pyyaml": "YAML has many corners",
    "requests": "HTTP, TLS, proxies; used in place of pooch, which can neither resume nor try mirrors",
    "rich": "widths and colours, and terminals that lack them",
    "scipy": "a format with many corners; functions that are hard to compute well",
    "simplejpeg": "half of Pillow's time, and it tells libjpeg-turbo's warnings",
    "torch": "it is what most trainers take",
    "kornia": "batched, differentiable and tested",
    "lightning": "it is the trainer",
    "transformers": "it is the trainer",
    "accelerate": "it is the trainer's",
    "matplotlib": "axes, ticks and legends have many corners",
    "scikit-image": "thinning has many definitions; this one is published and compiled",
    "scikit-learn": "the reference code of t-SNE's fast method, compiled",
    "umap-learn": "it is its authors' code",
    "datasets": "it is the format",
    "pandas": "it is the format",
    "trimesh": "formats of meshes have many corners",
    "embreex": "fast and watertight trees over triangles are a research field",
    "rtree": "it is trimesh's",
    "moderngl": "OpenGL without its ceremony; 0.3 MB",
    "pyrender2": "it is the renderer, kept up for numpy 2",
    "pyopengl": "it is pyrender2's",
    "fsspec": "a store is a protocol, with credentials, retries and signatures; each has its library",
    "gcsfs": "it is fsspec's",
    "huggingface_hub": "it is the Hub's",
    "s3fs": "it is fsspec's, over the vendor's botocore",
    "ray": "schedulers that survive machines are a research field",
    "av": "it is FFmpeg, which knows every codec",
    "opencv-python-headless": "its kernels are vectorised by hand; its detectors come trained",
    "scenedetect-headless": "its measure of change is well tried",
}
"""Why the work of a dependency that users get is not done by code of our own."""


def dependencies(project: Path, extra: str) -> str:
    """Table of the core's dependencies, or of those of an extra."""
    found = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    wanted = found["optional-dependencies"][extra] if extra else found["dependencies"]
    requirements = [re.match(r"([\w.-]+)(?:\[[^]]*\])?(?:>=([^,]*))?", line).groups() for line in wanted]
    reasoned = all(name.lower() in REASONS for name, _ in requirements)
    heads = ["package", "at least", "what for", *(["why not ours"] if reasoned else []), "licence"]
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
