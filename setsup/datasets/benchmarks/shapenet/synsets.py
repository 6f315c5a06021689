"""Names of ShapeNetCore's categories: from the taxonomy of a release, else the widely known names."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from setsup.datasets.formats.json_text import read_json
from setsup.errors import DamagedFile

__all__ = ["category_names"]

_KNOWN = MappingProxyType(
    {
        **{"02691156": "airplane", "02747177": "ashcan", "02773838": "bag", "02801938": "basket"},
        **{"02808440": "bathtub", "02818832": "bed", "02828884": "bench", "02843684": "birdhouse"},
        **{"02871439": "bookshelf", "02876657": "bottle", "02880940": "bowl", "02924116": "bus"},
        **{"02933112": "cabinet", "02942699": "camera", "02946921": "can", "02954340": "cap", "02958343": "car"},
        **{"02992529": "cellular telephone", "03001627": "chair", "03046257": "clock"},
        **{"03085013": "computer keyboard", "03207941": "dishwasher", "03211117": "display"},
        **{"03261776": "earphone", "03325088": "faucet", "03337140": "file", "03467517": "guitar"},
        **{"03513137": "helmet", "03593526": "jar", "03624134": "knife", "03636649": "lamp", "03642806": "laptop"},
        **{"03691459": "loudspeaker", "03710193": "mailbox", "03759954": "microphone"},
        **{"03761084": "microwave", "03790512": "motorcycle", "03797390": "mug", "03928116": "piano"},
        **{"03938244": "pillow", "03948459": "pistol", "03991062": "pot", "04004475": "printer"},
        **{"04074963": "remote control", "04090263": "rifle", "04099429": "rocket", "04225987": "skateboard"},
        **{"04256520": "sofa", "04330267": "stove", "04379243": "table", "04401088": "telephone"},
        **{"04460130": "tower", "04468005": "train", "04530566": "vessel", "04554684": "washer"},
    }
)


def category_names(synsets: Sequence[str], taxonomy: bytes | None, label: str) -> tuple[str, ...]:
    """Name categories, each differently.

    Examples
    --------
    >>> category_names(["03001627", "02691156", "00000000"], None, "")
    ('chair', 'airplane', '00000000')

    """
    known = dict(_KNOWN)
    if taxonomy is not None:
        known.update(_name_nodes(read_json(taxonomy, label), label))
    names = [known.get(synset) or synset for synset in synsets]
    # two synsets may share a name, but levels must differ
    return tuple(
        name if names.count(name) == 1 else f"{name} {synset}" for name, synset in zip(names, synsets, strict=True)
    )


def _name_nodes(nodes: Any, label: str) -> dict[str, str]:
    try:
        return {node["synsetId"]: node["name"].split(",")[0].strip() for node in nodes}
    except (TypeError, KeyError, AttributeError) as error:
        raise DamagedFile(f"{label} is not a list of synsets with 'synsetId' and 'name'") from error
