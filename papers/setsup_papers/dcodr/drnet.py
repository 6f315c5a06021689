"""DRNET: codes of content and pose, by a discriminator that must not tell whether two poses are of one scene.

References
----------
.. [1] E. Denton, V. Birodkar, "Unsupervised learning of disentangled representations from video", NeurIPS 2017
   (arXiv 1705.10915).

"""

from typing import Any, NamedTuple

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.nn import functional

from setsup.checks import check_rates
from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.methods.fused import fuse
from setsup.methods.groups import GroupCodes, need_members
from setsup.methods.minimise import minimise
from setsup.methods.networks.images import encode_images, unit_range
from setsup_papers.dcodr.baseline_settings import DRNETSettings
from setsup_papers.dcodr.networks.drnet import DrnetDecoder, DrnetEncoder, SceneDiscriminator

__all__ = ["DRNET", "draw_partners"]


def draw_partners(groups: Tensor, *, other: bool = False) -> tuple[Tensor, Tensor]:
    """Draw an image for each image of a batch: another one of its group, or one of another group.

    Random numbers are torch's.

    Parameters
    ----------
    groups : (n,) integers
        Of the images.
    other : bool
        Whether partners are of other groups.

    Returns
    -------
    (n,) int64, (n,) bool
        Partners, and whether there is one; where not, an image is its own partner.

    Examples
    --------
    >>> draw_partners(torch.tensor([0, 1, 1, 2]))
    (tensor([0, 2, 1, 3]), tensor([False,  True,  True, False]))

    """
    same, itself = groups[:, None] == groups, torch.eye(len(groups), dtype=torch.bool, device=groups.device)
    eligible = ~same if other else same & ~itself
    paired = eligible.any(1)
    weights = torch.where(paired[:, None], eligible, itself)
    return torch.multinomial(weights.float(), 1)[:, 0], paired


class DRNET(LightningModule):
    """Encoders of content and pose, trained on pairs of images of one domain [1]_.

    With content c, pose p and decoder D, each image x of a batch is paired with another one x' of its domain, and the
    encoders and the decoder minimise

    ‖D(c(x'), p(x)) - x‖² + α ‖c(x') - c(x)‖² + β H(½, C(p(x), p(x')))

    where squares are means over all numbers, H is the binary cross-entropy, and c(x) and p(x') of the last two terms
    have no gradient. The discriminator C minimises its cross-entropy on as many pairs of one domain as of two. The
    embedding of an image is its pose, which is not meant to have its domain.

    A step trains the discriminator, then the other networks, each by Adam.

    Parameters
    ----------
    settings : DRNETSettings
        What is minimised, and how; α is ``similarity`` and β ``adversarial``. Those of networks are not read.
    content, pose : DrnetEncoder
        Of images of the same size.
    decoder : DrnetDecoder
        For codes of both.
    discriminator : SceneDiscriminator
        For pairs of poses.
    domains : GroupCodes
        Which images of a batch are of one domain.

    Raises
    ------
    SetsupError
        When the rate is not above 0.

    """

    def __init__(
        self,
        settings: DRNETSettings,
        content: DrnetEncoder,
        pose: DrnetEncoder,
        decoder: DrnetDecoder,
        discriminator: SceneDiscriminator,
        domains: GroupCodes,
    ) -> None:
        super().__init__()
        check_rates(rate=settings.rate)
        self.settings = settings
        self.automatic_optimization = False
        self.content, self.pose, self.decoder, self.discriminator = content, pose, decoder, discriminator
        self.domains = domains

    def embed(self, batch: Batch) -> Tensor:
        """Poses of a batch's images, (sets, size, d) float32 in (-1, 1)."""
        return encode_images(lambda images: self.pose(images)[0], batch["image"])

    def loss(self, batch: Batch) -> Tensor:
        """Compute the loss of encoders and decoder; its terms are logged.

        Parameters
        ----------
        batch : dict
            ``image`` (sets, size, C, H, W) uint8, or float in [0, 1]; ``mask`` (sets, size) bool; ``factors`` with
            those of domains. Images of unknown domain take no part. An image without another one of its domain is
            paired with itself.

        Returns
        -------
        () float32

        Raises
        ------
        SetsupError
            When all images are of one domain, or sets have one image, and are no more than there are domains.

        """
        return self._main_loss(self._encode(batch))

    def training_step(self, batch: Batch, batch_idx: int) -> None:
        """A step of each optimiser; the losses are logged as ``discriminator`` and ``loss``."""
        encoded = self._encode(batch)
        optimisers: Any = self.optimizers()
        discriminating, training = optimisers
        discriminator_loss = self._discriminator_loss(encoded)
        minimise(self, discriminating, discriminator_loss)
        loss = self._main_loss(encoded)
        minimise(self, training, loss)
        self.log("discriminator", discriminator_loss)
        self.log("loss", loss)

    def configure_optimizers(self) -> Any:
        """Adam for the discriminator, and for all other networks; rates are constant."""
        networks = self.content, self.pose, self.decoder
        others = [parameter for network in networks for parameter in network.parameters()]
        trained = self.discriminator.parameters(), others
        return [fuse(torch.optim.Adam(weights, self.settings.rate, self.settings.betas)) for weights in trained]

    def _encode(self, batch: Batch) -> "_Encoded":
        """Codes of the images that take part, and pairs of them."""
        need_members(
            batch,
            self.domains,
            "each image is decoded from another image of its domain, but sets of one image contain no other",
        )
        used, domains = self.domains.used(batch)
        images = unit_range(batch["image"].flatten(0, 1)[used])
        content, maps = self.content(images)
        poses, _ = self.pose(images)
        partners, paired = draw_partners(domains)
        strangers, apart = draw_partners(domains, other=True)
        if not bool(apart.any()):
            several = len(self.domains) > 1
            advice = (
                "draw two or more per step, for example with --sampler.sets 4" if several else "choose another --domain"
            )
            raise SetsupError(
                f"the discriminator compares domains, but all images of {'a batch' if several else 'the data'} come "
                f"from one domain ({', '.join(self.domains.factors)}); {advice}"
            )
        return _Encoded(images, content, maps, poses, partners, paired, strangers, apart)

    def _main_loss(self, encoded: "_Encoded") -> Tensor:
        images, content, poses, partners = encoded.images, encoded.content, encoded.poses, encoded.partners
        decoded = self.decoder(content[partners], [maps[partners] for maps in encoded.maps], poses)
        logits = self.discriminator(poses, poses[partners].detach())
        terms = {
            "reconstruction": functional.mse_loss(decoded.float(), images),
            "similarity": functional.mse_loss(content[partners].float(), content.detach().float()),
            "confusion": functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, 0.5)),
        }
        for name, term in terms.items():
            self.log(name, term)
        alpha, beta = self.settings.similarity, self.settings.adversarial
        return terms["reconstruction"] + alpha * terms["similarity"] + beta * terms["confusion"]

    def _discriminator_loss(self, encoded: "_Encoded") -> Tensor:
        """Mean of the cross-entropies on pairs of one domain and of two, without a gradient for poses."""
        poses = encoded.poses.detach()
        same = self.discriminator(poses, poses[encoded.partners])[encoded.paired]
        apart = self.discriminator(poses, poses[encoded.strangers])[encoded.apart]
        # softplus(-x) and softplus(x) are the cross-entropies with 1 and 0
        return (functional.softplus(-same).sum() / max(len(same), 1) + functional.softplus(apart).mean()) / 2


class _Encoded(NamedTuple):
    """Images of a batch that take part, their codes, and their partners of the same domain and of another."""

    images: Tensor
    content: Tensor
    maps: list[Tensor]
    poses: Tensor
    partners: Tensor
    paired: Tensor
    strangers: Tensor
    apart: Tensor
