"""Datasets of the Hugging Face Hub, of which shards that setsup wrote open as they were written."""

from collections.abc import Mapping, Sequence

from setsup.checks import check_arguments
from setsup.datasets import Dataset
from setsup.datasets.own.huggingface.dataset import Names
from setsup.datasets.own.huggingface.hub import HubAddress, ask_hub, download_shards, load_from_hub
from setsup.errors import DataError
from setsup.factors import Factor, Kind
from setsup.shards.layout import CATALOGUE
from setsup.shards.opening import open_shards

__all__ = ["open_from_hub"]


def open_from_hub(
    address: str,
    image: Names = None,
    factors: Sequence[Factor] = (),
    kinds: Mapping[str, Kind | str] | None = None,
    size: tuple[int, int] | None = None,
) -> Dataset:
    """Open a dataset of the Hub: shards with their catalogue by it, any other by ``datasets``."""
    check_arguments(open_from_hub, locals(), DataError)
    wanted = HubAddress.parse(address)
    answer = ask_hub(address, wanted)
    folder = download_shards(address, wanted, answer, CATALOGUE)
    if folder is None:
        return load_from_hub(address, wanted, answer, image, factors, kinds, size)
    given = [name for name, value in (("image", image), ("factors", factors), ("kinds", kinds)) if value]
    if given:
        raise DataError(
            f"{address} has shards that setsup wrote, whose images and factors are known; leave out "
            f"{', '.join(f'{name}=' for name in given)}"
        )
    return open_shards(folder, size=size)
