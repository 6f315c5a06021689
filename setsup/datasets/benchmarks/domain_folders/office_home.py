"""Office-Home: images of 65 things of offices and homes: art, clip art, catalogues and photographs."""

from pathlib import Path

from setsup.datasets.benchmarks.domain_folders.reader import DomainImages, Domains, open_tree

__all__ = ["open"]

_OFFICE = Domains(
    "office-home",
    {
        "Art": "(?i:Art)",
        "Clipart": "(?i:Clipart)",
        "Product": "(?i:Product)",
        "Real World": "(?i:Real[ _-]?World)",
    },
    ("OfficeHomeDataset_10072016.zip", "OfficeHomeDataset_10072016", "office_home.zip", "office_home"),
)


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> DomainImages:
    """Open Office-Home: a folder, zip or tar with ``<domain>/<category>/<image>``.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Venkateswara, Eusebio, Chakraborty, Panchanathan, "Deep Hashing Network for Unsupervised Domain Adaptation",
       CVPR 2017.

    """
    return open_tree(_OFFICE, root, size)
