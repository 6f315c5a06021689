"""DCoDR: embeddings of what varies within domains, blind to the domain [1]_.

References
----------
.. [1] J. Kahana, Y. Hoshen, "A contrastive objective for learning disentangled representations", ECCV 2022
   (arXiv 2203.11284), and its published code.

"""

from collections.abc import Mapping
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.nn import functional

from setsup.checks import check_number, check_rates
from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.methods.embeddings import check_temperature
from setsup.methods.fused import fuse
from setsup.methods.groups import GroupCodes, need_members
from setsup.methods.minimise import log_loss
from setsup.methods.networks.images import unit_range
from setsup_papers.dcodr.losses import domain_contrast_loss
from setsup_papers.dcodr.networks.domain_encoders import ResNetEncoder
from setsup_papers.dcodr.networks.generator import AdaINGenerator, class_embedding
from setsup_papers.dcodr.settings import DCoDRSettings

__all__ = ["DCoDR"]

_BETAS = (0.5, 0.999)
"""Of Adam."""


class DCoDR(LightningModule):
    """Trains :func:`~setsup_papers.dcodr.domain_contrast_loss`, and with a generator λ times a distance of images.

    The generator gives each image from its normalised code and a learned code of its domain, so that the image's code
    need not hold the domain; gradients reach the encoder. Without a generator this is DCoDR-norec. Images and their
    augmented copies are encoded in separate passes, so that batch normalisation takes each by itself; padding of short
    domains is in neither.

    Parameters
    ----------
    settings : DCoDRSettings
        What is minimised, and how; those of networks are not read.
    encoder : nn.Module
        (n, C, H, W) float in [0, 1] → (n, k) float.
    domains : GroupCodes
        Domain of each image of a batch.
    head : nn.Module, optional
        Applied to codes, (n, k) → (n, k); what is evaluated comes after it.
    generator : AdaINGenerator, optional
        From codes (n, k) and those of domains (n, style) to images.
    distance : nn.Module, optional
        Of a generator: (images, targets) → (n,), such as :class:`~setsup_papers.dcodr.PerceptualDistance`.

    Raises
    ------
    SetsupError
        When a generator has no distance, a number is out of range, with a generator also λ = 0, or no domain has two
        images to contrast.

    Examples
    --------
    >>> import setsup
    >>> from setsup.methods.recipes import recipe
    >>> from setsup_papers.dcodr import DCoDRSettings, small_encoder
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> batches = setsup.DomainSampler(shapes.factors, "shape", sets=4, size=4)
    >>> batch = next(iter(setsup.loader(shapes, batches, transform=recipe("dcodr"), workers=0)))
    >>> settings = DCoDRSettings(domain=("shape",))
    >>> method = DCoDR(settings, small_encoder(), settings.domains(shapes.factors))
    >>> method.embed(batch).shape
    torch.Size([4, 4, 128])
    >>> method.embed(batch).norm(dim=-1).allclose(torch.ones(4, 4))
    True

    """

    def __init__(
        self,
        settings: DCoDRSettings,
        encoder: nn.Module,
        domains: GroupCodes,
        *,
        head: nn.Module | None = None,
        generator: AdaINGenerator | None = None,
        distance: nn.Module | None = None,
    ) -> None:
        super().__init__()
        check_temperature(settings.temperature)
        if generator is not None:
            if distance is None:
                raise SetsupError(
                    "a generator requires a distance between images; set distance, for example to "
                    "PerceptualDistance(), or omit the generator"
                )
            weight = settings.reconstruction
            check_number(weight, "reconstruction, the weight of the distance,", SetsupError, positive=True)
        if settings.negatives == "domain" and domains.largest < 2:
            raise SetsupError(
                f"images are contrasted with others of their domain, but each domain ({', '.join(domains.factors)}) "
                "has at most one image; choose a coarser --domain, or contrast whole batches with --method.negatives "
                "batch"
            )
        check_rates(rate=settings.rate, generator_rate=settings.generator_rate, style_rate=settings.style_rate)
        check_number(settings.decay, "decay, a factor of rates,", SetsupError, 0)
        if settings.decay_every is not None and settings.decay_every < 1:
            raise SetsupError(
                f"decay_every must be 1 or more (steps), or None for constant rates, not {settings.decay_every}"
            )
        self.settings = settings
        self.encoder, self.domains, self.head = encoder, domains, head
        self.generator, self.distance = generator, distance
        self.styles = None if generator is None else class_embedding(len(domains), settings.style)

    def embed(self, batch: Batch) -> Tensor:
        """Codes of a batch's images, (sets, size, k) float32 of length 1."""
        images = batch["image"]
        return self._codes(images.flatten(0, 1)).reshape(*images.shape[:2], -1)

    def reconstruct(self, batch: Batch) -> Tensor:
        """Images from codes and domains, (sets, size, C, H, W) float in [0, 1].

        Raises
        ------
        SetsupError
            When there is no generator, or the batch has a domain that was not trained on.

        """
        images = batch["image"]
        domains = self.domains.classes(batch)
        return self._generated(self.embed(batch).flatten(0, 1), domains.flatten()).reshape(images.shape)

    def loss(self, batch: Batch) -> Tensor:
        """The contrast and, with a generator, λ times the distance of reconstructions; both are logged.

        Parameters
        ----------
        batch : dict
            ``image`` and ``positive_image`` (sets, size, C, H, W), uint8 or float in [0, 1]; ``mask`` (sets, size)
            bool; ``factors`` with those of domains. Images of unknown domain are not reconstructed. With two copies,
            ``positive_image`` (sets, size, 2, C, H, W), the first of them is the anchor and a negative, as the text of
            the paper can be read, and no longer the image.

        Returns
        -------
        () float32

        Raises
        ------
        SetsupError
            When the batch has no augmented copies; sets of one image, no more than there are domains, and negatives are
            of the domain; or, with a generator, a domain that was not trained on, or none that is known.

        """
        settings = self.settings
        if settings.negatives == "domain":
            need_members(
                batch,
                self.domains,
                "each image is contrasted with others of its domain, but sets of one image contain no others",
            )
        keep = batch["mask"].flatten()
        whole = bool(keep.all())

        def kept(values: Tensor) -> Tensor:
            values = values.flatten(0, 1)
            return values if whole else values[keep]

        images = kept(batch["image"])
        codes = self._codes(images)
        anchors, near = codes, None
        if settings.positives:
            copies = kept(self._copies(batch))
            if copies.ndim > images.ndim:
                anchors, near = (self._codes(copy) for copy in copies.unbind(1))
            else:
                near = self._codes(copies)
        contrast = domain_contrast_loss(
            anchors,
            near,
            kept(self.domains.codes(batch)),
            temperature=settings.temperature,
            negatives=settings.negatives,
            short=settings.short,
            decoupled=settings.decoupled,
        )
        self.log("contrast", contrast)
        if self.generator is None:
            return contrast
        used, _ = self.domains.used(batch)
        known = used[keep]
        domains = self.domains.classes({**batch, "mask": used.reshape(batch["mask"].shape)}).flatten()[used]
        generated = self._generated(codes[known], domains)
        distance: Tensor = self.distance(generated, unit_range(images[known])).mean()  # type: ignore[misc]
        self.log("reconstruction", distance)
        return contrast + settings.reconstruction * distance

    training_step = log_loss

    def configure_optimizers(self) -> Any:
        """Adam with a rate for each part, all multiplied by `decay` every `decay_every` steps."""
        settings = self.settings
        parts: list[tuple[list[nn.Module | None], float]] = [
            ([self.encoder, self.head], settings.rate),
            ([self.generator], settings.generator_rate),
            ([self.styles], settings.style_rate),
        ]
        groups = [
            {
                "params": [weights for module in modules if module is not None for weights in module.parameters()],
                "lr": rate,
            }
            for modules, rate in parts
        ]
        adam = fuse(torch.optim.Adam([group for group in groups if group["params"]], betas=_BETAS))
        if settings.decay_every is None:
            return adam
        schedule = torch.optim.lr_scheduler.StepLR(adam, settings.decay_every, settings.decay)
        return {"optimizer": adam, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def load_initial(self, weights: Mapping[str, Tensor]) -> None:
        """Start from a checkpoint of MoCo-v2, whose layout is that of its published file, or from another DCoDR.

        Of MoCo-v2, the query encoder and the first layer of its head are taken.

        Raises
        ------
        SetsupError
            When they are MoCo's, and the encoder is not a ResNet.
        DataError
            When they do not fit.

        """
        # a DCoDR's encoder is "encoder."; that of a ResNet by transformers' names has "encoder.stages." only
        if any(name.startswith("encoder.") and not name.startswith("encoder.stages.") for name in weights):
            self.load_state_dict(dict(weights))
        elif isinstance(self.encoder, ResNetEncoder):
            self.encoder.load_moco(weights, "the initial weights")
        else:
            raise SetsupError(
                f"the initial weights are not from DCoDR, and {type(self.encoder).__name__} cannot load the weights of "
                "a ResNet; train with --method.encoder resnet50, or without --initial-run"
            )

    def _copies(self, batch: Batch) -> Tensor:
        if "positive_image" not in batch:
            raise SetsupError(
                "DCoDR contrasts images with augmented copies of them, but the batch has no 'positive_image'; use a "
                "recipe that adds it, for example --augmentation dcodr"
            )
        copies: Tensor = batch["positive_image"]
        extra = copies.shape[2:-3]
        if extra not in ((), (2,)):
            raise SetsupError(
                f"images must have one or two augmented copies, not {'×'.join(map(str, extra))}; set copies to 2"
            )
        return copies

    def _codes(self, images: Tensor) -> Tensor:
        """Codes (n, k) float32 of length 1 of images (n, C, H, W)."""
        codes = self.encoder(unit_range(images))
        if self.head is not None:
            codes = self.head(codes)
        return functional.normalize(codes.float(), dim=-1)

    def _generated(self, codes: Tensor, domains: Tensor) -> Tensor:
        if self.generator is None or self.styles is None:
            raise SetsupError(
                "DCoDR-norec has no generator, so it cannot reconstruct images; train DCoDR with a generator"
            )
        images: Tensor = self.generator(codes, self.styles(domains))
        return images
