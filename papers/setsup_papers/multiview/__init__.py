"""Views that share a stated subset of latents: one block of the embedding for each subset, after arXiv 2311.04056."""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup_papers.multiview.block_contrast import BlockContrast
    from setsup_papers.multiview.experiments import PRESETS
    from setsup_papers.multiview.measures import BlockRegressions, explained_variance
    from setsup_papers.multiview.settings import BlockContrastSettings, SharedFactors

__all__ = [
    "PRESETS",
    "BlockContrast",
    "BlockContrastSettings",
    "BlockRegressions",
    "SharedFactors",
    "explained_variance",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "block_contrast": ("BlockContrast",),
            "experiments": ("PRESETS",),
            "measures": ("BlockRegressions", "explained_variance"),
            "settings": ("BlockContrastSettings", "SharedFactors"),
        },
        needs={"torch": ("block_contrast",), "lightning": ("block_contrast",)},
    )

    def __dir__() -> list[str]:
        return sorted(__all__)
