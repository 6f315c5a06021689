"""``setsup doctor``: what works on this machine. Little is imported to find out.

Renderers are asked themselves. Those that draw with OpenGL ask a process of their own, once each, so that a driver
that crashes does not take the command with it; pyrender's imports are most of the second or two the command takes.
"""

import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from setsup.errors import DataError
from setsup.files import cache_folder, existing_folder, manifest_folder, readable_size
from setsup.optional import LIBRARIES, installed
from setsup_cli.output import show_json, show_table
from setsup_cli.parsing.arguments import Json

__all__ = ["HELP", "Check", "Options", "run"]

HELP = "Exit code 0 when all that setsup needs is there, 2 otherwise; what is optional does not count."

_LITTLE = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: whether it is ``ok``, ``missing`` (needed) or ``absent`` (optional), and what to do."""

    name: str
    state: str
    detail: str


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb."""

    json: Json = False


def run(options: Options) -> int:
    """Look, and print a line for each thing."""
    checks = [_python(), *_needed(), *_wished(), _display(), *_renderers(), _manifests(), *_cache()]
    if options.json:
        show_json([asdict(check) for check in checks])
    else:
        show_table(["what", "state", ""], [[check.name, check.state, check.detail] for check in checks])
    return 2 if any(check.state == "missing" for check in checks) else 0


def _python() -> Check:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return Check("python", "ok", f"{platform.python_version()}, {machine}, setsup {version('setsup')}")


def _needed() -> list[Check]:
    """Look for what the distribution itself says that it needs."""
    found = []
    for requirement in requires("setsup") or ():
        if "extra ==" in requirement:
            continue
        name = requirement.split(">=")[0].split(";")[0].strip()
        try:
            found.append(Check(name, "ok", version(name)))
        except PackageNotFoundError:
            found.append(Check(name, "missing", f"run `pip install '{requirement}'`"))
    return found


def _wished() -> list[Check]:
    """Look for every optional library: its version, what needs it, and which extra brings it."""
    found = []
    for module, library in LIBRARIES.items():
        here = installed(module)
        try:
            detail = version(library.package) if here else "not installed"
        except PackageNotFoundError:
            detail = "of unknown version"
        extra = f"extra {library.extras[0]}" if library.extras else f"pip install {library.package}"
        found.append(Check(library.package, "ok" if here else "absent", f"{detail}; for {library.use} ({extra})"))
    return found


def _display() -> Check:
    from ctypes.util import find_library

    names = ("EGL", "GL") if sys.platform != "darwin" else ("OpenGL",)
    found = [name for name in names if find_library(name)]
    if found:
        return Check("GL", "ok", f"system libraries: {', '.join(found)}")
    return Check("GL", "absent", "for rendering with OpenGL: install libegl1 or your graphics driver")


def _renderers() -> list[Check]:
    """On what each renderer draws, or why it cannot; and which one ``renderer("auto")`` takes."""
    from setsup.scenes.renderers import choose, renderer_states

    states = renderer_states()
    found = [Check(f"renderer {one.name}", "ok" if one.works else "absent", one.detail) for one in states]
    try:
        chosen = choose()
        return [*found, Check("renderer auto", "ok", f"{chosen.name}: {chosen.why}")]
    except DataError:  # the lines above say why each cannot draw
        return [*found, Check("renderer auto", "absent", "none can draw here: the lines above say why")]


def _manifests() -> Check:
    return Check("manifests", "ok", str(manifest_folder()))


def _cache() -> list[Check]:
    folder = cache_folder()
    place = existing_folder(folder)
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        mend = "set SETSUP_CACHE to a folder that can be written"
        return [Check("cache", "missing", f"{folder} cannot be written; {mend}")]
    free = shutil.disk_usage(place).free
    little = "; that is little for data sets" if free < _LITTLE else ""
    shared = os.environ.get("SETSUP_DATA")
    data = [Check("data", "ok" if os.path.isdir(shared) else "absent", f"SETSUP_DATA={shared}")] if shared else []
    return [Check("cache", "ok", f"{folder}, {readable_size(free)} free{little}"), *data]
