"""Views of clips: frames with the motion around them.

Convention
----------
Clips are (sets, size, frames, channels, height, width), and flow fields (sets, size, fields, 2, height, width), first x
and then y. Field j of a clip leads from frame j to frame j + 1.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849).
.. [2] K. Simonyan, A. Zisserman, "Two-stream convolutional networks for action recognition in videos", 2014
   (arXiv 1406.2199).

"""

from dataclasses import KW_ONLY, dataclass

import torch

from setsup.checks import check_integer
from setsup.errors import DataError, SetsupError
from setsup.loading.batch import Batch
from setsup.loading.transforms.modalities import get_tensor, keyed_slots
from setsup.loading.views.names import add_views, check_names
from setsup.random import stream_key

__all__ = ["FrameTriples"]


@dataclass(frozen=True)
class FrameTriples:
    """A frame of each clip, a later frame, and the motion around the frame: the views of videos in [1]_.

    Flow field j of a clip leads from frame j to frame j + 1. With t uniform over the times for which all of these are
    in the clip, the triple is frame t, frame t + later, and the flow fields t − ⌊flow/2⌋ … t − ⌊flow/2⌋ + flow − 1; an
    even number of fields is centred at frame t.

    Parameters
    ----------
    later : int
        Number of frames between the frame and the later frame.
    flow : int
        Number of flow fields in the stack.
    video : str
        Modality (sets, size, frames, channels, height, width), of any type.
    fields : str
        Modality (sets, size, fields, 2, height, width), of any type; a clip has at most one field per frame.
    names : (str, str, str)
        Names of the frame, the later frame and the stack.
    seed, stream : int, str
        0 ≤ seed < 2⁶⁴; two with the same seed draw the same times unless their streams differ.

    Returns
    -------
    batch
        With two images (sets, size, channels, height, width), and a stack (sets, size, 2·flow, height, width): x and y
        of the first field, x and y of the second, and so on [2]_.

    Raises
    ------
    SetsupError
        When a modality or the step is missing, clips are too short, or the batch already has one of the names.

    Examples
    --------
    >>> import torch
    >>> from setsup.loading.views import FrameTriples
    >>> clips = {"video": torch.zeros(1, 4, 16, 3, 8, 8), "flow": torch.zeros(1, 4, 15, 2, 8, 8), "step": 0}
    >>> triples = FrameTriples(later=3)(clips)
    >>> tuple(triples["frame"].shape), tuple(triples["later"].shape), tuple(triples["flow_stack"].shape)
    ((1, 4, 3, 8, 8), (1, 4, 3, 8, 8), (1, 4, 20, 8, 8))

    """

    later: int
    flow: int = 10
    video: str = "video"
    fields: str = "flow"
    names: tuple[str, str, str] = ("frame", "later", "flow_stack")
    _: KW_ONLY
    seed: int = 0
    stream: str = "FrameTriples"

    def __post_init__(self) -> None:
        check_integer(self.later, "later", SetsupError, 1)
        check_integer(self.flow, "flow", SetsupError, 1)
        check_names(self.names, 3)
        stream_key(self.seed, self.stream)

    def __call__(self, batch: Batch) -> Batch:
        """Add the triple."""
        video, fields = self._clips(batch)
        lead, (frames, motions) = video.shape[:2], (video.shape[2], fields.shape[2])
        before = self.flow // 2
        last = min(frames - 1 - self.later, motions - self.flow + before)
        if last < before:
            raise SetsupError(
                f"clips of {frames} frames and {motions} flow fields are too short for later={self.later} and "
                f"flow={self.flow}; use longer clips, or smaller values of later and flow"
            )
        times = before + keyed_slots(batch, self.seed, self.stream, lead).below(last - before + 1)
        time = torch.from_numpy(times).to(video.device)
        clip = torch.arange(len(time), device=video.device)
        stack = (time - before)[:, None] + torch.arange(self.flow, device=video.device)
        flat, motion = video.flatten(0, 1), fields.flatten(0, 1)
        triple = flat[clip, time], flat[clip, time + self.later], motion[clip[:, None], stack].flatten(1, 2)
        return add_views(batch, self.names, triple, lead)

    def _clips(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        video, fields = get_tensor(batch, self.video), get_tensor(batch, self.fields)
        if video.ndim != 6:
            raise DataError(
                f"{self.video!r} must have shape (sets, size, frames, channels, height, width), not "
                f"{tuple(video.shape)}"
            )
        if fields.ndim != 6 or fields.shape[3] != 2 or fields.shape[:2] != video.shape[:2]:
            raise DataError(
                f"{self.fields!r} must have shape (sets, size, fields, 2, height, width) with the sets and positions "
                f"of {self.video!r}, {tuple(video.shape[:2])}, not {tuple(fields.shape)}"
            )
        return video, fields
