"""Approximate bijective correspondence (ABC): embeddings of what varies within sets, blind to what sets hold.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240.

"""

# ruff: noqa: E402

from setsup.errors import DataError, SetsupError, require_modules

require_modules("ABC needs", "torch", "lightning")  # before what imports them

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from setsup.checks import check_rates
from setsup.loading.batch import Batch
from setsup.methods.embeddings import check_temperature
from setsup.methods.fused import fuse
from setsup.methods.minimise import log_loss
from setsup.methods.similarity import Similarity, check_similarity
from setsup_papers.abc.losses import augmentation_loss, correspondence_loss, double_augmentation_loss
from setsup_papers.abc.resnet_v2 import load_trunk
from setsup_papers.abc.settings import ABCObjective

__all__ = ["ABC"]

_NEIGHBOURS = ("second", "first")
_OBJECTIVES = {
    "correspondence": "(sets, size, C, H, W) with an even number of sets",
    "double": "(sets, size, 2, C, H, W) with an even number of sets and two copies of each image",
    "augmentation": "(sets, size, 2, C, H, W) with two copies of each image",
}


class ABC(LightningModule):
    """An encoder trained so that the images of two sets find each other by what varies in both [1]_.

    Sets 0 and 1 of a batch are a pair, 2 and 3 the next, and so on; the loss is the mean over pairs. Slots that the
    batch's mask leaves out take no part. It is trained by Adam, whose ε is 1e-7, as in Keras.

    Parameters
    ----------
    settings : ABCObjective
        What is minimised, and how.
    encoder : nn.Module
        (..., C, H, W) uint8 or float in [0, 1] → (..., d) float.
    similarity : str or callable, optional
        As for :func:`~setsup.methods.similarities`, in place of that of the settings.

    Raises
    ------
    SetsupError
        When a setting is none of these.

    Examples
    --------
    >>> from setsup_papers.abc import ABCObjective, mnist_encoder
    >>> method = ABC(ABCObjective(), mnist_encoder(torch.Generator().manual_seed(0)))
    >>> batch = {"image": torch.zeros(2, 64, 1, 28, 28), "mask": torch.ones(2, 64, dtype=torch.bool)}
    >>> method.embed(batch).shape
    torch.Size([2, 64, 8])
    >>> round(method.loss(batch).item(), 3)  # equal images cannot be told apart: 2 ln 64
    8.318

    """

    def __init__(self, settings: ABCObjective, encoder: nn.Module, *, similarity: Similarity | None = None) -> None:
        super().__init__()
        self.settings, self.encoder = settings, encoder
        self.similarity: Similarity = settings.similarity if similarity is None else similarity
        check_similarity(self.similarity)
        check_temperature(settings.temperature)
        objective, neighbours, halve_every = settings.objective, settings.neighbours, settings.halve_every
        if objective not in _OBJECTIVES:
            raise SetsupError(f"objective must be one of {', '.join(_OBJECTIVES)}, not {objective!r}")
        if neighbours not in _NEIGHBOURS:
            raise SetsupError(
                "neighbours must be 'second' or 'first' (the copy from which soft neighbours are computed), not "
                f"{neighbours!r}"
            )
        if halve_every is not None and (type(halve_every) is not int or halve_every < 1):
            raise SetsupError(
                f"halve_every must be 1 or more (steps), or None to never halve the rate, not {halve_every!r}"
            )
        check_rates(rate=settings.rate)

    def embed(self, batch: Batch) -> Tensor:
        """Embeddings of a batch's images, (sets, size, d) float."""
        embedded: Tensor = self.encoder(batch["image"])
        return embedded

    def loss(self, batch: Batch) -> Tensor:
        """The objective on a batch.

        Parameters
        ----------
        batch : dict
            ``image`` (sets, size, C, H, W), or (sets, size, 2, C, H, W) where the objective takes copies, uint8 or
            float in [0, 1]; ``mask`` (sets, size) bool.

        Returns
        -------
        () float32, nats

        Raises
        ------
        DataError
            When sets have one image, or the batch has no pairs of sets, or no copies, and the objective takes some.

        """
        self._need_form(batch)
        return self.compare(self.embed(batch), batch)

    def compare(self, embedded: Tensor, batch: Batch) -> Tensor:
        """Compute the objective from embeddings of a batch.

        Parameters
        ----------
        embedded : (sets, size, d) or (sets, size, 2, d) float
            Of the batch's images, as `embed` gives them.
        batch : dict
            As for `loss`.

        Returns
        -------
        () float32, nats

        Raises
        ------
        DataError
            As `loss` does.

        """
        self._need_form(batch)
        mask = _mask(batch)
        options: dict[str, Any] = {"similarity": self.similarity, "temperature": self.settings.temperature}
        if self.settings.objective == "augmentation":
            return augmentation_loss(embedded[:, :, 0], embedded[:, :, 1], mask=mask, **options)
        if mask is not None:
            options |= {"u_mask": mask[0::2], "v_mask": mask[1::2]}
        u, v = embedded[0::2], embedded[1::2]
        if self.settings.objective == "correspondence":
            return correspondence_loss(u, v, **options)
        copies = (u[:, :, 0], u[:, :, 1]), (v[:, :, 0], v[:, :, 1])
        return double_augmentation_loss(*copies, neighbours=self.settings.neighbours, **options)

    def load_initial(self, weights: Mapping[str, Tensor]) -> None:
        """Start from weights of Keras' ResNet50V2, where the encoder has one, or from all of this method's weights."""
        load_trunk(self, weights)

    def _need_form(self, batch: Batch) -> None:
        objective, images = self.settings.objective, batch["image"]
        copied = objective != "correspondence"
        paired = objective != "augmentation"
        if images.ndim != 5 + copied or (copied and images.shape[2] != 2) or (paired and len(images) % 2):
            raise DataError(
                f"objective {objective!r} requires images of shape {_OBJECTIVES[objective]}, not "
                f"{tuple(images.shape)}; change the sampler and the augmentation, or choose another objective"
            )
        if images.shape[1] < 2:
            raise DataError(
                "sets must contain at least two images, because each image is compared with the others of its "
                "set; draw larger sets, for example with --sampler.size 2"
            )

    training_step = log_loss

    def configure_optimizers(self) -> Any:
        """Adam, with the learning rate halved every `halve_every` steps, if set."""
        return self.configure_optimizers_for(self.parameters())

    def configure_optimizers_for(self, parameters: Iterable[nn.Parameter]) -> Any:
        """The optimiser and its schedule for the parameters of a method that has this one as a part."""
        adam = fuse(torch.optim.Adam(parameters, self.settings.rate, eps=1e-7))
        if self.settings.halve_every is None:
            return adam
        halved = torch.optim.lr_scheduler.StepLR(adam, self.settings.halve_every, gamma=0.5)
        return {"optimizer": adam, "lr_scheduler": {"scheduler": halved, "interval": "step"}}


def _mask(batch: Batch) -> Tensor | None:
    """None where every slot counts, which costs the loss less; known without waiting for a GPU only on the CPU."""
    mask: Tensor = batch["mask"]
    return None if mask.device.type == "cpu" and bool(mask.all()) else mask
