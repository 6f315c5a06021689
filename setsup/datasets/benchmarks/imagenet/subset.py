"""ImageNet-100: the images of a hundred synsets of ImageNet, chosen by a list."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from setsup.datasets.benchmarks.imagenet.dataset import SynsetImages
from setsup.datasets.benchmarks.imagenet.files import find_files, only
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.files.expand_user import expanded
from setsup.files.texts import read_beside, text_of

__all__ = ["CMC", "open", "read_synsets"]

CMC = tuple(
    """
    n02869837 n01749939 n02488291 n02107142 n13037406 n02091831 n04517823 n04589890 n03062245 n01773797
    n01735189 n07831146 n07753275 n03085013 n04485082 n02105505 n01983481 n02788148 n03530642 n04435653
    n02086910 n02859443 n13040303 n03594734 n02085620 n02099849 n01558993 n04493381 n02109047 n04111531
    n02877765 n04429376 n02009229 n01978455 n02106550 n01820546 n01692333 n07714571 n02974003 n02114855
    n03785016 n03764736 n03775546 n02087046 n07836838 n04099969 n04592741 n03891251 n02701002 n03379051
    n02259212 n07715103 n03947888 n04026417 n02326432 n03637318 n01980166 n02113799 n02086240 n03903868
    n02483362 n04127249 n02089973 n03017168 n02093428 n02804414 n02396427 n04418357 n02172182 n01729322
    n02113978 n03787032 n02089867 n02119022 n03777754 n04238763 n02231487 n03032252 n02138441 n02104029
    n03837869 n03494278 n04136333 n03794056 n03492542 n02018207 n04067472 n03930630 n03584829 n02123045
    n04229816 n02100583 n03642806 n04336792 n03259280 n02116738 n02108089 n03424325 n01855672 n02090622
    """.split()
)
"""The synsets of CMC's ImageNet-100, in the order of the list that its authors published with their code."""

_MOST = 1 << 20
_FIX = "pass a text file with one synset per line, such as n01440764"


def open(
    root: Path | str | None = None,
    size: tuple[int, int] | None = None,
    synsets: Path | str | Sequence[str] | None = None,
) -> SynsetImages:
    """Open a fixed subset of ImageNet: by default the 100 synsets of CMC.

    `size` (height, width), optional.
    """
    size = check_size(size)
    wanted, where = (CMC, "CMC's list") if synsets is None else _read_list(synsets)
    return SynsetImages("imagenet-100", only(find_files("imagenet-100", root), wanted, where), size=size)


def read_synsets(path: Path | str) -> tuple[str, ...]:
    r"""Read a list of synsets: the first word of each non-empty line."""
    path = expanded(path)
    content = read_beside(path, _MOST, "a list of synsets")
    lines = [line.split() for line in text_of(content, str(path), _FIX).splitlines()]
    return _check([line[0] for line in lines if line], str(path))


def _read_list(synsets: Path | str | Sequence[str]) -> tuple[tuple[str, ...], str]:
    if isinstance(synsets, Path | str):
        return read_synsets(synsets), str(synsets)
    return _check(list(synsets), "synsets="), "synsets="


def _check(synsets: Sequence[str], where: str) -> tuple[str, ...]:
    if not synsets:
        raise DamagedFile(f"{where} lists no synsets", _FIX)
    for synset in synsets:
        if not isinstance(synset, str) or not re.fullmatch(r"n[0-9]{8}", synset):
            raise DamagedFile(
                f"{where} lists {str(synset)[:40]!r}, which is not a synset; expected an id such as n01440764", _FIX
            )
    [(most, times)] = Counter(synsets).most_common(1)
    if times > 1:
        raise DamagedFile(f"{where} lists {most} twice", _FIX)
    return tuple(synsets)
