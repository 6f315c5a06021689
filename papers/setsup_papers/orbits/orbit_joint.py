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

from typing import Any, get_args

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn import functional

from setsup.checks import check_number, check_rates
from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.methods.fused import fuse
from setsup.methods.groups import GroupCodes, need_members
from setsup.methods.minimise import log_loss
from setsup.methods.networks.images import unit_range
from setsup_papers.orbits.losses import rectification_loss, triplet_loss
from setsup_papers.orbits.networks import OrbitDecoder, OrbitEncoder
from setsup_papers.orbits.settings import DECODED, Objective, OrbitJointSettings, Scale

__all__ = ["OrbitJoint"]

_RECTIFIED = ("joint", "rectification")
_MINED = ("joint", "triplet")


class OrbitJoint(LightningModule):
    """An encoder trained on orbits by triplets, by rectification, or by both [1]_, [2]_; and baselines.

    With codes Φ(x), a decoder Φ̃, an orbit's canonical image x_c, k dimensions and d numbers in an image:

    =================  ====  ==================================================================================
    objective          name  minimises
    =================  ====  ==================================================================================
    ``joint``          OJ    the weighted sum of the next two
    ``triplet``        OT    [‖Φ(x) - Φ(x_p)‖² + α - ‖Φ(x) - Φ(x_q)‖²]₊, see :func:`~setsup_papers.orbits.triplet_loss`
    ``rectification``  OE    ‖x_c - Φ̃(Φ(x))‖² of every image
    ``exemplar``       EX    cross-entropy of a linear classifier of orbits, a surrogate class each [3]_
    ``autoencoder``    AE    ‖x - Φ̃(Φ(x))‖²
    =================  ====  ==================================================================================

    With the class as orbit, ``triplet`` is the supervised baseline ST.

    Parameters
    ----------
    settings : OrbitJointSettings
        What is minimised, and how; those of networks are not read.
    encoder : OrbitEncoder
        Gives codes.
    orbits : GroupCodes
        Which images of a batch are of one orbit.
    decoder : OrbitDecoder, optional
        Of objectives that decode.
    front : nn.Module, optional
        Applied to images before the encoder, such as :class:`~setsup_papers.orbits.SpatialTransformer`.

    Raises
    ------
    SetsupError
        When an argument is none of these, a decoder is missing, or the objective takes triplets, and there are none.

    """

    def __init__(
        self,
        settings: OrbitJointSettings,
        encoder: OrbitEncoder,
        orbits: GroupCodes,
        *,
        decoder: OrbitDecoder | None = None,
        front: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings
        objective = settings.objective
        if objective not in get_args(Objective):
            raise SetsupError(f"objective must be one of {', '.join(get_args(Objective))}, not {objective!r}")
        if settings.scale not in get_args(Scale):
            raise SetsupError(f"scale must be one of {', '.join(get_args(Scale))}, not {settings.scale!r}")
        if objective in DECODED and decoder is None:
            raise SetsupError(f"objective {objective!r} decodes images and requires a decoder; pass a decoder")
        if objective in _MINED and (len(orbits) < 2 or orbits.largest < 2):
            images = f"{orbits.largest:,} image{'s' * (orbits.largest != 1)}"
            raise SetsupError(
                f"a triplet requires two images of one orbit and one of another, but {', '.join(orbits.factors)} "
                f"forms {len(orbits):,} orbits of at most {images}; choose other factors with --orbit, or train with "
                "--method.objective exemplar, or with rectification to canonical images"
            )
        check_number(settings.margin, "the margin of triplets", SetsupError, 0)
        check_rates(rate=settings.rate)
        self.encoder, self.decoder, self.front, self.orbits = encoder, decoder, front, orbits
        self.classifier: Any = nn.Linear(encoder.code.out_features, len(orbits)) if objective == "exemplar" else None

    def embed(self, batch: Batch) -> Tensor:
        """Embeddings of a batch's images, (sets, size, k) float32; of length 1 if settings say ``normalise``."""
        return self._points(self._encode(batch["image"])[0]).reshape(*batch["image"].shape[:-3], -1)

    def rectify(self, batch: Batch) -> Tensor:
        """Decode each image, (sets, size, C, H, W) float32 in [0, 1].

        Of an ``autoencoder`` that is the image itself, and not the canonical one.

        Raises
        ------
        SetsupError
            When the objective has no decoder.

        """
        images = batch["image"]
        return self._decode(*self._encode(images)).clamp(0, 1).reshape(images.shape)

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
            When the batch has no canonical images, and the objective takes some; an orbit that was not trained on, and
            the objective is ``exemplar``; or sets of one image, no more than there are orbits, and it takes triplets.

        """
        code, switches = self._encode(batch["image"])
        match self.settings.objective:
            case "triplet":
                return self._triplets(batch, code)
            case "exemplar":
                return self._exemplar(batch, code)
            case "rectification" | "autoencoder":
                return self._rectification(batch, code, switches)
        triplets = self._triplets(batch, code)
        rectification = self._rectification(batch, code, switches)
        self.log("triplet", triplets)
        self.log("rectification", rectification)
        return self.settings.weights[0] * triplets + self.settings.weights[1] * rectification

    training_step = log_loss

    def configure_optimizers(self) -> Any:
        """Adam with a constant rate."""
        return fuse(torch.optim.Adam(self.parameters(), self.settings.rate))

    def _triplets(self, batch: Batch, code: Tensor) -> Tensor:
        """Of codes (n, k)."""
        need_members(
            batch,
            self.orbits,
            "a triplet requires two images of one orbit and one of another, but each set contains only one image",
        )
        orbits, mask = self.orbits.codes(batch).flatten(), batch["mask"].flatten()
        settings, points = self.settings, self._points(code)
        loss = triplet_loss(points, orbits, margin=settings.margin, negatives=settings.negatives, mask=mask)
        return loss / (code.shape[-1] if settings.scale == "dims" else 1)

    def _rectification(self, batch: Batch, code: Tensor, switches: list[Tensor]) -> Tensor:
        """Of what the decoder gives for codes (n, k)."""
        targets = self._targets(batch)
        loss = rectification_loss(self._decode(code, switches), targets, batch["mask"].flatten())
        return loss / (1 if self.settings.scale == "none" else targets[0].numel())

    def _exemplar(self, batch: Batch, code: Tensor) -> Tensor:
        """Cross-entropy of the classifier of orbits."""
        own = torch.where(batch["mask"], self.orbits.classes(batch), -100)
        return functional.cross_entropy(self.classifier(code).float(), own.flatten())

    def _decode(self, code: Tensor, switches: list[Tensor]) -> Tensor:
        """Images (n, C, H, W) float32."""
        if self.decoder is None:
            raise SetsupError(
                f"objective {self.settings.objective!r} does not train a decoder; choose one of {', '.join(DECODED)}"
            )
        decoded: Tensor = self.decoder(self.encoder, code, switches).float()
        return decoded

    def _points(self, code: Tensor) -> Tensor:
        """What distances are between, (n, k) float32."""
        return functional.normalize(code.float(), dim=-1) if self.settings.normalise else code.float()

    def _encode(self, images: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Codes (n, k) of all images, and switches."""
        flat = unit_range(images.reshape(-1, *images.shape[-3:]))
        encoded: tuple[Tensor, list[Tensor]] = self.encoder(flat if self.front is None else self.front(flat))
        return encoded

    def _targets(self, batch: Batch) -> Tensor:
        """What the decoder should give for each image, (n, C, H, W) float32."""
        images, objective = batch["image"], self.settings.objective
        if objective not in _RECTIFIED:
            return unit_range(images.reshape(-1, *images.shape[-3:]))
        if "canonical_image" not in batch:
            raise SetsupError(
                f"objective {objective!r} decodes the canonical image of each orbit, but these draws contain no "
                "canonical images; specify canonical images, for example with --canonical 'yaw == 0', or train with "
                "--method.objective triplet or exemplar"
            )
        targets = unit_range(batch["canonical_image"])[:, None]
        return targets.expand(*images.shape[:2], *targets.shape[2:]).flatten(0, 1)
