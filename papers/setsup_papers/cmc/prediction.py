"""Prediction of a view from another one: the baseline of contrast between the two [1]_.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), table 4.

"""

from collections.abc import Iterable
from typing import Any, get_args

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn import functional

from setsup.checks import check_choice
from setsup.errors import DataError, SetsupError
from setsup.experiments.optimisation import optimise
from setsup.loading.batch import Batch
from setsup.methods.minimise import log_loss
from setsup_papers.cmc.inputs import view_images
from setsup_papers.cmc.networks.dense_views import ViewDecoder
from setsup_papers.cmc.networks.views import ViewEncoder
from setsup_papers.cmc.settings import CrossViewPredictionSettings, Error

__all__ = ["CrossViewPrediction"]


class CrossViewPrediction(LightningModule):
    """An encoder of one view, and a decoder that predicts another one from its last map [1]_.

    Parameters
    ----------
    settings : CrossViewPredictionSettings
        Which view is predicted from which, and how that is optimised; those of networks are not read.
    encoder : ViewEncoder
        From :func:`~setsup_papers.cmc.nyu_view`. The average of its last map takes the place of its head, which
        nothing would train.
    decoder : ViewDecoder
        With the channels of the target, or as many as there are classes.

    Raises
    ------
    SetsupError
        When the error is none of these.

    Examples
    --------
    >>> from setsup_papers.cmc.networks.dense_views import ViewDecoder, nyu_view
    >>> encoder = nyu_view((1, 64, 64), width=0.125)
    >>> decoder = ViewDecoder(encoder, channels=1, skips=False)
    >>> method = CrossViewPrediction(CrossViewPredictionSettings(target="depth"), encoder, decoder)
    >>> batch = {"L": torch.rand(1, 2, 1, 64, 64), "mask": torch.ones(1, 2).bool()}
    >>> tuple(method.predict(batch).shape)
    (2, 1, 64, 64)

    """

    def __init__(self, settings: CrossViewPredictionSettings, encoder: ViewEncoder, decoder: ViewDecoder) -> None:
        super().__init__()
        check_choice(settings.error, get_args(Error), "the error", SetsupError)
        self.settings = settings
        encoder.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.encoders = nn.ModuleDict({settings.source: encoder})
        self.decoder = decoder

    @property
    def views(self) -> tuple[str, ...]:
        """The view that is encoded."""
        return (self.settings.source,)

    def inputs(self, batch: Batch, views: Iterable[str] | None = None) -> dict[str, Tensor]:
        """The encoded view of a batch, (sets·size, C, h, w) float32."""
        return {view: view_images(batch, view) for view in (self.views if views is None else views)}

    def layers(
        self, batch: Batch, names: Iterable[str] | None = None, views: Iterable[str] | None = None
    ) -> dict[str, dict[str, Tensor]]:
        """Stages of the encoder by view and name, as of :class:`CMC`."""
        wanted = None if names is None else tuple(names)
        encoder: Any = self.encoders[self.settings.source]
        return {view: encoder.layers(images, wanted) for view, images in self.inputs(batch, views).items()}

    def embed(self, batch: Batch) -> dict[str, Tensor]:
        """The average of the encoder's last map, scaled to unit length, (sets, size, d) float32, by the view's name."""
        encoder: Any = self.encoders[self.settings.source]
        source = self.settings.source
        vectors = encoder(self.inputs(batch)[source]).float()
        return {source: functional.normalize(vectors, dim=1).reshape(*batch["mask"].shape, -1)}

    def predict(self, batch: Batch) -> Tensor:
        """The predicted view, or logits of classes, (sets·size, C, h, w) float32."""
        view: Tensor = self.decoder(self.layers(batch, self.decoder.reads)[self.settings.source])
        return view.float()

    def loss(self, batch: Batch) -> Tensor:
        """The mean error over all pixels of images that are not padding.

        Parameters
        ----------
        batch : dict
            With both views, and ``mask`` (sets, size).

        Returns
        -------
        () float32

        Raises
        ------
        DataError
            When the target has another size than the prediction, or labels are not classes of the decoder.

        """
        counts = batch["mask"].flatten()
        predicted = self.predict(batch)[counts]
        wanted = view_images(batch, self.settings.target)[counts]
        if predicted.shape[2:] != wanted.shape[2:] or (
            wanted.shape[1] != (1 if self.settings.error == "cross_entropy" else predicted.shape[1])
        ):
            raise DataError(
                f"{self.settings.target!r} has the shape {tuple(wanted.shape[1:])}, but its prediction has the shape "
                f"{tuple(predicted.shape[1:])}"
            )
        if self.settings.error == "l1":
            return functional.l1_loss(predicted, wanted)
        if self.settings.error == "l2":
            return functional.mse_loss(predicted, wanted)
        return self._cross_entropy(predicted, wanted[:, 0].long())

    def _cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        largest = int(labels.max())
        if largest >= logits.shape[1]:
            raise DataError(
                f"{self.settings.target!r} contains the label {largest}, but the decoder predicts {logits.shape[1]} "
                f"classes; labels must be below {logits.shape[1]}"
            )
        labels = torch.where((labels == self.settings.unlabelled) | (labels < 0), -100, labels)
        # the mean over labelled pixels; a batch without any has no error
        return functional.cross_entropy(logits, labels, reduction="sum") / (labels >= 0).sum().clamp_min(1)

    training_step = log_loss

    def configure_optimizers(self) -> Any:
        """The optimiser and schedule of the settings."""
        steps = int(self.trainer.estimated_stepping_batches)
        return optimise(self.parameters(), self.settings.optimiser, self.settings.schedule, steps=steps)
