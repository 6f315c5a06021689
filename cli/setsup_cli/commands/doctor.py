"""``setsup doctor``: checks what works on this machine.

OpenGL renderers are tried in a process of their own, since a driver may crash it.
"""

import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated

from setsup.errors import DataError
from setsup.files import cache_folder, existing_folder, manifest_folder, readable_size
from setsup.optional import LIBRARIES, command, installed
from setsup_cli.gpu import download_line, gpu_lines, install_line
from setsup_cli.output import say, show_json, show_table
from setsup_cli.parsing.arguments import Common, flag
from setsup_cli.suggestions import advise_command

__all__ = ["HELP", "Check", "Options", "run"]

HELP = """\
The exit code is 0 if all required packages are installed, and 2 otherwise; optional packages do not affect it. With
--gpu, it is 0 if torch can use a GPU."""

_LITTLE = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One check: ``ok``, ``missing`` (required) or ``absent`` (optional), and what to do."""

    name: str
    state: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    gpu: Annotated[
        bool, flag("Check the GPU instead: driver, torch, OpenGL, packages; and print how to download what is missing.")
    ] = False


def run(options: Options) -> int:
    """Check, and print a line for each result."""
    if options.gpu:
        return _run_gpu(options)
    checks = [_python(), *_required(), *_optional(), _display(), *_renderers(), _manifests(), *_cache()]
    if options.json:
        show_json([asdict(check) for check in checks])
    else:
        show_table(["what", "state", ""], [[check.name, check.state, check.detail] for check in checks])
        if absent := _absent_uses():
            say()
            show_table(["to add", "for"], absent)
        advise_command(options, ["setsup", "sample", "--inactive", "wall_hue"])
    return 2 if any(check.state == "missing" for check in checks) else 0


def _run_gpu(options: Options) -> int:
    """Check the GPU, and print how packages are brought to a machine without a network."""
    checks = [_python(), *(Check(*line) for line in gpu_lines())]
    commands = {"download": download_line(), "install": install_line()}
    if options.json:
        show_json([asdict(check) for check in checks] + [asdict(Check(n, "ok", c)) for n, c in commands.items()])
    else:
        show_table(["what", "state", ""], [[check.name, check.state, check.detail] for check in checks])
        alike = f"{platform.system()} {platform.machine()} and Python {sys.version_info.major}.{sys.version_info.minor}"
        say(f"\nto download all wheels, in a clone on a machine with a network, {alike}:\n{commands['download']}")
        say(f"\nto install them here, in that clone with its folder wheels:\n{commands['install']}")
        advise_command(options, ["make", "gpu"])
    return 2 if any(check.state == "missing" for check in checks) else 0


def _python() -> Check:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return Check("python", "ok", f"{platform.python_version()}, {machine}, setsup {version('setsup')}")


def _required() -> list[Check]:
    """Check the packages that the distribution requires."""
    lines = []
    for requirement in requires("setsup") or ():
        if "extra ==" in requirement:
            continue
        name = requirement.split(">=")[0].split(";")[0].strip()
        try:
            lines.append(Check(name, "ok", version(name)))
        except PackageNotFoundError:
            lines.append(Check(name, "missing", f"run `pip install '{requirement}'`"))
    return lines


def _optional() -> list[Check]:
    """Check every optional library: its version, its use, and the extra that installs it."""
    lines = []
    for module, library in LIBRARIES.items():
        here = installed(module)
        try:
            detail = version(library.package) if here else "not installed"
        except PackageNotFoundError:
            detail = "of unknown version"
        extra = f"extra {library.extras[0]}" if library.extras else f"pip install {library.package}"
        lines.append(Check(library.package, "ok" if here else "absent", f"{detail}; for {library.use} ({extra})"))
    return lines


def _absent_uses() -> list[list[str]]:
    """What optional libraries that are not installed are for, and the command that installs them; a row per extra."""
    uses: dict[str, list[str]] = {}
    for module, library in LIBRARIES.items():
        if not installed(module):
            uses.setdefault(command([module]), []).append(library.use)
    return [[install, "; ".join(dict.fromkeys(texts))] for install, texts in uses.items()]


def _display() -> Check:
    from ctypes.util import find_library

    names = ("EGL", "GL") if sys.platform != "darwin" else ("OpenGL",)
    libraries = [name for name in names if find_library(name)]
    if libraries:
        return Check("GL", "ok", f"system libraries: {', '.join(libraries)}")
    return Check("GL", "absent", "for rendering with OpenGL: install libegl1 or your graphics driver")


def _renderers() -> list[Check]:
    """The device of each renderer, or why it does not work; and the choice of ``renderer("auto")``."""
    from setsup.scenes.renderers import choose, renderer_states

    states = renderer_states()
    lines = [Check(f"renderer {state.name}", "ok" if state.works else "absent", state.detail) for state in states]
    try:
        chosen = choose()
        return [*lines, Check("renderer auto", "ok", f"{chosen.name}: {chosen.why}")]
    except DataError:
        return [
            *lines,
            Check("renderer auto", "absent", "no renderer works on this machine; the lines above show the reasons"),
        ]


def _manifests() -> Check:
    return Check("manifests", "ok", str(manifest_folder()))


def _cache() -> list[Check]:
    folder = cache_folder()
    existing = existing_folder(folder)
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        return [Check("cache", "missing", f"{folder} cannot be written; set SETSUP_CACHE to a writable folder")]
    free = shutil.disk_usage(existing).free
    little = "; that is little for datasets" if free < _LITTLE else ""
    shared = os.environ.get("SETSUP_DATA")
    data = [Check("data", "ok" if os.path.isdir(shared) else "absent", f"SETSUP_DATA={shared}")] if shared else []
    return [Check("cache", "ok", f"{folder}, {readable_size(free)} free{little}"), *data]
