"""A test worker that crashes or is killed ends the run, as a failure that names the test.

pytest-xdist would start another worker. Version 3.8 with ``--dist loadfile`` gives that one the files that the first
had finished, of which nothing is left to run, and waits for its answer without end. It also notices the end of a worker
by its pipe alone, which processes that the worker has forked may hold open.
"""

import time
from threading import Thread
from typing import Any

import pytest

_GRACE = 2.0  # seconds in which the pipe of a process that has ended is read to its end


@pytest.hookimpl(optionalhook=True)
def pytest_testnodeready(node: Any) -> None:
    """Watch the process of a worker, too."""
    Thread(target=_watch, args=(node,), daemon=True).start()


def _watch(node: Any) -> None:
    process = node.gateway._io.popen
    while process.poll() is None:
        time.sleep(0.5)
    time.sleep(_GRACE)
    if not node._down:
        node.notify_inproc("errordown", node=node, error=f"exit status {process.returncode}")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """End the run where a worker did not end by itself."""
    if error:
        session = node.config.pluginmanager.get_plugin("dsession")
        running = session.sched.remove_node(node) if node in session.sched.nodes else None
        if running:
            session.handle_crashitem(running, node)
        for other in session._active_nodes:  # xdist would wait for its test
            other.gateway._io.popen.kill()
        pytest.exit(f"test worker {node.gateway.id} crashed or was killed: {error}", returncode=1)
