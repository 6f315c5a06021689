"""Files of ``setsup report dense``: a page, sheets, and tables."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from setsup_cli.output import finite
from setsup_cli.output_paths import write_file, write_image

if TYPE_CHECKING:
    from PIL.Image import Image

    from setsup.datasets import Dataset
    from setsup.experiments.evaluations.dense import Maps
    from setsup.experiments.evaluations.dense_results import DenseResults
    from setsup.experiments.evaluations.measured import BenchmarkResults, Example
    from setsup.experiments.evaluations.view_pairs import ViewPair

__all__ = ["write_benchmark", "write_results"]

_RIGHT = 5  # pixels within which a match of a sheet is right
_QUERIES = 40


def write_results(
    folder: Path,
    results: "DenseResults",
    dataset: "Dataset",
    pairs: "Callable[[int], ViewPair]",
    maps: "Mapping[str, Maps]",
    lines: Sequence[str],
    drawn: int,
    *,
    force: bool,
) -> list[tuple[Path, Path]]:
    """Write the files of a report into a folder, and return the requested and the written paths."""
    from setsup.pages.dense_page import dense_page

    numbers = range(min(drawn, len(results.rows)))
    sheets = {label: _sheet(label, results, dataset, [pairs(at) for at in numbers], of) for label, of in maps.items()}
    return _write(folder, results, dense_page(results, sheets, lines), sheets, force)


def write_benchmark(
    folder: Path,
    results: "BenchmarkResults",
    examples: "Mapping[str, Callable[[], Sequence[Example]]]",
    lines: Sequence[str],
    *,
    force: bool,
) -> list[tuple[Path, Path]]:
    """Write the files of the report of a benchmark with its own protocol, as :func:`write_results` does."""
    from setsup.pages.dense_page import benchmark_page

    dataset = results.about["dataset"]
    sheets = {label: _example_sheet(f"{label}\n{dataset}", found()) for label, found in examples.items()}
    return _write(folder, results, benchmark_page(results, sheets, lines), sheets, force)


def _example_sheet(title: str, examples: "Sequence[Example]") -> "Image":
    from setsup.reports.dense_sheet import dense_sheet

    return dense_sheet(
        [one.views for one in examples],
        [one.maps for one in examples],
        [(one.points1, one.points2, one.right) for one in examples],
        title,
        [one.caption for one in examples],
    )


def _write(
    folder: Path,
    results: "DenseResults | BenchmarkResults",
    page: str,
    sheets: "Mapping[str, Image]",
    force: bool,
) -> list[tuple[Path, Path]]:
    """Write a page, tables and sheets."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(finite(results.to_dict()), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    files = {
        "index.html": page.encode(),
        "results.csv": results.to_csv().encode(),
        "results.json": text.encode(),
    }
    paths = [(folder / name, write_file(content, folder / name, force=force)) for name, content in files.items()]
    for label, sheet in sheets.items():
        name = re.sub(r"[^\w.+-]+", "-", label).strip("-.") or "encoder"
        asked = folder / f"sheet-{name}.png"
        paths.append((asked, write_image(sheet, asked, force=force)))
    return paths


def _sheet(
    label: str, results: "DenseResults", dataset: "Dataset", pairs: "Sequence[ViewPair]", maps: "Maps"
) -> "Image":
    """Features as colours, and matches of visible pixels."""
    from setsup.evaluation.dense import visible_matches
    from setsup.evaluation.dense_views import DenseView
    from setsup.experiments.data import image_modality
    from setsup.experiments.evaluations.dense import choose_pixels
    from setsup.reports.dense_sheet import dense_sheet

    modality = image_modality(dataset)
    views, features, matches, captions = [], [], [], []
    for number, pair in enumerate(pairs):
        rows = np.array(pair.rows)
        both = list(maps(rows))
        view1, view2 = (DenseView(np.asarray(one), size) for one, size in zip(both, pair.sizes, strict=True))
        seen = pair.pairs.select(np.sort(choose_pixels(pair.pairs.visible, _QUERIES, number)))
        found = visible_matches(seen, view1, view2)
        images = dataset.fetch(rows, [modality])[modality]
        views.append((images[0][..., :3], images[1][..., :3]))
        features.append(both)
        matches.append((found.points1, found.points2, found.pixels <= _RIGHT))
        angle = "" if math.isnan(pair.angle) else f"\n{pair.angle:.0f}° apart"
        captions.append(f"rows {pair.rows[0]} and {pair.rows[1]}{angle}")
    title = (
        f"{label}\n{results.about['dataset']}; right: within {_RIGHT} px of the true place; {_QUERIES} visible pixels"
    )
    return dense_sheet(views, features, matches, title, captions)
