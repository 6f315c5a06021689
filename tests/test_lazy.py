import inspect
import pkgutil
import sys
from importlib import import_module
from types import ModuleType

import pytest

from setsup.errors import LibraryError
from setsup.lazy import lazy_names

PACKAGES = ("", ".evaluation", ".experiments", ".files", ".scenes", ".scenes.recipes", ".shards")


@pytest.mark.parametrize("package", [f"setsup{package}" for package in PACKAGES])
def test_every_public_name_is_found_once_and_kept(package):
    module = import_module(package)
    for name in module.__all__:
        found = getattr(module, name)
        assert vars(module)[name] is found
        if inspect.isclass(found) or inspect.isfunction(found):
            assert found.__module__.startswith("setsup")
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_no_lazy_name_is_that_of_a_module():
    """Python makes an imported module an attribute of its package, where it would stand for the name."""
    roots = [import_module(name) for name in ("setsup", "setsup_cli", "setsup_papers", "setsup_renderers")]
    inner = (one for root in roots for one in pkgutil.walk_packages(root.__path__, f"{root.__name__}."))
    packages = roots + [import_module(one.name) for one in inner if one.ispkg]
    lazy = [package for package in packages if "__getattr__" in vars(package)]
    assert len(lazy) >= len(PACKAGES)
    for package in lazy:
        modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
        assert not modules.intersection(getattr(package, "__all__", ())), package.__name__


def test_the_module_is_imported_on_first_use_and_after_its_libraries(monkeypatch):
    package = ModuleType("package_of_a_test")
    inner = ModuleType("package_of_a_test.inner")
    inner.number, inner.word = 3, "three"
    for module in (package, inner):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    homes = {"inner": ("number", "word"), "absent": ("other",)}
    package.__getattr__ = lazy_names(package.__name__, homes, {"no_such_library": ("absent",), "numpy": ("inner",)})
    assert (package.number, package.number, package.word) == (3, 3, "three")
    assert vars(package)["number"] == 3, "a name that was found is not looked up again"
    with pytest.raises(LibraryError, match="other needs no_such_library, which is not installed"):
        package.other  # noqa: B018
