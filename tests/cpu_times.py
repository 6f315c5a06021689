"""A test that takes more CPU time than CONTRIBUTING allows is marked long, or the run names it at its end.

Only a test's own time counts, with that of the processes that it waits for: fixtures are shared, and the first test
that imports a library pays for all that use it. A busy machine doubles the CPU time of the same work, where cores and
caches are shared: a test is named at four times what the rule says.
"""

import os
import sys
from collections.abc import Iterator

import pytest

RULE, MOST = 0.5, 2.0
"""Seconds of CPU time: above the first a test is to be marked, and above the second an unmarked one is named."""

SECONDS = "cpu_seconds"


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

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds = dict(report.user_properties).get(SECONDS)
        if report.when == "call" and isinstance(seconds, float) and seconds > RULE:
            self.slow[report.nodeid] = seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        beyond = {test: seconds for test, seconds in self.slow.items() if seconds > MOST}
        if beyond:
            terminalreporter.section("make these cheaper, or mark them @pytest.mark.long(KIND)")
        for test, seconds in sorted(beyond.items(), key=lambda item: -item[1]):
            terminalreporter.write_line(f"{seconds:.1f} s of CPU time, at most {RULE} without a mark: {test}")
        if within := len(self.slow) - len(beyond):
            terminalreporter.write_line(f"unmarked tests of {RULE} to {MOST} s of CPU time: {within:,}")
