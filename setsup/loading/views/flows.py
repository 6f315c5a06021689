"""Exact flow of rendered frames in the form of the flow of videos.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849).

"""

from dataclasses import dataclass

import torch

from setsup.checks import check_number
from setsup.errors import DataError, SetsupError
from setsup.loading.batch import Batch
from setsup.loading.transforms.modalities import get_tensor
from setsup.loading.views.names import add_views, check_names

__all__ = ["FlowViews"]


@dataclass(frozen=True)
class FlowViews:
    """Flow in pixels as a view: channels first, clipped, scaled to ±1, as datasets of videos have TV-L1's ``flow``.

    Flow that is unknown (NaN), where there is no surface, becomes 0. Crops and flips come after this view, with the
    kind ``flow`` of :class:`~setsup.loading.transforms.Augment`.

    Parameters
    ----------
    limit : float
        Pixels at which flow is clipped, and which become 1; 20 for TV-L1's, as is usual for videos.
    field : str
        Modality (sets, size, height, width, 2), floating point, in pixels, such as ``exact_flow`` of
        :class:`setsup.correspondence.RenderedFrames`.
    name : str
        Name of the view.

    Returns
    -------
    batch
        With (sets, size, 2, height, width) float32, first u and then v.

    Raises
    ------
    SetsupError
        If the modality is missing, the batch already has the name, or the limit is not positive.
    DataError
        If the modality has another shape, or integers.

    Examples
    --------
    >>> import torch
    >>> from setsup.loading.views import FlowViews
    >>> batch = {"exact_flow": torch.tensor([[[[[5.0, -40.0], [float("nan"), float("nan")]]]]])}
    >>> FlowViews()(batch)["flow"].tolist()
    [[[[[0.25, 0.0]], [[-1.0, 0.0]]]]]

    """

    limit: float = 20.0
    field: str = "exact_flow"
    name: str = "flow"

    def __post_init__(self) -> None:
        check_number(self.limit, "limit", SetsupError, positive=True)
        check_names((self.name,), 1)

    def __call__(self, batch: Batch) -> Batch:
        """Add the view."""
        flow = get_tensor(batch, self.field)
        if flow.ndim != 5 or flow.shape[-1] != 2 or not flow.is_floating_point():
            raise DataError(
                f"{self.field!r} must be floating point of shape (sets, size, height, width, 2), not {flow.dtype} of "
                f"shape {tuple(flow.shape)}"
            )
        scaled = (torch.nan_to_num(flow.float(), 0.0) / self.limit).clamp(-1, 1).movedim(-1, -3).contiguous()
        return add_views(batch, (self.name,), [scaled.flatten(0, 1)], flow.shape[:2])
