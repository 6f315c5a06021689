"""Names of a package that are imported on first use."""

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]], check: Callable[[str, str], None] | None = None
) -> Callable[[str], object]:
    """Make the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Name of the package.
    homes : mapping of str to iterable of str
        Names by the modules that define them, as in ``{"meshes.mesh": ("Material", "Mesh")}``.
    check : callable, optional
        Called with a name and its module before the import, to say that a library is missing.

    """
    modules = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if check is not None:
            check(name, modules[name])
        found = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return get
