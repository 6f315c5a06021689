"""From draws to batches: a loader for any trainer, and the integration with torch."""

from setsup.loading.loader import Loader, loader
from setsup.loading.torch import as_torch, set_batches

__all__ = ["Loader", "as_torch", "loader", "set_batches"]
