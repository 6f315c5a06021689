"""Semantic classes of what stands in generated rooms, as many as the thirteen that are customary for NYU Depth."""

__all__ = ["CLASSES", "class_number"]

_NAMES = {
    "wall": ("walls",),
    "floor": ("floor",),
    "ceiling": ("ceiling",),
    "window": ("window",),
    "door": ("door",),
    "cabinet": ("shelf", "cupboard", "sideboard"),
    "bed": ("bed",),
    "sofa": ("sofa",),
    "table": ("table", "desk"),
    "chair": ("chair",),
    "picture": ("picture",),
    "rug": ("rug",),
    "lamp or plant": ("lamp", "plant"),
    "object": (),
}
"""Names of instances by class; all others are objects."""

CLASSES = ("nothing", *_NAMES)
"""Names of the classes; the first one is what is seen through windows."""

_LABELS = {name: CLASSES.index(label) for label, names in _NAMES.items() for name in names}


def class_number(name: str) -> int:
    """Number of the class of an instance of a generated room."""
    return _LABELS.get(name, CLASSES.index("object"))
