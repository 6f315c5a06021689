"""LORD: a learned code for each image and one for each domain, and encoders that are fitted to them afterwards.

References
----------
.. [1] A. Gabbay, Y. Hoshen, "Demystifying inter-class disentanglement", ICLR 2020 (arXiv 1906.11796), and its published
   code.

"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from setsup.checks import check_number, check_rates
from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.methods.fused import fuse
from setsup.methods.groups import GroupCodes
from setsup.methods.minimise import log_loss
from setsup.methods.networks.images import encode_images, unit_range
from setsup.methods.networks.pretrained import read_weights
from setsup.methods.rows import RowCodes, RowState
from setsup_papers.dcodr.baseline_settings import AmortisedLORDSettings, LORDSettings
from setsup_papers.dcodr.networks.domain_encoders import ResNetEncoder
from setsup_papers.dcodr.networks.generator import EMBEDDED, AdaINGenerator

__all__ = ["LORD", "AmortisedLORD"]

_BETAS = (0.5, 0.999)
"""Of Adam, in both stages."""


class LORD(LightningModule):
    """The first stage: codes of images and domains, and a generator from both, are optimised together [1]_.

    With the code c of an image, the code s of its domain, the generator G and normal noise ε, the loss is the mean over
    the images x of a batch of

    d(G(c + ε, s), x) + λ ‖c + ε‖²

    The noise keeps codes of images from holding what the code of the domain already says. An image that training never
    saw has no code: :class:`AmortisedLORD` trains an encoder.

    Codes of images are updated by Adam: those of the images of each step, with their moments, as of
    :class:`torch.optim.SparseAdam`; or, with ``lazy_codes=False``, all of them in every step by moments that decay, as
    in the published code.

    Parameters
    ----------
    settings : LORDSettings
        What is minimised, and how; λ is ``penalty``. Of networks only the size of an image's code is read, ``content``.
    generator : AdaINGenerator
        Images from both codes.
    classes : torch.nn.Embedding
        Codes of domains.
    domains : GroupCodes
        Domain of each image of a batch; as many as there are classes.
    distance : nn.Module
        d, (n, C, H, W) images and their targets → (n,).
    rows : int
        Rows of the training data.

    Raises
    ------
    SetsupError
        When a rate is not above 0, or the last one below 0.

    """

    def __init__(
        self,
        settings: LORDSettings,
        generator: AdaINGenerator,
        classes: nn.Embedding,
        domains: GroupCodes,
        distance: nn.Module,
        *,
        rows: int,
    ) -> None:
        super().__init__()
        _check_rates(settings.last_rate, rate=settings.rate, latent_rate=settings.latent_rate)
        self.settings = settings
        self.generator, self.classes, self.domains, self.distance = generator, classes, domains, distance
        size, lazy = settings.content, settings.lazy_codes
        self.codes = RowCodes(rows, size, rate=settings.latent_rate, betas=_BETAS, initial=_uniform(size), lazy=lazy)
        # which rows and domains the codes are of, and how they were updated, for the second stage
        self.register_buffer("table", _described(domains))
        self.register_buffer("lazy", torch.tensor(lazy))
        self.register_load_state_dict_pre_hook(_fill_described)  # type: ignore[no-untyped-call]

    def embed(self, batch: Batch) -> Tensor:
        """Codes of a batch's images, (sets, size, content) float32, of rows that were trained on only."""
        codes: Tensor = self.codes(batch["indices"])
        return codes

    def loss(self, batch: Batch) -> Tensor:
        """The objective on a batch; its terms are logged. There is no noise in evaluation mode.

        Parameters
        ----------
        batch : dict
            ``image`` (sets, size, C, H, W) uint8, or float in [0, 1]; ``indices`` and ``mask`` (sets, size);
            ``factors`` with those of domains. Images of unknown domain take no part.

        Returns
        -------
        () float32

        """
        used, classes = _classes(self.domains, batch)
        codes = self.codes(batch["indices"].flatten()[used])
        if self.training:
            codes = codes + self.settings.noise * torch.randn_like(codes)
        images = unit_range(batch["image"].flatten(0, 1)[used])
        distance = self.distance(self.generator(codes, self.classes(classes)), images).mean()
        penalty = codes.square().sum(1).mean()
        self.log("distance", distance)
        self.log("penalty", penalty)
        loss: Tensor = distance + self.settings.penalty * penalty
        return loss

    training_step = log_loss

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Update the codes of images."""
        self.codes.step()

    def configure_optimizers(self) -> Any:
        """Adam, with rates that fall along half a cosine, also of the codes of images."""
        rate, latent_rate, last = self.settings.rate, self.settings.latent_rate, self.settings.last_rate
        steps = self.trainer.estimated_stepping_batches
        latent = _cosine(last / latent_rate, steps)
        self.codes.rate = lambda step: latent_rate * latent(step)
        groups = [
            {"params": list(self.generator.parameters()), "lr": rate},
            {"params": list(self.classes.parameters()), "lr": latent_rate},
        ]
        return _scheduled(torch.optim.Adam(groups, betas=_BETAS), [_cosine(last / rate, steps), latent])


class AmortisedLORD(LightningModule):
    """The second stage: encoders that give the codes of a first stage, for images that have none [1]_.

    An encoder of content and one of the domain are fitted to the codes c and s of the first stage, while the generator
    is trained further. The loss is the mean over the images x of a batch of

    d(G(E_c(x), E_s(x)), x) + α |E_c(x) - c|² + β |E_s(x) - s|²

    where squares are means over dimensions. The embedding of an image is E_c(x), which is not meant to have its domain.
    An image without a code, which the first stage never saw, takes no part in the second term.

    It starts from the weights of a :class:`LORD`, and keeps its codes.

    Parameters
    ----------
    settings : AmortisedLORDSettings
        What is minimised, and how; α and β are ``weights``. Of networks only ``content``, the size of an image's code,
        and ``encoder_weights``, which :meth:`load_initial` reads, are used. A first stage whose codes were updated
        otherwise than ``lazy_codes`` says is refused.
    content, style : nn.Module
        E_c and E_s, (n, C, H, W) float in [0, 1] → (n, d).
    generator : AdaINGenerator
        As that of the first stage, which gives it weights.
    classes : torch.nn.Embedding
        For the codes of domains of the first stage.
    domains : GroupCodes
        As of the first stage.
    distance : nn.Module
        d, (n, C, H, W) images and their targets → (n,).
    rows : int
        Rows of the training data.

    Raises
    ------
    SetsupError
        When the rate is not above 0, or the last one below 0.

    """

    def __init__(
        self,
        settings: AmortisedLORDSettings,
        content: nn.Module,
        style: nn.Module,
        generator: AdaINGenerator,
        classes: nn.Embedding,
        domains: GroupCodes,
        distance: nn.Module,
        *,
        rows: int,
    ) -> None:
        super().__init__()
        _check_rates(settings.last_rate, rate=settings.rate)
        self.settings = settings
        self.content, self.style, self.generator, self.distance = content, style, generator, distance
        self.classes, self.domains = classes.requires_grad_(False), domains
        self.targets = RowState(rows, settings.content, seen=True)
        self.started: Tensor
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    def load_initial(self, weights: Mapping[str, Tensor]) -> None:
        """Take generator and codes from the weights of a :class:`LORD`, and those of the encoders from their file.

        Raises
        ------
        SetsupError
            When they are not from LORD, its codes are of other data or domains, or an encoder is not a ResNet, and
            cannot start from MoCo-v2.
        DataError
            When the file of the encoders cannot be read, or holds other weights.

        """
        if not all(_below(weights, prefix) for prefix in ("generator.", "classes.", "codes.codes.")):
            raise SetsupError(
                "the initial weights are not from a first stage of LORD, which has codes of images and domains; pass a "
                "run of LORD, for example of dcodr/…-lord-latent"
            )
        table = weights.get("table")
        if table is not None and not torch.equal(table.cpu(), _described(self.domains)):
            raise SetsupError(
                "the codes of the first stage belong to other rows or other domains; train both stages on the "
                "same data and domains, with the same --data.split, --data.where and --domain"
            )
        lazy = self.settings.lazy_codes
        if bool(weights.get("lazy", torch.tensor(True))) is not lazy:
            updated, other = ("only in steps that used them", "false") if lazy else ("in every step", "true")
            raise SetsupError(
                f"this stage requires codes that the first stage updated {updated}, but the first stage used the "
                f"other setting; train the first stage again, or pass --method.lazy-codes {other}"
            )
        self.generator.load_state_dict(_below(weights, "generator."))
        self.classes.load_state_dict(_below(weights, "classes."))
        self.targets.load_state_dict(_below(weights, "codes.codes."))
        if self.settings.encoder_weights is not None:
            self._load_encoders(self.settings.encoder_weights)
        self.started.fill_(True)

    def embed(self, batch: Batch) -> Tensor:
        """Encode the content of a batch's images, (sets, size, dimensions) float32."""
        return encode_images(self.content, batch["image"])

    def loss(self, batch: Batch) -> Tensor:
        """The objective on a batch, as :meth:`LORD.loss` takes it; its terms are logged.

        Returns
        -------
        () float32

        Raises
        ------
        SetsupError
            Before :meth:`load_initial`.

        """
        if not bool(self.started):
            raise SetsupError(
                "the encoders of LORD are fitted to the codes of a first stage; pass a run of that stage as "
                "--initial-run runs/…/seed-0"
            )
        used, classes = _classes(self.domains, batch)
        images = unit_range(batch["image"].flatten(0, 1)[used])
        content, style = self.content(images).float(), self.style(images).float()
        terms = {
            "distance": self.distance(self.generator(content, style), images).mean(),
            "content": self._content_error(content, batch["indices"].flatten()[used]),
            "domain": (style - self.classes(classes)).square().mean(),
        }
        for name, term in terms.items():
            self.log(name, term)
        alpha, beta = self.settings.weights
        loss: Tensor = terms["distance"] + alpha * terms["content"] + beta * terms["domain"]
        return loss

    training_step = log_loss

    def configure_optimizers(self) -> Any:
        """Adam, with a rate that falls along half a cosine."""
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        steps = self.trainer.estimated_stepping_batches
        rate, last = self.settings.rate, self.settings.last_rate
        return _scheduled(torch.optim.Adam(trained, rate, _BETAS), [_cosine(last / rate, steps)])

    def _load_encoders(self, source: str) -> None:
        weights = read_weights(source)
        for encoder in (self.content, self.style):
            if not isinstance(encoder, ResNetEncoder):
                raise SetsupError(
                    "only ResNet encoders can load MoCo-v2 weights; set encoder to resnet50, or omit the weights"
                )
            encoder.load_moco(weights, source)

    def _content_error(self, codes: Tensor, rows: Tensor) -> Tensor:
        """Mean squared error of codes (n, d), over the rows that have one."""
        seen = self.targets.seen(rows)
        errors = (codes - self.targets.gather(rows.clamp(min=0))).square().mean(1)
        return torch.where(seen, errors, 0).sum() / seen.sum().clamp(min=1)


def _described(domains: GroupCodes) -> Tensor:
    """Table and factors of domains as bytes, which a checkpoint keeps."""
    return torch.tensor(list(" ".join([domains.table, *domains.factors]).encode()), dtype=torch.uint8)


def _fill_described(method: nn.Module, weights: dict[str, Any], prefix: str, *_: Any) -> None:
    """Let weights of earlier versions be loaded, which do not say what their codes are of, and were updated lazily."""
    weights.setdefault(f"{prefix}table", method.table)
    weights.setdefault(f"{prefix}lazy", method.lazy)


def _check_rates(last: float, **rates: float) -> None:
    """Check first learning rates, and that at the end, which may be 0."""
    check_rates(**rates)
    check_number(last, "last_rate, a learning rate,", SetsupError, 0)


def _classes(domains: GroupCodes, batch: Batch) -> tuple[Tensor, Tensor]:
    """Which images take part (sets · size,) bool, and the domains of these as classes (n,)."""
    used, _ = domains.used(batch)
    known = {**batch, "mask": used.reshape(batch["mask"].shape)}
    return used, domains.classes(known).flatten()[used]


def _uniform(size: int) -> Callable[[Tensor], Tensor]:
    """Initial codes of rows, as those of domains are."""
    return lambda rows: torch.empty(len(rows), size).uniform_(-EMBEDDED, EMBEDDED)


def _cosine(last: float, steps: float) -> Callable[[int], float]:
    """Share of the first rate at each step: half a cosine from 1 to `last`, as CosineAnnealingLR has it."""
    return lambda step: last + (1 - last) * (1 + math.cos(math.pi * min(step / steps, 1))) / 2


def _scheduled(optimiser: torch.optim.Adam, shares: list[Callable[[int], float]]) -> dict[str, Any]:
    schedule = torch.optim.lr_scheduler.LambdaLR(fuse(optimiser), shares)
    return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def _below(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
