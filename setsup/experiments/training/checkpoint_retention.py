"""Checkpoints that a training keeps next to the last one: of every N-th step, and the best by a metric."""

import json
import logging
import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from setsup.errors import SetsupError
from setsup.experiments.runs.checkpoint import keep_as, step_name

__all__ = ["KeptCheckpoints", "split_metric"]

_LOG = logging.getLogger(__name__)


class KeptCheckpoints:
    """Gives checkpoints that were just written further names.

    A metric that is logged at every step counts as its mean since the checkpoint before; one that is logged now and
    then, as by validation, has a checkpoint written at each of these steps. What was the best so far is in the
    callback's state, so that a resumed run compares with it; a run that is killed after a checkpoint was written and
    before it got its further names gives them when it resumes.
    """

    def __init__(self, folder: Path, every: int | None, best: str | None) -> None:
        self._metrics = folder / "metrics.jsonl"
        self._every, self._asked = every, best
        self._name: str | None = None
        self._sign = 1.0
        if best is not None:
            self._name, self._sign = split_metric(best)
        self._value, self._best_step, self._warned = math.inf, -1, False
        self._step, self._read = 0, 0
        self._logged_before: bool | None = None

    def start(self, step: int, loaded: Path | None) -> None:
        """Begin at a step; on the first rank, a checkpoint that was loaded gets the names that it should have."""
        self._step = step
        lines = self._metrics.read_bytes() if self._metrics.exists() else b""
        self._read = len(lines)
        for line in reversed(lines.splitlines()):
            with suppress(ValueError, TypeError, KeyError):  # cut off, as another rank may still see it
                values = json.loads(line)
                if values["step"] == step:
                    self._logged_before = self._name in values
                    break
        if loaded is not None:
            self._keep(loaded, step, self._every is not None and step > 0 and step % self._every == 0)

    def due(self, step: int, logged: Collection[str]) -> bool:
        """Whether a checkpoint has to be written after a step that logged these names."""
        before, self._logged_before = self._logged_before, self._name in logged
        return self._crosses(step) or (self._logged_before and before is False)

    def compare(self, step: int) -> None:
        """Compare the metric with the best so far, when its lines are written and the checkpoint is not."""
        if self._name is None:
            return
        values, others = self._logged()
        mean = math.fsum(values) / len(values) * self._sign if values else math.nan
        if mean < self._value:  # false for NaN
            self._value, self._best_step = mean, step
        if not values and self._best_step < 0 and not self._warned:
            self._warned = True
            listed = ", ".join(others) or "nothing"
            _LOG.warning("--keep-best: the metric %r was not logged by step %d (logged: %s)", self._name, step, listed)

    def keep(self, path: Path | None, step: int) -> None:
        """Give the checkpoint of a step its further names; None on other ranks than the first."""
        if path is not None:
            self._keep(path, step, self._crosses(step))
        self._step = step

    def state(self) -> dict[str, Any]:
        """The best so far, for the checkpoint."""
        if self._best_step < 0:
            return {}
        return {"metric": self._asked, "value": self._value * self._sign, "step": self._best_step}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue comparing with it, if the metric is the same."""
        if self._asked is not None and state.get("metric") == self._asked:
            self._value, self._best_step = state["value"] * self._sign, state["step"]

    def _crosses(self, step: int) -> bool:
        return self._every is not None and step // self._every > self._step // self._every

    def _keep(self, path: Path, step: int, numbered: bool) -> None:
        if numbered:
            keep_as(path, step_name(step))
        if step == self._best_step:
            keep_as(path, "best")

    def _logged(self) -> tuple[list[float], list[str]]:
        """Finite values of the metric in lines that were not read yet, and all names in them."""
        with self._metrics.open("rb") as file:
            file.seek(self._read)
            lines = [json.loads(line) for line in file]
            self._read = file.tell()
        logged = [line[self._name] for line in lines if line.get(self._name) is not None]
        return logged, sorted({name for line in lines for name in line} - {"step"})


def split_metric(asked: str) -> tuple[str, float]:
    """A metric, and 1 where less of it is better or -1 where more is: ``loss``, ``accuracy:max``."""
    name, colon, end = asked.rpartition(":")
    if not colon:
        return asked, 1.0
    if end not in ("min", "max"):
        raise SetsupError(f"the metric of the best checkpoint must be METRIC, METRIC:min or METRIC:max, not {asked!r}")
    return name, 1.0 if end == "min" else -1.0
