"""Which tests `make test` leaves to `make test-all`, and says so at its end.

Those that are marked; and of tests of single benchmarks and papers, which a change to the toolkit rarely breaks in one
case only, all cases but the first of each test.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

ONE_PASS = ("tests/datasets/benchmarks/", "tests/papers/")
"""Folders of which `make test` runs the first case of each test."""

LEFT_OUT = pytest.StashKey[Counter[str]]()
"""How many long tests of each kind this run leaves to `make test-all`."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = Counter()


@pytest.hookimpl(tryfirst=True)  # before marks are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    run = set()
    for item in items:
        if not item.nodeid.startswith(ONE_PASS) or item.get_closest_marker("long") or item.get_closest_marker("smoke"):
            continue
        if (test := item.nodeid.partition("[")[0]) in run:
            item.add_marker(pytest.mark.long("other cases of benchmarks and papers"))
        run.add(test)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if (mark := item.get_closest_marker("long")) and not item.get_closest_marker("smoke"):
            item.config.stash[LEFT_OUT][mark.args[0] if mark.args else "others"] += 1


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
