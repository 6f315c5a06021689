"""What all tests share: hypothesis profiles, a cache folder of their own, and the genuine files."""

import gc
import logging
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import cpu_times, crashes, tiers

if "PYTEST_XDIST_WORKER" in os.environ:  # a process a core: threads of each would only wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# every run checks the same examples; `--hypothesis-profile random`, of the long run, looks for new ones
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("random", parent=settings.get_profile("default"), derandomize=False, print_blob=True)
settings.load_profile("default")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Garbage is looked for among what tests make, and not among the tests and libraries, which all stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


SLOW_EXAMPLES = {"setsup.evaluation.maps.umap_map"}  # numba compiles for ten seconds; a test draws such a map, too


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.smoke)


def pytest_configure(config: pytest.Config) -> None:
    for plugin in (cpu_times, crashes, tiers):
        config.pluginmanager.register(plugin)


LOADER = import_module("setsup.loading.loader")
GENUINE = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tests never read or write the user's cache."""
    folder = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("SETSUP_CACHE", str(folder))
    monkeypatch.delenv("SETSUP_DATA", raising=False)
    return folder


@pytest.fixture(autouse=True)
def loaders_choose_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two ways to the same batches: processes start for longer than tests load; those about them ask for some."""
    monkeypatch.setattr(LOADER, "_processes", lambda: "thread")


class _Whole(logging.Filter):
    """Leaves out what is said of a release that lacks samples, or whose files are not the published ones."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not any(
            words in record.getMessage() for words in ("published samples are present", "neither the published digests")
        )


@pytest.fixture(autouse=True)
def small_releases_are_not_told(request: pytest.FixtureRequest) -> Iterator[None]:
    """All releases that tests write are small; tests of what is said of a part ask for `parts_are_told`."""
    small, log = _Whole(), logging.getLogger("setsup")
    if "parts_are_told" not in request.fixturenames:
        log.addFilter(small)
    yield
    log.removeFilter(small)


@pytest.fixture
def parts_are_told() -> None:
    """What is said of a release that lacks samples is said here, too."""


@pytest.fixture(scope="session")
def genuine() -> Path:
    """Folder of genuine files beside the checkout; tests that need one are skipped where it is missing."""
    if not GENUINE.is_dir():
        pytest.skip(f"no genuine files at {GENUINE}")
    return GENUINE
