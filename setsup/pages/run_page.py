"""A run as a page asks for it: curves of its metrics, and the batch of any step, which nobody had to log."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from setsup.datasets.dataset import Dataset
from setsup.errors import DataError, SetsupError
from setsup.experiments.runs.run import Run
from setsup.experiments.step_batches import Rerun, StepBatch, rerun
from setsup.pages.answers import Answer, Query, json_answer
from setsup.pages.draw_sheet import describe_draw
from setsup.pages.embedding_page import EmbeddingSource, has_embeddings, open_embeddings
from setsup.pages.images import draw_thumbs, encoded, image_modality
from setsup.pages.recent import Recent

__all__ = ["RunSource", "open_run_data", "open_run_embeddings", "read_metrics", "spikes", "thin"]

_POINTS = 2000  # of a curve; of more steps, the least and the largest of each stretch are kept
_KEPT = 4
_TILE = 80  # pixels of an image of a batch: twelve side by side fit a page
_AROUND = 8  # steps before and after one with which it is compared


@dataclass
class RunSource:
    """A run that answers.

    Attributes
    ----------
    run : Run
        What is shown.
    images : bool
        Whether images may be shown.
    shown : tuple of int
        Steps whose batches can be asked for; empty for all.
    place : str
        Its folder, as a command takes it; by default as it was opened.

    """

    run: Run
    images: bool = True
    shown: tuple[int, ...] = ()
    place: str = ""
    _opened: Recent[str, Rerun] = field(default_factory=lambda: Recent(1), repr=False)
    _batches: Recent[tuple[int, int, int], StepBatch] = field(default_factory=lambda: Recent(_KEPT), repr=False)
    _metrics: Recent[Any, Any] = field(default_factory=lambda: Recent(1), repr=False)

    def __post_init__(self) -> None:
        """Know the folder."""
        self.place = self.place or str(self.run.folder)

    def about(self) -> Mapping[str, Any]:
        """What was trained, how far it is, and the names of its metrics."""
        run, (steps, metrics) = self.run, self.metrics()
        preset = run.preset
        return {
            "kind": "run",
            "name": f"{preset.name}, seed {run.seed}",
            "folder": run.folder.absolute().name,
            "data": None if preset.data is None else preset.data.name,
            "substitute": run.substitute,
            "changed": bool(run.file_changed),
            "steps": preset.steps,
            "trained": int(steps[-1]) if len(steps) else 0,
            "devices": max(run.draws_per_step),
            "parts": preset.accumulate,
            "metrics": list(metrics),
            "images": self.images,
            "shown": list(self.shown),
        }

    def answer(self, query: Query) -> Answer:
        """Answer a question about the run."""
        answers = {"curve": self._curve, "batch": self._batch, "sheet": self._sheet, "thumbs": self._thumbs}
        return answers[query.choice("q", tuple(answers))](query)

    def _curve(self, query: Query) -> Answer:
        steps, metrics = self.metrics()
        values = metrics[query.choice("metric", tuple(metrics))]
        known = np.isfinite(values)
        return json_answer({**thin(steps[known], values[known]), "spikes": spikes(steps[known], values[known])})

    def batch(self, step: int, rank: int = 0, part: int = 0) -> StepBatch:
        """The batch of a step."""
        return self._batches.get((step, rank, part), lambda: self._rerun().batch(step, rank, part))

    def _rerun(self) -> Rerun:
        """The run with its data, which are opened once."""
        return self._opened.get("", lambda: rerun(self.run))

    def metrics(self) -> tuple[Any, dict[str, Any]]:
        """Steps and metrics that are logged by now, as :func:`read_metrics` gives them; a file is read once."""
        path = self.run.folder / "metrics.jsonl"
        about = path.stat() if path.exists() else None
        state = about and (about.st_size, about.st_mtime_ns)
        metrics: tuple[Any, dict[str, Any]] = self._metrics.get(state, lambda: read_metrics(self.run))
        return metrics

    def _asked(self, query: Query) -> StepBatch:
        step = query.integer("step", 1, self.run.preset.steps)
        return self.batch(step, query.integer("rank", 0, 4095, 0), query.integer("part", 0, 4095, 0))

    def _batch(self, query: Query) -> Answer:
        rerun = self._asked(query)
        described = describe_draw(rerun.dataset.factors, rerun.draw, rerun.sampler)
        steps, metrics = self.metrics()
        here = np.flatnonzero(steps == rerun.step)
        logged = {name: float(values[here[0]]) for name, values in metrics.items()} if len(here) else {}
        thumbs = image_modality(rerun.dataset) if self.images else None
        about = {"step": rerun.step, "rank": rerun.rank, "world": rerun.world, "draw": str(rerun.number)}
        return json_answer({**described, **about, "metrics": logged, "thumbs": thumbs})

    def _sheet(self, query: Query) -> Answer:
        from setsup.experiments.training.monitoring.first_batch import batch_sheet

        if not self.images:
            raise DataError("images of this run are not included in this page")
        rerun = self._asked(query)
        sheet = batch_sheet(rerun.batch, getattr(self.run.preset.method, "views", ()), _TILE)
        if sheet is None:
            raise DataError("this batch has no images")
        return encoded(sheet, exact=True)

    def _thumbs(self, query: Query) -> Answer:
        return draw_thumbs(self._asked(query).dataset, query, self.images)


def open_run_embeddings(run: Run, datasets: Sequence[Dataset] = ()) -> list[EmbeddingSource]:
    """Embeddings in the folder of a run, with images of what it was trained on, or of another dataset."""
    folders = [folder for folder in sorted(run.folder.glob("embeddings-*")) if has_embeddings(folder)]
    known = [*datasets, *(open_run_data(run) if folders else ())]
    sources: list[EmbeddingSource] = []
    for folder in folders:
        name = f"{run.preset.name}, seed {run.seed}: {folder.name}"
        with suppress(DataError):  # maps have no point of each row
            sources += (replace(source, place="") for source in open_embeddings(folder, known, name=name))
    return sources


def open_run_data(run: Run) -> list[Dataset]:
    """What a run was trained on; empty where it is not here."""
    with suppress(SetsupError):
        return [run.preset.open_data(run.description.get("root"), substitute=run.substitute)]
    return []


def read_metrics(run: Run) -> tuple[Any, dict[str, Any]]:
    """Steps (n,) int64 of a run, ascending, and its metrics (n,) float64 by name; NaN where there is none."""
    path = run.folder / "metrics.jsonl"
    lines: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        try:
            values = json.loads(line)
            lines.append({**values, "step": int(values["step"])})
        except (ValueError, KeyError, TypeError):
            break  # cut off when the machine went down
    names = list(dict.fromkeys(name for line in lines for name in line if name != "step"))
    numbers = {name: np.array([_number(line.get(name)) for line in lines], dtype=np.float64) for name in names}
    return np.array([line["step"] for line in lines], dtype=np.int64), numbers


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else np.nan


def spikes(steps: Any, values: Any, most: int = 4) -> list[int]:
    """Steps whose value is farthest above the median of those around it, farthest first; of neighbours only one.

    Each is three times as far as one value in twenty is: noise is no spike.
    """
    if len(values) < 2 * _AROUND:
        return []
    longer = np.pad(values, _AROUND, "reflect", reflect_type="odd")
    above = values - np.median(np.lib.stride_tricks.sliding_window_view(longer, 2 * _AROUND + 1), axis=1)
    least = 3 * float(np.quantile(np.abs(above), 0.95))
    spiking: list[int] = []
    for index in np.argsort(-above, kind="stable").tolist():
        if len(spiking) == most or above[index] <= least:
            break
        if all(abs(index - other) > _AROUND for other in spiking):
            spiking.append(index)
    return [int(steps[index]) for index in spiking]


def thin(steps: Any, values: Any) -> dict[str, Any]:
    """A curve of at most so many points, in which every spike of the whole one is."""
    count = len(steps)
    if count > _POINTS:
        starts = np.linspace(0, count, _POINTS // 2 + 1).astype(np.int64)[:-1]
        ends = np.append(starts[1:], count)
        kept = {first + int(np.argmin(values[first:last])) for first, last in zip(starts, ends, strict=True)}
        kept |= {first + int(np.argmax(values[first:last])) for first, last in zip(starts, ends, strict=True)}
        chosen = np.array(sorted(kept))
        steps, values = steps[chosen], values[chosen]
    return {"steps": steps, "values": values, "of": count}
