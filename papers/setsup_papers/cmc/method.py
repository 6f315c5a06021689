"""Contrastive multiview coding: encoders of views whose features of one image are alike [1]_.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), and its published code.

"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import SetsupError
from setsup.experiments.optimisation import optimise
from setsup.loading.batch import Batch
from setsup.methods.minimise import log_loss
from setsup_papers.cmc.banks import BankContrast
from setsup_papers.cmc.inputs import check_names, group_numbers, view_images
from setsup_papers.cmc.networks.views import OUT, ViewEncoder
from setsup_papers.cmc.settings import CMCSettings
from setsup_papers.cmc.within_batch import BatchContrast, PatchContrast

__all__ = ["ALL", "CMC"]

ALL = "all"
"""Name of the embedding that concatenates those of all views."""


class CMC(LightningModule):
    """One encoder per view, trained by a contrast of pairs of views [1]_; each encoder runs once a step.

    Parameters
    ----------
    settings : CMCSettings
        Which stage a :class:`PatchContrast` reads, which images are kept apart, and how weights are optimised; those of
        networks and of the contrast are not read.
    encoders : mapping of str to ViewEncoder
        By view, that is by modality of the batch. Views may have one encoder in common.
    contrast : BankContrast, BatchContrast or PatchContrast
        What is compared with what; the loss is the sum over its pairs, in both directions.

    Raises
    ------
    SetsupError
        When a view is named ``all``, or as torch cannot name a module.

    Examples
    --------
    >>> from setsup_papers.cmc.networks.views import small_view
    >>> from setsup_papers.cmc.within_batch import BatchContrast
    >>> from setsup_papers.cmc.inputs import pair_views
    >>> settings = CMCSettings(objective="in_batch")
    >>> encoders = {"L": small_view((1, 32, 32)), "ab": small_view((2, 32, 32))}
    >>> method = CMC(settings, encoders, BatchContrast(pair_views(settings.views)))
    >>> batch = {"L": torch.rand(1, 4, 1, 32, 32), "ab": torch.rand(1, 4, 2, 32, 32), "mask": torch.ones(1, 4).bool()}
    >>> {name: tuple(found.shape) for name, found in method.embed(batch).items()}
    {'L': (1, 4, 64), 'ab': (1, 4, 64), 'all': (1, 4, 128)}

    """

    def __init__(
        self,
        settings: CMCSettings,
        encoders: Mapping[str, ViewEncoder],
        contrast: BankContrast | BatchContrast | PatchContrast,
    ) -> None:
        super().__init__()
        if ALL in encoders:
            raise SetsupError(
                f"{ALL!r} cannot be the name of a view, because it is the name of the embedding that concatenates all "
                "views; rename the view"
            )
        check_names(encoders)
        self.settings = settings
        # the memory layout in which convolutions and pools are fastest on a CPU
        self.encoders = nn.ModuleDict(
            {view: encoder.to(memory_format=torch.channels_last) for view, encoder in encoders.items()}  # type: ignore[call-overload]
        )
        self.contrast = contrast

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views, in order."""
        return tuple(self.encoders)

    def inputs(self, batch: Batch, views: Iterable[str] | None = None) -> dict[str, Tensor]:
        """Views of a batch as encoders read them, (sets·size, C, h, w) float32; by default all.

        Raises
        ------
        SetsupError
            When the batch has no such view.

        """
        return {view: view_images(batch, view) for view in (self.views if views is None else views)}

    def layers(
        self, batch: Batch, names: Iterable[str] | None = None, views: Iterable[str] | None = None
    ) -> dict[str, dict[str, Tensor]]:
        """Stages of encoders by view and name, (sets·size, …) float, see :meth:`ViewEncoder.layers`; by default all."""
        wanted = None if names is None else tuple(names)
        return {view: self._encoder(view).layers(images, wanted) for view, images in self.inputs(batch, views).items()}

    def embed(self, batch: Batch) -> dict[str, Tensor]:
        """Features of unit length of all views that the batch has, (sets, size, d) float32, and ``all`` of them in one.

        Raises
        ------
        SetsupError
            When the batch has none of the views.

        """
        present = [view for view in self.views if view in batch] or self.views
        features = {view: _unit(self._encoder(view)(images)) for view, images in self.inputs(batch, present).items()}
        features[ALL] = torch.cat(list(features.values()), 1)
        return {name: vectors.reshape(*batch["mask"].shape, -1) for name, vectors in features.items()}

    def loss(self, batch: Batch) -> Tensor:
        """The sum over pairs of views, in both directions; that of each is logged as ``anchor_other``.

        In training mode memory banks are updated.

        Parameters
        ----------
        batch : dict
            With a modality for each view, ``indices`` and ``mask`` (sets, size), and ``factors``.

        Returns
        -------
        () float32

        Raises
        ------
        SetsupError
            When the batch lacks a view, or has one image in training; or the stage of patches has no places.

        """
        counts = batch["mask"].flatten()
        rows, groups = batch["indices"].flatten(), group_numbers(batch, self.settings.apart)
        views = self.inputs(batch)
        if not bool(counts.all()):  # padding is no image: neither a negative, nor part of statistics
            rows, groups = rows[counts], None if groups is None else groups[counts]
            views = {view: images[counts] for view, images in views.items()}
        if len(rows) < 2 and self.training and self._needs_others():
            raise SetsupError(
                "a step requires at least two images, to compare images and to normalise features; draw more "
                "with --sampler.size"
            )
        wanted = [OUT, self.settings.patch_layer] if isinstance(self.contrast, PatchContrast) else [OUT]
        layers = {view: self._encoder(view).layers(images, wanted) for view, images in views.items()}
        losses = self._compare(layers, rows, groups)
        for (anchor, other), loss in losses.items():
            self.log(f"{anchor}_{other}", loss)
        return torch.stack(list(losses.values())).sum()

    training_step = log_loss

    def configure_optimizers(self) -> Any:
        """The optimiser and schedule of the settings."""
        steps = int(self.trainer.estimated_stepping_batches)
        return optimise(self.parameters(), self.settings.optimiser, self.settings.schedule, steps=steps)

    def _compare(
        self, layers: Mapping[str, Mapping[str, Tensor]], rows: Tensor, groups: Tensor | None
    ) -> dict[tuple[str, str], Tensor]:
        contrast: Any = self.contrast
        if isinstance(contrast, PatchContrast):
            stage = self.settings.patch_layer
            maps = {view: outputs[stage].float() for view, outputs in layers.items()}
            if flat := [view for view, values in maps.items() if values.ndim != 4]:
                raise SetsupError(
                    f"patches require a feature map, but the stage {stage!r} returns {flat[0]!r} vectors; choose "
                    "a convolution with --method.patch-layer"
                )
            losses = contrast({view: outputs[OUT].float() for view, outputs in layers.items()}, maps, groups)
        else:
            features = {view: _unit(outputs[OUT]) for view, outputs in layers.items()}
            losses = contrast(features, rows if isinstance(contrast, BankContrast) else groups)
        return losses  # type: ignore[no-any-return]

    def _needs_others(self) -> bool:
        """Whether a step needs several images: for negatives of its own, or for statistics of batch normalisation."""
        normalised = any(isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d) for layer in self.encoders.modules())
        return normalised or not isinstance(self.contrast, BankContrast)

    def _encoder(self, view: str) -> Any:
        return self.encoders[view]


def _unit(features: Tensor) -> Tensor:
    """Features (n, d) of length 1, float32."""
    return functional.normalize(features.float(), dim=1)
