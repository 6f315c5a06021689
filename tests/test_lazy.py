import inspect
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


def test_the_module_is_imported_on_first_use_and_after_the_check(monkeypatch):
    package = ModuleType("package_of_a_test")
    inner = ModuleType("package_of_a_test.inner")
    inner.number = 3
    monkeypatch.setitem(sys.modules, package.__name__, package)
    asked = []

    def check(name, home):
        asked.append((name, home))
        if len(asked) == 1:
            raise LibraryError("a library is missing")

    package.__getattr__ = lazy_names(package.__name__, {"inner": ("number",)}, check)
    with pytest.raises(LibraryError, match="missing"):
        package.number  # noqa: B018
    monkeypatch.setitem(sys.modules, inner.__name__, inner)
    assert (package.number, package.number) == (3, 3)
    assert asked == [("number", "inner")] * 2, "a name that was found is not looked up again"
