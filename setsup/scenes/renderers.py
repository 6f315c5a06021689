"""Find a renderer by its name, or the best one that works on this machine.

A package offers a renderer through the entry-point group ``setsup.renderers``, in its ``pyproject.toml``::

    [project.entry-points."setsup.renderers"]
    my-tracer = "my_package.tracing:Tracer"

where ``Tracer`` is a class as :class:`setsup.scenes.Renderer` describes, made without arguments.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from typing import Any

from setsup.checks import check_arguments
from setsup.errors import DataError, LibraryError, did_you_mean, require_modules
from setsup.optional import command, installed
from setsup.packages import other_entries, own_entries
from setsup.scenes.frame import Renderer

__all__ = ["RendererState", "choose", "need_rays", "need_renderer", "renderer", "renderer_states"]

_GROUP = "setsup.renderers"
_LIBRARIES = {"embree": "embreex", "gl": "moderngl", "pyrender": "pyrender"}
"""Of setsup's own renderers, the library that each needs."""
_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class RendererState:
    """A renderer, whether it works on this machine, and its device.

    Attributes
    ----------
    name : str
        ``"embree"``, ``"gl"``, ``"pyrender"``, or whatever a package registers.
    works : bool
        Whether it can draw here.
    detail : str
        On what it would draw, such as ``"llvmpipe (LLVM 15.0.6, 256 bits), software"``; or why it cannot.
    hardware : bool
        Whether a GPU would draw.
    why : str
        Of the renderer that :func:`choose` chose: why.

    """

    name: str
    works: bool
    detail: str
    hardware: bool = False
    why: str = ""


def renderer(name: str = "auto", *, supersample: int = 1) -> Renderer:
    """Make a renderer.

    Parameters
    ----------
    name : str
        ``"embree"``, ``"gl"``, ``"pyrender"``, another package's, or ``"auto"`` for what :func:`choose` chooses.
    supersample : int
        Colours are averages over n × n samples of each pixel, 1 to 16; depth and all other geometry stay those of the
        pixels' centres. ``embree`` and ``gl`` can; ``pyrender`` has four samples always.

    Returns
    -------
    Renderer
        It has no scene yet; what it needs to draw is looked for when the first one is loaded.

    Raises
    ------
    DataError
        When the renderer is unknown, it cannot be imported, none works on this machine (for ``"auto"``), or it cannot
        supersample.
    SetsupError
        When the number of samples is out of range.

    Examples
    --------
    >>> renderer("embree", supersample=2).name
    'embree'
    >>> renderer("embre")
    Traceback (most recent call last):
    setsup.errors.DataError: unknown renderer 'embre'; did you mean 'embree'?

    """
    check_arguments(renderer, locals(), DataError)
    if name == "auto":
        chosen = choose()
        _log.info("renderer %s: %s (%s)", chosen.name, chosen.why, chosen.detail)
        name = chosen.name
    known = _entries()
    if name not in known:
        raise DataError(f"unknown renderer {name!r}{did_you_mean(name, [*known, 'auto'])}")
    return _made(known[name], {} if supersample == 1 else {"supersample": supersample})


def choose() -> RendererState:
    """Choose the best renderer that works on this machine, and say why.

    That is ``gl`` where a GPU draws, else ``embree``, which is the reference and needs no driver, else ``gl`` on the
    processor, else ``pyrender``, else whatever other packages bring.

    Raises
    ------
    DataError
        When none works: why each cannot.

    """
    need_renderer()
    known = _entries()
    gl = _state(known["gl"]) if "gl" in known else None
    if gl is not None and gl.works and gl.hardware:
        return replace(gl, why="a GPU draws")
    failed = [] if gl is None or gl.works else [gl]
    for name in ("embree", "gl", "pyrender", *sorted(known.keys() - {"embree", "gl", "pyrender"})):
        if name not in known or (name == "gl" and (gl is None or not gl.works)):
            continue
        state = gl if name == "gl" and gl is not None else _state(known[name])
        if state.works:
            return replace(state, why=_why(state, failed))
        failed.append(state)
    reasons = "; ".join(f"{state.name}: {state.detail}" for state in failed)
    raise DataError(f"none of the renderers works on this machine: {reasons or 'none is installed'}")


def need_renderer(name: str = "auto") -> None:
    """Refuse to begin renders where the library of a renderer is missing, or those of all renderers.

    Parameters
    ----------
    name : str
        As for :func:`renderer`.

    Raises
    ------
    LibraryError
        When it is not installed.

    """
    if name == "embree":
        need_rays("the renderer embree needs")
    elif name in _LIBRARIES:
        require_modules(f"the renderer {name} needs", _LIBRARIES[name])
    elif name == "auto" and _entries().keys() <= _LIBRARIES.keys() and not any(map(installed, _LIBRARIES.values())):
        raise LibraryError(
            f"rendering requires {' or '.join(_LIBRARIES.values())}, but none of these is installed: "
            f"{command(_LIBRARIES.values())}"
        )


def need_rays(what: str) -> None:
    """Refuse to begin what traces rays where neither Embree nor trimesh's own rays are installed.

    Parameters
    ----------
    what : str
        What needs them, with its verb.

    Raises
    ------
    LibraryError
        When embreex is not installed, nor trimesh with its own rays.

    """
    if not (installed("trimesh") and installed("rtree")):
        require_modules(what, "embreex")


def renderer_states() -> list[RendererState]:
    """Look which renderers are installed, and on what each would draw here; sorted by name.

    Examples
    --------
    >>> [state.name for state in renderer_states()][:2]
    ['embree', 'gl']

    """
    return [_state(entry) for _, entry in sorted(_entries().items())]


def _why(state: RendererState, failed: list[RendererState]) -> str:
    if failed:
        return f"{' and '.join(renderer.name for renderer in failed)} cannot render here"
    return "no GPU renderer found; using Embree on the CPU" if state.name == "embree" else "the first that works"


def _entries() -> dict[str, EntryPoint]:
    """Entry points by name; another package cannot take the place of setsup's own."""
    return {entry.name: entry for entry in (*other_entries(_GROUP), *own_entries(_GROUP))}


def _state(entry: EntryPoint) -> RendererState:
    try:
        detail = _class(entry).check()
    except DataError as error:
        return RendererState(entry.name, False, str(error))
    except Exception as error:  # a check() of another package may fail in any way; the others work nevertheless
        return RendererState(entry.name, False, f"{type(error).__name__}: {error}")
    return RendererState(entry.name, True, detail, "software" not in detail)


def _made(entry: EntryPoint, options: Mapping[str, int]) -> Renderer:
    made: Any = _class(entry)
    try:
        renderer = made(**options)
    except TypeError as error:
        how = f"with {' and '.join(options)}; omit it, or choose embree or gl" if options else "without arguments"
        raise DataError(f"could not create {_said(entry)} {how}: {error}") from error
    if not isinstance(renderer, Renderer):
        raise DataError(f"{_said(entry)} is {entry.value}, which does not implement setsup.scenes.Renderer")
    return renderer


def _class(entry: EntryPoint) -> type[Renderer]:
    try:
        loaded = entry.load()
    except Exception as error:  # importing another package may fail in any way
        raise DataError(f"could not load {_said(entry)}: {type(error).__name__}: {error}") from error
    if not isinstance(loaded, type) or not hasattr(loaded, "check"):
        raise DataError(f"{_said(entry)} is {entry.value}, which does not implement setsup.scenes.Renderer")
    return loaded


def _said(entry: EntryPoint) -> str:
    return f"the renderer {entry.name!r} of the package {entry.dist.name if entry.dist else entry.module}"
