"""Camelyon17-WILDS: 455,954 patches of lymph nodes of five hospitals, half of them with tumour.

Convention
----------
Rows are the lines of ``metadata.csv``. Its column ``split`` tells training from validation in three hospitals; of the
two others one is for validation and one for the test, as WILDS has it.
"""

from pathlib import Path

from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.benchmarks.wilds.release import codes_of, find_release, integers_of, rows_with_images
from setsup.datasets.images import check_size
from setsup.factors import Factor, Kind

__all__ = ["open"]

_SPLITS = ("train", "id_val", "test", "val")
_TEST, _VALIDATION = "2", "1"
_COLUMNS = ("patient", "node", "x_coord", "y_coord", "tumor", "slide", "center", "split")
_IMAGES = {r"patches/patient_[^/]+/patch_[^/]+\.png": "patches/patient_*_node_*/*.png"}


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open Camelyon17-WILDS: the folder ``camelyon17_v1.0``, or a zip or tar of it.

    Factors: ``tumor``, ``hospital``, ``slide`` (nested in the hospital), the keys ``patient`` and ``node``, and
    ``split``: ``train`` and ``id_val`` of the hospitals 0, 3 and 4, ``val`` of 1 and ``test`` of 2.

    `size` (height, width), optional; patches have 96 × 96 pixels.

    References
    ----------
    .. [1] Bándi et al., "From Detection of Individual Metastases to Classification of Lymph Node Status at the Patient
       Level: The CAMELYON17 Challenge", IEEE Transactions on Medical Imaging 2018.
    .. [2] Koh, Sagawa, Marklund et al., "WILDS: A Benchmark of in-the-Wild Distribution Shifts", ICML 2021, section 4.

    """
    size = check_size(size)
    release, table = find_release("camelyon17", root, "metadata.csv", _COLUMNS, _IMAGES, "v1.0")
    label = release.label(release.place("metadata.csv"))
    columns = (table[name].tolist() for name in ("patient", "node", "x_coord", "y_coord"))
    names = [
        f"patches/patient_{patient}_node_{node}/patch_patient_{patient}_node_{node}_x_{x}_y_{y}.png"
        for patient, node, x, y in zip(*columns, strict=True)
    ]
    rows, places = rows_with_images(release, names)
    kept = {name: values[rows] for name, values in table.items()}
    split = codes_of(kept["split"], "split", label, {"0": 0, "1": 1, "2": 2, "3": 3})
    split[kept["center"] == _VALIDATION] = _SPLITS.index("val")
    split[kept["center"] == _TEST] = _SPLITS.index("test")
    factors = [
        (Factor("tumor", Kind.NOMINAL, (False, True)), codes_of(kept["tumor"], "tumor", label, {"0": 0, "1": 1})),
        nominal("hospital", integers_of(kept["center"], "center", label)),
        nominal("slide", integers_of(kept["slide"], "slide", label), within="hospital"),
        nominal("patient", kept["patient"].tolist(), role="key"),
        nominal("node", integers_of(kept["node"], "node", label), role="key"),
        (Factor("split", Kind.NOMINAL, _SPLITS, role="split"), split),
    ]
    return ImageFilesDataset("camelyon17", table_of(factors), MemberImages(release, places), size)
