"""The papers' experiments as presets, from the data set to what is measured; and runs of them."""

from importlib.util import find_spec

from setsup.errors import SetsupError

if missing := [library for library in ("torch", "lightning") if find_spec(library) is None]:
    raise SetsupError(f"experiments need {' and '.join(missing)}: pip install -e '.[torch,train]' in setsup's folder")

from setsup.experiments.evaluating import evaluate
from setsup.experiments.preset import Data, Drawing, Evaluation, Learning, Measured, Preset, smoke
from setsup.experiments.registry import find_preset, presets
from setsup.experiments.run import Run, open_run
from setsup.experiments.trained import Trained, embed, load_trained
from setsup.experiments.training import How, train

__all__ = [
    "Data",
    "Drawing",
    "Evaluation",
    "How",
    "Learning",
    "Measured",
    "Preset",
    "Run",
    "Trained",
    "embed",
    "evaluate",
    "find_preset",
    "load_trained",
    "open_run",
    "presets",
    "smoke",
    "train",
]
