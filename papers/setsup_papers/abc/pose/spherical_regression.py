"""Pose by regression: spherical regression of its Euler angles, alone or with ABC as a further loss.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, table 2.

"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from setsup.errors import DataError, SetsupError
from setsup.loading.batch import Batch
from setsup.methods.minimise import log_loss
from setsup_papers.abc.method import ABC
from setsup_papers.abc.pose.angles import AngleTargets, pose_rotation
from setsup_papers.abc.pose.settings import SphericalRegressionSettings
from setsup_papers.abc.pose.spherical import SphericalHead, decode_angles, spherical_losses
from setsup_papers.abc.resnet_v2 import load_trunk

__all__ = ["SphericalRegression"]

_AXES = ("azimuth", "elevation", "theta")
_LEAST = ("azimuth", "elevation")


class SphericalRegression(LightningModule):
    """Regression of an object's azimuth, elevation and possibly theta from an embedding [1]_.

    The loss is a sum over angles of the losses of magnitudes and quadrants,
    :func:`~setsup_papers.abc.pose.spherical_losses`, each a mean over images whose angle is known, and of ABC's
    on the same embeddings, if it has a weight. Images without annotation, such as real ones, are in ABC's loss only.
    Images may come in two augmented copies, which have the same angles.

    Parameters
    ----------
    settings : SphericalRegressionSettings
        Weights of the losses, and ABC's settings, of which the learning rate and its schedule are those of all parts.
    encoder : nn.Module
        As of :class:`~setsup_papers.abc.ABC`.
    head : SphericalHead
        For as many angles as the targets have.
    targets : AngleTargets
        Of factors named ``azimuth``, ``elevation`` and, in the third place if there is one, ``theta``.

    Raises
    ------
    SetsupError
        When an argument or a setting is none of these.

    """

    def __init__(
        self,
        settings: SphericalRegressionSettings,
        encoder: nn.Module,
        head: SphericalHead,
        targets: AngleTargets,
    ) -> None:
        super().__init__()
        if targets.names not in (_AXES, _LEAST):
            raise SetsupError(
                f"angles must be {', '.join(_LEAST)}, and optionally theta, in this order, not "
                f"{', '.join(targets.names)}; rename the factors"
            )
        weights = {"contrast": settings.contrast, "magnitude_weight": settings.magnitude_weight}
        for name, weight in weights.items():
            if not (math.isfinite(weight) and weight >= 0):
                raise SetsupError(f"the weight {name} must be a finite number of at least 0, not {weight}")
        self.settings = settings
        self.abc, self.head, self.targets = ABC(settings, encoder), head, targets

    def embed(self, batch: Batch) -> dict[str, Tensor]:
        """Embeddings and rotations of a batch's images.

        Returns
        -------
        dict of str to Tensor
            ``embedding`` (sets, size, d) float32, and ``rotation`` (sets, size, 9) float32, the rows of each matrix of
            `predict_rotation`.

        """
        embedded = self.abc.embed(batch)
        return {"embedding": embedded, "rotation": self._rotation(embedded).flatten(-2)}

    def predict_rotation(self, batch: Batch) -> Tensor:
        """Rotations of the objects of a batch's images, (sets, size, 3, 3) float32.

        From the axes of the object to those of the camera, as those of
        :func:`setsup_papers.abc.pose.rotation_from_euler`. Where theta is not regressed, it is 0.
        """
        return self._rotation(self.abc.embed(batch))

    def loss(self, batch: Batch) -> Tensor:
        """Losses of angles, and of ABC where it has a weight; its terms are logged.

        Parameters
        ----------
        batch : dict
            ``image`` (sets, size, C, H, W) or (sets, size, 2, C, H, W) uint8, or float in [0, 1]; ``mask`` (sets,
            size) bool; ``factors`` with the angles.

        Returns
        -------
        () float32

        Raises
        ------
        DataError
            When images have neither form, or not that of ABC's objective where it has a weight.

        """
        images, mask = batch["image"], batch["mask"]
        if images.ndim not in (5, 6):
            raise DataError(
                "images must have the shape (sets, size, C, H, W), or (sets, size, 2, C, H, W) for augmented "
                f"copies, not {tuple(images.shape)}"
            )
        embedded = self.abc.embed(batch)
        angles = self.targets.angles(batch).masked_fill(~mask[..., None], torch.nan)
        if images.ndim == 6:
            angles = angles[:, :, None].expand(*images.shape[:3], -1)
        known = (~angles.isnan()).flatten(0, -2).sum(0).clamp(min=1)
        sums = spherical_losses(self.head(embedded), angles, self.settings.magnitude)
        magnitudes, quadrants = ((losses.flatten(0, -2).sum(0) / known).sum() for losses in sums)
        terms = {"magnitude": magnitudes, "quadrant": quadrants}
        loss = self.settings.magnitude_weight * magnitudes + quadrants
        if self.settings.contrast:
            terms["contrast"] = self.abc.compare(embedded, batch)
            loss = loss + self.settings.contrast * terms["contrast"]
        for name, term in terms.items():
            self.log(name, term)
        return loss

    training_step = log_loss

    def configure_optimizers(self) -> Any:
        """Adam for all parts, with the rate and the schedule of ABC."""
        return self.abc.configure_optimizers_for(self.parameters())

    def load_initial(self, weights: Mapping[str, Tensor]) -> None:
        """Start from weights of Keras' ResNet50V2, where the encoder has one, or from all of this method's weights."""
        load_trunk(self, weights)

    def _rotation(self, embedded: Tensor) -> Tensor:
        return pose_rotation(*decode_angles(self.head(embedded)).unbind(-1))
