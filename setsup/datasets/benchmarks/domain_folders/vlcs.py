"""VLCS: 10,729 photographs of five categories, of four collections that were made with different aims."""

from pathlib import Path

from setsup.datasets.benchmarks.domain_folders.reader import DomainImages, Domains, open_tree

__all__ = ["open"]

_VLCS = Domains(
    "vlcs",
    {"Caltech101": "(?i:Caltech101)", "LabelMe": "(?i:LabelMe)", "SUN09": "(?i:SUN09)", "VOC2007": "(?i:VOC2007)"},
    ("VLCS.tar.gz", "VLCS.zip", "VLCS.tar", "VLCS"),
)


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> DomainImages:
    """Open VLCS: a folder, zip or tar with ``<collection>/<category>/<image>``, as DomainBed has it.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Fang, Xu, Rockmore, "Unbiased Metric Learning: On the Utilization of Multiple Datasets and Web Images for
       Softening Bias", ICCV 2013.

    """
    return open_tree(_VLCS, root, size)
