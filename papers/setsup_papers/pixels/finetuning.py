"""Fine-tuning of a vision transformer for features of pixels: a linear head, or low-rank updates of projections."""

import torch
from torch import Tensor

from setsup.checks import check_choice, check_integer, check_number
from setsup.errors import DataError, SetsupError
from setsup.loading.batch import Batch
from setsup.methods.embeddings import check_temperature
from setsup.methods.networks.images import unit_range
from setsup_papers.pixels.finetuning_settings import FinetuningSettings
from setsup_papers.pixels.losses import match_loss
from setsup_papers.pixels.patch_network import FrozenTransformer, PatchNetwork, open_transformer, sampled_features
from setsup_papers.pixels.pixel_contrast import PixelContrast

__all__ = ["PixelFinetuning", "build"]


class PixelFinetuning(PixelContrast):
    """Trains a head or low-rank updates of a frozen transformer on exact correspondences of two views.

    The loss is the mean of :func:`~setsup_papers.pixels.match_loss` over the pairs of views, or the weighted sum of
    :class:`~setsup_papers.pixels.PixelContrast`. The state dict, and with it every checkpoint, contains only
    trained weights, not the frozen transformer; see :class:`~setsup_papers.pixels.PatchNetwork`. To use the updated
    transformer, without a head, by itself, save ``method.network.merged()``.

    Parameters
    ----------
    settings : FinetuningSettings
        Settings of the loss and of the optimiser; those of the network are ignored.
    network : PatchNetwork
        The transformer.

    Raises
    ------
    SetsupError
        When a number is out of range.

    """

    settings: FinetuningSettings  # type: ignore[assignment]
    network: PatchNetwork

    def __init__(self, settings: FinetuningSettings, network: PatchNetwork) -> None:
        super().__init__(settings, network)  # type: ignore[arg-type]
        check_temperature(settings.temperature)

    def loss(self, batch: Batch) -> Tensor:
        """Compute the loss of a batch; with InfoNCE, log ``found``, the share of pixels whose nearest feature matches.

        Parameters
        ----------
        batch : dict
            As for :meth:`PixelContrast.loss`. InfoNCE uses the positive pixels; a pair of views with fewer than two
            counts 0.

        Returns
        -------
        () float32

        Raises
        ------
        SetsupError
            When the batch has no views, or their size is not a multiple of the patch size.

        """
        if "view_1" in batch:
            self._check_size(*batch["view_1"].shape[-2:])
        if self.settings.loss == "within_between" or "view_1" not in batch:  # raises an error without views
            return super().loss(batch)
        height, width = batch["view_1"].shape[-2:]
        views = torch.stack([batch["view_1"], batch["view_2"]])
        maps = self.network.maps(unit_range(views.reshape(-1, *views.shape[-3:]))).float()
        partner, positive = (batch[name].reshape(-1, height * width) for name in ("partner", "positive"))
        losses, found, count = [maps.sum() * 0], maps.new_zeros(()), 0
        for first, second, partners, mask in zip(*maps.chunk(2), partner, positive, strict=True):
            pixels = mask.nonzero()[:, 0]
            if len(pixels) < 2:
                continue
            places = partners[pixels]
            features = sampled_features(first, pixels, height, width), sampled_features(second, places, height, width)
            losses.append(match_loss(*features, places, self.settings.temperature))
            found, count = found + _found(*features, places), count + len(pixels)
        self.log("found", found / max(count, 1))
        return torch.stack(losses).sum() / len(partner)

    def _check_size(self, height: int, width: int) -> None:
        patch = self.network.patch
        if height % patch or width % patch:
            lower, upper = (max(1, height // patch + more) * patch for more in (0, 1))
            raise SetsupError(
                f"views of {height} × {width} pixels are not whole patches of {patch} × {patch}; set "
                f"--augmentation.size to a multiple of {patch}, such as {lower} or {upper}"
            )


@torch.no_grad()
def _found(first: Tensor, second: Tensor, places: Tensor) -> Tensor:
    """Count the features of view 1 whose nearest feature of view 2, by cosine, is that of their partner; () float."""
    nearest = (first @ torch.nn.functional.normalize(second, dim=1).T).argmax(dim=1)
    return (places[nearest] == places).float().sum()


def _opened(settings: FinetuningSettings) -> FrozenTransformer:
    """The transformer; of a run that was begun, an error says that it must be where it was."""
    try:
        return open_transformer(settings.encoder)
    except SetsupError as error:
        if settings.weights is None:
            raise
        problem = str(error).partition("; ")[0]
        raise DataError(f"the run was trained with {settings.encoder}: {problem}; restore the transformer") from error


def build(settings: FinetuningSettings, generator: torch.Generator) -> PixelFinetuning:
    """Build the method of a run; see :meth:`FinetuningSettings.build`."""
    check_choice(settings.loss, ("infonce", "within_between"), "loss", SetsupError)
    check_integer(settings.rank, "rank", SetsupError)
    check_integer(settings.features, "features", SetsupError)
    check_number(settings.alpha, "alpha", SetsupError, positive=True)
    if not settings.rank and not settings.features:
        raise SetsupError(
            "there is nothing to train: rank is 0, so the transformer is frozen, and features is 0, so there is no "
            "head; set rank or features to 1 or more"
        )
    frozen = _opened(settings)
    if settings.weights is not None and settings.weights != frozen.digest:
        raise DataError(
            f"the weights, configuration or preprocessing of {settings.encoder} are not those that the run was trained "
            f"with (digest {frozen.digest[:12]}, expected {settings.weights[:12]}), and its checkpoints contain only "
            "trained weights; restore its files and the version of transformers, or train again in another folder"
        )
    network = PatchNetwork(
        frozen,
        rank=settings.rank,
        alpha=settings.alpha,
        projections=settings.projections,
        features=settings.features,
        name=settings.encoder,
        generator=generator,
    )
    return PixelFinetuning(settings, network)
