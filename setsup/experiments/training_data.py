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
    """What a preset trains on with a seed: batches have these `modalities`, None for all of the dataset."""

    dataset: "Dataset"
    sampler: SamplerConfig
    augmentation: str | Augmentation | None
    modalities: tuple[str, ...] | None
    seed: int

    def build_sampler(self) -> "Sampler":
        """Build what draws."""
        return self.sampler.build(self.dataset, self.seed)

    def build_transform(self) -> "Transform | None":
        """Build what is applied to batches."""
        return build_transform(self.augmentation, self.dataset, self.seed)
