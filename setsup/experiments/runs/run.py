"""A run folder: what was trained, how far it is, and what was measured on it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.preset import Preset
from setsup.experiments.runs.checkpoint import (
    CHECKPOINT,
    callback_state,
    has_checkpoint,
    open_checkpoint,
    open_kept,
    trained_steps,
)
from setsup.experiments.runs.results import EVALUATION, read_results, save_result
from setsup.experiments.settings import difference, flatten, put, training_settings
from setsup.files.atomic import written

if TYPE_CHECKING:
    from setsup.factors import FactorTable

__all__ = ["DIGEST", "FILE", "FROM_DATA", "Progress", "Run", "is_left_to_data", "is_trained"]

DIGEST = "preset_file_sha256"
FILE = "preset_file"
"""In ``run.json``: SHA-256 and absolute path of the user's own file that holds the preset."""
FROM_DATA = "from_data"
"""In ``run.json``: settings that were completed from the data, as they were asked for."""
_METRICS, _FACTORS = "metrics.jsonl", "factors.parquet"


class Progress(NamedTuple):
    """Progress of a run, as its checkpoint has it: steps, seconds they took with their data, images with repeats."""

    steps: int
    seconds: float
    images: int


@dataclass(frozen=True, slots=True)
class Run:
    """One training of a preset with one seed, as a folder.

    ``run.json`` holds the settings, configuration and versions, also those of later sessions where they differ, path
    and SHA-256 of a preset's own file, and under ``from_data`` what was asked for where the data completed a setting;
    ``config.yaml`` the settings for ``setsup train --config``; ``factors.parquet`` is the factor table of the data;
    ``first-batch.png`` shows what the network gets first; ``metrics.jsonl`` and ``metrics.csv`` have one line per step;
    ``last.ckpt`` is the checkpoint, a Lightning one, and until the run is finished ``previous.ckpt`` the one before it,
    which is used if the last one is damaged; ``best.ckpt`` and ``step-000500.ckpt`` are kept ones; ``evaluation.json``
    and other ``*.png`` are results of evaluations, and ``evaluation/`` holds their parts.

    Attributes
    ----------
    folder : Path
        Where it is.
    preset : Preset
        With all changes made for this run.
    seed : int
        Of the initial weights, the draws, the augmentation and the noise of the method.
    description : mapping
        Content of ``run.json``.
    chosen : str
        Name of a kept checkpoint, such as ``best`` or ``step-000500``, whose weights are used; empty for the last one.

    """

    folder: Path
    preset: Preset
    seed: int
    description: Mapping[str, Any]
    chosen: str = ""

    @property
    def substitute(self) -> bool:
        """Whether the substitute dataset replaced the published one."""
        return bool(self.description["substitute"])

    @property
    def checkpoint(self) -> Path:
        """The chosen checkpoint; else the last one, or the previous one if that is damaged; absent before the first."""
        if self.chosen:
            return open_kept(self.folder, self.chosen)[0]
        return open_checkpoint(self.folder)[0] if has_checkpoint(self.folder) else self.folder / CHECKPOINT

    @property
    def finished(self) -> bool:
        """Whether all steps were trained."""
        return replace(self, chosen="").progress().steps >= self.preset.steps

    @property
    def results_path(self) -> Path:
        """File of the results of evaluations: those of a kept checkpoint have its name."""
        return self.folder / f"{Path(EVALUATION).stem}{self.suffix}.json"

    @property
    def suffix(self) -> str:
        """Suffix of the names of results: ``-best`` for that checkpoint, empty for the last one."""
        return f"-{self.chosen}" if self.chosen else ""

    @property
    def _sessions(self) -> list[Mapping[str, Any]]:
        return [self.description, *self.description.get("later", ())]

    @property
    def draws_per_step(self) -> tuple[int, ...]:
        """Number of devices that trained together, each on its own draw, in each session."""
        return tuple(
            session["config"].get("devices", 1) * session["config"].get("nodes", 1) for session in self._sessions
        )

    @property
    def synchronised(self) -> bool:
        """Whether batches were normalised over all devices together, in any session."""
        return any(session["config"].get("sync_batchnorm", False) for session in self._sessions)

    @property
    def file_changed(self) -> bool | None:
        """Whether the preset's own file has changed since the run, or a part of it, was trained.

        None where unknown: for presets of packages, and for runs of earlier versions, which kept no digest.
        """
        kept = {session[DIGEST] for session in self._sessions if isinstance(session.get(DIGEST), str)}
        return None if self.preset.digest is None or not kept else kept != {self.preset.digest}

    def progress(self) -> Progress:
        """Return the progress of the training; zeros before the first checkpoint."""
        if not self.chosen and not has_checkpoint(self.folder):
            return Progress(0, 0.0, 0)
        state = self.state()
        kept = callback_state(state)
        return Progress(trained_steps(state), float(kept["seconds"]), int(kept.get("images", 0)))

    def metrics(self) -> dict[str, float | None]:
        """Return the metrics of the last complete step; None for values that were not finite."""
        path = self.folder / _METRICS
        for line in reversed(path.read_text(errors="replace").splitlines() if path.exists() else ()):
            try:
                values = json.loads(line)
                values.pop("step")
            except (ValueError, AttributeError, KeyError, TypeError):
                continue  # cut off when the disk was full, or the machine went down
            return dict(values)
        return {}

    def factors(self, root: Path | str | None = None) -> "FactorTable":
        """The factor table of the training data, which the run stores to build the method without the data.

        A run of an earlier version keeps none: then the data are opened, in `root` if given.
        """
        from setsup.factors import FactorTable

        path = self.folder / _FACTORS
        if path.exists():
            return FactorTable.from_parquet(path)
        if self.preset.data is None:
            raise SetsupError(f"{self.preset.name} does not train on data, so it has no factors")
        return self.preset.data.open(root or self.description.get("root"), substitute=self.substitute).factors

    def save_factors(self, table: "FactorTable") -> None:
        """Save the table of the training data; it may be replaced until the first step is trained."""
        from pyarrow import parquet

        path = self.folder / _FACTORS
        if not (path.exists() and is_trained(self.folder)):
            with written(path) as part:
                parquet.write_table(table.to_arrow(), part)

    def state(self) -> dict[str, Any]:
        """The checkpoint, a Lightning one, read without unpickling anything but tensors and plain values.

        Raises
        ------
        DataError
            When there is none, or it is damaged.

        """
        return self._open()[1]

    def weights(self) -> tuple[Path, dict[str, Any]]:
        """Return the path of the checkpoint and its weights by name, after verifying checksums.

        Raises
        ------
        DataError
            When there is no checkpoint, or it is damaged.

        """
        path, checkpoint = self._open(checked=True)
        return path, checkpoint["state_dict"]

    def _open(self, *, checked: bool = False) -> tuple[Path, dict[str, Any]]:
        if self.chosen:
            return open_kept(self.folder, self.chosen, checked=checked)
        return open_checkpoint(self.folder, checked=checked)

    def difference(self, preset: Preset) -> dict[str, tuple[Any, Any]]:
        """Settings that affect training and differ from those of a preset: setting → (preset's, run's)."""
        differing = difference(*(training_settings(flatten(side), self.substitute) for side in (preset, self.preset)))
        return {name: both for name, both in differing.items() if not is_left_to_data(self.description, name, both[0])}

    def complete(self, preset: Preset) -> Preset:
        """A preset that trains the same, with this run's values of settings that it leaves to the data."""
        asked, own = flatten(preset), flatten(self.preset)
        left = (name for name, value in asked.items() if is_left_to_data(self.description, name, value))
        completed: Preset = put(preset, {name: own[name] for name in left if name in own})
        return completed

    def results(self) -> dict[str, Any]:
        """Evaluations by name, as :meth:`save` wrote them, None for values that are not finite."""
        return read_results(self.results_path)

    def save(self, name: str, found: Measured, about: Mapping[str, Any], key: str | None = None) -> None:
        """Write the result of an evaluation: numbers into ``evaluation.json``, images next to it.

        Those of a kept checkpoint go into ``evaluation-best.json`` and the like.

        Parameters
        ----------
        name : str
            Of the evaluation.
        found : Measured
            Its result.
        about : mapping
            Its settings.
        key : str, optional
            Digest of all that the result depends on.

        """
        entry = {"about": dict(about), **({} if key is None else {"key": key}), "steps": self.progress().steps}
        save_result(self.results_path, name, found, entry, self.suffix)


def is_left_to_data(description: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a value of a setting is what a run completed from its data."""
    from_data = description.get(FROM_DATA, {})
    return name in from_data and bool(from_data[name] == value)


def is_trained(folder: Path) -> bool:
    """Whether a folder holds any step."""
    metrics = folder / _METRICS
    return has_checkpoint(folder) or (metrics.exists() and metrics.stat().st_size > 0)
