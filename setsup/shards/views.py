"""Views of scenes in shards: beside its arrays each sample has its camera, and what its instances are called.

Convention
----------
``KEY.camera.json`` is an object. ``height`` and ``width`` are pixels; ``k`` (3 × 3, pixels), ``rotation`` (3 × 3) and
``translation`` (3, metres) those of :class:`setsup.scenes.Camera`, in the shortest digits that give the same float64.
``instances`` lists numbers of the modality ``instances``, and ``names`` what each of them is. ``pair_factors`` in the
catalogue are the factors in which two views of one scene agree.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Dataset, of_row
from setsup.errors import DataError, SetsupError, advice
from setsup.rendered.layout import one_row
from setsup.scenes import Camera
from setsup.shards.dataset import ShardedDataset
from setsup.shards.layout import CAMERA
from setsup.shards.reading import remedy

__all__ = ["ShardedViews", "encode_views", "has_views", "parse_view"]


class ShardedViews(ShardedDataset):
    """Shards of views of scenes, such as a rendering; made by :func:`setsup.open_shards`.

    Attributes
    ----------
    pair_factors : tuple of str
        Factors in which two views of one scene agree.

    Examples
    --------
    >>> import setsup, tempfile
    >>> from setsup.rendered.dataset import RenderedDataset
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = RenderedDataset(Shapes3D(size=(16, 16)), renderer="embree").select(range(0, 480_000, 48_000))
    >>> shards = setsup.write_shards(shapes, tempfile.mkdtemp(), modalities=["image"])
    >>> shards.camera(3) == shapes.camera(3), shards.names(3)[2], shards.pair_factors[-1]
    (True, 'cube', 'shape')

    """

    @property
    def pair_factors(self) -> tuple[str, ...]:
        """Factors in which two views of one scene agree."""
        return self.catalogue.pair_factors

    @of_row
    def camera(self, row: int) -> Camera:
        """Camera of a row, as it was when the row was drawn.

        Raises
        ------
        DataError
            When the member is no camera, or the shards were opened with another size of images.

        """
        if self._size is not None:
            raise DataError(
                f"the cameras of {self.url} match the images at their rendered size; open the dataset without "
                f"{advice('size=', '--option size=')}"
            )
        return self._view(row)[0]

    @of_row
    def names(self, row: int) -> dict[int, str]:
        """What each number in the ``instances`` of a row is.

        Raises
        ------
        DataError
            When the member is damaged.

        """
        return self._view(row)[1]

    def _view(self, row: int) -> tuple[Camera, dict[int, str]]:
        index = one_row(row, len(self))
        content = self._contents(np.array([index]), [CAMERA])[CAMERA][0]
        return parse_view(bytes(content), self._named(CAMERA, index), remedy(self.catalogue.check))


def has_views(dataset: Dataset) -> bool:
    """Whether the rows of a dataset have cameras, which can be kept.

    Parameters
    ----------
    dataset : Dataset
        A rendering, shards of one, or a selection of either; or any other whose method ``camera(row)`` is marked by
        :func:`setsup.datasets.of_row` and gives a :class:`~setsup.scenes.Camera`.

    """
    camera: Any = getattr(dataset, "camera", None)
    if not getattr(camera, "of_row", False) or CAMERA in dataset.modalities:
        return False
    return isinstance(camera(0), Camera)


def encode_views(dataset: Any, rows: npt.NDArray[np.integer[Any]]) -> list[bytes]:
    """Content of the members of some rows, in their order.

    Parameters
    ----------
    dataset : Dataset
        One that :func:`has_views`.
    rows : (n,) int
        Row numbers.

    """
    # rows of one scene one after the other, for a dataset that draws would build it again else
    columns: Sequence[Any] = [dataset.factors.codes(name, rows) for name in getattr(dataset, "pair_factors", ())]
    order = np.lexsort(columns[::-1]) if columns else np.arange(len(rows))
    contents = [b""] * len(rows)
    for index in order.tolist():
        contents[index] = _text(dataset, int(rows[index]))
    return contents


def _text(dataset: Any, row: int) -> bytes:
    camera: Camera = dataset.camera(row)
    names: dict[int, str] = dataset.names(row) if hasattr(dataset, "names") else {}
    numbers = sorted(names)
    content: dict[str, Any] = {
        **camera.to_dict(),
        "instances": numbers,
        "names": [names[number] for number in numbers],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def parse_view(content: bytes, label: str, advice: str) -> tuple[Camera, dict[int, str]]:
    """Read a member.

    Parameters
    ----------
    content : bytes
        All of it.
    label, advice : str
        What messages call it, and what they say to do.

    Raises
    ------
    DataError
        When it is no such object.

    """
    try:
        view = json.loads(content)
        camera = Camera.from_dict(view)
        instances, names = view["instances"], view["names"]
        if not all(isinstance(number, int) for number in instances) or not all(isinstance(name, str) for name in names):
            raise ValueError("instances must be integers, and their names strings")
        return camera, dict(zip(instances, names, strict=True))
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, OverflowError, SetsupError) as error:
        raise DataError(f"{label} is damaged: {' '.join(str(error).split())[:200]}; {advice}") from None
