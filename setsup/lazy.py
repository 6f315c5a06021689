"""Names of a package that are imported on first use."""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module

from setsup.errors import require_modules

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]], needs: Mapping[str, Collection[str]] | None = None
) -> Callable[[str], object]:
    """Make the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Name of the package.
    homes : mapping of str to iterable of str
        Names by the modules that define them, as in ``{"meshes.mesh": ("Material", "Mesh")}``.
    needs : mapping of str to collection of str, optional
        Modules by the optional libraries that they need, as in ``{"torch": ("losses",)}``; a LibraryError says which of
        these is missing before the module is imported.

    """
    modules = {name: module for module, names in homes.items() for name in names}
    libraries = {module: [library for library, users in (needs or {}).items() if module in users] for module in homes}

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        require_modules(f"{name} needs", *libraries[module])
        value = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
