"""What all tests share: hypothesis profiles, a cache folder of their own, and the genuine files."""

import gc
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:  # a process a core: threads of each would only wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Garbage is looked for among what tests make, and not among the tests and libraries, which all stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


LEFT_OUT = pytest.StashKey[Counter[str]]()
"""How many long tests of each kind this run leaves to `make test-all`."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = Counter()


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if (mark := item.get_closest_marker("long")) and not item.get_closest_marker("smoke"):
            item.config.stash[LEFT_OUT][mark.args[0]] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a worker of pytest-xdist, each of which collects all tests
        session.config.workeroutput["left_out"] = dict(session.config.stash[LEFT_OUT])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    if left_out := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[LEFT_OUT] = Counter(left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left_out := config.stash[LEFT_OUT]:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in left_out.most_common())
        terminalreporter.write_line(f"left to `make test-all`: {left_out.total():,} long tests ({kinds})")


GENUINE = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tests never read or write the user's cache."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("SETSUP_CACHE", str(folder))
    monkeypatch.delenv("SETSUP_DATA", raising=False)
    return folder


@pytest.fixture(scope="session")
def genuine() -> Path:
    """Folder of genuine files beside the checkout; tests that need one are skipped where it is missing."""
    if not GENUINE.is_dir():
        pytest.skip(f"no genuine files at {GENUINE}")
    return GENUINE
