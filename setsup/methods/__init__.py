"""What methods of several papers share: similarities, states by row, networks, and the papers' recipes by name."""

# ruff: noqa: E402

from setsup.errors import require_modules

require_modules("methods need", "torch")  # before what imports them


from setsup.methods.similarity import similarities

__all__ = ["similarities"]
