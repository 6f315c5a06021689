"""Open shards in a folder or a store as a dataset."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from setsup.checks import check_arguments
from setsup.datasets.images import check_size
from setsup.errors import DataError
from setsup.shards.dataset import ShardedDataset
from setsup.shards.layout import CAMERA
from setsup.shards.locate import read_catalogue
from setsup.shards.reading import LocalReader, Reader
from setsup.shards.stores.cache import DEFAULT_BYTES
from setsup.shards.stores.opening import open_store
from setsup.shards.stores.reader import RemoteReader
from setsup.shards.views import ShardedViews

__all__ = ["open_shards"]


def open_shards(
    url: str | Path,
    *,
    index: str | Path | None = None,
    size: Sequence[int] | None = None,
    upright: bool = True,
    cache: int = DEFAULT_BYTES,
    storage_options: Mapping[str, Any] | None = None,
) -> ShardedDataset:
    """Open shards that :func:`setsup.write_shards` wrote, or that :func:`setsup.index_shards` has indexed.

    Shards on a disk are mapped into memory. Of shards in a store, the catalogue and the index are copied to the cache
    folder, and samples are read on demand, nearby ones together.

    Parameters
    ----------
    url : str or Path
        Folder, or address of a store that fsspec supports: ``s3://…``, ``gs://…``, ``https://…``, ``hf://…``.
    index : str or Path, optional
        Folder or address of ``shards.json`` and ``index.parquet``, if they are not next to the tars.
    size : (height, width), optional
        Resize all images, antialiased, until they just cover this size, and crop the centre.
    upright : bool
        Apply the orientation (Exif) of a JPEG. With False, images are as stored, as with the decoders of the webdataset
        library.
    cache : int, bytes
        Maximum size of local copies of what was read from a store; 0 for none.
    storage_options : mapping, optional
        Options of fsspec, such as ``{"endpoint_url": …}``.

    Returns
    -------
    ShardedDataset
        A :class:`~setsup.shards.views.ShardedViews` for shards of a rendering, whose rows have cameras.

    Raises
    ------
    DataError
        If there are no shards, they are not finished or not indexed, the catalogue or the index is damaged, or the
        store refuses access.

    Examples
    --------
    >>> import setsup, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> shapes = setsup.load("shapes3d-procedural").select(range(0, 480_000, 4_800))
    >>> _ = setsup.write_shards(shapes, folder, order="by:scale")
    >>> sharded = setsup.open_shards(folder, size=(32, 32))
    >>> sets = setsup.SetSampler(sharded.factors, inactive=["scale"], size=4, sets=1)
    >>> batch = next(iter(setsup.loader(sharded, sets, to="numpy", workers=0)))
    >>> batch["image"].shape, len(set(batch["factors"]["scale"][0].tolist()))
    ((1, 4, 32, 32, 3), 1)

    """
    check_arguments(open_shards, locals(), DataError)
    store = open_store(url, storage_options)
    about = store if index is None else open_store(index, storage_options)
    catalogue = read_catalogue(about)
    reader: Reader
    if store.folder is not None:
        reader = LocalReader(store.folder, catalogue)
    else:
        reader = RemoteReader(store, catalogue, cache)
    has_cameras = CAMERA in catalogue.members.keys() - catalogue.arrays.keys()
    kind = ShardedViews if has_cameras else ShardedDataset
    return kind(store, about, catalogue, reader, check_size(size), upright)
