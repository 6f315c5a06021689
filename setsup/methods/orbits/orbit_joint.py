"""The orbit joint loss: embeddings in which an orbit's images are near, and from which its canonical image is decoded.

References
----------
.. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Discriminate-and-rectify encoders: learning from image
   transformation sets", 2017 (arXiv 1703.04775).
.. [2] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample complexity through
   self-supervised visual experience", NeurIPS 2018.
.. [3] A. Dosovitskiy, J. T. Springenberg, M. Riedmiller, T. Brox, "Discriminative unsupervised feature learning with
   convolutional neural networks", NIPS 2014.

"""

from typing import Any, Literal, get_args

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.methods.networks.images import unit_range
from setsup.methods.networks.orbits import OrbitDecoder, OrbitEncoder
from setsup.methods.orbits.groups import OrbitCodes
from setsup.methods.orbits.losses import Negatives, rectification_loss, triplet_loss

__all__ = ["Objective", "OrbitJoint", "Scale"]

Objective = Literal["joint", "triplet", "rectification", "exemplar", "autoencoder"]
Scale = Literal["recmean", "dims", "none"]

_DECODED = ("joint", "rectification", "autoencoder")
_TARGETS = ("joint", "rectification")


class OrbitJoint(LightningModule):
    """An encoder trained on orbits by triplets, by rectification, or by both [1]_ [2]_; and baselines.

    With codes Φ(x), a decoder Φ̃, an orbit's canonical image x_c, k dimensions and d numbers in an image:

    =================  ====  ==================================================================================
    objective          name  minimises
    =================  ====  ==================================================================================
    ``joint``          OJ    the weighted sum of the next two
    ``triplet``        OT    [‖Φ(x) - Φ(x_p)‖² + α - ‖Φ(x) - Φ(x_q)‖²]₊, see :func:`~setsup.methods.triplet_loss`
    ``rectification``  OE    ‖x_c - Φ̃(Φ(x))‖² of every image
    ``exemplar``       EX    cross-entropy of a linear classifier of orbits, a surrogate class each [3]_
    ``autoencoder``    AE    ‖x - Φ̃(Φ(x))‖²
    =================  ====  ==================================================================================

    With the class as orbit, ``triplet`` is the supervised baseline ST.

    Parameters
    ----------
    encoder : OrbitEncoder
        Gives codes.
    orbits : OrbitCodes
        Which images of a batch are of one orbit.
    objective : str
        One of the table.
    decoder : OrbitDecoder, optional
        Of objectives that decode.
    front : nn.Module, optional
        Applied to images before the encoder, such as :class:`~setsup.methods.networks.SpatialTransformer`.
    margin : float
        α, in units of squared distances.
    normalise : bool
        Whether triplets, and :meth:`embed`, have codes scaled to length 1. The decoder takes the code as it is.
    negatives : {"hardest", "random"}
        As for :func:`~setsup.methods.triplet_loss`.
    weights : (float, float)
        λ₁ of triplets and λ₂ of rectification.
    scale : {"recmean", "dims", "none"}
        Divisors of the two terms: 1 and d, k and d, or 1 and 1.
    rate : float
        Learning rate of Adam.

    Raises
    ------
    SetsupError
        When an argument is none of these, or a decoder is missing.

    """

    def __init__(
        self,
        encoder: OrbitEncoder,
        orbits: OrbitCodes,
        objective: Objective = "joint",
        *,
        decoder: OrbitDecoder | None = None,
        front: nn.Module | None = None,
        margin: float = 0.2,
        normalise: bool = True,
        negatives: Negatives = "hardest",
        weights: tuple[float, float] = (1.0, 1.0),
        scale: Scale = "recmean",
        rate: float = 1e-3,
    ) -> None:
        super().__init__()
        if objective not in get_args(Objective):
            raise SetsupError(f"the objective is one of {', '.join(get_args(Objective))}, not {objective!r}")
        if scale not in get_args(Scale):
            raise SetsupError(f"the scale of losses is one of {', '.join(get_args(Scale))}, not {scale!r}")
        if objective in _DECODED and decoder is None:
            raise SetsupError(f"the objective {objective!r} decodes images: pass a decoder")
        self.objective, self.margin, self.normalise = objective, margin, normalise
        self.negatives: Negatives = negatives
        self.weights, self.scale, self.rate = weights, scale, rate
        self.encoder, self.decoder, self.front, self.orbits = encoder, decoder, front, orbits
        self.classifier = nn.Linear(encoder.code.out_features, len(orbits)) if objective == "exemplar" else None

    def embed(self, batch: Batch) -> Tensor:
        """Embeddings of a batch's images, (sets, size, k) float32; of length 1 if `normalise`."""
        code = self._encode(batch["image"])[0].float()
        code = functional.normalize(code, dim=-1) if self.normalise else code
        return code.reshape(*batch["image"].shape[:-3], -1)

    def rectify(self, batch: Batch) -> Tensor:
        """What the decoder gives for each image, (sets, size, C, H, W) float32 in [0, 1].

        Raises
        ------
        SetsupError
            When the objective has no decoder.

        """
        if self.decoder is None:
            raise SetsupError(f"the objective {self.objective!r} trains no decoder: 'joint' and 'rectification' do")
        images = batch["image"]
        rectified: Tensor = self.decoder(self.encoder, *self._encode(images)).float().clamp(0, 1)
        return rectified.reshape(images.shape)

    def loss(self, batch: Batch) -> Tensor:
        """The objective on a batch; terms of ``joint`` are logged.

        Parameters
        ----------
        batch : dict
            ``image`` (sets, size, C, H, W) uint8, or float in [0, 1]; ``mask`` (sets, size) bool; ``factors`` with
            those of orbits; for ``joint`` and ``rectification`` ``canonical_image`` (sets, C, H, W).

        Returns
        -------
        () float32

        Raises
        ------
        SetsupError
            When the batch has no canonical images, and the objective takes some; or an orbit that was not trained on,
            and the objective is ``exemplar``.

        """
        images, mask = batch["image"], batch["mask"].flatten()
        targets = self._targets(batch) if self.objective in _DECODED else None
        code, switches = self._encode(images)
        if self.classifier is not None:
            own = self.orbits.classes(batch).flatten()
            return functional.cross_entropy(self.classifier(code).float(), torch.where(mask, own, -100))
        terms: dict[str, Tensor] = {}
        if self.objective in ("joint", "triplet"):
            points = code.float()
            points = functional.normalize(points, dim=-1) if self.normalise else points
            groups = self.orbits.codes(batch).flatten()
            found = triplet_loss(points, groups, margin=self.margin, negatives=self.negatives, mask=mask)
            terms["triplet"] = found / (code.shape[-1] if self.scale == "dims" else 1)
        if targets is not None and self.decoder is not None:
            rectified = self.decoder(self.encoder, code, switches).float()
            found = rectification_loss(rectified, targets, mask)
            terms["rectification"] = found / (1 if self.scale == "none" else targets[0].numel())
        if self.objective != "joint":
            return next(iter(terms.values()))
        for name, term in terms.items():
            self.log(name, term)
        return self.weights[0] * terms["triplet"] + self.weights[1] * terms["rectification"]

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of a step, logged as ``loss``."""
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        """Adam with a constant rate."""
        return torch.optim.Adam(self.parameters(), self.rate)

    def _encode(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Codes (n, k) of all images, and switches."""
        flat = unit_range(images.reshape(-1, *images.shape[-3:]))
        found: tuple[Tensor, list[Tensor]] = self.encoder(flat if self.front is None else self.front(flat))
        return found

    def _targets(self, batch: Batch) -> Tensor:
        """What the decoder should give for each image, (n, C, H, W) float32."""
        images = batch["image"]
        if self.objective not in _TARGETS:
            return unit_range(images.reshape(-1, *images.shape[-3:]))
        if "canonical_image" not in batch:
            raise SetsupError(
                f"the objective {self.objective!r} decodes the canonical image of each orbit, and these draws have "
                "none: name it, as --canonical 'yaw == 0', or train --method.objective triplet or exemplar"
            )
        targets = unit_range(batch["canonical_image"])[:, None]
        return targets.expand(*images.shape[:2], *targets.shape[2:]).flatten(0, 1)
