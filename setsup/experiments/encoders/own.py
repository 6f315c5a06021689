"""Encoders that a function in a file of the user's own returns."""

from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb
from typing import Any

import torch
from torch import Tensor, nn

from setsup.errors import SetsupError, did_you_mean
from setsup.experiments.encoders.preprocessing import unit_rgb
from setsup.experiments.preset_registry import import_file
from setsup.experiments.result_cache import digest_weights
from setsup.files import content_digest

__all__ = ["own_encoder"]


def own_encoder(path: Path, function: str, seed: int) -> tuple[nn.Module, Callable[[Tensor], Any], str]:
    """Network and preprocessing that a function returns, and digests of its file and of the network's state.

    A network that is returned alone reads floats in [0, 1]. torch's random numbers are seeded while the function runs.
    """
    module = import_file(path)
    build = getattr(module, function, None)
    if not callable(build):
        functions = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise SetsupError(f"{path} has no function {function!r}{did_you_mean(function, functions)}")
    where = f"{path}:{function}"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        built = _explained(where, path, build)
    network, preprocess = built if isinstance(built, tuple) and len(built) == 2 else (built, None)
    if not isinstance(network, nn.Module) or not (preprocess is None or callable(preprocess)):
        raise SetsupError(
            f"{where} must return a torch.nn.Module, or (module, preprocess), not {type(built).__name__!r}"
        )
    own = _Own(network, where, path)
    weights = (
        f"state sha256 {digest_weights(network.state_dict())}, {path.name} sha256 {content_digest(path, 'sha256')}"
    )
    if preprocess is None:
        return own, unit_rgb, weights
    prepare: Callable[[Tensor], Any] = preprocess
    return own, lambda images: _explained(f"the preprocessing of {where}", path, prepare, unit_rgb(images)), weights


class _Own(nn.Module):
    """The user's network; its errors become one sentence."""

    def __init__(self, network: nn.Module, where: str, path: Path) -> None:
        super().__init__()
        self.network, self._where, self._path = network, where, path

    def forward(self, images: Any) -> Any:
        return _explained(f"the network of {self._where}", self._path, self.network, images)


def _explained(who: str, path: Path, function: Callable[..., Any], *given: Any) -> Any:
    """Call a function of the user's; SetsupError names the line of the file that fails."""
    try:
        return function(*given)
    except (SetsupError, MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:
        here = str(path.resolve())
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == here]
        line = f" in line {lines[-1]}" if lines else ""
        reason = str(error).strip().partition("\n")[0]
        raise SetsupError(f"{who} failed{line} with {type(error).__name__}: {reason}") from error
