"""Pages on which datasets, draws and runs are looked at: live, or as files that open with a double click.

A *source* answers questions, an *answer* is JSON or an image, a *page* says what is shown. One client asks one
function, ``get(key)``; its answers come from :func:`serve`, on this machine alone, or from files that :func:`export`
wrote.
"""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup.pages.answers import Answer, Query, Source
    from setsup.pages.embedding_page import EmbeddingSource, open_embeddings
    from setsup.pages.exporting import export
    from setsup.pages.page import Page, page_of
    from setsup.pages.published_results import report_page
    from setsup.pages.server import serve

__all__ = [
    "Answer",
    "EmbeddingSource",
    "Page",
    "Query",
    "Source",
    "export",
    "open_embeddings",
    "page_of",
    "report_page",
    "serve",
]

if not TYPE_CHECKING:
    _HOMES = {
        "answers": ("Answer", "Query", "Source"),
        "embedding_page": ("EmbeddingSource", "open_embeddings"),
        "exporting": ("export",),
        "page": ("Page", "page_of"),
        "published_results": ("report_page",),
        "server": ("serve",),
    }

    __getattr__ = lazy_names(__name__, _HOMES, {"starlette": ("server",), "uvicorn": ("server",)})

    def __dir__() -> list[str]:
        return sorted(__all__)
