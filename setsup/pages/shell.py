"""The files that a page is made of, and the document that loads them."""

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

__all__ = ["FILES", "POLICY", "document", "plain_document", "script_text", "single_document", "static"]

SCRIPTS = (
    "htm-preact.js",
    "get.js",
    "parts.js",
    "dataset.js",
    "sheets.js",
    "sampler.js",
    "correspondences.js",
    "results.js",
    "runs.js",
    "scatter.js",
    "embedding.js",
    "app.js",
)
STYLES = ("style.css", "runs.css")
FILES = (*SCRIPTS, *STYLES)
_VENDOR = ("htm-preact.js",)

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src {styles}; img-src {images}; connect-src {connect}; "
    "base-uri 'none'; form-action 'none'"
)


@cache
def static(name: str) -> bytes:
    """A file of the page, one of :data:`FILES`."""
    folder = files("setsup.pages").joinpath("static")
    return (folder.joinpath("vendor", name) if name in _VENDOR else folder.joinpath(name)).read_bytes()


def document(title: str, transport: str, base: str, policy: str | None, scripts: Sequence[str] = ()) -> bytes:
    """The document of a page whose files are below ``base``; more scripts come before those of the page."""
    names = [*(f"{base}{name}" for name in SCRIPTS[:2]), *scripts, *(f"{base}{name}" for name in SCRIPTS[2:])]
    head = [f'<link rel="stylesheet" href="{base}{name}">' for name in STYLES]
    return _whole(title, policy, head, _body(title, [f'<script src="{name}"></script>' for name in names]), transport)


def single_document(title: str, data: Iterable[str]) -> bytes:
    """A document that holds all its files, and answers as scripts."""
    texts = [static(name).decode() for name in SCRIPTS]
    texts[2:2] = data
    head, styles = _styles()
    policy = POLICY.format(scripts=" ".join(map(_hashed, texts)), styles=styles, images="data:", connect="'none'")
    return _whole(title, policy, head, _body(title, [f"<script>{text}</script>" for text in texts]), "files")


def plain_document(title: str, body: str) -> bytes:
    """A document without scripts, in the look of the page; `body` is HTML."""
    head, styles = _styles()
    policy = POLICY.format(scripts="'none'", styles=styles, images="data:", connect="'none'")
    return _whole(title, policy, head, [body])


def _styles() -> tuple[list[str], str]:
    """Style sheets within a document, and the hashes by which its policy lets them."""
    styles = [static(name).decode() for name in STYLES]
    return [f"<style>{text}</style>" for text in styles], " ".join(map(_hashed, styles))


def _body(title: str, scripts: Sequence[str]) -> list[str]:
    """Scripts after a heading, which is painted while the rest is asked for."""
    heading = f'<div id="page"><header><h1>{html.escape(title)}</h1></header></div>'
    return [heading, "<noscript>This page needs JavaScript.</noscript>", *scripts]


def _whole(title: str, policy: str | None, head: Sequence[str], body: Sequence[str], transport: str = "") -> bytes:
    data = f' data-transport="{transport}"' if transport else ""
    about = "" if policy is None else f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
    lines = [
        f'<!doctype html>\n<html lang="en"{data}>\n<head>\n<meta charset="utf-8">',
        f'{about}<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">',
        f"<title>{html.escape(title)}</title>",
        *head,
        "</head>\n<body>",
        *body,
        "</body>\n</html>\n",
    ]
    return "\n".join(lines).encode()


def _hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def script_text(value: object) -> str:
    """JSON that may stand in a script of a document."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
