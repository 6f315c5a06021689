import subprocess
import sys

import pytest

from setsup.scenes import recipes


def test_every_name_is_there() -> None:
    for name in recipes.__all__:
        assert getattr(recipes, name) is not None
    for name, kind in recipes.RECIPES.items():
        assert getattr(recipes, kind).name == name
    with pytest.raises(AttributeError, match="no attribute 'Shapes2D'"):
        _ = recipes.Shapes2D


def test_importing_recipes_loads_no_library_of_meshes() -> None:
    program = (
        "import sys; from setsup.scenes.recipes import FunctionRecipe, ObjectView, Shapes3D;"
        "print([name for name in ('trimesh', 'embreex', 'moderngl', 'pyrender', 'torch') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
