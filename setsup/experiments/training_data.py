"""The data of a training, opened, with the settings that make batches of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from setsup.experiments.configs import Augmentation, SamplerConfig, build_transform

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.loading.batch import Transform
    from setsup.samplers import Sampler

__all__ = ["TrainingData"]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """What a run trains on.

    Attributes
    ----------
    dataset : Dataset
        What is drawn from.
    sampler : SamplerConfig
        Settings of what draws.
    augmentation : str or Augmentation, optional
        Of the preset.
    modalities : tuple of str, optional
        Modalities in a batch; by default all of the dataset.
    seed : int
        Of the run.

    """

    dataset: "Dataset"
    sampler: SamplerConfig
    augmentation: str | Augmentation | None
    modalities: tuple[str, ...] | None
    seed: int

    def build_sampler(self) -> "Sampler":
        """Build the sampler."""
        return self.sampler.build(self.dataset, self.seed)

    def build_transform(self) -> "Transform | None":
        """Build the transform of batches; None without an augmentation."""
        return build_transform(self.augmentation, self.dataset, self.seed)
