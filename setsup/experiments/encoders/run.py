"""An encoder with a dataset, as evaluations take a trained run; and its results in a folder."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

from setsup.checks import check_arguments
from setsup.datasets import Dataset
from setsup.errors import SetsupError, did_you_mean, require_modules
from setsup.experiments.data import Data, image_modality
from setsup.experiments.encoders.encoder import Encoder
from setsup.experiments.encoders.knowledge import NOISE, measure_spread
from setsup.experiments.evaluating import PARTS, identify
from setsup.experiments.evaluation import Evaluation, Measured
from setsup.experiments.result_cache import PartStore, digest_weights
from setsup.experiments.runs.json_files import read_json, write_json
from setsup.experiments.runs.results import EVALUATION, save_result
from setsup.experiments.settings import describe
from setsup.experiments.trained_run import TrainedRun
from setsup.files.disk import need_writable

__all__ = ["ABOUT", "encoder_run", "evaluate_encoder"]

ABOUT = "encoder.json"
"""The encoder and the data that the results of a folder are of."""


def encoder_run(
    encoder: Encoder,
    dataset: Dataset,
    *,
    data: Data | None = None,
    root: Path | str | None = None,
    folder: Path | str = ".",
    seed: int = 0,
) -> TrainedRun:
    """Give an encoder a dataset: what evaluations take in place of a trained run.

    Parameters
    ----------
    encoder : Encoder
        From :func:`open_encoder`. It reads the dataset's modality ``image``, or its only one with colours.
    dataset : Dataset
        What is measured on, in place of training data.
    data : Data, optional
        Name and options of the dataset, for evaluations that open another split of it.
    root : Path or str, optional
        Folder of its published files, for these.
    folder : Path or str
        Where long evaluations may keep intermediate results.
    seed : int
        Of the rows that are drawn, and of estimators.

    Returns
    -------
    TrainedRun

    Raises
    ------
    DataError
        When the dataset has no images, or several modalities of images and none is named ``image``.

    Examples
    --------
    >>> import setsup
    >>> from setsup.experiments.encoders import encoder_run, open_encoder
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> found = encoder_run(open_encoder("pixels:8", "cpu"), shapes)
    >>> found.embed(rows=found.sample(10)).shape
    (10, 192)

    """
    check_arguments(encoder_run, locals())
    encoder.modality = image_modality(dataset)
    device = next((parameter.device for parameter in encoder.parameters()), None)
    trained = TrainedRun(
        encoder.label,
        encoder,  # type: ignore[arg-type]  # evaluations call nothing else of a LightningModule
        seed,
        Path(folder),
        data=None if data is None else replace(data, modalities=(encoder.modality,)),
        root=root,
        device="cpu" if device is None else str(device),
        table=dataset.factors,
    )
    trained.dataset = dataset
    return trained


def evaluate_encoder(
    trained: TrainedRun,
    evaluations: Mapping[str, Evaluation],
    *,
    about: Mapping[str, Any] | None = None,
    only: Collection[str] = (),
    on_start: Callable[[str, Evaluation], None] | None = None,
) -> dict[str, Measured]:
    """Measure an encoder, and save the results in the folder of its run, as :func:`setsup.experiments.evaluate` does.

    Parameters
    ----------
    trained : TrainedRun
        From :func:`encoder_run`; ``evaluation.json``, figures, and ``encoder.json`` are written to its folder.
    evaluations : mapping of str to Evaluation
        Such as :func:`standard_evaluations`. Where a ``sigma``, the scale of noise, is None, it becomes a tenth of the
        standard deviation of the embeddings: no loss tells a scale.
    about : mapping, optional
        What else identifies the results, such as the path of the source.
    only : collection of str
        Names of evaluations; all by default.
    on_start : callable, optional
        Called with the name and the settings of each evaluation, before it starts.

    Returns
    -------
    dict
        Results by evaluation.

    Raises
    ------
    SetsupError, DataError
        Before the first evaluation, when the folder has results of another encoder or of other data or cannot be
        written, or there is no such evaluation.

    """
    check_arguments(evaluate_encoder, locals())
    for name in only:
        if name not in evaluations:
            raise SetsupError(f"unknown evaluation {name!r}{did_you_mean(name, evaluations)}")
    chosen = {name: evaluation for name, evaluation in evaluations.items() if not only or name in only}
    for name, evaluation in chosen.items():
        require_modules(f"the evaluation {name!r} needs", *getattr(evaluation, "needs", ()))
    claimed = _claim(trained, dict(about or {}))
    results = {}
    for name, evaluation in chosen.items():
        scaled = _with_sigma(trained, evaluation)
        if on_start is not None:
            on_start(name, scaled)
        trained.store = PartStore(trained.folder / PARTS / name, claimed | {"measure": identify(scaled)})
        results[name] = scaled.measure(trained)
        save_result(trained.folder / EVALUATION, name, results[name], {"about": describe(scaled)})
    return results


def _claim(trained: TrainedRun, more: dict[str, Any]) -> dict[str, Any]:
    """Write what the results of a folder are of; SetsupError where it has others."""
    encoder: Any = trained.method
    table = trained.dataset.factors
    about: dict[str, Any] = encoder.about
    about |= {"weights_sha256": digest_weights(encoder.state_dict()), "preprocessing": _describe(encoder.preprocess)}
    about |= {"dataset": trained.dataset.name, "rows": len(table), "factors": table.fingerprint, "seed": trained.seed}
    about |= more
    path = trained.folder / ABOUT
    need_writable(path)
    if path.exists() and (before := read_json(path, "remove the file, and evaluate again")) != about:
        differing = next(key for key in {**about, **before} if before.get(key) != about.get(key))
        raise SetsupError(
            f"{trained.folder} contains results with a different value of {differing.replace('_', ' ')} (existing: "
            f"{before.get(differing)!r}, requested: {about.get(differing)!r}); choose another folder with --out "
            "FOLDER, or remove this one"
        )
    write_json(path, about)
    return about


def _describe(preprocess: Any) -> str:
    """Preprocessing in words that are the same in another process."""
    return (
        repr(preprocess) if is_dataclass(preprocess) else getattr(preprocess, "__qualname__", type(preprocess).__name__)
    )


def _with_sigma(trained: TrainedRun, evaluation: Any) -> Any:
    if getattr(evaluation, "sigma", 0.0) is not None:
        return evaluation
    spread = measure_spread(trained.embed(rows=trained.sample(evaluation.samples)))
    if not spread:
        raise SetsupError(
            f"all embeddings of {trained.name} are equal, so they contain no information; check the weights and the "
            "inputs"
        )
    return replace(evaluation, sigma=NOISE * spread)
