"""One batch through ``embed`` of a method: what it gives is checked, and errors name the method."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from setsup.errors import SetsupError, advice, did_you_mean
from setsup.methods.rows import UnseenRows

__all__ = ["ALL", "check_embedded", "choose_embedding", "embed_batch", "evaluation_mode", "need_no_lookup"]

ALL = "all"
"""The embedding that is meant where a method gives several and none is named: the others side by side."""

_NAME = re.compile(r"\w[\w.-]*")


def embed_batch(method: Any, batch: Mapping[str, Any]) -> dict[str | None, Tensor]:
    """What a method gives for a batch: (sets, size, …) tensors by name, None for one without."""
    with _explained(method, batch):
        given = method.embed(batch)
    return check_embedded(method, batch, given)


def check_embedded(method: Any, batch: Mapping[str, Any], given: Any) -> dict[str | None, Tensor]:
    """What a method gave for a batch, by name; SetsupError unless it has a form that evaluations know."""
    embeddings = dict(given) if isinstance(given, Mapping) else {None: given}
    who, images = f"{type(method).__name__}.embed", tuple(batch["mask"].shape)
    form = "a tensor (sets, size, …) with a vector or a map per image, or a mapping of names to such tensors"
    if not embeddings:
        raise SetsupError(f"{who} must return {form}, not an empty mapping")
    for name, embedding in embeddings.items():
        if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise SetsupError(
                f"{who} returned an embedding named {name!r}; a name may contain only letters, digits, _, - and ."
            )
        form_given = f"{tuple(embedding.shape)}" if isinstance(embedding, Tensor) else type(embedding).__name__
        if not isinstance(embedding, Tensor) or embedding.ndim < 3 or tuple(embedding.shape[:2]) != images:
            named = "" if name is None else f" as {name!r}"
            raise SetsupError(
                f"{who} must return {form}, not {form_given}{named} for a batch of {images[0]} × {images[1]} images "
                "(sets × size)"
            )
    return embeddings


def choose_embedding(method: Any, name: str | None, found: Mapping[str | None, Any]) -> str | None:
    """Which of the embeddings that a method gives is meant; SetsupError where that is none, or unclear."""
    gives = f"{type(method).__name__}.embed returns"
    if name is None and len(found) > 1:
        if ALL in found:
            return ALL
        listed = ", ".join(map(str, found))
        options = "--embedding, --validation.embedding or --EVALUATION.embedding"
        raise SetsupError(
            f"{gives} several embeddings ({listed}); choose one with {advice('embedding= or name=', options)}"
        )
    if name is not None and name not in found:
        if None in found:
            raise SetsupError(f"{gives} one unnamed embedding, so {name!r} cannot be chosen; omit the name")
        raise SetsupError(f"{gives} no embedding named {name!r}{did_you_mean(name, found)}")
    return next(iter(found)) if name is None else name


def need_no_lookup(method: Any, batch: Mapping[str, Any], embedded: Mapping[str | None, Tensor]) -> None:
    """Raise SetsupError if embeddings of rows -1, images of other data, depend on the number: an array was looked up.

    -1 would be its last row. Another negative number gives the same if a method handles negative rows.
    """
    indices = batch["indices"]
    others = -2 - torch.arange(indices.numel(), device=indices.device).view(indices.shape) % 2
    changed = {**batch, "indices": torch.where(indices < 0, others, indices)}
    if not _same(embed_batch(method, changed), embedded) and _same(embed_batch(method, batch), embedded):
        raise _lookup(method)


def _same(parts: Mapping[str | None, Tensor], other: Mapping[str | None, Tensor]) -> bool:
    return all(torch.allclose(parts[name].float(), other[name].float(), 1e-3, 1e-5, equal_nan=True) for name in other)


def _lookup(method: Any) -> SetsupError:
    return SetsupError(
        f"{type(method).__name__}.embed looks up batch['indices'], which are -1 for images outside its training "
        "data; embed rows of the training data, or embed from the images alone where indices are negative"
    )


@contextmanager
def _explained(method: Any, batch: Mapping[str, Any]) -> Iterator[None]:
    """Raise SetsupError where a method asks a batch for what it does not have: a key, or a row of the training data."""
    try:
        yield
    except UnseenRows as error:
        raise UnseenRows(f"{type(method).__name__} has {error}; embed rows of its training data") from error
    except KeyError as error:
        (name,) = error.args[:1] or (None,)
        if not isinstance(name, str) or name in batch:
            raise
        raise SetsupError(
            f"{type(method).__name__}.embed reads {name!r}, but evaluation batches contain only {', '.join(batch)}; "
            f"set the preset's eval_transform to a transform that adds {name!r} without randomness"
        ) from error
    except (IndexError, RuntimeError) as error:
        if "index" not in str(error).lower() or not (batch["indices"] < 0).any():
            raise
        raise _lookup(method) from error


@contextmanager
def evaluation_mode(method: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; each part returns to its own mode."""
    before = [(part, part.training) for part in method.modules()]
    method.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode
