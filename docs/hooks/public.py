"""The page of `setsup` itself: every name that users import from it, and where its full documentation is."""

import inspect
from importlib import import_module

import docstrings
import reference

import setsup


def names() -> str:
    """Table of the public names; those that no other page documents are documented below it."""
    documented = _documented()
    rows, missing = ["| name | description |", "|---|---|"], []
    for name in sorted([*setsup.__all__, "open"], key=lambda name: (name.startswith("__"), name.lower())):
        if name == "__version__":
            rows.append('| `__version__` | Version of the installed package, such as `"0.1.0"`. |')
            continue
        value = getattr(setsup, name)
        place = next((link for link, found in documented.get(_letters(name), ()) if _value(found) is value), None)
        if place is None:
            missing.append(f"setsup.{name}")
            place = f"#setsup.{name}"
        rows.append(f"| [`{name}`]({place}) | {_first_line(value)} |")
    return "\n".join([*rows, *(f"\n::: {name}" for name in missing)])


def _documented() -> dict[str, list[tuple[str, str]]]:
    """Links and paths of what the other pages document, by the letters of their last words: `loader` is a `Loader`."""
    found = dict[str, list[tuple[str, str]]]()
    for path, page in reference.documented().items():
        found.setdefault(_letters(path.rpartition(".")[2]), []).append((f"{page}#{path}", path))
    return found


def _letters(name: str) -> str:
    """A name as it is sought: `batch_sampler` is a `BatchSampler`."""
    return name.lower().replace("_", "")


def _value(path: str) -> object:
    """What has a path. A package may have a name that hides its module: `setsup.loading.loader` is a class, too."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name, None)
    except ModuleNotFoundError:  # a method of a class
        return None


def _first_line(value: object) -> str:
    # up to the first empty line: a sentence may be longer than a line
    paragraph = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return docstrings.rewritten(paragraph).strip().replace("\n", " ").replace("``", "`").replace("|", "&#124;")
