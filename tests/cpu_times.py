"""A test that takes more CPU time than CONTRIBUTING allows is marked long, or the run names it; in CI the run fails.

Only a test's own time counts, with that of the processes that it waits for: fixtures are shared, and the first test
that imports a library pays for all that use it. A busy machine doubles the CPU time of the same work, where cores and
caches are shared: a test is named at four times what the rule says. In CI it is then measured once more, in a process
of its own, after the others; the run fails where that takes as long. Noise would have to make a test that keeps the
rule four times as slow, twice.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

RULE, MOST = 0.5, 2.0
"""Seconds of CPU time: above the first a test is to be marked, and above the second an unmarked one is named."""

SECONDS = "cpu_seconds"

ALONE = """
import json, sys
import pytest

class Seconds:
    def __init__(self):
        self.found = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and "cpu_seconds" in dict(report.user_properties):
            self.found[report.nodeid] = dict(report.user_properties)["cpu_seconds"]

for _ in range(2):  # what a test imports the first time does not count
    seconds = Seconds()
    pytest.main([*"-q -p no:cacheprovider -p no:xdist --doctest-modules".split(), *sys.argv[1:]], plugins=[seconds])
print(json.dumps(seconds.found))
"""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers of pytest-xdist send their reports here
        config.pluginmanager.register(Unmarked(), "unmarked")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before, modules = _used(), len(sys.modules)
    try:
        return (yield)
    finally:
        marked = item.get_closest_marker("long") or item.get_closest_marker("smoke")
        if not marked and len(sys.modules) == modules:
            item.user_properties.append((SECONDS, _used() - before))


def _used() -> float:
    return sum(os.times()[:4])  # of this process and of those that it waited for, by the user and in the system


class Unmarked:
    """Tests of this run, in all its workers, that take more than the rule and have no mark."""

    def __init__(self) -> None:
        self.slow: dict[str, float] = {}
        self.alone: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds = dict(report.user_properties).get(SECONDS)
        if report.when == "call" and isinstance(seconds, float) and seconds > RULE:
            self.slow[report.nodeid] = seconds

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In CI, measure what is beyond the rule once more, and fail where it is again."""
        if "CI" in os.environ and (beyond := self._beyond()) and session.exitstatus == pytest.ExitCode.OK:
            again = _alone(beyond, session.config.rootpath)
            self.alone = {test: again.get(test, seconds) for test, seconds in beyond.items()}
            if max(self.alone.values()) > MOST:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        beyond = self._beyond()
        if beyond:
            fails = "the run fails: " if max(self.alone.values(), default=0) > MOST else ""
            terminalreporter.section(f"{fails}make these cheaper, or mark them @pytest.mark.long(KIND)")
        for test, seconds in sorted(beyond.items(), key=lambda item: -item[1]):
            alone = f" ({self.alone[test]:.1f} s alone)" if test in self.alone else ""
            terminalreporter.write_line(f"{seconds:.1f} s of CPU time{alone}, at most {RULE} without a mark: {test}")
        if within := len(self.slow) - len(beyond):
            terminalreporter.write_line(f"unmarked tests of {RULE} to {MOST} s of CPU time: {within:,}")

    def _beyond(self) -> dict[str, float]:
        return {test: seconds for test, seconds in self.slow.items() if seconds > MOST}


def _alone(tests: Iterable[str], folder: Path) -> dict[str, float]:
    """CPU time of tests in a process in which no others run; without those that could not be measured."""
    # without CI, where that process would measure again, too
    inherited = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *tests],
        cwd=folder,
        env={**inherited, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    return found
