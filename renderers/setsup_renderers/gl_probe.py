"""Ask a process of its own what a driver of OpenGL can do: a context here would be in the way of forked ones."""

import json
import subprocess
import sys
from functools import cache

from setsup.errors import DataError, SetsupError

__all__ = ["asked"]

_PATIENCE = 60  # seconds
_CODE = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from setsup_renderers.gl_probe import _say; _say()"


def asked(module: str, *environment: str | None) -> str:
    """Call ``context().device`` of a module in a process of its own."""
    name, error = _answer(module, environment)
    if error:
        raise DataError(error)
    return name


@cache
def _answer(module: str, environment: tuple[str | None, ...]) -> tuple[str, str]:
    command = [sys.executable, "-c", _CODE, json.dumps(sys.path), module]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return (
            "",
            f"the OpenGL driver did not respond within {_PATIENCE} s; install another driver, or render with embree",
        )
    except OSError as error:
        return "", f"could not start a process to test OpenGL: {error}"
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
        return answer["name"], answer["error"]
    except (IndexError, ValueError, KeyError, TypeError):
        last = (done.stderr.splitlines() or ["nothing said"])[-1]
        return "", (
            f"the OpenGL driver ended the process (exit code {done.returncode}: {last:.200}); install another "
            "driver, or render with embree"
        )


def _say() -> None:
    """Answer, in the other process."""
    try:
        answer = {"name": __import__(sys.argv[2], fromlist=["context"]).context().device, "error": ""}
    except SetsupError as error:
        answer = {"name": "", "error": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
