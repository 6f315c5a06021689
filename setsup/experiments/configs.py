"""The parts of a preset that are settings of a user's own kind, and what is built from them.

Any frozen dataclass with the one method ``build`` will do.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, Self

from setsup.errors import SetsupError, abbreviate
from setsup.random import stream_key

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule

    from setsup.datasets import Dataset
    from setsup.factors import FactorTable
    from setsup.loading.batch import Batch, Transform
    from setsup.samplers import Sampler

__all__ = [
    "Augmentation",
    "ImageSettings",
    "MethodConfig",
    "SamplerConfig",
    "build_eval_transform",
    "build_method",
    "build_transform",
    "fit_to_batch",
    "fit_to_dataset",
    "import_method",
]


class SamplerConfig(Protocol):
    """Settings of a sampler.

    They may have a second method, ``fit_to(dataset)``, which returns the same settings completed from the data of the
    training, such as the digest of a file that the sampler reads. The completed settings are those of the run: it does
    not resume where the data would complete them otherwise.
    """

    def build(self, dataset: "Dataset", seed: int) -> "Sampler":
        """Build the sampler of a run, for the table of its dataset, ``dataset.factors``."""


class MethodConfig(Protocol):
    """Settings of a method, including its networks.

    They may have a second method, ``fit_to(batch)``, which returns the same settings completed from the data, such as
    ``replace(self, image=self.image or tuple(batch["image"].shape[-3:]))`` where None stands for the shape of the
    training's images; :class:`ImageSettings` has both. The batch is the first of the training, after the augmentation,
    of the shrunk sampler where it has ``shrunk()``. The completed settings build the method, and are those of the run:
    it is opened without its data. A run whose settings were completed does not differ from a preset that leaves them to
    the data.
    """

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run, a ``LightningModule`` with ``embed(batch)``, as :func:`embed` describes it.

        The table is that of the training data, for counts of classes, rows or groups; indices of batches are its rows,
        also where other selections of these data are embedded later, and -1 for images of other data. Initial weights
        come from the generator, or from torch's global one: the seed of the run determines both.
        What a step logs is averaged over devices: all of them log the same names, in the same order.
        Before a run starts, the first draw (of the shrunk sampler, where it has ``shrunk()``) is passed to
        ``loss(batch)`` if the method has one, or embedded: a SetsupError raised there stops the run before its folder
        is created.
        """


def fit_to_batch(config: MethodConfig, batch: "Batch") -> MethodConfig:
    """Settings completed from a batch, where they have ``fit_to``."""
    fit_to = getattr(config, "fit_to", None)
    if not callable(fit_to):
        return config
    fitted: MethodConfig = fit_to(batch)
    if type(fitted) is not type(config):
        raise SetsupError(
            f"{type(config).__name__}.fit_to must return an instance of the same class, for example from "
            f"dataclasses.replace, not {abbreviate(fitted)}"
        )
    return fitted


def fit_to_dataset(config: SamplerConfig, dataset: "Dataset") -> SamplerConfig:
    """Settings of a sampler completed from the data, where they have ``fit_to``."""
    fit_to = getattr(config, "fit_to", None)
    if not callable(fit_to):
        return config
    fitted: SamplerConfig = fit_to(dataset)
    return fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSettings:
    """Settings of a method whose networks are made for images of one shape: the base of settings with others.

    Attributes
    ----------
    image : (int, int, int), optional
        Channels, height and width of images; by default those of the data.

    """

    image: tuple[int, int, int] | None = None

    def fit_to(self, batch: "Batch") -> Self:
        """Return settings for images of the size of a batch; SetsupError if another size is set."""
        channels, height, width = map(int, batch["image"].shape[-3:])
        if self.image is None:
            return replace(self, image=(channels, height, width))
        if tuple(self.image) != (channels, height, width):
            set_to = " × ".join(map(str, self.image))
            raise SetsupError(
                f"the setting image is {set_to}, but the images of the first draw are {channels} × {height} × "
                f"{width} (channels × height × width); omit the setting to use the size of the data, or resize "
                "the images"
            )
        return self


def import_method(path: str) -> Callable[..., "LightningModule"]:
    """Import a method by its module and class, such as ``setsup_papers.abc.method:ABC``.

    Settings import the method that they build so, when they build it: its module needs torch, and imports them.
    """
    module, _, name = path.partition(":")
    method: Callable[..., LightningModule] = getattr(import_module(module), name)
    return method


class Augmentation(Protocol):
    """Settings of a transform of batches."""

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run, as ``transform=`` of :func:`setsup.loader` takes it.

        The dataset is what batches are drawn from: that of the training, or what is embedded.
        """


def build_method(config: MethodConfig, table: "FactorTable", seed: int) -> "LightningModule":
    """Build the untrained method of a seed, for the factors of the training data."""
    import torch

    key = stream_key(seed, "weights")
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(key)  # for layers that are made without the generator
        method = config.build(table, torch.Generator().manual_seed(key))
    if not callable(getattr(method, "embed", None)):
        raise SetsupError(
            f"{type(method).__name__} has no embed(batch); define one that returns embeddings of shape (sets, size, …)"
        )
    return method


def build_transform(augmentation: str | Augmentation | None, dataset: "Dataset", seed: int) -> "Transform | None":
    """Build the transform of training batches, of a recipe where it is named."""
    if isinstance(augmentation, str):
        from setsup.methods.recipes import recipe

        return recipe(augmentation, seed=seed)
    return None if augmentation is None else augmentation.build(dataset, seed)


def build_eval_transform(
    eval_transform: str | Augmentation | None,
    augmentation: str | Augmentation | None,
    dataset: "Dataset",
    seed: int,
) -> "Transform | None":
    """Build the transform of batches of a dataset that are embedded; by default the recipe of the augmentation."""
    config = augmentation if eval_transform is None else eval_transform
    if isinstance(config, str):
        from setsup.methods.recipes import evaluation_transform

        return evaluation_transform(config)
    return None if eval_transform is None or config is None else config.build(dataset, seed)
