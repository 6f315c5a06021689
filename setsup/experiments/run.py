"""A run folder: what was trained, how far it is, and what was measured on it."""

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from setsup.checks import check_arguments
from setsup.errors import DataError, SetsupError
from setsup.experiments.checkpoint import CHECKPOINT, has_checkpoint, opened
from setsup.experiments.preset import Measured, Preset, smoke
from setsup.experiments.settings import changes, filled, flat, learned, put
from setsup.files.atomic import written
from setsup.files.disk import need_regular
from setsup.files.expand_user import expanded
from setsup.files.locks import locked

if TYPE_CHECKING:
    from PIL.Image import Image

    from setsup.factors import FactorTable

__all__ = ["EVALUATION", "Progress", "Run", "begin", "open_run"]

_PACKAGES = ("setsup", "torch", "lightning", "numpy")
EVALUATION = "evaluation.json"
_DIGEST = "preset_file_sha256"
_DESCRIPTION, _METRICS, _FACTORS = "run.json", "metrics.jsonl", "factors.parquet"


class Progress(NamedTuple):
    """How far a run is, as its checkpoint says: steps, seconds that they took with their data, images with repeats."""

    steps: int
    seconds: float
    images: int


@dataclass(frozen=True, slots=True)
class Run:
    """One training of a preset with one seed, as a folder.

    ``run.json`` says what is trained, how and with which versions, each time it went on otherwise, too, and the
    SHA-256 of the file that holds the preset, where that is one of the user's own;
    ``factors.parquet`` is the factor table of the data; ``metrics.jsonl`` and ``metrics.csv`` have a line a step;
    ``last.ckpt`` is the checkpoint, a Lightning one, and until the run is finished ``previous.ckpt`` the one before it,
    which is used where the last one is damaged; ``evaluation.json`` and ``*.png`` are what was measured.

    Attributes
    ----------
    folder : Path
        Where it is.
    preset : Preset
        With all that was changed for this run.
    seed : int
        Of the initial weights, the draws, the augmentation and the noise of the method.
    description : mapping
        What ``run.json`` holds.

    """

    folder: Path
    preset: Preset
    seed: int
    description: Mapping[str, Any]

    @property
    def stand_in(self) -> bool:
        """Whether the stand-in took the place of the published data."""
        return bool(self.description["stand_in"])

    @property
    def checkpoint(self) -> Path:
        """The last checkpoint, or the previous one where that is damaged; absent before the first one."""
        return opened(self.folder)[0] if has_checkpoint(self.folder) else self.folder / CHECKPOINT

    @property
    def finished(self) -> bool:
        """Whether all steps were trained."""
        return self.progress().steps >= self.preset.steps

    @property
    def draws_a_step(self) -> tuple[int, ...]:
        """Devices that trained together, each on a draw of its own: one number for each time it went on otherwise."""
        sessions = [self.description, *self.description.get("later", ())]
        return tuple(one["how"].get("devices", 1) * one["how"].get("nodes", 1) for one in sessions)

    @property
    def file_changed(self) -> bool | None:
        """Whether the file that holds the preset has changed since the run was trained, or a part of it.

        None where that is not known: of presets of packages, and of runs of earlier versions, which kept no digest.
        """
        sessions = [self.description, *self.description.get("later", ())]
        kept = {one[_DIGEST] for one in sessions if isinstance(one.get(_DIGEST), str)}
        return None if self.preset.digest is None or not kept else kept != {self.preset.digest}

    def progress(self) -> Progress:
        """How far it is; nothing before the first checkpoint."""
        if not has_checkpoint(self.folder):
            return Progress(0, 0.0, 0)
        state = self.state()
        kept = state["callbacks"]["CheckpointCallback"]
        return Progress(int(state["global_step"]), float(kept["seconds"]), int(kept.get("images", 0)))

    def metrics(self) -> dict[str, float | None]:
        """What the method logged in the last step of which there is a whole line; None for what was not finite."""
        path = self.folder / _METRICS
        for line in reversed(path.read_text(errors="replace").splitlines() if path.exists() else ()):
            try:
                found = json.loads(line)
                found.pop("step")
            except (ValueError, AttributeError, KeyError, TypeError):
                continue  # cut off when the disk was full, or the machine went down
            return dict(found)
        return {}

    def factors(self, root: Path | str | None = None) -> "FactorTable":
        """Table of what it was trained on: the run keeps it, so that a method can be made where the data are not.

        A run of an earlier version keeps none: then the data are opened, in a root where one is given.
        """
        from setsup.factors import FactorTable

        path = self.folder / _FACTORS
        if path.exists():
            return FactorTable.from_parquet(path)
        if self.preset.data is None:
            raise SetsupError(f"{self.preset.name} trains on nothing, so there are no factors")
        return self.preset.data.open(root or self.description.get("root"), stand_in=self.stand_in).factors

    def keep_factors(self, table: "FactorTable") -> None:
        """Keep the table of what is trained on, once there is a step: until then the folder may be begun anew."""
        from pyarrow import parquet

        path = self.folder / _FACTORS
        if not (path.exists() and _trained(self.folder)):
            with written(path) as part:
                parquet.write_table(table.to_arrow(), part)

    def state(self) -> dict[str, Any]:
        """The checkpoint: a Lightning one, read without unpickling anything but tensors and plain values.

        Raises
        ------
        DataError
            When there is none, or it is damaged.

        """
        return opened(self.folder)[1]

    def weights(self) -> tuple[Path, dict[str, Any]]:
        """The checkpoint's path and its weights by name, when its bytes were compared with their checksums.

        Raises
        ------
        DataError
            When there is no checkpoint, or it is damaged.

        """
        path, found = opened(self.folder, checked=True)
        return path, found["state_dict"]

    def changed(self, preset: Preset) -> dict[str, tuple[Any, Any]]:
        """What this run learns otherwise than a preset: setting → (preset's, run's)."""
        return changes(*(learned(flat(one), self.stand_in) for one in (preset, self.preset)))

    def measured(self) -> dict[str, Any]:
        """Evaluations by name, as :meth:`keep` wrote them, None for what is not finite; none before the first."""
        path = self.folder / EVALUATION
        return _read(path, "remove it, and measure anew") if path.exists() else {}

    def keep(self, name: str, found: Measured, about: Mapping[str, Any]) -> None:
        """Write what an evaluation found: numbers into ``evaluation.json``, pictures beside it; earlier ones go.

        Parameters
        ----------
        name : str
            Of the evaluation.
        found : Measured
            Its result.
        about : mapping
            What it was asked with.

        """
        for title, picture in found.pictures.items():
            _draw(self.folder / f"{name}-{title}.png", picture)
        entry = {
            "about": dict(about),
            "steps": self.progress().steps,
            "values": {key: finite(value) for key, value in found.values.items()},
            "curves": {key: [list(map(finite, axis)) for axis in curve] for key, curve in found.curves.items()},
            "pictures": [f"{name}-{title}.png" for title in found.pictures],
        }
        path = self.folder / EVALUATION
        with locked(path):
            before = self.measured()
            _write(path, before | {name: entry})
            for stale in _pictures(before.get(name)) - _pictures(*(before | {name: entry}).values()):
                (self.folder / stale).unlink(missing_ok=True)


def begin(
    folder: Path | str,
    preset: Preset,
    seed: int,
    *,
    root: Path | str | None = None,
    stand_in: bool = False,
    how: Mapping[str, Any],
) -> Run:
    """Make a run folder, or open the one that is there to go on with it.

    A folder in which nothing has been trained yet is begun anew. In another the root is remembered that was given last,
    and where it goes on in another way, with other versions or with another file of presets than last, these stand
    below ``later``: settings that are equal are no reason to refuse a file in which a comment was corrected.
    """
    folder = Path(folder)
    description = {
        "preset": preset.name,
        "seed": seed,
        "stand_in": stand_in,
        "smoke": preset.shrunk,
        "root": None if root is None else str(expanded(root).absolute()),
        "settings": flat(preset),
        "how": json.loads(json.dumps(dict(how))),
        "versions": {"python": platform.python_version(), **_versions()},
    }
    if preset.digest is not None:
        description[_DIGEST] = preset.digest
    if _trained(folder):
        there = _described(folder / _DESCRIPTION)
        old = there | {"settings": filled(preset, there["settings"])}
        differing = changes(_identity(old), _identity(description))
        if differing:
            listed = ", ".join(f"{name} {old!r} there, {new!r} asked" for name, (old, new) in differing.items())
            raise SetsupError(f"{folder} holds another run: {listed}; give another --out, or ask for the same")
        now = {key: description[key] for key in ("how", "versions", _DIGEST) if key in description}
        description = there | {key: description[key] for key in ("root", "settings")}
        later = list(there.get("later", ()))
        last = later[-1] if later else there
        steps = Run(folder, preset, seed, there).progress().steps
        if steps < preset.steps and any(last.get(key) != value for key, value in now.items()):
            description["later"] = [*later, {"from_step": steps, **now}]
        if description == there:
            return Run(folder, preset, seed, there)
    _write(folder / _DESCRIPTION, description)
    return Run(folder, preset, seed, description)


def _identity(description: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same for a run to go on."""
    asked = {key: description[key] for key in ("preset", "seed", "stand_in")}
    how = {"smoke": description.get("smoke", False), "precision": description["how"].get("precision")}
    return asked | learned(description["settings"], description["stand_in"]) | how


def open_run(folder: Path | str, preset: Preset | None = None) -> Run:
    """Open the run in a folder.

    Parameters
    ----------
    folder : Path or str
        Of the run.
    preset : Preset, optional
        Taken where it has the name of the run's: those in a file of the user's own are not known by name.

    Raises
    ------
    DataError
        When there is none, or it is damaged.
    SetsupError
        When its preset is not known here.

    """
    check_arguments(open_run, locals(), DataError)
    from setsup.experiments.registry import named

    folder = Path(folder)
    path = folder / _DESCRIPTION
    if not path.exists():
        below = sorted(str(found.parent) for found in folder.glob(f"**/{_DESCRIPTION}"))
        hint = f"; below it are {', '.join(below[:4])}" if below else "; `setsup train PRESET` makes one"
        raise DataError(f"{folder} holds no run (no {_DESCRIPTION}){hint}")
    description = _described(path)
    name, seed, settings = description["preset"], description["seed"], description["settings"]
    if preset is None or preset.name != name:
        if (preset := named(name)) is None:
            raise SetsupError(
                f"{folder} is a run of {name!r}, and no preset has that name here: where it stands in a file of yours, "
                "name that, as in --preset my_method.py"
            )
    preset = smoke(preset) if description.get("smoke") else preset
    return Run(folder, put(preset, filled(preset, settings)), seed, description)


def _described(path: Path) -> dict[str, Any]:
    """What `run.json` holds, when all that is asked of it is there."""
    found = _read(path)
    kinds = {"preset": str, "seed": int, "stand_in": bool, "settings": dict, "how": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(found.get(name), kind)]
    if not wrong and not isinstance(found["how"].get("precision"), str):
        wrong = ["precision"]
    later = found.get("later", [])
    hows = [one.get("how") if isinstance(one, dict) else None for one in later] if isinstance(later, list) else [None]
    if not wrong and not all(map(_is_how, (found["how"], *hows))):
        wrong = ["devices and nodes"]
    if wrong:
        what = wrong[0]
        raise DataError(f"{path} does not say its {what!r}: restore it, or train anew in another folder")
    return found


def _is_how(how: Any) -> bool:
    return isinstance(how, dict) and all(type(how.get(name, 1)) is int for name in ("devices", "nodes"))


def _trained(folder: Path) -> bool:
    """Whether a folder holds any step."""
    metrics = folder / _METRICS
    return has_checkpoint(folder) or (metrics.exists() and metrics.stat().st_size > 0)


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def finite(value: float) -> float | None:
    """The number as JSON keeps it: null where it is not finite."""
    return float(value) if math.isfinite(value) else None


def _pictures(*entries: Any) -> set[str]:
    """Names of pictures of evaluations, as far as these are entries that `Run.keep` wrote."""
    lists = [entry.get("pictures") for entry in entries if isinstance(entry, dict)]
    names = [name for listed in lists if isinstance(listed, list) for name in listed]
    return {name for name in names if isinstance(name, str) and Path(name).name == name}


def _read(path: Path, advice: str = "restore it, or train anew in another folder") -> dict[str, Any]:
    need_regular(path)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}): {advice}") from None
    if not isinstance(found, dict):
        raise DataError(f"{path} is no JSON object: {advice}")
    return found


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with written(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _draw(path: Path, picture: "Image") -> None:
    with written(path) as part:
        picture.save(part)
