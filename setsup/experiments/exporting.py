"""Trained methods as files that need no setsup: a program of ``torch.export``, or plain weights."""

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from setsup.checks import check_arguments
from setsup.errors import SetsupError, require_modules
from setsup.experiments.embedding_batch import embed_batch
from setsup.experiments.runs.run import Run
from setsup.experiments.trained_run import TrainedRun
from setsup.experiments.weights import load_trained
from setsup.files.atomic import written
from setsup.files.disk import need_writable
from setsup.loading import Loader
from setsup.samplers import EpochSampler

__all__ = ["Exported", "export"]

_SUFFIXES = (".pt2", ".pt", ".safetensors")
_SIZES = (3, 1, 5)
"""Batch sizes: the first one is traced, and the program is checked with all."""
_NO_INPUTS = ("indices", "mask", "canonical")
_ABOUT = "setsup.json"

Exported = dict[str, Any]
"""What a file holds, as JSON: the run, and for a program its ``inputs`` and ``outputs``."""


def export(run: Run, path: Path | str, *, root: Path | str | None = None) -> Exported:
    """Write the trained method of a run to a file that can be used without setsup.

    Parameters
    ----------
    run : Run
        Trained, at least in part.
    path : Path or str
        With the suffix ``.pt2``, a program of :func:`torch.export.export`: ``torch.export.load(path).module()`` takes
        what the method's ``embed`` reads of a batch after the evaluation transform, in most cases images (n, C, H, W),
        for any n ≥ 1, and returns what ``embed`` returns, (n, d), or a tuple or dict of these. It computes in float32
        on a CPU. With ``.pt`` or ``.safetensors``, the weights of the method by name.
    root : Path or str, optional
        Folder of the published files, of which a program is traced on a few rows.

    Returns
    -------
    dict
        What the file holds: ``preset``, ``seed``, ``steps``, and of a program ``inputs`` and ``outputs``, each with
        ``name``, ``shape`` (``"n"`` for the batch) and ``dtype``. A ``.pt2`` has this as ``setsup.json`` among its
        extra files.

    Raises
    ------
    SetsupError
        When the method cannot be traced, reads more than images, or the suffix is another one.
    DataError
        When the run has no checkpoint, data are missing, or the file cannot be written.

    """
    check_arguments(export, locals())
    path = Path(path)
    if path.suffix not in _SUFFIXES:
        raise SetsupError(f"the suffix of {path} must be .pt2 for a program, or .pt or .safetensors for weights")
    if path.suffix == ".safetensors":
        require_modules("writing .safetensors needs", "safetensors")
    if run.preset.method is None:
        raise SetsupError(
            f"{run.preset.name} trains nothing, so there is no method to export; choose a run whose preset has a method"
        )
    need_writable(path)
    trained = load_trained(run, root=root, device="cpu")
    about: Exported = {"preset": run.preset.name, "seed": run.seed, "steps": run.progress().steps}
    if path.suffix == ".pt2":
        return _write_program(trained, path, about)
    weights = {name: value.detach().clone().contiguous() for name, value in trained.method.state_dict().items()}
    with written(path) as part:
        if path.suffix == ".pt":
            with part.open("wb") as file:  # of a path torch does not say that the disk is full
                torch.save(weights, file)
        else:
            from safetensors.torch import save

            part.write_bytes(save(weights, {name: str(value) for name, value in about.items()}))
    return about


class _Embedder(nn.Module):
    """What a method embeds, as a function of a batch of tensors (n, …) without sets."""

    def __init__(self, method: Any, names: tuple[str, ...]) -> None:
        super().__init__()
        self.method, self.names = method, names

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Embed one set of n images."""
        batch: dict[str, Any] = {name: tensor[None] for name, tensor in zip(self.names, tensors, strict=True)}
        batch["mask"] = torch.ones((1, tensors[0].shape[0]), dtype=torch.bool)
        return _of_first_set(self.method.embed(batch))


def _of_first_set(embedded: Any) -> Any:
    """Embeddings of the images of one set; of several names or parts, all of them."""
    if isinstance(embedded, torch.Tensor):
        return embedded[0]
    if isinstance(embedded, Mapping):
        return {name: _of_first_set(part) for name, part in embedded.items()}
    return tuple(_of_first_set(part) for part in embedded)


class _Recorded(dict[str, Any]):
    """A batch that records which of its keys are read."""

    def __init__(self, batch: Mapping[str, Any]) -> None:
        super().__init__(batch)
        self.read: list[str] = []

    def __getitem__(self, name: str) -> Any:
        if name not in self.read:
            self.read.append(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Record an optional key only where it is there."""
        return self[name] if name in self else default


def _write_program(trained: TrainedRun, path: Path, about: Exported) -> Exported:
    method = type(trained.method).__name__
    batch = _example(trained)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch.export, about itself
        names = _inputs(trained, batch)
        examples = [tuple(batch[name][0, :size] for name in names) for size in _SIZES]
        embedder = _Embedder(trained.method, names).eval().requires_grad_(False)
        try:
            expected = [embedder(*example) for example in examples]
            count = torch.export.Dim("n", min=1)
            program = torch.export.export(embedder, examples[0], dynamic_shapes=(({0: count},) * len(names),))
            outputs = [program.module()(*example) for example in examples]
        except Exception as error:
            reason = " ".join((str(error).strip() or type(error).__name__).partition("\n")[0].split())
            raise SetsupError(
                f"torch.export could not export {method}.embed ({reason}); export its weights instead, for example to "
                f"{path.stem}.pt"
            ) from error
        for output, other in zip(outputs, expected, strict=True):
            if not _equal(dict(_named(output)), dict(_named(other))):
                raise SetsupError(
                    f"the exported program and {method}.embed return different values, perhaps because embed depends "
                    f"on more than its images; export the weights instead, for example to {path.stem}.pt"
                )
        about["inputs"] = [_describe(name, tensor) for name, tensor in zip(names, examples[0], strict=True)]
        about["outputs"] = [_describe(name, tensor) for name, tensor in _named(expected[0])]
        with written(path) as part:
            with part.open("wb") as file:
                torch.export.save(program, file, extra_files={_ABOUT: json.dumps(about)})
    return about


def _example(trained: TrainedRun) -> dict[str, Any]:
    """One set of images, as evaluations embed it; rows repeat in small data."""
    sampler = EpochSampler(trained.dataset.factors, max(_SIZES), partial="pad", seed=trained.seed)
    options = trained.embedding(trained.dataset)
    given = {name: options[name] for name in ("modalities", "transform")}
    return dict(next(iter(Loader(trained.dataset, sampler, workers=0, **given))))


def _inputs(trained: TrainedRun, batch: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the tensors of a batch that a method embeds."""
    method: Any = trained.method
    recorded = _Recorded(batch)
    embed_batch(method, recorded)
    tensors = {name for name, value in batch.items() if isinstance(value, torch.Tensor) and name not in _NO_INPUTS}
    read = [name for name in recorded.read if name != "mask"]
    if other := [name for name in read if name not in tensors]:
        raise SetsupError(
            f"{type(method).__name__}.embed reads {other[0]!r} from the batch, but an exported program receives "
            "images only; export the weights instead, for example to weights.pt"
        )
    return tuple(read) or tuple(name for name in batch if name in tensors)


def _named(output: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors of an output by name: ``""`` of a single one, ``0``, ``1`` of a tuple, the keys of a dict."""
    if isinstance(output, torch.Tensor):
        yield name, output
        return
    parts = output.items() if isinstance(output, Mapping) else enumerate(output)
    for key, part in parts:
        yield from _named(part, f"{name}.{key}" if name else str(key))


def _equal(outputs: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> bool:
    """Whether outputs are equal but for rounding."""
    return outputs.keys() == expected.keys() and all(
        outputs[name].shape == expected[name].shape
        and torch.allclose(outputs[name], expected[name], 1e-4, 1e-5, equal_nan=True)
        for name in outputs
    )


def _describe(name: str, tensor: torch.Tensor) -> dict[str, Any]:
    return {"name": name, "shape": ["n", *tensor.shape[1:]], "dtype": str(tensor.dtype).removeprefix("torch.")}
